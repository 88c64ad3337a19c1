"""A program swept over a grid of points, stored or reduced to the best of them.

A kernel prepares its program once (pruned, reassociated, with reciprocals), chooses its loops for the sizes it is run
with, and runs them on NumPy where there are few points, or as a generated Numba module kept in a `Store`. Both compute
the same bits at each point, whatever the order of loops, the blocks and the threads (where no `power` is left and
nothing is infinite or undefined).
"""

from __future__ import annotations

from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from .bounded_nest import BoundedNest
from .bytecode import Bytecode, bytecode_machine
from .choose_bound import find_ranges, load_or_choose
from .evaluate import outputs_at
from .generated import GeneratedNest
from .loop_nest import BLOCKS, LoopNest, choose_loop_nest, schedule
from .numpy_grid import add_reason, run_on_numpy
from .passes import axis_sizes, fold, inputs_along, prune, strength_reduce
from .printers.numba import place_instructions, render
from .reassociate import reassociate
from .reduce import BestPoints
from .tiers import best_tier, count_operations
from .workers import default_threads

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from .choose_bound import Chosen
    from .passes import Axis
    from .program import Program
    from .reduce import TopK
    from .store import Store

    Array = np.ndarray[Any, Any]

LOADED = 20_000
"""Points up to which NumPy is as fast where machine code is loaded already."""
BOUNDED = 20_000_000
"""Points from which a bound is chosen, and machine code made that has one; where that is there, fewer have it too."""
TABLE_SIZE = 20_000
"""Points of an axis, or of the vector, up to which what depends on it alone is computed before all loops."""
FEW = 4096
"""Points found up to which machine code for all programs computes what is shown of them."""
CONSTRAINTS = 254
"""At most so many: the reason of a point is a byte."""


class GridKernel:
    """A program over every combination of the points of some axes.

    Args:
        program: the program.
        axes: the inputs that vary, in the order in which results are indexed; several that vary together are one axis.
        outputs: names of the outputs to return.
        constraints: names of outputs that are at least zero where a point is feasible. They are computed without
            reassociation, so that a value of exactly zero is one here too.
        reduce: the points to keep; by default all are returned.
        store: where generated modules are kept.

    Raises:
        ValueError: an output that the program lacks, an axis given twice, or none.
    """

    def __init__(
        self,
        program: Program,
        axes: Sequence[Axis],
        outputs: Sequence[str],
        *,
        constraints: Sequence[str] = (),
        reduce: TopK | None = None,
        store: Store,
    ) -> None:
        self.program = program
        self.axes = tuple(axes)
        self.outputs = tuple(outputs)
        self.constraints = tuple(constraints)
        self.reduce = reduce
        self.store = store
        self._reads = self.outputs if reduce is None else (reduce.output,)
        self._check()
        self._nests: dict[Any, LoopNest] = {}
        self._generated: dict[Any, GeneratedNest] = {}
        self._bounds: dict[Any, Chosen | None] = {}
        self._point_code: Bytecode | None = None
        self._stages: dict[bool, list[tuple[str, Program]]] = {}

    def _check(self) -> None:
        if not self.axes:
            raise ValueError("a kernel needs an axis at least")
        names = [name for axis in self.axes for name in inputs_along(axis)]
        if len(set(names)) != len(names):
            raise ValueError(f"an axis is given twice: {', '.join(names)}")
        unknown = [n for n in (*self.outputs, *self.constraints, *self._reads) if n not in self.program.outputs]
        if unknown:
            raise ValueError(f"the program has no output {', '.join(map(repr, unknown))}")
        if len(self.constraints) > CONSTRAINTS:
            raise ValueError(f"at most {CONSTRAINTS} constraints, not {len(self.constraints)}")
        if self.reduce is None and {"feasible", "reason"} & set(self.outputs) and self.constraints:
            raise ValueError("outputs may not be called 'feasible' or 'reason' where there are constraints")

    @cached_property
    def loop_program(self) -> Program:
        """The program of the outputs that are looked at, grouped by axes."""
        return self._prepare(nonnegative=False)

    @cached_property
    def loop_program_nonnegative(self) -> Program:
        """The same to the bit where no input is negative, with fewer operations."""
        return self._prepare(nonnegative=True)

    def _prepare(self, *, nonnegative: bool) -> Program:
        names = tuple(dict.fromkeys((*self._reads, *self.constraints)))
        passes: dict[str, Callable[[Program], Program]] = {
            "prune": lambda program: fold(prune(program, names)),
            "reassociate": lambda program: fold(
                reassociate(program, self.axes, exact=self.constraints, nonnegative=nonnegative)
            ),
            "strength_reduce": lambda program: fold(strength_reduce(program, self.axes, exact=self.constraints)),
        }
        found, seen = self.program, [("asked", self.program)]
        for name, make in passes.items():
            found = make(found)
            seen.append((name, found))
        found = schedule(found)
        self._stages[nonnegative] = seen
        return found

    @cached_property
    def _point_program(self) -> Program:
        """The program of the outputs that the points found show, as it was given."""
        return prune(self.program, self.outputs)

    def choose_nest(self, sizes: Mapping[Axis, int]) -> LoopNest:
        """The loops of least estimated cost for axes of these sizes."""
        key = tuple(sizes.items())
        if key not in self._nests:
            self._nests[key] = choose_loop_nest(self.loop_program_nonnegative, sizes)
        return self._nests[key]

    def run(
        self,
        axes: Mapping[Any, Any],
        scalars: Mapping[str, float],
        *,
        threads: int | None = None,
        tier: str | None = None,
        nest: LoopNest | None = None,
        block: int | None = None,
        bound: bool | None = None,
    ) -> Any:
        """Compute the grid.

        Args:
            axes: points by axis; of one with several inputs a row for each.
            scalars: the other inputs.
            threads: how many; by default one for each processor.
            tier: "numpy" or "numba"; by default what is likely to be faster.
            nest: the loops; by default those of least estimated cost.
            block: points of the vector computed together.
            bound: whether points are ruled out by a bound of what is reduced, which changes no answer; by default
                where that pays.

        Returns:
            With a reduction `reduce.BestPoints`. Without one a dictionary with an array for each output, a dimension
            for each axis in the order of the kernel's `axes`, and, if there are constraints, "feasible" and "reason"
            (0, or one more than the position in `constraints` of the first that fails). Arrays may not be contiguous.

        Raises:
            ValueError: an axis or scalar that is missing or not known, or an empty axis.
        """
        columns, values = self._read_inputs(axes, scalars)
        sizes = axis_sizes(columns, self.axes)
        turns = nest is None
        nest = nest or self.choose_nest(sizes)
        points = prod(sizes.values())
        if tier == "numpy" or (tier is None and points <= LOADED):
            return self._run_on_numpy(columns, values)
        program = self._choose_program(columns, values)
        chooses = points >= BOUNDED or bound is True
        found = None if bound is False else self._find_bound(program, nest, columns, values, block, turns, chooses)
        generated = self._generate(program, nest, sizes, block, found)
        if tier is None and self._choose_tier(sizes, generated) == "numpy":
            return self._run_on_numpy(columns, values)
        return self._run_on_numba(generated, columns, values, threads or default_threads(points))

    def _read_inputs(
        self, axes: Mapping[Any, Any], scalars: Mapping[str, float]
    ) -> tuple[dict[str, Array], dict[str, Any]]:
        """Points of the axes as float64 arrays by input, in the caller's order; the scalars that the program reads."""
        if set(axes) != set(self.axes):
            raise ValueError(f"found axes {', '.join(map(_label, axes))}; expected {', '.join(map(_label, self.axes))}")
        columns: dict[str, Array] = {}
        for axis in self.axes:
            names, given = inputs_along(axis), axes[axis]
            rows = [np.ascontiguousarray(row, dtype=np.float64) for row in ([given] if axis in names else given)]
            if len(rows) != len(names) or any(
                row.shape != rows[0].shape or row.ndim != 1 or not row.size for row in rows
            ):
                found = ", ".join(str(row.shape) for row in rows)
                raise ValueError(f"axis {_label(axis)}: expected one dimension and one point at least, found {found}")
            columns.update(zip(names, rows, strict=True))
        missing = [n for n in self.program.inputs if n not in columns and n not in scalars]
        needed = [n for n in missing if n in self.loop_program.inputs] or (missing if self.reduce is not None else [])
        if needed:
            raise ValueError(f"no value for {', '.join(needed)}")
        return columns, {n: float(v) for n, v in scalars.items() if n in self.program.inputs and n not in columns}

    def _choose_program(self, columns: Mapping[str, Array], scalars: Mapping[str, Any]) -> Program:
        """What to generate code from, given the inputs."""
        signed = any(v < 0 for v in scalars.values()) or any((c < 0).any() for c in columns.values())
        return self.loop_program if signed else self.loop_program_nonnegative

    def _find_bound(
        self,
        program: Program,
        nest: LoopNest,
        columns: Mapping[str, Array],
        scalars: Mapping[str, Any],
        block: int | None,
        turns: bool,
        chooses: bool,
    ) -> Chosen | None:
        """What rules out points, if that pays; it is chosen anew where what there is does not hold for these."""
        if self.reduce is None or program is not self.loop_program_nonnegative:
            return None
        key = nest, block, turns, chooses
        found = self._bounds.get(key)
        if key not in self._bounds or (chooses and found and not found.bounded.holds(find_ranges(columns, scalars))):
            about = program, self.reduce, self.constraints, nest, columns, scalars, self.store
            size = block or BLOCKS[1]
            self._bounds[key] = found = load_or_choose(*about, block=size, may_turn=turns, may_choose=chooses)
        return found

    def _choose_tier(self, sizes: Mapping[Axis, int], generated: GeneratedNest) -> str:
        if generated.has_run:
            return "numba"
        program = self.loop_program_nonnegative
        cost = prod(sizes.values()), count_operations(program, sizes), len(program)
        return best_tier(*cost, best_tier(*cost, True) == "numba" and generated.is_cached())

    def _explain(self, program: Program, sizes: Mapping[Axis, int], bounded: Program | None) -> dict[str, Any]:
        """The axes, and after each pass the instructions, and the operations a point of such a grid, by their cost.

        With a bound, also what is computed of points that it rules out.
        """
        points = prod(sizes.values())
        stages = [*self._stages[program is not self.loop_program]]
        if bounded is not None:
            names = [name for name in bounded.outputs if name not in self._reads]
            stages.append(("bound", prune(bounded, names)))
        counted = [[n, len(p), round(count_operations(p, sizes, weighted=True) / points, 3)] for n, p in stages]
        return {"axes": {_label(axis): n for axis, n in sizes.items()}, "passes": counted}

    def _generate(
        self,
        program: Program,
        nest: LoopNest,
        sizes: Mapping[Axis, int],
        block: int | None,
        found: Chosen | None = None,
    ) -> GeneratedNest:
        tabled = {axis for axis in nest.outer if sizes[axis] <= TABLE_SIZE}
        if nest.outer and prod(sizes[axis] for axis in nest.vector) <= TABLE_SIZE:
            tabled.update(nest.vector)
        key = (nest, block, frozenset(tabled), program is self.loop_program_nonnegative, found and found.choice)
        if key not in self._generated:
            about = self._explain(program, sizes, found.bounded.program if found else None)
            if found is None:
                body = place_instructions(program, nest, block=block, tabled=key[2])
                text = render(body, self._reads, self.constraints, self.reduce)
                self._generated[key] = GeneratedNest(body, text, self.store, about)
            else:
                assert self.reduce is not None
                bounded = found, self.reduce, self.constraints
                self._generated[key] = BoundedNest(*bounded, self.store, about, block=block, tabled=key[2])
        return self._generated[key]

    def _run_on_numba(
        self, generated: GeneratedNest, columns: Mapping[str, Array], scalars: Mapping[str, Any], threads: int
    ) -> Any:
        if self.reduce is not None:
            states = [self.reduce.start(len(self.constraints)) for _ in range(threads)]
            generated.run_grid(columns, scalars, self.axes, states)
            return self._points(states, columns, scalars)
        sizes = axis_sizes(columns, self.axes)
        order = (*generated.body.nest.outer, *generated.body.nest.vector)
        total = prod(sizes.values())
        filled = np.empty((len(self._reads), total))
        reason = np.empty(total if self.constraints else 0, np.uint8)
        generated.run_grid(columns, scalars, order, [(filled.ravel(), reason)] * threads)
        shape = [sizes[axis] for axis in order]
        turn = [order.index(axis) for axis in self.axes]
        found = {name: filled[k].reshape(shape).transpose(turn) for k, name in enumerate(self._reads)}
        return add_reason(found, reason.reshape(shape).transpose(turn) if self.constraints else None)

    def _run_on_numpy(self, columns: Mapping[str, Array], scalars: Mapping[str, Any]) -> Any:
        found = run_on_numpy(self.loop_program, self.axes, columns, scalars, self._reads, self.constraints, self.reduce)
        return found if self.reduce is None else self._points([found], columns, scalars)

    def _points(self, states: Sequence[Any], columns: Mapping[str, Array], scalars: Mapping[str, Any]) -> BestPoints:
        """The points found, from the states of all threads."""
        assert self.reduce is not None
        _, flat, _, counts = self.reduce.merge(states)
        shape = tuple(axis_sizes(columns, self.axes).values())
        indices = dict(zip(self.axes, np.unravel_index(flat, shape), strict=True))
        at = {name: columns[name][indices[axis]] for axis in self.axes for name in inputs_along(axis)}
        feasible, *rejected = (int(n) for n in counts)
        return BestPoints(
            flat, indices, self._values_at({**scalars, **at}, len(flat)), feasible, dict(enumerate(rejected))
        )

    def _values_at(self, inputs: Mapping[str, Any], count: int) -> dict[str, Array]:
        """The outputs to show at scattered points, as the reference interpreter computes them."""
        if not any(each.is_loaded for each in self._generated.values()) or not 0 < count <= FEW:
            return outputs_at(self._point_program, inputs, count)
        names = list(self._point_program.outputs)
        if self._point_code is None:
            self._point_code = Bytecode(self._point_program, list(self._point_program.outputs.values()))
        return dict(zip(names, self._point_code.run(bytecode_machine(self.store), (count,), inputs), strict=True))


def _label(axis: Axis) -> str:
    return " with ".join(inputs_along(axis))
