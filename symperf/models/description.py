"""What a config says, by the table of its family: structure, sizes, kinds of layers, and warnings."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..common.errors import InputError, quote
from .architecture import Architecture, LayerKind, count_name
from .configs import Config, Family, Parsed, Sizes
from .layouts import all_or_windowed

if TYPE_CHECKING:
    from .configs import Runs

EXPERTS = "mixture-of-experts layers"
NOT_CARRIED = {
    "num_experts": ("num_experts", EXPERTS),
    "num_local_experts": ("num_experts", EXPERTS),
    "n_routed_experts": ("num_experts", EXPERTS),
    "moe_num_experts": ("num_experts", EXPERTS),
    "kv_lora_rank": ("kv_lora_rank", "latent attention layers"),
    "is_encoder_decoder": ("encoder", "encoders"),
    "add_cross_attention": ("", "cross-attention layers"),
    "block_configs": ("", "layers of different sizes"),
}
"""Keys that, when set, make another architecture of a known family that has not the size; and what they make."""

CONTEXT = ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "n_ctx")

KEYS_WITHOUT_COST = """
    attention_chunk_size attn_output_multiplier attn_temperature_tuning aux_loss_alpha classif_dropout early_stopping
    decoder_layerdrop embedding_multiplier_scale encoder_layerdrop encoder_stride ep_size expand floor_scale
    force_bos_token_to_be_generated for_llm_compressor initial_context_length initializer_factor length_penalty
    mamba_expand mamba_hidden_act max_length min_length mlp_hidden_act moe_layers n_group no_repeat_ngram_size
    norm_topk_prob normalize_before num_beams num_labels num_logits_to_keep output_attentions output_hidden_states
    output_multiplier_scale output_past output_router_logits pooler_act pooler_output_size position_embedding_type
    qk_norm_type rescale_prenorm_residual residual_in_fp32 rms_norm routed_scaling_factor router_aux_loss_coef
    router_jitter_noise scale_embedding scoring_func seq_aux static_position_embeddings swiglu_limit time_step_floor
    time_step_init_scheme time_step_limit time_step_max time_step_min time_step_rank time_step_scale topk_group
    topk_method use_mamba_kernels use_mtp mtp_transformer_layers use_routing_bias vocab_size_per_layer_input
    extra_pos_embeddings max_attn_val key_size
    activation activation_function apply_residual_connection_post_layernorm architectures
    attention_softmax_in_fp32 attn_config auto_map bias_dropout_fusion cache_implementation chunk_size_feed_forward
    clip_qkv dtype embedding_fraction gradient_checkpointing hidden_act hidden_activation
    id2label init_config init_device init_std initializer_range label2id layer_norm_eps layer_norm_epsilon layerdrop
    logit_scale logits_scaling masked_softmax_fusion max_window_layers mlp_type model_type n_special name norm_eps
    norm_epsilon norm_type offset_alibi original_max_position_embeddings partial_rotary_factor prefix
    predict_special_tokens pretraining_tp query_pre_attn_scalar rms_norm_eps rope_local_base_freq rope_parameters
    rope_scaling rope_theta rotary rotary_dim rotary_emb_base rotary_pct scale_attention_softmax_in_fp32
    scale_attn_weights scale_attn_by_inverse_layer_idx reorder_and_upcast_attn runner_max_sequence_length
    sliding_window_pattern _sliding_window_pattern sliding_window_size slow_but_exact skip_bias_add
    skip_bias_add_qkv task_specific_params tokenizer_class tokenizer_name torch_dtype transformers_version
    use_bidirectional_attention use_cache use_sliding_window verbose vision_config
"""
"""Published keys of the supported families that change neither parameters nor matrix products."""


def without_cost(key: str) -> bool:
    """Whether a key is known to say nothing about the cost, by name or by the habits of such files."""
    return (
        key in KEYS_WITHOUT_COST.split()
        or key.startswith(("_", "summary_"))
        or key.endswith(("_token_id", "_token_index", "_dropout", "_dropout_prob", "_pdrop"))
        or key == "dropout"
    )


def describe(config: Config, family: Family, model_type: str) -> Parsed:
    """Read a config by the table of its family.

    Raises:
        InputError: A key that the family needs is missing, or holds something else than the table expects.

    """
    inner = config
    notes = []
    if family.section:
        if not config.holds(family.section):
            raise InputError(f"{config.where}: {family.section} is missing, expected an object")
        inner = config.section(family.section)
        tie = "tie_word_embeddings"
        inner.data = {key: config.data[key] for key in (tie,) if key in config.data} | dict(inner.data)
        notes.append(f"only the language model in {family.section} is counted, no image or audio encoder")
    _refuse_other_architectures(inner, family, model_type)

    sizes: Sizes = {}
    for name, rule in family.sizes.items():
        sizes[name] = rule(inner, sizes) if callable(rule) else rule
    a, a_kv = sizes["num_attention_heads"], sizes["num_key_value_heads"]
    if a and a % a_kv:
        raise InputError(f"{inner.where}: the {a} attention heads are not a multiple of the {a_kv} key-value heads")
    if sizes.get("num_experts_per_token", 0) > sizes.get("num_experts", 0):
        raise InputError(
            f"{inner.where}: a token passes {sizes['num_experts_per_token']} of {sizes['num_experts']} experts"
        )
    choices: dict[str, Any] = {name: rule(inner) if callable(rule) else rule for name, rule in family.layers.items()}

    lengths = [inner.integer(key) for key in CONTEXT if inner.holds(key)]
    context = lengths[0] if lengths else None
    window = family.window(inner)
    kinds, order = count_kinds((family.kinds or all_or_windowed)(inner, sizes, window is not None), sizes)
    if not any(kind.mixer == "local_attention" for kind in kinds):
        window = None
    if window is not None:
        sizes["sliding_window"] = window
    caps = _soft_caps(inner, family)
    choices |= {
        "kinds": kinds,
        "shared_experts": sizes.get("shared_expert_intermediate_size", 0) > 0,
        "query_compression": sizes.get("q_lora_rank", 0) > 0,
        "multi_token_head": sizes.get("num_multi_token_layers", 0) > 0,
        "attention_soft_capping": "attn_logit_softcapping" in caps,
        "logit_soft_capping": "final_logit_softcapping" in caps,
    }
    sizes = {name: size for name, size in sizes.items() if size or name in BASE_SIZES}
    architecture = Architecture(**choices)
    inner.used |= set(family.harmless)
    notes += _warnings(inner, caps)
    if inner is not config and config.holds("quantization_config"):
        notes.append(QUANTIZED)
    return Parsed(model_type, architecture, sizes, order, context, window, tuple(notes))


BASE_SIZES = (
    "hidden_size",
    "num_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
    "intermediate_size",
    "vocab_size",
    "position_rows",
)
"""Sizes that every model has, if only as 0."""

QUANTIZED = "the stored weights are quantized: the precision of the plan is used, not theirs"


def count_kinds(runs: Runs, sizes: Sizes) -> tuple[tuple[LayerKind, ...], tuple[tuple[int, int], ...]]:
    """The kinds with the names of their counts, and the layers in order as runs of an index and a number.

    The counts go to the sizes where there are several kinds; of kinds that differ in sizes or traits alone all but the
    first have a number in the name of their count.
    """
    places = {kind: place for place, kind in enumerate(dict.fromkeys(kind for kind, _ in runs))}
    order = tuple((places[kind], count) for kind, count in runs)
    if len(places) == 1:
        return tuple(places), order
    counts = [sum(count for place, count in order if place == each) for each in range(len(places))]
    kinds, taken = [], set[str]()
    for kind, count in zip(places, counts, strict=True):
        base = count_name(kind.mixer, kind.ffn, encoder=kind.encoder, cross=kind.cross)
        names = (base if number == 1 else f"{base}_{number}" for number in itertools.count(1))
        name = next(name for name in names if name not in taken)
        taken.add(name)
        sizes[name] = count
        kinds.append(replace(kind, count=name))
    return tuple(kinds), order


def _refuse_other_architectures(config: Config, family: Family, model_type: str) -> None:
    for key, (size, what) in NOT_CARRIED.items():
        value = config.data.get(key)
        if size == "encoder" and "encoder" in family.traits:
            config.used |= {key, "num_hidden_layers"}
            continue
        if size in family.sizes:
            continue
        config.used.add(key)
        if value is True or (value and value != 1):
            config.fail(key, f"no such key: {what} are not supported in {model_type!r} yet")
    for key, expected in (family.only or {}).items():
        config.used.add(key)
        if config.data.get(key, expected) != expected:
            config.fail(key, f"{str(expected).lower()}: other values are not supported yet")


def _soft_caps(config: Config, family: Family) -> list[str]:
    keys = ("attn_logit_softcapping", "final_logit_softcapping")
    config.used |= set(keys)
    return [k for k in keys if (config.data[k] is not None if k in config.data else "soft_capping" in family.traits)]


def _warnings(config: Config, caps: list[str]) -> list[str]:
    """What a config says, one line each, that the cost does not carry."""
    notes = []
    if caps:
        notes.append(f"the elementwise work of soft-capping ({', '.join(caps)}) is left out")
    if config.holds("quantization_config"):
        notes.append(QUANTIZED)
    config.used |= {"sliding_window", "layer_types"}
    unknown = [key for key in config.data if key not in config.used and not without_cost(key)]
    unknown = [key for key in unknown if config.data[key] is not None and config.data[key] is not False]
    if unknown:
        names = ", ".join(quote(key) for key in unknown[:8]) + (", ..." if len(unknown) > 8 else "")
        notes.append(f"keys with no known meaning for the cost are ignored: {names}")
    return notes
