"""An inference as a picture: each phase's operations under a roofline, and its largest terms."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from ..pictures.figure import Sheet
from ..pictures.roofline import Point
from .picture_runs import roofline, time_bars, title_of

if TYPE_CHECKING:
    from ..evaluation.base_run import Row
    from ..pictures.charts import Chart
    from ..runs.inference_run import InferenceRun


def sheet(run: InferenceRun) -> Sheet:
    """The picture: a column for prefill and one for decode, where tokens are generated."""
    names = ["prefill", *(["decode"] if run.generates and run.value("decode") > 0 else [])]
    phases = {name: rows_of(run, name) for name in names}
    above: list[Chart] = [
        roofline(f"{name}: larger marks take more time", run, points(rows)) for name, rows in phases.items()
    ]
    below = [time_bars(name, rows, run.value(name)) for name, rows in phases.items()]
    if run.encoding is not None:
        below.append(time_bars("encoder", rows_of(run, "encoder"), run.encoding.time_s))
    work = f"batch {run.work.batch}, {run.work.prompt} tokens in, {run.work.generate} out"
    return Sheet(title_of(run, work), [*above, *below], columns=len(names))


def rows_of(run: InferenceRun, phase: str) -> list[Row]:
    """The terms of a phase, named by their path in it."""
    start = f"{phase}/"
    rows = [row for row in run.table() if row.name.startswith(start)]
    return [dataclasses.replace(row, name=row.name.removeprefix(start)) for row in rows]


def points(rows: list[Row]) -> list[Point]:
    """Operations that compute, with what all their executions need."""
    return [
        Point(row.name.removeprefix("layer/"), row.flops, row.bytes, row.time_s, row.bound or "")
        for row in rows
        if row.flops > 0 and row.bytes > 0 and row.time_s > 0
    ]
