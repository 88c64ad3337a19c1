"""Decoders with routed experts: one table per family, as differences from `symperf.models.families.bases`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from ..architecture import LayerKind
from ..configs import Config, Family, Sizes, flag, heads, hidden_by_heads, optional, require, tie, window
from ..layouts import always, constant_mixer, experts, experts_where, in_runs, layer_range, layout, windows
from .bases import LAYER_NORM, LLAMA_LAYERS, LLAMA_SIZES, NO_ATTENTION_BIAS, grouped

if TYPE_CHECKING:
    from ..architecture import FeedForward, Mixer
    from ..configs import Rule, Runs
    from ..layouts import FeedForwardRule


def routed_sizes(*keys: str, width: str, chosen: str = "num_experts_per_tok") -> dict[str, Rule | int]:
    """Sizes of routed experts: the keys of their number, of their width, and of how many a token passes."""
    return {
        # Files written by transformers 5 call it num_local_experts, whatever the class does.
        "num_experts": require(*dict.fromkeys((*keys, "num_local_experts"))),
        "num_experts_per_token": require(chosen, "experts_per_token")
        if chosen == "num_experts_per_tok"
        else require(chosen),
        "expert_intermediate_size": require(width),
    }


def times(count: str, width: str, *, absent: int = 0) -> Rule:
    """The width of all shared experts together: their number times the width of one."""

    def rule(config: Config, sizes: Sizes) -> int:
        number = whole_or_none(count, absent=absent)(config, sizes)
        return number * require(width)(config, sizes)

    return rule


def whole_or_none(key: str, absent: int = 0) -> Rule:
    """A size that may be 0 or null, which is 0; and what the class takes where it is absent."""

    def rule(config: Config, _: Sizes) -> int:
        if config.holds(key):
            return config.integer(key, smallest=0)
        return 0 if key in config.data else config.take(key, absent)

    return rule


def first_dense(absent: int, *, key: str = "first_k_dense_replace") -> FeedForwardRule:
    """Experts in every layer but the first ones, every `moe_layer_freq`-th from there on.

    Files written by transformers 5 have a word for every layer in `mlp_layer_types` instead, some a list of 0 and 1 in
    `moe_layer_freq`.
    """

    def chosen(index: int, config: Config, sizes: Sizes) -> bool:
        words = config.words("mlp_layer_types", sizes["num_layers"])
        if words is not None:
            if words[index] not in ("dense", "sparse"):
                config.fail("mlp_layer_types", "only dense and sparse")
            return words[index] == "sparse"
        if isinstance(config.data.get("moe_layer_freq"), list):
            listed = config.numbers("moe_layer_freq", largest=1) or []
            if len(listed) != sizes["num_layers"]:
                config.fail("moe_layer_freq", f"an entry for each of {sizes['num_layers']} layers")
            return listed[index] == 1
        first = config.integer_or(key, absent, smallest=0)
        period = config.integer("moe_layer_freq") if config.holds("moe_layer_freq") else 1
        return index >= first and index % period == 0

    return experts_where(chosen)


def sparse_step(config: Config, sizes: Sizes) -> list[FeedForward]:
    """Experts in every `decoder_sparse_step`-th layer that `mlp_only_layers` does not name."""
    step = config.integer_or("decoder_sparse_step", 1)
    plain = set(config.numbers("mlp_only_layers", largest=sizes["num_layers"]) or ())
    return ["experts" if (i + 1) % step == 0 and i not in plain else "dense" for i in layer_range(config, sizes)]


MULTI_TOKEN: dict[str, Rule | int] = {"num_multi_token_layers": whole_or_none("num_nextn_predict_layers")}

QWEN_MOE_SIZES: dict[str, Rule | int] = LLAMA_SIZES | routed_sizes("num_experts", width="moe_intermediate_size")

LATENT_SIZES: dict[str, Rule | int] = {
    "q_lora_rank": whole_or_none("q_lora_rank"),
    "kv_lora_rank": require("kv_lora_rank"),
    "qk_nope_head_dim": require("qk_nope_head_dim"),
    "qk_rope_head_dim": require("qk_rope_head_dim"),
    "v_head_dim": require("v_head_dim"),
}


def key_width(nope: int | None = None, rope: int | None = None) -> Rule:
    """The width of a key of latent attention: its part without positions and its rotary part."""
    parts = {"qk_nope_head_dim": nope, "qk_rope_head_dim": rope}
    return lambda config, sizes: sum(optional(key, absent=absent)(config, sizes) for key, absent in parts.items())


def deepseek(*, shared: int, first: int, groups: tuple[int, int] = (1, 0)) -> Family:
    """The family with its class defaults: shared experts, layers with an MLP before those with experts, and groups."""
    return Family(
        LLAMA_SIZES
        | LATENT_SIZES
        | {
            "q_lora_rank": whole_or_none("q_lora_rank", absent=1536),
            "num_key_value_heads": heads,
            "head_dim": key_width(),
        }
        | routed_sizes("n_routed_experts", width="moe_intermediate_size")
        | {"shared_expert_intermediate_size": times("n_shared_experts", "moe_intermediate_size", absent=shared)}
        | MULTI_TOKEN,
        LLAMA_LAYERS,
        kinds=layout(constant_mixer("latent_attention"), first_dense(first)),
        # Every head has keys and values of its own, whatever the file says.
        harmless=("num_key_value_heads",),
        groups=groups,
    )


DEEPSEEK = deepseek(shared=1, first=3, groups=(8, 4))


def dbrx_section(section: str, key: str, absent: int) -> Rule:
    """A size under `attn_config` or `ffn_config`."""
    return lambda config, sizes: optional(key, absent=absent)(config.section(section), sizes)


def llama4_kinds(config: Config, sizes: Sizes, windowed: bool) -> Runs:
    """Chunks where there are rotary positions, three layers of four; experts in the last layer of every step."""
    listed = config.numbers("no_rope_layers", largest=1)
    every = 1 if listed else config.integer_or("no_rope_layer_interval", 4)
    rotary = listed or [int((i + 1) % every > 0) for i in layer_range(config, sizes)]
    named = config.numbers("moe_layers", largest=sizes["num_layers"])
    step = 1 if named else config.integer_or("interleave_moe_layer_step", 1)
    config.used |= {"no_rope_layer_interval", "interleave_moe_layer_step"}
    if len(rotary) != sizes["num_layers"]:
        config.fail("no_rope_layers", f"an entry for each of {sizes['num_layers']} layers")
    return in_runs(
        LayerKind(
            "local_attention" if rotary[i] and windowed else "attention",
            "experts" if (i in named if named else (i + 1) % step == 0) else "dense",
        )
        for i in layer_range(config, sizes)
    )


LLAMA4 = Family(
    LLAMA_SIZES
    | grouped(8)
    | routed_sizes("num_local_experts", width="intermediate_size")
    | {
        "intermediate_size": require("intermediate_size_mlp"),
        "shared_expert_intermediate_size": require("intermediate_size"),
    },
    LLAMA_LAYERS | {"chunked_attention": True},
    window=window(8192, key="attention_chunk_size"),
    kinds=llama4_kinds,
    # Its norm of queries and keys has no parameters.
    harmless=("use_qk_norm", "attn_scale"),
)


def of_full_layers(size: str, key: str, absent: Rule) -> Rule:
    """A size of the layers that see all keys: under a key of its own, or layer by layer (transformers 5)."""

    def rule(config: Config, sizes: Sizes) -> int:
        if not config.holds("per_layer_config"):
            return optional(key, absent=absent, null=absent)(config, sizes)
        layers = config.section("per_layer_config").data
        config.section("per_layer_config").used |= set(layers)
        words = config.words("layer_types", sizes["num_layers"]) or []
        full = {index for index, word in enumerate(words) if word == "full_attention"}
        if not all(text.isdecimal() and len(text) < 7 for text in layers) or {int(text) for text in layers} != full:
            config.fail("per_layer_config", "an entry for each layer of full_attention in layer_types, by its number")
        for entry in layers.values():
            if not isinstance(entry, dict) or set(entry) - {"head_dim", "num_key_value_heads"}:
                config.fail("per_layer_config", "objects with head_dim and num_key_value_heads")
        values = {json.dumps(entry.get(size)) for entry in layers.values()}
        if len(values) > 1:
            config.fail("per_layer_config", f"one {size} for all layers of full_attention")
        entry = Config({size: json.loads(values.pop())} if values else {}, f"{config.where}: per_layer_config")
        return optional(size, absent=lambda _, s: s[size])(entry, sizes)

    return rule


def gemma4_global_heads(config: Config, sizes: Sizes) -> int:
    """Key-value heads of the layers that see all keys: their own only where their keys are the values too."""
    shared = config.flag("attention_k_eq_v", False)
    if not shared and not config.holds("per_layer_config"):
        config.used.add("num_global_key_value_heads")
        return sizes["num_key_value_heads"]
    alike = of_full_layers("num_key_value_heads", "num_global_key_value_heads", lambda _, s: s["num_key_value_heads"])
    return alike(config, sizes)


def gemma4_experts(*keys: str) -> Rule:
    """A size of experts, which say nothing where layers have none."""

    def rule(config: Config, sizes: Sizes) -> int:
        config.used |= set(keys)
        return require(*keys)(config, sizes) if config.flag("enable_moe_block", False) else 0

    return rule


GLOBAL_HEADS: dict[Mixer, tuple[tuple[str, str], ...]] = {
    "attention": (("head_dim", "global_head_dim"), ("num_key_value_heads", "num_global_key_value_heads"))
}
"""Sizes of the layers that see all keys."""

GEMMA4 = Family(
    LLAMA_SIZES
    | {
        "head_dim": optional("head_dim", absent=256),
        "global_head_dim": of_full_layers("head_dim", "global_head_dim", lambda _c, _s: 512),
        "num_global_key_value_heads": gemma4_global_heads,
    }
    | {
        "num_experts": gemma4_experts("num_experts", "num_local_experts"),
        "num_experts_per_token": gemma4_experts("top_k_experts"),
        "expert_intermediate_size": gemma4_experts("moe_intermediate_size"),
    },
    LLAMA_LAYERS
    | {
        "tied_embeddings": tie(True),
        "block_norms": flag("enable_moe_block", False, yes=7, no=4),
        "query_key_norm": "per_head",
        "shared_key_value": flag("attention_k_eq_v", False),
        "router_scale": True,
    },
    window=window(512),
)

EXPERTS: dict[str, Family] = {
    "mixtral": Family(
        LLAMA_SIZES | grouped(8) | routed_sizes("num_local_experts", width="intermediate_size"),
        LLAMA_LAYERS | NO_ATTENTION_BIAS,
        window=window(None),
        kinds=layout(windows(always), experts),
    ),
    "qwen2_moe": Family(
        QWEN_MOE_SIZES | grouped(16) | {"shared_expert_intermediate_size": require("shared_expert_intermediate_size")},
        LLAMA_LAYERS | {"qkv_bias": True, "attention_output_bias": False, "shared_expert_gate": True},
        kinds=layout(ffns=sparse_step),
    ),
    "qwen3_moe": Family(
        QWEN_MOE_SIZES | grouped(4),
        LLAMA_LAYERS | {"query_key_norm": "per_head"},
        kinds=layout(ffns=sparse_step),
    ),
    "olmoe": Family(
        LLAMA_SIZES | routed_sizes("num_experts", width="intermediate_size"),
        LLAMA_LAYERS | {"query_key_norm": "full_width"},
        kinds=layout(ffns=experts),
    ),
    "phimoe": Family(
        LLAMA_SIZES | grouped(8) | routed_sizes("num_local_experts", width="intermediate_size"),
        LLAMA_LAYERS | LAYER_NORM | {"head_bias": flag("lm_head_bias", False)},
        window=window(None),
        kinds=layout(windows(always), experts),
    ),
    "gpt_oss": Family(
        LLAMA_SIZES
        | grouped(8)
        | {"head_dim": optional("head_dim", absent=64)}
        | routed_sizes("num_local_experts", width="intermediate_size"),
        LLAMA_LAYERS
        | {
            "qkv_bias": flag("attention_bias", True),
            "attention_output_bias": flag("attention_bias", True),
            "attention_sinks": True,
            "router_bias": True,
            "expert_bias": True,
            "limited_gate": True,
        },
        window=window(128),
        kinds=layout(windows(lambda i, _c, _s: i % 2 == 0), experts),
    ),
    "minimax_m2": Family(
        LLAMA_SIZES
        | grouped(8)
        | {"head_dim": optional("head_dim", absent=128, null=hidden_by_heads)}
        | routed_sizes("num_local_experts", width="intermediate_size")
        | {
            "shared_expert_intermediate_size": whole_or_none("shared_intermediate_size"),
            "num_multi_token_layers": whole_or_none("num_mtp_modules"),
        },
        LLAMA_LAYERS | NO_ATTENTION_BIAS | {"query_key_norm": flag("use_qk_norm", True, yes="full_width", no="none")},
        kinds=layout(ffns=experts),
    ),
    "glm4_moe": Family(
        LLAMA_SIZES
        | grouped(8)
        | {"head_dim": optional("head_dim", absent=128, null=hidden_by_heads)}
        | routed_sizes("n_routed_experts", width="moe_intermediate_size")
        | {"shared_expert_intermediate_size": times("n_shared_experts", "moe_intermediate_size", absent=1)}
        | MULTI_TOKEN,
        LLAMA_LAYERS
        | {
            "attention_output_bias": False,
            "query_key_norm": flag("use_qk_norm", False, yes="per_head", no="none"),
        },
        kinds=layout(ffns=first_dense(1)),
    ),
    "deepseek_v2": deepseek(shared=2, first=0),
    "deepseek_v3": DEEPSEEK,
    "kimi_k2": DEEPSEEK,
    "dbrx": Family(
        LLAMA_SIZES
        | {
            "hidden_size": require("d_model", "hidden_size"),
            "num_layers": require("n_layers", "num_hidden_layers"),
            "num_attention_heads": require("n_heads", "num_attention_heads"),
            "num_key_value_heads": dbrx_section("attn_config", "kv_n_heads", 1),
            "num_experts": dbrx_section("ffn_config", "moe_num_experts", 4),
            "num_experts_per_token": dbrx_section("ffn_config", "moe_top_k", 1),
            "expert_intermediate_size": dbrx_section("ffn_config", "ffn_hidden_size", 3584),
            "intermediate_size": dbrx_section("ffn_config", "ffn_hidden_size", 3584),
        },
        LLAMA_LAYERS | NO_ATTENTION_BIAS | {"norm": "layer_norm"},
        kinds=layout(ffns=experts),
    ),
    "grok-1": Family(
        LLAMA_SIZES | routed_sizes("num_experts", width="intermediate_size"),
        LLAMA_LAYERS | NO_ATTENTION_BIAS | {"block_norms": 4, "tied_embeddings": tie(True)},
        kinds=layout(ffns=experts),
    ),
    "llama4_text": LLAMA4,
}
"""Families with routed experts."""
