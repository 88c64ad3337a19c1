"""Pictures, the same wherever they are drawn; names from files are written as they are, none is read as mathematics."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from .extras import import_extra

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def own_style() -> Iterator[Any]:
    """Matplotlib with its own defaults: a `matplotlibrc` in the working folder, which may run LaTeX, says nothing.

    Raises:
        InputError: it is not installed.
    """
    matplotlib = import_extra("matplotlib", "plot", "plot")
    for part in ("figure", "lines", "backends.backend_agg"):
        import_extra(f"matplotlib.{part}", "plot", "plot")
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams["svg.hashsalt"] = "symperf"
        yield matplotlib


def write_plain(figure: Any) -> None:
    """Let matplotlib read mathematics in nothing but the numbers along axes, which it writes itself.

    Args:
        figure: with all that it shows.
    """
    from matplotlib.text import Text
    from matplotlib.ticker import FixedFormatter

    numbers = set()
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            if not isinstance(axis.get_major_formatter(), FixedFormatter):
                ticks = [*axis.get_major_ticks(), *axis.get_minor_ticks()]
                numbers |= {id(label) for tick in ticks for label in (tick.label1, tick.label2)}
            numbers.add(id(axis.offsetText))
    for text in figure.findobj(Text):
        if id(text) not in numbers:
            text.set_parse_math(False)
