"""The symbols that a question may be about: whether they are whole numbers, and what values they may take."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from ..common.artefacts import load_or_make
from ..common.errors import InputError, nearest, quote
from ..common.numbers import is_finite
from ..plans.plan_fields import NUMBERS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..evaluation.base_run import BaseRun
    from .subject import Subject

COUNT, FRACTION = "integer >= 1", "0 to 1"
ARGUMENTS = ("concurrency",)
"""Whole numbers that runs are asked with and that are no symbols: what is set from them is."""
LARGEST = 1e9
"""Of a whole number that a run accepts."""


@dataclass(frozen=True)
class Domain:
    """What values a symbol may take.

    Attributes:
        whole: only whole numbers.
        low: the smallest.
        high: the largest; infinite where a run sets no limit.
        zero: whether zero is one of them although `low` is above it.
    """

    whole: bool
    low: float
    high: float
    zero: bool = False


def domain_of(name: str) -> Domain:
    """The values that a run accepts for a symbol."""
    from ..train.inputs import limits_of

    kind = kind_of(name)
    if kind == COUNT:
        limits = limits_of(name)
        return Domain(True, 1.0, LARGEST if limits is None else limits.high)
    if kind == FRACTION:
        return Domain(False, 0.0, 1.0)
    limits = limits_of(name)
    if limits is None:
        return Domain(False, 0.0, math.inf)
    return Domain(False, limits.low, limits.high, limits.zero)


def kind_of(name: str) -> str:
    """The domain of a symbol in the vocabulary, or nothing for a name that is not in it."""
    if name in ARGUMENTS:
        return COUNT
    base, _, number = name.rpartition("_")
    return _domains().get(name) or (_domains().get(base, "") if number.isdecimal() else "")


def value_now(run: BaseRun, subject: Subject, name: str) -> float:
    """The value of a symbol of a run, or of a whole number that it is asked with; 0 of one that it chooses itself."""
    if name in run.bound:
        return float(run.bound[name][0])
    return subject.values[name] if name in subject.values else float(_argument(run, name) or 0)


def _argument(run: BaseRun, name: str) -> int | None:
    found: int | None = getattr(run, "question", {}).get(name) if name in ARGUMENTS else None
    return found


@cache
def _domains() -> dict[str, str]:
    return load_or_make("domains", "", _read, dict, dict)


def _read() -> dict[str, Any]:
    from ..formulas.language.symbols import SYMBOLS

    return {name: entry.domain for name, entry in SYMBOLS.items()}


def argument_of(symbol: str) -> str:
    """The name by which a run is bound to another value of a symbol: of the plan's field that sets it, or its own."""
    return _FIELDS.get(symbol, symbol)


_FIELDS = {field.symbol: name for name, field in NUMBERS.items() if field.symbol != name}


def require_symbol(run: BaseRun, subject: Subject, name: object, where: str, values: Sequence[float] = ()) -> str:
    """The name of a symbol that the analysed quantity depends on, itself or by what the run sets from it.

    Args:
        run: bound in every symbol.
        subject: of the run.
        name: to be checked.
        where: for the error line.
        values: at which the run is to be compared, beside multiples of the value now.

    Raises:
        InputError: the run has no such symbol, with the nearest; or the quantity does not depend on it.
    """
    if not isinstance(name, str):
        raise InputError(f"{where}: the symbol is {quote(name)}, expected its name")
    if name in subject.program.inputs:
        return name
    asked = name in ARGUMENTS and name in getattr(run, "question", {})
    if name not in run.bound and not asked:
        raise InputError(f"{where}: the run has no symbol {quote(name)}{nearest(name, run.bound)}")
    from .followers import followers

    found = followers(run, name, values)
    if found is None or not (found.structural or found.names() & set(subject.program.inputs)):
        raise InputError(f"{where}: {subject.output} does not depend on {name}")
    return name


def lead_dependents(
    run: BaseRun, subject: Subject, *symbols: str, values: Mapping[str, Sequence[float]] | None = None
) -> Subject:
    """The subject along symbols: what the run sets from them moves with them, everything else is as the run binds it.

    An inference run without a `micro_batch` of its own takes it from the batch, so along `batch` both move.

    Args:
        run: bound in every symbol.
        subject: of the run.
        symbols: that will vary; those that something follows are inputs of the subject that is returned.
        values: of the symbols, at which the run is to be compared, beside multiples of the values now.

    Raises:
        InputError: something moves with a symbol in no simple way.
    """
    from .followers import followers
    from .subject import subject_of

    powers: dict[str, dict[str, int]] = {}
    base, output = run, subject.output
    for symbol in symbols:
        found = followers(base, symbol, (values or {}).get(symbol, ()))
        if found is None:
            continue
        if found.others and set(found.others) & set(subject.program.inputs):
            way = f"a value of its own for {found.others[0]}"
            if domain_of(symbol).whole:
                way += ", or a range short enough to be tried number by number (view whole)"
            raise InputError(
                f"{output} along {symbol}: the run sets {found.others[0]} from it in no proportion, expected {way}"
            )
        base = found.run
        for name, power in found.powers.items():
            powers.setdefault(name, {})[symbol] = power
    if base is run:
        return subject
    laws = {}
    for name, found_powers in powers.items():
        size = base.bound[name][0]
        for symbol, power in found_powers.items():
            size /= value_now(base, subject, symbol) ** power
        laws[name] = (size, found_powers)
    led = subject_of(base, output, output)
    return led.led(laws, {symbol: value_now(base, subject, symbol) for symbol in symbols})


def check_range(name: str, low: object, high: object, domain: Domain, where: str) -> tuple[float, float]:
    """The two ends of a range.

    Raises:
        InputError: one is no number, or out of the symbol's domain, or the range is empty or reversed.
    """
    ends = []
    for what, value in (("low", low), ("high", high)):
        if not is_finite(value):
            raise InputError(f"{where}: {what} is {quote(value)}, expected a finite number")
        value = float(value)  # type: ignore[arg-type]
        if value <= 0:
            raise InputError(f"{where}: {what} is {value:g}, expected a number above 0")
        if domain.whole and value % 1:
            raise InputError(f"{where}: {what} is {value:g}, but {name} is a whole number")
        ends.append(value)
    if ends[0] >= ends[1]:
        what = "is empty" if ends[0] == ends[1] else "is reversed"
        raise InputError(f"{where}: the range from {ends[0]:g} to {ends[1]:g} {what}, expected low below high")
    return ends[0], ends[1]


SPAN = 16
"""Without a range a symbol is followed from its value over this to its value times this."""


def default_range(name: str, value: float, where: str) -> tuple[float, float]:
    """Where a symbol is followed when no range is asked for.

    Args:
        name: of the symbol.
        value: that it has now.
        where: for the error line.

    Raises:
        InputError: it is zero, which is no middle of a range.
    """
    domain = domain_of(name)
    if value <= 0:
        raise InputError(f"{where}: {name} is {value:g} here, expected --from and --to (low and high) as well")
    low, high = max(value / SPAN, domain.low), min(value * SPAN, domain.high)
    if not domain.whole:
        return low, high
    return max(1.0, float(round(low))), max(2.0, float(round(high)))
