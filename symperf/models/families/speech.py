"""Encoders of sound with a decoder of text."""

from __future__ import annotations

from ..configs import Family, activating, dropping, require
from .bases import GPT2_LAYERS
from .encoders import ENCODERS, same, two_stacks

BESIDE = """
    num_hidden_layers apply_spec_augment classifier_proj_size mask_feature_length mask_feature_min_masks
    mask_feature_prob mask_time_length mask_time_min_masks mask_time_prob median_filter_width use_weighted_layer_sum
    alignment_heads lang_ids language task
"""
"""Keys about augmentation, alignment and classification, none of which a transcription reads."""

LAYERS, KINDS = two_stacks("encoder_layers", "decoder_layers", both=True)
SPEECH: dict[str, Family] = {
    "whisper": Family(
        {
            **ENCODERS["bart"].sizes,
            "num_layers": LAYERS,
            "num_attention_heads": same("encoder_attention_heads", "decoder_attention_heads"),
            "intermediate_size": same("encoder_ffn_dim", "decoder_ffn_dim"),
            "position_rows": require("max_target_positions"),
            "encoder_position_rows": require("max_source_positions"),
            "mel_bins": require("num_mel_bins"),
        },
        GPT2_LAYERS
        | {
            "spectra": True,
            "key_bias": False,
            "activation": activating("gelu"),
            "dropout": dropping("dropout", "attention_dropout", "activation_dropout"),
        },
        kinds=KINDS,
        traits=("encoder",),
        harmless=tuple(BESIDE.split()),
    ),
}
"""Families that transcribe (modules and class defaults of transformers 5.24)."""
