"""Families whose layers keep a matrix for each head as their state, beside or in place of attention.

Defaults for absent keys are those of the config classes of transformers 5.24, and for keys that these do not read those
of the code of the checkpoints.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...common.errors import InputError
from ..architecture import LayerKind
from ..configs import Config, Family, Sizes, flag, heads, optional
from ..layouts import in_runs, layer_range
from .bases import LLAMA_LAYERS, LLAMA_SIZES
from .experts import MULTI_TOKEN, key_width, routed_sizes, whole_or_none
from .sparse import each_feed_forward

if TYPE_CHECKING:
    from ..architecture import Mixer
    from ..configs import Rule, Runs

NESTED = "linear_attn_config"
"""The object that says in files of checkpoints what transformers writes at the top."""


def nested(inner: str, outer: str, absent: int) -> Rule:
    """A size of the linear attention, in an object of its own or at the top; both may say it if they agree."""

    def rule(config: Config, sizes: Sizes) -> int:
        section = config.section(NESTED)
        value = optional(outer, absent=optional(inner, absent=absent)(section, sizes))(config, sizes)
        if section.holds(inner) and section.integer(inner) != value:
            section.fail(inner, f"{value} as {outer} says")
        return value

    return rule


def kimi_mixers(config: Config, sizes: Sizes) -> list[Mixer]:
    """By words for all layers, or by lists of layers counted from 1; else attention in every fourth from the fifth."""
    layers = layer_range(config, sizes)
    section, lists = config.section(NESTED), ("full_attn_layers", "kda_layers")
    full, linear = (section.numbers(key, largest=len(layers)) for key in lists)
    words = config.words("layer_types", len(layers))
    if words is not None:
        unknown = next((word for word in words if word not in ("full_attention", "linear_attention")), None)
        if unknown is not None:
            config.fail("layer_types", "only full_attention and linear_attention")
        chosen = [word == "full_attention" for word in words]
    elif full is not None and linear is not None:
        if sorted(full + linear) != [i + 1 for i in layers]:
            section.fail(lists[0], f"with kda_layers each of the layers 1 to {len(layers)} once")
        chosen = [i + 1 in full for i in layers]
    elif full is not None or linear is not None:
        missing = lists[full is not None]
        raise InputError(f"{section.where}: {missing} is missing, expected the layers that the other list has not")
    else:
        chosen = [i > 0 and i % 4 == 0 for i in layers]
    return ["latent_attention" if each else "linear_attention" for each in chosen]


def kimi_kinds(config: Config, sizes: Sizes, _: bool) -> Runs:
    """Kimi Delta Attention and latent attention; experts in every layer but the first ones."""
    ffns = each_feed_forward(1, config, sizes)
    gate = () if config.section(NESTED).flag("use_full_rank_gate", False) else ("narrow_gate",)
    config.section(NESTED).used.add("gate_lower_bound")
    traits = {"linear_attention": ("channel_decay", *gate)}
    return in_runs(
        LayerKind(mixer, ffn, traits=traits.get(mixer, ()))
        for mixer, ffn in zip(kimi_mixers(config, sizes), ffns, strict=True)
    )


def kimi_shared(config: Config, sizes: Sizes) -> int:
    """Width of all shared experts together."""
    return whole_or_none("num_shared_experts", absent=1)(config, sizes) * sizes["expert_intermediate_size"]


def latent_norm(config: Config) -> bool:
    """Whether a norm follows the experts in their own width, if they have one."""
    return config.flag("latent_moe_use_norm", False) and config.holds("routed_expert_hidden_size")


MATRIX_STATES: dict[str, Family] = {
    "kimi_linear": Family(
        LLAMA_SIZES
        | {
            "q_lora_rank": whole_or_none("q_lora_rank"),
            "kv_lora_rank": optional("kv_lora_rank", absent=512),
            "qk_nope_head_dim": optional("qk_nope_head_dim", absent=128),
            "qk_rope_head_dim": optional("qk_rope_head_dim", absent=64),
            "v_head_dim": optional("v_head_dim", absent=128),
            "num_key_value_heads": heads,
            "head_dim": key_width(128, 64),
            "linear_num_key_heads": nested("num_heads", "linear_num_heads", 32),
            "linear_num_value_heads": lambda _, sizes: sizes["linear_num_key_heads"],
            "linear_key_head_dim": nested("head_dim", "linear_head_dim", 128),
            "linear_value_head_dim": lambda _, sizes: sizes["linear_key_head_dim"],
            "conv_kernel": nested("short_conv_kernel_size", "linear_conv_kernel_dim", 4),
            # The chunk is fixed in the published kernels (fla, chunk_kda).
            "ssm_chunk_size": 64,
            "moe_latent_size": whole_or_none("routed_expert_hidden_size"),
            "residual_block": whole_or_none("attn_res_block_size"),
        }
        | routed_sizes("num_experts", width="moe_intermediate_size", chosen="num_experts_per_token")
        | {"shared_expert_intermediate_size": kimi_shared}
        | MULTI_TOKEN,
        LLAMA_LAYERS
        | {
            "positions": "none",
            "attention_gate": flag("mla_use_output_gate", False),
            "latent_expert_norm": latent_norm,
        },
        kinds=kimi_kinds,
        only={"mla_use_nope": True},
        harmless=(
            # Every head of latent attention has keys and values of its own, whatever the file says.
            "num_key_value_heads", "qk_head_dim", "head_dim", "model_max_length", "moe_renormalize", "num_expert_group",
            "moe_router_activation_func", "use_grouped_topk", "linear_attn_config",
            "activation_situ_beta", "activation_situ_linear_beta",
        ),
    ),
}  # fmt: skip
"""Kimi Linear."""
