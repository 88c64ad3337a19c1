"""A serving system as a picture: latencies against what it yields, with the targets and the answer."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from ..common.errors import NoAnswerError
from ..pictures.curves import Curves, Series
from ..pictures.figure import Sheet

if TYPE_CHECKING:
    from ..serve.point import LoadPoint
    from ..serve.serving import Serving

ACROSS = "output tokens a second, all devices"
LATENCIES = {
    "ttft_s": ("time to the first token", "TTFT (s)"),
    "tpot_s": ("time of a later token", "TPOT (s)"),
}
"""What is drawn against the yield: the title, and the label with its unit."""


def sheet(serving: Serving) -> Sheet:
    """The picture.

    Raises:
        NoAnswerError: nothing is served in a steady state.
    """
    points = [point for point in serving.curve if point.output_tokens_per_s is not None]
    if not points:
        raise NoAnswerError("plot: there is no steady state, so no curve of throughput and latency")
    asked, answer = serving.asked, serving.answer
    targets = {"ttft_s": asked.ttft, "tpot_s": asked.tpot}
    charts = []
    for name, (title, label) in LATENCIES.items():
        curve = _series("loads, requests/s", points, name)
        if not curve.y:
            continue
        series = [curve]
        if answer is not None and (own := _series("the answer", [answer], name)).y:
            series.append(dataclasses.replace(own, name=f"the answer, {own.names[0]}", line=False, names=()))
        wanted = targets[name]
        heights = [] if wanted is None else [(f"target {wanted:g} s", wanted)]
        charts.append(Curves(title, ACROSS, label, series, heights=heights))
    run = serving.run
    title = (
        f"{run.model.name} on {serving.plan.devices} x {run.system.title}, {run.stack.name}: "
        f"{asked.prompt} tokens in, {asked.generate} out"
    )
    return Sheet(title, charts)


def _series(title: str, points: list[LoadPoint], name: str) -> Series:
    found: list[tuple[Any, Any, Any]] = [
        (point.output_tokens_per_s, value, f"{point.load:.3g}/s")
        for point in points
        if point.output_tokens_per_s is not None and (value := getattr(point, name)) is not None
    ]
    x, y, names = ([each[k] for each in found] for k in (0, 1, 2))
    return Series(title, x, y, names=names)
