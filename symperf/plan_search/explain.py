"""Why the best plan is the best: what binds it, the nearest alternatives, and what each would need to win."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..codegen.interpret import floats, run

if TYPE_CHECKING:
    from ..runs.training_run import Run
    from .search import Answer, Found

WIDEST = 64.0
"""The largest factor on a rate or a latency that is tried."""
HALVINGS = 40


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
    listed = []
    for name, values in found.question.candidates.items():
        if len(set(values)) < 2:
            continue
        other = _other(found, name, best[name])
        if other is None:
            continue
        needed, place = other
        fields = found.space.fields(place)
        run_of_it = found.question.run(**fields)
        joules = found.question.by_energy
        time = run_of_it.value("time") if joules else needed
        symbol, factor = (None, None) if joules else what_it_needs(answer.winner, run_of_it)
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


def what_it_needs(winner: Run, other: Run) -> tuple[str | None, float | None]:
    """The rate or latency whose change makes two plans equally fast by the smallest factor, and the factor."""
    slopes = [{n: s for n, s in each.sensitivity().items() if n in each.compiled.resources} for each in (winner, other)]
    gains = {n: slopes[0].get(n, 0.0) - slopes[1].get(n, 0.0) for n in {*slopes[0], *slopes[1]}}
    ranked = sorted(gains, key=lambda n: (-abs(gains[n]), n))
    for name in ranked[:2]:
        factor = _crossing(winner, other, name, up=gains[name] > 0)
        if factor is not None:
            return name, factor
    return None, None


def _crossing(winner: Run, other: Run, name: str, *, up: bool) -> float | None:
    """The factor on a symbol at which the other's time has fallen to the winner's, by halving on a log scale."""

    def behind(exponent: float) -> float:
        factor = WIDEST ** (exponent if up else -exponent)
        times = []
        for each in (winner, other):
            program = each.compiled.program
            inputs = {n: v * factor if n == name else v for n, (v, _) in each.bound.items()}
            times.append(run(program, inputs, floats())[program.outputs["time"]])
        return float(times[1] - times[0])

    low, high = 0.0, 1.0
    if behind(high) > 0:
        return None
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if behind(middle) > 0 else (low, middle)
        if high - low < 1e-4:
            break
    return float(WIDEST ** (high if up else -high))
