"""What pictures of training steps and of inferences share: terms of a time as bars, operations under a roofline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..pictures.charts import Bar, TimeBars
from ..pictures.roofline import Point, Roofline
from .bars import REST, ordered
from .scaled import seconds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..evaluation.base_run import BaseRun, Row
    from ..runs.full_run import FullRun

MOST: Final = 14
"""Bars of terms, with the one of all others."""
ROOFS: Final = {"matrix_rate": "matrix", "attention_rate": "attention", "score_rate": "scores", "vector_rate": "vector"}
"""Peaks that are roofs, and their names; of equal ones the first."""


def time_bars(title: str, rows: Sequence[Row], total: float) -> TimeBars:
    """The largest terms as bars, and the others together.

    Args:
        title: of the chart.
        rows: of the breakdown.
        total: seconds of which shares are told.
    """
    largest, rest = ordered(rows, MOST - 1)
    bars = [Bar(row.name, row.time_s, row.time_s / total, row.bound or "") for row in largest]
    if rest:
        left = sum(row.time_s for row in rest)
        bars.append(Bar(f"{len(rest)} {REST}", left, left / total, ""))
    return TimeBars(f"{title}: {seconds(total)}", bars)


def roofline(title: str, run: BaseRun, points: Sequence[Point]) -> Roofline:
    """Operations under the peaks that the run's formulas read.

    Args:
        title: of the chart.
        run: with the peaks of its device.
        points: of operations.
    """
    used, roofs = run.compiled.program.inputs, dict[float, str]()
    for symbol, name in ROOFS.items():
        if symbol in used and symbol in run.bound:
            roofs.setdefault(run.bound[symbol][0], name)
    return Roofline(title, points, {name: rate for rate, name in roofs.items()}, run.bound["memory_bandwidth"][0])


def title_of(run: FullRun, work: str) -> str:
    """The title of a picture: what runs, where, and on what work."""
    count = run.plan.devices
    return f"{run.model.name} on {count} x {run.system.title}, {work}"
