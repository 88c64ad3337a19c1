"""Rows of a file of measurements, each value checked; a line number goes with every row."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..common.errors import InputError, nearest, quote
from ..common.files import csv_table, decode, read_file
from ..common.numbers import numeral

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable

MOST_BYTES = 100_000_000
COUNTS = (
    *("m", "n", "k", "batch", "sequence", "context", "heads", "kv_heads", "head_dim", "ranks", "kernels"),
    *("bytes", "flops"),
)
"""Columns of whole numbers, one or more."""
NEEDED = {
    "gemm": ("m", "n", "k"),
    "copy": ("bytes",),
    "elementwise": ("bytes",),
    "attention": ("name", "batch", "sequence", "heads", "head_dim"),
    "collective": ("name", "ranks", "bytes"),
    "launch": ("name",),
    "power": ("name",),
    "step": (),
}
"""What a row of each kind must say, beside `seconds`."""
RUNS = {"seq_len_tokens": "step", "metric": "latency"}
"""Columns that tell a table of whole runs, where there is no column kind; and of which kind its rows are."""
ALIASES = {"stream": "copy"}
USED = ("kind", "name", "dtype", "mode", "note", *COUNTS)
"""What tells rows apart; rows with all of it equal are of the same measurement."""


@dataclass(frozen=True)
class MeasuredRow:
    """One measurement: its line in the file, its texts, its counts, its seconds, and the file."""

    line: int
    kind: str
    texts: dict[str, str]
    counts: dict[str, int]
    seconds: float
    file: str = ""

    @property
    def name(self) -> str:
        """Which kernel of the kind."""
        return self.texts.get("name", "")

    def identity(self) -> tuple[object, ...]:
        """What was measured."""
        return (self.kind, *(self.texts.get(key) or self.counts.get(key) for key in USED[1:]))


@dataclass(frozen=True)
class MeasuredTable:
    """All rows of a file, with the file's name and hash."""

    name: str
    sha256: str
    columns: tuple[str, ...]
    rows: list[MeasuredRow]
    devices: tuple[str, ...]
    runs: str = ""
    """Of what whole runs it is a table, whose rows are read elsewhere: "step", "latency" or none."""


def read(path: str | os.PathLike[str]) -> MeasuredTable:
    """The rows of a CSV file.

    Raises:
        InputError: the file cannot be read, lacks a column, or has a value that is none; it names the line.
    """
    label = str(path)
    data = read_file(path, label, "a CSV file", MOST_BYTES)
    text = decode(data, label, "a CSV file")
    head, lines = csv_table(text, label)
    if not any(head):
        raise InputError(f"{label}: is empty, expected a header with kind and seconds, and rows")
    runs = "" if "kind" in head else next((kind for column, kind in RUNS.items() if column in head), "")
    if runs:
        return MeasuredTable(label, hashlib.sha256(data).hexdigest(), tuple(head), [], (), runs)
    _check_head(head, label)
    rows, devices = [], []
    for line, named in lines:
        rows.append(_row(named, line, label))
        devices.append(named.get("device", ""))
    if not rows:
        raise InputError(f"{label}: has a header and no rows, expected measurements")
    found = tuple(dict.fromkeys(device for device in devices if device))
    return MeasuredTable(label, hashlib.sha256(data).hexdigest(), tuple(head), rows, found)


def _check_head(head: list[str], label: str) -> None:
    for column in ("kind", "seconds"):
        if column not in head:
            raise InputError(f"{label}: no column {column}{_instead(column, head)}; found {', '.join(head)[:200]}")


def _instead(column: str, head: Iterable[str]) -> str:
    found = nearest(column, head)
    return found.replace("did you mean", "is it").rstrip("?") + "?" if found else ""


def _row(named: dict[str, str], line: int, label: str) -> MeasuredRow:
    where = f"{label}: line {line}"
    kind = ALIASES.get(named["kind"], named["kind"])
    if kind not in NEEDED:
        raise InputError(f"{where}: kind: found {quote(kind)}, expected {' or '.join(NEEDED)}{nearest(kind, NEEDED)}")
    for column in NEEDED[kind]:
        if column not in named:
            raise InputError(f"{where}: a {kind} row needs column {column}{_instead(column, named)}")
        if not named[column]:
            raise InputError(f"{where}: {column} is empty, expected a value in a {kind} row")
    counts = {column: _count(named[column], column, where) for column in COUNTS if named.get(column)}
    if "flops" in counts and {"m", "n", "k"} <= counts.keys():
        expected = 2 * counts["m"] * counts["n"] * counts["k"]
        if counts["flops"] != expected:
            raise InputError(f"{where}: flops: found {counts['flops']}, expected 2 m n k = {expected}")
    texts = {column: named.get(column, "") for column in ("name", "dtype", "mode", "note")}
    return MeasuredRow(line, kind, texts, counts, _seconds(named["seconds"], where), label)


def _number(text: str, where: str, column: str) -> float:
    value = numeral(text, float)
    if value is None or not math.isfinite(value):
        expected = "a number" if value is None else "a finite number"
        raise InputError(f"{where}: {column}: found {quote(text)}, expected {expected}")
    return value


def _seconds(text: str, where: str) -> float:
    value = _number(text, where, "seconds")
    if value <= 0:
        raise InputError(f"{where}: seconds: found {quote(text)}, expected a time above zero")
    return value


def _count(text: str, column: str, where: str) -> int:
    value = _number(text, where, column)
    if value < 1 or value != int(value) or value > 1e18:
        hint = ", in bytes and not GB" if column == "bytes" else ""
        raise InputError(f"{where}: {column}: found {quote(text)}, expected a whole number above zero{hint}")
    return int(value)
