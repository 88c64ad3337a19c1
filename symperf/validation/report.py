"""A validation as JSON, as terminal tables, as Markdown and as CSV."""

from __future__ import annotations

import csv
import io
from collections import Counter
from typing import TYPE_CHECKING, Any

from ..common.cells import csv_cell, markdown_cell
from ..common.table import Table
from .chosen import LEAST
from .groups import contests, group_of, grouped, split
from .labels import GROUPINGS, label
from .score import coverage, median, summaries, widening, width

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import Console

    from .case import Scored
    from .groups import Group
    from .score import Report, Summary

HEADS = ("family", "rows", "mean", "median", "bias", "worst", "rank", "coverage", "width", "left out")
GROUP_HEADS = ("rows", "mean", "aim", "median", "bias", "rank", "coverage", "width")
KERNELS = f"constants from measured kernels alone (of chosen ones 1 % moves the time by less than {LEAST / 100:.2%})"
CHOSEN = "constants that were chosen when errors of steps were known"
LABELS = (*GROUPINGS[1:], "judged", "layout", "contest", "batch", "concurrency")
"""Labels that the CSV of a report has, so that groups can be made of it again."""


def as_json(report: Report, by: Sequence[str] = ()) -> dict[str, Any]:
    """The `validate` object of the public contract, with what is left out, and groups, besides.

    It has no null: what there is none of is left out, and `sources` has only families with a scored row.
    """
    every = summaries(report)
    whole = {
        "coverage": coverage(report.tested),
        "widening": widening(report.tested),
        "width": width(report.tested),
    }
    return {
        "sources": [source_json(found) for found in every if found.rows],
        "unscored": [{"name": found.name, "left_out": found.left_out} for found in every if not found.rows],
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
        **present(whole),
        "groups": {name: [group_json(found) for found in grouped(report.tested, name)] for name in by},
        "constants": {name: group_json(found) for name, found in halves(report)},
        "layouts": layouts_json(report),
        "left_out": [{"source": row.source, "case": row.case, "reason": row.reason} for row in report.left_out],
    }


def present(scores: Mapping[str, Any]) -> dict[str, Any]:
    """Scores without those that there are none of."""
    return {name: value for name, value in scores.items() if value is not None}


def source_json(found: Summary) -> dict[str, Any]:
    """The scores of a family with a scored row."""
    scores = {
        "name": found.name,
        "rows": found.rows,
        "mape": found.mape,
        "median": found.median,
        "bias": found.bias,
        "max_error": abs(found.max_error or 0.0),
        "rank_correlation": found.rank_correlation,
        "coverage": found.coverage,
        "widening": found.widening,
        "width": found.width,
        "left_out": found.left_out,
    }
    return present(scores)


def group_json(found: Group) -> dict[str, Any]:
    """The scores of a group; what it has none of is left out."""
    scores = {
        "name": found.name,
        "rows": found.rows,
        "mape": found.mape,
        "aim": found.aim,
        "median": found.median,
        "bias": found.bias,
        "rank_correlation": found.rank_correlation,
        "coverage": found.coverage,
        "width": found.width,
    }
    return present(scores)


def halves(report: Report) -> list[tuple[str, Group]]:
    """The rows by where the constants are from that their predictions go with: measured kernels alone, or chosen."""
    kernels, chosen = split(report.tested)
    found = (("kernels", KERNELS, kernels), ("chosen", CHOSEN, chosen))
    return [(name, group_of(title, rows)) for name, title, rows in found if rows]


def layouts_json(report: Report) -> dict[str, Any]:
    """How well competing layouts are ranked; empty where none compete."""
    found = contests(report.tested)
    if found is None:
        return {}
    return {
        "contests": found.contests,
        "without_order": found.level,
        "rows": found.rows,
        "rank_correlation": found.correlation,
        "ordered_pairs": found.ordered,
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
        "" if found.width is None else f"{found.width:.2f}",
        str(left) if left else "",
    )


def group_cells(found: Group) -> tuple[str, ...]:
    """The cells of a group, under `GROUP_HEADS`."""
    return (
        str(found.rows),
        share(found.mape),
        f"{found.aim:.0%}",
        share(found.median),
        share(found.bias, sign=True),
        "" if found.rank_correlation is None else f"{found.rank_correlation:.3f}",
        "" if found.coverage is None else f"{found.coverage:.0%}",
        "" if found.width is None else f"{found.width:.2f}",
    )


def group_table(title: str, found: Sequence[Group]) -> list[str]:
    """The lines of a table of groups."""
    lines = [f"| {title} | {' | '.join(GROUP_HEADS)} |", "|---|" + "---:|" * len(GROUP_HEADS)]
    return lines + [f"| {cell(one.name)} | {' | '.join(group_cells(one))} |" for one in found]


def share(value: float | None, *, sign: bool = False) -> str:
    """A fraction in per cent; empty where there is none."""
    return "" if value is None else f"{value:{'+' if sign else ''}.1%}"


def percent(value: float | None) -> str:
    """A part in whole per cent; "none" where there is none."""
    return "none" if value is None else f"{value:.0%}"


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


def show(console: Console, report: Report, count: int, by: Sequence[str] = ()) -> None:
    """Print the errors of every family, or of other groups, the worst rows and what is left out."""
    from rich.text import Text

    console.print(Text(total(report), "italic"))
    table = Table(HEADS, left=("family",))
    for found in summaries(report):
        table.add_row(*cells(found))
    console.print(table)
    for name in by:
        console.print(Text(f"\nBy {name}", "italic"))
        table = Table((name, *GROUP_HEADS), left=(name,))
        for group in grouped(report.tested, name):
            table.add_row(group.name, *group_cells(group))
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
    rows, apart = len(report.tested), len(report.scored) - len(report.tested)
    sizes = sorted(abs(row.error) for row in report.tested)
    text = f"{rows:,} rows scored, {len(report.left_out):,} left out"
    text += f", {apart:,} that set constants told apart" if apart else ""
    if not rows:
        return text
    inside = coverage(report.tested)
    text += f"; median absolute error {median(sizes):.1%}"
    if inside is None:
        return text
    return f"{text}; {inside:.0%} of measurements inside the 90% interval, high over low {width(report.tested):.2f}"


def markdown(report: Report, count: int, by: Sequence[str] = ()) -> str:
    """The same as Markdown tables."""
    lines = [f"{total(report)}.", "", *summary_table(summaries(report))]
    for name in by:
        lines += ["", *group_table(name, grouped(report.tested, name))]
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
    writer.writerow(("source", "case", "quantity", "measured", "predicted", "error", "low", "high", "chosen", *LABELS))
    for row in scored:
        numbers = (f"{row.measured:.6g}", f"{row.predicted:.6g}", f"{row.error:.4f}")
        interval = ("" if end is None else f"{end:.6g}" for end in (row.low, row.high))
        chosen = "" if row.chosen is None else f"{row.chosen:.4g}"
        labels = (csv_cell(label(row.labels, name)) if name in row.labels else "" for name in LABELS)
        texts = (csv_cell(row.source), csv_cell(row.case), row.quantity)
        writer.writerow((*texts, *numbers, *interval, chosen, *labels))
    return out.getvalue()
