"""Files that users give, read whole; what is wrong with one is told in one line that begins with its label."""

from __future__ import annotations

import csv
import io
import tomllib
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import InputError, quote

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

LARGEST_TOML = 1_000_000
"""Bytes."""


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
    try:
        file = Path(path)
        if file.is_dir():
            raise InputError(f"{label}: is a folder, expected {expected}")
        with file.open("rb") as opened:  # no more than that is read: a device may have no end
            data = opened.read(most + 1)
    except FileNotFoundError:
        raise InputError(f"{label}: no such file, expected {expected}") from None
    except OSError as error:
        raise InputError(f"{label}: cannot be read: {error.strerror}") from None
    except InputError:
        raise
    except ValueError as error:  # a null character in the name
        raise InputError(f"{quote(label)}: cannot be read: {error}") from None
    if len(data) > most:
        raise InputError(f"{label}: is larger than {most:,} bytes, expected {expected}")
    return data


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
    text = decode(read_file(path, label, expected, most), label, expected)
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{label}: not valid TOML: {' '.join(str(error).split())}") from None


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
