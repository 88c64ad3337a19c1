"""Text models that are published beside an encoder of images or sound: where their language model is told."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ..configs import flag, require
from .bases import grouped
from .dense import DENSE
from .experts import EXPERTS, GEMMA4, LLAMA4

if TYPE_CHECKING:
    from ..configs import Family

MULTIMODAL: dict[str, Family] = {
    "llama4": replace(LLAMA4, section="text_config", only={"model_type": "llama4_text"}),
    "gemma4": replace(GEMMA4, section="text_config", only={**(GEMMA4.only or {}), "model_type": "gemma4_text"}),
    "phi4_multimodal": replace(
        DENSE["phi3"],
        sizes={**DENSE["phi3"].sizes, **grouped(8)},
        harmless=(*DENSE["phi3"].harmless, "vision_config", "audio_config"),
    ),
    "qwen2_vl_text": DENSE["qwen2"],
    "qwen2_5_vl_text": DENSE["qwen2"],
    "qwen3_vl_text": DENSE["qwen3"],
    "glm4v_text": replace(
        DENSE["glm4"], layers={**DENSE["glm4"].layers, "qkv_bias": True}, only={"attention_bias": True}
    ),
    "glm4v_moe_text": replace(
        EXPERTS["glm4_moe"],
        sizes={**EXPERTS["glm4_moe"].sizes, "head_dim": require("head_dim")},
        layers={**EXPERTS["glm4_moe"].layers, "qkv_bias": flag("attention_bias", True), "query_key_norm": "none"},
        only={"use_qk_norm": False},
    ),
    "qwen2_5_omni_text": DENSE["qwen2"],
    "qwen3_omni_moe_text": replace(EXPERTS["qwen3_moe"], sizes={**EXPERTS["qwen3_moe"].sizes, **grouped(4)}),
    "qwen3_vl_moe_text": replace(EXPERTS["qwen3_moe"], sizes={**EXPERTS["qwen3_moe"].sizes, **grouped(16)}),
}
"""Families with a language model of their own under `text_config`, and the names of such parts."""

LANGUAGE_MODELS = """
    qwen2_audio voxtral qwen2_5_omni_thinker qwen3_omni_moe_thinker
    llava llava_next llava_onevision mistral3 paligemma glm4v glm4v_moe glm46v
    qwen2_vl qwen2_5_vl idefics3 smolvlm internvl qwen3_vl qwen3_vl_moe kimi_k25 kimi_k3 qwen3_5 qwen3_5_moe step3p7
"""
WRAPPED = {**dict.fromkeys(LANGUAGE_MODELS.split(), "text_config"), "internvl_chat": "llm_config"}
"""Model types whose language model is of another family -> the key that holds it."""

THINKERS = {"qwen2_5_omni": "thinker_config", "qwen3_omni_moe": "thinker_config"}
"""Model types that speak too -> the key that holds what listens, sees and writes; what speaks is not counted."""

SPEAKING = ("talker_config", "token2wav_config", "code2wav_config", "enable_audio_output", "thinker_config")
"""Keys beside it that are of what speaks."""

FLAT = {"qwen2_vl": "qwen2_vl_text", "qwen2_5_vl": "qwen2_5_vl_text", "step3p7": "step3p5"}
"""Model types whose older files tell the language model at the top -> the kind that it is of."""

LLAMA_CLASS = {"hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "vocab_size": 32000}
NESTED_DEFAULTS: dict[str, dict[str, int]] = {
    "llama": LLAMA_CLASS | {"intermediate_size": 11008},
    "mistral": LLAMA_CLASS | {"intermediate_size": 14336},
    "qwen2": LLAMA_CLASS | {"intermediate_size": 22016, "vocab_size": 151936},
}
"""Sizes that nested objects leave out -> the defaults of their classes in transformers (4.36 and later)."""
