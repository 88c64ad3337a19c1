"""What a kernel keeps of a sweep, instead of every point: the best, counts, a histogram, a Pareto front.

A reduction counts only points where every constraint is at least zero. Of equal points it keeps the one of the smallest
flat index, so that no order of loops, block size or number of threads changes an answer; undefined values (NaN) are
never among the best. Each reduction has a template, `templates/numba_<kind>.j2`, that updates its state in a kernel,
and a method that does the same with NumPy.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    State = tuple[np.ndarray[Any, Any], ...]


@dataclass(frozen=True)
class Points:
    """Points of a sweep, in the order of the reduction.

    Attributes:
        flat: index of each in the caller's axis order, the last axis fastest.
        indices: by axis the index on it (of a table of scattered points: its row).
        values: by output, as the reference interpreter computes it.
    """

    flat: np.ndarray[Any, Any]
    indices: dict[str, np.ndarray[Any, Any]]
    values: dict[str, np.ndarray[Any, Any]]

    def __len__(self) -> int:
        return len(self.flat)


@dataclass(frozen=True)
class CountedPoints(Points):
    """Points, and what the same pass counted.

    Attributes:
        feasible: points of the sweep where every constraint holds.
        rejected: by position in `constraints` the points that this one was the first to reject.
    """

    feasible: int
    rejected: dict[int, int]


@dataclass(frozen=True)
class Counts:
    """How many points are feasible, and how many each constraint was the first to reject."""

    points: int
    feasible: int
    rejected: dict[str, int]


@dataclass(frozen=True)
class Bins:
    """How often an output lies in each bin.

    Attributes:
        edges: of the bins, one more than there are.
        counts: feasible points with edge <= value < next edge; the last bin holds its upper edge too.
        below: feasible points below the first edge.
        above: feasible points above the last edge.
        undefined: feasible points of no value (NaN).
        rejected: points that each constraint was the first to reject.
    """

    edges: np.ndarray[Any, Any]
    counts: np.ndarray[Any, Any]
    below: int
    above: int
    undefined: int
    rejected: dict[str, int]


class Reduction(ABC):
    """A way to reduce a sweep.

    Attributes:
        kind: of the template that does it in a kernel.
    """

    kind: str

    @property
    @abstractmethod
    def reads(self) -> tuple[str, ...]:
        """The outputs it looks at."""

    @abstractmethod
    def state(self, constraints: int) -> State:
        """Arrays that hold what has been found so far: of nothing yet."""

    @abstractmethod
    def merged(self, states: Sequence[State]) -> State:
        """One state of several, whatever their order."""

    @abstractmethod
    def absorb(self, state: State, values: Sequence[np.ndarray[Any, Any]], reason: Any, flat: Any) -> State:
        """A state with more points in it.

        Args:
            state: what has been found before.
            values: of each output in `reads`, 1-D.
            reason: 0 where feasible, else one more than the position of the first constraint that fails.
            flat: index of each point.
        """

    def texts(self, offsets: Mapping[str, int]) -> dict[str, Any]:
        """What the template asks for, given the offset of the row of each output."""
        return {"keys": [offsets[name] for name in self.reads], "counted": False}

    def enlarged(self, state: State) -> State | None:
        """A larger state if the last points did not fit in this one and have to be seen again."""
        del state
        return None

    def places(self, state: State) -> np.ndarray[Any, Any] | None:
        """The flat indices of the points found, in order; None where the result is not made of points."""
        del state
        return None

    def result(self, state: State, constraints: Sequence[str]) -> Any:
        """The result of a reduction that is not made of points."""
        raise NotImplementedError


@dataclass(frozen=True)
class TopK(Reduction):
    """The `k` feasible points of the smallest (or largest) output, the best first."""

    output: str
    k: int
    largest: bool = False
    kind = "top"

    def __post_init__(self) -> None:
        if isinstance(self.k, bool) or not isinstance(self.k, int) or self.k < 1:
            raise ValueError(f"top: found k = {self.k!r}, expected a whole number from 1")

    @property
    def reads(self) -> tuple[str, ...]:  # noqa: D102
        return (self.output,)

    def texts(self, offsets: Mapping[str, int]) -> dict[str, Any]:  # noqa: D102
        return {"key": offsets[self.output], "sign": "-" if self.largest else "", "counted": False}

    def state(self, constraints: int) -> State:  # noqa: ARG002, D102
        return np.zeros(self.k), np.zeros(self.k, np.int64), np.zeros(1, np.int64)

    def merged(self, states: Sequence[State]) -> State:  # noqa: D102
        value = np.concatenate([heap[: count[0]] for heap, _, count in states])
        flat = np.concatenate([places[: count[0]] for _, places, count in states])
        best = np.lexsort((flat, value))[: self.k]
        return value[best], flat[best], np.array([len(best)])

    def absorb(self, state: State, values: Sequence[np.ndarray[Any, Any]], reason: Any, flat: Any) -> State:  # noqa: D102
        value = -values[0] if self.largest else values[0]
        good = (reason == 0) & (value == value)
        value, flat = value[good], flat[good]
        if len(value) > 4 * self.k:
            near = value <= np.partition(value, self.k - 1)[self.k - 1]
            value, flat = value[near], flat[near]
        return self.merged([state, (value, flat, np.array([len(value)]))])

    def places(self, state: State) -> np.ndarray[Any, Any]:  # noqa: D102
        return state[1][: state[2][0]]


def ArgMin(output: str) -> TopK:  # noqa: N802
    """The feasible point of the smallest output: `Points` of one point, or of none."""
    return TopK(output, 1)


def ArgMax(output: str) -> TopK:  # noqa: N802
    """The feasible point of the largest output: `Points` of one point, or of none."""
    return TopK(output, 1, largest=True)


@dataclass(frozen=True)
class Count(Reduction):
    """How many points are feasible, and which constraint first rejects each of the others."""

    kind = "count"

    @property
    def reads(self) -> tuple[str, ...]:  # noqa: D102
        return ()

    def state(self, constraints: int) -> State:  # noqa: D102
        return (np.zeros(constraints + 1, np.int64),)

    def merged(self, states: Sequence[State]) -> State:  # noqa: D102
        return (np.sum([state[0] for state in states], axis=0),)

    def absorb(self, state: State, values: Sequence[np.ndarray[Any, Any]], reason: Any, flat: Any) -> State:  # noqa: ARG002, D102
        return (state[0] + np.bincount(reason, minlength=len(state[0])),)

    def result(self, state: State, constraints: Sequence[str]) -> Counts:  # noqa: D102
        feasible, *rejected = (int(n) for n in state[0])
        return Counts(feasible + sum(rejected), feasible, dict(zip(constraints, rejected, strict=True)))


@dataclass(frozen=True)
class Histogram(Reduction):
    """How many feasible points have an output between each two edges, which rise."""

    output: str
    edges: tuple[float, ...]
    kind = "histogram"

    def __post_init__(self) -> None:
        edges = tuple(float(edge) for edge in self.edges)
        if len(edges) < 2 or not all(a < b for a, b in pairwise(edges)):
            raise ValueError("histogram: expected two edges or more, each above the one before")
        object.__setattr__(self, "edges", edges)

    @property
    def reads(self) -> tuple[str, ...]:  # noqa: D102
        return (self.output,)

    def state(self, constraints: int) -> State:  # noqa: D102
        return np.array(self.edges), np.zeros(len(self.edges) + 2, np.int64), np.zeros(constraints + 1, np.int64)

    def merged(self, states: Sequence[State]) -> State:  # noqa: D102
        first = states[0][0]
        return first, np.sum([s[1] for s in states], axis=0), np.sum([s[2] for s in states], axis=0)

    def absorb(self, state: State, values: Sequence[np.ndarray[Any, Any]], reason: Any, flat: Any) -> State:  # noqa: ARG002, D102
        edges, counts, rejected = state
        value = values[0][reason == 0]
        known = value[value == value]
        bins = np.searchsorted(edges, known, side="right")
        bins[known == edges[-1]] = len(edges) - 1
        found = np.bincount(bins, minlength=len(counts))
        found[-1] = len(value) - len(known)
        return edges, counts + found, rejected + np.bincount(reason, minlength=len(rejected))

    def result(self, state: State, constraints: Sequence[str]) -> Bins:  # noqa: D102
        edges, counts, rejected = state
        names = dict(zip(constraints, (int(n) for n in rejected[1:]), strict=True))
        return Bins(edges, counts[1:-2], int(counts[0]), int(counts[-2]), int(counts[-1]), names)


@dataclass(frozen=True)
class Pareto(Reduction):
    """The feasible points that no other is at least as good as in every one of two or three outputs, all minimised.

    They are sorted by the first output, then by the next. Of points that agree in all, one is kept.
    """

    outputs: tuple[str, ...]
    kind = "pareto"

    def __post_init__(self) -> None:
        object.__setattr__(self, "outputs", tuple(self.outputs))
        if len(set(self.outputs)) != len(self.outputs) or len(self.outputs) not in (2, 3):
            raise ValueError(f"pareto: expected two or three different outputs, found {', '.join(self.outputs)}")

    @property
    def reads(self) -> tuple[str, ...]:  # noqa: D102
        return self.outputs

    def state(self, constraints: int) -> State:  # noqa: ARG002, D102
        room = 1024
        return np.zeros((room, len(self.outputs))), np.zeros(room, np.int64), np.zeros(2, np.int64)

    def enlarged(self, state: State) -> State | None:  # noqa: D102
        front, places, count = state
        if not count[1]:
            return None
        count[1] = 0
        return np.concatenate([front, np.zeros_like(front)]), np.concatenate([places, np.zeros_like(places)]), count

    def merged(self, states: Sequence[State]) -> State:  # noqa: D102
        front = np.concatenate([s[0][: s[2][0]] for s in states])
        flat = np.concatenate([s[1][: s[2][0]] for s in states])
        return _front(front, flat)

    def absorb(self, state: State, values: Sequence[np.ndarray[Any, Any]], reason: Any, flat: Any) -> State:  # noqa: D102
        rows = np.stack(values, axis=1)
        good = (reason == 0) & (rows == rows).all(axis=1)
        front, places, count = state
        old = count[0]
        return _front(np.concatenate([front[:old], rows[good]]), np.concatenate([places[:old], flat[good]]))

    def places(self, state: State) -> np.ndarray[Any, Any]:  # noqa: D102
        return state[1][: state[2][0]]


class Counted(Reduction):
    """A reduction to points that counts the feasible points and the others in the same pass.

    Args:
        inner: the reduction.

    Raises:
        ValueError: a reduction whose result is not made of points, or none.
    """

    def __init__(self, inner: Reduction | None) -> None:
        if not isinstance(inner, TopK | Pareto):
            raise ValueError(f"count: found the reduction {inner!r}, expected one to points")
        self.inner = inner
        self.kind = inner.kind

    @property
    def reads(self) -> tuple[str, ...]:  # noqa: D102
        return self.inner.reads

    def texts(self, offsets: Mapping[str, int]) -> dict[str, Any]:  # noqa: D102
        return {**self.inner.texts(offsets), "counted": True}

    def state(self, constraints: int) -> State:  # noqa: D102
        return (*self.inner.state(constraints), np.zeros(constraints + 1, np.int64))

    def merged(self, states: Sequence[State]) -> State:  # noqa: D102
        counts: np.ndarray[Any, Any] = np.sum([state[-1] for state in states], axis=0)
        return (*self.inner.merged([state[:-1] for state in states]), counts)

    def absorb(self, state: State, values: Sequence[np.ndarray[Any, Any]], reason: Any, flat: Any) -> State:  # noqa: D102
        counts = state[-1] + np.bincount(reason, minlength=len(state[-1]))
        return (*self.inner.absorb(state[:-1], values, reason, flat), counts)

    def enlarged(self, state: State) -> State | None:  # noqa: D102
        larger = self.inner.enlarged(state[:-1])
        return None if larger is None else (*larger, state[-1])

    def places(self, state: State) -> np.ndarray[Any, Any] | None:  # noqa: D102
        return self.inner.places(state[:-1])

    def counts(self, state: State) -> tuple[int, dict[int, int]]:
        """Feasible points, and points by the first constraint that rejects them."""
        feasible, *rejected = (int(n) for n in state[-1])
        return feasible, dict(enumerate(rejected))


def _front(rows: np.ndarray[Any, Any], flat: np.ndarray[Any, Any]) -> State:
    """The rows that no other row dominates, sorted, each different."""
    order = np.lexsort((flat, *rows.T[::-1]))
    rows, flat = rows[order], flat[order]
    kept: list[int] = []
    left = np.arange(len(rows))
    while len(left):
        kept.append(int(left[0]))  # nothing after it in this order can dominate it
        left = left[~(rows[left] >= rows[left[0]]).all(axis=1)]
    return rows[kept], flat[kept], np.array([len(kept), 0])
