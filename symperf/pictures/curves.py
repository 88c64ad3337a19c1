"""Curves and sets of points over one quantity."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from .charts import Numbers
from .labels import name_points
from .scales import scale
from .style import CURVES, REST, RULE, SHAPES, SMALL, shorten

if TYPE_CHECKING:
    from collections.abc import Sequence

ACROSS: Final = 80
STEPS: Final = 16
"""Places along a line from side to side, and between two points of one, that names keep away from."""
MARKED: Final = 25
"""Points of a curve up to which each has a mark."""


@dataclass(frozen=True)
class Series:
    """Places with one name.

    Attributes:
        name: in the legend; empty where there is no legend.
        x: along the horizontal axis.
        y: along the vertical one.
        line: whether they are joined.
        names: of single points, written beside them where there is room.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float]
    line: bool = True
    names: Sequence[str] = ()


@dataclass(frozen=True)
class Curves:
    """Series in one pair of axes.

    Attributes:
        title: of the chart.
        across: label of the horizontal axis, with its unit.
        up: label of the vertical one.
        series: in the order of their colours.
        heights: values that are marked by a line across, by name.
        places: values that are marked by a line upwards, by name.
        ticks: names of the places 0, 1, 2, ... where the horizontal axis has names, not numbers.
        others: places in grey behind the series.
        height: inches.
    """

    title: str
    across: str
    up: str
    series: Sequence[Series]
    heights: Sequence[tuple[str, float]] = ()
    places: Sequence[tuple[str, float]] = ()
    ticks: Sequence[str] = ()
    others: Series | None = None
    height: float = field(default=3.0, kw_only=True)

    def draw(self, axes: Any) -> None:
        """Draw into axes of matplotlib."""
        behind = () if self.others is None else (self.others,)
        every = [*self.series, *behind]
        if self.ticks:
            axes.set_xticks(range(len(self.ticks)), labels=[shorten(each, 22) for each in self.ticks])
            axes.tick_params(axis="x", rotation=0 if sum(map(len, self.ticks)) < 70 else 30)
            axes.set_xlabel(self.across)
        else:
            scale(axes.xaxis, [x for each in every for x in each.x] + [x for _, x in self.places], self.across)
        scale(axes.yaxis, [y for each in every for y in each.y] + [y for _, y in self.heights], self.up)
        for each in behind:
            axes.plot(each.x, each.y, "o", color=REST, markersize=3, label=each.name or None, zorder=1)
        for place, each in enumerate(self.series):
            axes.plot(
                each.x,
                each.y,
                color=CURVES[place % len(CURVES)],
                marker=SHAPES[place % len(SHAPES)] if len(each.x) <= MARKED or not each.line else None,
                linestyle="-" if each.line else "",
                linewidth=1.3,
                markersize=4.5,
                markeredgecolor="#404040",
                markeredgewidth=0.3,
                label=shorten(each.name, 44) or None,
            )
        for name, value in self.heights:
            axes.axhline(value, **RULE)
            axes.annotate(
                name, (1, value), (-2, 2), xycoords=("axes fraction", "data"), textcoords="offset points",
                ha="right", fontsize=SMALL,
            )  # fmt: skip
        for name, value in self.places:
            axes.axvline(value, **RULE)
            axes.annotate(
                name, (value, 1), (-2, -2), xycoords=("data", "axes fraction"), textcoords="offset points",
                ha="right", va="top", rotation=90, fontsize=SMALL,
            )  # fmt: skip
        axes.margins(x=0.04, y=0.1)
        if len(every) > 1 or any(each.name != self.title for each in every if each.name):
            axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))

    def finish(self, axes: Any) -> None:
        """Write the names of single points, where there is room."""
        every = [*self.series, *(() if self.others is None else (self.others,))]
        named = [
            (x, y, shorten(name, 30))
            for each in self.series
            for x, y, name in zip(each.x, each.y, each.names, strict=False)
        ]
        lines = [place for each in every if each.line for place in _along(each)]
        lines += [(x, height) for _, height in self.heights for x in _between(*axes.get_xlim())]
        name_points(axes, named, [(x, y) for each in every for x, y in zip(each.x, each.y, strict=True)], lines)

    def table(self) -> Numbers:
        """Its numbers."""
        rows = [
            (each.name, self.ticks[int(x)] if self.ticks else x, y)
            for each in self.series
            for x, y in zip(each.x, each.y, strict=True)
        ]
        return Numbers(self.title, ("series", self.across, self.up), rows)


def _along(series: Series) -> list[tuple[float, float]]:
    """Places along the line between the points of a series."""
    found = []
    for start, end in itertools.pairwise(zip(series.x, series.y, strict=True)):
        parts = [k / STEPS for k in range(STEPS)]
        found += [(start[0] + part * (end[0] - start[0]), start[1] + part * (end[1] - start[1])) for part in parts]
    return found


def _between(low: float, high: float) -> list[float]:
    """Places between the ends of an axis."""
    return [low + k / ACROSS * (high - low) for k in range(ACROSS + 1)]
