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
    from collections.abc import Mapping, Sequence

    from .crossings import Stretch
    from .subject import Subject

Array = np.ndarray[Any, Any]
Samples = tuple[Array, Array, Array]
"""Points, the index of the largest resource at each (-1 for none), and shares of shape (resources, points)."""
CHUNK = 4096


def stretches(subject: Subject, symbol: str, points: Mapping[str, Array]) -> tuple[list[Stretch], Samples]:
    """The stretches of whole numbers on which nothing changes, and what each resource is responsible for at each.

    Args:
        subject: what is analysed.
        symbol: the whole number.
        points: its values, ascending, and those of every input that moves with it, by name.
    """
    xs = points[symbol]
    nests = Nests(subject, [name for name in points if name in subject.program.inputs])
    firsts = [0]
    bounds, shares = [], []
    for start in range(0, len(xs), CHUNK):
        # One point of the chunk before is looked at again, to see the change between the two.
        first = max(start - 1, 0)
        at = numbers(subject, {name: values[first : start + CHUNK] for name, values in points.items()})
        facts, active = nests.facts(at)
        changed = np.any((np.diff(facts, axis=1) != 0) & (active[:, 1:] | active[:, :-1]), axis=0)
        firsts += (np.flatnonzero(changed) + first + 1).tolist()
        bounds.append(facts[0][start - first :])
        shares.append(at.all_shares()[:, start - first :])
    lasts = [*(first - 1 for first in firsts[1:]), len(xs) - 1]
    ends = [*firsts, *lasts]
    at = numbers(subject, {name: values[ends] for name, values in points.items()})
    matters = at.matters()
    sides = {position: at.side(position) for position in nests.switches}
    told = [*nests.told, *nests.roots]

    def cell(point: int) -> RegimeCell:
        active = {p for p in told if (p in matters and matters[p][point]) or p in nests.steps}
        here = {p: int(side[point]) for p, side in sides.items()}
        return RegimeCell(at, point, here, frozenset(active), frozenset(nests.roots))

    found = [
        (cell(k), cell(k + len(firsts)), float(xs[first]), float(xs[last]), float(xs[first]))
        for k, (first, last) in enumerate(zip(firsts, lasts, strict=True))
    ]
    return found, (xs, np.concatenate(bounds), np.concatenate(shares, axis=1))


class Nests:
    """Which maxima, minima and steps tell regimes of a whole number apart.

    Attributes:
        switches: all of them, by position.
        steps: those that jump.
        told: those whose side tells regimes apart.
        roots: maxima and minima of what is rounded that no other one reads: their resource tells regimes apart.
    """

    def __init__(self, subject: Subject, symbols: Sequence[str]) -> None:
        program = subject.program
        depends = masks(program, symbols)
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
        rows, active = [at.bounds(at.subject.bearing)], [always]
        for position in sorted(self.told):
            rows.append(at.side(position))
            active.append(always if position in self.steps else matters.get(position, idle))
        for root in self.roots:
            rows.append(at.bounds(root))
            active.append(matters.get(root, idle))
        return np.stack(rows), np.stack(active)
