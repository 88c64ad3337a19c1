"""A phase diagram as a picture; the only module that imports matplotlib."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..common.errors import InputError, quote

if TYPE_CHECKING:
    from .phase import Phase

COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#bbbbbb")
"""Paul Tol's bright scheme, told apart by colour-blind readers."""
SUFFIXES = (".png", ".pdf", ".svg")


def draw(phase: Phase, path: str | Path) -> None:
    """Draw regions in colours with their names in a legend, and the curves between them.

    Raises:
        InputError: another suffix than .png, .pdf or .svg, or the file cannot be written.
    """
    target = Path(path)
    if target.suffix.lower() not in SUFFIXES:
        raise InputError(f"phase: {quote(str(path))}, expected a file that ends in {', '.join(SUFFIXES)}")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.colors import BoundaryNorm, ListedColormap
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    figure = Figure(figsize=(6.4, 4.8), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    colours = ["#ffffff", *(COLOURS[k % len(COLOURS)] for k in range(len(phase.resources)))]
    edges = np.arange(len(colours) + 1) - 1.5
    axes.pcolormesh(
        phase.x_values,
        phase.y_values,
        phase.region,
        cmap=ListedColormap(colours),
        norm=BoundaryNorm(edges, len(colours)),
        shading="nearest",
        alpha=0.6,
    )
    for boundary in phase.boundaries:
        axes.plot(boundary.x, boundary.y, color="black", linewidth=1.2, marker="." if len(boundary.x) == 1 else None)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel(phase.x)
    axes.set_ylabel(phase.y)
    axes.set_title(f"What bounds the {phase.of}")
    seen = [int(index) for index in np.unique(phase.region) if index >= 0]
    handles = [Patch(color=colours[index + 1], alpha=0.6, label=phase.resources[index]) for index in seen]
    figure.legend(handles=handles, loc="outside right upper")
    try:
        figure.savefig(target, dpi=150)
    except OSError as error:
        raise InputError(f"phase: cannot write {target}: {error.strerror or error}") from None
