"""Where the time of a step goes, and how full the memory is, as bars of blocks for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..analysis.drawing import colour_of
from .scaled import gibibytes, percent
from .training import merge_rows

if TYPE_CHECKING:
    from rich.console import Console

    from ..runs.training_run import Run

MOST, LEAST = 8, 0.005
"""Bars of terms, and the share of a term that has one of its own; the others are one bar together."""
WIDEST, NARROWEST = 40, 8
"""Columns of the longest bar; below the fewest there are none."""
EIGHTHS = " ▏▎▍▌▋▊▉█"
"""Parts of a block, from none to all of it."""
REST, OTHER, FULL, OVER = "other terms", "#888888", "#228833", "#cc3311"


def bar(part: float, columns: int, *, blocks: bool = True) -> str:
    """A part of so many columns, to an eighth of one with blocks, else to one.

    >>> bar(0.5, 10), bar(0.3125, 8), bar(0.3, 10, blocks=False)
    ('█████', '██▌', '###')
    """
    if not blocks:
        return "#" * round(part * columns)
    whole, eighth = divmod(round(8 * part * columns), 8)
    return "█" * whole + EIGHTHS[eighth].strip()


def terms(run: Run) -> list[tuple[str, float, str]]:
    """The terms with the largest shares of the time, what binds each, and the others together; the shares sum to 1."""
    rows = sorted(merge_rows(run.table()), key=lambda row: -row.share)
    own = [row for row in rows[:MOST] if row.share >= LEAST]
    rest = sum(row.share for row in rows[len(own) :])
    found = [(row.name, row.share, row.bound or "") for row in own]
    return [*found, (REST, rest, "")] if rest >= LEAST / 10 else found


def show(run: Run, console: Console, *, blocks: bool = True) -> None:
    """Print the bars where they have room.

    Args:
        run: whose time and memory they are.
        console: of a terminal.
        blocks: whether it can print them.
    """
    from rich.text import Text as _Text

    shares = terms(run)
    names = max(len(name) for name, _, _ in (*shares, ("memory", 0, "")))
    told = {name: f"{percent(share):>6} {bound}" for name, share, bound in shares}
    need, have = run.needed_bytes, run.value("capacity_bytes")
    told_memory = f"{percent(need / have):>6} of {gibibytes(have)}"
    columns = min(WIDEST, console.width - names - 2 - max(map(len, (*told.values(), told_memory))))
    if columns < NARROWEST:
        return
    longest = max(share for _, share, _ in shares)
    console.print()
    for place, (name, share, bound) in enumerate(shares):
        drawn = bar(share / longest, columns, blocks=blocks)
        colour = colour_of(bound, place) if bound else OTHER
        console.print(_Text.assemble(f"{name:{names}} ", (f"{drawn:{columns}}", colour), f" {told[name]}"))
    drawn = bar(min(need / have, 1.0), columns, blocks=blocks)
    line = (f"{drawn:{columns}}", FULL if run.fits else OVER)
    console.print(_Text.assemble(f"{'memory':{names}} ", line, f" {told_memory}"))
