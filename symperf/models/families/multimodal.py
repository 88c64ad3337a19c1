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
    "qwen3_vl_text": DENSE["qwen3"],
    "qwen3_vl_moe_text": replace(EXPERTS["qwen3_moe"], sizes={**EXPERTS["qwen3_moe"].sizes, **grouped(16)}),
}
"""Families with a language model of their own under `text_config`, and the names of such parts."""

LANGUAGE_MODELS = """
    llava llava_next mistral3 paligemma idefics3 internvl qwen3_vl qwen3_vl_moe kimi_k25 qwen3_5 qwen3_5_moe
"""
WRAPPED = dict.fromkeys(LANGUAGE_MODELS.split(), "text_config")
"""Model types whose language model is of another family -> the key that holds it."""
