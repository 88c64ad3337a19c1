"""A cell of a sweep as a compiled kernel over its grid: every point stored, or reduced to the best.

Which cells are compiled follows from the sweep alone, never from a clock or from what a cache holds: a kernel groups
sums by axis, so its last bits may differ from NumPy's, and a sweep that is resumed has to be the one that was begun.
"""

from __future__ import annotations

import math
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from ..codegen.builder import rewrite
from ..codegen.kernel import GridKernel
from ..codegen.store import Store
from ..common.artefacts import cache_folder
from .chunks import block_shape

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..codegen.builder import Builder
    from ..codegen.program import Program
    from ..codegen.reduce import BestPoints, TopK
    from .axes import Axis
    from .cells import Cell

    Array = np.ndarray[Any, Any]

COMPILED = 10_000_000
"""Points of a cell from which a kernel stores it: where its compilation, some seconds, costs no more than it saves."""
AT_ONCE = 1 << 20
"""Points that a kernel stores in one call, about: what it computes before its loops should not weigh."""
SLOTS = 256
"""Positions of a zipped axis that a kernel knows at once."""
LONGEST = 16_384
"""Positions of another axis in one call: short enough for a table of what depends on it alone."""


def numbers_of(axis: Axis) -> list[str]:
    """The members of an axis that are numbers."""
    return [name for name, values in axis.members.items() if isinstance(values, np.ndarray)]


def can_look_up(axis: Axis) -> bool:
    """Whether a kernel can look up the numbers of a zipped axis: none is negative."""
    return all(axis.members[name].min() >= 0 for name in numbers_of(axis))  # type: ignore[union-attr]


def stores(axes: Sequence[Axis], sizes: Sequence[int], outputs: Sequence[str]) -> bool:
    """Whether a kernel stores a cell of these sizes along the axes."""
    if math.prod(sizes) < COMPILED or {"feasible", "reason"} & set(outputs):
        return False
    zips = [(axis, n) for axis, n in zip(axes, sizes, strict=True) if len(numbers_of(axis)) > 1 and n > 1]
    varies = any(numbers_of(axis) and n > 1 for axis, n in zip(axes, sizes, strict=True))
    return varies and all(n <= SLOTS and can_look_up(axis) for axis, n in zips)


class CellKernel:
    """A kernel over the grid of a cell.

    An axis with one number is an axis of the kernel. One with several, zipped, is an axis of positions, and each of its
    numbers is looked up there: the program gets an input for each number at each of up to `SLOTS` positions.

    Args:
        axes: of the sweep.
        made: the cell.
        sizes: its positions along each axis.
        outputs: of the sweep; those that the cell lacks are left out.
        reduce: what to keep; by default every point is stored.
    """

    def __init__(
        self,
        axes: Sequence[Axis],
        made: Cell,
        sizes: Sequence[int],
        outputs: Sequence[str],
        reduce: TopK | None = None,
    ) -> None:
        assert made.program is not None
        self.made, self.axes = made, axes
        self.label: dict[int, str] = {}
        """Of each axis that the kernel has, by its number in the sweep."""
        self.zipped: dict[int, int] = {}
        """Slots of each zipped axis, by its number."""
        self.read = [[name for name in numbers_of(axis) if name in made.program.inputs] for axis in axes]
        for k, (names, size) in enumerate(zip(self.read, sizes, strict=True)):
            if size == 1 or (reduce is None and not names):
                continue
            self.label[k] = names[0] if len(names) == 1 else f"axis {k}"
            if len(names) > 1:
                self.zipped[k] = min(size, SLOTS)
        program = made.program
        for k, slots in self.zipped.items():
            program = _add_lookup(program, self.label[k], self.read[k], slots)
        self.kernel = GridKernel(
            program,
            list(self.label.values()),
            [name for name in outputs if name in made.program.outputs],
            constraints=made.constraints,
            reduce=reduce,
            store=Store(cache_folder()),
        )
        usual = block_shape([min(n, LONGEST) for n in sizes], AT_ONCE)
        self.usual = {label: usual[k] for k, label in self.label.items()}

    def store(self, at: Sequence[Array]) -> dict[str, Array]:
        """The outputs, and `reason` as the kernel has it, at every combination of some positions of each axis."""
        shape = tuple(p.size for p in at)
        found: dict[str, Array] = {}
        nest = self.kernel.choose_nest(self.usual)  # one for all blocks: each nest is compiled
        for window in self._windows(shape):
            part = [p[cut] for p, cut in zip(at, window, strict=True)]
            values = self.kernel.run(*self._given(part), threads=1, tier="numba", nest=nest)
            lie = [p.size if k in self.label else 1 for k, p in enumerate(part)]
            for name, value in values.items():
                if name == "feasible":
                    continue
                if value.size == math.prod(shape):
                    found[name] = value.reshape(shape)
                    continue
                if name not in found:
                    found[name] = np.empty(shape, dtype=value.dtype)
                found[name][window] = value.reshape(lie)
        return found

    def best(self, at: Sequence[Array]) -> Iterator[tuple[list[Array], BestPoints]]:
        """The points that the reduction keeps, with their positions; a zipped axis may come in several parts."""
        for window in self._windows([p.size for p in at]):
            part = [p[cut] for p, cut in zip(at, window, strict=True)]
            found = self.kernel.run(*self._given(part))
            places = [
                p[found.indices[self.label[k]]] if k in self.label else np.full(len(found), p[0])
                for k, p in enumerate(part)
            ]
            yield places, found

    def _windows(self, shape: Sequence[int]) -> Iterator[tuple[slice, ...]]:
        cuts = []
        for k, n in enumerate(shape):
            most = self.zipped.get(k, LONGEST if self.kernel.reduce is None else n)
            cuts.append([slice(start, min(start + most, n)) for start in range(0, n, most)])
        return product(*cuts)

    def _given(self, part: Sequence[Array]) -> tuple[dict[str, Array], dict[str, float]]:
        along: dict[str, Array] = {}
        scalars = dict(self.made.scalars)
        for k, (axis, p) in enumerate(zip(self.axes, part, strict=True)):
            values: dict[str, Any] = {name: axis.members[name] for name in self.read[k]}
            if k not in self.label:
                scalars |= {name: float(column[p[0]]) for name, column in values.items()}
            elif len(values) == 1:
                ((name, column),) = values.items()
                along[name] = column[p].astype(np.float64)
            else:
                along[self.label[k]] = np.arange(p.size, dtype=np.float64)
            for slot in range(self.zipped.get(k, 0)):
                place = p[min(slot, p.size - 1)]
                scalars |= {_slot(name, slot): float(column[place]) for name, column in values.items()}
        return along, scalars


def _slot(name: str, slot: int) -> str:
    return f"{name} at {slot}"


def _add_lookup(program: Program, axis: str, names: Sequence[str], slots: int) -> Program:
    """The program in which some inputs are looked up by the position along an axis.

    Exact: of the products of a value and 0 or 1 the largest is taken, and values are not negative. None of it is
    inside a loop, since it depends on one axis.
    """

    def look_up(builder: Builder, operation: str, operands: Sequence[Any], _: int) -> int:
        if operation != "input" or operands[0] not in names:
            return builder.emit(operation, *operands)
        place = builder.emit("input", axis)
        found = builder.emit("constant", 0)
        for slot in range(slots):
            after = builder.emit("subtract", place, builder.emit("constant", slot - 1.5))  # above 1 from here on
            before = builder.emit("subtract", builder.emit("constant", slot + 1.5), place)
            here = builder.emit("multiply", builder.emit("above_one", after), builder.emit("above_one", before))
            value = builder.emit("multiply", builder.emit("input", _slot(operands[0], slot)), here)
            found = builder.emit("max", found, value)
        return found

    return rewrite(program, look_up)
