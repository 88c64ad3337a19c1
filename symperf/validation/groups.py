"""Scores of groups: by device, format, class and so on; of layouts that compete; of where constants are from."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..common.errors import InputError, nearest, quote
from .chosen import LEAST, judged
from .labels import GROUPINGS, UNTOLD, label
from .score import coverage, median, rank_correlation, ranks, width

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .case import Scored

FEWEST = 3
"""Layouts of a contest that can be ranked."""
APART = 1.05
"""Ratio of two measurements from which on their order counts."""
BESIDE = ("format", "software")
"""Labels that layouts which compete share."""


@dataclass(frozen=True)
class Group:
    """The errors of some rows, as fractions.

    Attributes:
        name: of the group.
        rows: scored.
        mape: mean absolute error.
        median: of the absolute errors.
        bias: mean error with its sign.
        rank_correlation: Spearman's; None where there is none.
        coverage: part of the measurements inside their intervals; None of rows without.
        width: the median of the intervals' high over low; None of rows without.
        aim: the largest mean absolute error that such rows are meant to have: of rows of several aims their mean.
    """

    name: str
    rows: int
    mape: float
    median: float
    bias: float
    rank_correlation: float | None
    coverage: float | None
    width: float | None
    aim: float

    @property
    def excess(self) -> float:
        """Mean absolute error over the aim."""
        return self.mape / self.aim


def group_of(name: str, rows: Sequence[Scored]) -> Group:
    """The errors of some rows, of which there must be one."""
    sizes = sorted(abs(row.error) for row in rows)
    return Group(
        name,
        len(rows),
        sum(sizes) / len(sizes),
        median(sizes),
        sum(row.error for row in rows) / len(rows),
        rank_correlation(rows),
        coverage(rows),
        width(rows),
        sum(aim_of(row) for row in rows) / len(rows),
    )


def aim_of(row: Scored) -> float:
    """The mean absolute error that rows of a row's subject are meant to have."""
    aims: dict[str, float] = judged()["aim"]
    return aims.get(label(row.labels, "judged"), aims["training"])


def check_grouping(by: str) -> str:
    """What rows are to be grouped by, if that is known.

    Raises:
        InputError: it is not, with the nearest.
    """
    if by not in GROUPINGS:
        near = nearest(by, GROUPINGS) or f", expected one of {', '.join(GROUPINGS)}"
        raise InputError(f"by: found {quote(by)}{near}")
    return by


def grouped(rows: Sequence[Scored], by: str) -> list[Group]:
    """The errors of every group of a grouping, the most rows first."""
    found: dict[str, list[Scored]] = {}
    for row in rows:
        found.setdefault(name_of(row, by), []).append(row)
    return [group_of(name, own) for name, own in sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))]


def name_of(row: Scored, by: str) -> str:
    """The name of the group of a grouping that a row is of."""
    return row.source if by == "family" else label(row.labels, by)


def by_aim(rows: Sequence[Scored]) -> list[Group]:
    """The errors of every family by each aim that its rows have: Blackwell and mixtures stand apart from the rest."""
    found: dict[str, list[Scored]] = {}
    for row in rows:
        found.setdefault(f"{row.source}, {label(row.labels, 'judged')}", []).append(row)
    return [group_of(name, own) for name, own in found.items()]


def worst_groups(rows: Sequence[Scored], count: int, least: int = 10) -> list[tuple[str, Group]]:
    """The groups of any grouping with the largest errors over their aims: the grouping's name, and the group.

    Args:
        rows: of all groups.
        count: how many groups.
        least: rows that a group must have.
    """
    found, seen = [], set()
    for by in GROUPINGS:
        for group in grouped(rows, by):
            same = (group.rows, group.mape)
            if group.rows >= least and group.name != UNTOLD and same not in seen:
                seen.add(same)
                found.append((by, group))
    return sorted(found, key=lambda pair: -pair[1].excess)[:count]


def split(rows: Sequence[Scored]) -> tuple[list[Scored], list[Scored]]:
    """The rows whose predictions rest on measured kernels alone, and those that go with constants that were chosen."""
    kernels = [row for row in rows if row.chosen is not None and row.chosen < LEAST]
    return kernels, [row for row in rows if row.chosen is not None and row.chosen >= LEAST]


@dataclass(frozen=True)
class Contests:
    """How well layouts of one model on one system, of one size and work, are ranked.

    Attributes:
        contests: with three layouts or more, of which two measured at least 5 % apart.
        level: other contests, whose measurements differ by less: what repeats of one run differ by, so without ranks.
        rows: in the contests with ranks.
        correlation: Spearman's, the mean over contests weighted by their layouts.
        ordered: part of the pairs of layouts, 5 % or more apart in measurement, that are in the right order.
    """

    contests: int
    level: int
    rows: int
    correlation: float
    ordered: float


def contests(rows: Sequence[Scored]) -> Contests | None:
    """How well competing layouts are ranked by the times of whole steps; None without three that are told apart."""
    found: dict[tuple[str, ...], dict[str, Scored]] = {}
    for row in rows:
        if row.labels.get("contest") and row.low is not None and row.quantity != "layer_time_s":
            key = (row.source, row.quantity, row.labels["contest"], *(label(row.labels, n) for n in BESIDE))
            found.setdefault(key, {}).setdefault(label(row.labels, "layout"), row)
    competing = [list(own.values()) for own in found.values() if len(own) >= FEWEST]
    several = [own for own in competing if _apart([_for_work(row, row.measured) for row in own])]
    if not several:
        return None
    weighted, right, pairs = 0.0, 0, 0
    for own in several:
        measured = [_for_work(row, row.measured) for row in own]
        predicted = [_for_work(row, row.predicted) for row in own]
        weighted += len(own) * _spearman(measured, predicted)
        for one, other in itertools.combinations(range(len(own)), 2):
            if _apart((measured[one], measured[other])):
                pairs += 1
                right += (measured[one] < measured[other]) == (predicted[one] < predicted[other])
    count = sum(map(len, several))
    return Contests(len(several), len(competing) - len(several), count, weighted / count, right / pairs)


def _apart(measured: Sequence[float]) -> bool:
    """Whether measurements differ by so much that they have an order."""
    return max(measured) >= APART * min(measured)


def _for_work(row: Scored, value: float) -> float:
    """A step's time for each sequence, as steps of several batches compete; any other value as it is."""
    batch = row.labels.get("batch", "")
    return (
        value / float(batch) if row.quantity == "time_s" and batch and "sequence=" in row.labels["contest"] else value
    )


def _spearman(left: Sequence[float], right: Sequence[float]) -> float:
    """Spearman's rank correlation; 0 where one side is all equal."""
    one, two = ranks(left), ranks(right)
    mean = (len(one) - 1) / 2
    cover = sum((a - mean) * (b - mean) for a, b in zip(one, two, strict=True))
    size = math.sqrt(sum((a - mean) ** 2 for a in one) * sum((b - mean) ** 2 for b in two))
    return cover / size if size else 0.0
