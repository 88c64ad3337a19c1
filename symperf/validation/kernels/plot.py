"""Predicted over measured against arithmetic intensity: a chart for each device, a mark for each operation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ...common.errors import InputError
from ...pictures.charts import Numbers
from ...pictures.figure import Sheet
from ...pictures.scales import prefixed
from ...pictures.style import CURVES, SHAPES, shorten

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .score import Scores

MOST: Final = 4000
"""Points of an operation in a chart: more are thinned evenly, so that a picture stays small."""
Points = tuple[Any, Any]
"""Intensities and ratios."""


@dataclass(frozen=True)
class Ratios:
    """The kernels of a device.

    Attributes:
        title: the device.
        points: of each operation.
        operations: all of the picture, of which each has its mark in every chart.
        height: inches.
    """

    title: str
    points: Mapping[str, Points]
    operations: Sequence[str]
    height: float = field(default=3.0, kw_only=True)

    def draw(self, axes: Any) -> None:
        """Draw into axes of matplotlib."""
        for operation, (intensity, ratio) in self.points.items():
            number = self.operations.index(operation)
            axes.plot(
                intensity,
                ratio,
                marker=SHAPES[number // len(CURVES) % len(SHAPES)],
                linestyle="",
                markersize=2.5,
                markeredgewidth=0,
                alpha=0.6,
                color=CURVES[number % len(CURVES)],
                label=shorten(operation, 24),
            )
        axes.axhline(1, color="black", linewidth=0.8)
        axes.set(xscale="log", yscale="log")
        prefixed(axes.xaxis, "arithmetic intensity (FLOPs for each byte)")
        prefixed(axes.yaxis, "predicted / measured")
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=7, markerscale=1.6)

    def finish(self, axes: Any) -> None:
        """Nothing more."""

    def table(self) -> Numbers:
        """Its numbers, those that are drawn."""
        rows = [
            (operation, float(x), float(y))
            for operation, points in self.points.items()
            for x, y in zip(*points, strict=True)
        ]
        return Numbers(self.title, ("operation", "FLOPs a byte", "predicted / measured"), rows)


def sheet(scores: Scores) -> Sheet:
    """The picture.

    Args:
        scores: what to draw; kernels that move nothing through device memory (collectives) have no intensity.

    Raises:
        InputError: no row with an intensity is scored.
    """
    devices: dict[str, dict[str, list[Points]]] = {}
    for group, rows in scores.items():
        seen = rows.intensity > 0
        if seen.any():
            operation = group.operation.partition("/")[0]
            points = (rows.intensity[seen], rows.predicted[seen] / rows.measured[seen])
            devices.setdefault(group.device, {}).setdefault(operation, []).append(points)
    if not devices:
        raise InputError("plot: no kernel with an arithmetic intensity is scored, so there is nothing to draw")
    operations = sorted({name for found in devices.values() for name in found})
    charts = [
        Ratios(device, {name: _thin(points) for name, points in found.items()}, operations)
        for device, found in devices.items()
    ]
    return Sheet("Predicted over measured time of kernels", charts, columns=min(len(charts), 2))


def _thin(points: list[Points]) -> Points:
    intensity, ratio = (np.concatenate(each) for each in zip(*points, strict=True))
    step = -(-len(ratio) // MOST)
    return intensity[::step], ratio[::step]
