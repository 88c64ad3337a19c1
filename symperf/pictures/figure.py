"""Answers as pictures, and the files that they are written to."""

from __future__ import annotations

import io
import textwrap
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ..common.errors import InputError, quote
from ..common.extras import import_extra
from ..common.outputs import write_file
from .page import page
from .scales import prefixed
from .style import SMALL, WIDTH, plain, style, write_plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .charts import Chart

SUFFIXES = (".png", ".pdf", ".svg", ".html")
METADATA: dict[str, dict[str, Any]] = {
    "svg": {"Date": None},
    "png": {"Software": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}
"""What a file does not tell: when and with what it was drawn, so that the same picture is the same file."""
COLUMN = 6.2
"""Inches of a column where there are several."""
HEIGHT = 4.8
"""Inches of a picture of one chart."""
MARGIN = 0.75
"""Inches above and below the charts."""
COMMAND_LINES = 3
"""Of the command below a picture; of a longer one the first."""
CHARACTERS = {SMALL: 15.0, 10.0: 10.3}
"""About so many characters in an inch, by the points of the letters."""


class Drawable(Protocol):
    """What can draw itself into one pair of axes."""

    def draw(self, axes: Any) -> None:
        """Draw into axes of matplotlib."""
        ...


@dataclass(frozen=True)
class Sheet:
    """Several charts in one picture.

    Attributes:
        title: of all.
        charts: from left to right, line by line.
        columns: charts beside each other.
    """

    title: str
    charts: Sequence[Chart]
    columns: int = 1

    def lines(self) -> list[list[Chart]]:
        """The charts line by line."""
        return [list(self.charts[at : at + self.columns]) for at in range(0, len(self.charts), self.columns)]


def check_suffix(path: str | Path) -> Path:
    """The path of a picture.

    Raises:
        InputError: another suffix than .png, .pdf, .svg or .html.
    """
    target = Path(path)
    if target.suffix.lower() not in SUFFIXES:
        raise InputError(f"plot: {quote(str(path))}, expected a file that ends in {', '.join(SUFFIXES)}")
    return target


def picture(answer: Drawable | Sheet, path: str | Path | None = None, command: str = "") -> Any:
    """A figure of an answer, written to a file where a path is given.

    Args:
        answer: what is drawn.
        path: of the file; the end of its name says the kind.
        command: that gives the picture, written below it.

    Raises:
        InputError: matplotlib is not installed, another suffix, a kind of answer without a picture, or the file
            cannot be written.
    """
    target = None if path is None else check_suffix(path)
    with style(), warnings.catch_warnings():
        # A font has not every letter of the world: a box stands for those that it lacks.
        warnings.filterwarnings("ignore", message=r"Glyph .* missing from")
        figure, drawn = _drawn(answer)
        if command:
            width = int(figure.get_figwidth() * CHARACTERS[SMALL])
            lines = textwrap.wrap(plain(command), width, max_lines=COMMAND_LINES, placeholder=" …")
            figure.supxlabel("\n".join(lines), x=0.01, ha="left", fontsize=SMALL, color="#595959", family="monospace")
        write_plain(figure)
        if drawn:
            figure.draw_without_rendering()
            for chart, axes in drawn:
                chart.finish(axes)
            write_plain(figure)
        if target is not None:
            write_file(target, _content(figure, target, answer, command), "plot: {} cannot be written")
    return figure


def _drawn(answer: Drawable | Sheet) -> tuple[Any, list[tuple[Chart, Any]]]:
    """The figure, and the charts in it with their axes."""
    import_extra("matplotlib.figure", "plot", "plot")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine
    from matplotlib.ticker import LogFormatter

    figure = Figure(figsize=(WIDTH, HEIGHT), layout=ConstrainedLayoutEngine(h_pad=0.09, w_pad=0.06))
    FigureCanvasAgg(figure)
    if not isinstance(answer, Sheet):
        try:
            answer.draw(figure.add_subplot())
        except NotImplementedError:
            raise InputError(
                f"plot: {type(answer).__name__.lower()} has no picture, expected text, --json or --latex"
            ) from None
        _lift_title(figure)
        for axes in figure.axes:
            for axis in (axes.xaxis, axes.yaxis):
                if isinstance(axis.get_major_formatter(), LogFormatter):
                    prefixed(axis, axis.get_label_text())
        return figure, []
    lines = answer.lines()
    heights = [max(chart.height for chart in line) for line in lines]
    figure.set_size_inches(WIDTH if answer.columns == 1 else COLUMN * answer.columns, sum(heights) + MARGIN)
    drawn = []
    grid = figure.add_gridspec(len(lines), answer.columns, height_ratios=heights)
    for row, line in enumerate(lines):
        for column, chart in enumerate(line):
            place = grid[row, column] if len(line) == answer.columns else grid[row, :]
            axes = figure.add_subplot(place)
            chart.draw(axes)
            axes.set_title(plain(chart.title), loc="left")
            drawn.append((chart, axes))
    figure.suptitle(_broken(answer.title, figure), x=0.01, ha="left", fontweight="bold")
    return figure, drawn


def _lift_title(figure: Any) -> None:
    """The title of the axes as that of the whole, which has more room."""
    axes = figure.axes[0]
    if title := axes.get_title():
        axes.set_title("")
        figure.suptitle(_broken(title, figure), x=0.01, ha="left")


def _broken(title: str, figure: Any) -> str:
    return "\n".join(textwrap.wrap(plain(title), int(figure.get_figwidth() * CHARACTERS[10.0])))


def _content(figure: Any, target: Path, answer: Drawable | Sheet, command: str) -> bytes:
    kind = target.suffix.lower().removeprefix(".")
    drawn, form = io.BytesIO(), "svg" if kind == "html" else kind
    title = figure.get_suptitle().replace("\n", " ")
    about = METADATA[form] | ({"Title": title} if title else {})
    figure.savefig(drawn, format=form, metadata=about)
    if kind != "html":
        return drawn.getvalue()
    tables = [chart.table() for chart in answer.charts] if isinstance(answer, Sheet) else []
    words = getattr(answer, "text", None)
    return page(title, command, drawn.getvalue().decode("utf-8"), tables, words() if callable(words) else "")
