"""Decoders of 2025 and 2026 with an MLP in every layer: one table per family, as differences from `bases`.

Defaults for absent keys are those of the config classes of transformers 5.24.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..architecture import LayerKind
from ..configs import Family, activating, dropping, flag, heads, hidden_by_heads, optional, tie, window
from ..layouts import all_but_every, constant_mixer, layout, windows
from .bases import LLAMA_LAYERS, LLAMA_SIZES, NO_ATTENTION_BIAS
from .dense import QWEN_KINDS
from .experts import LATENT_SIZES, key_width
from .shapes import nas_kinds, nas_largest

if TYPE_CHECKING:
    from ..configs import Rule

PER_HEAD: dict[str, object] = {"query_key_norm": "per_head"}


def biases(key: str, absent: bool = False) -> dict[str, object]:
    """One key that gives biases to attention and to the MLP."""
    return dict.fromkeys(("qkv_bias", "attention_output_bias", "mlp_bias"), flag(key, absent))


def with_defaults(**absent: int) -> dict[str, Rule | int]:
    """Sizes of a Llama, some of which the file may leave out."""
    return {name: optional(name, absent=value) for name, value in absent.items()}


RECENT: dict[str, Family] = {
    "seed_oss": Family(
        LLAMA_SIZES | with_defaults(num_key_value_heads=8, head_dim=128),
        LLAMA_LAYERS
        | {
            "qkv_bias": flag("attention_bias", True),
            "attention_output_bias": flag("attention_out_bias", False),
            "mlp_bias": flag("mlp_bias", False),
            "dropout": dropping("attention_dropout", "residual_dropout", absent=0.1),
        },
    ),
    "smollm3": Family(
        LLAMA_SIZES | with_defaults(num_key_value_heads=4),
        LLAMA_LAYERS | {"tied_embeddings": tie(True), "mlp_bias": flag("mlp_bias", False)},
        window=window(None, switch="use_sliding_window"),
        kinds=layout(windows(lambda i, c, _: (i + 1) % (c.data.get("no_rope_layer_interval") or 4) != 0)),
        # Layers without rotary positions have the same products.
        harmless=("no_rope_layers", "no_rope_layer_interval"),
    ),
    "apertus": Family(
        LLAMA_SIZES,
        LLAMA_LAYERS | PER_HEAD | {"gated_mlp": False, "activation": activating("xielu"), "activation_parameters": 2},
    ),
    "exaone4": Family(
        LLAMA_SIZES | with_defaults(num_key_value_heads=32),
        LLAMA_LAYERS | NO_ATTENTION_BIAS | PER_HEAD,
        window=window(4096),
        kinds=layout(windows(all_but_every(4))),
    ),
    "ministral3": Family(
        LLAMA_SIZES | with_defaults(num_key_value_heads=8, head_dim=128),
        LLAMA_LAYERS | NO_ATTENTION_BIAS,
        window=window(None),
    ),
    "ministral": Family(
        LLAMA_SIZES | {"num_key_value_heads": optional("num_key_value_heads", absent=8, null=heads)},
        LLAMA_LAYERS | NO_ATTENTION_BIAS,
        window=window(4096),
        kinds=layout(windows(all_but_every(1))),
    ),
    "hunyuan_v1_dense": Family(
        LLAMA_SIZES | {"head_dim": optional("head_dim", "attention_head_dim", absent=hidden_by_heads)},
        LLAMA_LAYERS | PER_HEAD,
        only={"use_qk_norm": True, "use_cla": False},
    ),
    "ernie4_5": Family(
        LLAMA_SIZES | {"num_key_value_heads": optional("num_key_value_heads", absent=2, null=heads)}
        | {"head_dim": optional("head_dim", absent=128, null=hidden_by_heads)},
        LLAMA_LAYERS | biases("use_bias") | {"tied_embeddings": tie(True), "head_bias": flag("use_bias", False)},
    ),
    "granite": Family(LLAMA_SIZES, LLAMA_LAYERS | {"mlp_bias": flag("mlp_bias", False)}),
    "diffllama": Family(
        LLAMA_SIZES,
        LLAMA_LAYERS,
        kinds=lambda _c, s, _w: [(LayerKind("attention", "dense", traits=("differential",)), s["num_layers"])],
        harmless=("lambda_std_dev",),
    ),
    "arcee": Family(
        LLAMA_SIZES,
        LLAMA_LAYERS
        | {"gated_mlp": False, "mlp_bias": flag("mlp_bias", False), "activation": activating("relu2")},
    ),
    "olmo": Family(LLAMA_SIZES, LLAMA_LAYERS | {"norm_parameters": False}),
    "cohere2": Family(
        LLAMA_SIZES,
        LLAMA_LAYERS | {"norm": "layer_norm", "tied_embeddings": tie(True), "parallel_block": True, "block_norms": 1},
        window=window(4096),
        kinds=layout(windows(all_but_every(4))),
    ),
    "mimo": Family(
        LLAMA_SIZES
        | {"num_key_value_heads": optional("num_key_value_heads", absent=32, null=heads)}
        | {"num_multi_token_layers": optional("num_nextn_predict_layers", absent=0)},
        LLAMA_LAYERS | {"qkv_bias": flag("attention_bias", True), "attention_output_bias": False},
        window=window(4096, switch="use_sliding_window"),
        kinds=QWEN_KINDS,
        only={"use_mrope": False},
    ),
    "minicpm3": Family(
        LLAMA_SIZES
        | LATENT_SIZES
        | with_defaults(q_lora_rank=768, kv_lora_rank=256, qk_nope_head_dim=64, qk_rope_head_dim=32)
        | {
            "v_head_dim": optional("v_head_dim", absent=lambda _, s: s["hidden_size"] // s["num_attention_heads"]),
            "num_key_value_heads": heads,
            "head_dim": key_width(64, 32),
        },
        LLAMA_LAYERS | {"tied_embeddings": tie(True), "mlp_bias": flag("mlp_bias", False)},
        kinds=layout(constant_mixer("latent_attention")),
        harmless=("num_key_value_heads", "head_dim", "qk_head_dim"),
    ),
    "nemotron-nas": Family(
        LLAMA_SIZES
        | {
            "num_key_value_heads": nas_largest("num_key_value_heads"),
            "intermediate_size": nas_largest("intermediate_size"),
        },
        LLAMA_LAYERS | {"mlp_bias": flag("mlp_bias", False)},
        kinds=nas_kinds,
        traits=("block_configs",),
    ),
}  # fmt: skip
"""Families with an MLP in every layer."""
