"""Texts of pictures: names from files are written as they are, and no part of one is read as mathematics."""

from __future__ import annotations

from typing import Any


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
