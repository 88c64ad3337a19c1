"""Regimes along a whole number, each of which is evaluated as it is: roundings, waves and all.

Tiles and waves make the choice between two ways to compute flicker from one number to the next. Where a maximum or
minimum compares what is rounded, only the resource that it takes is told apart, not the shape of the tile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..codegen.builder import operands_of
from ..codegen.passes import masks
from .cells import RegimeCell
from .numbers import Numbers, numbers

if TYPE_CHECKING:
    from .subject import Subject

CHUNK = 4096


def stretches(
    subject: Subject, symbol: str, low: int, high: int
) -> list[tuple[RegimeCell, RegimeCell, float, float, float]]:
    """The stretches of whole numbers on which nothing changes, in the form of `crossings.Stretch`."""
    nests = Nests(subject, symbol)
    firsts = [low]
    for start in range(low, high, CHUNK):
        xs = np.arange(start, min(high, start + CHUNK) + 1, dtype=float)
        facts, active = nests.facts(numbers(subject, {symbol: xs}))
        changed = np.any((np.diff(facts, axis=1) != 0) & (active[:, 1:] | active[:, :-1]), axis=0)
        firsts += [int(x) for x in xs[1:][changed]]
    lasts = [*(first - 1 for first in firsts[1:]), high]
    at = numbers(subject, {symbol: np.array([*firsts, *lasts], dtype=float)})
    matters = at.matters()
    sides = {position: at.side(position) for position in nests.switches}
    told = [*nests.told, *nests.roots]

    def cell(point: int) -> RegimeCell:
        active = {p for p in told if (p in matters and matters[p][point]) or p in nests.steps}
        here = {p: int(side[point]) for p, side in sides.items()}
        return RegimeCell(at, point, here, frozenset(active), frozenset(nests.roots))

    return [
        (cell(k), cell(k + len(firsts)), float(first), float(last), float(first))
        for k, (first, last) in enumerate(zip(firsts, lasts, strict=True))
    ]


class Nests:
    """Which maxima, minima and steps tell regimes of a whole number apart.

    Attributes:
        switches: all of them, by position.
        steps: those that jump.
        told: those whose side tells regimes apart.
        roots: maxima and minima of what is rounded that no other one reads: their resource tells regimes apart.
    """

    def __init__(self, subject: Subject, symbol: str) -> None:
        program = subject.program
        depends = masks(program, [symbol])
        rounded, joins = [False] * len(program), [False] * len(program)
        inner: set[int] = set()
        self.switches: list[int] = []
        self.steps: set[int] = set()
        self.told: set[int] = set()
        self.roots: list[int] = []
        for at, (operation, *_) in enumerate(program.instructions):
            operands = operands_of(program, at)
            rounded[at] = any(rounded[o] for o in operands) or (operation == "ceil_div" and depends[at] != 0)
            joins[at] = operation == "let" or any(joins[o] for o in operands)
            if operation in ("max", "min", "above_one", "at_least"):
                self.switches.append(at)
            if operation in ("above_one", "at_least"):
                self.steps.add(at)
            if operation in ("max", "min") and rounded[at] and not joins[at]:
                inner.update(operands)
                self.roots.append(at)
        nested = set(self.roots)
        self.roots = [at for at in self.roots if at not in inner]
        self.told = {at for at in self.switches if at not in nested and depends[at]} | (self.steps - nested)

    def facts(self, at: Numbers) -> tuple[Any, Any]:
        """What tells the points apart, and where it matters, both of shape (facts, points)."""
        matters = at.matters()
        idle, always = np.zeros(at.count, dtype=bool), np.ones(at.count, dtype=bool)
        rows, active = [at.bounds(at.subject.position)], [always]
        for position in sorted(self.told):
            rows.append(at.side(position))
            active.append(always if position in self.steps else matters.get(position, idle))
        for root in self.roots:
            rows.append(at.bounds(root))
            active.append(matters.get(root, idle))
        return np.stack(rows), np.stack(active)
