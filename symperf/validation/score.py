"""Rows into cases, cases into predictions, predictions into errors by family."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..common.errors import InputError, nearest, quote
from ..common.system_errors import cause
from ..evaluation.uncertainty import LEVEL
from . import tables
from .case import Case, LeftOut, Scored
from .faults import check_ids, contradicting
from .labels import labels_of
from .rows import PACKAGED, UnreadableError, read
from .spread import spread_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from .case import Expressed
    from .rows import TableRow


MOST_OF_PEAK = 1.2
"""Times the peak rate of the devices that a measurement may imply: sources differ in how they count FLOPs."""
SUSPECT = 1.2
"""Times apart from which on the implied share of the peak is looked at."""
CONTRADICTS = "another row describes the same and measured something else, by more than half"
FARTHEST = 100
"""Times that a measurement may be away from its prediction before its unit is doubted."""


@dataclass(frozen=True)
class Report:
    """What a validation found.

    Attributes:
        scored: predictions beside measurements, in the order of the tables.
        left_out: rows that are not scored.
    """

    scored: Sequence[Scored]
    left_out: Sequence[LeftOut]

    @property
    def tested(self) -> list[Scored]:
        """The predictions of rows that set no constant: what all rows say, they say."""
        return [row for row in self.scored if not row.calibrates]


def unheard(done: int, total: int) -> None:
    """A progress that tells nobody."""


def validate(
    sources: Sequence[str] = (), folder: Path | None = None, progress: Callable[[int, int], None] = unheard
) -> Report:
    """Predict what was measured.

    Args:
        sources: families to look at; by default all.
        folder: with a user's own tables; by default the published measurements that come with symperf.
        progress: is told how many cases are done, and of how many.

    Raises:
        InputError: a file that cannot be read, or a family that is not there.
    """
    chosen = select(expressed_rows(folder), sources)
    done: list[Scored | LeftOut] = []
    for number, item in enumerate(chosen):
        done.append(predict_case(item) if isinstance(item, Case) else item)
        progress(number + 1, len(chosen))
    scored = [item for item in done if isinstance(item, Scored)]
    return Report(scored, [item for item in done if isinstance(item, LeftOut)])


def all_tables(folder: Path | None) -> Iterable[list[TableRow]]:
    """The rows of every table, of symperf or of a folder.

    Raises:
        UnreadableError: a file cannot be read, or the folder holds none.
    """
    if folder is None:
        found = [PACKAGED / name for name in tables.TABLES]
    else:
        found = tables_of(folder)
        if not found:
            what = "no such folder" if not folder.is_dir() else f"holds none of {', '.join(tables.OWN)}"
            raise UnreadableError(f"{folder}: {what}, expected a folder with at least one of these tables")
    for path in found:
        rows = read(path, tables.columns_of(path.name))
        check_ids(rows)
        yield rows


def tables_of(folder: Path) -> list[Path]:
    """The tables that a folder holds.

    Raises:
        UnreadableError: its path is too long, or may not be looked into.
    """
    try:
        return [folder / name for name in tables.OWN if (folder / name).exists()]
    except OSError as error:
        raise UnreadableError(f"data: {quote(str(folder))}: cannot be read: {cause(error)}") from None


def expressed_rows(folder: Path | None) -> list[Expressed]:
    """The cases of every row of the tables, of symperf or of a folder, and the rows that are left out.

    Raises:
        UnreadableError: a file cannot be read, or the folder holds none.
    """
    found: list[Expressed] = []
    for rows in all_tables(folder):
        twice = contradicting(rows)
        for row in rows:
            found += [LeftOut(tables.source_of(row), row.id, CONTRADICTS)] if row.line in twice else cases(row)
    return found


def cases(row: TableRow) -> list[Expressed]:
    """The cases of a row; a row that cannot be expressed is left out with the reason.

    Raises:
        UnreadableError: a cell holds something else than it should.
    """
    source = tables.source_of(row)
    note = row.text("note").casefold()
    if note.startswith("check:"):
        return [LeftOut(source, row.id, "its note says that the source is doubtful")]
    if "proxy" in f"{note} {row.text('model').casefold()}":
        return [LeftOut(source, row.id, "a proxy, not the model itself")]
    try:
        return tables.expresser(row.table)(row)
    except UnreadableError:
        raise
    except InputError as error:
        return [LeftOut(source, row.id, str(error))]


def select(expressed: Sequence[Expressed], sources: Sequence[str]) -> list[Expressed]:
    """The cases of the families that are asked for, in any case; all without a family.

    Raises:
        InputError: a family that is not there, with the nearest.
    """
    known = {item.source.casefold(): item.source for item in expressed}
    wanted = set()
    for name in sources:
        matching = [key for key in known if key == name.casefold() or key.startswith(f"{name.casefold()} ")]
        if not matching:
            near = nearest(name.casefold(), known) or f", expected one of {', '.join(sorted(known.values()))}"
            raise InputError(f"source: found {quote(name)}, which no row has{near}")
        wanted |= set(matching)
    return [item for item in expressed if not sources or item.source.casefold() in wanted]


def predict_case(case: Case) -> Scored | LeftOut:
    """The prediction of a case, or why there is none."""
    try:
        run = case.run()
        value = case.read(run)
        near = 1 / SUSPECT < value / case.measured < SUSPECT
        implied = 0.0 if near or case.implied is None else case.implied(run)
        spread, labels = spread_of(run, case.quantity, value, case.kind), labels_of(case, run)
    except UnreadableError:
        raise
    except InputError as error:
        return LeftOut(case.source, case.case, str(error))
    if not math.isfinite(value) or value <= 0:
        return LeftOut(case.source, case.case, "the prediction is no positive number")
    if implied > MOST_OF_PEAK:
        return LeftOut(
            case.source, case.case, f"it implies over {MOST_OF_PEAK} times the peak rate: is its unit right?"
        )
    if not 1 / FARTHEST < value / case.measured < FARTHEST:
        return LeftOut(case.source, case.case, f"it is over {FARTHEST} times off its prediction: is its unit right?")
    found = Scored(case.source, case.case, case.quantity, case.measured, value, labels)
    if spread is None:
        return found
    return replace(found, low=spread.low, high=spread.high, causes=spread.causes, chosen=spread.chosen)


@dataclass(frozen=True)
class Summary:
    """The errors of a family, as fractions.

    Attributes:
        name: of the family.
        rows: scored.
        mape: mean absolute error.
        median: of the absolute errors.
        bias: mean error with its sign: above 0 predictions are too high.
        max_error: the error that is largest in size, with its sign.
        rank_correlation: Spearman's, over rows of the quantity that most rows have; None of fewer than three rows or
            where all are equal.
        coverage: part of the rows with an interval whose measurement lies inside it; None without such rows.
        widening: the factor that would let intervals hold 90 % of their measurements; None without such rows.
        width: the median of the intervals' high over low; None without such rows.
        left_out: rows by reason.
    """

    name: str
    rows: int
    mape: float | None
    median: float | None
    bias: float | None
    max_error: float | None
    rank_correlation: float | None
    coverage: float | None
    widening: float | None
    width: float | None
    left_out: dict[str, int]


def summaries(report: Report) -> list[Summary]:
    """The errors of every family, in the order of the tables."""
    sources = [item.source for item in report.scored] + [item.source for item in report.left_out]
    names = list(dict.fromkeys(sources))
    return [summary(name, report) for name in names]


def summary(name: str, report: Report) -> Summary:
    """The errors of one family."""
    scored = [item for item in report.scored if item.source == name]
    left = Counter(item.reason for item in report.left_out if item.source == name)
    if not scored:
        return Summary(name, 0, None, None, None, None, None, None, None, None, dict(left.most_common()))
    errors = [item.error for item in scored]
    sizes = sorted(map(abs, errors))
    middle = median(sizes)
    return Summary(
        name,
        len(scored),
        sum(sizes) / len(sizes),
        middle,
        sum(errors) / len(errors),
        max(errors, key=abs),
        rank_correlation(scored),
        coverage(scored),
        widening(scored),
        width(scored),
        dict(left.most_common()),
    )


def coverage(scored: Sequence[Scored]) -> float | None:
    """The part of the rows with an interval whose measurement lies inside it."""
    inside = [item.covered for item in scored if item.covered is not None]
    return sum(inside) / len(inside) if inside else None


def median(sizes: Sequence[float]) -> float:
    """The middle of sorted values."""
    return (sizes[(len(sizes) - 1) // 2] + sizes[len(sizes) // 2]) / 2


def width(scored: Sequence[Scored]) -> float | None:
    """The median of the intervals' high over low; None without an interval."""
    found = sorted(row.high / row.low for row in scored if row.low and row.high)
    return median(found) if found else None


def widening(scored: Sequence[Scored], level: float = LEVEL) -> float | None:
    """The factor by which intervals would have to be wider, in logarithms, to hold that part of the measurements.

    None without intervals, and where no factor does.
    """
    found = sorted(item.stretch for item in scored if item.stretch is not None)
    if not found:
        return None
    factor = found[math.ceil(level * len(found)) - 1]
    return factor if math.isfinite(factor) else None


def rank_correlation(scored: Sequence[Scored]) -> float | None:
    """Spearman's rank correlation of measurement and prediction, over rows of the commonest quantity."""
    quantity = Counter(item.quantity for item in scored).most_common(1)[0][0]
    pairs = [(item.measured, item.predicted) for item in scored if item.quantity == quantity]
    if len(pairs) < 3:
        return None
    left, right = (ranks([pair[side] for pair in pairs]) for side in (0, 1))
    means = sum(left) / len(left), sum(right) / len(right)
    moved = [(a - means[0], b - means[1]) for a, b in zip(left, right, strict=True)]
    spread = sum(a * a for a, _ in moved) * sum(b * b for _, b in moved)
    return sum(a * b for a, b in moved) / math.sqrt(spread) if spread else None


def ranks(values: Sequence[float]) -> list[float]:
    """The mean rank of each value.

    >>> ranks([3.0, 1.0, 3.0])
    [1.5, 0.0, 1.5]
    """
    order = sorted(range(len(values)), key=lambda index: values[index])
    found = [0.0] * len(values)
    start = 0
    while start < len(order):
        end = start
        while end + 1 < len(order) and values[order[end + 1]] == values[order[start]]:
            end += 1
        for index in order[start : end + 1]:
            found[index] = (start + end) / 2
        start = end + 1
    return found
