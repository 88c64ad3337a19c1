"""Tables of measurements read cell by cell; a fault of a file is a line that names file, line and column."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from ..common.errors import InputError, nearest, quote
from ..common.files import csv_table, decode, read_file
from ..common.numbers import numeral

if TYPE_CHECKING:
    from collections.abc import Mapping

PACKAGED = Path(__file__).parent / "data"
LARGEST_FILE = 100_000_000
"""Bytes."""
MOST = 10**12
"""The largest whole number of a cell."""


NO_NAMES: Mapping[str, str] = {}


@dataclass(frozen=True)
class Columns:
    """The columns of a table.

    Attributes:
        required: must be there.
        optional: may be there; other columns are ignored.
    """

    required: tuple[str, ...]
    optional: tuple[str, ...] = ()


@dataclass(frozen=True)
class TableRow:
    """One row.

    Attributes:
        table: the name of its file, for messages.
        line: in the file.
        cells: by column, stripped; a column that the file lacks is as an empty cell.
        label: the file of one's own that it is from; "" where the table is the file.
        names: of columns in that file, where they are others.
    """

    table: str
    line: int
    cells: Mapping[str, str]
    label: str = ""
    names: Mapping[str, str] = field(default_factory=lambda: NO_NAMES)

    @property
    def id(self) -> str:
        """The row's id, or its line where it has none."""
        return self.text("id") or f"line {self.line}"

    @property
    def family(self) -> str:
        """The column `family`, or the id before its last hyphen."""
        found = self.text("family") or self.text("id").rpartition("-")[0] or self.text("id")
        return found or self.table.removesuffix(".csv")

    def text(self, column: str) -> str:
        """The cell's text; empty where there is none."""
        return self.cells.get(column, "")

    def number(self, column: str) -> float | None:
        """The cell's number; None where it is empty.

        Raises:
            InputError: it holds something else than one finite number of zero or more.
        """
        text = self.text(column)
        if not text:
            return None
        value = numeral(text, float)
        if value is None or not math.isfinite(value) or value < 0:
            self.fail(column, "a number of zero or more, in plain digits")
        return value

    def whole(self, column: str) -> int | None:
        """The cell's positive whole number; None where it is empty.

        Raises:
            InputError: it holds something else.
        """
        value = self.number(column)
        if value is None:
            return None
        if value != int(value) or not 1 <= value <= MOST:
            self.fail(column, "a positive whole number" + (f" of at most {MOST:.0e}" if value > MOST else ""))
        return int(value)

    def fail(self, column: str, expected: str) -> NoReturn:
        """Raise the `InputError` of a cell that is not what was expected."""
        place, name = self.label or self.table, self.names.get(column, column)
        raise UnreadableError(
            f"{place}: line {self.line}: {name}: found {quote(self.text(column))}, expected {expected}"
        )


class UnreadableError(InputError):
    """A fault of the file itself, not a row that the model cannot express: nothing is scored."""


def read(path: Path, columns: Columns) -> list[TableRow]:
    """The rows of a file.

    Raises:
        UnreadableError: it cannot be read, is no CSV in UTF-8, lacks a column or has no row.
    """
    table = path.name
    try:
        text = decode(read_file(path, str(path), "a CSV file", LARGEST_FILE), str(path), "a CSV file")
        header, lines = csv_table(text, table)
        check_header(header, table, columns)
        rows = [TableRow(table, line, cells) for line, cells in lines]
    except InputError as error:
        raise UnreadableError(str(error)) from None
    if not rows:
        raise UnreadableError(f"{table}: has no row, expected at least one below the first line")
    return rows


def check_header(header: list[str], table: str, columns: Columns) -> None:
    """Refuse a first line that lacks a column, or has one that is nearly a known one.

    Raises:
        UnreadableError: it does.
    """
    known = [*columns.required, *columns.optional]
    for name in columns.required:
        if name not in header:
            near = nearest(name, [other for other in header if other not in known])
            raise UnreadableError(f"{table}: no column {quote(name)}, expected it in the first line{near}")
    for name in header:
        if name not in known and (near := nearest(name, [other for other in known if other not in header])):
            raise UnreadableError(f"{table}: unknown column {quote(name)}{near}")
