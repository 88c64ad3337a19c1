"""The way round where exact pieces do not exist: where a rounding depends on a real symbol, as in a generation's steps.

Changes are seen between neighbours of a dense grid and then halved down to the last bit. Two changes of one switch
between two neighbours go unseen, so what comes from here is called "sampled", never "exact".
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..codegen.interpret import arrays, run
from ..codegen.passes import masks
from .cells import RegimeCell
from .numbers import Numbers, numbers

if TYPE_CHECKING:
    from .subject import Subject

POINTS = 2049
CHUNK = 512
HALVINGS = 64
SWITCHES = ("max", "min", "above_one", "at_least")


def rounds(subject: Subject, symbol: str) -> bool:
    """Whether the output rounds something that depends on a symbol."""
    pairs = zip(masks(subject.program, [symbol]), subject.program.instructions, strict=True)
    return any(depends and operation == "ceil_div" for depends, (operation, *_) in pairs)


def stretches(
    subject: Subject, symbol: str, low: float, high: float
) -> list[tuple[RegimeCell, RegimeCell, float, float, float]]:
    """The stretches between all changes that a dense grid shows; as `crossings.crossings` gives them.

    Args:
        subject: what is analysed.
        symbol: the input that varies.
        low: above 0.
        high: above `low`, finite.
    """
    facts = _Facts(subject, symbol)
    xs = np.geomspace(low, high, POINTS)
    xs[0], xs[-1] = low, high
    left, right, row = facts.changes(xs)
    before = facts.pick(left, row)
    for _ in range(HALVINGS):
        middle = np.sqrt(left) * np.sqrt(right)
        inside = (middle > left) & (middle < right)
        if not inside.any():
            break
        same = facts.pick(np.where(inside, middle, left), row) == before
        left, right = np.where(inside & same, middle, left), np.where(inside & ~same, middle, right)
    cuts: list[float] = []
    for cut in sorted(right.tolist()):
        if low < cut < high and not (cuts and math.isclose(cut, cuts[-1], rel_tol=1e-12)):
            cuts.append(cut)
    edges = [low, *cuts, high]
    points = [math.sqrt(a) * math.sqrt(b) for a, b in itertools.pairwise(edges)]
    at = numbers(subject, {symbol: np.array(points)})
    matters = at.matters()
    sides = {position: at.side(position) for position in facts.switches}
    found = []
    for k, point in enumerate(points):
        active = {p for p in facts.switches if (p in matters and matters[p][k]) or p in facts.steps}
        cell = RegimeCell(at, k, {p: int(side[k]) for p, side in sides.items()}, frozenset(active))
        found.append((cell, cell, edges[k], edges[k + 1], point))
    return found


class _Facts:
    """What tells regimes apart at a point: the bounding resource, and the side of every switch."""

    def __init__(self, subject: Subject, symbol: str) -> None:
        self.subject, self.symbol = subject, symbol
        depends = masks(subject.program, [symbol])
        instructions = subject.program.instructions
        self.switches = [at for at, (op, *_) in enumerate(instructions) if op in SWITCHES and depends[at]]
        self.steps = {at for at in self.switches if instructions[at][0] in ("above_one", "at_least")}

    def at(self, xs: Any) -> Numbers:
        return numbers(self.subject, {self.symbol: xs})

    def rows(self, at: Numbers) -> Any:
        return np.stack([at.bounds(self.subject.bearing), *(at.side(position) for position in self.switches)])

    def changes(self, xs: Any) -> tuple[Any, Any, Any]:
        """Neighbours of a grid between which a fact changes that matters, and which."""
        found: list[tuple[Any, Any, Any]] = []
        for start in range(0, len(xs) - 1, CHUNK):
            some = xs[start : start + CHUNK + 1]
            at = self.at(some)
            rows, matters = self.rows(at), at.matters()
            idle, always = np.zeros(at.count, dtype=bool), np.ones(at.count, dtype=bool)
            active = [always]
            active += [always if p in self.steps else matters.get(p, idle) for p in self.switches]
            told = np.stack(active)
            row, column = np.nonzero((np.diff(rows, axis=1) != 0) & (told[:, 1:] | told[:, :-1]))
            found.append((some[column], some[column + 1], row))
        left, right, row = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return left, right, row

    def pick(self, xs: Any, row: Any) -> Any:
        """One fact at each point."""
        if not len(xs):
            return xs
        return self.rows(self.at(xs))[row, np.arange(len(xs))]


def crossings_of(subject: Subject, symbol: str, low: float, high: float, target: float) -> tuple[list[float], Any]:
    """Where the output passes a target between two values, ends included, and what it is on the grid."""
    first, last = low or min(high, 1.0) * 1e-18, high if math.isfinite(high) else max(low, 1.0) * 1e18
    xs = np.geomspace(first, last, POINTS)
    xs[0], xs[-1] = first, last
    if not low:
        xs = np.concatenate([[0.0], xs])

    def output(points: Any) -> Any:
        with np.errstate(all="ignore"):
            values = run(subject.program, subject.values | {symbol: points}, arrays())[subject.position]
        return np.broadcast_to(values, np.shape(points))

    def over(points: Any) -> Any:
        return output(points) - target

    values = output(xs)
    height = values - target
    found = xs[height == 0].tolist()
    at = np.flatnonzero(height[1:] * height[:-1] < 0)
    left, right = xs[at], xs[at + 1]
    sign = np.sign(height[at])
    for _ in range(2 * HALVINGS):
        middle = left + (right - left) / 2
        inside = (middle > left) & (middle < right)
        if not inside.any():
            break
        same = np.sign(over(middle)) == sign
        left, right = np.where(inside & same, middle, left), np.where(inside & ~same, middle, right)
    ends = np.where(np.abs(over(left)) <= np.abs(over(right)), left, right) if len(left) else left
    return sorted({*found, *ends.tolist()}), np.stack([xs, values])
