"""A file of one's own: which table it is, which column is which field, and its rows as those of that table.

A file whose columns are those of a documented table is that table. In any other each column is recognised by its name
(`own_columns.csv`), or said to be a field by `--map`; what every row has and no column says is given by `--fill`.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from ..common.errors import InputError, nearest, quote
from ..common.files import csv_table, decode, read_file
from ..common.numbers import numeral
from . import tables
from .faults import check_ids
from .own_columns import OwnColumn, columns_of, fold, recognise, spellings
from .rows import LARGEST_FILE, TableRow, UnreadableError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

Value = TypeVar("Value")
MOST_COLUMNS = 500
KINDS = ("training", "inference", "memory", "serving")
"""Kinds of files: each is one of the documented tables."""
RENAMED = ("training", "inference")
"""Those whose columns may have other names."""
NEARLY = 0.85
"""How alike a column that is no field may be to one before it is taken for a slip of the pen and refused."""
LONG = ("metric", "value", "unit")
"""Columns of a table whose rows are a measurement each."""
OF_A_STEP = ("seq_len_tokens", "micro_batch_seqs", "recompute", "sharding")
"""Columns that a table of memory has, and none of inference."""


@dataclass(frozen=True)
class Mapped:
    """What a column of a file is.

    Attributes:
        column: its name in the file.
        known: the field.
        unit: of its numbers.
    """

    column: str
    known: OwnColumn
    unit: str

    def cell(self, text: str, where: str) -> str:
        """A cell as the documented table has it: in the unit of the field.

        Raises:
            InputError: it is no number of zero or more, where the field is one.
        """
        if self.known.digits and text.isdecimal():
            return self.known.digits.format(text)
        if self.known.role != "measured" or not text:
            return text
        value, factor = numeral(text, float), self.known.factors.get(self.unit, 1.0)
        if value is None or not math.isfinite(value) or value < 0:
            raise InputError(f"{where}: {self.column}: found {quote(text)}, expected a number of zero or more")
        return text if factor == 1 else repr(value * factor)


@dataclass(frozen=True)
class OwnFile:
    """A file, read.

    Attributes:
        label: the file, for messages.
        kind: one of `KINDS`.
        mapped: what its columns are, in the order of the file.
        kept: columns of the documented table that only have its name.
        ignored: columns that are no field.
        filled: what every row has.
        rows: of the documented tables.
    """

    label: str
    kind: str
    mapped: tuple[Mapped, ...]
    kept: tuple[str, ...]
    ignored: tuple[str, ...]
    filled: Mapping[str, str]
    rows: tuple[TableRow, ...] = ()

    @property
    def fields(self) -> set[str]:
        """The fields that rows have."""
        return {*(each.known.field for each in self.mapped), *self.kept, *self.filled}

    @property
    def missing(self) -> list[OwnColumn]:
        """Fields without which no row can be predicted."""
        needed = [each for each in columns_of(self.kind) if each.role == "needed"]
        if self.kind not in RENAMED:
            needed = [_plain(name) for name in tables.columns_of(f"{self.kind}.csv").required if name != "id"]
        lacking = [each for each in needed if each.field not in self.fields]
        return lacking if self.measures else [*lacking, MEASUREMENT]

    @property
    def untold(self) -> list[OwnColumn]:
        """Fields that no column has, for which something is taken."""
        return [each for each in columns_of(self.kind) if each.absent and each.field not in self.fields]

    @property
    def measures(self) -> bool:
        """Whether anything that was measured is among its fields."""
        wide = any(each.known.role == "measured" for each in self.mapped)
        return wide or self.fields.issuperset(LONG) or self.kind not in RENAMED


def _plain(name: str) -> OwnColumn:
    """A column of a documented table of which nothing else is known."""
    return OwnColumn(name, "needed", "", "", "", "as documented", "", ())


MEASUREMENT = OwnColumn("what was measured", "needed", "", "", "", "a time, a rate, a utilisation or memory", "", ())


def read_own(
    path: Path, maps: Sequence[str] = (), fills: Sequence[str] = (), table: str | None = None, *, whole: bool = True
) -> OwnFile:
    """Read a file of one's own.

    Args:
        path: of the file, or of a pipe.
        maps: texts COLUMN=FIELD or COLUMN=FIELD:UNIT; without a field the column is ignored.
        fills: texts FIELD=VALUE.
        table: one of `KINDS`; None: as its name or its columns say.
        whole: refuse a file that lacks what rows need; else tell of it (`missing`).

    Raises:
        UnreadableError: it cannot be read, or what its columns are cannot be told; one line.
    """
    label = str(path)
    try:
        text = decode(read_file(path, label, "a CSV file", LARGEST_FILE), label, "a CSV file")
        header, lines = csv_table(text, label)
        if len(header) > MOST_COLUMNS:
            raise InputError(f"{label}: found {len(header):,} columns, expected at most {MOST_COLUMNS}")
        kind = _kind(label, path.name, header, (maps, fills), table)
        found = _map(label, kind, header, maps, fills)
        if whole and found.missing:
            raise InputError(_told(found))
        rows = [row for line, cells in lines for row in _rows(found, path, line, cells)]
    except InputError as error:
        raise UnreadableError(str(error)) from None
    if not rows:
        raise UnreadableError(f"{label}: has no row, expected at least one below the first line")
    check_ids(list({row.line: row for row in rows}.values()))
    return dataclasses.replace(found, rows=tuple(rows))


def _told(found: OwnFile) -> str:
    """What a file lacks, in one line."""
    lacking = [f"{each.field} ({each.says})" for each in found.missing]
    first = next((each.field for each in found.missing if each is not MEASUREMENT), "FIELD")
    return (
        f"{found.label}: no column for {', '.join(lacking)}, expected one, --map COLUMN={first} or "
        f"--fill {first}=VALUE; `--guide` tells what each column was taken for, as a table of {found.kind}"
    )


def _kind(
    label: str, name: str, header: Sequence[str], asked: tuple[Sequence[str], Sequence[str]], table: str | None
) -> str:
    """The kind of a file: what is asked for, what its name says, or that of which it has all that is needed.

    Raises:
        InputError: an unknown one, or its columns are those of several.
    """
    if table is not None:
        if table not in KINDS:
            raise InputError(f"table: found {quote(table)}, expected {' or '.join(KINDS)}{nearest(table, KINDS)}")
        return table
    if name in tables.OWN:
        return name.removesuffix(".csv")
    if "silicon_ttft_ms" in header:
        return "serving"
    if set(header).issuperset(LONG):
        return "memory" if set(OF_A_STEP) & set(header) else "inference"
    found = {kind: _map(label, kind, header, *asked, strict=False) for kind in ("training", "inference")}
    able = [kind for kind, each in found.items() if not each.missing]
    if len(able) > 1:
        raise InputError(f"{label}: its columns may be of training or of inference; say which by --table")
    return able[0] if able else min(found, key=lambda kind: (len(found[kind].missing), -len(found[kind].fields)))


def _map(
    label: str, kind: str, header: Sequence[str], maps: Sequence[str], fills: Sequence[str], *, strict: bool = True
) -> OwnFile:
    """What each column of a file is: as it is said to be, by its own name, or by another spelling of a field.

    Raises:
        InputError: an unknown field, a unit that is not known, or two columns that are one field.
    """
    documented = tables.columns_of(f"{kind}.csv")
    known = {each.field: each for each in columns_of(kind)}
    names = [*known, *(name for name in (*documented.required, *documented.optional) if name not in known)]
    taken: dict[str, str] = {}
    said = _each_once("map", (_said(text, header, names, label, strict=strict) for text in maps))
    filled = _each_once("fill", (_filled(text, names, strict=strict) for text in fills))
    mapped: dict[str, Mapped] = {}
    kept, ignored = [], []

    def claim(column: str, field: str) -> None:
        if field in taken or field in filled:
            other = f"the column {quote(taken[field])}" if field in taken else "--fill"
            if strict:
                raise InputError(f"{label}: column {quote(column)}: is {field}, as {other} is; expected one of them")
        taken[field] = column

    def take(column: str, field: str, unit: str) -> None:
        claim(column, field)
        mapped[column] = Mapped(column, known[field], _unit(label, column, known[field], unit, strict=strict))

    for column, (field, unit) in said.items():
        if field in known:
            take(column, field, unit)
        elif field:
            claim(column, field)
            mapped[column] = Mapped(column, _plain(field), "")
    for column in header:
        if column in known and column not in said:
            take(column, column, known[column].unit)
    for column in header:
        if column in said or column in mapped:
            continue
        found = recognise(column, kind)
        if found is not None and not (column in names and (found[0].field in taken or found[0].field in filled)):
            take(column, found[0].field, found[1])
        elif column in names:
            claim(column, column)
            kept.append(column)
        else:
            ignored.append(column)
            slip = difflib.get_close_matches(fold(column), spellings(kind), 1, NEARLY) if strict else ()
            if slip:
                raise InputError(
                    f"{label}: unknown column {quote(column)}; did you mean {slip[0]}? (--map {column}= ignores it)"
                )
    ignored += [column for column, (field, _) in said.items() if not field]
    order = tuple(mapped[column] for column in header if column in mapped)
    return OwnFile(label, kind, order, tuple(kept), tuple(ignored), filled)


def _each_once(flag: str, pairs: Iterable[tuple[str, Value]]) -> dict[str, Value]:
    """What a flag says of each name.

    Raises:
        InputError: it says something of one name twice.
    """
    found: dict[str, Value] = {}
    for name, value in pairs:
        if name in found:
            raise InputError(f"{flag}: {quote(name)} comes twice, expected it once")
        found[name] = value
    return found


def _said(
    text: str, header: Sequence[str], names: Sequence[str], label: str, *, strict: bool
) -> tuple[str, tuple[str, str]]:
    """What `--map` says: a column, and its field and unit."""
    column, equals, told = text.rpartition("=")
    column, (name, _, unit) = column.strip(), told.strip().partition(":")
    if not equals or not column:
        raise InputError(f"map: found {quote(text)}, expected COLUMN=FIELD or COLUMN=FIELD:UNIT")
    if column not in header:
        raise InputError(f"map: {label} has no column {quote(column)}{nearest(column, header)}")
    if strict and name and name not in names:
        raise InputError(
            f"map: unknown field {quote(name)}{nearest(name, names) or f', expected {names[0]} or others'}"
        )
    return column, (name, unit.strip())


def _filled(text: str, names: Sequence[str], *, strict: bool) -> tuple[str, str]:
    """What `--fill` says: a field and the value that every row has."""
    name, equals, value = (part.strip() for part in text.partition("="))
    if not equals or not name or not value:
        raise InputError(f"fill: found {quote(text)}, expected FIELD=VALUE")
    if strict and name not in names:
        raise InputError(f"fill: unknown field {quote(name)}{nearest(name, names)}")
    return name, value


def _unit(label: str, column: str, known: OwnColumn, unit: str, *, strict: bool) -> str:
    """The unit of a column, checked.

    Raises:
        InputError: the field has several and none is said, or it is none of them.
    """
    if not known.factors:
        if unit and unit != known.unit and strict:
            raise InputError(
                f"{label}: column {quote(column)}: found the unit {quote(unit)}, but {known.field} has none"
            )
        return known.unit
    folded = unit.casefold()
    if strict and folded not in known.factors:
        found = f"found the unit {quote(unit)}" if unit else "its unit is not said"
        units = " or ".join(known.factors)
        raise InputError(
            f"{label}: column {quote(column)}: {found}, expected --map {column}={known.field}:UNIT with {units}"
        )
    return folded


def _rows(found: OwnFile, path: Path, line: int, cells: Mapping[str, str]) -> Iterator[TableRow]:
    """The rows of the documented tables that a line of a file is: one, or one for each measurement of it.

    Raises:
        InputError: a cell that is no number.
    """
    where = f"{found.label}: line {line}"
    own = {each.field: each.absent for each in found.untold if each.absent.isdecimal()}
    own |= {**found.filled, **{name: cells[name] for name in found.kept}}
    told = {each: each.cell(cells[each.column], where) for each in found.mapped}
    told = {each: cell for each, cell in told.items() if cell}
    own |= {each.known.field: cell for each, cell in told.items() if not each.known.metric}
    if not own.get("family") and "-" not in own.get("id", ""):
        own["family"] = path.stem
    names = {each.known.field: each.column for each in found.mapped}

    def row(table: str, more: Mapping[str, str]) -> TableRow:
        return TableRow(f"{table}.csv", line, {**own, **more}, found.label, names)

    metrics = [(each, cell) for each, cell in told.items() if each.known.metric]
    steps = found.kind == "training" and any(each.known.role == "measured" and not each.known.metric for each in told)
    if steps or not metrics:
        yield row(found.kind, {})
    for each, cell in metrics:
        long = {"metric": each.known.metric, "value": cell, "unit": each.known.unit}
        yield row("memory" if found.kind == "training" else found.kind, long)
