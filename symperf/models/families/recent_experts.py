"""Decoders of 2025 and 2026 with routed experts: one table per family, as differences from `bases` and `experts`.

Defaults for absent keys are those of the config classes of transformers 5.24; of Ling and Ring (bailing_moe), which
have no class there, of the checkpoints' own code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..configs import Config, Family, Sizes, flag, heads, hidden_by_heads, optional, require, tie, window
from ..layouts import all_but_every, constant_mixer, experts, experts_where, from_layer, layout, windows
from .bases import LLAMA_LAYERS, LLAMA_SIZES
from .experts import LATENT_SIZES, MULTI_TOKEN, first_dense, key_width, routed_sizes, times, whole_or_none
from .recent import PER_HEAD, biases, with_defaults

if TYPE_CHECKING:
    from ..configs import Rule
    from ..layouts import Chosen

SHARED: dict[str, Rule | int] = {
    "shared_expert_intermediate_size": times("n_shared_experts", "moe_intermediate_size", absent=1)
}


def each_layer(key: str, *others: str, absent: int | Rule | None = None) -> Rule:
    """A size for which a file gives a number, or a list with the same number for every layer (Hunyuan)."""

    def rule(config: Config, sizes: Sizes) -> int:
        value = config.data.get(key)
        if not isinstance(value, list):
            return optional(key, *others, absent=absent)(config, sizes)
        config.used.add(key)
        if len(value) != sizes["num_layers"] or not value or any(type(n) is not int or n != value[0] for n in value):
            config.fail(key, f"one number for all {sizes['num_layers']} layers: others are not supported yet")
        if value[0] < 1:
            config.fail(key, "positive integers")
        return int(value[0])

    return rule


def between(start: str, end: str, period: str) -> Chosen:
    """Layers of a range, every so many (Ernie); an end of -1 is the last layer."""

    def chosen(index: int, config: Config, sizes: Sizes) -> bool:
        first = config.integer_or(start, 1, smallest=0)
        last = config.integer(end, smallest=-1) if config.holds(end) else -1
        step = config.integer_or(period, 1)
        return (index + 1) % step == 0 and first <= index <= (sizes["num_layers"] - 1 if last == -1 else last)

    return chosen


GLM_LITE_SIZES: dict[str, Rule | int] = (
    LLAMA_SIZES
    | LATENT_SIZES
    | {"num_key_value_heads": heads, "head_dim": key_width()}
    | routed_sizes("n_routed_experts", width="moe_intermediate_size")
    | SHARED
    | MULTI_TOKEN
)
LATENT = {"mixers": constant_mixer("latent_attention")}

RECENT_EXPERTS: dict[str, Family] = {
    "ernie4_5_moe": Family(
        LLAMA_SIZES
        | {
            "num_key_value_heads": optional("num_key_value_heads", absent=4, null=heads),
            "head_dim": optional("head_dim", absent=hidden_by_heads, null=hidden_by_heads),
        }
        | routed_sizes("moe_num_experts", "num_experts", width="moe_intermediate_size", chosen="moe_k")
        | {"shared_expert_intermediate_size": times("moe_num_shared_experts", "moe_intermediate_size", absent=2)},
        LLAMA_LAYERS
        | biases("use_bias")
        | {"tied_embeddings": tie(True), "head_bias": flag("use_bias", False), "router_bias": True},
        kinds=layout(
            ffns=experts_where(between("moe_layer_start_index", "moe_layer_end_index", "moe_layer_interval"))
        ),
        harmless=("moe_norm_min", "moe_capacity", "moe_gate", "moe_use_aux_free", "compression_ratio"),
    ),
    "hunyuan_v1_moe": Family(
        LLAMA_SIZES
        | {"head_dim": optional("head_dim", "attention_head_dim", absent=hidden_by_heads, null=hidden_by_heads)}
        | {
            "num_experts": require("num_experts", "num_local_experts"),
            "num_experts_per_token": each_layer("moe_topk", "num_experts_per_tok", absent=1),
            # The experts are as wide as the MLP, which no layer has; moe_intermediate_size repeats it.
            "expert_intermediate_size": each_layer("moe_intermediate_size", "intermediate_size"),
            "shared_expert_intermediate_size": lambda c, s: (
                each_layer("num_shared_expert", absent=1)(c, s) * s["expert_intermediate_size"]
            ),
        },
        LLAMA_LAYERS | PER_HEAD,
        kinds=layout(ffns=experts),
        only={"use_qk_norm": True, "use_cla": False, "use_mixed_mlp_moe": True},
    ),
    "granitemoe": Family(
        LLAMA_SIZES | routed_sizes("num_local_experts", width="intermediate_size"), LLAMA_LAYERS,
        kinds=layout(ffns=experts),
    ),
    "dots1": Family(
        LLAMA_SIZES
        | {"num_key_value_heads": optional("num_key_value_heads", absent=32, null=heads)}
        | routed_sizes("n_routed_experts", width="moe_intermediate_size")
        | {"shared_expert_intermediate_size": times("n_shared_experts", "moe_intermediate_size")},
        LLAMA_LAYERS | PER_HEAD | {"attention_output_bias": flag("attention_bias", False)},
        window=window(None, switch="use_sliding_window"),
        kinds=layout(windows(from_layer("max_window_layers", 62)), first_dense(0)),
    ),
    "solar_open": Family(
        LLAMA_SIZES
        | with_defaults(num_key_value_heads=8, head_dim=128)
        | {"intermediate_size": optional("intermediate_size", absent=0)}
        | routed_sizes("n_routed_experts", width="moe_intermediate_size")
        | SHARED,
        LLAMA_LAYERS | {"attention_output_bias": False},
        kinds=layout(ffns=first_dense(0)),
        only={"use_qk_norm": False},
    ),
    "mistral4": Family(
        GLM_LITE_SIZES | {"q_lora_rank": whole_or_none("q_lora_rank", absent=1024)}, LLAMA_LAYERS,
        kinds=layout(LATENT["mixers"], first_dense(0)),
        harmless=("num_key_value_heads", "head_dim", "qk_head_dim"),
    ),
    "glm4_moe_lite": Family(
        GLM_LITE_SIZES, LLAMA_LAYERS, kinds=layout(LATENT["mixers"], first_dense(1)),
        harmless=("num_key_value_heads", "head_dim", "qk_head_dim"),
    ),
    "afmoe": Family(
        LLAMA_SIZES
        | {"head_dim": optional("head_dim", absent=128, null=hidden_by_heads)}
        | routed_sizes("num_experts", width="moe_intermediate_size")
        | {"shared_expert_intermediate_size": times("num_shared_experts", "moe_intermediate_size", absent=2)},
        LLAMA_LAYERS | PER_HEAD | {"block_norms": 4, "attention_gate": True, "router_bias": True},
        window=window(1024),
        kinds=layout(
            windows(all_but_every(4, key="global_attn_every_n_layers")), first_dense(1, key="num_dense_layers")
        ),
        harmless=("route_scale", "mup_enabled", "score_func", "route_norm", "global_attn_every_n_layers"),
    ),
    "bailing_moe": Family(
        LLAMA_SIZES
        | {"head_dim": optional("head_dim", absent=hidden_by_heads, null=hidden_by_heads)}
        | routed_sizes("num_experts", width="moe_intermediate_size")
        | {
            "shared_expert_intermediate_size": lambda c, s: (
                whole_or_none("num_shared_experts")(c, s)
                * optional("moe_shared_expert_intermediate_size", "moe_intermediate_size", absent=None)(c, s)
            )
        }
        | MULTI_TOKEN,
        LLAMA_LAYERS
        | {
            "qkv_bias": flag("use_qkv_bias", False),
            "attention_output_bias": flag("use_bias", False),
            "query_key_norm": flag("use_qk_norm", False, yes="per_head", no="none"),
        },
        kinds=layout(ffns=first_dense(0)),
        harmless=(
            "score_function", "moe_router_enable_expert_bias", "norm_head", "norm_softmax", "multi_gate",
            "moe_router_topk_scaling_factor", "router_dtype", "use_rmsnorm", "rope_interleave",
        ),
    ),
    "deepseek": Family(
        LLAMA_SIZES
        | routed_sizes("n_routed_experts", width="moe_intermediate_size")
        | {"shared_expert_intermediate_size": times("n_shared_experts", "moe_intermediate_size")},
        LLAMA_LAYERS,
        kinds=layout(ffns=first_dense(0)),
    ),
    "flex_olmo": Family(
        LLAMA_SIZES | routed_sizes("num_experts", width="intermediate_size"),
        LLAMA_LAYERS | {"query_key_norm": "full_width"},
        kinds=layout(ffns=experts),
    ),
}  # fmt: skip
RECENT_EXPERTS["bailing_moe_v2"] = RECENT_EXPERTS["bailing_moe"]
"""Families with routed experts."""
