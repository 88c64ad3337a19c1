"""The rows of a file of one's own, scored one after another, and what the file was taken for, in words."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from .case import Case, LeftOut
from .faults import contradicting
from .score import CONTRADICTS, cases, predict_case, select
from .tables import source_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .case import Expressed, Scored
    from .own_file import OwnFile
    from .rows import TableRow


def expressed_of(own: OwnFile) -> list[Expressed]:
    """The cases of every row of a file, in its order, and the rows that are left out.

    Raises:
        UnreadableError: a cell holds something else than it should.
    """
    by_table: defaultdict[str, list[TableRow]] = defaultdict(list)
    for row in own.rows:
        by_table[row.table].append(row)
    twice = {table: contradicting(rows) for table, rows in by_table.items() if own.kind != "inference"}
    found: list[Expressed] = []
    for row in own.rows:
        if row.line in twice.get(row.table, ()):
            found.append(LeftOut(source_of(row), row.id, CONTRADICTS))
        else:
            found += cases(row)
    return found


def scored_of(own: OwnFile, sources: Sequence[str]) -> Iterator[Scored | LeftOut]:
    """Every case of a file as soon as it is predicted.

    Raises:
        InputError: a cell that is not what it should be, or a family that is not there.
    """
    for item in select(expressed_of(own), sources):
        yield predict_case(item) if isinstance(item, Case) else item


def guide(own: OwnFile) -> list[str]:
    """What a file was taken for, a line each: its columns, what is missing, and what is taken instead."""
    lines = [f"{own.label}: a table of {own.kind}, {len(own.rows):,} rows"]
    for each in own.mapped:
        unit = f", in {each.unit}" if each.unit else ""
        says = f": {each.known.says}" if each.known.says else ""
        lines.append(f"read     {each.column} is {each.known.field}{unit}{says}")
    lines += [f"read     {name}, as documented" for name in own.kept]
    lines += [f"filled   {name} is {value} in every row" for name, value in own.filled.items()]
    lines += [f"ignored  {name or '(a column without a name)'}" for name in own.ignored]
    lines += [f"missing  {each.field}: {each.says}" for each in own.missing]
    return lines + [f"taken    {each.field}: {each.absent}" for each in own.untold]


def columns_json(own: OwnFile) -> dict[str, Any]:
    """What a file was taken for, as plain data."""
    return {
        "table": own.kind,
        "read": [{"column": each.column, "field": each.known.field, "unit": each.unit} for each in own.mapped]
        + [{"column": name, "field": name, "unit": ""} for name in own.kept],
        "filled": dict(own.filled),
        "ignored": list(own.ignored),
        "missing": [each.field for each in own.missing],
        "taken": {each.field: each.absent for each in own.untold},
    }
