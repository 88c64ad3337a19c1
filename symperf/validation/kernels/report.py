"""Scores of measured kernels as JSON, as a terminal table, as Markdown and as CSV."""

from __future__ import annotations

import csv
import io
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ...common.cells import csv_cell, markdown_cell
from .rows import Group
from .score import ARRAYS, SIZES, Rows

if TYPE_CHECKING:
    from rich.console import Console

    from .score import Scores

HEADS: Final = ("operation", "format", "device", "software", "rows", "median", "mean", "bias")
MEDIANS: Final = ("kept back", *(name for _, name in SIZES))
"""Heads of medians of some of the rows: of shapes kept back, and by the measured time."""
TEXTS: Final = 4
"""Heads that are texts."""
USES: Final = ("calibration", "test")


def errors_of(rows: Rows, chosen: Any = slice(None)) -> dict[str, Any]:
    """Rows, median and mean absolute error, and mean error with its sign, of some of a group's rows; null of none."""
    errors = rows.errors[chosen]
    if not len(errors):
        return {"rows": 0, "median": None, "mape": None, "bias": None}
    sizes = np.abs(errors)
    return {
        "rows": len(errors),
        "median": float(np.median(sizes)),
        "mape": float(np.mean(sizes)),
        "bias": float(np.mean(errors)),
    }


def as_json(scores: Scores) -> dict[str, Any]:
    """The JSON object of `symperf validate --kernels`.

    `kernels` has an entry for each device, software, operation and format: `rows`, `median`, `mape`, `bias` of all its
    rows, the same under `calibration` and `test`, `sizes` by the measured time, and `left_out` {reason: rows}.
    """
    return {"kernels": [_entry(group, rows) for group, rows in scores.items()]}


def _entry(group: Any, rows: Rows) -> dict[str, Any]:
    uses = {use: errors_of(rows, rows.test == (use == "test")) for use in USES}
    place = np.searchsorted([seconds for seconds, _ in SIZES], rows.measured, side="right")
    sizes = [{"size": name, **errors_of(rows, place == at)} for at, (_, name) in enumerate(SIZES)]
    named = {name: getattr(group, name) for name in ("device", "software", "operation", "format")}
    return {**named, **errors_of(rows), **uses, "sizes": sizes, "left_out": dict(rows.left_out.most_common())}


def total(scores: Scores) -> str:
    """One line: rows that are scored, that are left out, and how large the errors are over all."""
    left = sum(sum(rows.left_out.values()) for rows in scores.values())
    every = np.concatenate([np.zeros(0), *(rows.errors for rows in scores.values())])
    text = f"{len(every):,} kernels scored, {left:,} left out"
    return text if not len(every) else f"{text}; median absolute error {np.median(np.abs(every)):.1%}"


def _cells(entry: dict[str, Any]) -> list[str]:
    texts = [entry[name] for name in HEADS[:TEXTS] if entry[name]]
    numbers = [f"{entry['median']:.1%}", f"{entry['mape']:.1%}", f"{entry['bias']:+.1%}"]
    tests = "-" if entry["test"]["median"] is None else f"{entry['test']['median']:.1%}"
    sizes = ["-" if each["median"] is None else f"{each['median']:.0%}" for each in entry["sizes"]]
    return [*texts, f"{entry['rows']:,}", *numbers, tests, *sizes]


def _scored(scores: Scores) -> list[dict[str, Any]]:
    """Entries with a scored row, by operation first."""
    found = [entry for entry in as_json(scores)["kernels"] if entry["rows"]]
    return sorted(found, key=lambda each: [each[name] for name in HEADS[:TEXTS]])


def merged(scores: Scores) -> Scores:
    """The same by operation and device alone: all software, formats and kernels of a table together."""
    parts: dict[Group, list[Rows]] = {}
    for group, rows in scores.items():
        key = Group(group.device, "", group.operation.partition("/")[0], "")
        parts.setdefault(key, []).append(rows)
    together: Scores = {}
    for group, found in parts.items():
        into = together.setdefault(group, Rows(sum((each.left_out for each in found), Counter())))
        for name in ARRAYS:
            setattr(into, name, np.concatenate([getattr(each, name) for each in found]))
    return together


def _reasons(scores: Scores) -> list[tuple[str, str, int]]:
    """Operation, reason and rows of what is left out, the most first."""
    found: dict[tuple[str, str], int] = {}
    for group, rows in scores.items():
        for reason, count in rows.left_out.items():
            key = (group.operation.partition("/")[0], reason)
            found[key] = found.get(key, 0) + count
    return [(*key, count) for key, count in sorted(found.items(), key=lambda each: -each[1])]


def show(console: Console, scores: Scores) -> None:
    """Print the errors of every operation on every device, and what is left out; the last columns are medians."""
    from rich.table import Table

    table = Table(title=total(scores), title_justify="left")
    for head in HEADS[:TEXTS:2]:
        table.add_column(head)
    for head in (*HEADS[TEXTS:], *MEDIANS):
        table.add_column(head, justify="right")
    for entry in _scored(merged(scores)):
        table.add_row(*_cells(entry))
    console.print(table)
    left = _reasons(scores)
    if left:
        table = Table(title="Left out", title_justify="left")
        table.add_column("operation")
        table.add_column("rows", justify="right")
        table.add_column("reason")
        for operation, reason, count in left:
            table.add_row(operation, f"{count:,}", reason)
        console.print(table)


def markdown(scores: Scores) -> str:
    """The same as Markdown tables, by format and software too."""
    head = (*HEADS, *MEDIANS)
    lines = [f"{total(scores)}.", "", f"| {' | '.join(head)} |"]
    lines.append("|" + "---|" * TEXTS + "---:|" * (len(head) - TEXTS))
    lines += [f"| {' | '.join(map(markdown_cell, _cells(entry)))} |" for entry in _scored(scores)]
    left = _reasons(scores)
    if left:
        lines += ["", "| operation | rows | reason |", "|---|---:|---|"]
        lines += [
            f"| {markdown_cell(operation)} | {count:,} | {markdown_cell(reason)} |" for operation, reason, count in left
        ]
    return "\n".join(lines) + "\n"


def as_csv(scores: Scores) -> str:
    """Every row that is scored, one a line; of scores that have the shapes of their rows."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    names = ("device", "software", "operation", "format")
    writer.writerow((*names, "use", "kernel", "measured_s", "predicted_s", "error", "intensity"))
    for group, rows in scores.items():
        texts = [csv_cell(getattr(group, name)) for name in names]
        columns = (rows.shapes, rows.test, rows.measured, rows.predicted, rows.errors, rows.intensity)
        for shape, test, measured, predicted, error, intensity in zip(*columns, strict=True):
            numbers = (f"{measured:.6g}", f"{predicted:.6g}", f"{error:.4f}", f"{intensity:.4g}")
            writer.writerow((*texts, USES[int(test)], csv_cell(shape), *numbers))
    return out.getvalue()
