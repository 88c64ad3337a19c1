"""Decoders with an MLP in every layer: one table per family, as differences from `symperf.models.families.bases`."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
from ..layouts import all_but_every, always, from_layer, layout, windows
from .bases import (
    GEMMA2_LAYERS,
    GEMMA2_SIZES,
    GPT2_DROPOUT,
    GPT2_LAYERS,
    GPT2_SIZES,
    LAYER_NORM,
    LLAMA_LAYERS,
    LLAMA_SIZES,
    NO_ATTENTION_BIAS,
)

if TYPE_CHECKING:
    from ..configs import Rule

OLMO2_LAYERS: dict[str, object] = LLAMA_LAYERS | {"query_key_norm": "full_width"}
GLM_SIZES: dict[str, Rule | int] = LLAMA_SIZES | {
    "num_key_value_heads": optional("num_key_value_heads", absent=2),
    "head_dim": optional("head_dim", absent=128),
}
GLM_LAYERS: dict[str, object] = LLAMA_LAYERS | {
    "qkv_bias": flag("attention_bias", True),
    "attention_output_bias": False,
}
# A nested `text_config` is saved without the values that equal the class defaults, so these count here.
GEMMA3 = Family(
    sizes=GEMMA2_SIZES
    | {
        "num_attention_heads": optional("num_attention_heads", absent=8),
        "intermediate_size": optional("intermediate_size", absent=9216),
        "vocab_size": optional("vocab_size", absent=262_208),
    },
    layers=GEMMA2_LAYERS | {"query_key_norm": "per_head"},
    window=window(4096),
    kinds=layout(windows(all_but_every(6, key="sliding_window_pattern"))),
)


def falcon_key_value_heads(config: Config, sizes: Sizes) -> int:
    """`num_kv_heads` counts only in the new architecture: falcon-7b says 71 and has one."""
    config.used |= {"num_kv_heads", "multi_query"}
    if config.flag("new_decoder_architecture", False):
        return optional("num_kv_heads", absent=heads, null=heads)(config, sizes)
    return 1 if config.flag("multi_query", True) else heads(config, sizes)


def falcon_block_norms(config: Config) -> int:
    """Two, unless attention and MLP share their one norm."""
    parallel = config.flag("parallel_attn", True)
    norms = 2 if config.flag("new_decoder_architecture", False) else 1
    if config.holds("num_ln_in_parallel_attn"):
        norms = config.integer("num_ln_in_parallel_attn")
        if norms > 2:
            config.fail("num_ln_in_parallel_attn", "1 or 2")
    return norms if parallel else 2


def mpt_key_value_heads(config: Config, sizes: Sizes) -> int:
    """By the kind of attention in `attn_config`."""
    attention = config.section("attn_config")
    if attention.flag("qk_ln", False):
        attention.fail("qk_ln", "false: norms of queries and keys are not supported yet")
    kinds = ("multihead_attention", "multiquery_attention", "grouped_query_attention")
    kind = attention.text("attn_type", kinds[0], kinds)
    if kind == "grouped_query_attention":
        return require("kv_n_heads")(attention, sizes)
    return 1 if kind == "multiquery_attention" else heads(config, sizes)


def mpt_positions(config: Config) -> str:
    """ALiBi and rotary positions overrule `learned_pos_emb`, which is true in files that have no table."""
    attention = config.section("attn_config")
    learned = config.flag("learned_pos_emb", True)
    if attention.flag("alibi", True):
        return "alibi"
    if attention.flag("rope", False):
        return "rotary"
    return "learned" if learned else "none"


def mpt_position_rows(config: Config, sizes: Sizes) -> int:
    """The rows of the learned table, where there is one."""
    return require("max_seq_len")(config, sizes) if mpt_positions(config) == "learned" else 0


def mpt_intermediate_size(config: Config, sizes: Sizes) -> int:
    """`expansion_ratio` times the hidden size."""
    return optional("expansion_ratio", absent=4)(config, sizes) * sizes["hidden_size"]


def opt_width(config: Config, sizes: Sizes) -> int:
    """The hidden size, which the embeddings share: others (opt-350m) are refused as a disagreement."""
    require("hidden_size")(config, sizes)
    return require("hidden_size", "word_embed_proj_dim")(config, sizes)


MPT_BIAS = flag("no_bias", True, yes=False, no=True)

ALTERNATE = layout(windows(lambda index, _config, _sizes: index % 2 == 0))
QWEN_KINDS = layout(windows(from_layer("max_window_layers", 28)))

DENSE: dict[str, Family] = {
    "gpt2": Family(GPT2_SIZES, GPT2_LAYERS | GPT2_DROPOUT),
    "gpt_bigcode": Family(
        GPT2_SIZES
        | {"num_key_value_heads": lambda c, s: 1 if c.flag("multi_query", True) else s["num_attention_heads"]},
        GPT2_LAYERS | GPT2_DROPOUT,
    ),
    "gptj": Family(
        GPT2_SIZES | {"position_rows": 0},
        GPT2_LAYERS
        | NO_ATTENTION_BIAS
        | {
            "positions": "rotary",
            "tied_embeddings": tie(False),
            "parallel_block": True,
            "block_norms": 1,
            "head_bias": True,
        },
    ),
    "gpt_neox": Family(
        LLAMA_SIZES | {"num_key_value_heads": heads, "head_dim": hidden_by_heads},
        GPT2_LAYERS
        | {
            "positions": "rotary",
            "tied_embeddings": tie(False),
            "parallel_block": flag("use_parallel_residual", True),
            "qkv_bias": flag("attention_bias", True),
            "attention_output_bias": flag("attention_bias", True),
        },
    ),
    "opt": Family(
        LLAMA_SIZES
        | {
            "hidden_size": opt_width,
            "num_key_value_heads": heads,
            "head_dim": hidden_by_heads,
            "intermediate_size": require("ffn_dim"),
            "position_rows": optional("max_position_embeddings", absent=None, add=2),
        },
        GPT2_LAYERS
        | {
            "qkv_bias": flag("enable_bias", True),
            "attention_output_bias": flag("enable_bias", True),
            "mlp_bias": flag("enable_bias", True),
            "activation": activating("relu"),
            "dropout": dropping("dropout", "attention_dropout", absent=0.1),
            "final_norm": lambda c: (
                c.flag("do_layer_norm_before", True) and not c.flag("_remove_final_layer_norm", False)
            ),
        },
        only={"layer_norm_elementwise_affine": True},
    ),
    "bloom": Family(
        GPT2_SIZES
        | {
            "hidden_size": require("hidden_size", "n_embed"),
            "intermediate_size": four_hidden,
            "position_rows": 0,
        },
        GPT2_LAYERS | {"positions": "alibi", "embedding_norm": True},
    ),
    "falcon": Family(
        LLAMA_SIZES
        | {
            "hidden_size": require("hidden_size", "n_embed"),
            "num_layers": require("num_hidden_layers", "n_layer"),
            "num_attention_heads": require("num_attention_heads", "n_head"),
            "num_key_value_heads": falcon_key_value_heads,
            "head_dim": hidden_by_heads,
            "intermediate_size": optional("ffn_hidden_size", absent=four_hidden, null=four_hidden),
        },
        GPT2_LAYERS
        | {
            "positions": flag("alibi", False, yes="alibi", no="rotary"),
            "parallel_block": flag("parallel_attn", True),
            "block_norms": falcon_block_norms,
            "qkv_bias": flag("bias", False),
            "attention_output_bias": flag("bias", False),
            "mlp_bias": flag("bias", False),
        },
    ),
    "mpt": Family(
        LLAMA_SIZES
        | {
            "hidden_size": require("d_model", "hidden_size"),
            "num_layers": require("n_layers", "num_hidden_layers"),
            "num_attention_heads": require("n_heads", "num_attention_heads"),
            "num_key_value_heads": mpt_key_value_heads,
            "head_dim": hidden_by_heads,
            "intermediate_size": mpt_intermediate_size,
            "position_rows": mpt_position_rows,
        },
        GPT2_LAYERS
        | {
            "positions": mpt_positions,
            "norm_bias": MPT_BIAS,
            "qkv_bias": MPT_BIAS,
            "attention_output_bias": MPT_BIAS,
            "mlp_bias": MPT_BIAS,
        },
    ),
    "llama": Family(LLAMA_SIZES, LLAMA_LAYERS | {"mlp_bias": flag("mlp_bias", False)}),
    "internlm": Family(
        LLAMA_SIZES,
        LLAMA_LAYERS | {"qkv_bias": flag("bias", True), "attention_output_bias": flag("bias", True)},
    ),
    "mistral": Family(
        LLAMA_SIZES | {"num_key_value_heads": optional("num_key_value_heads", absent=8, null=heads)},
        LLAMA_LAYERS | NO_ATTENTION_BIAS,
        window=window(4096),
        kinds=layout(windows(always)),
    ),
    "qwen2": Family(
        LLAMA_SIZES | {"num_key_value_heads": optional("num_key_value_heads", absent=32, null=heads)},
        LLAMA_LAYERS | {"qkv_bias": True, "attention_output_bias": False},
        window=window(4096, switch="use_sliding_window"),
        kinds=QWEN_KINDS,
    ),
    "qwen3": Family(
        LLAMA_SIZES
        | {
            "num_key_value_heads": optional("num_key_value_heads", absent=32, null=heads),
            "head_dim": optional("head_dim", absent=128),
        },
        LLAMA_LAYERS | {"query_key_norm": "per_head"},
        window=window(4096, switch="use_sliding_window"),
        kinds=QWEN_KINDS,
    ),
    "gemma": Family(
        GEMMA2_SIZES | {"num_key_value_heads": optional("num_key_value_heads", absent=16)},
        GEMMA2_LAYERS | {"block_norms": 2},
    ),
    "gemma2": Family(GEMMA2_SIZES, GEMMA2_LAYERS, window=window(4096), kinds=ALTERNATE, traits=("soft_capping",)),
    "gemma3_text": GEMMA3,
    "gemma3": Family(
        GEMMA3.sizes,
        GEMMA3.layers,
        GEMMA3.window,
        GEMMA3.kinds,
        only={"model_type": "gemma3_text"},
        section="text_config",
    ),
    "phi": Family(
        LLAMA_SIZES,
        GPT2_LAYERS
        | {
            "positions": "rotary",
            "tied_embeddings": tie(False),
            "parallel_block": True,
            "block_norms": 1,
            "head_bias": True,
        },
        only={"qk_layernorm": False},
    ),
    "phi3": Family(LLAMA_SIZES, LLAMA_LAYERS | NO_ATTENTION_BIAS, window=window(None), only={"attention_bias": False}),
    "olmo2": Family(LLAMA_SIZES, OLMO2_LAYERS),
    "olmo3": Family(LLAMA_SIZES, OLMO2_LAYERS, window=window(4096), kinds=layout(windows(all_but_every(4)))),
    "starcoder2": Family(
        LLAMA_SIZES | {"num_key_value_heads": optional("num_key_value_heads", absent=2, null=heads)},
        GPT2_LAYERS
        | {
            "positions": "rotary",
            "qkv_bias": flag("use_bias", True),
            "attention_output_bias": flag("use_bias", True),
            "mlp_bias": flag("use_bias", True),
        },
        window=window(None),
    ),
    "stablelm": Family(
        LLAMA_SIZES
        | {
            "num_key_value_heads": optional("num_key_value_heads", absent=32),
            "head_dim": hidden_by_heads,
        },
        LLAMA_LAYERS
        | LAYER_NORM
        | {
            "parallel_block": flag("use_parallel_residual", False),
            "block_norms": flag("use_parallel_residual", False, yes=1, no=2),
            "qkv_bias": flag("use_qkv_bias", False),
            "attention_output_bias": False,
            "query_key_norm": flag("qk_layernorm", False, yes="full_width", no="none"),
        },
    ),
    "cohere": Family(
        LLAMA_SIZES,
        LLAMA_LAYERS
        | {
            "norm": "layer_norm",
            "tied_embeddings": tie(True),
            "parallel_block": True,
            "block_norms": 1,
            "query_key_norm": flag("use_qk_norm", False, yes="full_width", no="none"),
        },
    ),
    "nemotron": Family(
        LLAMA_SIZES,
        LLAMA_LAYERS
        | LAYER_NORM
        | {"gated_mlp": False, "mlp_bias": flag("mlp_bias", False), "activation": activating("relu2")},
    ),
    "glm": Family(GLM_SIZES, GLM_LAYERS),
    "glm4": Family(GLM_SIZES, GLM_LAYERS | {"block_norms": 4}),
}
