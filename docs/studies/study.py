"""What every study is made of: tables, the parts of its page that they fill, and figures.

A study NAME is a module `NAME.py` beside its page `NAME.md`. The module has

* `TITLE`: a line that says what it asks;
* `study(coarse)`: its `Study`; with `coarse`, each table has some of the rows of the whole one, found alone and soon;
* `blocks(tables)`: the generated parts of the page by name, from the rows of the tables **and nothing else**, so that a
  page can be checked against the files beside it without computing anything.

`run.py` writes and checks them: each table as `NAME_TABLE.csv`, each figure as `NAME_FIGURE.svg` (`NAME.csv` and
`NAME.svg` where the second name is that of the study), and each block between `<!-- begin BLOCK -->` and
`<!-- end BLOCK -->` of the page.
"""

from __future__ import annotations

import csv
import importlib
import io
import math
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from symperf import InputError
from symperf.common.errors import nearest, quote

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

HERE = Path(__file__).resolve().parent
MARKER = re.compile(r"<!-- begin (?P<name>[^>]+?) -->\n.*?<!-- end (?P=name) -->", re.DOTALL)
NUMBER = re.compile(r"-?\d+(?P<real>\.\d*)?(?P<power>e[+-]?\d+)?")
DIGITS = 10
"""Significant digits of a real number in a CSV file."""
RELATIVE, ABSOLUTE = 1e-6, 1e-12
"""How far a number computed anew may be from the one on disk."""

RATE_COLOURS = {
    "compute": "tab:red",
    "memory": "tab:blue",
    "l2": "tab:cyan",
    "scale_up": "tab:green",
    "scale_out": "yellowgreen",
}
"""What figures draw each resource that has a rate in; what they draw latencies in is their own."""

Row = dict[str, Any]
Tables = dict[str, list[Row]]


@dataclass(frozen=True)
class Study:
    """The answers of one study.

    Attributes:
        tables: By name, rows with equal columns: text, whole and real numbers, truth values, or None for nothing.
        blocks: By name, the Markdown of the generated parts of the page: what `blocks(tables)` of the module gives.
        figures: By name, a function that draws on a matplotlib `Figure` (8 by 5 inches until it says otherwise).
    """

    tables: Tables
    blocks: dict[str, str]
    figures: dict[str, Callable[[Any], None]] = field(default_factory=dict)


def names(folder: Path = HERE) -> list[str]:
    """The studies of a folder: every module with a page beside it."""
    return sorted(path.stem for path in folder.glob("*.py") if path.with_suffix(".md").exists())


def load(name: str) -> Any:
    """The module of a study.

    Raises:
        InputError: If there is no such study, or its module lacks a part.
    """
    known = names()
    if name not in known:
        raise InputError(f"study: found {quote(name)}, expected one of {', '.join(known)}{nearest(name, known)}")
    if str(HERE) not in sys.path:
        sys.path.insert(0, str(HERE))
    module = importlib.import_module(name)
    for part in ("TITLE", "study", "blocks"):
        if not hasattr(module, part):
            raise InputError(f"{name}.py: found no {part}, expected TITLE, study(coarse) and blocks(tables)")
    return module


# --- rows and files


def file_name(study: str, part: str, suffix: str) -> str:
    """The name of the file of a table or a figure.

    >>> file_name("memory", "memory", ".csv"), file_name("memory", "fits", ".csv")
    ('memory.csv', 'memory_fits.csv')
    """
    return f"{study}{suffix}" if part == study else f"{study}_{part}{suffix}"


def as_csv(rows: Sequence[Row]) -> str:
    """Rows as the text of a CSV file; nothing for none.

    >>> as_csv([{"name": "a", "value": 1 / 3, "whole": 2, "none": None}]).splitlines()
    ['name,value,whole,none', 'a,0.3333333333,2,']
    """
    if not rows:
        return ""
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({key: _written(value) for key, value in row.items()})
    return out.getvalue()


def _written(value: Any) -> Any:
    """A value as a CSV file holds it: a real number always shows that it is one."""
    if not isinstance(value, float):
        return value
    text = f"{value:.{DIGITS}g}"
    return f"{text}.0" if re.fullmatch(r"-?\d+", text) else text


def text_of(path: Path) -> str:
    """The text of a file.

    Raises:
        InputError: If it cannot be read, or is no UTF-8.
    """
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: byte {error.start} is no UTF-8, expected text") from None


def rows_of(text: str, file: str = "table") -> list[Row]:
    """The rows of a CSV file, with numbers as numbers and an empty cell as None.

    Raises:
        InputError: If it is no CSV, or a line has more or fewer cells than the first.

    >>> rows_of(as_csv([{"name": "a", "value": 0.25, "whole": 2, "none": None, "holds": True}]))
    [{'name': 'a', 'value': 0.25, 'whole': 2, 'none': None, 'holds': True}]
    """
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    rows = []
    try:
        header = next(reader, [])
        for cells in reader:
            if cells and len(cells) != len(header):
                where = f"{file}: line {reader.line_num}"
                raise InputError(f"{where}: found {len(cells)} cells, expected the first line's {len(header)}")
            rows += [{key: _read(cell) for key, cell in zip(header, cells, strict=True)}] if cells else []
    except csv.Error as error:
        raise InputError(f"{file}: line {reader.line_num}: not valid CSV: {error}") from None
    return rows


def _read(cell: str) -> Any:
    match = NUMBER.fullmatch(cell)
    if match:
        return float(cell) if match["real"] or match["power"] else int(cell)
    return {"": None, "True": True, "False": False, "inf": math.inf}.get(cell, cell)


def as_read(tables: Tables) -> Tables:
    """Tables as they are read again from their files."""
    return {name: rows_of(as_csv(rows)) for name, rows in tables.items()}


# --- what is current


def missing(some: Iterable[Row], rows: Sequence[Row]) -> list[Row]:
    """Those of some rows that are not among others: numbers to 1e-6 of themselves, everything else exactly."""
    near: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        near.setdefault(_key(row), []).append(row)
    return [row for row in some if not any(_same(row, other) for other in near.get(_key(row), ()))]


def _key(row: Row) -> tuple[Any, ...]:
    return (tuple(row), *(value for value in row.values() if not _is_number(value)))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _same(one: Row, two: Row) -> bool:
    pairs = zip(one.values(), two.values(), strict=True)
    return all(
        math.isclose(a, b, rel_tol=RELATIVE, abs_tol=ABSOLUTE) if _is_number(a) and _is_number(b) else a == b
        for a, b in pairs
    )


def filled(text: str, parts: dict[str, str], page: str) -> str:
    """A page with its generated parts put between their markers.

    Raises:
        InputError: If a part has no place on the page, or a place has no part.
    """
    places = [match["name"] for match in MARKER.finditer(text)]
    for name in parts:
        if name not in places:
            raise InputError(f"{page}: found no <!-- begin {name} --> ... <!-- end {name} -->{nearest(name, places)}")
    for name in places:
        if name not in parts:
            raise InputError(f"{page}: found a place for {quote(name)}, expected one of {', '.join(parts)}")

    def fresh(match: re.Match[str]) -> str:
        name = match["name"]
        return f"<!-- begin {name} -->\n\n{parts[name]}\n\n<!-- end {name} -->"

    return MARKER.sub(fresh, text)


# --- text


def markdown(header: Sequence[str], lines: Iterable[Sequence[object]], left: int = 1) -> str:
    """A Markdown table whose first columns are to the left, the others to the right.

    >>> print(markdown(["a", "b"], [["x", 1]]))
    | a | b |
    |---|---:|
    | x | 1 |
    """
    rule = "|" + "|".join("---" if i < left else "---:" for i in range(len(header))) + "|"
    body = ["| " + " | ".join(str(cell) for cell in line) + " |" for line in lines]
    return "\n".join(["| " + " | ".join(header) + " |", rule, *body])
