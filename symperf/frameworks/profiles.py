"""The profile of the training software that is nearest to what a framework runs."""

from __future__ import annotations

from typing import Final

from ..systems.software import names

NEAREST: Final[dict[str, tuple[str, ...]]] = {
    "megatron": ("megatron-core-2026", "transformer-engine"),
    "megatron-bridge": ("megatron-bridge-2026", "megatron-core-2026", "transformer-engine"),
    "megatron-deepep": ("deepep",),
    "torchtitan": ("torchtitan-2026",),
    "torchtitan-compiled": ("torchtitan-2026-compiled",),
    "deepspeed": ("deepspeed-2025",),
    "liger": ("liger-2025",),
}
"""Profiles by what runs, the first that is there."""


def profile_of(what: str) -> str | None:
    """The name of the nearest profile; None where there is none.

    >>> profile_of("nothing") is None
    True
    """
    known = names()
    return next((name for name in NEAREST.get(what, ()) if name in known), None)
