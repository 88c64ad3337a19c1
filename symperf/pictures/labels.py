"""Names beside points, each where it covers neither a point nor another name; where there is no such place, none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

NEXT: Final = (6.0, 0.0), (-6.0, 0.0), (0.0, 6.0), (0.0, -6.0), (5.0, 6.0), (-5.0, 6.0), (5.0, -6.0), (-5.0, -6.0)
"""Points of length from a mark to the nearest side or corner of its name, in the order in which they are tried."""
FAR: Final = tuple((k * x, k * y) for k in (2.4, 3.8, 5.0) for x, y in (*NEXT[2:], *NEXT[:2]))
"""The same for a name that a line leads to."""
LEADER: Final = {"arrowstyle": "-", "linewidth": 0.5, "color": "#808080", "shrinkB": 3, "shrinkA": 1}
"""A line from a name to its mark."""
MARK: Final = 4.5
"""Half the side of a mark."""
CLOSE: Final = 12.0
"""Half the side of the square around a mark in which a line to its name may cross others."""
TALL: Final = 0.75
"""Half the height of a name, by the points of its letters."""


class Box(NamedTuple):
    """A rectangle, in points of length."""

    left: float
    low: float
    right: float
    high: float

    def meets(self, other: Box) -> bool:
        """Whether both share a part."""
        return self.left < other.right and other.left < self.right and self.low < other.high and other.low < self.high

    def within(self, other: Box) -> bool:
        """Whether all of it is inside of another."""
        inside = self.left >= other.left and self.right <= other.right
        return inside and self.low >= other.low and self.high <= other.high


class Name(NamedTuple):
    """What is to be written beside a mark, all in points of length.

    Attributes:
        x: of the mark, from the left side of the axes.
        y: of the mark, from their lower side.
        width: of the name.
        text: it.
    """

    x: float
    y: float
    width: float
    text: str


def place(
    names: Sequence[Name], taken: Iterable[tuple[float, float]], size: tuple[float, float], points: float,
    covered: Iterable[Box] = (),
    lines: Iterable[Box] = (),
) -> list[tuple[int, float, float, bool]]:  # fmt: skip
    """Which names have a place: the shift of each from its mark to its middle, and whether a line leads to it.

    Args:
        names: the first go first.
        taken: places of all marks, in points of length.
        size: of the axes, likewise.
        points: height of the letters.
        covered: what neither a name nor a line to one may lie on.
        lines: what no name may lie on.
    """
    marks = [Box(x - MARK, y - MARK, x + MARK, y + MARK) for x, y in taken]
    used, free = list(covered), list(lines)
    found, tall, whole = [], TALL * points, Box(0, 0, *size)
    for number, (x, y, width, _) in enumerate(names):
        half = width / 2
        near = Box(x - CLOSE, y - CLOSE, x + CLOSE, y + CLOSE)
        for tried, (right, up) in enumerate((*NEXT, *FAR)):
            dx = right + (half if right > 0 else -half if right < 0 else 0.0)
            dy = up + (tall if up > 0 else -tall if up < 0 else 0.0)
            box = Box(x + dx - half, y + dy - tall, x + dx + half, y + dy + tall)
            led = tried >= len(NEXT)
            leader = [Box(*2 * (x + k * dx / 12, y + k * dy / 12)) for k in range(2, 12)] if led else []
            leader = [each for each in leader if not each.meets(box)]
            clear = box.within(whole) and not any(map(box.meets, (*used, *marks, *free)))
            others = (*used, *(mark for mark in marks if not mark.meets(near)))
            if clear and not any(each.meets(other) for each in leader for other in others):
                used += [box, *(Box(a - 2, b - 2, a + 2, b + 2) for a, b, _, _ in leader)]
                found.append((number, dx, dy, led))
                break
    return found


def name_points(
    axes: Any, named: Sequence[tuple[float, float, str]], taken: Sequence[tuple[float, float]],
    lines: Sequence[tuple[float, float]] = (),
) -> None:  # fmt: skip
    """Write names beside points of axes that have their place; the first of them where not all have room.

    Args:
        axes: whose limits and scales are set.
        named: a place and a name each; the first go first.
        taken: places of all marks.
        lines: places along lines that no name is to cross.
    """
    from .style import SMALL, plain

    figure = axes.figure
    scale, whole, renderer = 72.0 / float(figure.dpi), axes.get_window_extent(), figure.canvas.get_renderer()

    def middle(x: float, y: float) -> tuple[float, float]:
        right, up = axes.transData.transform((x, y))
        return scale * (float(right) - float(whole.x0)), scale * (float(up) - float(whole.y0))

    def width(name: str) -> float:
        text = axes.annotate(plain(name), (0, 0), xycoords="axes fraction", fontsize=SMALL, parse_math=False)
        found = scale * float(text.get_window_extent(renderer).width)
        text.remove()
        return found + 2.0

    boxes = [text.get_window_extent(renderer) for text in axes.texts if text.get_text()]
    covered = [Box(*(scale * each for each in box.translated(-whole.x0, -whole.y0).extents)) for box in boxes]
    free = [Box(x - 2, y - 2, x + 2, y + 2) for x, y in (middle(*each) for each in lines)]
    names = [Name(*middle(x, y), width(name), plain(name)) for x, y, name in named]
    marks = [middle(*each) for each in taken]
    size = (scale * whole.width, scale * whole.height)
    for number, dx, dy, led in place(names, marks, size, SMALL, covered, free):
        text = axes.annotate(
            names[number].text, named[number][:2], (dx, dy), textcoords="offset points", ha="center", va="center",
            fontsize=SMALL, zorder=4, parse_math=False,
            arrowprops=LEADER if led else None,
        )  # fmt: skip
        text.set_in_layout(False)
