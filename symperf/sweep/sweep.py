"""Sweeps: a run's quantities over a grid of values and choices, block by block, with a reason where a point cannot be.

A grid is cut into cells of one structure and one set of choices. In each, NumPy computes every instruction over the
axes that it depends on; large cells are compiled (`cell_kernel`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import cached_property
from itertools import product
from keyword import iskeyword
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ..codegen.evaluate import evaluate
from ..common.errors import InputError, nearest, quote
from ..plans.grammar import Node, number, predicate
from ..plans.plan import FIELDS, Plan
from .axes import CHOICES, NUMERIC, Zip, axis
from .cell_kernel import CellKernel, stores
from .cells import ANSWERS, FITS, Base, Cell, SweepQuestion, cell, unknown_output
from .chunks import Block, block_shape, every
from .conditions import MOST, check_count, name_conditions, words, zipped_names
from .fixed_values import fix_value

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..models.model import Model
    from ..systems.system import System

    Array = np.ndarray[Any, Any]

DEFAULT_OUTPUTS = ("time", "memory", "mfu")
REASON = "reason"
POINTS = 32_768
"""Points that NumPy computes together, so that their arrays stay in a cache."""
MAX_AXES = 12
MOST_OUTPUTS = 1000
MOST_REASONS = 254
"""Their codes are bytes, of which 0 is feasible and 255 a point of a file that is not computed yet."""


class Sweep:
    """A question over a grid.

    Args:
        base: what is fixed.
        axes: by name: lists, ranges, `Zip`s of these; a text for a number is an expression (see `derived`), any other
            single value is fixed.
        derived: expressions by the symbol that they replace, or by a new name.
        where: conditions, as a list or by name; `fits` is that what is reserved does not exceed the capacity.
        outputs: names of quantities.

    Raises:
        InputError: an unknown name, an empty or reversed axis, a value out of range, a bad expression.
    """

    def __init__(
        self,
        base: Base,
        axes: Mapping[str, Any],
        *,
        derived: Mapping[str, str] | None = None,
        where: Iterable[str] | Mapping[str, str] = (),
        outputs: Iterable[str] = DEFAULT_OUTPUTS,
    ) -> None:
        expressions = dict(derived or {})
        check_count("derived", len(expressions), "names")
        check_count("axes", len(axes), "axes", MAX_AXES + MOST)  # single values are fixed, and no axes
        grid: dict[str, Any] = {}
        plan, work, values = dict(base.plan), dict(base.work), dict(base.values)
        for name, given in axes.items():
            if isinstance(given, str) and name not in CHOICES:
                if name in expressions:
                    raise InputError(f"axis {name}: is given twice, expected it once")
                expressions[name] = given
            elif isinstance(given, str) or not isinstance(given, Iterable | Zip):
                base = fix_value(base, name, given, plan, work, values)
            else:
                grid[name] = given
        base = Base(base.model, base.system, plan, work, values)
        check_count("axes", len(grid), "axes", MAX_AXES)
        for name, given in grid.items():
            check_count(f"axis {name}", len(zipped_names(given)), "zipped symbols")
        conditions_asked = name_conditions(where)
        for name in (*expressions, *grid):
            if not isinstance(name, str) or not name.isidentifier() or iskeyword(name):
                raise InputError(f"axis {quote(name)}: expected a plain name")
        read = words([*expressions.values(), *conditions_asked.values()])
        extras = {n for n in grid if n not in NUMERIC and n not in CHOICES and (n in read or n in expressions.values())}
        extras |= {
            m for a in grid.values() for m in zipped_names(a) if m not in NUMERIC and m not in CHOICES and m in read
        }
        self.axes = tuple(axis(name, given, extras) for name, given in grid.items())
        if not self.axes:
            raise InputError(f"axes: found 0, expected 1 to {MAX_AXES}")
        self.shape = tuple(len(a) for a in self.axes)
        self.base = base
        members = [name for a in self.axes for name in a.members]
        for name in members:
            if members.count(name) > 1 or name in expressions:
                raise InputError(f"axis {name}: is given twice, expected it once")
        self._refuse_open(read, expressions)
        trees = self._derive(expressions, members, read)
        named = {"fits": predicate(FITS, ["reserved", "memory_capacity"], "fits")}
        known = [*NUMERIC, *members, *trees, *(n for n in ANSWERS if n not in members)]
        conditions = {
            reason: predicate(text, known, f"where {reason}", named) for reason, text in conditions_asked.items()
        }
        asked = [outputs] if isinstance(outputs, str) else list(outputs)
        check_count("outputs", len(asked), "names", MOST_OUTPUTS)
        for name in asked:
            if not isinstance(name, str):
                raise InputError(f"outputs: found {quote(name)}, expected names of quantities")
        if len(set(asked)) < len(asked) or not asked:
            raise InputError(f"outputs: found {quote(asked)}, expected one name or more, each once")
        clash = [n for n in asked if n in members or n == REASON]
        if clash:
            raise InputError(f"outputs: {clash[0]} is an axis, expected another quantity")
        self.outputs = tuple(dict.fromkeys([*asked, *trees]))
        varying = frozenset(m for m in members if m not in CHOICES)
        self.question = SweepQuestion(self.outputs, trees, conditions, varying)
        self._refuse_clashes(conditions)
        self._cells: dict[tuple[int, ...], Cell] = {}
        self._kernels: dict[int, CellKernel] = {}
        self._check_outputs(asked)

    def _refuse_open(self, read: set[str], derived: Iterable[str]) -> None:
        """Refuse to read a field that is left open and has no number then: all replicas, layers or domains."""
        swept = {name: name in a.unset for a in self.axes for name in a.members}
        for field in FIELDS.values():
            if field.name not in read or field.name in derived or field.form != "given" or field.unset != "1":
                continue
            if swept.get(field.name, self.base.plan.get(field.name) is None):
                raise InputError(f"{field.name}: is left open, and an expression reads it, expected a value for it")

    def _derive(self, expressions: Mapping[str, str], members: Sequence[str], read: set[str]) -> dict[str, Node]:
        trees: dict[str, Node] = {}
        for name, text in expressions.items():
            if name in CHOICES or (name not in NUMERIC and name not in read):
                near = nearest(name, NUMERIC)
                raise InputError(f"derived {name}: no such symbol, and no expression reads it{near}")
            trees[name] = number(text, [*NUMERIC, *members, *trees], f"derived {name}")
            if name in trees[name].names():
                raise InputError(f"derived {name}: {quote(text)} reads {name} itself, expected others")
        for name, node in trees.items():
            late = [n for n in node.names() if n in expressions and list(trees).index(n) > list(trees).index(name)]
            if late:
                raise InputError(f"derived {name}: reads {late[0]}, which comes after it")
        schedules = next((a.members["schedule"] for a in self.axes if "schedule" in a.members), None)
        if "vpp" in trees and None in (schedules if schedules is not None else [self.base.plan.get("schedule")]):
            raise InputError("derived vpp: needs a schedule, which is otherwise chosen by vpp")
        if "pp" in trees and self._laid_out:
            raise InputError("derived pp: how a layout is dealt changes the closed form, expected a list of values")
        if "cp" in trees:
            raise InputError("derived cp: whether it is above 1 changes the closed form, expected a list of values")
        return trees

    def _refuse_clashes(self, conditions: Mapping[str, Node]) -> None:
        """A reason has a name of its own, and a code."""
        reasons = self.question.reasons()
        others = reasons[: len(reasons) - len(conditions)]
        if len(reasons) > MOST_REASONS:
            most = MOST_REASONS - len(others)
            raise InputError(f"where: found {len(conditions)} conditions, expected at most {most} beside the rest")
        for name in conditions:
            if name in self.outputs or name in others:
                raise InputError(f"where {name}: is the name of an output or of another reason, expected a new one")

    def _check_outputs(self, asked: Sequence[str]) -> None:
        """Build cells until each output is found in one."""
        given = self.question.given() | {name for a in self.axes for name in a.members}
        for name, value in (("model", self.base.model), ("system", self.base.system)):
            if value is None and name not in given:
                raise InputError(f"{name}: is missing, expected it fixed or as an axis")
        for name in ("batch", "sequence"):
            if name not in self.base.work and name not in given:
                raise InputError(f"{name}: is missing, expected it fixed or as an axis")
        missing = set(asked)
        for key in product(*(range(len(groups)) for groups in self._groups)):
            made = self.cell(key)
            missing &= set(made.absent) if made.program is not None else missing
            if not missing:
                return
        for key in product(*(range(len(groups)) for groups in self._groups)):
            if self.cell(key).program is not None:
                first = next(name for name in asked if name in missing)
                raise unknown_output(first, self.base, self.question, *self._choices(key))
        raise InputError(f"no choices go together: {next(iter(self._cells.values())).impossible}")

    def __getstate__(self) -> dict[str, Any]:
        """For other processes: without what they build themselves."""
        return {**self.__dict__, "_cells": {}, "_kernels": {}}

    # --- cells

    @property
    def _laid_out(self) -> bool:
        """Whether a layout says what stages have, somewhere: how many devices it is dealt to changes the form."""
        axes = next((a.members["layout"] for a in self.axes if "layout" in a.members), None)
        return any(text is not None for text in (axes if axes is not None else [self.base.plan.get("layout")]))

    @cached_property
    def _groups(self) -> list[list[tuple[dict[str, Any], Array]]]:
        """Per axis, its choices and the positions that have them."""
        found: list[list[tuple[dict[str, Any], Array]]] = []
        for a in self.axes:
            groups: dict[tuple[Any, ...], list[int]] = {}
            structural = a.forms(("pp", "vpp") if self._laid_out else ())
            if not structural:
                found.append([({}, np.arange(len(a)))])
                continue
            for position, chosen in enumerate(zip(*structural.values(), strict=True)):
                groups.setdefault(chosen, []).append(position)
            found.append([(dict(zip(structural, k, strict=True)), np.array(p)) for k, p in groups.items()])
        return found

    def _choices(self, key: tuple[int, ...]) -> tuple[dict[str, Any], dict[str, float | None]]:
        chosen: dict[str, Any] = {}
        first: dict[str, float | None] = {}
        for a, groups, k in zip(self.axes, self._groups, key, strict=True):
            choices, positions = groups[k]
            chosen |= choices
            for name, values in a.members.items():
                if isinstance(values, np.ndarray):
                    open_ = choices.get(name) is False and name in a.unset and a.unset[name][positions[0]]
                    first[name] = None if open_ else values[positions[0]].item()
        return chosen, first

    def cell(self, key: tuple[int, ...]) -> Cell:
        """The cell of a group of each axis."""
        if key not in self._cells:
            self._cells[key] = cell(self.base, self.question, *self._choices(key))
        return self._cells[key]

    def parts(self, block: Block) -> Iterator[tuple[Cell, list[int], list[Array]]]:
        """The cells that a block meets: their sizes, and the positions of each axis there, relative to the block."""
        ranges = []
        for groups, cut in zip(self._groups, block, strict=True):
            inside = [(k, p[(p >= cut.start) & (p < cut.stop)] - cut.start) for k, (_, p) in enumerate(groups)]
            ranges.append([(k, p) for k, p in inside if p.size])
        for combination in product(*ranges):
            key = tuple(k for k, _ in combination)
            sizes = [groups[k][1].size for groups, k in zip(self._groups, key, strict=True)]
            yield self.cell(key), sizes, [p for _, p in combination]

    @cached_property
    def reasons(self) -> list[str]:
        """Every reason that a point may have; codes count from 1, 0 is feasible."""
        return self.question.reasons()

    @property
    def points(self) -> int:
        """Points of the grid."""
        return math.prod(self.shape)

    # --- numbers

    @cached_property
    def compiled(self) -> bool:
        """Whether a compiled kernel computes any cell."""
        keys = product(*(range(len(groups)) for groups in self._groups))
        return any(self._stores(key) for key in keys)

    def _stores(self, key: Sequence[int]) -> bool:
        """Whether a kernel stores a cell."""
        sizes = [groups[k][1].size for groups, k in zip(self._groups, key, strict=True)]
        return stores(self.axes, sizes, self.outputs, lambda: self.cell(tuple(key)))

    def compute(self, block: Block) -> dict[str, Array]:
        """The outputs and the reason at every point of a block.

        An output is NaN where a single run would refuse the plan, and where the structure does not have it; points
        that only `where` refuses keep their values.

        Returns:
            float64 arrays by output, and `reason` (uint8), all of the block's shape.
        """
        shape = tuple(cut.stop - cut.start for cut in block)
        found: dict[str, Array] = {}
        for made, sizes, positions in self.parts(block):
            if made.program is None:
                code = 1 + self.reasons.index(made.reason)
                values: dict[str, Any] = {**dict.fromkeys(self.outputs, np.nan), REASON: code}
            else:
                values = self._block(made, sizes, [p + c.start for p, c in zip(positions, block, strict=True)])
                if tuple(p.size for p in positions) == shape:
                    return values
            if not found:
                found = {name: np.empty(shape) for name in self.outputs} | {REASON: np.empty(shape, dtype=np.uint8)}
            into = _window(positions)
            for name, value in values.items():
                found[name][into] = value
        return found

    def _block(self, made: Cell, sizes: Sequence[int], at: Sequence[Array]) -> dict[str, Array]:
        if stores(self.axes, sizes, self.outputs, lambda: made):
            return self._compiled(made, sizes, at)
        shape = tuple(p.size for p in at)
        found: dict[str, Array] = {name: np.empty(shape) for name in self.outputs}
        found[REASON] = np.empty(shape, dtype=np.uint8)
        for piece in every(shape, block_shape(shape, POINTS)):
            for name, values in self.evaluate(made, [p[cut] for p, cut in zip(at, piece, strict=True)]).items():
                found[name][piece] = values
        return found

    def _compiled(self, made: Cell, sizes: Sequence[int], at: Sequence[Array]) -> dict[str, Array]:
        if id(made) not in self._kernels:
            self._kernels[id(made)] = CellKernel(self.axes, made, sizes, self.outputs)
        values = self._kernels[id(made)].store(at)
        shape = tuple(p.size for p in at)
        codes = np.array([0, *(1 + self.reasons.index(name) for name in made.constraints)], dtype=np.uint8)
        reason = codes[values[REASON]] if REASON in values else np.zeros(shape, dtype=np.uint8)
        invalid = self._invalid(reason)
        some = invalid.any()
        found = {REASON: reason}
        for name in self.outputs:
            found[name] = values[name] if name in values else np.full(shape, np.nan)
            if some:
                found[name][invalid] = np.nan
        return found

    def _invalid(self, reason: Array) -> Any:
        """Where a single run would refuse the plan."""
        return (reason > 0) & (reason <= len(self.reasons) - len(self.question.where))

    def evaluate(self, made: Cell, at: Sequence[Array]) -> dict[str, Array]:
        """The outputs and the reason at every combination of some positions of each axis, all inside a cell.

        NumPy computes each instruction over the axes that it depends on.
        """
        assert made.program is not None
        shape = tuple(p.size for p in at)
        inputs: dict[str, Any] = dict(made.scalars)
        for k, (a, positions) in enumerate(zip(self.axes, at, strict=True)):
            lie = [1] * len(shape)
            lie[k] = -1
            for name, along in a.members.items():
                if isinstance(along, np.ndarray) and name in made.program.inputs:
                    inputs[name] = along[positions].astype(np.float64).reshape(lie)
        values = evaluate(made.program, inputs, set(made.program.outputs.values()))
        reason = np.zeros(shape, dtype=np.uint8)
        for name in reversed(made.constraints):
            held = values[made.program.outputs[name]] >= 0
            reason = np.where(held, reason, np.uint8(1 + self.reasons.index(name)))
        found = {REASON: reason}
        invalid = self._invalid(reason)
        for name in self.outputs:
            value = values[made.program.outputs[name]] if name in made.program.outputs else np.nan
            found[name] = np.where(invalid, np.nan, value)
        return found


def _window(positions: Sequence[Array]) -> Any:
    """What selects some positions of each axis: slices where they can, which copy faster."""
    if all(p[-1] - p[0] == p.size - 1 for p in positions):
        return tuple(slice(p[0], p[-1] + 1) for p in positions)
    return np.ix_(*positions)


class Sweepable(Protocol):
    """A training run, as far as a sweep of it goes."""

    plan: Plan
    batch: int
    sequence: int
    base_model: Model
    base_system: System
    given: dict[str, Any]


def base_of(run: Sweepable) -> Base:
    """What a sweep of a run holds fixed.

    Raises:
        InputError: the run has images or recordings, whose encoders sweeps do not pass.
    """
    if getattr(run, "images", ()):
        raise InputError("images: a sweep passes no encoders of them, expected a run without images and sounds")
    plan = {name: getattr(run.plan, name) for name in Plan.names()}
    work = {"batch": run.batch, "sequence": run.sequence}
    return Base(run.base_model, run.base_system, plan, work, dict(run.given))
