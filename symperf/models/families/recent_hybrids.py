"""Hybrids with mixers side by side, or with recurrences of other kinds: one table per family.

Defaults for absent keys are those of the config classes of transformers 5.24.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...common.errors import InputError
from ..architecture import LayerKind
from ..configs import (
    Config,
    Family,
    Sizes,
    activating,
    flag,
    four_hidden,
    heads,
    hidden_by_heads,
    optional,
    require,
    tie,
    window,
)
from ..layouts import all_but_every, experts, in_runs, layer_range, layout, windows
from .bases import LLAMA_LAYERS, LLAMA_SIZES, NO_ATTENTION_BIAS, grouped
from .experts import routed_sizes
from .recurrent import DELTA_RULE_SIZES, mamba2_sizes

if TYPE_CHECKING:
    from ..architecture import Mixer
    from ..configs import Rule, Runs
    from ..layouts import Chosen, MixerRule


def hidden(_: Config, sizes: Sizes) -> int:
    """As wide as the stream."""
    return sizes["hidden_size"]


# Falcon-H1: attention and Mamba-2 beside it in every layer


def side_by_side(_: Config, sizes: Sizes, __: bool) -> Runs:
    """Every layer has attention, Mamba-2 beside it, and an MLP."""
    return [(LayerKind("attention", "dense", beside=("ssm",)), sizes["num_layers"])]


def channels_of_heads(config: Config, sizes: Sizes) -> int:
    """Channels of a Mamba-2 head: `mamba_d_ssm` of all heads, or where it is null an expansion of the hidden size."""
    inner = optional("mamba_d_ssm", absent=1024, null=-1)(config, sizes)
    if inner < 0:
        inner = optional("mamba_expand", absent=2)(config, sizes) * sizes["hidden_size"]
    number = sizes["ssm_num_heads"]
    config.used.add("mamba_d_head")
    automatic = config.data.get("mamba_d_head", "auto") == "auto"
    width = inner // number if automatic else config.integer("mamba_d_head")
    if width * number != inner:
        raise InputError(
            f"{config.where}: mamba_n_heads {number} heads of mamba_d_head {width} channels are not the {inner} "
            "channels of mamba_d_ssm (or, where that is null, of mamba_expand)"
        )
    return width


MULTIPLIERS = (
    *("attention_in_multiplier", "attention_out_multiplier", "key_multiplier", "lm_head_multiplier"),
    *("mlp_multipliers", "ssm_in_multiplier", "ssm_multipliers", "ssm_out_multiplier"),
)
"""Numbers that scale what is there."""

# OLMo-hybrid: gated delta rules, and attention without positions


def positions_of(config: Config) -> object:
    """Rotary, unless the file has no angle: null, as released files, where the class would take its default."""
    parameters: Any = config.data.get("rope_parameters", {})
    config.used.add("rope_parameters")
    return "rotary" if isinstance(parameters, dict) and parameters.get("rope_theta", 0) is not None else "none"


def key_width(_: Config, sizes: Sizes) -> int:
    """Three quarters of the hidden size over the key heads."""
    return 3 * sizes["hidden_size"] // (4 * sizes["linear_num_key_heads"])


def all_but_every_fourth(index: int, config: Config, sizes: Sizes) -> bool:
    """Linear attention but for the last layer of four, or of fewer."""
    count = sizes["num_layers"]
    return all_but_every(4)(index, config, sizes) and not (count < 4 and index == count - 1)


# MiniMax-01: lightning attention, and softmax attention in some layers

LIGHTNING_SIZES: dict[str, Rule | int] = LLAMA_SIZES | grouped(8) | {
    "linear_num_value_heads": heads,
    "linear_value_head_dim": lambda _, sizes: sizes["head_dim"],
    "ssm_chunk_size": optional("block_size", absent=256),
}  # fmt: skip
FACTORS = tuple(
    f"{part}_{factor}_factor" for part in ("full_attn", "linear_attn", "mlp") for factor in ("alpha", "beta")
)
LAYER_NORM_FACTORS = tuple(
    f"layernorm_{part}_{factor}"
    for part in ("full_attention", "linear_attention", "mlp")
    for factor in ("alpha", "beta")
)
"""Weights of the two sides of residual additions."""


def lightning(slides: Chosen) -> MixerRule:
    """Lightning attention where `layer_types` says linear attention, or by a pattern where it is absent."""

    def rule(config: Config, sizes: Sizes, windowed: bool) -> list[Mixer] | Mixer:
        found = windows(slides, other="linear_attention")(config, sizes, windowed)
        return ["lightning_attention" if mixer == "linear_attention" else mixer for mixer in found]  # type: ignore[misc]

    return rule


def listed_lightning(config: Config, sizes: Sizes, _: bool) -> list[Mixer]:
    """By the list of the original files: 1 is softmax attention, 0 lightning attention."""
    key = "attn_type_list"
    listed = config.numbers(key, largest=1)
    if listed is None:
        raise InputError(f"{config.where}: {key} is missing, expected 0 or 1 for every layer")
    if len(listed) != len(layer_range(config, sizes)):
        config.fail(key, f"one number for each of {sizes['num_layers']} layers")
    return ["attention" if each else "lightning_attention" for each in listed]


MINIMAX_SIZES = LIGHTNING_SIZES | routed_sizes("num_local_experts", width="intermediate_size")
MINIMAX_ORIGINAL = Family(
    MINIMAX_SIZES,
    LLAMA_LAYERS | NO_ATTENTION_BIAS,
    kinds=layout(listed_lightning, experts),
    only={"shared_intermediate_size": 0, "sliding_window": None},
    harmless=(*LAYER_NORM_FACTORS, "postnorm", "shared_moe_mode", "rotary_dim", "max_model_len"),
)

# RecurrentGemma: gated linear recurrent units and local attention

BLOCKS: dict[str, Mixer] = {"recurrent": "gated_lru", "attention": "local_attention"}


def repeated_blocks(config: Config, sizes: Sizes, _: bool) -> list[Mixer]:
    """The blocks of `block_types`, again and again."""
    key = "block_types"
    words = config.data[key] if config.holds(key) else ["recurrent", "recurrent", "attention"]
    if not isinstance(words, list) or not words or any(word not in BLOCKS for word in map(str, words)):
        config.fail(key, f"a list of {', '.join(BLOCKS)}")
    return [BLOCKS[words[i % len(words)]] for i in layer_range(config, sizes)]


def half_width(config: Config, sizes: Sizes) -> int:
    """Half of what the file says: the class splits it."""
    return require("intermediate_size")(config, sizes) // 2


# Zamba2: Mamba-2, and before some layers a use of one of a few shared blocks

USES = [*range(6, 43, 6), 47, 51]


def zamba_words(config: Config) -> list[bool]:
    """Whether a use of a shared block stands before each Mamba-2 layer."""
    number = optional("num_hidden_layers", absent=54)(config, {})
    words = config.words("layers_block_type", number)
    if words is None:
        if number != 54:
            raise InputError(
                f"{config.where}: layers_block_type is missing, expected a word for each of {number} layers"
            )
        return [layer in USES for layer in range(number)]
    if any(word not in ("hybrid", "mamba", "linear_attention") for word in words):
        config.fail("layers_block_type", "only hybrid, mamba and linear_attention")
    return [word == "hybrid" for word in words]


def zamba_kinds(config: Config, _: Sizes, __: bool) -> Runs:
    """A use is a layer of its own here: attention and MLP, without an addition to the stream."""
    adapted = ("adapted_attention",) if config.flag("use_shared_attention_adapter", False) else ()
    use = LayerKind("attention", "dense", traits=("shared_block", *adapted))
    each = (kinds for shared in zamba_words(config) for kinds in ([use] if shared else []) + [LayerKind("ssm", "none")])
    return in_runs(each)


def expanded_by_heads(config: Config, sizes: Sizes) -> int:
    """The expanded hidden size over the heads: the class computes it, whatever the file says."""
    return optional("mamba_expand", absent=2)(config, sizes) * sizes["hidden_size"] // sizes["ssm_num_heads"]


RECENT_HYBRIDS: dict[str, Family] = {
    "falcon_h1": Family(
        LLAMA_SIZES
        | grouped(8)
        | mamba2_sizes(
            "mamba_n_heads", "mamba_d_head", "mamba_d_state", "mamba_n_groups", "mamba_d_conv", "mamba_chunk_size",
            (128, 256, 1, 256),
        )
        | {"ssm_head_dim": channels_of_heads},
        LLAMA_LAYERS
        | {
            "mlp_bias": flag("mlp_bias", False),
            "ssm_convolution_bias": flag("mamba_conv_bias", True),
            "ssm_gated_norm": flag("mamba_rms_norm", False),
        },
        kinds=side_by_side,
        only={"projectors_bias": False, "mamba_proj_bias": False, "mamba_use_mlp": True, "attn_layer_indices": None},
        harmless=(*MULTIPLIERS, "mamba_norm_before_gate", "mlp_expansion_factor"),
    ),
    "olmo_hybrid": Family(
        LLAMA_SIZES
        | DELTA_RULE_SIZES
        | {
            "linear_num_key_heads": optional("linear_num_key_heads", absent=heads, null=heads),
            "linear_num_value_heads": optional("linear_num_value_heads", absent=heads, null=heads),
            "linear_key_head_dim": optional("linear_key_head_dim", absent=key_width, null=key_width),
            "linear_value_head_dim": optional(
                "linear_value_head_dim",
                absent=lambda _, sizes: 2 * sizes["linear_key_head_dim"],
                null=lambda _, sizes: 2 * sizes["linear_key_head_dim"],
            ),
        },
        LLAMA_LAYERS | {"query_key_norm": "full_width", "positions": positions_of},
        kinds=layout(windows(all_but_every_fourth, other="linear_attention")),
        harmless=("linear_a_log_max", "linear_a_log_min", "linear_allow_neg_eigval", "linear_dt_init_floor",
                  "linear_dt_max", "linear_dt_min"),
    ),
    "minimax": Family(
        MINIMAX_SIZES,
        LLAMA_LAYERS | NO_ATTENTION_BIAS,
        kinds=layout(lightning(lambda index, _, __: index % 2 == 1), experts),
        only={"sliding_window": None},
        harmless=FACTORS,
    ),
    "minimax_text_01": MINIMAX_ORIGINAL,
    "minimax_m1": MINIMAX_ORIGINAL,
    "zamba2": Family(
        LLAMA_SIZES
        | mamba2_sizes("n_mamba_heads", "mamba_headdim", "mamba_d_state", "mamba_ngroups", "mamba_d_conv", "chunk_size",
                       (8, 64, 1, 256))
        | {
            "num_layers": lambda config, _: len(zamba_words(config)) + sum(zamba_words(config)),
            "num_key_value_heads": optional("num_key_value_heads", absent=heads, null=heads),
            "head_dim": lambda _, sizes: 2 * sizes["hidden_size"] // sizes["num_attention_heads"],
            "intermediate_size": optional("intermediate_size", absent=four_hidden, null=four_hidden),
            "ssm_head_dim": expanded_by_heads,
            "num_shared_blocks": lambda config, sizes: min(
                optional("num_mem_blocks", absent=1)(config, sizes), sum(zamba_words(config))
            ),
            "adapter_rank": optional("adapter_rank", absent=128),
        },
        LLAMA_LAYERS
        | NO_ATTENTION_BIAS
        | {
            "tied_embeddings": tie(True),
            "positions": flag("use_mem_rope", False, yes="rotary", no="none"),
            "activation": activating("gelu"),
            "ssm_convolution_bias": True,
        },
        kinds=zamba_kinds,
        only={"add_bias_linear": False},
        harmless=("attention_head_dim", "attention_hidden_size", "head_dim", "hybrid_layer_ids", "kv_channels",
                  "mamba_headdim", "num_query_groups", "use_conv_bias", "use_long_context", "use_mem_eff_path"),
    ),
    "recurrent_gemma": Family(
        LLAMA_SIZES
        | {
            "num_key_value_heads": optional("num_key_value_heads", absent=heads, null=heads),
            # The class computes it, whatever the file says.
            "head_dim": hidden_by_heads,
            "intermediate_size": half_width,
            "lru_width": optional("lru_width", absent=hidden, null=hidden),
            "conv_kernel": optional("conv1d_width", absent=4),
        },
        LLAMA_LAYERS
        | {
            "tied_embeddings": tie(True),
            "attention_output_bias": True,
            "mlp_bias": True,
            "activation": "gelu",
            "ssm_projection_bias": True,
            "ssm_convolution_bias": True,
        },
        window=window(2048, key="attention_window_size"),
        kinds=layout(repeated_blocks),
        traits=("output_soft_capping",),
        harmless=("head_dim", "final_w_init_variance_scale", "w_init_variance_scale"),
    ),
}  # fmt: skip
"""Families with mixers side by side, lightning attention, or gated linear recurrent units."""
