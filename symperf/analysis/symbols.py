"""The symbols that a question may be about: whether they are whole numbers, and what values they may take."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from ..common.artefacts import load_or_make
from ..common.errors import InputError, nearest, quote
from ..common.numbers import is_finite

if TYPE_CHECKING:
    from ..evaluation.base_run import BaseRun
    from .subject import Subject

COUNT, FRACTION = "integer >= 1", "0 to 1"
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
    return _domains().get(name, "")


@cache
def _domains() -> dict[str, str]:
    return load_or_make("domains", "", _read, dict, dict)


def _read() -> dict[str, Any]:
    from ..formulas.language.symbols import SYMBOLS

    return {name: entry.domain for name, entry in SYMBOLS.items()}


def require_symbol(run: BaseRun, subject: Subject, name: object, where: str) -> str:
    """The name of a symbol that the analysed quantity depends on.

    Raises:
        InputError: the run has no such symbol, with the nearest; or the quantity does not depend on it.
    """
    if not isinstance(name, str):
        raise InputError(f"{where}: the symbol is {quote(name)}, expected its name")
    if name in subject.program.inputs:
        return name
    if name in run.bound:
        raise InputError(f"{where}: {subject.output} does not depend on {name}")
    raise InputError(f"{where}: the run has no symbol {quote(name)}{nearest(name, run.bound)}")


def lead_dependents(run: BaseRun, subject: Subject, *symbols: str) -> Subject:
    """The subject in which what the run sets in proportion to a whole number moves with it.

    An inference run without a `micro_batch` of its own takes it from the batch, so along `batch` both move.
    """
    for symbol in symbols:
        now = run.bound[symbol][0]
        if not domain_of(symbol).whole or now % 1:
            continue
        for factor in (2, 3, 4, 8):
            try:
                other = run.bind(**{symbol: int(now) * factor}).bound
            except InputError:
                continue
            moved = {n: v for n, (v, _) in run.bound.items() if n not in symbols and n in other and other[n][0] != v}
            subject = subject.led(symbol, {n: v / now for n, v in moved.items() if other[n][0] == v * factor})
            break
    return subject


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
