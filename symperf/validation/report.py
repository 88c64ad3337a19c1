"""A validation as JSON, as terminal tables, as Markdown and as CSV."""

from __future__ import annotations

import csv
import io
from collections import Counter
from typing import TYPE_CHECKING, Any

from ..common.cells import csv_cell, markdown_cell
from ..common.table import Table
from .score import coverage, summaries, widening

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from .case import Scored
    from .score import Report, Summary

HEADS = ("family", "rows", "mean", "median", "bias", "worst", "rank", "coverage", "left out")


def as_json(report: Report) -> dict[str, Any]:
    """The `validate` object of the public contract, with what is left out besides."""
    return {
        "sources": [
            {
                "name": found.name,
                "rows": found.rows,
                "mape": found.mape,
                "median_error": found.median,
                "bias": found.bias,
                "max_error": None if found.max_error is None else abs(found.max_error),
                "rank_correlation": found.rank_correlation,
                "coverage": found.coverage,
                "widening": found.widening,
                "left_out": found.left_out,
            }
            for found in summaries(report)
        ],
        "rows": [
            {
                "source": row.source,
                "case": row.case,
                "quantity": row.quantity,
                "measured": row.measured,
                "predicted": row.predicted,
                "error": row.error,
            }
            for row in report.scored
        ],
        "coverage": coverage(report.scored),
        "widening": widening(report.scored),
        "left_out": [{"source": row.source, "case": row.case, "reason": row.reason} for row in report.left_out],
    }


def cells(found: Summary) -> tuple[str, ...]:
    """The cells of a family, under `HEADS`."""
    rank = "" if found.rank_correlation is None else f"{found.rank_correlation:.3f}"
    left = sum(found.left_out.values())
    return (
        found.name,
        str(found.rows),
        share(found.mape),
        share(found.median),
        share(found.bias, sign=True),
        share(found.max_error, sign=True),
        rank,
        "" if found.coverage is None else f"{found.coverage:.0%}",
        str(left) if left else "",
    )


def share(value: float | None, *, sign: bool = False) -> str:
    """A fraction in per cent; empty where there is none."""
    return "" if value is None else f"{value:{'+' if sign else ''}.1%}"


def worst(report: Report, count: int) -> list[Scored]:
    """The rows with the largest errors in size, as ratios: three times too low counts as three times too high."""

    def size(row: Scored) -> float:
        ratio = row.predicted / row.measured
        return max(ratio, 1 / ratio)

    return sorted(report.scored, key=size, reverse=True)[:count]


def reasons(report: Report) -> list[tuple[str, str, int]]:
    """Family, reason and count of what is left out, the most first."""
    found = Counter((row.source, row.reason) for row in report.left_out)
    return [(source, reason, count) for (source, reason), count in found.most_common()]


def show(console: Console, report: Report, count: int) -> None:
    """Print the errors of every family, the worst rows and what is left out."""
    from rich.text import Text

    console.print(Text(total(report), "italic"))
    table = Table(HEADS, left=("family",))
    for found in summaries(report):
        table.add_row(*cells(found))
    console.print(table)
    if count and report.scored:
        console.print(Text("\nWorst rows", "italic"))
        words = ("quantity", "case")
        table = Table(("error", "measured", "predicted", *words), left=words, wraps=("case",))
        for row in worst(report, count):
            table.add_row(f"{row.error:+.1%}", f"{row.measured:.4g}", f"{row.predicted:.4g}", row.quantity, row.case)
        console.print(table)
    if report.left_out:
        console.print(Text("\nLeft out", "italic"))
        table = Table(("family", "rows", "reason"), left=("family", "reason"), wraps=("reason",))
        for source, reason, number in reasons(report):
            table.add_row(source, str(number), reason)
        console.print(table)


def total(report: Report) -> str:
    """One line: how many rows, how large the errors are over all, and how many lie inside the intervals."""
    rows = len(report.scored)
    errors = sorted(abs(row.error) for row in report.scored)
    text = f"{rows:,} rows scored, {len(report.left_out):,} left out"
    if not rows:
        return text
    inside = coverage(report.scored)
    text += f"; median absolute error {errors[rows // 2]:.1%}"
    return text if inside is None else f"{text}; {inside:.0%} of measurements inside the 90% interval"


def markdown(report: Report, count: int) -> str:
    """The same as Markdown tables."""
    lines = [f"{total(report)}.", "", *summary_table(summaries(report))]
    if count and report.scored:
        lines += ["", "| error | measured | predicted | quantity | case |", "|---:|---:|---:|---|---|"]
        lines += [
            f"| {row.error:+.1%} | {row.measured:.4g} | {row.predicted:.4g} | {row.quantity} | {cell(row.case)} |"
            for row in worst(report, count)
        ]
    if report.left_out:
        lines += ["", *left_out_table(report)]
    return "\n".join(lines) + "\n"


def summary_table(found: Sequence[Summary]) -> list[str]:
    """The lines of the table of families."""
    lines = [f"| {' | '.join(HEADS)} |", "|---|" + "---:|" * (len(HEADS) - 1)]
    return lines + [f"| {' | '.join(map(cell, cells(one)))} |" for one in found]


def left_out_table(report: Report) -> list[str]:
    """The lines of the table of what is left out."""
    lines = ["| family | rows | reason |", "|---|---:|---|"]
    return lines + [f"| {cell(source)} | {number} | {cell(reason)} |" for source, reason, number in reasons(report)]


def cell(text: str) -> str:
    """A text that cannot end a cell of a table."""
    return markdown_cell(text)


def as_csv(scored: Sequence[Scored]) -> str:
    """Every row that is scored, one a line."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("source", "case", "quantity", "measured", "predicted", "error", "low", "high"))
    for row in scored:
        numbers = (f"{row.measured:.6g}", f"{row.predicted:.6g}", f"{row.error:.4f}")
        interval = ("" if end is None else f"{end:.6g}" for end in (row.low, row.high))
        writer.writerow((csv_cell(row.source), csv_cell(row.case), row.quantity, *numbers, *interval))
    return out.getvalue()
