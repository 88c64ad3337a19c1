"""What runs a grid: NumPy at once, or machine code that has to be loaded or made first.

The choice is by what each costs, counted from the program and the sizes alone, never by a clock.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from .builder import FREE
from .loop_nest import SCALAR_CALLS, WEIGHTS
from .passes import masks

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .passes import Axis
    from .program import Program

LOADING = 0.7
"""Seconds to load machine code that is there, with all that runs it; this and the next, on one core of two (2026)."""
COMPILING, PER_INSTRUCTION = 1.5, 2.3e-3
"""Seconds to make it: in any case, and for each instruction."""
PER_POINT, PER_DISPATCH, PER_OPERATION = 4e-8, 1.1e-10, 0.9e-9
"""Seconds of NumPy: to look at a point; its share of a block's calls, for each instruction; to compute a value."""


def best_tier(points: int, operations: float, instructions: int, cached: bool) -> str:
    """The back end that answers first, "numpy" or "numba"; the run of machine code is little beside making it.

    Args:
        points: of the grid.
        operations: values to compute in all: each at the points of the axes that it depends on.
        instructions: of the program.
        cached: whether the machine code is there already.
    """
    in_numpy = points * (PER_POINT + PER_DISPATCH * instructions) + PER_OPERATION * operations
    return "numba" if in_numpy > (LOADING if cached else COMPILING + PER_INSTRUCTION * instructions) else "numpy"


def count_operations(program: Program, sizes: Mapping[Axis, int], *, weighted: bool = False) -> float:
    """The values to compute over a grid, if each is computed at the points that it depends on.

    Args:
        program: of the kernel.
        sizes: points by axis.
        weighted: count an operation by its cost, which for a sum is one and for a division five.
    """
    axes = tuple(sizes)
    weights = WEIGHTS | SCALAR_CALLS if weighted else {}
    volume = [prod(sizes[axis] for k, axis in enumerate(axes) if mask >> k & 1) for mask in range(1 << len(axes))]
    pairs = zip(program.instructions, masks(program, axes), strict=True)
    counted = ((operation, volume[mask]) for (operation, *_), mask in pairs if operation not in FREE)
    return sum(n * weights.get(operation, 1) for operation, n in counted)
