"""What tests of the formats of transfers of experts share: their names, and which way a transfer goes."""

from __future__ import annotations

FP8 = 1 + 4 / 128
"""A byte, and an FP32 scale for each 128 values."""
THERE, BACK = "dispatch_element_bytes", "combine_element_bytes"


def sent(name: str) -> bool:
    """Whether a transfer goes to the experts: a dispatch, or the backward pass of a combination."""
    return name.endswith(("dispatch/forward", "dispatch/recompute", "combine/backward", "experts/dispatch"))


def returned(name: str) -> bool:
    return name.endswith(("combine/forward", "combine/recompute", "dispatch/backward", "experts/combine"))
