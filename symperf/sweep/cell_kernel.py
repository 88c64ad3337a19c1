"""A cell of a sweep as a compiled kernel over its grid: every point stored, or reduced to the best.

Which cells are compiled follows from the sweep alone, never from a clock or from what a cache holds: a kernel groups
sums by axis, so its last bits may differ from NumPy's, and a sweep that is resumed has to be the one that was begun.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..codegen.kernel import GridKernel
from ..codegen.store import Store
from ..codegen.tiers import best_tier, count_operations
from ..common.artefacts import cache_folder
from .chunks import block_shape, every

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..codegen.passes import Axis as KernelAxis
    from ..codegen.reduce import BestPoints, TopK
    from .axes import Axis
    from .cells import Cell

    Array = np.ndarray[Any, Any]

LEAST = 1_000_000
"""Points of a cell below which none is compiled, whatever each costs."""
AT_ONCE = 1 << 20
"""Points that a kernel stores in one call, about: what it computes before its loops should not weigh."""
LONGEST = 16_384
"""Positions of an axis in one call: short enough for a table of what depends on it alone."""


def numbers_of(axis: Axis) -> list[str]:
    """The members of an axis that are numbers."""
    return [name for name, values in axis.members.items() if isinstance(values, np.ndarray)]


def stores(axes: Sequence[Axis], sizes: Sequence[int], outputs: Sequence[str], build: Callable[[], Cell]) -> bool:
    """Whether a kernel stores a cell: where NumPy takes longer than making one.

    The time of NumPy is that of the values to compute, each at the points of the axes that it depends on.

    Args:
        axes: of the sweep.
        sizes: positions of the cell along them.
        outputs: of the sweep.
        build: gives the cell; asked where it is large.
    """
    if math.prod(sizes) < LEAST or {"feasible", "reason"} & set(outputs):
        return False
    made = build()
    if made.program is None:
        return False
    along: dict[Any, int] = {tuple(numbers_of(axis)): n for axis, n in zip(axes, sizes, strict=True) if n > 1}
    if not any(name in made.program.inputs for names in along for name in names):
        return False
    operations = count_operations(made.program, along)
    return best_tier(math.prod(sizes), operations, len(made.program), cached=False) == "numba"


class CellKernel:
    """A kernel over the grid of a cell.

    Args:
        axes: of the sweep; the numbers of a zipped one vary together along an axis of the kernel.
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
        self.read = [[name for name in numbers_of(axis) if name in made.program.inputs] for axis in axes]
        self.axis: dict[int, KernelAxis] = {}
        """Of each axis that the kernel has, by its number in the sweep."""
        for k, (names, size) in enumerate(zip(self.read, sizes, strict=True)):
            if size > 1 and (names or reduce is not None):
                self.axis[k] = tuple(names) if len(names) > 1 else names[0] if names else f"axis {k}"
        self.kernel = GridKernel(
            made.program,
            list(self.axis.values()),
            [name for name in outputs if name in made.program.outputs],
            constraints=made.constraints,
            reduce=reduce,
            store=Store(cache_folder()),
        )
        usual = block_shape([min(n, LONGEST) for n in sizes], AT_ONCE)
        self.usual = {axis: usual[k] for k, axis in self.axis.items()}

    def store(self, at: Sequence[Array]) -> dict[str, Array]:
        """The outputs, and `reason` as the kernel has it, at every combination of some positions of each axis."""
        shape = tuple(p.size for p in at)
        found: dict[str, Array] = {}
        nest = self.kernel.choose_nest(self.usual)  # one for all blocks: each nest is compiled
        for window in every(shape, [min(n, LONGEST) for n in shape]):
            part = [p[cut] for p, cut in zip(at, window, strict=True)]
            values = self.kernel.run(*self._inputs(part), threads=1, tier="numba", nest=nest)
            lie = [p.size if k in self.axis else 1 for k, p in enumerate(part)]
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

    def best(self, at: Sequence[Array]) -> tuple[list[Array], BestPoints]:
        """The points that the reduction keeps, with their positions."""
        found = self.kernel.run(*self._inputs(at))
        places = [
            p[found.indices[self.axis[k]]] if k in self.axis else np.full(len(found), p[0]) for k, p in enumerate(at)
        ]
        return places, found

    def _inputs(self, part: Sequence[Array]) -> tuple[dict[KernelAxis, Any], dict[str, float]]:
        """The points of the kernel's axes, and its scalars, at some positions of each axis."""
        points: dict[KernelAxis, Any] = {}
        scalars = dict(self.made.scalars)
        for k, (axis, p) in enumerate(zip(self.axes, part, strict=True)):
            rows = [axis.members[name][p].astype(np.float64) for name in self.read[k]]
            if k not in self.axis:
                scalars |= {name: float(row[0]) for name, row in zip(self.read[k], rows, strict=True)}
            elif isinstance(self.axis[k], tuple):
                points[self.axis[k]] = rows
            else:
                points[self.axis[k]] = rows[0] if rows else np.arange(p.size)
        return points, scalars
