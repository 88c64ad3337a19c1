"""Why the best plan is the best: what binds it, the nearest alternatives, and what each would need to win.

All from the programs with which the plans were searched: no structure is compiled for an explanation.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..codegen.interpret import adjoints, arrays, floats, run
from ..codegen.passes import masks
from ..common.vocabulary import resource_of
from .family import families, program_of, structures_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..codegen.program import Program
    from .search import Answer, Found

    Array = np.ndarray[Any, Any]

WIDEST = 64.0
"""The largest factor on a rate or a latency that is tried."""
FACTORS, ROUNDS = 128, 2
"""How many are priced at once, and how often: exponents are found to 1e-4."""


@dataclass(frozen=True)
class Alternative:
    """The best plan that differs from the winner in one field, whatever the others are.

    Attributes:
        field: the field.
        value: its value there.
        fields: of the plan.
        time: seconds of a step.
        slower: how much longer the step is, as a fraction of the winner's; where plans are ranked by joules of
            resources, how many more joules it takes.
        exact: False where a plan with this value that a bound excluded may be faster than this one, though not faster
            than the plans in the list.
        needs: the figure of the system whose change makes the two equally fast, if one does; None by joules.
        factor: by which it has to change.
    """

    field: str
    value: Any
    fields: dict[str, Any]
    time: float
    slower: float
    exact: bool
    needs: str | None
    factor: float | None


def alternatives(answer: Answer) -> list[Alternative]:
    """The alternatives, nearest first."""
    found = answer.best
    best = found.space.fields(found.tally.best.place[0])
    mine = float(found.tally.best.score[0])
    priced = PricedPlans(found)
    winner = priced.plan(found.tally.best.place[0])
    listed = []
    for name, values in found.question.candidates.items():
        if len(set(values)) < 2:
            continue
        other = _other(found, name, best[name])
        if other is None:
            continue
        needed, place = other
        fields = found.space.fields(place)
        joules = found.question.by_energy
        time = priced.plan(place).time() if joules else needed
        symbol, factor = (None, None) if joules else what_it_needs(winner, priced.plan(place))
        exact = not found.tally.pruned or needed <= found.tally.threshold
        listed.append(Alternative(name, fields[name], fields, time, needed / mine - 1, exact, symbol, factor))
    return sorted(listed, key=lambda each: each.slower)


def _other(found: Found, name: str, value: Any) -> tuple[float, tuple[int, int, int]] | None:
    """Score and place of the best plan whose field has another value."""
    tally, space = found.tally, found.space
    times: list[tuple[float, tuple[int, int, int]]] = []
    if name not in space.question.columns or name == "expert_tp":
        for combination in space.combinations:
            time = float(tally.combination_score[combination.number])
            if combination.fields[name] != value and np.isfinite(time):
                number, table, row = (int(part) for part in tally.combination_place[combination.number])
                times.append((time, (number, table, row)))
    else:
        for k, made in enumerate(space.tables):
            time_of_rows = np.where(made.columns[name] != value, tally.row_score[k], np.inf)
            if time_of_rows.size and np.isfinite(time_of_rows.min()):
                row = int(time_of_rows.argmin())
                times.append((float(time_of_rows[row]), (int(tally.row_combination[k][row]), k, row)))
    return min(times, default=None)


@dataclass(frozen=True, eq=False)
class PricedPlan:
    """A plan's step time as a program, and the values of its inputs.

    Attributes:
        program: with the output "time".
        inputs: by name.
    """

    program: Program
    inputs: dict[str, float]

    def time(self) -> float:
        """The step time."""
        return float(self.values[self.program.outputs["time"]])

    @cached_property
    def values(self) -> list[Any]:
        """Of every instruction."""
        return run(self.program, self.inputs, floats())

    def times(self, name: str, factors: Array) -> Array:
        """The step times at many factors on an input, of which only what depends on it is computed again."""
        key = name, factors.tobytes()
        if key not in self._times:
            self._times[key] = self._compute(name, factors)
        return self._times[key]

    def _compute(self, name: str, factors: Array) -> Array:
        if name not in self.inputs:
            return np.asarray(self.time())
        values, forward = list(self.values), arrays().forward
        moves = masks(self.program, (name,))
        with np.errstate(all="ignore"):
            for position, (operation, *operands) in enumerate(self.program.instructions):
                if moves[position]:
                    given = [values[operand] for operand in operands] if operation != "input" else []
                    values[position] = forward[operation](*given) if given else self.inputs[name] * factors
        return np.asarray(values[self.program.outputs["time"]])

    @cached_property
    def _times(self) -> dict[tuple[str, bytes], Array]:
        return {}

    @cached_property
    def elasticities(self) -> dict[str, float]:
        """Elasticity d ln T / d ln x of every rate and latency that the time depends on."""
        at, values = self.program.outputs["time"], self.values
        slopes = adjoints(self.program, values, at, floats())
        named = {name: place for name, place in self.program.inputs.items() if place in slopes and resource_of(name)}
        return {name: slopes[place] * values[place] / values[at] for name, place in named.items()}


class PricedPlans:
    """The plans of a search, each with its part of the program of its family."""

    def __init__(self, found: Found) -> None:
        self.space = found.space
        self._known: dict[tuple[int, ...], PricedPlan] = {}

    @cached_property
    def _families(self) -> dict[tuple[int, int], tuple[Any, tuple[Any, ...]]]:
        """The member of each combination and table, and the structures of its family."""
        groups = families(self.space.members)
        return {(m.number, m.table): (m, structures_of(group)) for group in groups for m in group}

    def plan(self, place: Sequence[int]) -> PricedPlan:
        """The plan of a combination, a table and a row."""
        key = tuple(int(part) for part in place)
        if key not in self._known:
            self._known[key] = self._price(*key)
        return self._known[key]

    def _price(self, number: int, table: int, row: int) -> PricedPlan:
        member, structures = self._families[number, table]
        name = f"time/{structures.index(member.structure)}"
        part = program_of(structures, self.space.question.columns).part({"time": name})
        columns = {name: float(column[row]) for name, column in self.space.tables[table].columns.items()}
        known = {**member.scalars, **columns}
        return PricedPlan(part, {name: known[name] for name in part.inputs})


def what_it_needs(winner: PricedPlan, other: PricedPlan) -> tuple[str | None, float | None]:
    """The rate or latency whose change makes two plans equally fast by the smallest factor, and the factor."""
    slopes = [each.elasticities for each in (winner, other)]
    gains = {n: slopes[0].get(n, 0.0) - slopes[1].get(n, 0.0) for n in {*slopes[0], *slopes[1]}}
    ranked = sorted(gains, key=lambda n: (-abs(gains[n]), n))
    for name in ranked[:2]:
        factor = _crossing(winner, other, name, up=gains[name] > 0)
        if factor is not None:
            return name, factor
    return None, None


def _crossing(winner: PricedPlan, other: PricedPlan, name: str, *, up: bool) -> float | None:
    """The factor on a symbol at which the other's time has fallen to the winner's, looked for on a log scale.

    Many factors are priced at once, and then as many between the two of which one is not enough and the next is.
    """
    low, high = 0.0, 1.0
    for _ in range(ROUNDS):
        exponents = np.linspace(low, high, FACTORS)
        factors = WIDEST ** (exponents if up else -exponents)
        times = [each.times(name, factors) for each in (winner, other)]
        enough = np.broadcast_to(times[1] <= times[0], factors.shape)
        if not enough.any():
            return None
        first = max(int(enough.argmax()), 1)
        low, high = exponents[first - 1], exponents[first]
    return float(WIDEST ** (high if up else -high))
