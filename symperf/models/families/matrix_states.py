"""Families whose layers keep a matrix for each head as their state, beside or in place of attention.

Defaults for absent keys are those of the config classes of transformers 5.24, and for keys that these do not read those
of the code of the checkpoints.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...common.errors import InputError
from ..architecture import LayerKind
from ..configs import LARGEST, Config, Family, Sizes, activating, flag, heads, optional, require
from ..layouts import constant_mixer, in_runs, layer_range, layout
from .bases import LLAMA_LAYERS, LLAMA_SIZES, NO_ATTENTION_BIAS
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


def scaled(key: str, absent: float, multiple: str = "") -> Rule:
    """A width that is a factor of the hidden size, rounded up to a multiple that the file gives where one is named."""

    def rule(config: Config, sizes: Sizes) -> int:
        config.used.add(key)
        factor = config.data.get(key, absent)
        if isinstance(factor, bool) or not isinstance(factor, int | float) or not 0 < factor <= LARGEST:
            config.fail(key, "a positive number")
        width = factor * sizes["hidden_size"]
        step = optional(multiple, absent=64)(config, sizes) if multiple else 1
        found = int((width + step - 1) // step * step) if multiple else int(width)
        if not found:
            config.fail(key, "a factor that leaves a width")
        return found

    return rule


def head_of(key: str, absent: float) -> Rule:
    """The width of a head, of all whose width is a factor of the hidden size."""

    def rule(config: Config, sizes: Sizes) -> int:
        width, number = scaled(key, absent)(config, sizes), sizes["linear_num_value_heads"]
        if width % number:
            raise InputError(f"{config.where}: {key}: a width of {width} is not a multiple of the {number} heads")
        return width // number

    return rule


def of_heads(_: Config, sizes: Sizes) -> int:
    """As many as there are value heads."""
    return sizes["linear_num_value_heads"]


def by_head(config: Config, sizes: Sizes) -> int:
    """Heads of a time mixing: by their width, or by their number where no width is given."""
    hidden = sizes["hidden_size"]
    given = config.data.get("head_dim", 64) is not None
    size = optional("head_dim" if given else "num_heads", absent=64)(config, sizes)
    if hidden % size:
        config.fail("head_dim" if given else "num_heads", f"a divisor of the hidden size {hidden}")
    found = hidden // size if given else size
    if config.holds("num_heads") and config.integer("num_heads") != found:
        config.fail("num_heads", f"{found} as the hidden_size {hidden} by head_dim")
    return found


def value_head(config: Config, sizes: Sizes) -> int:
    """The width of a value, which may be told for every layer; all alike."""
    config.used.add("value_dim")
    given, number = config.data.get("value_dim"), sizes["linear_num_value_heads"]
    widths = given if isinstance(given, list) else [sizes["hidden_size"] if given is None else given]
    whole = all(type(each) is int and each > 0 and each % number == 0 for each in widths)
    if not whole or len(set(widths)) != 1 or (isinstance(given, list) and len(given) != sizes["num_layers"]):
        config.fail("value_dim", f"one multiple of the {number} heads, for all layers")
    return widths[0] // number


def channel_mixing(config: Config, sizes: Sizes) -> int:
    """The inner width: as given, or a multiple of the hidden size, rounded up to whole multiples of 32."""
    if config.holds("intermediate_size"):
        config.used.add("hidden_ratio")
        return config.integer("intermediate_size")
    ratio = config.data.get("hidden_ratio")
    config.used.add("hidden_ratio")
    ratio = 4 if ratio is None else ratio
    if isinstance(ratio, bool) or not isinstance(ratio, int | float) or not 0 < ratio <= LARGEST:
        config.fail("hidden_ratio", "a positive number")
    return -(-int(sizes["hidden_size"] * ratio) // 32) * 32


def time_mixing(_: Config, sizes: Sizes, __: bool) -> Runs:
    """Time mixing and an MLP; the first layer has the values that the others take from."""
    first = LayerKind("wkv", "dense", traits=("first_values",))
    return [(first, 1), (LayerKind("wkv", "dense"), sizes["num_layers"] - 1)][: sizes["num_layers"]]


NO_ATTENTION: dict[str, Rule | int] = {"num_attention_heads": 0, "num_key_value_heads": 0, "head_dim": 0}

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
    "xlstm": Family(
        LLAMA_SIZES
        | NO_ATTENTION
        | {
            "hidden_size": optional("hidden_size", "embedding_dim", absent=4096),
            "num_layers": optional("num_hidden_layers", "num_blocks", absent=32),
            "vocab_size": optional("vocab_size", absent=50304),
            "intermediate_size": scaled("ffn_proj_factor", 2.667, "ffn_round_up_to_multiple_of"),
            "linear_num_value_heads": optional("num_heads", absent=8),
            "linear_num_key_heads": of_heads,
            "linear_key_head_dim": head_of("qk_dim_factor", 0.5),
            "linear_value_head_dim": head_of("v_dim_factor", 1.0),
            "ssm_chunk_size": optional("chunk_size", absent=64),
        },
        LLAMA_LAYERS | NO_ATTENTION_BIAS | {"positions": "none"},
        kinds=layout(constant_mixer("matrix_memory")),
        only={"use_bias": False},
        harmless=(
            # The module has a norm at its end whatever the file says; kernels and formats of states are the software's.
            "add_out_norm", "norm_reduction_force_float32", "chunkwise_kernel", "sequence_kernel", "step_kernel",
            "mode", "return_last_states", "autocast_kernel_dtype", "eps", "inference_state_dtype", "gate_soft_cap",
            "output_logit_soft_cap", "weight_mode", "max_inference_chunksize",
        ),
    ),
    "rwkv7": Family(
        LLAMA_SIZES
        | NO_ATTENTION
        | {
            "intermediate_size": channel_mixing,
            "linear_num_value_heads": by_head,
            "linear_num_key_heads": of_heads,
            "linear_key_head_dim": lambda _, sizes: sizes["hidden_size"] // sizes["linear_num_value_heads"],
            "linear_value_head_dim": value_head,
            # Classes of different releases take different widths where a file gives none.
            "decay_rank": require("decay_low_rank_dim"),
            "rate_rank": require("a_low_rank_dim"),
            "value_rank": require("v_low_rank_dim"),
            "gate_rank": require("gate_low_rank_dim"),
            # The chunk is fixed in the published kernels (fla, ChunkDPLRDeltaRuleFunction).
            "ssm_chunk_size": 16,
        },
        LLAMA_LAYERS
        | NO_ATTENTION_BIAS
        | {
            "positions": "none",
            "norm": "layer_norm",
            "norm_bias": flag("norm_bias", True),
            "embedding_norm": flag("norm_first", True),
            "gated_mlp": False,
            "activation": activating("relu2"),
        },
        kinds=time_mixing,
        only={"attn": None},
        harmless=("attn_mode", "fuse_norm", "fuse_cross_entropy", "fuse_linear_cross_entropy", "use_l2warp",
            "num_heads"),
    ),
}  # fmt: skip
"""Kimi Linear, xLSTM and RWKV-7."""
