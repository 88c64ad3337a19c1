"""`symperf regimes` and `symperf phase`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from . import Verb


def add(verb: Verb) -> None:
    """Add the verbs."""
