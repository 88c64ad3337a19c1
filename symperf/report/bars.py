"""Answers as bars of blocks for a terminal: where the time goes, how full the memory is, what a model is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ..pictures.style import BLUE, GREEN, VERMILLION, colour_of
from .scaled import gibibytes, percent, quantity, seconds
from .training import merge_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.console import Console

    from ..evaluation.base_run import Row
    from ..plan_search.search import Answer
    from ..runs.full_run import FullRun
    from ..serve.serving import Serving

MOST, LEAST = 8, 0.005
"""Bars of terms, and the share of a term that has one of its own; the others are one bar together."""
WIDEST, NARROWEST = 40, 8
"""Columns of the longest bar; below the fewest there are none."""
EIGHTHS = " ▏▎▍▌▋▊▉█"
"""Parts of a block, from none to all of it."""
REST = "other terms"


class Line(NamedTuple):
    """One bar.

    Attributes:
        name: before it.
        part: its length, of the longest.
        told: behind it.
        colour: of it.
    """

    name: str
    part: float
    told: str
    colour: str


def bar(part: float, columns: int, *, blocks: bool = True) -> str:
    """A part of so many columns, to an eighth of one with blocks, else to one.

    >>> bar(0.5, 10), bar(0.3125, 8), bar(0.3, 10, blocks=False)
    ('█████', '██▌', '###')
    """
    if not blocks:
        return "#" * round(part * columns)
    whole, eighth = divmod(round(8 * part * columns), 8)
    return "█" * whole + EIGHTHS[eighth].strip()


def ordered(rows: Iterable[Row], most: int = MOST) -> tuple[list[Row], list[Row]]:
    """The terms with the most time, at most so many and none of a small share, and the others."""
    found = sorted(rows, key=lambda row: -row.time_s)
    total = sum(row.time_s for row in found)
    own = [row for row in found[:most] if row.time_s >= LEAST * total > 0]
    rest = [row for row in found[len(own) :] if row.time_s]
    return (own + rest, []) if len(rest) == 1 else (own, rest)


def terms(rows: Iterable[Row]) -> list[tuple[str, float, str]]:
    """The terms with the largest shares of the time, what binds each, and the others together; the shares sum to 1."""
    own, rest = ordered(rows)
    left = sum(row.share for row in rest)
    found = [(row.name, row.share, row.bound or "") for row in own]
    return [*found, (REST, left, "")] if left >= LEAST / 10 else found


def show(lines: Sequence[Line], console: Console, *, blocks: bool = True) -> None:
    """Print bars where they have room.

    Args:
        lines: the bars.
        console: of a terminal.
        blocks: whether it can print them.
    """
    from rich.text import Text as _Text

    names = max((len(line.name) for line in lines), default=0)
    columns = min(WIDEST, console.width - names - 2 - max((len(line.told) for line in lines), default=0))
    if not lines or columns < NARROWEST:
        return
    console.print()
    for name, part, told, colour in lines:
        drawn = bar(part, columns, blocks=blocks)
        console.print(_Text.assemble(f"{name:{names}} ", (f"{drawn:{columns}}", colour), f" {told}"))


def of_run(run: FullRun) -> list[Line]:
    """The largest terms of the time of a run, and its memory."""
    rows = merge_rows(run.table()) if run.kind == "training" else run.table()
    return [*_shares(terms(rows)), memory(run.needed_bytes, run.value("capacity_bytes"), fits=run.fits)]


def memory(need: float, have: float, *, fits: bool) -> Line:
    """How full a device is."""
    colour = GREEN if fits else VERMILLION
    return Line("memory", min(need / have, 1.0), f"{percent(need / have):>6} of {gibibytes(have)}", colour)


def _shares(found: Sequence[tuple[str, float, str]]) -> list[Line]:
    longest = max((share for _, share, _ in found), default=1.0)
    return [
        Line(name, share / longest, f"{percent(share):>6} {bound}", colour_of(bound, place))
        for place, (name, share, bound) in enumerate(found)
    ]


def of_serving(serving: Serving) -> list[Line]:
    """What each load yields, and how long its tokens take; in red where a target is missed."""
    from .picture_serving import curve_of

    points, targets = curve_of(serving), (serving.asked.ttft, serving.asked.tpot)
    most = max((point.output_tokens_per_s_per_device for point in points), default=0.0)
    found = []
    for point in points if most else ():
        times = (point.ttft_s, point.tpot_s)
        named = zip(("TTFT", "TPOT"), times, strict=True)
        told = [f"{name} {seconds(time)}" for name, time in named if time is not None]
        late = any(t is not None and w is not None and t > w for t, w in zip(times, targets, strict=True))
        tokens = point.output_tokens_per_s_per_device
        words = f"{quantity(tokens, 'token/s'):>14} a device  {', '.join(told)}"
        found.append(Line(f"{point.load:.4g} requests/s", tokens / most, words, VERMILLION if late else GREEN))
    return found


def of_search(answer: Answer) -> list[Line]:
    """What the time of the best plan is due to, and its memory."""
    run = answer.winner
    shares = sorted(run.shares().items(), key=lambda item: -item[1])
    lines = _shares([(name.replace("_", " "), share, name) for name, share in shares if share >= LEAST])
    told = [f"{percent(share):>6} of the time" for _, share in shares]
    full = memory(run.needed_bytes, run.value("capacity_bytes"), fits=run.fits)
    return [*(line._replace(told=text) for line, text in zip(lines, told, strict=False)), full]


def of_model(found: dict[str, Any]) -> list[Line]:
    """What the forward FLOPs of a model are of, each part of all.

    Args:
        found: of `runs.inspection.inspect`.
    """
    flops = found["flops_forward"]
    total = flops["total"]
    parts = sorted(((name, count) for name, count in flops.items() if name != "total" and count), key=lambda p: -p[1])
    longest = max((count for _, count in parts), default=1)
    return [
        Line(name.replace("_", " "), count / longest, f"{percent(count / total):>6} of forward FLOPs", BLUE)
        for name, count in parts
    ]
