"""Keys of published configurations that change neither parameters nor products, and the refusal of all others.

A key that no table reads could make another model of the file: it is refused with its name and the nearest that is
known, unless it is null. Whoever knows better says `--ignore-key`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..common.errors import InputError, nearest, quote

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .configs import Config

GENERATION = """
    bad_words_ids begin_suppress_tokens diversity_penalty do_sample early_stopping encoder_no_repeat_ngram_size
    exponential_decay_length_penalty forced_bos_token_id forced_eos_token_id length_penalty max_length
    max_new_tokens min_length no_repeat_ngram_size num_beam_groups num_beams num_return_sequences output_scores
    prefix remove_invalid_values repetition_penalty return_dict return_dict_in_generate suppress_tokens
    temperature top_k top_p typical_p use_cache
"""
"""Defaults of generation, which transformers 4 saved with every nested configuration."""

BOOKKEEPING = """
    architectures auto_map base_model_pp_plan base_model_tp_plan chat_template cross_attention_hidden_size
    custom_pipelines dtype finetuning_task for_llm_compressor id2label is_decoder label2id language_model
    mamba_ssm_cache_dtype mamba_ssm_dtype max_length model_type name problem_type pruned_heads
    task_specific_params text_config_dtype tf_legacy_loss tie_encoder_decoder tokenizer_class tokenizer_name
    torch_dtype torchscript transformers_version transformers_weights unsloth_fixed unsloth_version use_bfloat16
    verbose
"""
"""What a file is, who wrote it, and in which format tensors are kept."""

KERNELS = """
    _sliding_window_pattern activation activation_function apply_residual_connection_post_layernorm
    attention_chunk_size attention_multiplier attention_softmax_in_fp32 attn_config attn_output_multiplier
    attn_temperature_tuning attn_impl attn_uses_sequence_id alibi_bias_max ffn_act_fn moe_jitter_eps moe_loss_weight
    moe_normalize_expert_weights prefix_lm rope_dail_config rope_hf_config rope_impl softmax_scale
    uniform_expert_assignment aux_loss_alpha bias_dropout_fusion cache_implementation chunk_size_feed_forward
    classif_dropout clip_qkv decoder_layerdrop dim_model_base embedding_fraction embedding_multiplier
    embedding_multiplier_scale encoder_layerdrop encoder_stride ep_size expand extra_pos_embeddings floor_scale
    force_bos_token_to_be_generated gradient_checkpointing hidden_act hidden_activation init_config init_device
    init_std initial_context_length initializer_factor initializer_range key_size layer_norm_eps
    layer_norm_epsilon layerdrop logit_scale logits_scaling mamba_expand mamba_hidden_act masked_softmax_fusion
    max_attn_val max_window_layers mlp_hidden_act mlp_type moe_layers mtp_transformer_layers n_special
    norm_eps norm_epsilon norm_topk_prob norm_type normalize_before num_labels num_logits_to_keep offset_alibi
    original_max_position_embeddings output_attentions output_hidden_states output_multiplier_scale output_past
    output_router_logits partial_rotary_factor pooler_act pooler_output_size position_embedding_type
    predict_special_tokens pretraining_tp qk_norm_type query_pre_attn_scalar reorder_and_upcast_attn
    rescale_prenorm_residual residual_in_fp32 residual_multiplier rms_norm rms_norm_eps rope_interleave
    rope_local_base_freq rope_parameters rope_scaling rope_theta rotary rotary_dim rotary_emb_base rotary_pct
    routed_scaling_factor router_aux_loss_coef router_jitter_noise runner_max_sequence_length
    scale_attention_softmax_in_fp32 scale_attn_by_inverse_layer_idx scale_attn_weights scale_depth scale_emb
    scale_embedding scoring_func seq_aux skip_bias_add skip_bias_add_qkv sliding_window_pattern
    sliding_window_size slow_but_exact static_position_embeddings swiglu_limit time_step_floor
    time_step_init_scheme time_step_limit time_step_max time_step_min time_step_rank time_step_scale
    topk_method use_bidirectional_attention use_mamba_kernels use_mtp use_routing_bias use_sliding_window
    vocab_size_per_layer_input
"""
"""Activation functions, norms' epsilons, initialisation, scaling, positions and routing weights: the same products."""

BESIDE_TEXT = """
    audio_config vision_config image_placeholder ignore_index image_seq_length image_size has_vision language_model_only
    mm_tokens_per_image multimodal_projector_bias projector_hidden_act patch_size spatial_merge_size use_image_id
    use_unified_vision_chunk video_placeholder vision_feature_layer vision_feature_select_strategy
    vision_soft_tokens_per_image slice_mode img_token_compression_config image_grid_pinpoints num_reward_heads
    process_image_mode projector_hidden_size downsample_ratio vision_aspect_ratio max_dynamic_patch min_dynamic_patch
    dynamic_image_size force_image_size pad2square ps_version select_layer template use_backbone_lora use_llm_lora
    use_thumbnail video_fps audio_sample_rate
    position_id_per_seconds seconds_per_chunk scale_factor
"""
"""Keys beside a nested language model: they speak of the encoders of images and sound, or of where these meet text."""

BESIDE_THE_LANGUAGE_MODEL = frozenset(BESIDE_TEXT.split())
WITHOUT_COST = frozenset(" ".join((GENERATION, BOOKKEEPING, KERNELS)).split())
ENDINGS = ("_token_id", "_token_index", "_dropout", "_dropout_prob", "_pdrop")
BEGINNINGS = ("_", "summary_")


def without_cost(key: str) -> bool:
    """Whether a key is known to say nothing about the cost, by name or by the habits of such files."""
    return key in WITHOUT_COST or key.startswith(BEGINNINGS) or key.endswith(ENDINGS) or key == "dropout"


def refuse_unknown(config: Config, harmless: Iterable[str]) -> None:
    """Refuse keys that nothing has read and that are not known to be without cost.

    Args:
        config: what has been read.
        harmless: further keys that are without cost in this file.

    Raises:
        InputError: there is one; the line names it, its value and the nearest known key.
    """
    known = config.used | set(harmless)
    unknown = [key for key, value in config.data.items() if value is not None and key not in known]
    unknown = [key for key in unknown if not without_cost(key)]
    if unknown:
        first, more = unknown[0], len(unknown) - 1
        others = ", ".join(quote(key) for key in unknown[1:6])
        others = f" (nor of {others}{', ...' if more > 5 else ''})" if more else ""
        name = first if first.isidentifier() else "NAME"
        raise InputError(
            f"{config.where}: what the key {quote(first)} means for the cost is not known{others}, expected a known key"
            f"{nearest(first[:60], sorted(known | WITHOUT_COST))}; --ignore-key {name} reads the file without it"
        )
