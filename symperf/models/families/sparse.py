"""Decoders whose attention reads a part of the keys: selected by an indexer, or compressed. One table per family.

Defaults for absent keys are those of the config classes of transformers 5.24; layers that share an indexer are told
as SGLang and vLLM read them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

from ...common.errors import InputError
from ..architecture import LayerKind
from ..configs import Config, Family, Sizes, optional, require, window
from ..layouts import in_runs, layer_range, with_sizes
from .bases import LLAMA_LAYERS, LLAMA_SIZES, NO_ATTENTION_BIAS
from .experts import DEEPSEEK, MULTI_TOKEN, first_dense, routed_sizes, times, whole_or_none

if TYPE_CHECKING:
    from ..architecture import FeedForward
    from ..configs import Kinds, Rule, Runs

INDEXER: dict[str, Rule | int] = {
    "index_num_heads": require("index_n_heads"),
    "index_head_dim": require("index_head_dim"),
    "index_top_keys": require("index_topk"),
}


def indexed(rank: int) -> dict[str, Rule | int]:
    """Sizes of latent attention's indexer, which reads the compressed query; its rank where the file gives none."""
    return {"q_lora_rank": optional("q_lora_rank", absent=rank), **INDEXER}


def shared_indexers(config: Config, sizes: Sizes) -> list[bool]:
    """Whether a layer uses the keys that an earlier one selected, layer by layer.

    `indexer_types` tells it by words, `index_topk_pattern` by letters; else, with a period above 1, every period-th
    layer from an offset on has an indexer, and so have those before.
    """
    words = config.words("indexer_types", sizes["num_layers"])
    if words is not None:
        if set(words) - {"full", "shared"} or words[0] != "full":
            config.fail("indexer_types", "only full and shared, the first one full")
        config.used |= {"index_topk_pattern", "index_topk_freq", "index_skip_topk_offset"}
        return [word == "shared" for word in words]
    if config.holds("index_topk_pattern"):
        pattern = config.data["index_topk_pattern"]
        letters = isinstance(pattern, str) and len(pattern) == sizes["num_layers"] and not set(pattern) - {"F", "S"}
        if not letters or pattern[0] != "F":
            config.fail("index_topk_pattern", f"F or S for each of {sizes['num_layers']} layers, the first one F")
        config.used |= {"index_topk_freq", "index_skip_topk_offset"}
        return [letter == "S" for letter in pattern]
    period = config.integer("index_topk_freq") if config.holds("index_topk_freq") else 1
    offset = config.integer("index_skip_topk_offset") if config.holds("index_skip_topk_offset") else 2
    return [max(i - offset + 1, 0) % period != 0 for i in layer_range(config, sizes)]


def each_feed_forward(absent: int, config: Config, sizes: Sizes) -> list[FeedForward]:
    """What follows the mixer of each layer: an MLP in the first ones, experts in the rest."""
    return list(cast("list[FeedForward]", first_dense(absent)(config, sizes)))


def selected_latent(absent: int) -> Kinds:
    """Latent attention to selected keys; experts in every layer but the first ones."""

    def rule(config: Config, sizes: Sizes, _: bool) -> Runs:
        shared = shared_indexers(config, sizes)
        return in_runs(
            LayerKind("latent_attention", ffn, traits=("reused_index" if reuses else "indexer",))
            for ffn, reuses in zip(each_feed_forward(absent, config, sizes), shared, strict=True)
        )

    return rule


COMPRESSED = {
    "sliding_attention": "window_only",
    "compressed_sparse_attention": "selected_entries",
    "heavily_compressed_attention": "all_entries",
}
RATIOS = {0: "window_only", 4: "selected_entries", 128: "all_entries"}
"""How many tokens an entry stands for decides, in files of the release, how layers see entries."""


def compressed_layers(config: Config, sizes: Sizes, _: bool) -> Runs:
    """Layers with a window, selected entries or all entries, by ratio or by word (transformers 5)."""
    count = sizes["num_layers"]
    words = config.words("layer_types", count)
    if words is not None:
        if set(words) - set(COMPRESSED):
            config.fail("layer_types", f"only {', '.join(COMPRESSED)}")
        rates = config.section("compress_rates")
        ratios = {
            trait: optional(word, absent=absent)(rates, sizes)
            for (word, trait), absent in zip(list(COMPRESSED.items())[1:], (4, 128), strict=True)
        }
        layers = [(COMPRESSED[word], ratios.get(COMPRESSED[word], 0)) for word in words]
    else:
        expected = f"0, 4 or 128 for each of {count} layers"
        listed = config.numbers("compress_ratios", largest=1 << 20)
        if listed is None:
            raise InputError(f"{config.where}: compress_ratios (or layer_types) is missing, expected {expected}")
        if len(listed) < count or set(listed) - set(RATIOS):
            config.fail("compress_ratios", expected)
        layers = [(RATIOS[ratio], ratio) for ratio in listed[:count]]
    for word in config.words("mlp_layer_types", count) or []:
        if word not in ("moe", "hash_moe"):
            config.fail("mlp_layer_types", "only moe and hash_moe")
    kinds = (LayerKind("compressed_attention", "experts", traits=(trait,)) for trait, _ in layers)
    pairs = zip(kinds, layers, strict=True)
    return in_runs(with_sizes(kind, {"compress_ratio": ratio} if ratio else {}, sizes) for kind, (_, ratio) in pairs)


DEEPSEEK_V4 = Family(
    LLAMA_SIZES
    | {
        "num_key_value_heads": optional("num_key_value_heads", absent=1),
        "head_dim": require("head_dim"),
        "intermediate_size": require("moe_intermediate_size"),
        "q_lora_rank": require("q_lora_rank"),
        "output_groups": require("o_groups"),
        "output_lora_rank": require("o_lora_rank"),
        "num_streams": require("hc_mult"),
    }
    | INDEXER
    | routed_sizes("n_routed_experts", width="moe_intermediate_size")
    | {"shared_expert_intermediate_size": times("n_shared_experts", "moe_intermediate_size", absent=1)}
    | MULTI_TOKEN,
    LLAMA_LAYERS | NO_ATTENTION_BIAS,
    window=window(128),
    kinds=compressed_layers,
    only={"attention_bias": False, "mlp_bias": False, "num_key_value_heads": 1},
    # Layers that route by a table of tokens have a router all the same.
    harmless=(
        "num_hash_layers",
        "mlp_layer_types",
        "qk_rope_head_dim",
        "compress_rope_theta",
        "hc_eps",
        "hc_sinkhorn_iters",
        "expert_dtype",
    ),
)


def block_size(key: str, nested: str) -> Rule:
    """A size of the indexer under `sparse_attention_config`, or at the top in files written by transformers 5."""

    def rule(config: Config, sizes: Sizes) -> int:
        inner = config.section("sparse_attention_config")
        return require(nested)(inner, sizes) if inner.data else require(key)(config, sizes)

    return rule


FIXED = {"use_sparse_attention": True, "sparse_init_block": 0, "sparse_local_block": 1, "sparse_score_type": "max"}
"""Keys of `sparse_attention_config` with the values that are modelled; the indexer has no values of its own."""


def block_layers(config: Config, sizes: Sizes, _: bool) -> Runs:
    """Attention to all keys or to selected blocks, and an MLP or experts, by lists of 0 and 1."""
    inner = config.section("sparse_attention_config")
    inner.used |= set(FIXED) | {"sparse_disable_index_value"}
    for key, value in FIXED.items():
        if inner.data.get(key, value) != value:
            inner.fail(key, f"{str(value).lower()}: other values are not supported yet")
    ffns = each_feed_forward(0, config, sizes)
    words = config.words("layer_types", sizes["num_layers"])
    if words is not None and set(words) - {"minimax_m3_sparse", "full_attention"}:
        config.fail("layer_types", "only minimax_m3_sparse and full_attention")
    listed = inner.numbers("sparse_attention_freq", largest=1)
    if words is not None:
        listed = [int(word == "minimax_m3_sparse") for word in words]
    if listed is None:
        raise InputError(f"{inner.where}: sparse_attention_freq (or layer_types) is missing, expected 0 or 1 by layer")
    if len(listed) != sizes["num_layers"]:
        inner.fail("sparse_attention_freq", f"0 or 1 for each of {sizes['num_layers']} layers")
    return in_runs(
        LayerKind("attention", ffn, traits=("block_index",) if chosen else ())
        for ffn, chosen in zip(ffns, listed, strict=True)
    )


MINIMAX_M3 = Family(
    LLAMA_SIZES
    | {
        "intermediate_size": require("dense_intermediate_size"),
        "index_num_heads": block_size("index_n_heads", "sparse_num_index_heads"),
        "index_head_dim": block_size("index_head_dim", "sparse_index_dim"),
        "index_top_blocks": block_size("index_topk_blocks", "sparse_topk_blocks"),
        "index_block_size": block_size("index_block_size", "sparse_block_size"),
    }
    | routed_sizes("num_local_experts", width="intermediate_size")
    | {
        "shared_expert_intermediate_size": times("n_shared_experts", "shared_intermediate_size", absent=1),
        "num_multi_token_layers": whole_or_none("num_mtp_modules"),
    },
    LLAMA_LAYERS | NO_ATTENTION_BIAS | {"query_key_norm": "per_head"},
    kinds=block_layers,
    only={"use_qk_norm": True, "attention_output_gate": False, "qk_norm_type": "per_head", "index_local_blocks": 1},
    harmless=("use_gemma_norm", "swiglu_alpha"),
)

SPARSE_FAMILIES: dict[str, Family] = {
    "deepseek_v32": replace(DEEPSEEK, sizes={**DEEPSEEK.sizes, **indexed(1536)}, kinds=selected_latent(3)),
    "glm_moe_dsa": replace(
        DEEPSEEK,
        sizes={**DEEPSEEK.sizes, **indexed(2048)},
        kinds=selected_latent(3),
        harmless=(
            "num_key_value_heads", "head_dim", "qk_head_dim", "indexer_rope_interleave",
            "index_share_for_mtp_iteration",
        ),
    ),
    "deepseek_v4": DEEPSEEK_V4,
    "deepseek_ref": DEEPSEEK_V4,
    "minimax_m3": MINIMAX_M3,
    "minimax_m3_text": MINIMAX_M3,
    "minimax_m3_vl_text": MINIMAX_M3,
    "minimax_m3_vl": replace(MINIMAX_M3, section="text_config"),
}  # fmt: skip
"""Families of sparse attention; `deepseek_ref` are DeepSeek-V4's files in the reference's words."""
