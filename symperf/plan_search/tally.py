"""What a search keeps while it runs: the best plans, the best of every kind, counts, and the Pareto front."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    Array = np.ndarray[Any, Any]

T = TypeVar("T")

DIGITS = 11
"""Significant digits to which times are compared: forms of equal value may differ in the last places."""


@dataclass
class Kept:
    """Plans by what they cost and where they are.

    Attributes:
        time: seconds of a step.
        memory: bytes on the fullest device.
        place: of each plan the number of its combination, of its table, and its row.
        score: what plans are ranked by, lower is better: the time, or the joules of a step.
    """

    time: Array = field(default_factory=lambda: np.empty(0))
    memory: Array = field(default_factory=lambda: np.empty(0))
    place: Array = field(default_factory=lambda: np.empty((0, 3), dtype=np.int64))
    score: Array = field(default_factory=lambda: np.empty(0))

    def __len__(self) -> int:
        return len(self.time)

    def joined(self, other: Kept) -> Kept:
        """The plans of two lists, one after the other."""
        return Kept(
            np.concatenate([self.time, other.time]),
            np.concatenate([self.memory, other.memory]),
            np.concatenate([self.place, other.place]),
            np.concatenate([self.score, other.score]),
        )

    def at(self, chosen: Any) -> Kept:
        """Some of them."""
        return Kept(self.time[chosen], self.memory[chosen], self.place[chosen], self.score[chosen])

    def order(self) -> Array:
        """From the best on; of equally good ones first that of the least memory, then in the order of the search."""
        return np.lexsort((*self.place.T[::-1], round_values(self.memory), round_values(self.score)))


def round_values(values: Array) -> Array:
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
        self.row_score = [np.full(n, np.inf) for n in lengths]
        self.row_combination = [np.zeros(n, dtype=np.int64) for n in lengths]
        self.least: tuple[float, tuple[int, int, int]] | None = None
        """Bytes and place of the plan that needs the least memory, whether it fits or not."""
        self.combination_score = np.full(combinations, np.inf)
        self.combination_place = np.zeros((combinations, 3), dtype=np.int64)
        self.lock = threading.Lock()

    @property
    def threshold(self) -> float:
        """The score above which no plan is among the best; infinity while there are not enough."""
        return float(self.best.score[-1]) if len(self.best) >= self.top else np.inf

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

    def add(
        self, time: Array, memory: Array, numbers: Array, table: int, rows: Array, score: Array | None = None
    ) -> None:
        """Look at some plans.

        Args:
            time: of each combination (a row) at each row of the table (a column); infinite where there is no plan.
            memory: likewise.
            numbers: of the combinations.
            table: number of the table.
            rows: of the table.
            score: likewise, what they are ranked by; by default the time.
        """
        score = time if score is None else score
        with self.lock:
            limit = self.threshold
            least = score.min(axis=0)
            which = numbers[score.argmin(axis=0)]
            self._rows(table, rows, least, which)
            first = score.argmin(axis=1)
            place = np.stack([numbers, np.full(len(numbers), table), rows[first]], axis=1)
            self._combinations(numbers, score[np.arange(len(numbers)), first], place)
            flat = np.flatnonzero((score <= limit * (1 + 1e-9)) & np.isfinite(score))
            self.best = self._merged(self.best, _keep(flat, time, memory, numbers, table, rows, score), self.top)
            if self.front is not None:
                flat = np.flatnonzero(np.isfinite(time))
                self.front = _front(self.front.joined(_keep(flat, time, memory, numbers, table, rows, time)))

    def _rows(self, table: int, rows: Array, score: Array, which: Array) -> None:
        """The best plan of each row; of equally good ones the first combination, whoever comes first."""
        known, number = self.row_score[table], self.row_combination[table]
        better = (score < known[rows]) | ((score == known[rows]) & (which < number[rows]))
        known[rows[better]] = score[better]
        number[rows[better]] = which[better]

    def _combinations(self, numbers: Array, score: Array, place: Array) -> None:
        """The best plan of each combination, whose rows are of one table; of equally good ones the first row."""
        known, at = self.combination_score, self.combination_place
        better = (score < known[numbers]) | ((score == known[numbers]) & (place[:, 2] < at[numbers, 2]))
        known[numbers[better]] = score[better]
        at[numbers[better]] = place[better]

    def merge(self, other: Tally) -> None:
        """Add what another tally of the same space has seen; the order of merging does not matter."""
        self.count(other.feasible, other.pruned, other.rejected)
        if other.least is not None:
            self.see(*other.least)
        with self.lock:
            for table, score in enumerate(other.row_score):
                rows = np.flatnonzero(np.isfinite(score))
                self._rows(table, rows, score[rows], other.row_combination[table][rows])
            numbers = np.flatnonzero(np.isfinite(other.combination_score))
            self._combinations(numbers, other.combination_score[numbers], other.combination_place[numbers])
            self.best = self._merged(self.best, other.best, self.top)
            if self.front is not None and other.front is not None:
                self.front = _front(self.front.joined(other.front))

    def __getstate__(self) -> dict[str, Any]:
        """For other processes: of rows only those that have a plan."""
        state = {name: value for name, value in self.__dict__.items() if name != "lock"}
        found = [np.flatnonzero(np.isfinite(score)) for score in self.row_score]
        state["row_score"] = [(len(s), rows, s[rows]) for s, rows in zip(self.row_score, found, strict=True)]
        state["row_combination"] = [c[rows] for c, rows in zip(self.row_combination, found, strict=True)]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, lock=threading.Lock())
        self.row_score = [np.full(n, np.inf) for n, _, _ in state["row_score"]]
        self.row_combination = [np.zeros(n, dtype=np.int64) for n, _, _ in state["row_score"]]
        for table, (_, rows, score) in enumerate(state["row_score"]):
            self.row_score[table][rows] = score
            self.row_combination[table][rows] = state["row_combination"][table]

    def _merged(self, kept: Kept, more: Kept, top: int) -> Kept:
        if len(more) > 4 * top:
            more = more.at(more.score <= np.partition(more.score, top - 1)[top - 1] * (1 + 1e-9))
        both = kept.joined(more)
        return both.at(both.order()[:top])


def _keep(flat: Array, time: Array, memory: Array, numbers: Array, table: int, rows: Array, score: Array) -> Kept:
    member, column = np.divmod(flat, time.shape[1])
    place = np.stack([numbers[member], np.full(len(flat), table), rows[column]], axis=1)
    return Kept(time.ravel()[flat], memory.ravel()[flat], place, score.ravel()[flat])


def _front(points: Kept) -> Kept:
    """The points that no other is as good as in both time and memory; of equal points the first."""
    ordered = points.at(points.order())
    memory = round_values(ordered.memory)
    lowest = np.minimum.accumulate(np.concatenate([[np.inf], memory[:-1]]))
    return ordered.at(memory < lowest)


def not_dominated(points: Iterable[T], values: Callable[[T], tuple[float, ...]]) -> list[T]:
    """The points that no other is as good as along every axis; of equal ones the first.

    Sorted from the best along the first axis, and among equals along the next, no point is dominated by a later one, so
    that each is compared with those of the front alone.

    Args:
        points: of any kind.
        values: of a point along the axes, less is better.
    """
    kept: list[tuple[tuple[float, ...], T]] = []
    for mine, each in sorted(((values(each), each) for each in points), key=lambda pair: pair[0]):
        if not any(all(a <= b for a, b in zip(other, mine, strict=True)) for other, _ in reversed(kept)):
            kept.append((mine, each))
    return [each for _, each in kept]
