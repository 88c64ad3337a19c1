"""Which of two quantities is larger at each whole number that both runs accept.

Few numbers, and degrees, are bound one by one. Of many, the program of each side is run on all at once; which numbers
are legal is learned from trials, and every number at which the order is said to change is bound in the end.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ..common.errors import InputError
from .cross_real import order
from .cross_sides import DIVISORS, divisors_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .cross_sides import Side

ONE_BY_ONE = 512
"""Numbers that are bound one by one without a thought."""
MOST_BOUND = 4096
"""The most that are."""
MOST = 2_000_000
"""Numbers that programs are run on at once."""
TRIED = 16
"""Numbers that are bound to see which are legal."""


@dataclass
class Values:
    """Two sides at legal whole numbers.

    Attributes:
        xs: the numbers, in order.
        a: the first side there.
        b: the second.
        skipped: why a number is not among them; where not all were tried, of some.
        told: what holds of all that are skipped, where not all were tried.
        bound: whether every number was bound.
    """

    xs: Any
    a: Any
    b: Any
    skipped: dict[int, str] = field(default_factory=dict)
    told: str = ""
    bound: bool = True

    @property
    def signs(self) -> Any:
        """Which side is larger at each number."""
        return order(self.a, self.b)


class Trials:
    """Bound runs of both sides, each number tried once."""

    def __init__(self, a: Side, b: Side) -> None:
        self.sides = (a, b)
        self.refused: dict[int, str] = {}
        self.runs: dict[int, tuple[Any, Any]] = {}

    def legal(self, n: int) -> bool:
        """Whether both runs accept a number."""
        if n in self.runs or n in self.refused:
            return n in self.runs
        found = []
        for side in self.sides:
            try:
                found.append(side.bind(n))
            except InputError as error:
                self.refused[n] = f"{side.label}: {error}" if side.choice else str(error)
                return False
        self.runs[n] = (found[0], found[1])
        return True

    def values(self) -> Values:
        """Both sides at every legal number that was tried."""
        xs = sorted(self.runs)
        a, b = (side.of_runs([self.runs[x][k] for x in xs]) for k, side in enumerate(self.sides))
        good = np.isfinite(a) & np.isfinite(b)
        for x, fine in zip(xs, good, strict=True):
            if not fine:
                self.refused[x] = "a side is no finite number"
        return Values(np.array(xs, dtype=float)[good], a[good], b[good], dict(sorted(self.refused.items())))


def values_along(a: Side, b: Side, low: int, high: int) -> Values:
    """Both sides at the whole numbers of a range that both runs accept.

    Raises:
        InputError: too many numbers.
    """
    trials, symbol, count = Trials(a, b), a.symbol or b.symbol or "", high - low + 1
    if count <= ONE_BY_ONE:
        return _bound(trials, range(low, high + 1))
    if symbol in DIVISORS:
        sizes = {n for side in (a, b) for n in divisors_of(side.run)}
        found = _bound(trials, sorted(n for n in sizes if low <= n <= high))
        found.told = f"values of {symbol} that divide no size of the run were not tried"
        return found
    if count <= MOST and a.faithful and b.faithful:
        found_at_once = _at_once(trials, low, high)
        if found_at_once is not None:
            return found_at_once
    if count > MOST_BOUND:
        raise InputError(f"cross: {count} values of {symbol} to be tried one by one, expected at most {MOST_BOUND}")
    return _bound(trials, range(low, high + 1))


def _bound(trials: Trials, numbers: Iterable[int]) -> Values:
    for n in numbers:
        trials.legal(n)
    return trials.values()


def _at_once(trials: Trials, low: int, high: int) -> Values | None:
    """Both sides at the multiples that are legal, from their programs; nothing where trials do not show which are."""
    first = next((n for n in range(low, min(high, low + MOST_BOUND) + 1) if trials.legal(n)), None)
    second = (
        None
        if first is None
        else next((n for n in range(first + 1, min(high, first + MOST_BOUND) + 1) if trials.legal(n)), None)
    )
    if first is None or second is None:
        return _bound(trials, ()) if high - low < MOST_BOUND else None
    step = second - first
    last = first + (high - first) // step * step
    if not trials.legal(last):  # the legal ones end: halve to the last of them
        inside, outside = 0, (last - first) // step
        while outside - inside > 1:
            middle = (inside + outside) // 2
            inside, outside = (middle, outside) if trials.legal(first + middle * step) else (inside, middle)
        last = first + inside * step
    xs = np.arange(first, last + 1, step, dtype=float)
    chosen = np.unique(np.linspace(0, len(xs) - 1, TRIED).astype(int))
    if not all(trials.legal(int(xs[k])) for k in chosen):
        return None
    beside = [int(xs[k]) + shift for k in chosen for shift in (1, step // 2) if 0 < shift < step]
    if any(trials.legal(n) for n in beside if n <= high):
        return None
    a, b = (side.values(xs) for side in trials.sides)
    wanted = [trials.sides[side].of_runs([trials.runs[int(xs[k])][side] for k in chosen]) for side in (0, 1)]
    if not all(
        np.allclose(found[chosen], want, rtol=1e-11, atol=0) for found, want in zip((a, b), wanted, strict=True)
    ):
        return None
    # every number beside a change is bound: what is said there is what the runs say
    signs = order(a, b)
    edges = np.flatnonzero(np.diff(signs))
    if len(edges) <= MOST_BOUND // 8:
        near = sorted({*edges.tolist(), *(edges + 1).tolist()})
        if not all(trials.legal(int(xs[k])) for k in near):
            return None
        for side in (0, 1):
            told = trials.sides[side].of_runs([trials.runs[int(xs[k])][side] for k in near])
            if not np.allclose((a, b)[side][near], told, rtol=1e-11, atol=0):
                return None
    told = "" if step == 1 else f"only multiples of {step} from {first:.0f} are legal"
    if last + step <= high:
        told += f"{'; ' if told else ''}{trials.sides[0].symbol or trials.sides[1].symbol} ends at {last}"
    return Values(xs, a, b, dict(sorted(trials.refused.items())), told, bound=False)


@dataclass(frozen=True)
class Turn:
    """A change of the order along whole numbers, or several that lie within a band.

    Attributes:
        before: the last number of the old order, before the first change.
        low: the first number of another order.
        at: the first number of the new order, from which it stays.
        signs: which side is larger before and after; equal where the order changes back and forth and stays.
        changes: how many changes are taken together.
    """

    before: float
    low: float
    at: float
    signs: tuple[int, int]
    changes: int


def turns(found: Values, band: float) -> list[Turn]:
    """The changes of the order; those between which the two differ by less than a band are one."""
    signs = found.signs
    edges = np.flatnonzero(np.diff(signs)).tolist()
    apart = np.abs(found.a - found.b) > band * np.maximum(np.abs(found.a), np.abs(found.b))
    groups: list[list[int]] = []
    for edge in edges:
        if groups and not apart[groups[-1][-1] + 1 : edge + 1].any():
            groups[-1].append(edge)
        else:
            groups.append([edge])
    return [
        Turn(
            float(found.xs[group[0]]),
            float(found.xs[group[0] + 1]),
            float(found.xs[group[-1] + 1]),
            (int(signs[group[0]]), int(signs[group[-1] + 1])),
            len(group),
        )
        for group in groups
    ]
