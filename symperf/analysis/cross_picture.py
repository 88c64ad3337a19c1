"""Comparisons as pictures: both sides along the symbol, and where the lead changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..pictures.style import CURVES, RULE
from .measures import axis, axis_scale

if TYPE_CHECKING:
    from .cross import Cross

SPAN = 16
"""Along a real symbol the picture goes from the first crossing over this to the last times this."""
POINTS = 401
FEW = 256
"""Numbers that are marked one by one."""
MARKED = 6
"""Crossings that are marked."""
WIDE = 8
"""Ratio of largest and smallest from which an axis is logarithmic."""


def draw(cross: Cross, axes: Any) -> None:
    """Draw both sides into axes of matplotlib."""
    scale = axis_scale(cross.over)
    xs, a, b = _curves(cross)
    xs = xs * scale
    style = {"marker": ".", "linewidth": 0.8} if cross.whole and len(xs) <= FEW else {}
    axes.plot(xs, a, color=CURVES[0], label=cross.a.label, **style)
    axes.plot(xs, b, color=CURVES[1], label=cross.b.label, **style)
    for k, crossing in enumerate(cross.crossings[:MARKED]):
        at = crossing.at * scale
        if xs[0] <= at <= xs[-1]:
            label = "the lead changes" if k == 0 else None
            axes.axvline(at, label=label, **RULE)
            axes.plot([at], [np.interp(at, xs, a)], color="black", marker="o", markersize=4)
    if xs[0] > 0 and xs[-1] > WIDE * xs[0]:
        axes.set_xscale("log")
    heights = np.concatenate([a, b])
    if heights.min() > 0 and heights.max() > WIDE * heights.min():
        axes.set_yscale("log")
    axes.set_xlabel(axis(cross.over))
    axes.set_ylabel("time (s)" if cross.a.resource else axis(cross.a.of) if cross.of else axis(cross.a.of, named=False))
    axes.set_title(cross.sentence)
    axes.legend()


def _curves(cross: Cross) -> tuple[Any, Any, Any]:
    if cross.found is not None:
        return cross.found.xs, cross.found.a, cross.found.b
    marks = [crossing.at for crossing in cross.crossings] or [side.now or 0.0 for side in (cross.a, cross.b)]
    middle = [x for x in marks if x > 0] or [1.0]
    xs = np.geomspace(max(cross.low, min(middle) / SPAN), min(cross.high, max(middle) * SPAN), POINTS)
    return xs, cross.a.values(xs), cross.b.values(xs)
