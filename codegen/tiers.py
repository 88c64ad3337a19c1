"""Which back end answers first: NumPy at once, or machine code that has to be loaded or made."""

from __future__ import annotations

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
