"""What the families of decoders have in common: a Llama and a GPT-2, from which every table is told as a difference.

Defaults for absent keys are those of the config classes of transformers 4.57.1 (5.24 for newer families), for the
keys that published files leave out; biases and norms are those of its modules, and of llm-foundry where transformers
ignores a key of MPT.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..configs import activating, dropping, flag, four_hidden, heads, hidden_by_heads, optional, require, tie

if TYPE_CHECKING:
    from ..configs import Rule

LLAMA_SIZES: dict[str, Rule | int] = {
    "hidden_size": require("hidden_size"),
    "num_layers": require("num_hidden_layers"),
    "num_attention_heads": require("num_attention_heads"),
    "num_key_value_heads": optional("num_key_value_heads", absent=heads, null=heads),
    "head_dim": optional("head_dim", absent=hidden_by_heads, null=hidden_by_heads),
    "intermediate_size": require("intermediate_size"),
    "vocab_size": require("vocab_size"),
    "position_rows": 0,
}
LLAMA_LAYERS: dict[str, object] = {
    "gated_mlp": True,
    "norm": "rms_norm",
    "positions": "rotary",
    "tied_embeddings": tie(False),
    "parallel_block": False,
    "block_norms": 2,
    "norm_bias": False,
    "qkv_bias": flag("attention_bias", False),
    "attention_output_bias": flag("attention_bias", False),
    "mlp_bias": False,
    "head_bias": False,
    "query_key_norm": "none",
    "embedding_norm": False,
    "final_norm": True,
    "activation": activating("silu"),
    "dropout": dropping("attention_dropout", "hidden_dropout", "residual_dropout", "resid_pdrop", "attn_pdrop"),
}


def grouped(absent: int) -> dict[str, Rule | int]:
    """Heads of keys and values whose number the class knows where the file does not say it; null is all heads."""
    return {"num_key_value_heads": optional("num_key_value_heads", absent=absent, null=heads)}


NO_ATTENTION_BIAS: dict[str, object] = {"qkv_bias": False, "attention_output_bias": False}
LAYER_NORM: dict[str, object] = {"norm": "layer_norm", "norm_bias": True}

GPT2_SIZES: dict[str, Rule | int] = LLAMA_SIZES | {
    "hidden_size": require("n_embd", "hidden_size"),
    "num_layers": require("n_layer", "num_hidden_layers"),
    "num_attention_heads": require("n_head", "num_attention_heads"),
    "num_key_value_heads": heads,
    "head_dim": hidden_by_heads,
    "intermediate_size": optional("n_inner", absent=four_hidden, null=four_hidden),
    "position_rows": require("n_positions", "max_position_embeddings"),
}
GPT2_LAYERS: dict[str, object] = (
    LLAMA_LAYERS
    | LAYER_NORM
    | {
        "gated_mlp": False,
        "positions": "learned",
        "tied_embeddings": tie(True),
        "qkv_bias": True,
        "attention_output_bias": True,
        "mlp_bias": True,
        "activation": activating("gelu"),
    }
)
GPT2_DROPOUT: dict[str, object] = {"dropout": dropping("resid_pdrop", "attn_pdrop", absent=0.1)}
GEMMA2_SIZES: dict[str, Rule | int] = LLAMA_SIZES | {
    "num_key_value_heads": optional("num_key_value_heads", absent=4),
    "head_dim": optional("head_dim", absent=256),
}
GEMMA2_LAYERS: dict[str, object] = LLAMA_LAYERS | {
    "tied_embeddings": tie(True),
    "block_norms": 4,
    "activation": activating("gelu"),
}
