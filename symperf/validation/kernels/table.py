"""Tables of measured kernels, read batch by batch: Parquet, or CSV with a first line of column names.

A batch has numbers as arrays and texts as codes with what they stand for, so that rows are sorted by their texts
without a loop over them. What is wrong with a file is one line with its name.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ...common.errors import InputError, nearest, quote
from ...common.extras import import_extra
from ...common.files import open_input
from ...common.system_errors import cause

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

BATCH: Final = 65_536
"""Rows of a batch."""
ENDINGS: Final = (".parquet", ".csv")
LONGEST_FIELD: Final = 10_000
"""Characters of a cell of a CSV file."""


@dataclass(frozen=True)
class Columns:
    """The columns of a table; others are ignored, unless their name is nearly that of an optional one.

    Attributes:
        texts: that must be there.
        numbers: that must be there.
        optional: numbers that may be there; NaN where they are not.
    """

    texts: tuple[str, ...]
    numbers: tuple[str, ...]
    optional: tuple[str, ...] = ()


@dataclass(frozen=True)
class Texts:
    """A column of texts: the place of each row's text among those that there are."""

    codes: Any
    known: Sequence[str]


@dataclass(frozen=True)
class Batch:
    """Some rows of a table.

    Attributes:
        texts: by column.
        numbers: arrays of float64, by column.
        size: rows.
    """

    texts: dict[str, Texts]
    numbers: dict[str, Any]
    size: int

    def rows(self, chosen: Any) -> Batch:
        """The rows at some places."""
        texts = {name: Texts(each.codes[chosen], each.known) for name, each in self.texts.items()}
        return Batch(texts, {name: each[chosen] for name, each in self.numbers.items()}, len(chosen))

    def groups(self, columns: Sequence[str]) -> Iterator[tuple[dict[str, str], Any]]:
        """The texts of some columns that occur together, each with the places of its rows."""
        codes = np.zeros(self.size, dtype=np.int64)
        for name in columns:
            codes = codes * max(len(self.texts[name].known), 1) + self.texts[name].codes
        _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
        order = np.argsort(inverse, kind="stable")
        for at, rows in zip(first, np.split(order, np.cumsum(np.bincount(inverse))[:-1]), strict=True):
            yield {name: self.texts[name].known[self.texts[name].codes[at]] for name in columns}, rows


def read(path: Path, columns: Columns) -> Iterator[Batch]:
    """The batches of a file.

    Raises:
        InputError: it cannot be read, lacks a column, has a cell that is no number, or pyarrow is not installed.
    """
    return _parquet(path, columns) if path.suffix == ".parquet" else _csv(path, columns)


def _checked(found: Sequence[str], columns: Columns, label: str) -> list[str]:
    """The numbers that are there; refuses a table that lacks a column, or has one that is nearly an optional one."""
    needed = (*columns.texts, *columns.numbers)
    if repeated := [name for name, count in Counter(found).items() if name and count > 1]:
        raise InputError(f"{label}: the column {quote(repeated[0])} comes twice, expected it once")
    for name in needed:
        if name not in found:
            near = nearest(name, [other for other in found if other not in needed])
            raise InputError(f"{label}: no column {quote(name)}, expected {', '.join(needed)}{near}")
    missing = [name for name in columns.optional if name not in found]
    for name in found:
        if name not in needed and (near := nearest(name, missing)):
            raise InputError(f"{label}: unknown column {quote(name)}{near}")
    return [*columns.numbers, *(name for name in columns.optional if name in found)]


def _with_missing(texts: dict[str, Texts], numbers: dict[str, Any], columns: Columns, size: int) -> Batch:
    missing = [name for name in columns.optional if name not in numbers]
    return Batch(texts, numbers | {name: np.full(size, np.nan) for name in missing}, size)


def _parquet(path: Path, columns: Columns) -> Iterator[Batch]:
    what = f"kernels: {path.name}"
    arrow = import_extra("pyarrow", "sweep", what)
    parquet = import_extra("pyarrow.parquet", "sweep", what)
    try:
        with parquet.ParquetFile(path) as file:
            present = _checked(file.schema_arrow.names, columns, path.name)
            for name in present:
                kind = file.schema_arrow.field(name).type
                if not (arrow.types.is_integer(kind) or arrow.types.is_floating(kind) or arrow.types.is_null(kind)):
                    raise InputError(f"{path.name}: column {quote(name)}: found {kind}, expected numbers")
            for batch in file.iter_batches(BATCH, columns=[*columns.texts, *present]):
                texts = {name: _coded(batch.column(name).to_pylist()) for name in columns.texts}
                numbers = {name: _floats(batch.column(name), arrow) for name in present}
                yield _with_missing(texts, numbers, columns, batch.num_rows)
    except (OSError, arrow.ArrowException) as error:
        raise InputError(f"{path.name}: cannot be read as Parquet: {' '.join(str(error).split())[:120]}") from None


def _floats(column: Any, arrow: Any) -> Any:
    return np.asarray(column.cast(arrow.float64()).to_numpy(zero_copy_only=False), dtype=float)


def _coded(found: Sequence[object]) -> Texts:
    places: dict[str, int] = {}
    codes = [places.setdefault("" if text is None else str(text), len(places)) for text in found]
    return Texts(np.array(codes, dtype=np.int64), list(places))


def _csv(path: Path, columns: Columns) -> Iterator[Batch]:
    try:
        with io.TextIOWrapper(open_input(path), encoding="utf-8-sig", newline="") as opened:
            reader = csv.reader((line[:LONGEST_FIELD] for line in opened), strict=True)
            header = [name.strip() for name in next(reader, [])]
            present = _checked(header, columns, path.name)
            rows = ((reader.line_num, cells) for cells in reader if cells)
            while lines := list(islice(rows, BATCH)):
                yield _batch(lines, header, present, columns, path.name)
    except OSError as error:
        raise InputError(f"{path.name}: cannot be read: {cause(error)}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path.name}: is not UTF-8, expected a CSV file in UTF-8") from None
    except csv.Error as error:
        raise InputError(f"{path.name}: line {reader.line_num}: not valid CSV: {error}") from None


def _batch(
    lines: list[tuple[int, list[str]]], header: list[str], present: list[str], columns: Columns, label: str
) -> Batch:
    for line, cells in lines:
        if len(cells) != len(header):
            raise InputError(f"{label}: line {line}: found {len(cells)} cells, expected the first line's {len(header)}")
    by_name = dict(zip(header, zip(*(cells for _, cells in lines), strict=True), strict=True))
    numbers = {}
    for name in present:
        try:
            numbers[name] = np.array([_plain(cell) for cell in by_name[name]], dtype=object).astype(float)
        except ValueError:
            line, cell = next((line, c) for (line, _), c in zip(lines, by_name[name], strict=True) if not _is_number(c))
            raise InputError(f"{label}: line {line}: {name}: found {quote(cell)}, expected a number") from None
    texts = {name: _coded([cell.strip() for cell in by_name[name]]) for name in columns.texts}
    return _with_missing(texts, numbers, columns, len(lines))


def _plain(cell: str) -> str:
    """A cell as a number is written in a table: 1_000 is one in Python only."""
    return cell.strip().replace("_", "?") or "nan"


def _is_number(cell: str) -> bool:
    try:
        float(_plain(cell))
    except ValueError:
        return False
    return True
