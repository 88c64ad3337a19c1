"""Predicted over measured against arithmetic intensity: one panel for each device, one colour for each operation."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ...common.errors import InputError
from ...common.pictures import own_style, write_plain

if TYPE_CHECKING:
    from .score import Scores

MOST: Final = 4000
"""Points of an operation in a panel: more are thinned evenly, so that a figure stays small."""
COLUMNS: Final = 3


def draw(scores: Scores, suffix: str) -> bytes:
    """The figure.

    Args:
        scores: what to draw; kernels that move nothing through device memory (collectives) have no intensity.
        suffix: type of the file, "png" or "svg".

    Raises:
        InputError: no row with an intensity is scored, or matplotlib is not installed.
    """
    panels: dict[str, dict[str, list[Any]]] = {}
    for group, rows in scores.items():
        seen = rows.intensity > 0
        if seen.any():
            operation = group.operation.partition("/")[0]
            points = (rows.intensity[seen], rows.predicted[seen] / rows.measured[seen])
            panels.setdefault(group.device, {}).setdefault(operation, []).append(points)
    if not panels:
        raise InputError("plot: no kernel with an arithmetic intensity is scored, so there is nothing to draw")
    operations = sorted({name for found in panels.values() for name in found})
    columns = min(len(panels), COLUMNS)
    lines = -(-len(panels) // columns)
    with own_style() as matplotlib:
        figure = matplotlib.figure.Figure(figsize=(5.2 * columns, 4.2 * lines + 1), layout="constrained")
        for number, (device, found) in enumerate(panels.items()):
            _panel(figure.add_subplot(lines, columns, number + 1), device, found, operations, matplotlib)
        marks = [
            matplotlib.lines.Line2D([], [], color=_colour(matplotlib, at), marker="o", linestyle="")
            for at in range(len(operations))
        ]
        figure.legend(marks, operations, loc="outside lower center", ncol=2 * columns, fontsize="small", frameon=False)
        out = io.BytesIO()
        metadata = {"Date": None} if suffix == "svg" else {"Software": None}
        write_plain(figure)
        figure.savefig(out, format=suffix, dpi=120, metadata=metadata)
    return out.getvalue()


def _panel(axes: Any, device: str, found: dict[str, list[Any]], operations: list[str], matplotlib: Any) -> None:
    for operation, points in found.items():
        intensity, ratio = (np.concatenate(each) for each in zip(*points, strict=True))
        step = -(-len(ratio) // MOST)
        axes.plot(
            intensity[::step],
            ratio[::step],
            marker=".",
            linestyle="",
            markersize=2,
            alpha=0.5,
            color=_colour(matplotlib, operations.index(operation)),
        )
    axes.axhline(1, color="black", linewidth=0.8)
    axes.set(xscale="log", yscale="log", title=device, xlabel="FLOPs for each byte", ylabel="predicted / measured")


def _colour(matplotlib: Any, number: int) -> Any:
    return matplotlib.colormaps["tab20"](number % 20)
