"""What binds at any two values of two symbols, as the run binds everything else there; what it refuses is left out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..common.errors import InputError
from ..plans.rule import reason_of
from .answers import Unreachable
from .followers import followers
from .legal import Skipped, differences, legal_values
from .numbers import numbers
from .subject import subject_of
from .symbols import argument_of, lead_dependents

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..evaluation.base_run import BaseRun
    from .subject import Subject

Array = np.ndarray[Any, Any]
NONE, REFUSED = -1, -2
FAR = float(1 << 40)
"""Two whole numbers are one key: the first times this, and the second."""
CHUNK = 4096


@dataclass(frozen=True)
class Sheet:
    """The points of one structure.

    Attributes:
        subject: what is analysed there.
        keys: of the whole numbers at which it holds, ascending; empty where no symbol is tried one by one.
        moved: what the run binds to other numbers there, by name: of the shape of `keys`.
    """

    subject: Subject
    keys: Array
    moved: dict[str, Array]


@dataclass(frozen=True)
class Plane:
    """Two symbols of a run.

    Attributes:
        symbols: the two.
        whole: of each, whether its values are tried one by one.
        sheets: by structure.
        names: of all resources.
        skipped: what the run refuses; the values are those of the symbols that are tried, the reason its line.
    """

    symbols: tuple[str, str]
    whole: tuple[bool, bool]
    sheets: tuple[Sheet, ...]
    names: tuple[str, ...]
    skipped: tuple[Skipped, ...]

    def bounds(self, xs: Array, ys: Array) -> Array:
        """The index of the resource with the largest share at points; `NONE` where none has, `REFUSED` where no run is.

        Args:
            xs: values of the first symbol.
            ys: of the second, as many.
        """
        found = np.full(len(xs), REFUSED)
        for sheet in self.sheets:
            if len(sheet.keys):
                keys = self._keys(xs, ys)
                places = np.minimum(np.searchsorted(sheet.keys, keys), len(sheet.keys) - 1)
                here = np.flatnonzero(sheet.keys[places] == keys)
            else:
                here, places = np.arange(len(xs)), np.zeros(len(xs), dtype=int)
            for start in range(0, len(here), CHUNK):
                some = here[start : start + CHUNK]
                points = {name: values[places[some]] for name, values in sheet.moved.items()}
                points |= {self.symbols[0]: xs[some], self.symbols[1]: ys[some]}
                found[some] = self._index(sheet.subject)[numbers(sheet.subject, points).bounds(sheet.subject.bearing)]
        return found

    def _index(self, subject: Subject) -> Array:
        """Where a sheet's resources are among all; the last is for none."""
        return np.array([*(self.names.index(name) for name in subject.names), NONE])

    def _keys(self, xs: Array, ys: Array) -> Array:
        if all(self.whole):
            return xs * FAR + ys
        return xs if self.whole[0] else ys

    def subject_at(self, x: float, y: float) -> Subject:
        """The subject at one accepted point, with its values there."""
        key = float(self._keys(np.array([x]), np.array([y]))[0]) if any(self.whole) else 0.0
        for sheet in self.sheets:
            place = int(np.searchsorted(sheet.keys, key)) if len(sheet.keys) else 0
            if not len(sheet.keys) or (place < len(sheet.keys) and sheet.keys[place] == key):
                moved = {name: float(values[place]) for name, values in sheet.moved.items()}
                return sheet.subject.at(moved | dict(zip(self.symbols, (x, y), strict=True)))
        raise ValueError(f"the run refuses {x}, {y}")


def plane_of(
    run: BaseRun, subject: Subject, symbols: tuple[str, str], values: Mapping[str, Sequence[int] | None], where: str
) -> Plane:
    """The plane of two symbols.

    Args:
        run: bound in every symbol.
        subject: of the run.
        symbols: the two.
        values: of each the whole numbers that are to be tried one by one, or nothing.
        where: for the error line.

    Raises:
        Unreachable: the run accepts none of the whole numbers.
    """
    listed = [name for name in symbols if values[name] is not None and followers(run, name) is not None]
    whole = (symbols[0] in listed, symbols[1] in listed)
    others = [name for name in symbols if name not in listed]
    skipped: tuple[Skipped, ...] = ()
    if not listed:
        groups: list[tuple[BaseRun, Array, dict[str, Array]]] = [(run, np.array([]), {})]
    elif len(listed) == 1:
        legal = legal_values(run, listed[0], values[listed[0]] or (), where)
        groups = [(group.run, group.values, group.moved) for group in legal.groups]
        skipped = legal.skipped
    else:
        groups, skipped = _pairs(run, symbols, values, where)
    sheets = []
    for own, keys, moved in groups:
        led = lead_dependents(own, subject_of(own, subject.output, where), *others)
        sheets.append(Sheet(led, keys, {name: row for name, row in moved.items() if name in led.program.inputs}))
    names = tuple(dict.fromkeys(name for sheet in sheets for name in sheet.subject.names))
    return Plane(symbols, whole, tuple(sheets), names, skipped)


def _pairs(
    run: BaseRun, symbols: tuple[str, str], values: Mapping[str, Sequence[int] | None], where: str
) -> tuple[list[tuple[BaseRun, Array, dict[str, Array]]], tuple[Skipped, ...]]:
    """The groups of one structure of all accepted pairs of whole numbers."""
    x, y = (argument_of(symbol) for symbol in symbols)
    found: list[tuple[BaseRun, list[float], list[dict[str, float]]]] = []
    skipped: list[Skipped] = []
    for first in values[symbols[0]] or ():
        for second in values[symbols[1]] or ():
            try:
                other = run.bind(**{x: first, y: second})
            except InputError as error:
                skipped.append(Skipped((first, second), str(error), reason_of(error)))
                continue
            group = next((each for each in found if each[0].structure == other.structure), None)
            if group is None:
                found.append(group := (other, [], []))
            group[1].append(first * FAR + second)
            group[2].append(differences(group[0], other))
    if not found:
        raise Unreachable(
            f"{where}: the run accepts no pair of {symbols[0]} and {symbols[1]}: {skipped[0].reason}", None, 0.0
        )
    groups = []
    for own, keys, moves in found:
        names = dict.fromkeys(name for move in moves for name in move if name not in symbols)
        moved = {name: np.array([move.get(name, own.bound[name][0]) for move in moves]) for name in names}
        groups.append((own, np.array(keys), moved))
    return groups, tuple(skipped)
