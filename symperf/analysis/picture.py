"""Answers as pictures."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any, Protocol

from ..common.errors import InputError, quote
from ..common.outputs import write_file
from ..common.pictures import own_style, write_plain


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
    with own_style() as matplotlib:
        figure = matplotlib.figure.Figure(figsize=(7.2, 4.8), layout="constrained")
        matplotlib.backends.backend_agg.FigureCanvasAgg(figure)
        try:
            answer.draw(figure.add_subplot())
        except NotImplementedError:
            raise InputError(
                f"plot: {type(answer).__name__.lower()} has no picture, expected text, --json or --latex"
            ) from None
        write_plain(figure)
        if target is not None:
            kind, drawn = target.suffix.lower().removeprefix("."), io.BytesIO()
            figure.savefig(drawn, format=kind, dpi=150, metadata={"Date": None} if kind == "svg" else None)
            write_file(target, drawn.getvalue(), "plot: cannot write {}")
    return figure
