"""Attribution, gains and solutions as terminal tables; as JSON each is its own `to_dict()`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .scaled import percent, seconds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from ..analysis.attribution import Attribution, Gain
    from ..analysis.bounds import Bounds


def _table(title: str, *columns: str) -> Table:
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for k, column in enumerate(columns):
        table.add_column(column, justify="left" if k == 0 else "right", overflow="fold")
    return table


def attribution_table(attribution: Attribution, depth: int = 2) -> Table:
    """Seconds by term and resource; terms that share the first `depth` parts of their paths are one row."""
    found = attribution.grouped(depth)
    table = _table("seconds by term and resource", "term", *found.columns, "total")
    sums = found.row_sums()
    for name, row in zip(found.rows, found.seconds, strict=True):
        table.add_row(name, *(seconds(value) if value else "" for value in row), seconds(sums[name]))
    columns = found.column_sums()
    table.add_row("total", *(seconds(value) if value else "" for value in columns.values()), seconds(found.total))
    return table


def gains_table(gains: Sequence[Gain]) -> Table:
    """What each resource would bring: speed-ups at 10 % more, twice as much, and in the limit."""
    table = _table("what to buy next", "resource", "share", "+10 %", "x 2", "without limit")
    for gain in gains:
        limit = "-" if gain.infinite is None else f"{gain.infinite:.3f}x"
        table.add_row(gain.resource, percent(gain.share), f"{gain.plus_10_percent:.3f}x", f"{gain.times_2:.3f}x", limit)
    return table


def bounds_line(bounds: Bounds) -> str:
    """The time between its bounds, on one line."""
    return f"{seconds(bounds.overlapped)} overlapped <= {seconds(bounds.time)} <= {seconds(bounds.serial)} one by one"
