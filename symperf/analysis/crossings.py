"""Regimes along a real symbol, from the exact pieces of the program."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import numpy as np

from .cells import RegimeCell
from .forms import plain
from .line import Pieces, PiecewiseProgram, join_pieces
from .numbers import numbers
from .roots import between, value_at

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .forms import PowerQuotient
    from .subject import Subject

NEAR = 1e-12
"""Cuts closer than this, relative, are one crossover of several switches."""

Stretch = tuple[RegimeCell, RegimeCell, float, float, float]
"""The first and the last of the cells between two crossovers, the ends, and a point inside.

Between the two only switches change on which nothing depends there."""


def crossings(subject: Subject, symbol: str, low: float, high: float) -> list[Stretch]:
    """The stretches between all crossovers of a subject.

    Args:
        subject: rounds nothing that depends on the symbol.
        symbol: the input that varies.
        low: above 0.
        high: above `low`, finite.

    Raises:
        FormError: along the symbol the quantity is no quotient of sums of powers.
    """
    line = subject.line(symbol, low, high)
    bounds = bounding(line, subject)
    cuts = _apart(sorted({cut for side in line.sides.values() for cut in side.cuts} | set(bounds.cuts)))
    edges = [low, *cuts, high]
    points = [between(a, b) for a, b in itertools.pairwise(edges)]
    at = numbers(subject, {symbol: np.array(points)})
    matters = at.matters()
    cells = []
    for k, point in enumerate(points):
        sides = {position: side.at(point) for position, side in line.sides.items()}
        active = {p for p in sides if p in matters and matters[p][k]} | _steps(subject, sides)
        cells.append(RegimeCell(at, k, sides, frozenset(active)))
    return _merge(cells, [bounds.at(point) for point in points], edges, points)


def bounding(line: PiecewiseProgram, subject: Subject) -> Pieces:
    """The index of the resource with the largest share along a line, or -1 where the quantity is no time."""
    total = line.values[subject.bearing]
    edges = (line.low, *total.cuts, line.high)
    cuts: list[float] = []
    sides: list[int] = []
    for k, form in enumerate(total.parts):
        if k:
            cuts.append(edges[k])
        inside, largest = _largest(line, form, len(subject.names), edges[k], edges[k + 1])
        cuts += inside
        sides += largest
    return join_pieces(cuts, sides)


def _largest(
    line: PiecewiseProgram, form: PowerQuotient, count: int, low: float, high: float
) -> tuple[list[float], list[int]]:
    parts = form.parts(count) if form.over and count else None
    if not parts:
        return [], [-1]
    shares = [plain(part.over) for part in parts]
    points = {cut for k in range(count) for j in range(k) for cut in line.equal(parts[k], parts[j], low, high)}
    inside = sorted(points)
    edges = [low, *inside, high]
    found = []
    for a, b in itertools.pairwise(edges):
        middle = between(a, b)
        sizes = [value_at(share, middle) if share else 0.0 for share in shares]
        found.append(sizes.index(max(sizes)))
    return inside, found


def _steps(subject: Subject, sides: dict[int, int]) -> set[int]:
    """The steps: their derivative is zero everywhere, so they count wherever they are."""
    return {at for at in sides if subject.program.instructions[at][0] in ("above_one", "at_least")}


def _apart(cuts: Sequence[float]) -> list[float]:
    found: list[float] = []
    for cut in cuts:
        if not found or not math.isclose(cut, found[-1], rel_tol=NEAR):
            found.append(cut)
    return found


def _merge(cells: list[RegimeCell], bounds: list[int], edges: list[float], points: list[float]) -> list[Stretch]:
    """Neighbouring cells in one stretch where no switch that matters to either, and no bound, changes."""
    found: list[Stretch] = []
    for k, cell in enumerate(cells):
        if k and bounds[k] == bounds[k - 1]:
            before = cells[k - 1]
            if all(before.sides[at] == cell.sides[at] for at in before.active | cell.active):
                first, _, low, _, at = found[-1]
                found[-1] = (first, cell, low, edges[k + 1], at)
                continue
        found.append((cell, cell, edges[k], edges[k + 1], points[k]))
    return found
