"""A loop nest that computes a bound of the points of a block, and the points themselves where it rules out not all."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from .bound import BOUND, GUARD
from .choose_bound import find_ranges
from .generated import GeneratedNest
from .passes import axis_sizes, inputs_along
from .printers.numba import place_instructions, render

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .choose_bound import Chosen
    from .passes import Axis
    from .reduce import TopK
    from .store import Store

    Array = np.ndarray[Any, Any]

TRIAL, PAUSE = 32, 2048
"""Blocks after which it is seen how many the bound ruled out, and blocks without it where these were too few."""
NEVER = 1 << 62
"""So many blocks where it is no bound."""
SEEDS = 16_384
"""Points of the coarse grid whose best values rule out points from the start."""
FINER = 20
"""Of how many times as many points a grid is worth a coarse one."""


class BoundedNest(GeneratedNest):
    """A nest whose innermost loop is three: the constraints (and where the bound is none), the bound, what is reduced.

    Args:
        found: the bound.
        top: the points to keep.
        constraints: outputs that are at least zero where a point counts.
        store: where the module is kept.
        about: what is kept of it, to be shown.
        block: points of a block.
        tabled: as `place_instructions` says.
    """

    def __init__(
        self,
        found: Chosen,
        top: TopK,
        constraints: Sequence[str],
        store: Store,
        about: dict[str, Any],
        *,
        block: int | None,
        tabled: frozenset[Axis],
    ) -> None:
        self.bounded, self.top, self.constraints = found.bounded, top, constraints
        program = found.bounded.program
        name = BOUND + top.output
        guards = [GUARD] if GUARD in program.outputs else []
        parts = [[*dict.fromkeys(constraints), *guards], [name], [top.output]]
        body = place_instructions(program, found.choice.nest, block=block, tabled=tabled, parts=parts)
        often = {"trial": TRIAL, "most": int(TRIAL * found.choice.most), "pause": PAUSE}
        text = render(body, [top.output], constraints, top, {"bound": name, "guards": guards, **often})
        super().__init__(body, text, store, about)

    def run_grid(
        self, columns: Mapping[str, Array], scalars: Mapping[str, Any], order: Sequence[Axis], states: Sequence[Any]
    ) -> None:
        """Run the function over a whole grid: all threads know the best that any of them has found."""
        limit, wait = np.array([np.inf]), NEVER
        if self.bounded.holds(find_ranges(columns, scalars)):
            wait = 0
            few = coarse(columns, order)
            points = prod(axis_sizes(columns, order).values())
            # The same machine code gives these points the same bits, so long as no power is left to the library.
            exact = all(operation != "power" for operation, *_ in self.body.program.instructions)
            if exact and FINER * prod(axis_sizes(few, order).values()) <= points:
                seen = self.top.start(len(self.constraints))
                super().run_grid(few, scalars, order, [(*seen, limit, _watch(0))])
        super().run_grid(columns, scalars, order, [(*state, limit, _watch(wait)) for state in states])


def coarse(columns: Mapping[str, Array], axes: Sequence[Axis]) -> dict[str, Array]:
    """Some points of each axis, evenly spaced from end to end, about `SEEDS` in all."""
    sizes = axis_sizes(columns, axes)
    most = max(sizes.values())
    while most > 2 and prod(min(size, most) for size in sizes.values()) > SEEDS:
        most = max(2, most * 3 // 4)
    chosen = {axis: np.linspace(0, n - 1, min(n, most)).astype(np.int64) for axis, n in sizes.items()}
    return {name: columns[name][where] for axis, where in chosen.items() for name in inputs_along(axis)}


def _watch(wait: int) -> Array:
    """Of a thread: blocks since the last look, those of them that the bound did not rule out, and blocks to wait."""
    return np.array([0, 0, wait], np.int64)
