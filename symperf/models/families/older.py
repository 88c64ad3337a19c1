"""Decoders before 2025 that recombine known parts: one table per family, as differences from `bases`.

Defaults for absent keys are those of the config classes of transformers 5.24; of families that have no class there, of
the code of their checkpoints.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ...common.errors import InputError
from ..architecture import LayerKind
from ..configs import (
    Config,
    Family,
    Sizes,
    activating,
    dropping,
    flag,
    four_hidden,
    heads,
    hidden_by_heads,
    optional,
    require,
    tie,
    window,
)
from ..layouts import in_runs, layer_range, layout, windows, with_sizes
from .bases import GPT2_DROPOUT, GPT2_LAYERS, GPT2_SIZES, LLAMA_LAYERS, LLAMA_SIZES, NO_ATTENTION_BIAS
from .dense import DENSE
from .experts import first_dense, routed_sizes, times

if TYPE_CHECKING:
    from ..architecture import FeedForward, Mixer
    from ..configs import Rule, Runs


def biased(key: str, absent: bool = False) -> dict[str, object]:
    """One key that gives biases to the projections of attention."""
    return dict.fromkeys(("qkv_bias", "attention_output_bias"), flag(key, absent))


def neo_mixers(config: Config, sizes: Sizes, _: bool) -> list[Mixer]:
    """By `attention_types`, pairs of a list of words and how often it comes; or by `attention_layers`, its result."""
    count, words = sizes["num_layers"], config.data.get("attention_layers")
    config.used |= {"attention_layers", "attention_types"}
    pairs = config.data.get("attention_types")
    if pairs is not None:
        whole = isinstance(pairs, list) and all(
            isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], list) and type(pair[1]) is int
            for pair in pairs
        )
        if not whole or sum(len(pair[0]) * max(pair[1], 0) for pair in pairs) != count:
            config.fail("attention_types", f"lists of words, each with how often it comes, {count} layers in all")
        told = [word for pair in pairs for _ in range(pair[1]) for word in pair[0]]
        if words is not None and words != told:
            config.fail("attention_layers", "the words that attention_types says")
        words = told
    if words is None:
        words = ["global" if i % 2 == 0 else "local" for i in layer_range(config, sizes)]
    key = "attention_types" if pairs is not None else "attention_layers"
    if not isinstance(words, list) or len(words) != count or not set(map(str, words)) <= {"global", "local"}:
        config.fail(key, f"global or local for each of {count} layers")
    return ["local_attention" if word == "local" else "attention" for word in words]


def half_inner(config: Config, sizes: Sizes) -> int:
    """Qwen's first generation gives the width of gate and up together."""
    width, remainder = divmod(optional("intermediate_size", absent=22016)(config, sizes), 2)
    if remainder:
        config.fail("intermediate_size", "an even number, twice the inner width")
    return width


def baichuan_positions(config: Config) -> str:
    """Rotary in the model of 7 B parameters; the one of 13 B has ALiBi, and the same name."""
    return "rotary" if config.data.get("hidden_size") == 4096 else "alibi"


def glm_key_value_heads(config: Config, sizes: Sizes) -> int:
    """Groups of keys and values where `multi_query_attention` says so."""
    groups = optional("multi_query_group_num", absent=1)(config, sizes)
    return groups if config.flag("multi_query_attention", False) else heads(config, sizes)


def deci_heads(config: Config, sizes: Sizes) -> list[int]:
    """The key-value heads of every layer."""
    key, count, every = "num_key_value_heads_per_layer", sizes["num_layers"], sizes["num_attention_heads"]
    listed = config.numbers(key, largest=every)
    if listed is None:
        raise InputError(f"{config.where}: {key} is missing, expected a number for every layer")
    if len(listed) != count or any(n < 1 or every % n for n in listed):
        config.fail(key, f"a divisor of {every} for each of {count} layers")
    return listed


def deci_layers(config: Config, sizes: Sizes, _: bool) -> Runs:
    """Layers each with its number of key-value heads."""
    plain = LayerKind("attention", "dense")
    return in_runs(with_sizes(plain, {"num_key_value_heads": n}, sizes) for n in deci_heads(config, sizes))


def exaone_windows(index: int, config: Config, sizes: Sizes) -> bool:
    """By a word such as LLLG, repeated, or every so many layers; the last layer sees all keys."""
    key = "sliding_window_pattern"
    pattern = config.data.get(key, 4)
    config.used.add(key)
    if pattern is None or index == sizes["num_layers"] - 1:
        return False
    if isinstance(pattern, str) and pattern and not set(pattern) - {"L", "G"}:
        return pattern[index % len(pattern)] == "L"
    return (index + 1) % (config.integer(key) if key in config.data else 4) != 0


def exaone_experts(config: Config, sizes: Sizes) -> list[FeedForward] | FeedForward:
    """Experts by `mlp_layer_types`, or true and false for each layer, or in every layer but the first ones."""
    listed = config.data.get("is_moe_layer")
    if listed is None or config.holds("mlp_layer_types"):
        return first_dense(1)(config, sizes)
    if not isinstance(listed, list) or len(listed) != sizes["num_layers"] or {*map(type, listed)} != {bool}:
        config.fail("is_moe_layer", f"true or false for each of {sizes['num_layers']} layers")
    return ["experts" if each else "dense" for each in listed]


GPTJ = DENSE["gptj"]
PHI = DENSE["phi"]
FALCON = DENSE["falcon"]
REFINED: dict[str, object] = {
    "parallel_block": flag("parallel_attn", False),
    "block_norms": flag("parallel_attn", False, yes=1, no=2),
    "positions": flag("alibi", False, yes="alibi", no="rotary"),
}
GLM_SIZES: dict[str, Rule | int] = LLAMA_SIZES | {
    "num_layers": require("num_layers", "num_hidden_layers"),
    "num_key_value_heads": glm_key_value_heads,
    "head_dim": optional("kv_channels", absent=128),
    "intermediate_size": require("ffn_hidden_size"),
    "vocab_size": require("padded_vocab_size", "vocab_size"),
}

OLDER: dict[str, Family] = {
    "gpt_neo": Family(
        GPT2_SIZES
        | {
            "hidden_size": optional("hidden_size", absent=2048),
            "num_layers": optional("num_layers", "num_hidden_layers", absent=24),
            "num_attention_heads": optional("num_heads", "num_attention_heads", absent=16),
            "intermediate_size": optional("intermediate_size", absent=four_hidden, null=four_hidden),
            "position_rows": optional("max_position_embeddings", absent=2048),
        },
        GPT2_LAYERS
        | {
            "qkv_bias": False,
            "dropout": dropping("resid_dropout", "attention_dropout", "embed_dropout"),
        },
        window=window(256, key="window_size"),
        kinds=layout(neo_mixers),
    ),
    "codegen": replace(GPTJ),
    "openai-gpt": Family(
        GPT2_SIZES | {"intermediate_size": four_hidden},
        GPT2_LAYERS | GPT2_DROPOUT | {"final_norm": False},
        harmless=("afn",),
    ),
    "ctrl": Family(
        GPT2_SIZES | {"intermediate_size": optional("dff", absent=8192), "position_rows": 0},
        GPT2_LAYERS
        | {
            "positions": "none",
            "head_bias": True,
            "activation": "relu",
            "dropout": dropping("resid_pdrop", "embd_pdrop", absent=0.1),
        },
        harmless=("n_positions", "from_tf"),
    ),
    "biogpt": Family(
        LLAMA_SIZES
        | {
            "num_key_value_heads": heads,
            "head_dim": hidden_by_heads,
            "position_rows": optional("max_position_embeddings", absent=1024, add=2),
        },
        GPT2_LAYERS | {"dropout": dropping("hidden_dropout_prob", "attention_probs_dropout_prob", absent=0.1)},
    ),
    "persimmon": Family(
        LLAMA_SIZES | {"num_key_value_heads": heads, "head_dim": hidden_by_heads},
        GPT2_LAYERS
        | {
            "positions": "rotary",
            "tied_embeddings": tie(False),
            "query_key_norm": flag("qk_layernorm", True, yes="per_head", no="none"),
            "query_key_norm_bias": flag("qk_layernorm", True),
            "activation": activating("relu2"),
            "dropout": dropping("hidden_dropout", "attention_dropout"),
        },
        harmless=("num_key_value_heads",),
    ),
    "phi-msft": Family(
        GPT2_SIZES
        | {
            "num_key_value_heads": optional("n_head_kv", absent=heads, null=heads),
            "position_rows": 0,
        },
        PHI.layers,
        harmless=("n_positions", "flash_attn", "flash_rotary", "fused_dense"),
    ),
    "RefinedWebModel": Family(
        {**FALCON.sizes, "num_key_value_heads": lambda c, s: 1 if c.flag("multi_query", False) else heads(c, s)},
        {**FALCON.layers, **REFINED},
    ),
    "RefinedWeb": Family(
        {**FALCON.sizes, "num_key_value_heads": optional("n_head_kv", absent=heads, null=heads)},
        {**FALCON.layers, **REFINED, "parallel_block": True, "block_norms": 2},
        only={"parallel_attn": True},
    ),
    "baichuan": Family(
        LLAMA_SIZES | {"num_key_value_heads": heads, "head_dim": hidden_by_heads},
        LLAMA_LAYERS | NO_ATTENTION_BIAS | {"positions": baichuan_positions},
        harmless=("z_loss_weight", "gradient_checkpointing", "model_max_length"),
    ),
    "internlm2": Family(LLAMA_SIZES, LLAMA_LAYERS | biased("bias"), harmless=("attn_implementation",)),
    "qwen": Family(
        LLAMA_SIZES
        | {
            "num_key_value_heads": heads,
            "head_dim": optional("kv_channels", absent=128),
            "intermediate_size": half_inner,
        },
        LLAMA_LAYERS
        | {
            "qkv_bias": True,
            "attention_output_bias": flag("no_bias", True, yes=False, no=True),
            "mlp_bias": flag("no_bias", True, yes=False, no=True),
            "dropout": dropping("attn_dropout_prob", "emb_dropout_prob"),
        },
        harmless=(
            "bf16", "fp16", "fp32", "onnx_safe", "seq_length", "use_cache_kernel", "use_cache_quantization",
            "use_dynamic_ntk", "use_flash_attn", "use_logn_attn", "softmax_in_fp32",
        ),
    ),
    "chatglm": Family(
        GLM_SIZES,
        LLAMA_LAYERS
        | {
            "qkv_bias": lambda c: c.flag("add_bias_linear", False) or c.flag("add_qkv_bias", False),
            "attention_output_bias": flag("add_bias_linear", False),
            "mlp_bias": flag("add_bias_linear", False),
            "norm": flag("rmsnorm", True, yes="rms_norm", no="layer_norm"),
            "norm_bias": flag("rmsnorm", True, yes=False, no=True),
            "final_norm": flag("post_layer_norm", True),
            "dropout": dropping("hidden_dropout", "attention_dropout"),
        },
        only={"pre_seq_len": None, "prefix_projection": False},
        harmless=(
            "apply_query_key_layer_scaling", "fp32_residual_connection", "layernorm_epsilon", "original_rope",
            "quantization_bit", "rope_ratio", "num_hidden_layers",
        ),
    ),
    "minicpm": Family(
        LLAMA_SIZES,
        LLAMA_LAYERS | {"tied_embeddings": tie(True)},
        only={"sparse_config": None, "num_experts": 0},
    ),
    "exaone": Family(
        LLAMA_SIZES
        | {
            "num_layers": require("num_layers", "num_hidden_layers"),
            "num_key_value_heads": optional("num_key_value_heads", absent=8, null=heads),
        },
        LLAMA_LAYERS | {"mlp_bias": flag("mlp_bias", False), "dropout": dropping("attention_dropout", "embed_dropout")},
    ),
    "exaone_moe": Family(
        LLAMA_SIZES
        | {"num_key_value_heads": optional("num_key_value_heads", absent=32)}
        | routed_sizes("num_experts", width="moe_intermediate_size")
        | {
            "shared_expert_intermediate_size": times("num_shared_experts", "moe_intermediate_size", absent=1),
            "num_multi_token_layers": optional("num_nextn_predict_layers", absent=0, null=0),
        },
        LLAMA_LAYERS | NO_ATTENTION_BIAS | {"query_key_norm": "per_head"},
        window=window(4096),
        kinds=layout(windows(exaone_windows), exaone_experts),
        only={"first_last_k_dense_replace": 1},
        # A list of words overrules the number of dense layers and the pattern of windows.
        harmless=(
            "is_moe_layer", "first_k_dense_replace", "sliding_window_pattern",
        ),
    ),
    "arctic": Family(
        LLAMA_SIZES
        | {"num_key_value_heads": optional("num_key_value_heads", absent=heads, null=heads)}
        | routed_sizes("num_local_experts", width="intermediate_size")
        # The MLP beside the experts is as wide as the stream.
        | {"intermediate_size": lambda _, s: s["hidden_size"]},
        LLAMA_LAYERS | {"block_norms": 3},
        kinds=lambda _c, s, _w: [(LayerKind("attention", "dense_experts"), s["num_layers"])],
        only={
            "use_residual": True,
            "parallel_attn_mlp_res": True,
            "moe_layer_frequency": 1,
            "enc_index": None,
        },
        absent={"moe_layer_frequency": 2, "parallel_attn_mlp_res": False},
        harmless=(
            "moe_eval_capacity_factor", "moe_min_capacity", "moe_token_dropping", "moe_train_capacity_factor",
            "quantization", "enable_expert_tensor_parallelism", "max_sequence_length",
        ),
    ),
    "deci": Family(
        LLAMA_SIZES | {"num_key_value_heads": lambda c, s: max(deci_heads(c, s))},
        LLAMA_LAYERS,
        kinds=deci_layers,
        harmless=("naive_attention_prefill", "naive_attention_decode_batched", "naive_attention_decode_single"),
    ),
}  # fmt: skip
"""Families of single decoders that only a table tells."""
