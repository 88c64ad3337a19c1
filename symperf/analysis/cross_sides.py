"""The two sides of a comparison: a quantity of a run, as a function of one symbol."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..codegen.interpret import arrays, floats, run
from ..common.errors import InputError, nearest, quote
from ..train.inputs import limits_of
from .choices import Choice, is_choice, parse_choice
from .forms import constant
from .line import Pieces
from .measures import unit_of
from .subject import Subject, subject_of
from .symbols import LARGEST, domain_of, lead_dependents

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..evaluation.base_run import BaseRun
    from .symbols import Domain

AGREES = 1e-11
"""Relative difference that is rounding."""
LARGE = 1e18
"""Where a symbol without a limit is tried."""
PROBES = (0.5, 2.0, 3.0)
"""Factors on a symbol at which it is seen what moves with it."""


@dataclass(frozen=True)
class Side:
    """One side of a comparison.

    Attributes:
        label: as a sentence has it.
        run: with the choice, where it is one.
        of: the quantity of it.
        symbol: that varies; None where this side stays as it is.
        where: begins error lines.
        choice: what was chosen; None of a term, a resource or a quantity of the base run.
    """

    label: str
    run: BaseRun
    of: str
    symbol: str | None = None
    where: str = "cross"
    choice: Choice | None = None

    def bind(self, x: float) -> BaseRun:
        """The run with the symbol at a value.

        Raises:
            InputError: the run refuses it.
        """
        if self.symbol is None:
            return self.run
        whole = domain_of(self.symbol).whole
        return self.run.bind(**{self.symbol: int(x) if whole else float(x)})

    def value(self, x: float) -> float:
        """The quantity with the symbol bound to a value.

        Raises:
            InputError: the run refuses it.
        """
        return float(values_of([self.bind(x)], self.of)[0])

    @property
    def now(self) -> float | None:
        """The value that the symbol has in the run, if it has one."""
        if self.symbol is None:
            return None
        if self.symbol in self.run.bound:
            return self.run.bound[self.symbol][0]
        known = self.run.system.quantities.get(self.symbol)
        return None if known is None else float(known.value)

    @cached_property
    def subject(self) -> Subject:
        """The quantity as a program, in which what the run sets in proportion to the symbol moves with it."""
        found = subject_of(self.run, self.of, self.where)
        if self.symbol is None:
            return found
        return _follow(self, lead_dependents(self.run, found, self.symbol) if self.symbol in self.run.bound else found)

    @cached_property
    def faithful(self) -> bool:
        """Whether the program says what the run with the symbol bound does, as far as trials show."""
        if self.symbol is None:
            return True
        agreed = []
        for x in self._trials(self.symbol):
            try:
                wanted = self.value(x)
            except InputError:
                continue
            found = float(self.values(np.array([x]))[0])
            agreed.append(abs(found - wanted) <= AGREES * abs(wanted))
        return bool(agreed) and all(agreed)

    def _trials(self, symbol: str) -> list[float]:
        """Values of the symbol at which the program is compared with the run."""
        domain = domain_of(symbol)
        if self.now:
            tried = [self.now * factor for factor in (0.25, *PROBES, 4.0)]
            return [x for x in tried if domain.low <= x <= domain.high and not (domain.whole and x % 1)]
        high = min(domain.high, LARGE)
        return [domain.low, high, math.sqrt(domain.low * high)]

    @property
    def constant(self) -> bool:
        """Whether the quantity does not depend on the symbol."""
        return self.symbol is None or self.symbol not in self.subject.program.inputs

    def pieces(self, low: float, high: float) -> Pieces:
        """The quantity as exact pieces between two values of the symbol.

        Raises:
            FormError: there are none.
        """
        if self.constant:
            return Pieces((), (constant(float(self.values(np.ones(1))[0])),))
        return self.subject.line(str(self.symbol), low, high).values[self.subject.position]

    def values(self, xs: Any) -> Any:
        """The quantity along the symbol, from the program."""
        inputs = self.subject.values if self.constant else self.subject.values | {str(self.symbol): xs}
        with np.errstate(all="ignore"):
            found = run(self.subject.program, inputs, arrays())[self.subject.position]
        return np.broadcast_to(np.asarray(found, dtype=float), np.shape(xs))


def values_of(runs: Sequence[BaseRun], of: str) -> Any:
    """A quantity of many runs; those of one structure are evaluated at once."""
    found = np.full(len(runs), np.nan)
    groups: dict[int, list[int]] = {}
    for k, each in enumerate(runs):
        groups.setdefault(id(each.compiled), []).append(k)
    for places in groups.values():
        first = subject_of(runs[places[0]], of, "cross")
        alone = [first]
        if not all(name in runs[places[0]].bound for name in first.program.inputs):
            alone += [subject_of(runs[k], of, "cross") for k in places[1:]]
            rows = [each.values for each in alone]
        else:
            rows = [{name: runs[k].bound[name][0] for name in first.program.inputs} for k in places]
        if len(places) == 1:
            found[places[0]] = run(first.program, rows[0], floats())[first.position]
            continue
        columns = {name: np.array([row[name] for row in rows]) for name in first.program.inputs}
        with np.errstate(all="ignore"):
            found[places] = run(first.program, columns, arrays())[first.position]
    return found


def divisors_of(run: BaseRun) -> set[int]:
    """Every divisor of a whole number that a run is bound to."""
    found: set[int] = set()
    for size in {int(value) for value, _ in run.bound.values() if value % 1 == 0 and 1 <= value <= LARGEST}:
        tried = np.arange(1, math.isqrt(size) + 1)
        small = tried[size % tried == 0]
        found.update(small.tolist(), (size // small).tolist())
    return found


def _follow(side: Side, subject: Subject) -> Subject:
    """The subject in which what a run sets in proportion to the symbol moves with it."""
    symbol, now = side.symbol, side.now
    if symbol is None or not now:
        return subject
    ratios: dict[str, float] | None = None
    for factor in PROBES:
        if domain_of(symbol).whole and now * factor % 1:
            continue
        try:
            other = side.bind(now * factor).bound
        except InputError:
            continue
        bound = side.run.bound
        moved = {n for n in subject.program.inputs if n != symbol and n in other and other[n][0] != bound[n][0]}
        here = {n: bound[n][0] / now for n in moved if other[n][0] == bound[n][0] * factor}
        ratios = here if ratios is None else {n: r for n, r in ratios.items() if n in here}
    return subject.led(symbol, ratios) if ratios else subject


def sides_of(base: BaseRun, a: str, b: str, over: str, of: str) -> tuple[Side, Side]:
    """The two sides of a comparison.

    Args:
        base: the run.
        a: a term, a folder, a resource, a quantity, or a choice.
        b: another.
        over: a symbol; `a.NAME` or `b.NAME` where it varies on one side alone.
        of: the quantity that two choices are compared in.

    Raises:
        InputError: a side that there is not, or that the rules refuse; two of different kinds or units; an unknown
            symbol.
    """
    for name, text in (("a", a), ("b", b), ("over", over), ("of", of)):
        if not isinstance(text, str) or not text.strip():
            raise InputError(f"cross: {name}: found {quote(text)}, expected a name or a choice")
    choices = is_choice(a), is_choice(b)
    if choices[0] != choices[1]:
        told = [f"{quote(text)}, which is {'a choice' if c else 'a term, resource or quantity'}" for text, c in
                ((a, choices[0]), (b, choices[1]))]
        raise InputError(f"cross: found {told[0]}, and {told[1]}; expected two of one kind")
    which, _, name = over.strip().rpartition(".")
    if which not in ("", "a", "b"):
        raise InputError(f"cross: over: found {quote(over)}, expected NAME, a.NAME or b.NAME")
    if all(choices):
        made = [_chosen(base, text, of, f"cross: {letter}") for letter, text in (("a", a), ("b", b))]
    else:
        made = [_measured(base, text.strip(), f"cross: {letter}") for letter, text in (("a", a), ("b", b))]
        _require_two_of_one_unit(*made)
    first, second = (_along(side, name) if which in ("", letter) else side for side, letter in zip(made, "ab", strict=True))
    if first.symbol is None and second.symbol is None:
        known = {known for side in made for known in side.run.bound}
        raise InputError(f"cross: over: the run has no symbol {quote(name)}{nearest(name, sorted(known))}")
    return first, second


def _along(side: Side, name: str) -> Side:
    """A side as a function of a symbol, if its run has the symbol.

    Raises:
        InputError: the side's choice sets it.
    """
    if side.choice is not None and name in side.choice.values:
        raise InputError(f"cross: over: {name} is set by {quote(side.label)}, expected a symbol that it leaves open")
    known = name in side.run.bound or limits_of(name) is not None
    return dataclasses.replace(side, symbol=name) if known else side


def _chosen(base: BaseRun, text: str, of: str, where: str) -> Side:
    choice = parse_choice(text, where)
    side = Side(choice.label, choice.run(base, where), of, choice=choice)
    subject_of(side.run, of, "cross: of")
    return side


def _measured(base: BaseRun, text: str, where: str) -> Side:
    subject_of(base, text, where)
    return Side(text, base, text)


def _require_two_of_one_unit(a: Side, b: Side) -> None:
    if a.of == b.of:
        raise InputError(f"cross: a and b are both {quote(a.of)}, expected two that differ")
    units = [unit_of(side.of) for side in (a, b)]
    if units[0] != units[1]:
        told = [f"{side.of} is {f'in {unit}' if unit != '1' else 'a number'}" for side, unit in zip((a, b), units, strict=True)]
        raise InputError(f"cross: {told[0]} and {told[1]}, expected two of one unit")
