"""What a kernel keeps of a sweep, instead of every point: the best points, and how many are feasible.

Only points where every constraint is at least zero count. Of equal points the one of the smallest flat index is kept,
so that no order of loops, block size or number of threads changes an answer; undefined values (NaN) are never among the
best. The template `templates/numba_top.j2` updates the state in a kernel, `TopK.absorb` does the same with NumPy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .passes import Axis

    Array = np.ndarray[Any, Any]
    State = tuple[Array, Array, Array, Array]
    """Best values, as a heap whose root is the worst of them; their flat indices; how many there are, in an array of
    one; points that are feasible, then those that each constraint is the first to reject."""


@dataclass(frozen=True)
class BestPoints:
    """The best points of a sweep, the best first, and what the same pass counted.

    Attributes:
        flat: index of each in the caller's axis order, the last axis fastest.
        indices: by axis the index on it.
        values: by output, as the reference interpreter computes it.
        feasible: points of the sweep where every constraint holds.
        rejected: by position in `constraints` the points that this one was the first to reject.
    """

    flat: Array
    indices: dict[Axis, Array]
    values: dict[str, Array]
    feasible: int
    rejected: dict[int, int]

    def __len__(self) -> int:
        return len(self.flat)


@dataclass(frozen=True)
class TopK:
    """The `k` feasible points of the smallest (or largest) output.

    Raises:
        ValueError: `k` that is no whole number from 1.
    """

    output: str
    k: int
    largest: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.k, bool) or not isinstance(self.k, int) or self.k < 1:
            raise ValueError(f"top: found k = {self.k!r}, expected a whole number from 1")

    def start(self, constraints: int) -> State:
        """The state of no point."""
        return np.zeros(self.k), np.zeros(self.k, np.int64), np.zeros(1, np.int64), np.zeros(constraints + 1, np.int64)

    def merge(self, states: Sequence[State]) -> State:
        """One state of several, whatever their order; the best comes first in it."""
        value = np.concatenate([heap[: count[0]] for heap, _, count, _ in states])
        flat = np.concatenate([places[: count[0]] for _, places, count, _ in states])
        best = np.lexsort((flat, value))[: self.k]
        counts: Array = np.sum([state[3] for state in states], axis=0)
        return value[best], flat[best], np.array([len(best)]), counts

    def absorb(self, state: State, value: Array, reason: Array, flat: Array) -> State:
        """A state with more points in it.

        Args:
            state: what has been found before.
            value: of the output at each point, 1-D.
            reason: 0 where feasible, else one more than the position of the first constraint that fails.
            flat: index of each point.
        """
        counts: Array = np.bincount(reason, minlength=len(state[3]))
        value = -value if self.largest else value
        good = (reason == 0) & (value == value)
        value, flat = value[good], flat[good]
        if len(value) > 4 * self.k:
            near = value <= np.partition(value, self.k - 1)[self.k - 1]
            value, flat = value[near], flat[near]
        return self.merge([state, (value, flat, np.array([len(value)]), counts)])
