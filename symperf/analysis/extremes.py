"""The lowest and the highest value that a quantity takes while one symbol runs over all values that a run accepts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..codegen.interpret import arrays, run
from ..common.errors import InputError
from .cross_sides import divisors_of
from .direction import direction
from .symbols import LARGEST, domain_of, value_now

if TYPE_CHECKING:
    from ..evaluation.base_run import BaseRun
    from .limits import Limit
    from .subject import Subject

FIRST = 4096
"""Whole numbers that are looked at one by one, from 1 on."""
GRID = 1025
"""Values of a real symbol that are looked at where no direction is proved."""
TRIED = 64
"""Extreme whole numbers that are offered to a run before the next is taken as it is."""


@dataclass(frozen=True)
class Extreme:
    """The lowest or highest value of a quantity.

    Attributes:
        value: of the quantity; nothing where it has no bound.
        at: the value of the symbol; nothing where it is only approached.
    """

    value: float | None
    at: float | None


@dataclass(frozen=True)
class Extremes:
    """Over the legal values of a symbol.

    Attributes:
        lowest: of the quantity.
        highest: of the quantity.
        low: the smallest legal value of the symbol.
        high: the largest; infinite where the run sets no limit.
        limiting: why a whole number ends at `high`, the line of the next one; empty where it does not end.
    """

    lowest: Extreme
    highest: Extreme
    low: float
    high: float
    limiting: str = ""


def extremes(of_run: BaseRun, subject: Subject, symbol: str, far: Limit | None, near: Limit | None) -> Extremes:
    """The lowest and the highest value of a quantity over a symbol's legal values.

    Proved directions give the ends; else whole numbers are tried one by one up to 4096, and real symbols on a grid.

    Args:
        of_run: bound in every symbol.
        subject: the quantity, along the symbol.
        symbol: that varies.
        far: the limit at infinity, where the symbol goes there.
        near: the limit at zero, where the symbol goes there.
    """
    domain = domain_of(symbol)
    if domain.whole:
        return _whole(of_run, subject, symbol, far)
    low, high = domain.low, domain.high
    found: list[tuple[float | None, float | None]] = []
    if low == 0.0:
        if near is not None:
            found.append((near.limit, None))
        low = min(subject.values[symbol] or 1.0, 1.0) * 1e-6
    if math.isinf(high):
        if far is not None:
            found.append((far.limit, None))
        high = max(subject.values[symbol], 1.0) * 1e6
    proved = direction(subject, symbol, low, high) is not None
    xs = np.array([low, high]) if proved else np.geomspace(low, high, GRID)
    values = _values(subject, symbol, xs)
    found += [(float(value), float(x)) for value, x in zip(values, xs, strict=True) if math.isfinite(value)]
    return _extremes(found, domain.low, domain.high)


def _whole(of_run: BaseRun, subject: Subject, symbol: str, far: Limit | None) -> Extremes:
    ends, limiting = _last_legal(of_run, symbol, value_now(of_run, subject, symbol))
    candidates = {float(n) for n in divisors_of(of_run)} | {float(n) for n in range(1, FIRST + 1)}
    if ends is None:
        candidates |= {float(2**k) for k in range(int(math.log2(LARGEST)) + 1)}
    xs = np.array(sorted(x for x in candidates if ends is None or x <= ends))
    values = _values(subject, symbol, xs)
    order = [int(k) for k in np.argsort(values, kind="stable") if math.isfinite(values[k])]
    found: list[tuple[float | None, float | None]] = [
        (float(values[k]), float(xs[k])) for k in (_first(of_run, symbol, xs, each) for each in (order, order[::-1]))
    ]
    if ends is None and far is not None:
        found.append((far.limit, None))
    low = next((float(x) for x in xs if _accepts(of_run, symbol, x)), 1.0)
    return _extremes(found, low, math.inf if ends is None else ends, limiting)


def _first(of_run: BaseRun, symbol: str, xs: Any, order: list[int]) -> int:
    """The first number of an order that the run accepts."""
    return next((k for k in order[:TRIED] if _accepts(of_run, symbol, xs[k])), order[0])


def _accepts(of_run: BaseRun, symbol: str, x: float) -> bool:
    try:
        of_run.bind(**{symbol: int(x)})
    except InputError:
        return False
    return True


def _last_legal(of_run: BaseRun, symbol: str, value: float) -> tuple[float | None, str]:
    """The largest whole number that a run accepts and why it takes no more; nothing where it sets no limit.

    A size that only the model's file gives, such as the experts, is refused whatever its number: that is no limit.
    """
    now = max(int(value), 1)
    if not _accepts(of_run, symbol, now):
        return None, ""
    far = now * 2 ** int(math.log2(LARGEST / now))
    try:
        of_run.bind(**{symbol: far})
    except InputError as error:
        reason = str(error)
    else:
        return None, ""
    accepted = [n for n in sorted(divisors_of(of_run)) if n > now and _accepts(of_run, symbol, n)]
    low, high = max(accepted, default=now), far
    while high - low > 1:  # a length ends in between, a degree does not
        middle = (low + high) // 2
        low, high = (middle, high) if _accepts(of_run, symbol, middle) else (low, middle)
    try:
        of_run.bind(**{symbol: low + 1})
    except InputError as error:
        reason = str(error)
    return float(low), reason


def _extremes(found: list[tuple[float | None, float | None]], low: float, high: float, limiting: str = "") -> Extremes:
    finite = [(value, at) for value, at in found if value is not None]
    unbounded = len(finite) < len(found)
    least = min(finite, key=lambda pair: pair[0])
    most = max(finite, key=lambda pair: pair[0])
    return Extremes(Extreme(*least), Extreme(None, None) if unbounded else Extreme(*most), low, high, limiting)


def _values(subject: Subject, symbol: str, xs: Any) -> Any:
    with np.errstate(all="ignore"):
        found = run(subject.program, subject.values | {symbol: xs}, arrays())[subject.position]
    return np.broadcast_to(found, xs.shape)
