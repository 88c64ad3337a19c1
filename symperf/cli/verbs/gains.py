"""`symperf gains` and `symperf limits`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from . import Verb


def add(verb: Verb) -> None:
    """Add the verbs."""
