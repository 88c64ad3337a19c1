"""Text models that are published beside an encoder of images or sound: where their language model is told."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from .bases import grouped
from .dense import DENSE
from .experts import EXPERTS, GEMMA4, LLAMA4

if TYPE_CHECKING:
    from ..configs import Family

MULTIMODAL: dict[str, Family] = {
    "llama4": replace(LLAMA4, section="text_config", only={"model_type": "llama4_text"}),
    "gemma4": replace(GEMMA4, section="text_config", only={**(GEMMA4.only or {}), "model_type": "gemma4_text"}),
    "qwen2_5_vl_text": DENSE["qwen2"],
    "qwen3_vl_text": DENSE["qwen3"],
    "qwen3_vl_moe_text": replace(EXPERTS["qwen3_moe"], sizes={**EXPERTS["qwen3_moe"].sizes, **grouped(16)}),
}
"""Families with a language model of their own under `text_config`, and the names of such parts."""

LANGUAGE_MODELS = """
    llava llava_next mistral3 paligemma qwen2_5_vl idefics3 internvl qwen3_vl qwen3_vl_moe kimi_k25 kimi_k3
    qwen3_5 qwen3_5_moe
"""
WRAPPED = dict.fromkeys(LANGUAGE_MODELS.split(), "text_config")
"""Model types whose language model is of another family -> the key that holds it."""

FLAT = {"qwen2_5_vl": "qwen2_5_vl_text"}
"""Model types whose older files tell the language model at the top -> the kind that it is of."""

LLAMA_CLASS = {"hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "vocab_size": 32000}
NESTED_DEFAULTS: dict[str, dict[str, int]] = {
    "llama": LLAMA_CLASS | {"intermediate_size": 11008},
    "mistral": LLAMA_CLASS | {"intermediate_size": 14336},
    "qwen2": LLAMA_CLASS | {"intermediate_size": 22016, "vocab_size": 151936},
}
"""Sizes that nested objects leave out -> the defaults of their classes in transformers (4.36 and later)."""
