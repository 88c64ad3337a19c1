"""Sweeps: a run's quantities over a grid of values and choices, block by block, with a reason where a point cannot be.

A grid is cut into cells of one structure and one set of choices. In each, NumPy computes every instruction over the
axes that it depends on, or a compiled kernel does.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from .axes import CHOICES, NUMERIC, Zip, axis, choice, one
from .cells import ANSWERS, FITS, Base, Cell, Question, cell, unknown_output
from .chunks import Block, block_shape, every
from .codegen.evaluate import evaluate
from .errors import InputError, nearest, shown
from .grammar import Node, number, predicate
from .plan import Plan
from .run import MODEL_SIZES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .run import Run

    Array = np.ndarray[Any, Any]

DEFAULT_OUTPUTS = ("time", "memory", "mfu")
REASON = "reason"
POINTS = 32_768
"""Points that NumPy computes together, so that their arrays stay in a cache."""
MAX_AXES = 12
_WORDS = {"<=": "le", ">=": "ge", "==": "eq", "!=": "ne", "<": "lt", ">": "gt", "//": "over", "**": "to_the"}
_WORDS |= {"*": "times", "/": "over", "+": "plus", "-": "minus", "%": "mod"}


class Sweep:
    """A question over a grid.

    Args:
        base: what is fixed.
        axes: by name: lists, ranges, `Zip`s of these; a text for a number is an expression (see `derived`), any other
            single value is fixed.
        derived: expressions by the symbol that they replace, or by a new name.
        where: conditions, as a list or by name; `fits` is that memory does not exceed the capacity.
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
        grid: dict[str, Any] = {}
        plan, work, values = dict(base.plan), dict(base.work), dict(base.values)
        for name, given in axes.items():
            if isinstance(given, str) and name not in CHOICES:
                if name in expressions:
                    raise InputError(f"axis {name}: is given twice, expected it once")
                expressions[name] = given
            elif isinstance(given, str) or not isinstance(given, Iterable | Zip):
                base = _fixed(base, name, given, plan, work, values)
            else:
                grid[name] = given
        base = Base(base.model, base.system, plan, work, values)
        for name in (*expressions, *grid):
            if not isinstance(name, str) or not name.isidentifier():
                raise InputError(f"axis {shown(name)}: expected a plain name")
        read = _words([*expressions.values(), *_listed(where).values()])
        extras = {n for n in grid if n not in NUMERIC and n not in CHOICES and (n in read or n in expressions.values())}
        extras |= {m for a in grid.values() for m in _zipped(a) if m not in NUMERIC and m not in CHOICES and m in read}
        self.axes = tuple(axis(name, given, extras) for name, given in grid.items())
        if not self.axes or len(self.axes) > MAX_AXES:
            raise InputError(f"axes: found {len(self.axes)}, expected 1 to {MAX_AXES}")
        self.shape = tuple(len(a) for a in self.axes)
        self.base = base
        members = [name for a in self.axes for name in a.members]
        for name in members:
            if members.count(name) > 1 or name in expressions:
                raise InputError(f"axis {name}: is given twice, expected it once")
        trees = self._derive(expressions, members, read)
        named = {"fits": predicate(FITS, ["memory", "memory_capacity"], "fits")}
        known = [*NUMERIC, *members, *trees, *(n for n in ANSWERS if n not in members)]
        conditions = {
            reason: predicate(text, known, f"where {reason}", named) for reason, text in _listed(where).items()
        }
        asked = [outputs] if isinstance(outputs, str) else list(outputs)
        for name in asked:
            if not isinstance(name, str):
                raise InputError(f"outputs: found {shown(name)}, expected names of quantities")
        if len(set(asked)) < len(asked) or not asked:
            raise InputError(f"outputs: found {shown(asked)}, expected one name or more, each once")
        clash = [n for n in asked if n in members or n == REASON]
        if clash:
            raise InputError(f"outputs: {clash[0]} is an axis, expected another quantity")
        self.outputs = tuple(dict.fromkeys([*asked, *trees]))
        varying = frozenset(m for m in members if m not in CHOICES)
        self.question = Question(self.outputs, trees, conditions, varying)
        self._cells: dict[tuple[int, ...], Cell] = {}
        self._check_outputs(asked)

    def _derive(self, expressions: Mapping[str, str], members: Sequence[str], read: set[str]) -> dict[str, Node]:
        trees: dict[str, Node] = {}
        for name, text in expressions.items():
            if name in CHOICES or (name not in NUMERIC and name not in read):
                near = nearest(name, NUMERIC)
                raise InputError(f"derived {name}: no such symbol, and no expression reads it{near}")
            trees[name] = number(text, [*NUMERIC, *members, *trees], f"derived {name}")
            if name in trees[name].names():
                raise InputError(f"derived {name}: {shown(text)} reads {name} itself, expected others")
        for name, node in trees.items():
            late = [n for n in node.names() if n in expressions and list(trees).index(n) > list(trees).index(name)]
            if late:
                raise InputError(f"derived {name}: reads {late[0]}, which comes after it")
        schedules = next((a.members["schedule"] for a in self.axes if "schedule" in a.members), None)
        if "vpp" in trees and None in (schedules if schedules is not None else [self.base.plan.get("schedule")]):
            raise InputError("derived vpp: needs a schedule, which is otherwise chosen by vpp")
        return trees

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
        return {**self.__dict__, "_cells": {}}

    # --- cells

    @cached_property
    def _groups(self) -> list[list[tuple[dict[str, Any], Array]]]:
        """Per axis, its choices and the positions that have them."""
        found: list[list[tuple[dict[str, Any], Array]]] = []
        for a in self.axes:
            groups: dict[tuple[Any, ...], list[int]] = {}
            structural = {n: v for n, v in a.members.items() if n in CHOICES}
            if "vpp" in a.members:
                structural["interleaved"] = tuple((np.asarray(a.members["vpp"]) > 1).tolist())
            if not structural:
                found.append([({}, np.arange(len(a)))])
                continue
            for position, chosen in enumerate(zip(*structural.values(), strict=True)):
                groups.setdefault(chosen, []).append(position)
            found.append([(dict(zip(structural, k, strict=True)), np.array(p)) for k, p in groups.items()])
        return found

    def _choices(self, key: tuple[int, ...]) -> tuple[dict[str, Any], dict[str, float]]:
        chosen: dict[str, Any] = {}
        first: dict[str, float] = {}
        for a, groups, k in zip(self.axes, self._groups, key, strict=True):
            choices, positions = groups[k]
            chosen |= choices
            for name, values in a.members.items():
                if isinstance(values, np.ndarray):
                    first[name] = values[positions[0]].item()
        return chosen, first

    def cell(self, key: tuple[int, ...]) -> Cell:
        """The cell of a group of each axis."""
        if key not in self._cells:
            self._cells[key] = cell(self.base, self.question, *self._choices(key))
        return self._cells[key]

    def parts(self, block: Block) -> Iterator[tuple[Cell, list[Array]]]:
        """The cells that a block meets, with the positions of each axis there, relative to the block."""
        ranges = []
        for groups, cut in zip(self._groups, block, strict=True):
            inside = [(k, p[(p >= cut.start) & (p < cut.stop)] - cut.start) for k, (_, p) in enumerate(groups)]
            ranges.append([(k, p) for k, p in inside if p.size])
        for combination in product(*ranges):
            yield self.cell(tuple(k for k, _ in combination)), [p for _, p in combination]

    @cached_property
    def reasons(self) -> list[str]:
        """Every reason that a point may have; codes count from 1, 0 is feasible."""
        return self.question.reasons()

    @property
    def points(self) -> int:
        """Points of the grid."""
        return math.prod(self.shape)

    # --- numbers

    def compute(self, block: Block) -> dict[str, Array]:
        """The outputs and the reason at every point of a block.

        An output is NaN where a single run would refuse the plan; points that only `where` refuses keep their values.

        Returns:
            float64 arrays by output, and `reason` (uint8), all of the block's shape.
        """
        shape = tuple(cut.stop - cut.start for cut in block)
        found: dict[str, Array] = {name: np.full(shape, np.nan) for name in self.outputs}
        found[REASON] = np.full(shape, 1, dtype=np.uint8)
        for made, positions in self.parts(block):
            if made.program is None:
                continue
            at = [p + cut.start for p, cut in zip(positions, block, strict=True)]
            into = np.ix_(*positions)
            for name, values in self._block(made, at).items():
                found[name][into] = values
        return found

    def _block(self, made: Cell, at: Sequence[Array]) -> dict[str, Array]:
        shape = tuple(p.size for p in at)
        found: dict[str, Array] = {name: np.empty(shape) for name in self.outputs}
        found[REASON] = np.empty(shape, dtype=np.uint8)
        for piece in every(shape, block_shape(shape, POINTS)):
            for name, values in self.evaluate(made, [p[cut] for p, cut in zip(at, piece, strict=True)]).items():
                found[name][piece] = values
        return found

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
        invalid = (reason > 0) & (reason <= len(self.reasons) - len(self.question.where))
        for name in self.outputs:
            value = values[made.program.outputs[name]] if name in made.program.outputs else 0.0
            found[name] = np.where(invalid, np.nan, value)
        return found


def base_of(run: Run) -> Base:
    """What a sweep of a run holds fixed."""
    plan = {name: getattr(run.plan, name) for name in Plan.names()}
    work = {"batch": run.batch, "sequence": run.sequence}
    return Base(run.base_model, run.base_system, plan, work, dict(run.given))


def _fixed(
    base: Base, name: str, value: Any, plan: dict[str, Any], work: dict[str, int], values: dict[str, Any]
) -> Base:
    """Put a single value where it belongs; the base with the model or system changed if it is one."""
    where = f"set {name}"
    if name in CHOICES:
        chosen = choice(name, value, where)
        if name == "model":
            return Base(chosen, base.system, {}, {}, {})
        if name == "system":
            return Base(base.model, chosen, {}, {}, {})
        plan[name] = chosen
    elif name in NUMERIC:
        checked = one(name, value, where)
        target: dict[str, Any] = plan if name in Plan.names() else work if name in ("batch", "sequence") else values
        target[name] = int(checked) if name in MODEL_SIZES else checked
    else:
        raise InputError(f"axis {name}: no such symbol{nearest(name, [*NUMERIC, *CHOICES])}")
    return base


def _zipped(given: Any) -> list[str]:
    if isinstance(given, Mapping) and isinstance(given.get("zip"), Mapping):
        return [str(name) for name in given["zip"]]
    return list(given.members) if isinstance(given, Zip) else []


def _listed(where: Iterable[str] | Mapping[str, str]) -> dict[str, str]:
    """Conditions by the name of the reason when they fail: words that CF attributes allow."""
    if isinstance(where, str):
        where = [where]
    if isinstance(where, Mapping):
        for name in where:
            if not isinstance(name, str) or not name.isidentifier():
                raise InputError(f"where {shown(name)}: expected a plain name")
        return dict(where)
    found: dict[str, str] = {}
    for text in where:
        if not isinstance(text, str):
            raise InputError(f"where: found {shown(text)}, expected an expression as text")
        slug = text
        for sign, word in _WORDS.items():
            slug = slug.replace(sign, f" {word} ")
        slug = "_".join("".join(c if (c.isascii() and c.isalnum()) or c == "_" else " " for c in slug).split())[:80]
        name = "does_not_fit" if slug == "fits" else f"not_{slug or 'met'}"
        found[name if name not in found else f"{name}_{len(found)}"] = text
    return found


def _words(texts: Iterable[Any]) -> set[str]:
    """Every name in some expressions, roughly: to tell names that are used from misspelt ones."""
    spaced = " ".join(t if isinstance(t, str) else "" for t in texts)
    return set("".join(c if c.isalnum() or c == "_" else " " for c in spaced).split())
