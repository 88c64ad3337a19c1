"""Hybrids of 2025 and 2026 that are made of known mixers: one table per family.

Defaults for absent keys are those of the config classes of transformers 5.24.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..configs import LARGEST, Config, Family, Sizes, flag, heads, optional
from ..layouts import all_but_every, always, dense, experts, experts_where, from_layer, layout, windows
from .bases import LLAMA_LAYERS, LLAMA_SIZES, NO_ATTENTION_BIAS
from .experts import routed_sizes
from .recurrent import DELTA_RULE_SIZES, mamba2_sizes

if TYPE_CHECKING:
    from ..architecture import FeedForward, Mixer
    from ..configs import Rule

QWEN35_SIZES: dict[str, Rule | int] = LLAMA_SIZES | DELTA_RULE_SIZES | {
    "head_dim": optional("head_dim", absent=256),
    "num_multi_token_layers": optional("mtp_num_hidden_layers", absent=0),
}  # fmt: skip
QWEN35_LAYERS: dict[str, object] = LLAMA_LAYERS | {
    "query_key_norm": "per_head",
    "attention_gate": flag("attn_output_gate", True),
}
THREE_OF_FOUR = windows(all_but_every(4, key="full_attention_interval"), other="linear_attention")
QWEN35_HARMLESS = ("full_attention_interval", "mtp_use_dedicated_embeddings", "mlp_only_layers", "output_gate_type")


def granite_ffns(config: Config, sizes: Sizes) -> FeedForward:
    """Experts where there are any; else the shared MLP alone."""
    return "experts" if sizes["num_experts"] else dense(config, sizes)


def granite_mixers(config: Config, sizes: Sizes, windowed: bool) -> list[Mixer] | Mixer:
    """Mamba-2 in all layers but those named attention; files written by transformers 5 call it linear attention."""
    found = windows(always, other="ssm")(config, sizes, windowed)
    return found if isinstance(found, str) else ["ssm" if mixer == "linear_attention" else mixer for mixer in found]


def granite_experts(config: Config, _: Sizes) -> int:
    """Routed experts, of which there may be none."""
    return config.integer_or("num_local_experts", 8, smallest=0)


def granite_width(config: Config, sizes: Sizes) -> int:
    """The MLP's inner width: of the shared MLP where there are no experts."""
    shared = optional("shared_intermediate_size", absent=1024)(config, sizes)
    return optional("intermediate_size", absent=11008)(config, sizes) if granite_experts(config, sizes) else shared


def of_experts(key: str, absent: int) -> Rule:
    """A size of routed experts, 0 where there are none."""
    return lambda config, sizes: optional(key, absent=absent)(config, sizes) if granite_experts(config, sizes) else 0


def either_tie(config: Config) -> bool:
    """Tied embeddings by either of two names."""
    config.used.add("tie_word_embeddings")
    return config.flag("tie_embedding" if "tie_embedding" in config.data else "tie_word_embeddings", True)


LFM2_SIZES: dict[str, Rule | int] = LLAMA_SIZES | {
    "num_key_value_heads": optional("num_key_value_heads", absent=8),
    "conv_kernel": optional("conv_L_cache", absent=3),
}
LFM2_LAYERS: dict[str, object] = LLAMA_LAYERS | NO_ATTENTION_BIAS | {
    "tied_embeddings": either_tie,
    "query_key_norm": "per_head",
    "ssm_projection_bias": flag("conv_bias", False),
    "ssm_convolution_bias": flag("conv_bias", False),
}  # fmt: skip


def lfm2_width(config: Config, sizes: Sizes) -> int:
    """The MLP's inner width: two thirds of what the file says, times a factor, in whole multiples."""
    width = optional("block_ff_dim", absent=optional("intermediate_size", absent=12288))(config, sizes)
    if not config.flag("block_auto_adjust_ff_dim", True):
        return width
    config.used.add("block_ffn_dim_multiplier")
    factor = config.data.get("block_ffn_dim_multiplier", 1.0)
    if isinstance(factor, bool) or not isinstance(factor, int | float) or not 0 < factor <= LARGEST:
        config.fail("block_ffn_dim_multiplier", "a positive number")
    multiple = optional("block_multiple_of", absent=256)(config, sizes)
    return -(-int(factor * int(2 * width / 3)) // multiple) * multiple


def lfm2_mixers(config: Config, sizes: Sizes, windowed: bool) -> list[Mixer] | Mixer:
    """Attention in the layers that are listed (all, where none are), short convolutions in the rest."""
    listed = config.numbers("full_attn_idxs", largest=sizes["num_layers"])
    chosen = None if listed is None else set(listed)
    return windows(lambda i, _c, _s: chosen is not None and i not in chosen, other="short_convolution")(
        config, sizes, windowed
    )


HYBRIDS: dict[str, Family] = {
    "lfm2": Family(LFM2_SIZES | {"intermediate_size": lfm2_width}, LFM2_LAYERS, kinds=layout(lfm2_mixers)),
    "lfm2_moe": Family(
        LFM2_SIZES | routed_sizes("num_experts", width="moe_intermediate_size"),
        LFM2_LAYERS,
        kinds=layout(lfm2_mixers, experts_where(from_layer("num_dense_layers", 2))),
        harmless=("use_expert_bias",),
    ),
    "qwen3_5_text": Family(
        QWEN35_SIZES | {"num_key_value_heads": optional("num_key_value_heads", absent=4, null=heads)},
        QWEN35_LAYERS,
        kinds=layout(THREE_OF_FOUR),
        harmless=QWEN35_HARMLESS,
    ),
    "qwen3_5_moe_text": Family(
        QWEN35_SIZES
        | {
            "num_key_value_heads": optional("num_key_value_heads", absent=2, null=heads),
            "intermediate_size": optional("intermediate_size", absent=0),
        }
        | routed_sizes("num_experts", width="moe_intermediate_size")
        | {"shared_expert_intermediate_size": optional("shared_expert_intermediate_size", absent=512)},
        QWEN35_LAYERS | {"shared_expert_gate": True},
        kinds=layout(THREE_OF_FOUR, experts),
        harmless=QWEN35_HARMLESS,
    ),
    "granitemoehybrid": Family(
        LLAMA_SIZES
        | mamba2_sizes(
            "mamba_n_heads", "mamba_d_head", "mamba_d_state", "mamba_n_groups", "mamba_d_conv", "mamba_chunk_size",
            (128, 256, 1, 256),
        )
        | {
            "num_experts": granite_experts,
            "num_experts_per_token": of_experts("num_experts_per_tok", 2),
            "expert_intermediate_size": of_experts("intermediate_size", 11008),
            "shared_expert_intermediate_size": of_experts("shared_intermediate_size", 1024),
            "intermediate_size": granite_width,
        },
        LLAMA_LAYERS
        | {
            "ssm_projection_bias": flag("mamba_proj_bias", False),
            "ssm_convolution_bias": flag("mamba_conv_bias", True),
        },
        kinds=layout(granite_mixers, granite_ffns),
        harmless=("normalization_function", "shared_intermediate_size", "num_experts_per_tok"),
    ),
}  # fmt: skip
"""Families with recurrent layers among attention layers."""
