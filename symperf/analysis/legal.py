"""The values of a whole number that a run accepts, why it refuses the others, and what else moves with it."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ..common.errors import InputError
from ..plans.rule import reason_of
from .answers import Unreachable
from .symbols import argument_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ..evaluation.base_run import BaseRun

Array = np.ndarray[Any, Any]
SHOWN = 4
"""Values of a group of refused ones that are written out."""


@dataclass(frozen=True)
class Skipped:
    """A value that the run refuses.

    Attributes:
        value: of the symbol, or of two.
        reason: the line of the refusal.
        rule: the name of the rule that it breaks.
    """

    value: int | tuple[int, int]
    reason: str
    rule: str


@dataclass(frozen=True)
class LegalGroup:
    """Accepted values under which the run has one structure, and so one program.

    Attributes:
        run: with the first of them.
        values: of shape (values,), ascending.
        moved: what the run binds to other numbers as well, by name: of shape (values,).
    """

    run: BaseRun
    values: Array
    moved: dict[str, Array]


@dataclass(frozen=True)
class LegalValues:
    """Which values of a range a run accepts.

    Attributes:
        groups: the accepted values by structure, in the order of their first.
        skipped: the refused ones, ascending.
    """

    symbol: str
    groups: tuple[LegalGroup, ...]
    skipped: tuple[Skipped, ...] = field(default=())

    def parts(self) -> Iterator[tuple[LegalGroup, slice]]:
        """Groups and slices of their values, such that all values come in ascending order."""
        order = sorted((value, k, place) for k, g in enumerate(self.groups) for place, value in enumerate(g.values))
        for k, found in itertools.groupby(order, key=lambda each: each[1]):
            places = [place for _, _, place in found]
            yield self.groups[k], slice(places[0], places[-1] + 1)

    @property
    def values(self) -> list[int]:
        """All accepted values, ascending."""
        return sorted(int(value) for group in self.groups for value in group.values)


def legal_values(run: BaseRun, symbol: str, values: Sequence[int], where: str) -> LegalValues:
    """Which whole numbers a run accepts.

    Args:
        run: bound in every symbol.
        symbol: a whole number.
        values: to be tried, ascending.
        where: for the error line.

    Raises:
        Unreachable: it accepts none of them, with the reason for the first.
    """
    argument = argument_of(symbol)
    groups: list[tuple[Any, list[int], list[dict[str, float]]]] = []
    skipped: list[Skipped] = []
    for value in values:
        try:
            other = run.bind(**{argument: value})
        except InputError as error:
            skipped.append(Skipped(value, str(error), reason_of(error)))
            continue
        group = next((each for each in groups if each[0].structure == other.structure), None)
        if group is None:
            groups.append(group := (other, [], []))
        group[1].append(value)
        group[2].append(differences(group[0], other))
    if not groups:
        found = f"{skipped[0].value} to {skipped[-1].value}: {skipped[0].reason}" if skipped else "an empty range"
        raise Unreachable(f"{where}: the run accepts no {symbol} of {found}", None, float(next(iter(values), 0)))
    return LegalValues(symbol, tuple(_group(symbol, *group) for group in groups), tuple(skipped))


def differences(run: BaseRun, other: BaseRun) -> dict[str, float]:
    """The symbols that another run binds to other numbers, and those numbers."""
    bound = run.bound
    return {name: value for name, (value, _) in other.bound.items() if name in bound and bound[name][0] != value}


def _group(symbol: str, run: BaseRun, values: list[int], moves: list[dict[str, float]]) -> LegalGroup:
    names = dict.fromkeys(name for move in moves for name in move if name != symbol)
    moved = {name: np.array([move.get(name, run.bound[name][0]) for move in moves]) for name in names}
    return LegalGroup(run, np.array(values, dtype=float), moved)


def spell_skipped(skipped: Iterable[Skipped]) -> str:
    """Why values were skipped, a phrase for each rule that is broken."""
    by_rule: dict[str, list[Skipped]] = {}
    for each in skipped:
        by_rule.setdefault(each.rule, []).append(each)
    return "; ".join(f"{spell_values(e.value for e in group)} ({group[0].reason})" for group in by_rule.values())


def spell_values(values: Iterable[object]) -> str:
    """Values in words: the first few, and how many more.

    >>> spell_values([3, 5, 6, 7]), spell_values(range(3, 50))
    ('3, 5, 6 and 7', '3, 4, 5 and 44 more')
    """
    found = [str(value) for value in values]
    if len(found) > SHOWN:
        found = [*found[: SHOWN - 1], f"{len(found) - SHOWN + 1} more"]
    return found[0] if len(found) == 1 else f"{', '.join(found[:-1])} and {found[-1]}"
