"""Kernels over scattered points: a program over the rows of a table, stored or reduced.

Columns are read where they lie. The kernel takes their addresses, so that neither their number nor their alignment is
part of a compiled signature, and asks for what comes next while it computes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .evaluate import evaluate
from .grid import LANES, Plan
from .kernel_base import Kernel
from .printers.numba import layout
from .workers import Interrupted, boxes, default_threads, run_boxes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .printers.numba import Layout
    from .workers import Box, Progress

    Array = np.ndarray[Any, Any]

ROW_COST = 10
"""Points of a grid that cost NumPy as much as a row of a table."""
NUMPY_BLOCK = 1 << 14
"""Rows that NumPy computes at once: their intermediate values stay in a cache."""


class FlatKernel(Kernel):
    """A program over the rows of a table.

    Args:
        program: the program.
        varying: names of the inputs that the table has columns for.
        outputs: names of the outputs to return.
        constraints: names of outputs that are at least zero where a point is feasible.
        reduce: what to keep of the points; by default all are returned.
        count: as for `GridKernel`.
        store: where generated modules are kept.

    Raises:
        ValueError: an output that the program lacks, a column given twice, or none; `count` as for `GridKernel`.
    """

    together = True
    _last: tuple[Any, Array] | None = None

    def run(
        self,
        columns: Mapping[str, Any],
        scalars: Mapping[str, float],
        *,
        threads: int | None = None,
        progress: Progress | None = None,
        tier: str | None = None,
        block: int | None = None,
    ) -> Any:
        """Compute every row.

        Args:
            columns: values by input, 1-D and of one length.
            scalars: the other inputs.
            threads: how many; by default one for each processor.
            progress: called with the points done and their total, several times a second.
            tier: "numpy" or "numba"; by default what is likely to be faster.
            block: points computed together.

        Returns:
            As `GridKernel.run`, with one dimension; the index of a point is its row.

        Raises:
            ValueError: a column or scalar that is missing or not known, or columns of different lengths.
            Interrupted: a KeyboardInterrupt, with the result so far (`None` without a reduction).
        """
        given, values = self._given(columns, scalars)
        lengths = {len(column) for column in given.values()}
        if len(lengths) > 1:
            raise ValueError(f"columns of different lengths: {', '.join(map(str, sorted(lengths)))}")
        (count,) = lengths
        program = self._program(given, values)
        key = (block, program is self.prepared_nonnegative)
        if key not in self._layouts:
            drawn = layout(program, Plan((), self.axes), block=block, separate=True)
            self._layouts[key] = (drawn, *self._module(drawn))
        generated = self._layouts[key]
        placed = generated[0]
        tier = tier or self._tier(count * ROW_COST, generated[2])
        threads = 1 if tier == "numpy" else threads or default_threads(count * ROW_COST)
        found = np.empty((len(self._reads) if self.reduce is None else 0, count))
        reason = np.empty(count if self.constraints and self.reduce is None else 0, np.uint8)
        states: list[Any] = [(found.ravel(), reason)] * threads
        if self.reduce is not None:
            states = [self.reduce.state(len(self.constraints)) for _ in range(threads)]
        try:
            if tier == "numpy":
                self._on_numpy(given, values, count, states, found, reason, progress)
            else:
                read = [given[program.instructions[p][1]] for p in placed.columns]
                whole = count - count % LANES
                end = np.minimum(np.arange(whole, whole + LANES), count - 1)
                ends = [column[end] for column in read]  # a whole line of lanes, the last row again and again
                self._numba(
                    generated,
                    [],
                    _addresses(read),
                    [count],
                    [0],
                    np.zeros(0, np.int64),
                    self._uniform(placed, values, given),
                    states,
                    progress,
                    ragged=(whole, _addresses(ends) - 8 * whole),
                )
        except KeyboardInterrupt:
            raise Interrupted(self._reduced(states, given, values) if self.reduce is not None else None) from None
        if self.reduce is not None:
            return self._reduced(states, given, values)
        results = {name: found[k] for k, name in enumerate(self._reads)}
        return {**results, "feasible": reason == 0, "reason": reason} if self.constraints else results

    def _uniform(self, placed: Layout, scalars: Mapping[str, Any], columns: Mapping[str, Array]) -> Array:
        """What depends on scalars alone; the last of it is kept, for tables that are computed piece by piece."""
        key = (id(placed), tuple(scalars.items()))
        if self._last is None or self._last[0] != key:
            found = evaluate(placed.program, {**columns, **scalars}, set(placed.scalars), placed.before_loops)
            self._last = (key, np.array([found[p] for p in placed.scalars], dtype=np.float64))
        return self._last[1]

    def _on_numpy(
        self,
        columns: Mapping[str, Array],
        scalars: Mapping[str, Any],
        count: int,
        states: list[Any],
        found: Array,
        reason: Array,
        progress: Any,
    ) -> None:
        wanted = set(self.prepared.outputs.values())

        def work(_: int, box: Box) -> None:
            part = slice(*box[0])
            by_position = evaluate(self.prepared, {**scalars, **{n: c[part] for n, c in columns.items()}}, wanted)
            values = {name: by_position[position] for name, position in self.prepared.outputs.items()}
            shape = (part.stop - part.start,)
            why = self._reason(values, shape)
            if self.reduce is None:
                for k, name in enumerate(self._reads):
                    found[k][part] = values[name]
                if self.constraints:
                    reason[part] = why
                return
            full = [np.broadcast_to(values[name], shape) for name in self.reduce.reads]
            states[0] = self.reduce.absorb(states[0], full, why, np.arange(part.start, part.stop))

        run_boxes(boxes([count], [1], NUMPY_BLOCK), work, 1, count, progress)

    def _indices(self, flat: Array, columns: Mapping[str, Array]) -> dict[str, Array]:  # noqa: ARG002
        return {"point": flat}


def _addresses(columns: Sequence[Array]) -> Array:
    return np.array([column.ctypes.data for column in columns], dtype=np.int64)
