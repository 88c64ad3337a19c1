"""Kernels: a program swept over a grid or a table of points, stored or reduced.

Each kernel prepares its program once (pruned, regrouped, reciprocals), plans its loops for the sizes it is run with,
and runs them on NumPy where there are few points, or as a generated Numba module kept in a `Store`. Both compute the
same bits at each point, whatever the order of loops, the blocks and the threads (where no `power` is left).
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from .evaluate import evaluate
from .flat import FlatKernel
from .grid import Plan, choose_plan
from .kernel_base import LOADED, Kernel, best_tier
from .passes import choose_order
from .printers.numba import layout
from .steps import Stages, kernel_of
from .workers import Interrupted, boxes, default_threads, run_boxes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .printers.numba import Layout
    from .program import Program
    from .workers import Box, Progress

    Array = np.ndarray[Any, Any]

__all__ = ["FlatKernel", "GridKernel", "Interrupted", "best_tier"]

TABLE_SIZE = 20_000
"""Points of an axis, or of the vector, up to which what depends on it alone is computed before all loops."""
NUMPY_BLOCK = 1 << 15
"""Points that NumPy computes at once: their intermediate values stay in a cache."""


def _along(column: Array, dimension: int, dimensions: int) -> Array:
    """A view of a column with one point in every dimension but one, so that it broadcasts."""
    return column.reshape([-1 if k == dimension else 1 for k in range(dimensions)])


class GridKernel(Kernel):
    """A program over every combination of the points of some axes.

    Args:
        program: the program.
        axes: names of the inputs that vary, in the order in which results are indexed.
        outputs: names of the outputs to return.
        constraints: names of outputs that are at least zero where a point is feasible. They are computed without
            regrouping, so that a value of exactly zero is one here too.
        reduce: what to keep of the points; by default all are returned.
        count: also count, in the same pass, the feasible points and those that each constraint is the first to reject.
            `reduce` has to be one to points (`TopK`, `ArgMin`, `ArgMax`, `Pareto`).
        store: where generated modules are kept.

    Raises:
        ValueError: an output that the program lacks, an axis given twice, or none; `count` without such a reduction.
    """

    together = False

    def plan(self, sizes: Mapping[str, int]) -> Plan:
        """The loops for axes of these sizes."""
        key = tuple(sizes.items())
        if key not in self._plans:
            self._plans[key] = choose_plan(self.prepared_nonnegative, sizes)
        return self._plans[key]

    def run(
        self,
        axes: Mapping[str, Any],
        scalars: Mapping[str, float],
        *,
        threads: int | None = None,
        progress: Progress | None = None,
        tier: str | None = None,
        plan: Plan | None = None,
        block: int | None = None,
    ) -> Any:
        """Compute the grid.

        Args:
            axes: points by axis.
            scalars: the other inputs.
            threads: how many; by default one for each processor.
            progress: called with the points done and their total, several times a second.
            tier: "numpy" or "numba"; by default what is likely to be faster.
            plan: the loops; by default those of least estimated cost.
            block: points of the vector computed together.

        Returns:
            The result of the reduction (`reduce.Points`, with a count `reduce.CountedPoints`, `reduce.Counts`,
            `reduce.Bins`). Without one a dictionary
            with an array for each output, with a dimension for each axis in the order of the kernel's `axes`, and, if
            there are constraints, "feasible" and "reason" (0, or one more than the position in `constraints` of the
            first that fails). Arrays may not be contiguous.

        Raises:
            ValueError: an axis or scalar that is missing or not known, or an empty axis.
            Interrupted: a KeyboardInterrupt, with the result so far (`None` without a reduction).
        """
        columns, values = self._given(axes, scalars)
        sizes = {name: len(column) for name, column in columns.items()}
        plan = plan or self.plan(sizes)
        if tier is None:
            points = prod(sizes.values())
            tier = "numpy"
            if points > LOADED:
                tier = self._tier(points, self._layout(self._program(columns, values), sizes, plan, block)[2])
        if tier == "numpy":
            return self._on_numpy(columns, values, progress)
        generated = self._layout(self._program(columns, values), sizes, plan, block)
        return self._on_numba(generated, columns, values, threads or default_threads(prod(sizes.values())), progress)

    def _layout(
        self, program: Program, sizes: Mapping[str, int], plan: Plan, block: int | None
    ) -> tuple[Layout, str, str]:
        tabled = {axis for axis in plan.outer if sizes[axis] <= TABLE_SIZE}
        if prod(sizes[axis] for axis in plan.vector) <= TABLE_SIZE:
            tabled.update(plan.vector)
        key = (plan, block, frozenset(tabled), program is self.prepared_nonnegative)
        if key not in self._layouts:
            placed = layout(program, plan, block=block, tabled=key[2])
            self._layouts[key] = (placed, *self._module(placed))
        return self._layouts[key]

    def _strides(self, sizes: Mapping[str, int], order: Sequence[str]) -> dict[str, int]:
        """How far apart neighbours along each axis are where `order` is the order of the axes."""
        return {axis: prod(sizes[other] for other in order[k + 1 :]) for k, axis in enumerate(order)}

    def _on_numba(
        self,
        generated: tuple[Layout, str, str],
        columns: Mapping[str, Array],
        scalars: Mapping[str, Any],
        threads: int,
        progress: Any,
    ) -> Any:
        placed, plan = generated[0], generated[0].plan
        sizes = {name: len(column) for name, column in columns.items()}
        order = (*plan.outer, *plan.vector)
        uniform, tables, rows = self._outside(placed, columns, scalars)
        steps = self._strides(sizes, order if self.reduce is None else self.axes)
        offsets = np.zeros([sizes[axis] for axis in plan.vector], np.int64)
        for k, axis in enumerate(plan.vector):
            offsets += _along(np.arange(sizes[axis]) * steps[axis], k, len(plan.vector))
        vector = offsets.size
        states: list[Any]
        if self.reduce is None:
            total = prod(sizes.values())
            filled = np.empty((len(self._reads), total))
            reason = np.empty(total if self.constraints else 0, np.uint8)
            states = [(filled.ravel(), reason)] * threads
        else:
            states = [self.reduce.state(len(self.constraints)) for _ in range(threads)]
        try:
            self._numba(
                generated,
                tables,
                rows,
                [*(sizes[axis] for axis in plan.outer), vector],
                [*(steps[axis] for axis in plan.outer), 0],
                offsets.ravel(),
                uniform,
                states,
                progress,
            )
        except KeyboardInterrupt:
            raise Interrupted(self._reduced(states, columns, scalars) if self.reduce is not None else None) from None
        if self.reduce is not None:
            return self._reduced(states, columns, scalars)
        shape = [sizes[axis] for axis in order]
        turn = [order.index(axis) for axis in self.axes]
        found = {name: filled[k].reshape(shape).transpose(turn) for k, name in enumerate(self._reads)}
        return self._with_reason(found, reason.reshape(shape).transpose(turn) if self.constraints else None)

    def _outside(
        self, placed: Layout, columns: Mapping[str, Array], scalars: Mapping[str, Any]
    ) -> tuple[Array, list[Array], Array]:
        """What is computed before the loops: scalars, a table for each outer axis, and rows of the vector's length."""
        plan, program = placed.plan, placed.program
        order = (*plan.outer, *plan.vector)
        stages = self._stages.get(id(placed))
        if stages is None:
            wanted = {*placed.scalars, *(p for rows in placed.tables for p in rows), *placed.columns}
            stages = self._stages[id(placed)] = Stages(program, order, wanted)
        values = stages.run(kernel_of(self.store), columns, scalars)
        uniform = np.array([values[p] for p in placed.scalars], dtype=np.float64)
        tables = [np.stack([values[p] for p in rows], axis=1).ravel() for rows in placed.tables if rows]
        shape = [len(columns[axis]) for axis in plan.vector]
        rows = np.empty((len(placed.columns), *shape))
        depth = len(plan.outer)
        for k, position in enumerate(placed.columns):
            value, inside = values[position], stages.depends[position] >> depth
            if value.ndim < len(shape):
                sizes = iter(value.shape)
                value = value.reshape([next(sizes) if inside >> d & 1 else 1 for d in range(len(shape))])
            rows[k] = value
        return uniform, tables, rows.ravel()

    def _on_numpy(self, columns: Mapping[str, Array], scalars: Mapping[str, Any], progress: Any) -> Any:
        sizes = {name: len(column) for name, column in columns.items()}
        order = choose_order(self.prepared, sizes)
        shape = tuple(sizes.values())
        wanted = set(self.prepared.outputs.values())
        steps = self._strides(sizes, self.axes)
        state: Any = None if self.reduce is None else self.reduce.state(len(self.constraints))
        found: dict[str, Array] = {}
        if self.reduce is None:
            found = {name: np.empty(shape) for name in self._reads}
        whole = np.zeros(shape if self.reduce is None and self.constraints else (0,) * len(shape), np.uint8)

        def work(_: int, box: Box) -> None:
            nonlocal state
            part = dict(zip(order, box, strict=True))
            window = tuple(slice(*part[axis]) for axis in self.axes)
            cut = tuple(stop - start for start, stop in (part[axis] for axis in self.axes))
            given = dict(scalars)
            for k, axis in enumerate(self.axes):
                given[axis] = _along(columns[axis][window[k]], k, len(cut))
            by_position = evaluate(self.prepared, given, wanted)
            values = {name: by_position[position] for name, position in self.prepared.outputs.items()}
            reason = self._reason(values, cut)
            if self.reduce is None:
                for name in self._reads:
                    found[name][window] = values[name]
                if self.constraints:
                    whole[window] = reason
                return
            flat = np.zeros(cut, np.int64)
            for k, axis in enumerate(self.axes):
                flat += _along(np.arange(*part[axis]) * steps[axis], k, len(cut))
            full = [np.broadcast_to(values[name], cut).ravel() for name in self.reduce.reads]
            state = self.reduce.absorb(state, full, reason.ravel(), flat.ravel())

        todo = boxes([sizes[axis] for axis in order], [1] * len(order), NUMPY_BLOCK)
        try:
            run_boxes(todo, work, 1, prod(shape), progress)
        except KeyboardInterrupt:
            raise Interrupted(self._reduced([state], columns, scalars) if self.reduce is not None else None) from None
        if self.reduce is not None:
            return self._reduced([state], columns, scalars)
        return self._with_reason(found, whole if self.constraints else None)

    def _with_reason(self, found: dict[str, Array], reason: Array | None) -> dict[str, Array]:
        return found if reason is None else {**found, "feasible": reason == 0, "reason": reason}

    def _indices(self, flat: Array, columns: Mapping[str, Array]) -> dict[str, Array]:
        shape = tuple(len(columns[axis]) for axis in self.axes)
        return dict(zip(self.axes, np.unravel_index(flat, shape), strict=True))
