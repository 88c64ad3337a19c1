"""Models with recurrent layers, alone or among attention layers: one table per family."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...common.errors import InputError
from ..architecture import LayerKind
from ..configs import Config, Family, Sizes, activating, flag, heads, optional, require, tie
from ..layouts import all_but_every, constant_mixer, experts_where, in_runs, layer_range, layout, nothing, windows
from .bases import LLAMA_LAYERS, LLAMA_SIZES, NO_ATTENTION_BIAS, grouped
from .experts import QWEN_MOE_SIZES, sparse_step, whole_or_none

if TYPE_CHECKING:
    from ..architecture import FeedForward, Mixer
    from ..configs import Rule, Runs
    from ..layouts import Chosen

NO_ATTENTION: dict[str, Rule | int] = {
    "num_attention_heads": 0,
    "num_key_value_heads": 0,
    "head_dim": 0,
    "intermediate_size": 0,
}
PURE_LAYERS: dict[str, object] = (
    LLAMA_LAYERS
    | NO_ATTENTION_BIAS
    | {
        "positions": "none",
        "ssm_projection_bias": flag("use_bias", False),
        "ssm_convolution_bias": flag("use_conv_bias", True),
        "wide_stream": flag("residual_in_fp32", True),
    }
)


def inner_width(key: str, absent: int) -> Rule:
    """Channels of a state-space layer: an expansion of the hidden size."""

    def rule(config: Config, sizes: Sizes) -> int:
        return optional(key, absent=absent)(config, sizes) * sizes["hidden_size"]

    return rule


def time_step_rank(key: str) -> Rule:
    """Width of the time step's projection: `auto` is a sixteenth of the hidden size, rounded up."""

    def rule(config: Config, sizes: Sizes) -> int:
        config.used.add(key)
        if config.data.get(key, "auto") == "auto":
            return -(-sizes["hidden_size"] // 16)
        return config.integer(key)

    return rule


def mamba2_sizes(
    heads_key: str, width_key: str, state: str, groups: str, kernel: str, chunk: str, absent: tuple[int, ...]
) -> dict[str, Rule | int]:
    """Sizes of a Mamba-2 layer by the keys that a family uses, and their class defaults."""

    def width(config: Config, sizes: Sizes) -> int:
        config.used.add(width_key)
        if config.data.get(width_key, "auto") == "auto":
            return max(1, sizes["hidden_size"] * 2 // sizes["ssm_num_heads"])
        return config.integer(width_key)

    return {
        "ssm_num_heads": optional(heads_key, absent=absent[0]),
        "ssm_head_dim": width,
        "ssm_state_size": optional(state, absent=absent[1]),
        "ssm_groups": optional(groups, absent=absent[2]),
        "conv_kernel": optional(kernel, absent=4),
        "ssm_chunk_size": optional(chunk, absent=absent[3]),
    }


def mamba2_kinds(config: Config, sizes: Sizes, _: bool) -> Runs:
    """Only Mamba-2; its heads make up the expanded width."""
    if config.holds("expand"):
        expanded = config.integer("expand") * sizes["hidden_size"]
        if expanded != sizes["ssm_num_heads"] * sizes["ssm_head_dim"]:
            raise InputError(
                f"{config.where}: {sizes['ssm_num_heads']} heads of {sizes['ssm_head_dim']} are not the expanded "
                f"width {expanded} of the hidden_size {sizes['hidden_size']}"
            )
    return [(LayerKind("ssm", "none"), sizes["num_layers"])]


def every(period: str, offset: str, absent: tuple[int, int]) -> Chosen:
    """Layers at an offset of every period (Jamba)."""

    def chosen(index: int, config: Config, _: Sizes) -> bool:
        length = config.integer_or(period, absent[0])
        start = config.integer_or(offset, absent[1], smallest=0)
        return index % length == start

    return chosen


def jamba_experts(config: Config, sizes: Sizes) -> list[FeedForward] | FeedForward:
    """Experts in one layer of a period, if there are several: one expert is an MLP, and has no router."""
    period, offset = "expert_layer_period", "expert_layer_offset"
    length = optional(period, absent=2)(config, sizes)
    if (config.integer(offset, smallest=0) if config.holds(offset) else 1) >= length:
        raise InputError(
            f"{config.where}: {offset} is not below {period} {length}, expected an expert layer in a period"
        )
    return experts_where(every(period, offset, (2, 1)))(config, sizes) if sizes["num_experts"] else "dense"


def if_several(rule: Rule) -> Rule:
    """A size of routed experts, 0 where there is one only."""
    return lambda config, sizes: rule(config, sizes) if jamba_count(config, sizes) > 1 else 0


def jamba_count(config: Config, sizes: Sizes) -> int:
    """Experts of a layer that has them."""
    return optional("num_experts", "num_local_experts", absent=16)(config, sizes)


JAMBA_EXPERTS: dict[str, Rule | int] = {
    "num_experts": if_several(jamba_count),
    "num_experts_per_token": if_several(optional("num_experts_per_tok", absent=2)),
    "expert_intermediate_size": if_several(require("intermediate_size")),
}


def jamba_mixers(config: Config, sizes: Sizes, _: bool) -> list[Mixer]:
    """Attention in one layer of a period, Mamba-1 in the rest."""
    chosen = every("attn_layer_period", "attn_layer_offset", (8, 4))
    return ["attention" if chosen(i, config, sizes) else "ssm1" for i in layer_range(config, sizes)]


def bamba_mixers(config: Config, sizes: Sizes, _: bool) -> list[Mixer]:
    """Attention in the layers that are listed, Mamba-2 in the rest."""
    listed = set(config.numbers("attn_layer_indices", largest=sizes["num_layers"]) or ())
    return ["attention" if i in listed else "ssm" for i in layer_range(config, sizes)]


PATTERN: dict[str, tuple[Mixer, FeedForward]] = {
    "M": ("ssm", "none"),
    "-": ("none", "dense"),
    "*": ("attention", "none"),
    "E": ("none", "experts"),
}
"""Letters of Nemotron-H's pattern: every layer is a mixer or an MLP alone."""


WORDS = {"linear_attention": "M", "mamba": "M", "mlp": "-", "full_attention": "*", "attention": "*", "moe": "E"}
"""The same in the words that transformers 5 writes."""


def nemotron_letters(config: Config) -> tuple[str, str]:
    """The key that has the layers, and a letter for every layer."""
    key, words = "hybrid_override_pattern", "layers_block_type"
    if config.holds(key):
        text = config.data[key]
        if not isinstance(text, str) or not text or set(text) - set(PATTERN):
            config.fail(key, f"letters of {' '.join(PATTERN)}")
        return key, str(text)
    if not config.holds(words):
        raise InputError(f"{config.where}: {key} (or {words}) is missing, expected a letter for every layer")
    value = config.data[words]
    if not isinstance(value, list) or not value or any(word not in WORDS for word in map(str, value)):
        config.fail(words, f"a list of {', '.join(WORDS)}")
    return words, "".join(WORDS[word] for word in value)


def nemotron_layers(config: Config, sizes: Sizes) -> int:
    """As many layers as there are letters or words; files of transformers 5 do not say the number."""
    return optional("num_hidden_layers", absent=lambda _config, _sizes: len(nemotron_letters(config)[1]))(config, sizes)


def nemotron_experts(config: Config, sizes: Sizes) -> int:
    """The routed experts of a pattern that has layers of them."""
    number = whole_or_none("n_routed_experts")(config, sizes)
    return number if "E" in nemotron_letters(config)[1] else 0


def nemotron_kinds(config: Config, sizes: Sizes, _: bool) -> Runs:
    """By the letters of `hybrid_override_pattern`, or the words of `layers_block_type`."""
    key, text = nemotron_letters(config)
    if len(text) != sizes["num_layers"]:
        raise InputError(f"{config.where}: {key} has {len(text)} entries for {sizes['num_layers']} layers")
    if "E" in text and not sizes["num_experts"]:
        config.fail(key, "no layer of experts, as n_routed_experts is not given")
    return in_runs(LayerKind(*PATTERN[letter]) for letter in text)


def nemotron_shared(config: Config, sizes: Sizes) -> int:
    """Width of the shared expert, if there are experts."""
    width = whole_or_none("moe_shared_expert_intermediate_size", absent=7688)(config, sizes)
    number = config.integer_or("n_shared_experts", 1, smallest=0)
    return width * number if sizes["num_experts"] else 0


def nemotron_modules(config: Config, sizes: Sizes) -> int:
    """Modules for multi-token prediction, each a layer of attention and one of experts."""
    found = whole_or_none("num_nextn_predict_layers")(config, sizes)
    if not found or not sizes["num_experts"]:
        return 0
    for key, value in (("mtp_hybrid_override_pattern", "*E"), ("mtp_layers_block_type", ["full_attention", "moe"])):
        if config.holds(key) and config.data[key] != value:
            config.fail(key, f"{value}: no other module is known")
    return found


NEMOTRON_SIZES: dict[str, Rule | int] = (
    LLAMA_SIZES
    | grouped(8)
    | {"head_dim": optional("attention_head_dim", "head_dim", absent=128)}
    | mamba2_sizes(
        "mamba_num_heads", "mamba_head_dim", "ssm_state_size", "n_groups", "conv_kernel", "chunk_size",
        (128, 128, 8, 128),
    )
    | {
        "ssm_head_dim": optional("mamba_head_dim", absent=64),
        "num_layers": nemotron_layers,
        "num_experts": nemotron_experts,
        "moe_latent_size": lambda c, s: whole_or_none("moe_latent_size")(c, s) if s["num_experts"] else 0,
        "num_experts_per_token": lambda c, s: (
            whole_or_none("num_experts_per_tok", absent=2)(c, s) if s["num_experts"] else 0
        ),
        "expert_intermediate_size": lambda c, s: (
            whole_or_none("moe_intermediate_size", absent=7688)(c, s) if s["num_experts"] else 0
        ),
        "shared_expert_intermediate_size": nemotron_shared,
        "num_multi_token_layers": nemotron_modules,
    }
)  # fmt: skip

DELTA_RULE_SIZES: dict[str, Rule | int] = {
    "linear_num_key_heads": optional("linear_num_key_heads", absent=16),
    "linear_num_value_heads": optional("linear_num_value_heads", absent=32),
    "linear_key_head_dim": optional("linear_key_head_dim", absent=128),
    "linear_value_head_dim": optional("linear_value_head_dim", absent=128),
    "conv_kernel": optional("linear_conv_kernel_dim", absent=4),
    # The chunk is fixed in the published kernels (fla, chunk_gated_delta_rule).
    "ssm_chunk_size": 64,
}
"""Sizes of a gated delta rule, with the class defaults of Qwen."""

RECURRENT: dict[str, Family] = {
    "mamba": Family(
        LLAMA_SIZES
        | NO_ATTENTION
        | {
            "ssm_inner_size": inner_width("expand", 2),
            "ssm_state_size": optional("state_size", absent=16),
            "conv_kernel": optional("conv_kernel", absent=4),
            "ssm_time_step_rank": time_step_rank("time_step_rank"),
        },
        PURE_LAYERS | {"tied_embeddings": tie(True)},
        kinds=layout(constant_mixer("ssm1"), nothing),
    ),
    "mamba2": Family(
        LLAMA_SIZES
        | NO_ATTENTION
        | mamba2_sizes(
            "num_heads", "head_dim", "state_size", "n_groups", "conv_kernel", "chunk_size", (128, 128, 8, 256)
        ),
        PURE_LAYERS,
        kinds=mamba2_kinds,
    ),
    "jamba": Family(
        LLAMA_SIZES
        | grouped(8)
        | JAMBA_EXPERTS
        | {
            "ssm_inner_size": inner_width("mamba_expand", 2),
            "ssm_state_size": optional("mamba_d_state", absent=16),
            "conv_kernel": optional("mamba_d_conv", absent=4),
            "ssm_time_step_rank": time_step_rank("mamba_dt_rank"),
        },
        LLAMA_LAYERS
        | NO_ATTENTION_BIAS
        | {
            "positions": "none",
            "ssm_projection_bias": flag("mamba_proj_bias", False),
            "ssm_convolution_bias": flag("mamba_conv_bias", True),
            "ssm_norms": True,
        },
        kinds=layout(jamba_mixers, jamba_experts),
        only={"sliding_window": None},
        harmless=("num_experts_per_tok",),
    ),
    "bamba": Family(
        LLAMA_SIZES
        | grouped(8)
        | mamba2_sizes(
            "mamba_n_heads", "mamba_d_head", "mamba_d_state", "mamba_n_groups", "mamba_d_conv", "mamba_chunk_size",
            (128, 256, 1, 256),
        ),
        LLAMA_LAYERS
        | {
            "mlp_bias": flag("mlp_bias", False),
            "ssm_projection_bias": flag("mamba_proj_bias", False),
            "ssm_convolution_bias": flag("mamba_conv_bias", True),
        },
        kinds=layout(bamba_mixers),
    ),
    "nemotron_h": Family(
        NEMOTRON_SIZES,
        LLAMA_LAYERS
        | {
            "gated_mlp": False,
            "positions": "none",
            "mlp_bias": flag("mlp_bias", False),
            "activation": activating("relu2"),
            "ssm_projection_bias": flag("use_bias", False),
            "ssm_convolution_bias": flag("use_conv_bias", True),
            "wide_stream": flag("residual_in_fp32", False),
        },
        kinds=nemotron_kinds,
        only={"sliding_window": None, "mamba_proj_bias": False},
        harmless=("moe_shared_expert_overlap", "mtp_layers_block_type",
            "mtp_hybrid_override_pattern", "num_nextn_predict_layers",
                  "n_routed_experts", "n_shared_experts", "num_experts_per_tok", "moe_intermediate_size",
                  "moe_shared_expert_intermediate_size", "head_dim", "expand"),
    ),
    "qwen3_next": Family(
        QWEN_MOE_SIZES
        | {
            "head_dim": optional("head_dim", absent=256),
            "num_key_value_heads": optional("num_key_value_heads", absent=2, null=heads),
            "shared_expert_intermediate_size": require("shared_expert_intermediate_size"),
        }
        | DELTA_RULE_SIZES,
        LLAMA_LAYERS | {"query_key_norm": "per_head", "attention_gate": True, "shared_expert_gate": True},
        kinds=layout(
            windows(all_but_every(4, key="full_attention_interval"), other="linear_attention"), sparse_step
        ),
    ),
}  # fmt: skip
"""Families with recurrent layers."""
