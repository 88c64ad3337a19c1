"""Regimes and phase diagrams as pictures, drawn into axes of matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..pictures.style import PAPER, RULE, SMALL, colour_of
from .spelling import spell, unit_of

if TYPE_CHECKING:
    from .phase import Phase
    from .regimes_answer import Regimes

LEAST = 0.005
"""Largest share below which a resource is not drawn."""
LOGARITHMIC = 8.0
"""Ratio of the ends of a range above which its axis is logarithmic."""


def draw_shares(regimes: Regimes, axes: Any) -> None:
    """The share of each resource along a symbol, stacked, with the crossovers marked."""
    profile = regimes.profile
    kept = [k for k, row in enumerate(profile.shares) if row.max() > LEAST]
    # Points are inside of stretches: the first and the last reach to the ends of the range.
    points = np.concatenate([[regimes.low], profile.points, [regimes.high]])
    rows = 100 * np.pad(profile.shares, ((0, 0), (1, 1)), mode="edge")
    axes.stackplot(
        points,
        rows[kept],
        labels=[profile.names[k].replace("_", " ") for k in kept],
        colors=[colour_of(profile.names[k], k) for k in kept],
        alpha=0.85,
        linewidth=0,
    )
    for turn in regimes.turns:
        axes.axvline(turn.at, **RULE)
        text = f"{(turn.after or 'nothing').replace('_', ' ')} from {spell(regimes.symbol, turn.at)}"
        axes.annotate(text, (turn.at, 98), rotation=90, va="top", ha="right", fontsize=SMALL, bbox=PAPER)
    _scale(axes, "x", regimes.symbol, (regimes.low, regimes.high))
    axes.set_ylim(0, 100)
    axes.set_ylabel("share (%)")
    axes.set_title(f"What binds {regimes.of} along {regimes.symbol}")
    handles, labels = axes.get_legend_handles_labels()
    axes.legend(handles[::-1], labels[::-1], loc="center left", bbox_to_anchor=(1.0, 0.5))


def draw_regions(phase: Phase, axes: Any) -> None:
    """Regions in colours with their names in a legend, and the curves between them; what a run refuses is white."""
    from matplotlib.colors import BoundaryNorm, ListedColormap
    from matplotlib.patches import Patch

    colours = ["#ffffff", *(colour_of(name, k) for k, name in enumerate(phase.resources))]
    axes.pcolormesh(
        phase.x_values,
        phase.y_values,
        np.maximum(phase.region, -1),
        cmap=ListedColormap(colours),
        norm=BoundaryNorm(np.arange(len(colours) + 1) - 1.5, len(colours)),
        shading="nearest",
        rasterized=True,  # thousands of cells are one small image in a file of vectors
        alpha=0.85,
    )
    for curve in phase.boundaries:
        axes.plot(curve.x, curve.y, color="black", linewidth=1.2, marker="." if len(curve.x) == 1 else None)
    _scale(axes, "x", phase.x, (phase.x_values[0], phase.x_values[-1]))
    _scale(axes, "y", phase.y, (phase.y_values[0], phase.y_values[-1]))
    axes.set_title(f"What binds {phase.of}")
    seen = [int(index) for index in np.unique(phase.region) if index >= 0]
    names = [name.replace("_", " ") for name in phase.resources]
    handles = [Patch(color=colours[index + 1], alpha=0.85, label=names[index]) for index in seen]
    axes.legend(handles=handles, loc="center left", bbox_to_anchor=(1.0, 0.5))


def _scale(axes: Any, which: str, symbol: str, ends: tuple[float, float]) -> None:
    """Limits, scale and a label with its unit; ticks are spelled as in text."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    axis = getattr(axes, f"{which}axis")
    getattr(axes, f"set_{which}lim")(*ends)
    if ends[1] / ends[0] > LOGARITHMIC:
        getattr(axes, f"set_{which}scale")("log", **({"base": 2} if not unit_of(symbol) else {}))
    axis.set_major_formatter(FuncFormatter(lambda value, _: spell(symbol, value) if value > 0 else "0"))
    axis.set_minor_formatter(NullFormatter())
    axis.set_label_text(symbol)
