"""Which operands the bound of a kernel leaves out: those that cost most in its innermost loop and change it least.

A choice changes how long a kernel runs, and never what it finds. It is made for the values of one grid, and kept:
others of the same program use the same machine code.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .bound import Relaxation, add_bound, intervals
from .builder import operands_of
from .evaluate import evaluate
from .interpret import adjoints, arrays
from .loop_nest import SCALAR_CALLS, WEIGHTS, LoopNest, placements
from .passes import axis_sizes, inputs_along, masks
from .store import digest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .bound import Bounded, Interval
    from .program import Program
    from .reduce import TopK
    from .store import Store

    Array = np.ndarray[Any, Any]

LEAST = 16.0
"""Cost of the innermost loop up to which no bound is looked for."""
BLOCKS, POINTS = 96, 8
"""Blocks of the sample, and points of each."""
ROUNDS = 24
PART = 0.15
"""Of the operations of the innermost loop, those that a round leaves out at most and that change the bound."""
WORTH = 0.8
"""The time that a point takes with a bound, of that without one, above which there is none."""
LOOK = 4.0
"""Cost of comparing a bound, in operations a point."""
OFTEN = 0.3
"""Part of the points of the sample where a factor has to be known not to be negative, to be taken for that."""


@dataclass(frozen=True)
class Choice:
    """What a bound leaves out.

    Attributes:
        nest: the loops.
        drops: the operand by instruction.
        signs: instructions that are taken not to be negative.
        guards: those of them that may be, at some points.
        most: part of the blocks from which on looking at the bound costs more than it saves.
    """

    nest: LoopNest
    drops: tuple[tuple[int, int], ...]
    signs: frozenset[int]
    guards: frozenset[int]
    most: float

    def add_to(self, program: Program, top: TopK) -> Bounded:
        """The program with the bound.

        Raises:
            ValueError: it is none.
        """
        signs = [p in self.signs for p in range(len(program))]
        inside = [cost > 0 for cost in innermost_costs(program, self.nest)]
        relaxed = Relaxation(program, top.output, signs, inside, dict(self.drops), down=not top.largest)
        return add_bound(relaxed, top.output, self.guards)

    def to_json(self) -> dict[str, Any]:
        """As plain lists."""
        lists = {"drops": [list(drop) for drop in self.drops], "signs": sorted(self.signs)}
        return {**lists, "guards": sorted(self.guards), "vector": list(self.nest.vector), "most": self.most}

    @classmethod
    def from_json(cls, data: Mapping[str, Any], nest: LoopNest) -> Choice:
        """What `to_json` wrote, for a nest with the same axes in its vector."""
        nest = LoopNest(nest.outer, tuple(axis if isinstance(axis, str) else tuple(axis) for axis in data["vector"]))
        drops = tuple((int(p), int(which)) for p, which in data["drops"])
        return cls(nest, drops, frozenset(data["signs"]), frozenset(data["guards"]), float(data["most"]))


@dataclass(frozen=True)
class Chosen:
    """A choice, and the program with the bound."""

    choice: Choice
    bounded: Bounded


def innermost_costs(program: Program, nest: LoopNest) -> list[float]:
    """Per instruction its cost in the innermost loop, 0 where it is computed further out."""
    found = []
    for (operation, *_), place in zip(program.instructions, placements(program, nest), strict=True):
        inside = place.vector and place.level == len(nest.outer)
        found.append((WEIGHTS | SCALAR_CALLS).get(operation, 1.0) if inside else 0.0)
    return found


def find_ranges(columns: Mapping[str, Array], scalars: Mapping[str, Any]) -> dict[str, Interval]:
    """Of the inputs."""
    found = {name: (float(value), float(value)) for name, value in scalars.items()}
    return found | {name: (float(column.min()), float(column.max())) for name, column in columns.items()}


def load_or_choose(
    program: Program,
    top: TopK,
    constraints: Sequence[str],
    nest: LoopNest,
    columns: Mapping[str, Array],
    scalars: Mapping[str, Any],
    store: Store,
    *,
    block: int,
    may_turn: bool,
    may_choose: bool,
) -> Chosen | None:
    """The choice for a kernel, from the store where it is there, and the program with the bound.

    Args:
        program: of the kernel.
        top: what it keeps.
        constraints: outputs at least zero where a point counts.
        nest: the loops.
        columns: points by input.
        scalars: the other inputs.
        store: where choices are kept.
        block: points of the vector computed together.
        may_turn: whether the axes of the vector may change places.
        may_choose: whether to choose where the store has nothing.

    Returns:
        None where no bound pays.
    """
    if sum(innermost_costs(program, nest)) < LEAST:
        return None
    about = [program.to_json(), nest.outer, nest.vector, list(constraints), top.output, top.largest, block, may_turn]
    key = digest("bound", json.dumps(about))
    known = _load(store.load(key), program, top, nest)
    if known is not None and (not may_choose or known.bounded.holds(find_ranges(columns, scalars))):
        return known
    if not may_choose:
        return None
    # One that is none for this grid is chosen anew: what it takes not to be negative is then looked up at each point.
    guards = known.choice.guards if known is not None else frozenset()
    chosen = choose(program, top, constraints, nest, columns, scalars, guards, block=block, may_turn=may_turn)
    if chosen is None:
        return known
    store.save(key, chosen.to_json())
    return Chosen(chosen, chosen.add_to(program, top))


def _load(data: Any, program: Program, top: TopK, nest: LoopNest) -> Chosen | None:
    """What was kept, and the program with it, unless it is damaged."""
    try:
        choice = Choice.from_json(data, nest)
        return Chosen(choice, choice.add_to(program, top)) if set(choice.nest.vector) == set(nest.vector) else None
    except (KeyError, TypeError, ValueError, IndexError):
        return None


def choose(
    program: Program,
    top: TopK,
    constraints: Sequence[str],
    nest: LoopNest,
    columns: Mapping[str, Array],
    scalars: Mapping[str, Any],
    doubtful: frozenset[int],
    *,
    block: int,
    may_turn: bool,
) -> Choice | None:
    """The choice for a kernel; see `load_or_choose`.

    Args:
        program: of the kernel.
        top: what it keeps.
        constraints: outputs at least zero where a point counts.
        nest: the loops.
        columns: points by input.
        scalars: the other inputs.
        doubtful: instructions that may be negative, whatever this grid says.
        block: points of the vector computed together.
        may_turn: whether the axes of the vector may change places.
    """
    known = intervals(program, find_ranges(columns, scalars))
    if known is None:
        return None
    signs = [low >= 0 for low, _ in known]
    costs = innermost_costs(program, nest)
    root = program.outputs[top.output]
    # 1. Factors that are negative at some points, known outside the innermost loop: these points are not ruled out.
    points = {**scalars, **sample(columns, nest, block)}
    values = evaluate(program, points, range(len(program)))
    factors = {o for i in program.instructions if i[0] == "multiply" for o in i[1:] if not signs[o] and not costs[o]}
    often = {p: float(np.mean(values[p] >= 0)) for p in factors}
    guards = doubtful | {p for p, part in often.items() if part >= OFTEN}
    signs = [known or p in guards for p, known in enumerate(signs)]
    # 2. Axes that decide them go first in the vector, so that blocks are one or the other.
    if may_turn:
        depends = masks(program, nest.vector)
        deciding = 0
        for p in guards:
            deciding |= depends[p] if often.get(p, 1) < 1 else 0
        turned = sorted(nest.vector, key=lambda axis: not deciding >> nest.vector.index(axis) & 1)
        nest = LoopNest(nest.outer, tuple(turned))
        points = {**scalars, **sample(columns, nest, block)}
        values = evaluate(program, points, range(len(program)))
    # 3. What is feasible at the sample, and the best there.
    shape = (2 * BLOCKS, POINTS)
    feasible = np.isfinite(np.broadcast_to(values[root], shape))
    for name in constraints:
        feasible &= np.broadcast_to(values[program.outputs[name]], shape) >= 0
    if not feasible.any():
        return None
    key = np.broadcast_to(values[root], shape)
    best = key[feasible].max() if top.largest else key[feasible].min()
    # 4. Round after round more is left out: the cost of the bound, and of the blocks that it does not rule out.
    tried: list[tuple[float, float, Relaxation]] = []
    drops: dict[int, int] = {}
    whole = 0.0
    for _ in range(ROUNDS):
        relaxed = Relaxation(program, top.output, signs, [cost > 0 for cost in costs], drops, down=not top.largest)
        current = _Round(relaxed, root, costs, points, feasible)
        whole = whole or current.cost
        near = (current.bound >= best) if top.largest else (current.bound <= best)
        for p in relaxed.relies & guards:
            near = near | np.broadcast_to(values[p] < 0, shape)
        left = float((near & feasible)[:BLOCKS].any(axis=1).mean())
        tried.append((current.cost + LOOK + left * whole, current.cost, relaxed))
        more = current.find_drops()
        if not more:
            break
        drops = {**drops, **more}
    least, cost, relaxed = min(tried, key=lambda each: each[0])
    if least > WORTH * whole:
        return None
    kept = tuple((p, which) for p, which in relaxed.drops.items() if relaxed.read[p])
    relies = frozenset(relaxed.relies)
    return Choice(nest, kept, relies, relies & guards, max(0.0, 1 - (cost + LOOK) / whole))


def sample(columns: Mapping[str, Array], nest: LoopNest, block: int) -> dict[str, Array]:
    """Points of a grid by input, a row for each block: random ones of random blocks, then as many ends and middles."""
    rng = np.random.default_rng(0)
    points = axis_sizes(columns, (*nest.outer, *nest.vector))
    found = {axis: rng.integers(points[axis], size=(BLOCKS, 1)).repeat(POINTS, 1) for axis in nest.outer}
    sizes = [points[axis] for axis in nest.vector]
    start = rng.integers(-(-math.prod(sizes) // block), size=(BLOCKS, 1)) * block
    flat = start + (rng.random((BLOCKS, POINTS)) * np.minimum(block, math.prod(sizes) - start)).astype(np.int64)
    found.update(zip(nest.vector, np.unravel_index(flat, sizes), strict=True))
    ends = {axis: rng.choice([0, n // 2, n - 1], (BLOCKS, POINTS)) for axis, n in points.items()}
    chosen = {axis: np.concatenate([found[axis], ends[axis]]) for axis in points}
    return {name: columns[name][where] for axis, where in chosen.items() for name in inputs_along(axis)}


class _Round:
    """What may be left out next.

    Args:
        relaxed: the program, and what has been left out.
        root: the position of the output.
        costs: per instruction in the innermost loop.
        points: inputs.
        feasible: which points count.
    """

    def __init__(
        self,
        relaxed: Relaxation,
        root: int,
        costs: Sequence[float],
        points: Mapping[str, Any],
        feasible: Array,
    ) -> None:
        self.relaxed = relaxed
        self.program = relaxed.program
        self.root = root
        self.costs = [0.0 if p in relaxed.drops else cost for p, cost in enumerate(costs)]
        self.feasible = feasible
        needed = relaxed.read
        self.uses = Counter(o for p in range(root + 1) if needed[p] for o in operands_of(self.program, p))
        self.uses[root] += 1
        self.cost = sum(cost for cost, need in zip(self.costs, needed, strict=True) if need)
        self.values = evaluate(self.program, points, range(len(needed)), needed)
        self.bound: Array = np.broadcast_to(self.values[root], feasible.shape)

    def find_drops(self) -> dict[int, int]:
        """The next operands to leave out: all that change nothing at the sample, and the best of the others."""
        with np.errstate(all="ignore"):
            slopes = adjoints(self.program, self.values, self.root, arrays())  # type: ignore[arg-type]
            offers = sorted(
                (lost / saved, -saved, position, which)
                for position in slopes
                if self.costs[position]
                for which in (0, 1)
                if self.relaxed.can_drop(position, which)
                for saved in [self._save(position, which)]
                for lost in [self._lose(position, which, slopes[position])]
            )
        found: dict[int, int] = {}
        budget = PART * self.cost
        for ratio, saved, position, which in offers:
            if position not in found and (ratio <= 0 or budget + saved >= 0):
                found[position] = which
                budget += saved if ratio > 0 else 0
        return found or {position: which for _, _, position, which in offers[:1]}

    def _lose(self, position: int, which: int, slope: Any) -> float:
        """By how much of itself the bound moves, to first order, at the feasible points of the sample."""
        kept = self.values[self.program.instructions[position][2 - which]]
        moved = np.abs((self.values[position] - kept) * slope / self.bound)
        lost = float(np.broadcast_to(moved, self.feasible.shape)[self.feasible].mean())
        return lost if lost == lost else math.inf

    def _save(self, position: int, which: int) -> float:
        """The cost of an operation, and of all that nothing reads any more without one of its operands."""
        total = self.costs[position]
        left: dict[int, int] = {}
        todo = [self.program.instructions[position][1 + which]]
        while todo:
            operand = todo.pop()
            left[operand] = left.get(operand, self.uses[operand]) - 1
            if not left[operand]:
                total += self.costs[operand]
                todo += operands_of(self.program, operand)
        return total
