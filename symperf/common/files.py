"""Files that users give, read whole; what is wrong with one is told in one line that begins with its label."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import InputError, quote

if TYPE_CHECKING:
    import os

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
