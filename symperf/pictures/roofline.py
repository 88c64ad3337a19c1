"""A roofline with operations as points: what each attains against its arithmetic intensity.

Williams, Waterman, Patterson: Roofline, an insightful visual performance model for multicore architectures (CACM 2009).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from .charts import Numbers
from .labels import name_points
from .scales import decades, prefixed
from .style import MARKS, SMALL, colour_of, shorten

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NAMED: Final = 8
"""Operations with the most time, whose names are written where there is room."""
SMALLEST, LARGEST = 12.0, 150.0
"""Areas of marks; between them they grow with the share of the time."""
NEAR: Final = 0.01
"""Part by which marks of one operation may differ in both directions and be named once."""


class Point(NamedTuple):
    """An operation.

    Attributes:
        name: of it.
        flops: of all its executions on a device.
        bytes: that they move through device memory.
        seconds: that they take.
        bound: the resource that sets them.
    """

    name: str
    flops: float
    bytes: float
    seconds: float
    bound: str

    @property
    def intensity(self) -> float:
        """FLOPs for each byte."""
        return self.flops / self.bytes

    @property
    def rate(self) -> float:
        """FLOP/s."""
        return self.flops / self.seconds


@dataclass(frozen=True)
class Roofline:
    """Operations under the roofs of a device.

    Attributes:
        title: of the chart.
        points: the operations; those without FLOPs, bytes or time are left out by who makes it.
        roofs: FLOP/s by name, as in the data sheet.
        bandwidth: bytes/s of device memory, as in the data sheet.
        height: inches.
    """

    title: str
    points: Sequence[Point]
    roofs: Mapping[str, float]
    bandwidth: float
    height: float = field(default=3.5, kw_only=True)

    def draw(self, axes: Any) -> None:
        """Draw into axes of matplotlib."""
        axes.set_xscale("log")
        axes.set_yscale("log")
        top = max(self.roofs.values())
        ridge = top / self.bandwidth
        across = [*(point.intensity for point in self.points), ridge]
        up = [*(point.rate for point in self.points), top]
        low, high = decades(min(across), max(across), 2.2)
        floor, ceiling = decades(min(up), max(up))
        axes.set_xlim(low, high)
        axes.set_ylim(floor, ceiling)
        axes.plot([low, ridge], [low * self.bandwidth, top], color="#404040", linewidth=1.1)
        for name, roof in self.roofs.items():
            start = roof / self.bandwidth
            axes.plot([start, high], [roof, roof], color="#404040", linewidth=1.1 if roof == top else 0.8)
            axes.annotate(
                f"{name} {_prefixed(roof)}FLOP/s", (high, roof), (3, 0), textcoords="offset points", va="center",
                fontsize=SMALL, color="#404040", annotation_clip=False,
            )  # fmt: skip
        total = sum(point.seconds for point in self.points) or 1.0
        for resource in dict.fromkeys(point.bound for point in self.points):
            own = [point for point in self.points if point.bound == resource]
            axes.scatter(
                [point.intensity for point in own],
                [point.rate for point in own],
                s=[SMALLEST + (LARGEST - SMALLEST) * (point.seconds / total) ** 0.5 for point in own],
                c=colour_of(resource), marker=MARKS.get(resource, "o"), label=resource.replace("_", " "),
                edgecolors="#404040", linewidths=0.4, alpha=0.9, zorder=3,
            )  # fmt: skip
        prefixed(axes.xaxis, "arithmetic intensity (FLOPs for each byte of device memory)")
        prefixed(axes.yaxis, "attained (FLOP/s)")
        if self.points:
            legend = axes.legend(loc="lower left", bbox_to_anchor=(1.0, 0.0), title="bound by", title_fontsize=8)
            for handle in legend.legend_handles:
                handle.set_sizes([30.0])

    def finish(self, axes: Any) -> None:
        """Write the names of the operations with the most time, where there is room."""
        low, high = axes.get_xlim()
        top, floor = max(self.roofs.values()), axes.get_ylim()[0]
        ridge, start = top / self.bandwidth, max(low, floor / self.bandwidth)
        places = [(x, x * self.bandwidth) for x in np.geomspace(start, ridge, 60)]
        (left, below), (right, above) = (axes.transData.transform(places[k]) for k in (0, -1))
        axes.annotate(
            f"memory {_prefixed(self.bandwidth)}B/s", places[3], (0, 3), textcoords="offset points", fontsize=SMALL,
            color="#404040", rotation=math.degrees(math.atan2(above - below, right - left)), rotation_mode="anchor",
        ).set_in_layout(False)  # fmt: skip
        places += [(x, roof) for roof in self.roofs.values() for x in np.geomspace(roof / self.bandwidth, high, 60)]
        name_points(axes, self._named(), [(point.intensity, point.rate) for point in self.points], places)

    def _named(self) -> list[tuple[float, float, str]]:
        """The names of the points with the most time; of points that coincide one."""
        found: list[Point] = []
        for point in sorted(self.points, key=lambda each: -each.seconds):
            if len(found) == NAMED:
                break
            if not any(_near(point.intensity, p.intensity) and _near(point.rate, p.rate) for p in found):
                found.append(point)
        return [(point.intensity, point.rate, shorten(point.name, 28)) for point in found]

    def table(self) -> Numbers:
        """Its numbers."""
        rows = [(p.name, p.intensity, p.rate, p.seconds, p.bound) for p in self.points]
        return Numbers(self.title, ("operation", "FLOPs a byte", "FLOP/s", "seconds", "bound"), rows)


def _near(one: float, other: float) -> bool:
    return abs(one - other) <= NEAR * other


def _prefixed(value: float) -> str:
    size, prefix = next((each for each in ((1e15, "P"), (1e12, "T"), (1e9, "G")) if value >= each[0]), (1.0, ""))
    return f"{value / size:.4g} {prefix}"
