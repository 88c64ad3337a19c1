"""A model with one layer of each kind of compressed attention, of the sizes of DeepSeek-V4-Flash."""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING

from support.paths import GOLDEN_2026
from symperf.models.model import make_model

if TYPE_CHECKING:
    import symperf as sf

WINDOW, TOP, RATIOS = 128, 512, (0, 4, 128)
KINDS = ("window", "selected", "all")
"""What the layers see beside a window, in their order: nothing, selected entries, all entries."""


@cache
def three_layers(modules: int = 0) -> sf.Model:
    """The model, with so many modules for multi-token prediction."""
    data = json.loads((GOLDEN_2026 / "configs" / "deepseek-v4-flash.json").read_text(encoding="utf-8"))
    data |= {"num_hidden_layers": 3, "compress_ratios": [*RATIOS, 0], "num_nextn_predict_layers": modules}
    data.pop("quantization_config")
    return make_model("three-layers", "a test", data, "config.json")


def label(kind: str) -> str:
    """The folder of the layer of a kind in paths."""
    return three_layers().architecture.kinds[KINDS.index(kind)].label


def keys_seen(kind: str, tokens: int) -> int:
    """Keys and entries that the query at the end of so many tokens sees."""
    entries = {"window": 0, "selected": min(TOP, tokens // 4), "all": tokens // 128}[kind]
    return min(tokens, WINDOW) + entries


def pairs_seen(kind: str, tokens: int, before: int = 0) -> int:
    """The sum over the queries of new tokens after some that are there."""
    return sum(keys_seen(kind, before + token) for token in range(1, tokens + 1))
