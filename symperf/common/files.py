"""Files that users give, read whole; what is wrong with one is told in one line that begins with its label."""

from __future__ import annotations

import csv
import io
import os
import re
import tomllib
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import InputError, quote, quote_path
from .system_errors import cause

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

LARGEST_TOML = 1_000_000
"""Bytes."""
DEEPEST = 50
"""Levels of nesting of tables and lists, and parts of a dotted key; no file that anyone writes comes near it."""
MOST_COLUMNS = 10_000
"""Columns of a table of comma-separated values."""
LARGEST_WHOLE = 10**308
_PART = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')"""
_DOTTED = re.compile(rf"""(?<![\w"'-])(?:{_PART}[ \t]*+\.[ \t]*+){{{DEEPEST}}}""")


def read_file(path: str | os.PathLike[str], label: str, expected: str, most: int) -> bytes:
    """The bytes of a file.

    Args:
        path: of the file.
        label: what an error line begins with.
        expected: what the file should be, such as "a CSV file".
        most: bytes that it may have.

    Raises:
        InputError: it is a folder, is not there, cannot be read or is larger.
    """
    shown = quote_path(label)
    try:
        file = Path(path)
        if file.is_dir():
            raise InputError(f"{shown}: is a folder, expected {expected}")
        with open_input(file) as opened:  # no more than that is read: a device may have no end
            data = opened.read(most + 1)
    except FileNotFoundError:
        raise InputError(f"{shown}: no such file, expected {expected}") from None
    except OSError as error:
        raise InputError(f"{shown}: cannot be read: {cause(error)}") from None
    except InputError:
        raise
    except ValueError as error:  # a null character in the name
        raise InputError(f"{quote(label)}: cannot be read: {error}") from None
    if len(data) > most:
        raise InputError(f"{label}: is larger than {most:,} bytes, expected {expected}")
    return data


def open_input(path: str | os.PathLike[str]) -> BinaryIO:
    """A file opened for reading; a named pipe into which no one writes is empty, and not waited for.

    Raises:
        OSError: it cannot be opened.
    """
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        if hasattr(os, "O_NONBLOCK"):
            os.set_blocking(handle, True)
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def decode(data: bytes, label: str, expected: str) -> str:
    """The text of the bytes of a file, which may begin with a mark of their order.

    Raises:
        InputError: they are no UTF-8.
    """
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{label}: byte {error.start} is not UTF-8, expected {expected} in UTF-8") from None


def read_toml(path: Path, label: str, expected: str = "a .toml file", most: int = LARGEST_TOML) -> dict[str, Any]:
    """The table of a TOML file; arguments as of `read_file`.

    Raises:
        InputError: it cannot be read, or is no TOML.
    """
    return parse_toml(decode(read_file(path, label, expected, most), label, expected), label)


def parse_toml(text: str, label: str) -> dict[str, Any]:
    """The table of a TOML text, in a time that grows with its length alone.

    Raises:
        InputError: it is no TOML, or is beyond what `check_data` takes.
    """
    if dotted := _DOTTED.search(text):
        line = text.count("\n", 0, dotted.start()) + 1
        raise InputError(f"{label}: line {line}: a key of more than {DEEPEST} parts, expected a name")
    try:
        found = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{label}: not valid TOML: {' '.join(str(error).split())}") from None
    check_data(found, label)
    return found


def check_data(data: Any, label: str) -> None:
    """Refuse what a file may hold, but nothing that reads it could work with.

    Raises:
        InputError: nesting deeper than `DEEPEST`, or a whole number that is beyond the range of a double.
    """
    waiting: list[tuple[int, str, Any]] = [(0, "", data)]
    while waiting:
        depth, name, value = waiting.pop()
        if isinstance(value, dict | list):
            if depth == DEEPEST:
                raise InputError(f"{label}: {name} is nested deeper than {DEEPEST} levels")
            pairs = value.items() if isinstance(value, dict) else (("", each) for each in value)
            waiting += ((depth + 1, name or quote(key), each) for key, each in pairs)
        elif type(value) is int and not -LARGEST_WHOLE <= value <= LARGEST_WHOLE:
            raise InputError(f"{label}: {name} holds a whole number above 10^308, expected a finite one")


def csv_table(text: str, label: str) -> tuple[list[str], Iterator[tuple[int, dict[str, str]]]]:
    """A table of comma-separated values: the names of its columns, and its rows as they are asked for.

    Each row is the number of its line and its cells by name, stripped as the names are; empty lines are passed over.

    Raises:
        InputError: a name that comes twice; of a row, no CSV, or another number of cells than the first line has.
    """
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)

    def lines() -> Iterator[list[str]]:
        try:
            for cells in reader:
                yield [cell.strip() for cell in cells]
        except csv.Error as error:
            raise InputError(f"{label}: line {reader.line_num}: not valid CSV: {error}") from None

    found = lines()
    header = next(found, [])
    if len(header) > MOST_COLUMNS:
        raise InputError(f"{label}: has {len(header):,} columns, expected at most {MOST_COLUMNS:,}")
    counts = Counter(header)
    repeated = next((name for name in header if name and counts[name] > 1), None)
    if repeated is not None:
        raise InputError(f"{label}: the column {quote(repeated)} comes twice, expected it once")

    def rows() -> Iterator[tuple[int, dict[str, str]]]:
        for cells in found:
            if not any(cells):
                continue
            if len(cells) != len(header):
                raise InputError(
                    f"{label}: line {reader.line_num}: found {len(cells)} cells, expected the first line's "
                    f"{len(header)}"
                )
            yield reader.line_num, dict(zip(header, cells, strict=True))

    return header, rows()
