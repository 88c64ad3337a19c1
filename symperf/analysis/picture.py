"""Answers as pictures; beside `drawing`, the only module that imports matplotlib."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

from ..common.errors import InputError, quote
from ..common.extras import import_extra


class Drawable(Protocol):
    """What can draw itself."""

    def draw(self, axes: Any) -> None:
        """Draw into axes of matplotlib."""
        ...


SUFFIXES = (".png", ".pdf", ".svg")


def check_suffix(path: str | Path) -> Path:
    """The path of a picture.

    Raises:
        InputError: another suffix than .png, .pdf or .svg.
    """
    target = Path(path)
    if target.suffix.lower() not in SUFFIXES:
        raise InputError(f"plot: {quote(str(path))}, expected a file that ends in {', '.join(SUFFIXES)}")
    return target


def picture(answer: Drawable, path: str | Path | None) -> Any:
    """A figure of an answer, written to a file where a path is given.

    Raises:
        InputError: matplotlib is not installed, another suffix, a kind of answer without a picture, or the file
            cannot be written.
    """
    target = None if path is None else check_suffix(path)
    import_extra("matplotlib", "plot", "plot")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 4.8), layout="constrained")
    FigureCanvasAgg(figure)
    try:
        answer.draw(figure.add_subplot())
    except NotImplementedError:
        raise InputError(
            f"plot: {type(answer).__name__.lower()} has no picture, expected text, --json or --latex"
        ) from None
    if target is not None:
        try:
            figure.savefig(target, dpi=150, metadata={"Date": None} if target.suffix.lower() == ".svg" else None)
        except OSError as error:
            raise InputError(f"plot: cannot write {target}: {error.strerror or error}") from None
    return figure
