"""Where each statement of a grid goes: loops over all axes but one, and short vector loops over a block of that one.

A value that no vector loop decides is a scalar of the outermost loop that it can be in. A value that changes with the
innermost axis is computed in a vector loop there, for a block of points, and kept in an array if a loop further in
reads it: so it is computed once for all the passes of the loops that do not change it. A vector loop that calls the C
library is not vectorised by compilers, so calls have loops of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from ..builder import FREE, operands_of
from ..passes import choose_order, masks

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..program import Program

CALLS = frozenset({"log2", "power"})
"""Operations for which compilers call the C library."""

WEIGHTS = {"divide": 4, "ceil_div": 5, "sqrt": 5, "log2": 40, "power": 100}
"""What operations cost, in additions."""
SCATTER = 20
"""What it costs, in additions of vectors, to store a result apart from its neighbours."""
LANES = 4
"""Points that a vector instruction computes at once."""


@dataclass(frozen=True)
class Segment:
    """One vector loop.

    Attributes:
        computes: instructions, in order; what is in `loads` is read from its array.
        loads: instructions that an earlier segment has stored.
        stores: instructions whose value goes to an array.
        calls: instructions to be computed next, in place, from the value of their first operand in their own array.
    """

    computes: tuple[int, ...]
    loads: frozenset[int]
    stores: tuple[int, ...]
    calls: tuple[int, ...]


@dataclass(frozen=True)
class Depth:
    """What is done inside some number of loops: scalars, then vector loops."""

    scalars: tuple[int, ...]
    segments: tuple[Segment, ...]


def place(program: Program, outer: Sequence[str], inner: Sequence[str]) -> list[Depth]:
    """What is done before the first loop, inside it, inside the second, ...; the last segment computes the outputs.

    The scalars of the first depth may go before the loop over blocks as well.

    Args:
        program: what to compute: all its outputs.
        outer: axes with a loop each, from the outermost.
        inner: inputs that vary together in vector loops.
    """
    return _Placement(program, outer, inner).depths()


def nest_order(program: Program, sizes: Mapping[str, int], contiguous: str | None = None) -> tuple[str, ...]:
    """The order of axes, the vector loops' axis last, that `place` makes the least work of.

    Every axis is tried as the last one, with the others in the order that computes the fewest operations.

    Args:
        program: what to compute.
        sizes: points by axis; at least one axis.
        contiguous: the axis along which results are stored side by side, where they are stored at all.
    """
    weights = [0 if operation in FREE else WEIGHTS.get(operation, 1) for operation, *_ in program.instructions]
    options = []
    for k, last in enumerate(sizes):
        outer = choose_order(program, {axis: size for axis, size in sizes.items() if axis != last})
        volumes = [prod(sizes[axis] for axis in outer[:depth]) for depth in range(len(sizes))]
        block = max(1.0, sizes[last] / LANES)
        levels = zip(weights, masks(program, outer), masks(program, [last]), strict=True)
        work = sum(weight * volumes[mask.bit_length()] * (block if vector else 1.0) for weight, mask, vector in levels)
        if contiguous not in (None, last):
            work += SCATTER * len(program.outputs) * prod(sizes.values())
        options.append((work, -k, (*outer, last)))
    return min(options)[2]


class _Placement:
    def __init__(self, program: Program, outer: Sequence[str], inner: Sequence[str]) -> None:
        self.program = program
        self.last = len(outer)
        self.level = [mask.bit_length() for mask in masks(program, outer)]
        self.vector = [mask > 0 for mask in masks(program, inner)]
        self.kept = self._kept()
        self.calls: set[int] = set()
        self.stage = self._stages()

    def depths(self) -> list[Depth]:
        return [
            Depth(
                tuple(p for p in range(len(self.program)) if self.level[p] == level and not self.vector[p]),
                tuple(self._segments(level)),
            )
            for level in range(self.last + 1)
        ]

    def _kept(self) -> set[int]:
        """Vector values that a deeper level reads; inputs are read where they are."""
        kept = {p for p in self.program.outputs.values() if self.level[p] < self.last}
        for position in range(len(self.program)):
            if self.vector[position]:
                kept |= {p for p in operands_of(self.program, position) if self.level[p] < self.level[position]}
        return {p for p in kept if self.vector[p] and self.program.instructions[p][0] != "input"}

    def _stages(self) -> list[int]:
        """How many loops of calls of its own level each vector value comes after; a call counts itself."""
        stage = [0] * len(self.program)
        for position, (operation, *_) in enumerate(self.program.instructions):
            operands = operands_of(self.program, position)
            same = [stage[p] for p in operands if self.vector[p] and self.level[p] == self.level[position]]
            stage[position] = max(same, default=0)
            if operation in CALLS and self.vector[operands[0]] and not any(self.vector[p] for p in operands[1:]):
                self.calls.add(position)
                stage[position] += 1
        return stage

    def _segments(self, level: int) -> list[Segment]:
        here = sorted(p for p in self.calls if self.level[p] == level)
        segments = []
        for stage in sorted({self.stage[p] for p in here}):
            calls = tuple(p for p in here if self.stage[p] == stage)
            segments.append(self._segment({operands_of(self.program, p)[0] for p in calls}, level, (), calls))
        stores = tuple(sorted(p for p in self.kept if self.level[p] == level and p not in self.calls))
        if level == self.last:
            segments.append(self._segment(set(self.program.outputs.values()), level, (), ()))
        elif stores:
            segments.append(self._segment(set(stores), level, stores, ()))
        return segments

    def _segment(self, roots: set[int], level: int, stores: tuple[int, ...], calls: tuple[int, ...]) -> Segment:
        """What the roots need that is a vector, as far as it is not stored by then."""
        needed = {p for p in roots if self.vector[p]}
        loads = set()
        for position in range(len(self.program) - 1, -1, -1):
            if position not in needed:
                continue
            if position in self.calls or (position in self.kept and self.level[position] < level):
                loads.add(position)
            else:
                needed |= {p for p in operands_of(self.program, position) if self.vector[p]}
        return Segment(tuple(sorted(needed)), frozenset(loads), stores, calls)
