"""Rows of a table that cannot both be right."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..common.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .rows import TableRow

MEASURED = (
    *("step_time_s", "tokens_per_s", "tokens_per_s_per_device", "samples_per_s", "tflops_per_device", "mfu_pct"),
    *("value", "measured_s"),
)
"""Columns of what was measured."""
BESIDE = (
    *MEASURED,
    *("use", "id", "unit", "hfu_pct", "peak_mem_GiB", "peak_mem_GB", "source", "source_locator", "url"),
)
"""Columns that do not describe what was measured."""
APART = 1.5
"""Times that two measurements of one case may be apart."""


def check_ids(rows: Sequence[TableRow]) -> None:
    """Refuse a table in which two rows have one id.

    Raises:
        UnreadableError: it has such rows.
    """
    lines: dict[str, int] = {}
    for row in rows:
        name = row.text("id")
        if name and name in lines:
            row.fail("id", f"another, as line {lines[name]} has this one")
        lines[name] = row.line


def contradicting(rows: Sequence[TableRow]) -> set[int]:
    """The lines of rows that describe the same as an earlier one and measured something else by more than half."""
    first: dict[tuple[tuple[str, str], ...], TableRow] = {}
    found = set()
    for row in rows:
        key = tuple(sorted((name, cell) for name, cell in row.cells.items() if cell and name not in BESIDE))
        earlier = first.setdefault(key, row)
        if earlier is not row and any(_apart(row, earlier, name) for name in MEASURED):
            found.add(row.line)
    return found


def _apart(row: TableRow, other: TableRow, column: str) -> bool:
    try:
        one, two = row.number(column), other.number(column)
    except InputError:
        return False
    return bool(one and two) and not 1 / APART < (one or 1) / (two or 1) < APART
