"""Where a function of one unknown is 0."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

STEPS = 200


def root_of(function: Callable[[float], float], low: float, high: float, close: float) -> float:
    """Where a function that rises from below 0 to above it is 0 (the Illinois variant of false position).

    Args:
        function: below 0 at `low`, and not below it at `high`.
        low: an end of the interval.
        high: the other.
        close: relative length of an interval that is short enough.

    >>> round(root_of(lambda x: x * x - 2, 0.0, 2.0, 1e-12), 9)
    1.414213562
    """
    below, above, side = function(low), function(high), 0
    if above == 0:
        return high
    for _ in range(STEPS):
        middle = (low * above - high * below) / (above - below)
        value = function(middle)
        if value > 0:
            high, above = middle, value
            below = below / 2 if side == 1 else below
            side = 1
        else:
            low, below = middle, value
            above = above / 2 if side == -1 else above
            side = -1
        if high - low <= close * high or value == 0:
            return middle
    return (low + high) / 2
