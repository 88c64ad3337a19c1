"""Number formats: bytes of one element."""

from __future__ import annotations

from ..dimension import BYTE
from .entry import POSITIVE, ZERO_UP, add

activation_bytes = add("format", "activation_bytes", "w_x", "Bytes of an activation element.", BYTE, POSITIVE)
weight_bytes = add("format", "weight_bytes", "w_w", "Bytes of a weight.", BYTE, POSITIVE)
gradient_bytes = add("format", "gradient_bytes", "w_g", "Bytes of an accumulated gradient.", BYTE, POSITIVE)
optimizer_bytes = add(
    "format",
    "optimizer_bytes",
    "w_o",
    "Bytes of optimizer state per parameter: master weight and two moments for Adam.",
    BYTE,
    ZERO_UP,
)
mask_bytes = add("format", "mask_bytes", "w_m", "Bytes of an element of a dropout mask.", BYTE, POSITIVE)
statistic_bytes = add(
    "format",
    "statistic_bytes",
    "w_s",
    "Bytes of a softmax statistic, a logit of the loss, a stream in FP32.",
    BYTE,
    POSITIVE,
)
index_bytes = add("format", "index_bytes", "w_i", "Bytes of a token index.", BYTE, POSITIVE)
