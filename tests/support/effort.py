"""How hard a test of a law tries, beside the profile of Hypothesis: whole under `nightly`, a part of it by default."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TypeVar

from hypothesis import settings

if TYPE_CHECKING:
    from collections.abc import Iterable

T = TypeVar("T")

LEAST = 3
THRIFT = 0.6
"""What the default profile tries of what tests ask for, so that the README's command takes its 12 minutes."""
NIGHTLY = os.environ.get("HYPOTHESIS_PROFILE") == "nightly"


def part(share: float) -> settings:
    """Settings with a share of the examples of the profile; with all of them under `nightly`.

    For examples that are whole batches of points, or runs of a simulator.
    """
    count = settings.default.max_examples
    return settings(max_examples=count if NIGHTLY else max(LEAST, round(THRIFT * share * count)))


def cases(count: int, share: float = 0.2) -> int:
    """How many random cases a loop tries: a share of `count`, or all of them under `nightly`."""
    return count if NIGHTLY else max(LEAST, round(THRIFT * share * count))


def some(items: Iterable[T], share: float = 0.5) -> list[T]:
    """A share of the cases, spread evenly over their order; under `nightly` all of them."""
    every = list(items)
    count = len(every) if NIGHTLY else max(1, round(THRIFT * share * len(every)))
    return [every[k * len(every) // count] for k in range(count)]
