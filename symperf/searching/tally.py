"""What a search keeps while it runs: the best plans, the best of every kind, counts, and the Pareto front."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    Array = np.ndarray[Any, Any]

DIGITS = 11
"""Significant digits to which times are compared: forms of equal value may differ in the last places."""


@dataclass
class Kept:
    """Plans by what they cost and where they are.

    Attributes:
        time: seconds of a step.
        memory: bytes on the fullest device.
        place: of each plan the number of its combination, of its table, and its row.
    """

    time: Array = field(default_factory=lambda: np.empty(0))
    memory: Array = field(default_factory=lambda: np.empty(0))
    place: Array = field(default_factory=lambda: np.empty((0, 3), dtype=np.int64))

    def __len__(self) -> int:
        return len(self.time)

    def joined(self, other: Kept) -> Kept:
        """Both."""
        return Kept(
            np.concatenate([self.time, other.time]),
            np.concatenate([self.memory, other.memory]),
            np.concatenate([self.place, other.place]),
        )

    def at(self, chosen: Any) -> Kept:
        """Some of them."""
        return Kept(self.time[chosen], self.memory[chosen], self.place[chosen])

    def order(self) -> Array:
        """From the fastest on; of equally fast ones first that of the least memory, then in the order of the search."""
        return np.lexsort((*self.place.T[::-1], rounded(self.memory), rounded(self.time)))


def rounded(values: Array) -> Array:
    """Values to `DIGITS` significant digits."""
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = 10.0 ** (DIGITS - 1 - np.floor(np.log10(values)))
        return np.where(np.isfinite(scale), np.rint(values * scale) / scale, values)


class Tally:
    """Where several threads bring what they found.

    Args:
        top: plans to keep.
        lengths: rows of each table.
        combinations: how many.
        front: whether to keep the Pareto front of time and memory.
    """

    def __init__(self, top: int, lengths: Sequence[int], combinations: int, *, front: bool) -> None:
        self.top = top
        self.best = Kept()
        self.front = Kept() if front else None
        self.feasible = 0
        self.pruned = 0
        self.rejected: dict[str, int] = {}
        self.row_time = [np.full(n, np.inf) for n in lengths]
        self.row_combination = [np.zeros(n, dtype=np.int64) for n in lengths]
        self.least: tuple[float, tuple[int, int, int]] | None = None
        """Bytes and place of the plan that needs the least memory, whether it fits or not."""
        self.combination_time = np.full(combinations, np.inf)
        self.combination_place = np.zeros((combinations, 3), dtype=np.int64)
        self.lock = threading.Lock()

    @property
    def threshold(self) -> float:
        """The time above which no plan is among the best; infinity while there are not enough."""
        return float(self.best.time[-1]) if len(self.best) >= self.top else np.inf

    def count(self, feasible: int, pruned: int, rejected: dict[str, int]) -> None:
        """Add to the counts."""
        with self.lock:
            self.feasible += feasible
            self.pruned += pruned
            for name, n in rejected.items():
                if n:
                    self.rejected[name] = self.rejected.get(name, 0) + n

    def see(self, memory: float, place: tuple[int, int, int]) -> None:
        """Look at the plan of least memory among some."""
        with self.lock:
            if self.least is None or (memory, place) < self.least:
                self.least = memory, place

    def add(self, time: Array, memory: Array, numbers: Array, table: int, rows: Array) -> None:
        """Look at some plans.

        Args:
            time: of each combination (a row) at each row of the table (a column); infinite where there is no plan.
            memory: likewise.
            numbers: of the combinations.
            table: number of the table.
            rows: of the table.
        """
        with self.lock:
            limit = self.threshold
            least = time.min(axis=0)
            which = numbers[time.argmin(axis=0)]
            better = least < self.row_time[table][rows]
            self.row_time[table][rows[better]] = least[better]
            self.row_combination[table][rows[better]] = which[better]
            first = time.argmin(axis=1)
            own = time[np.arange(len(numbers)), first]
            quicker = own < self.combination_time[numbers]
            self.combination_time[numbers[quicker]] = own[quicker]
            self.combination_place[numbers[quicker], 0] = numbers[quicker]
            self.combination_place[numbers[quicker], 1] = table
            self.combination_place[numbers[quicker], 2] = rows[first[quicker]]
            flat = np.flatnonzero((time <= limit * (1 + 1e-9)) & np.isfinite(time))
            self.best = self._merged(self.best, _kept(flat, time, memory, numbers, table, rows), self.top)
            if self.front is not None:
                flat = np.flatnonzero(np.isfinite(time))
                self.front = _front(self.front.joined(_kept(flat, time, memory, numbers, table, rows)))

    def _merged(self, kept: Kept, more: Kept, top: int) -> Kept:
        if len(more) > 4 * top:
            more = more.at(more.time <= np.partition(more.time, top - 1)[top - 1] * (1 + 1e-9))
        both = kept.joined(more)
        return both.at(both.order()[:top])


def _kept(flat: Array, time: Array, memory: Array, numbers: Array, table: int, rows: Array) -> Kept:
    member, column = np.divmod(flat, time.shape[1])
    place = np.stack([numbers[member], np.full(len(flat), table), rows[column]], axis=1)
    return Kept(time.ravel()[flat], memory.ravel()[flat], place)


def _front(points: Kept) -> Kept:
    """The points that no other is as good as in both time and memory; of equal points the first."""
    ordered = points.at(points.order())
    memory = rounded(ordered.memory)
    lowest = np.minimum.accumulate(np.concatenate([[np.inf], memory[:-1]]))
    return ordered.at(memory < lowest)
