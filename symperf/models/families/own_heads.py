"""Decoders whose windowed layers have heads of their own: MiMo-V2 and Step. One table per family.

Defaults for absent keys are those of the config classes of transformers 5.24; keys that only the checkpoints' own code
reads (`swa_*`, `attention_other_setting`) are told as vLLM and SGLang read them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...common.errors import InputError
from ..architecture import LayerKind
from ..configs import Config, Family, Sizes, flag, optional, window
from ..layouts import TYPES, experts_where, in_runs, layer_range, with_sizes
from .bases import LLAMA_LAYERS, LLAMA_SIZES
from .experts import MULTI_TOKEN, first_dense, routed_sizes, times

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..architecture import Mixer
    from ..configs import Kinds, Runs
    from ..layouts import FeedForwardRule

    Own = Callable[[Config, Sizes, int, Mixer], tuple[dict[str, int], tuple[str, ...]]]
    Mixers = Callable[[Config, Sizes], list[Mixer]]


def layers_with_own(mixers: Mixers, ffns: FeedForwardRule, own: Own) -> Kinds:
    """Layers each with its sizes and variations.

    Args:
        mixers: of every layer.
        ffns: what follows each.
        own: from config, sizes, index and mixer, the sizes that a layer has, and the variations of its mixer.
    """

    def rule(config: Config, sizes: Sizes, _: bool) -> Runs:
        found, after = mixers(config, sizes), ffns(config, sizes)
        kinds = []
        for index in layer_range(config, sizes):
            given, traits = own(config, sizes, index, found[index])
            kind = LayerKind(found[index], after if isinstance(after, str) else after[index], traits=traits)
            kinds.append(with_sizes(kind, given, sizes))
        return in_runs(kinds)

    return rule


def listed_mixers(config: Config, sizes: Sizes, more: int = 0) -> list[Mixer] | None:
    """The mixers of `layer_types`; layers for multi-token prediction may follow in the list."""
    count, listed = sizes["num_layers"], config.data.get("layer_types")
    padded = more > 0 and isinstance(listed, list) and len(listed) == count + more
    words = config.words("layer_types", count + more if padded else count)
    if words is None:
        return None
    if set(words) - {"full_attention", "sliding_attention"}:
        config.fail("layer_types", "only full_attention and sliding_attention")
    return [TYPES[word] for word in words[:count]]


# MiMo-V2 ----------------------------------------------------------------------------------------------------------


def mimo_v2_mixers(config: Config, sizes: Sizes) -> list[Mixer]:
    """By `layer_types`, or `hybrid_layer_pattern`, where 1 is a window; else windows but in the first and each 6th."""
    found = listed_mixers(config, sizes)
    if found is not None:
        return found
    listed = config.numbers("hybrid_layer_pattern", largest=1)
    if listed is None:
        listed = [int(i > 0 and (i + 1) % 6 != 0) for i in layer_range(config, sizes)]
    if len(listed) != sizes["num_layers"]:
        config.fail("hybrid_layer_pattern", f"0 or 1 for each of {sizes['num_layers']} layers")
    return ["local_attention" if each else "attention" for each in listed]


def mimo_v2_own(config: Config, sizes: Sizes, _: int, mixer: Mixer) -> tuple[dict[str, int], tuple[str, ...]]:
    """Windowed layers have twice the key-value heads unless the file says it, and logits beside those of their keys."""
    slides = mixer == "local_attention"
    beginning, twice = ("swa_", 2) if slides else ("", 1)
    given = {
        name: optional(f"{beginning}{name}", absent=sizes[name] * (twice if name == "num_key_value_heads" else 1))(
            config, sizes
        )
        for name in ("num_attention_heads", "num_key_value_heads", "head_dim", "v_head_dim")
    }
    if given["num_attention_heads"] % given["num_key_value_heads"]:
        raise InputError(
            f"{config.where}: the {given['num_attention_heads']} {beginning}attention heads are not a multiple of the "
            f"{given['num_key_value_heads']} key-value heads"
        )
    key = "add_swa_attention_sink_bias" if slides else "add_full_attention_sink_bias"
    traits = ("own_values", "sinks") if config.flag(key, slides) else ("own_values",)
    return given, traits


def mimo_v2_window(config: Config) -> int | None:
    """So many tokens before a query's own, which the class adds to a file's `sliding_window_size`."""
    if config.holds("sliding_window_size"):
        config.used.add("sliding_window")
        return config.integer("sliding_window_size") + 1
    return window(129)(config)


MIMO_V2 = Family(
    LLAMA_SIZES
    | {
        "num_key_value_heads": optional("num_key_value_heads", absent=4),
        "head_dim": optional("head_dim", absent=192),
        "v_head_dim": optional("v_head_dim", absent=128),
        "intermediate_size": optional("intermediate_size", absent=16384),
    }
    | routed_sizes("n_routed_experts", width="moe_intermediate_size")
    | {"shared_expert_intermediate_size": times("n_shared_experts", "moe_intermediate_size")}
    | MULTI_TOKEN,
    LLAMA_LAYERS | {"qkv_bias": flag("attention_bias", False), "attention_output_bias": False},
    window=mimo_v2_window,
    kinds=layers_with_own(mimo_v2_mixers, first_dense(1), mimo_v2_own),
    harmless=(
        "attention_value_scale", "swa_rope_theta", "layernorm_epsilon", "hybrid_block_size", "attention_chunk_size",
        "sliding_window_size",
    ),
)  # fmt: skip

# Step -------------------------------------------------------------------------------------------------------------


def step_mixers(config: Config, sizes: Sizes) -> list[Mixer]:
    """By `layer_types`, which names the layers for multi-token prediction too; else all full."""
    found = listed_mixers(config, sizes, sizes["num_multi_token_layers"])
    return found or ["attention" for _ in layer_range(config, sizes)]


def step_own(config: Config, sizes: Sizes, index: int, mixer: Mixer) -> tuple[dict[str, int], tuple[str, ...]]:
    """Windowed layers may have other heads, by a key, by an object, or layer by layer (transformers 5)."""
    if mixer != "local_attention":
        return {}, ()
    other = config.section("attention_other_setting")
    other.text("attention_type", "sliding_attention", ("sliding_attention",))
    given = {
        "num_attention_heads": optional("num_attention_heads", absent=sizes["num_attention_heads"])(other, sizes),
        "num_key_value_heads": optional("num_attention_groups", absent=sizes["num_key_value_heads"])(other, sizes),
        "head_dim": optional("head_dim", "true_head_dim", absent=sizes["head_dim"])(other, sizes),
    }
    key = "num_sliding_attention_heads"
    given["num_attention_heads"] = optional(key, absent=given["num_attention_heads"])(config, sizes)
    single = config.section("per_layer_config").data.get(str(index), {})
    config.section("per_layer_config").used |= set(config.section("per_layer_config").data)
    if not isinstance(single, dict) or set(single) - {"num_attention_heads"}:
        config.fail("per_layer_config", "an object with num_attention_heads for every layer with a window")
    where = f"{config.where}: per_layer_config: {index}"
    given["num_attention_heads"] = optional("num_attention_heads", absent=given["num_attention_heads"])(
        Config(single, where), sizes
    )
    if given["num_attention_heads"] % given["num_key_value_heads"]:
        raise InputError(
            f"{config.where}: attention_other_setting: the {given['num_attention_heads']} attention heads are not a "
            f"multiple of the {given['num_key_value_heads']} key-value heads"
        )
    return given, ()


def step_expert(index: int, config: Config, sizes: Sizes) -> bool:
    """Experts in the layers of `mlp_layer_types` or `moe_layers_enum` (a text or a list), else from one on."""
    listed = config.data.get("moe_layers_enum")
    if config.holds("mlp_layer_types") or listed is None:
        return first_dense(3)(config, sizes)[index] == "experts"
    config.used |= {"moe_layers_enum", "first_k_dense_replace"}
    found = [text.strip() for text in listed.split(",") if text.strip()] if isinstance(listed, str) else listed
    whole = isinstance(found, list) and all(str(each).isdecimal() and int(each) < 10**6 for each in found)
    if not whole:
        config.fail("moe_layers_enum", "numbers of layers, as a list or with commas between them")
    return index in {int(each) for each in found}


STEP = Family(
    LLAMA_SIZES
    | {
        "num_key_value_heads": optional("num_attention_groups", "num_key_value_heads", absent=8),
        "head_dim": optional("head_dim", absent=128),
    }
    | routed_sizes(
        "moe_num_experts", "n_routed_experts", "num_experts", width="moe_intermediate_size",
        chosen="num_experts_per_tok",
    )
    | {
        "num_experts_per_token": optional("num_experts_per_tok", "moe_top_k", absent=8),
        "shared_expert_intermediate_size": optional("share_expert_dim", "share_expert_dims", absent=1280),
    }
    | MULTI_TOKEN,
    LLAMA_LAYERS
    | {
        "query_key_norm": "per_head",
        "head_gate": flag("use_head_wise_attn_gate", True),
        "mlp_bias": flag("mlp_bias", False),
    },
    window=window(None),
    kinds=layers_with_own(step_mixers, experts_where(step_expert), step_own),
    only={"n_shared_experts": 1, "use_moe": True, "use_mfa": False, "use_qk_norm": True, "att_impl_type": "GQA"},
    harmless=(
        "use_moe_router_bias", "moe_router_scaling_factor", "moe_router_activation", "need_fp32_gate",
        "norm_expert_weight", "swiglu_limits", "swiglu_limits_shared", "yarn_only_types", "use_rope_layers",
        "partial_rotary_factors", "max_seq_len", "zero_centered",
    ),
)  # fmt: skip

# Inkling ----------------------------------------------------------------------------------------------------------


def inkling_mixers(config: Config, sizes: Sizes) -> list[Mixer]:
    """By `layer_types`, or the indices of windowed layers; else all but every sixth."""
    words = config.words("layer_types", sizes["num_layers"])
    if words is not None:
        if set(words) - {"hybrid", "hybrid_sliding"}:
            config.fail("layer_types", "only hybrid and hybrid_sliding")
        return ["local_attention" if word == "hybrid_sliding" else "attention" for word in words]
    listed = config.numbers("local_layer_ids", largest=max(sizes["num_layers"] - 1, 0))
    near = None if listed is None else set(listed)
    layers = layer_range(config, sizes)
    return ["local_attention" if (i in near if near is not None else (i + 1) % 6) else "attention" for i in layers]


def inkling_own(config: Config, sizes: Sizes, _: int, mixer: Mixer) -> tuple[dict[str, int], tuple[str, ...]]:
    """Windowed layers have heads of their own, and biases for every distance in their window."""
    traits = ("convolved", "distance_bias")
    if mixer != "local_attention":
        return {}, traits
    given = {
        name: optional(f"swa_{name}", absent=absent)(config, sizes)
        for name, absent in (("num_attention_heads", 64), ("num_key_value_heads", 16), ("head_dim", 128))
    }
    if given["num_attention_heads"] % given["num_key_value_heads"]:
        config.fail("swa_num_key_value_heads", f"a divisor of the {given['num_attention_heads']} attention heads")
    return given | {"distance_extent": window(512, key="sliding_window_size")(config) or 512}, traits


INKLING = Family(
    LLAMA_SIZES
    | {
        "num_key_value_heads": optional("num_key_value_heads", absent=8),
        "head_dim": optional("head_dim", absent=128),
        "intermediate_size": optional("dense_intermediate_size", absent=optional("intermediate_size", absent=24576)),
        "distance_profiles": optional("d_rel", absent=16),
        "distance_extent": optional("rel_extent", absent=1024),
        "conv_kernel": optional("conv_kernel_size", "sconv_kernel_size", absent=4),
    }
    | routed_sizes("n_routed_experts", width="moe_intermediate_size")
    | {
        # Where a file tells the width of dense layers apart, the other one is that of experts.
        "expert_intermediate_size": lambda c, s: optional(
            "intermediate_size" if c.holds("dense_intermediate_size") else "moe_intermediate_size", absent=3072
        )(c, s),
        "num_scored_experts": optional("n_shared_experts", absent=2),
        "shared_expert_intermediate_size": lambda _, s: s["num_scored_experts"] * s["expert_intermediate_size"],
        "num_multi_token_layers": optional("num_mtp_layers", absent=0, null=0),
    },
    LLAMA_LAYERS
    | {
        "positions": "none",
        "qkv_bias": False,
        "attention_output_bias": False,
        "query_key_norm": "per_head",
        "embedding_norm": True,
        "activation_parameters": 1,
    },
    window=window(512, key="sliding_window_size"),
    kinds=layers_with_own(inkling_mixers, first_dense(0, key="dense_mlp_idx"), inkling_own),
    only={"shared_expert_sink": True, "tie_word_embeddings": False, "number_of_conv_states": 4},
    harmless=(
        "log_scaling_alpha", "log_scaling_n_floor", "logits_mup_width_multiplier", "rms_norm_eps_moe_gate",
        "route_scale", "unpadded_vocab_size", "chain_hidden_post_norm", "mtp_hidden_states_first",
        "mtp_local_layer_ids", "model_max_length", "moe_intermediate_size",
    ),
)  # fmt: skip

OWN_HEADS: dict[str, Family] = {
    "mimo_v2_flash": MIMO_V2,
    "step3p5": STEP,
    "inkling_text": INKLING,
}
"""Families whose windowed layers have heads of their own."""
