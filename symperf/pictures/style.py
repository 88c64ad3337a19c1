"""One style for all pictures: a colour and a mark for each resource, sizes, and names that stay text.

Colours are the eight of Okabe and Ito, Color Universal Design (2002, revised 2008), https://jfly.uni-koeln.de/color/,
and a dark grey: `tests/pictures/test_style.py` holds how far apart they are for readers without one kind of cone.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from ..common.errors import InputError
from ..common.extras import import_extra

if TYPE_CHECKING:
    from collections.abc import Iterator

BLACK: Final = "#000000"
ORANGE: Final = "#e69f00"
SKY: Final = "#56b4e9"
GREEN: Final = "#009e73"
YELLOW: Final = "#f0e442"
BLUE: Final = "#0072b2"
VERMILLION: Final = "#d55e00"
PURPLE: Final = "#cc79a7"
DARK: Final = "#595959"
REST: Final = "#bdbdbd"
"""What has no resource: what is together because each is small, and what waits."""
RESOURCES: Final = {
    "compute": BLUE,
    "memory": ORANGE,
    "l2": YELLOW,
    "scale_up": GREEN,
    "scale_out": VERMILLION,
    "launch": PURPLE,
    "host": DARK,
    "nvme": SKY,
    "network": BLACK,
}
"""The colour that a resource has in every picture, in the terminal and in the explorer; but the black of the network of
no tier, which would not be seen on dark paper, is brown there."""
MARKS: Final = dict(zip(RESOURCES, "osD^vP*Xp", strict=True))
"""The mark of a point that a resource binds: colour is never the only difference."""
CURVES: Final = (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY, BLACK, YELLOW)
"""Curves and sets of points, in their order."""
SHAPES: Final = "os^Dv<>P*X"
"""Marks of sets of points, in their order."""
PARTS: Final = {
    "weights": BLUE,
    "gradients": ORANGE,
    "optimizer": GREEN,
    "kv_cache": GREEN,
    "activations": SKY,
    "workspace": PURPLE,
    "beside": REST,
}
"""The colour that a part of memory has."""
EDGE: Final = {"edgecolor": "#404040", "linewidth": 0.4}
"""Around what is filled: yellow is seen on white."""
RULE: Final = {"color": "#404040", "linewidth": 0.9, "linestyle": "--"}
"""A line that marks a value: a target, a limit, a change."""
PAPER: Final = {"facecolor": "white", "alpha": 0.75, "edgecolor": "none", "pad": 1.0}
"""Behind a text that lies on colours."""
SMALL: Final = 7.5
"""Points of letters beside marks and in corners."""
LEAST_PART: Final = 7
"""Characters of a part of a path that still tell what it is."""
WIDTH: Final = 7.2
"""Inches of a picture with one column."""
SETTINGS: Final = {
    "svg.fonttype": "path",  # letters are shapes in the file: the same on machines without the font
    "svg.hashsalt": "symperf",
    "pdf.fonttype": 42,  # the letters that are used are embedded, and can be searched for
    "font.family": ["DejaVu Sans"],  # which matplotlib ships
    "font.size": 8.5,
    "axes.titlesize": 9.5,
    "axes.labelsize": 8.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": "#e2e2e2",
    "grid.linewidth": 0.6,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "figure.titlesize": 10,
    "savefig.dpi": 150,
}


def colour_of(resource: str | None, place: int = 0) -> str:
    """The colour of a resource; of a name that is none, by its place among others; of nothing, grey."""
    if not resource:
        return REST
    return RESOURCES.get(resource) or CURVES[place % len(CURVES)]


@contextmanager
def style() -> Iterator[Any]:
    """Matplotlib with these settings and no others, which it loses again.

    Raises:
        InputError: matplotlib is not installed, or refuses what the environment or the working folder sets.
    """
    try:
        matplotlib = import_extra("matplotlib", "plot", "plot")
    except InputError:
        raise
    except ValueError as error:  # its file in the working folder, or MPLBACKEND, cannot be read
        raise InputError(f"plot: matplotlib refuses its own settings: {error}") from None
    own = {name: value for name, value in matplotlib.rcParamsDefault.items() if not name.startswith("backend")}
    own.pop("interactive", None)
    cycle = import_extra("cycler", "plot", "plot").cycler(color=CURVES)
    with matplotlib.rc_context(own | SETTINGS | {"axes.prop_cycle": cycle}):
        yield matplotlib


def plain(text: str) -> str:
    r"""A text whose characters a picture can show: what steers or turns writing is an escape; lines stay lines.

    >>> plain("a\nb\x1b[0m\u202e")
    'a\nb\\x1b[0m\\u202e'
    """
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)


def shorten(text: str, most: int = 36) -> str:
    """A text of so many characters at most: of a longer one the longest part of the path loses its middle, or all.

    >>> shorten("layer/latent_attention/output", 24), shorten("a long name", 8)
    ('layer/laten…ntion/output', 'a lo…ame')
    """
    text = plain(text).replace("\n", " ")
    if len(text) <= most:
        return text
    parts = text.split("/")
    longest = max(parts, key=len)
    left = len(longest) - (len(text) - most)
    if left < LEAST_PART:
        return _cut(text, most)
    parts[parts.index(longest)] = _cut(longest, left)
    return "/".join(parts)


def _cut(text: str, most: int) -> str:
    return f"{text[: most // 2]}…{text[len(text) - (most - 1) // 2 :]}"


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
            text.set_text(plain(text.get_text()))
