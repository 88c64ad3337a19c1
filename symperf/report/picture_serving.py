"""A serving system as a picture: latencies against what it yields, with the targets and the answer."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from ..common.errors import NoAnswerError
from ..pictures.curves import Curves, Series
from ..pictures.figure import Sheet

if TYPE_CHECKING:
    from ..serve.serving import Serving

ACROSS = "output tokens a second and device"
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
    points = curve_of(serving)
    if not points:
        raise NoAnswerError("plot: there is no steady state, so no curve of throughput and latency")
    apart, asked = serving.apart, serving.asked
    answer = serving.answer if apart is None else apart.answer
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
    run, devices = serving.run, serving.plan.devices if apart is None else apart.devices
    title = (
        f"{run.model.name} on {devices} x {run.system.title}, {run.stack.name}: "
        f"{asked.prompt} tokens in, {asked.generate} out"
    )
    return Sheet(title, charts)


def curve_of(serving: Serving) -> list[Any]:
    """The loads that are served in a steady state: by one kind of replica, or by two pools together."""
    points = serving.curve if serving.apart is None else serving.apart.curve
    return [point for point in points if point.output_tokens_per_s_per_device is not None]


def _series(title: str, points: list[Any], name: str) -> Series:
    found: list[tuple[Any, Any, Any]] = [
        (point.output_tokens_per_s_per_device, value, f"{point.load:.3g}/s")
        for point in points
        if point.output_tokens_per_s_per_device is not None and (value := getattr(point, name)) is not None
    ]
    x, y, names = ([each[k] for each in found] for k in (0, 1, 2))
    return Series(title, x, y, names=names)
