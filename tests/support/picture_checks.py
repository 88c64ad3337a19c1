"""What is wrong with a picture to the eye: texts that cover each other or leave it; and the numbers of its page."""

from __future__ import annotations

import itertools
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

SLACK = 1.0
"""Pixels by which boxes of letters, which have room around them, may meet."""


def faults(figure: Any) -> list[str]:
    """Texts that cover another one, and those that are cut off."""
    from matplotlib.text import Text

    figure.draw_without_rendering()
    renderer, page = figure.canvas.get_renderer(), figure.bbox
    shown = [text for text in figure.findobj(Text) if text.get_visible() and text.get_text().strip()]
    hidden = {id(label) for axes in figure.axes for label in _unseen_ticks(axes)}
    # Of a name that a line leads to, the letters alone.
    boxes = [(text.get_text(), Text.get_window_extent(text, renderer)) for text in shown if id(text) not in hidden]
    found = [
        f"{name!r} is cut off"
        for name, box in boxes
        if box.x0 < page.x0 - SLACK or box.x1 > page.x1 + SLACK or box.y0 < page.y0 - SLACK or box.y1 > page.y1 + SLACK
    ]
    for (one, a), (other, b) in itertools.combinations(boxes, 2):
        across, up = min(a.x1, b.x1) - max(a.x0, b.x0), min(a.y1, b.y1) - max(a.y0, b.y0)
        if across > SLACK and up > SLACK:
            found.append(f"{one!r} meets {other!r}")
    return found


def _unseen_ticks(axes: Any) -> Iterator[Any]:
    """Labels of ticks outside of what an axis shows."""
    for axis in (axes.xaxis, axes.yaxis):
        low, high = sorted(axis.get_view_interval())
        for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks()):
            room = 1e-9 * max(abs(low), abs(high))
            outside = not low - room <= tick.get_loc() <= high + room
            for label, seen in ((tick.label1, tick.label1.get_visible()), (tick.label2, tick.label2.get_visible())):
                if outside or not seen:
                    yield label


class _Tables(HTMLParser):
    """The captions and cells of a page's tables."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, list[list[str]]] = {}
        self.rows: list[list[str]] = []
        self.text: list[str] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        del attrs
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th", "caption"):
            self.text = []

    def handle_data(self, data: str) -> None:
        if self.text is not None:
            self.text.append(data)

    def handle_endtag(self, tag: str) -> None:
        if self.text is None:
            return
        if tag == "caption":
            self.rows = self.found.setdefault("".join(self.text), [])
        elif tag in ("td", "th"):
            self.rows[-1].append("".join(self.text))
        else:
            return
        self.text = None


def tables(page: str) -> dict[str, list[list[str]]]:
    """The rows of each table of a page by its caption, without the line of names."""
    parser = _Tables()
    parser.feed(page)
    return {name: rows[1:] for name, rows in parser.found.items()}
