"""A fit in words and numbers: values with their errors, residuals by kind, correlations, warnings."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from .fit import DEPENDS, covariance
from .plausible import SLOW
from .result import Residuals, Symbol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .fit import Fit, Problem
    from .symbols import Prior
    from .table import MeasuredRow

RULES = 0.5
"""A row is ruled by a symbol if its time goes at least with the root of it."""
SPREAD_ROWS = 10
CLOSE = 0.9


def symbols_of(
    problem: Problem, outcome: Fit, believed: Sequence[Prior], values: dict[str, float], held: dict[str, str]
) -> list[Symbol]:
    """Every symbol that was to be fitted, with its value, its error and what single rows ask for."""
    errors = np.sqrt(np.diag(covariance(problem, outcome))) if problem.priors else np.zeros(0)
    at = {name: place for place, name in enumerate(problem.names)}
    found = []
    for prior in believed:
        name, before = prior.name, values[prior.name]
        if name in held:
            found.append(Symbol(name, before, before, None, None, None, prior.width, 0, held[name]))
            continue
        place = at[name]
        value = _round(math.exp(outcome.logs[place]))
        slopes = outcome.slopes[:, place]
        low, high = _values_that_rows_ask_for(outcome, slopes, value, prior)
        depending = int((np.abs(slopes) > DEPENDS).sum())
        found.append(Symbol(name, before, value, float(errors[place]), low, high, prior.width, depending))
    return found


def _round(value: float) -> float:
    return float(f"{value:.6g}")


def _values_that_rows_ask_for(
    outcome: Fit, slopes: Any, value: float, prior: Prior
) -> tuple[float | None, float | None]:
    """10th and 90th percentile of the value with which each row that it rules would be met exactly."""
    ruled = np.abs(slopes) > RULES
    if int(ruled.sum()) < SPREAD_ROWS:
        return None, None
    asked = np.log(value) - outcome.residuals[ruled] / slopes[ruled]
    low, high = (float(np.exp(np.percentile(asked, part))) for part in (10, 90))
    return _round(min(max(low, prior.low), value)), _round(max(min(high, prior.high), value))


def residuals_of(problem: Problem, outcome: Fit, values: dict[str, float]) -> list[Residuals]:
    """How far predictions are from the rows, by kind and in all."""
    rows = [row for family in problem.families for row in family.rows]
    kinds = np.array([row.kind for row in rows])
    before = np.concatenate([np.log(family.predict(values) / family.seconds) for family in problem.families])
    found = []
    for kind in (*dict.fromkeys(kinds.tolist()), "all"):
        chosen = np.flatnonzero(kinds == kind) if kind != "all" else np.arange(len(rows))
        part = outcome.residuals[chosen]
        worst = int(np.argmax(np.abs(part)))
        found.append(
            Residuals(
                kind,
                len(part),
                float(part.mean()),
                float(np.abs(part).mean()),
                float(np.median(np.abs(part))),
                float(part[worst]),
                rows[chosen[worst]].line,
                rows[chosen[worst]].file,
                float(np.abs(before[chosen]).mean()),
            )
        )
    return found


def correlations_of(problem: Problem, outcome: Fit) -> list[tuple[str, str, float]]:
    """Correlations of the fitted symbols' logarithms, the closest first."""
    if len(problem.priors) < 2:
        return []
    spread = covariance(problem, outcome)
    deviation = np.sqrt(np.diag(spread))
    names = problem.names
    pairs = [
        (names[a], names[b], float(spread[a, b] / (deviation[a] * deviation[b])))
        for a in range(len(names))
        for b in range(a)
    ]
    return sorted(pairs, key=lambda pair: -abs(pair[2]))


def warnings_of(devices: tuple[str, ...], problem: Problem, outcome: Fit, slow: list[MeasuredRow]) -> list[str]:
    """What the user should know beside the numbers."""
    found = []
    if len(devices) > 1:
        found.append(f"rows are of {len(devices)} devices: {', '.join(devices)}")
    for file in dict.fromkeys(row.file for row in slow):
        lines = [str(row.line) for row in slow if row.file == file]
        listed = ", ".join([*lines[:8], *(["..."] if len(lines) > 8 else [])])
        found.append(f"{file}: lines {listed}: more than {SLOW:g} times slower than predicted; left out")
    for a, b, value in correlations_of(problem, outcome):
        if abs(value) > CLOSE:
            found.append(f"{a} and {b} are hardly told apart: correlation {value:+.2f}")
    for prior, log in zip(problem.priors, outcome.logs, strict=True):
        ends = [bound for bound in (prior.low, prior.high) if abs(log - math.log(bound)) < 1e-3]
        found += [f"{prior.name} is at the end of its range, {bound:g}: rows ask for more" for bound in ends]
    return found
