"""A training step as a picture: its largest terms, its operations under a roofline, memory by stage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..common.errors import InputError
from ..pictures.charts import StageBars
from ..pictures.figure import Sheet
from ..pictures.roofline import Point
from .picture_runs import roofline, time_bars, title_of
from .stages import LISTED_STAGES, classes
from .training import merge_rows

if TYPE_CHECKING:
    from ..pictures.charts import Chart
    from ..runs.training_run import Run


def sheet(run: Run) -> Sheet:
    """The picture.

    Raises:
        InputError: more stages than can be drawn.
    """
    terms = time_bars("step time by term", merge_rows(run.table()), run.value("time"))
    charts: list[Chart] = [terms, roofline(ROOFLINE, run, points(run)), stages(run)]
    return Sheet(title_of(run, f"batch {run.batch} x {run.sequence} tokens"), charts)


ROOFLINE = "operations of a device under its data sheet; larger marks take more time"


def points(run: Run) -> list[Point]:
    """Operations that compute, with what all their executions on a device need; hidden ones too."""
    return [
        Point(row.name.removeprefix("layer/"), row.flops, row.bytes, row.count * row.each_s, row.bound or "")
        for row in run.table()
        if row.flops > 0 and row.bytes > 0 and row.count * row.each_s > 0
    ]


def stages(run: Run) -> StageBars:
    """Memory of each stage by class, and what lies beside the tensors."""
    if run.plan.pp > LISTED_STAGES:
        raise InputError(f"plot: found {run.plan.pp} stages, expected at most {LISTED_STAGES}")
    rows = run.stage_memory()
    held = [classes(row) for row in rows]
    parts = {name: [stage[name] for stage in held] for name in held[0] if name != "total"}
    parts["beside"] = [row["reserved"] - row["total"] for row in rows]
    return StageBars("memory by stage" if len(rows) > 1 else "memory", parts, run.value("capacity_bytes"))
