"""Measurement against prediction, on logarithmic axes: a chart for each kind of quantity."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..common.errors import InputError
from ..pictures.charts import Numbers
from ..pictures.figure import Sheet
from ..pictures.scales import prefixed
from ..pictures.style import CURVES, SHAPES, shorten

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .case import Scored

KINDS = {
    "times (s)": ("time_s", "prefill_s", "decode_s", "time_per_token_s", "layer_time_s"),
    "throughput (tokens/s, samples/s)": ("tokens_per_s", "tokens_per_s_per_device", "samples_per_s"),
    "work of a device (TFLOP/s)": ("tflops_per_device",),
    "memory of a device (bytes)": ("memory_bytes",),
}
"""What is drawn together -> the quantities of it."""
NEAR = 0.1
"""Part within which the grey band lies."""
LISTED = 22
"""Families of a chart that its legend names, those with the most rows."""


@dataclass(frozen=True)
class Agreement:
    """Rows of one kind of quantity, a mark for each family.

    Attributes:
        title: with the unit.
        rows: that are scored.
        families: all of the picture, of which each has its mark in every chart.
        height: inches.
    """

    title: str
    rows: Sequence[Scored]
    families: Sequence[str]
    height: float = field(default=4.2, kw_only=True)

    def draw(self, axes: Any) -> None:
        """Draw into axes of matplotlib."""
        from matplotlib.lines import Line2D

        for number, family in enumerate(self.families):
            own = [row for row in self.rows if row.source == family]
            if not own:
                continue
            axes.plot(
                [row.measured for row in own],
                [row.predicted for row in own],
                marker=SHAPES[number // len(CURVES) % len(SHAPES)],
                linestyle="",
                markersize=3.2,
                alpha=0.75,
                markeredgewidth=0,
                color=CURVES[number % len(CURVES)],
                label=f"{shorten(family, 18)} ({len(own)})",
            )
        ends = [
            min(min(row.measured, row.predicted) for row in self.rows) / 1.3,
            max(max(row.measured, row.predicted) for row in self.rows) * 1.3,
        ]
        axes.plot(ends, ends, color="black", linewidth=0.8)
        low, high = ([end * (1 + part) for end in ends] for part in (-NEAR, NEAR))
        axes.fill_between(ends, low, high, color="black", alpha=0.12, linewidth=0)
        axes.set(xscale="log", yscale="log", xlim=ends, ylim=ends)
        prefixed(axes.xaxis, "measured")
        prefixed(axes.yaxis, "predicted")
        handles, labels = axes.get_legend_handles_labels()
        if len(labels) > LISTED:
            sizes = [len(handle.get_xdata()) for handle in handles]
            kept = sorted(sorted(range(len(labels)), key=lambda k: -sizes[k])[:LISTED])
            more = sum(sizes) - sum(sizes[k] for k in kept)
            handles = [*(handles[k] for k in kept), Line2D([], [], linestyle="")]
            labels = [*(labels[k] for k in kept), f"{len(labels) - LISTED} others ({more})"]
        axes.legend(
            handles, labels, fontsize=6.5, loc="center left", bbox_to_anchor=(1.0, 0.5), handletextpad=0.1,
            labelspacing=0.3,
        )  # fmt: skip

    def finish(self, axes: Any) -> None:
        """Nothing more."""

    def table(self) -> Numbers:
        """Its numbers."""
        rows = [(row.source, row.case, row.measured, row.predicted) for row in self.rows]
        return Numbers(self.title, ("family", "case", "measured", "predicted"), rows)


def sheet(scored: Sequence[Scored]) -> Sheet:
    """The picture.

    Raises:
        InputError: nothing to draw.
    """
    kinds = {title: [row for row in scored if row.quantity in names] for title, names in KINDS.items()}
    families = list(dict.fromkeys(row.source for row in scored))
    charts = [Agreement(title, rows, families) for title, rows in kinds.items() if rows]
    if not charts:
        raise InputError("plot: no row is scored, so there is nothing to draw")
    count = sum(len(chart.rows) for chart in charts)
    title = f"Predicted against measured, {count:,} rows; grey: within {100 * NEAR:.0f} %"
    return Sheet(title, charts, columns=min(len(charts), 2))
