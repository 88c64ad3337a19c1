"""Adapters that are trained, and the frozen weights beside them."""

from __future__ import annotations

from ..dimension import BYTE
from .entry import POSITIVE, add

adapter_passes = add(
    "efficiency",
    "adapter_passes",
    r"n_{ad}",
    "Readings and writings of an element of a layer's result by which its adapter's is scaled and added.",
    domain=POSITIVE,
)
base_element_bytes = add(
    "format",
    "base_element_bytes",
    "w_{nf}",
    "Bytes of a value of a frozen weight that is stored in few bits.",
    BYTE,
    POSITIVE,
)
base_scale_bytes = add(
    "format",
    "base_scale_bytes",
    "w_{qs}",
    "Bytes of the scale of a block of such values, with its share of what scales these.",
    BYTE,
    POSITIVE,
)
base_block = add("efficiency", "base_block", "B_{nf}", "Values of a weight stored in few bits that share a scale.")
