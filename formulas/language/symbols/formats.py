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
dispatch_element_bytes = add(
    "format",
    "dispatch_element_bytes",
    "w_d",
    "Bytes of an element of what is sent to experts, tokens or gradients of results, its part of a block's scale "
    "included.",
    BYTE,
    POSITIVE,
)
combine_element_bytes = add(
    "format",
    "combine_element_bytes",
    "w_c",
    "Bytes of an element of what comes back from experts, results or gradients of tokens, its part of a block's scale "
    "included.",
    BYTE,
    POSITIVE,
)
index_bytes = add("format", "index_bytes", "w_i", "Bytes of a token index.", BYTE, POSITIVE)
