"""The generated machine code of one loop nest: what is computed before its loops, and its run by threads."""

from __future__ import annotations

from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from .bytecode import LoopInvariants, bytecode_machine
from .compiling import load_function
from .numpy_grid import along, strides
from .passes import axis_sizes
from .store import digest
from .workers import boxes, run_boxes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from .passes import Axis
    from .printers.kernel_body import KernelBody
    from .store import Store
    from .workers import Box

    Array = np.ndarray[Any, Any]

TASK = 1 << 22
"""Points that a thread computes before it looks whether it should stop."""
_run: set[tuple[Path, str]] = set()
"""What this process has run, by the folder of the store and the key."""


class GeneratedNest:
    """A loop nest as a generated Numba module.

    Args:
        body: its statements.
        text: of the module.
        store: where it is kept.
        about: what is kept of it, to be shown.
    """

    def __init__(self, body: KernelBody, text: str, store: Store, about: dict[str, Any]) -> None:
        self.about = about
        self.body = body
        self.text = text
        self.store = store
        self.key = digest("compiled", text)
        self._function: Any = None

    @property
    def is_loaded(self) -> bool:
        """Whether the function is in memory."""
        return self._function is not None

    @property
    def has_run(self) -> bool:
        """Whether this process has run it, or another kernel of the same text."""
        return (self.store.folder, self.key) in _run

    def is_cached(self) -> bool:
        """Whether the store says that it has been compiled before."""
        return self.store.load(self.key) is not None

    @cached_property
    def _invariants(self) -> LoopInvariants:
        body, nest = self.body, self.body.nest
        wanted = {*body.scalars, *(p for rows in body.tables for p in rows), *body.columns}
        return LoopInvariants(body.program, (*nest.outer, *nest.vector), wanted)

    def compute_outside(
        self, columns: Mapping[str, Array], scalars: Mapping[str, Any]
    ) -> tuple[Array, list[Array], Array]:
        """What is computed before the loops: scalars, a table for each outer axis, and rows of the vector's length.

        Args:
            columns: points by input.
            scalars: the other inputs.
        """
        body, nest = self.body, self.body.nest
        values = self._invariants.run(bytecode_machine(self.store), columns, scalars)
        uniform = np.array([values[p] for p in body.scalars], dtype=np.float64)
        tables = [np.stack([values[p] for p in rows], axis=1).ravel() for rows in body.tables if rows]
        shape = [*axis_sizes(columns, nest.vector).values()]
        rows = np.empty((len(body.columns), *shape))
        for k, position in enumerate(body.columns):
            value, inside = values[position], self._invariants.depends[position] >> len(nest.outer)
            if value.ndim < len(shape):
                sizes = iter(value.shape)
                value = value.reshape([next(sizes) if inside >> d & 1 else 1 for d in range(len(shape))])
            rows[k] = value
        return uniform, tables, rows.ravel()

    def run_grid(
        self, columns: Mapping[str, Array], scalars: Mapping[str, Any], order: Sequence[Axis], states: Sequence[Any]
    ) -> None:
        """Run the function over a whole grid, in as many threads as there are states.

        Args:
            columns: points by input.
            scalars: the other inputs.
            order: of the axes in the index of a point.
            states: for each thread the arrays that its calls change.
        """
        nest = self.body.nest
        sizes = axis_sizes(columns, order)
        steps = strides(sizes, order)
        offsets = np.zeros([sizes[axis] for axis in nest.vector], np.int64)
        for k, axis in enumerate(nest.vector):
            offsets += along(np.arange(sizes[axis]) * steps[axis], k, len(nest.vector))
        self.run(
            self.compute_outside(columns, scalars),
            [*(sizes[axis] for axis in nest.outer), offsets.size],
            np.array([*(steps[axis] for axis in nest.outer), 0], dtype=np.int64),
            offsets.ravel(),
            states,
        )

    def run(
        self,
        outside: tuple[Array, list[Array], Array],
        sizes: Sequence[int],
        strides: Array,
        offsets: Array,
        states: Sequence[Any],
    ) -> None:
        """Run the function over all boxes of the grid, in as many threads as there are states.

        Args:
            outside: what `compute_outside` gives.
            sizes: points by loop, those of the vector last.
            strides: of the flat index along them.
            offsets: of the flat index along the vector.
            states: for each thread the arrays that its calls change.
        """
        uniform, tables, rows = outside
        scratch = [np.empty(self.body.rows * self.body.stride) for _ in states]
        if self._function is None:
            nothing = np.zeros(len(sizes), np.int64)
            given = (nothing, nothing, scratch[0], uniform, offsets, strides, *tables, rows, *states[0])
            compiled = load_function(self.store.module(self.text), "kernel", given)
            compiled(*given)  # loads machine code, or makes it
            self._function = compiled
        function = self._function

        def work(thread: int, box: Box) -> None:
            low, high = (np.array([box[-1][k], *(part[k] for part in box[:-1])]) for k in (0, 1))
            function(low, high, scratch[thread], uniform, offsets, strides, *tables, rows, *states[thread])

        total = prod(sizes)
        pieces = 1 if len(states) == 1 else 8 * len(states)
        most = max(1, min(TASK, -(-total // pieces)))
        grains = [1] * (len(sizes) - 1) + [self.body.block]
        run_boxes(boxes(sizes, grains, most), work, len(states))
        if not self.has_run:
            _run.add((self.store.folder, self.key))
            self.store.save(self.key, {"rows": self.body.rows, **self.about})
