"""What kernels over grids and over tables share: the prepared program, the generated module, threads and results."""

from __future__ import annotations

from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from .evaluate import outputs_at
from .grid import scheduled
from .passes import fold, prune
from .printers.numba import render
from .reassociate import reciprocals, regroup
from .reduce import Counted, CountedPoints, Points
from .steps import Stages, Steps, kernel_of
from .store import digest
from .workers import boxes, run_boxes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from .grid import Plan
    from .printers.numba import Layout
    from .program import Program
    from .reduce import Reduction
    from .store import Store
    from .workers import Box, Progress

    Array = np.ndarray[Any, Any]

SMALL = 2_000_000
"""Points up to which loading machine code takes longer than NumPy."""
MODERATE = 50_000_000
"""Points up to which generating it does."""
LOADED = 20_000
"""Points up to which NumPy is as fast where machine code is loaded already."""
TASK = 1 << 22
"""Points that a thread computes before it looks whether it should stop."""
FEW = 4096
"""Points found up to which machine code for all programs computes what is shown of them."""
CONSTRAINTS = 254
"""At most so many: the reason of a point is a byte."""
_loaded: set[tuple[Path, str]] = set()
"""Kernels that this process has run."""


def best_tier(points: int, cached: bool) -> str:
    """The fastest back end, "numpy" or "numba", given whether the machine code is there already."""
    return "numba" if points > (SMALL if cached else MODERATE) else "numpy"


class Kernel:
    """What kernels over grids and over tables share; see `GridKernel` for the arguments.

    Attributes:
        together: whether the axes change together, as columns of one table.
    """

    together: bool

    def __init__(
        self,
        program: Program,
        axes: Sequence[str],
        outputs: Sequence[str],
        *,
        constraints: Sequence[str] = (),
        reduce: Reduction | None = None,
        count: bool = False,
        store: Store,
    ) -> None:
        self.program = program
        self.axes = tuple(axes)
        self.outputs = tuple(outputs)
        self.constraints = tuple(constraints)
        self.reduce = reduce = Counted(reduce) if count else reduce
        self.store = store
        self._reads = self.outputs if reduce is None else reduce.reads
        self._check()
        self._plans: dict[Any, Plan] = {}
        self._layouts: dict[Any, tuple[Layout, str, str]] = {}
        self._kernels: dict[str, Any] = {}
        self._stages: dict[int, Stages] = {}
        self._steps: Steps | None = None

    def _check(self) -> None:
        if not self.axes:
            raise ValueError("a kernel needs an axis at least")
        if len(set(self.axes)) != len(self.axes):
            raise ValueError(f"an axis is given twice: {', '.join(self.axes)}")
        unknown = [n for n in (*self.outputs, *self.constraints, *self._reads) if n not in self.program.outputs]
        if unknown:
            raise ValueError(f"the program has no output {', '.join(map(repr, unknown))}")
        if len(self.constraints) > CONSTRAINTS:
            raise ValueError(f"at most {CONSTRAINTS} constraints, not {len(self.constraints)}")
        if self.reduce is None and {"feasible", "reason"} & set(self.outputs) and self.constraints:
            raise ValueError("outputs may not be called 'feasible' or 'reason' where there are constraints")

    @cached_property
    def prepared(self) -> Program:
        """The program of the outputs that are looked at, grouped by axes."""
        return self._grouped(nonnegative=False)

    @cached_property
    def prepared_nonnegative(self) -> Program:
        """The same to the bit where no input is negative, with fewer operations."""
        return self._grouped(nonnegative=True)

    def _grouped(self, *, nonnegative: bool) -> Program:
        names = tuple(dict.fromkeys((*self._reads, *self.constraints)))
        found = fold(prune(self.program, names))
        options: Any = {"exact": self.constraints, "together": self.together}
        found = fold(regroup(found, self.axes, nonnegative=nonnegative, **options))
        found = reciprocals(found, self.axes, **options)
        return scheduled(fold(found))

    @cached_property
    def _shown(self) -> Program:
        """The program of the outputs that a result of points shows, as it was given."""
        return prune(self.program, self.outputs)

    def _given(self, axes: Mapping[str, Any], scalars: Mapping[str, float]) -> tuple[dict[str, Array], dict[str, Any]]:
        """Axes as float64 arrays in the caller's order, and the scalars that the program reads."""
        if set(axes) != set(self.axes):
            raise ValueError(f"found axes {', '.join(axes)}; expected {', '.join(self.axes)}")
        columns = {}
        for name in self.axes:
            column = np.ascontiguousarray(axes[name], dtype=np.float64)
            if column.ndim != 1 or not column.size:
                raise ValueError(f"axis {name}: expected one dimension and one point at least, found {column.shape}")
            columns[name] = column
        missing = [n for n in self.program.inputs if n not in columns and n not in scalars]
        needed = [n for n in missing if n in self.prepared.inputs] or (missing if self.reduce is not None else [])
        if needed:
            raise ValueError(f"no value for {', '.join(needed)}")
        return columns, {n: float(v) for n, v in scalars.items() if n in self.program.inputs and n not in columns}

    def _program(self, columns: Mapping[str, Array], scalars: Mapping[str, Any]) -> Program:
        """What to generate a kernel from, given the inputs."""
        if self.prepared.instructions == self.prepared_nonnegative.instructions:
            return self.prepared
        signed = any(v < 0 for v in scalars.values()) or any(c.min() < 0 for c in columns.values())
        return self.prepared if signed else self.prepared_nonnegative

    def _tier(self, points: int, key: str) -> str:
        if points > LOADED and (self.store.folder, key) in _loaded:
            return "numba"
        return best_tier(points, points > SMALL and self.store.load(key) is not None)

    def _module(self, placed: Layout) -> tuple[str, str]:
        """The text of the module, and the key under which it is noted that it has been compiled."""
        texts = {"keys": [placed.outputs[n] for n in self._reads]}
        if self.reduce is not None:
            texts = self.reduce.texts(placed.outputs)
        kind = "fill" if self.reduce is None else self.reduce.kind
        text = render(placed, kind, constraints=self.constraints, **texts)
        return text, f"compiled-{digest(text)}"

    def _numba(
        self,
        layout: tuple[Layout, str, str],
        tables: Sequence[Array],
        columns: Array,
        sizes: Sequence[int],
        strides: Sequence[int],
        offsets: Array,
        scalars: Array,
        states: list[Any],
        progress: Progress | None,
        ragged: tuple[int, Array] | None = None,
    ) -> None:
        """Run the generated kernel over all boxes.

        Args:
            layout: the kernel, its text and its key.
            tables: of the outer axes.
            columns: rows of the vector, or addresses of columns.
            sizes: points by loop, those of the vector last.
            strides: of the flat index along them.
            offsets: of the flat index along the vector.
            scalars: what depends on no axis.
            states: a state of the reduction for each thread.
            progress: told how far it is.
            ragged: a point of the vector from which on there are other columns.
        """
        placed, text, key = layout
        steps = np.array(strides, dtype=np.int64)
        scratch = [np.empty(placed.rows * placed.stride) for _ in states]
        kernel = self._kernels.get(key)
        if kernel is None:
            kernel = self._kernels[key] = self.store.module(text).kernel
            nothing = np.zeros(len(sizes), np.int64)
            kernel(nothing, nothing, scratch[0], scalars, offsets, steps, *tables, columns, *states[0])  # compiles

        def compute(thread: int, low: Array, high: Array, columns: Array) -> None:
            while True:
                kernel(low, high, scratch[thread], scalars, offsets, steps, *tables, columns, *states[thread])
                larger = None if self.reduce is None else self.reduce.enlarged(states[thread])
                if larger is None:
                    return
                states[thread] = larger

        def work(thread: int, box: Box) -> None:
            low, high = (np.array([box[-1][k], *(part[k] for part in box[:-1])]) for k in (0, 1))
            if ragged is not None and high[0] > ragged[0]:
                compute(thread, low, np.array([ragged[0]]), columns)
                compute(thread, np.array([ragged[0]]), high, ragged[1])
            else:
                compute(thread, low, high, columns)

        total = prod(sizes)
        pieces = 1 if len(states) == 1 else 8 * len(states)
        most = max(1, min(TASK, -(-total // pieces)))
        grains = [1] * (len(sizes) - 1) + [placed.block]
        run_boxes(boxes(sizes, grains, most), work, len(states), total, progress)
        if (self.store.folder, key) not in _loaded:
            _loaded.add((self.store.folder, key))
            self.store.save(key, {"rows": placed.rows})

    def _reduced(self, states: Sequence[Any], columns: Mapping[str, Array], scalars: Mapping[str, Any]) -> Any:
        """The result of a reduction from the states of all threads."""
        assert self.reduce is not None
        state = self.reduce.merged(states)
        flat = self.reduce.places(state)
        if flat is None:
            return self.reduce.result(state, self.constraints)
        indices = self._indices(flat, columns)
        at = {name: columns[name][indices.get(name, flat)] for name in self.axes}
        values = self._shown_at({**scalars, **at}, len(flat))
        if isinstance(self.reduce, Counted):
            return CountedPoints(flat, indices, values, *self.reduce.counts(state))
        return Points(flat, indices, values)

    def _shown_at(self, inputs: Mapping[str, Any], count: int) -> dict[str, Array]:
        """The outputs to show at scattered points, as the reference interpreter computes them."""
        if not self._kernels or not 0 < count <= FEW:
            return outputs_at(self._shown, inputs, count)
        names = list(self._shown.outputs)
        if self._steps is None:
            self._steps = Steps(self._shown, list(self._shown.outputs.values()))
        return dict(zip(names, self._steps.run(kernel_of(self.store), (count,), inputs), strict=True))

    def _indices(self, flat: Array, columns: Mapping[str, Array]) -> dict[str, Array]:
        raise NotImplementedError

    def _reason(self, values: Mapping[str, Any], shape: tuple[int, ...]) -> Array:
        """Per point 0 where feasible, else one more than the position of the first constraint that fails."""
        reason = np.zeros(shape, np.uint8)
        with np.errstate(invalid="ignore"):
            for k in range(len(self.constraints), 0, -1):
                reason[~np.broadcast_to(values[self.constraints[k - 1]] >= 0, shape)] = k
        return reason
