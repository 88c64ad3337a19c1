"""Every sign change of a sum of powers of x and of ln x on an interval of positive numbers.

Between two zeros of the derivative a function is monotone, so the signs at these zeros and at the ends tell every sign
change. Divided by its lowest power, a sum loses a term when it is differentiated by ln x, so the recursion ends; no
sampling is involved. Signs that floating point cannot tell are computed with rational numbers, or with 60
digits where there are roots or logarithms.
"""

from __future__ import annotations

import itertools
import math
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .forms import Exponent, Plain

DIGITS = 60
ZERO = Fraction(0)
NOTHING = Decimal(10) ** -45
"""Relative to the size of its terms, a sum that is smaller than this is zero."""


def sign_changes(total: Plain, low: float, high: float) -> list[float]:
    """Where a sum changes its sign strictly between `low` and `high`, in order.

    Args:
        total: the sum.
        low: 0 or above.
        high: above `low`; may be infinite.

    >>> from fractions import Fraction
    >>> sign_changes({(2, 0): Fraction(1), (1, 0): Fraction(-3), (0, 0): Fraction(2)}, 0.5, math.inf)
    [1.0, 2.0]
    """
    if len(total) < 2:
        odd = any(k % 2 for _, k in total)
        return [1.0] if odd and low < 1 < high else []
    logs = any(k for _, k in total)
    if not logs:
        variations = _variations(total)
        if variations == 0:
            return []
        if len(total) == 2:
            return _of_two(total, low, high)
        if variations == 1:
            return _of_sections(total, [low, high])
    lowest = min(e for e, _ in total)
    shifted = {(e - lowest, k): c for (e, k), c in total.items()} if lowest else total
    return _of_sections(total, [low, *sign_changes(_slope(shifted), low, high), high])


def sign_at(total: Plain, x: float) -> int:
    """The sign of a sum at x, at 0 from above, or far out where x is infinite."""
    if not total:
        return 0
    if math.isinf(x):
        return _sign(total[max(total)])
    if x == 0:
        first = min(e for e, _ in total)
        k = max(k for e, k in total if e == first)
        return _sign(total[first, k]) * (-1 if k % 2 else 1)
    try:
        terms = _terms(total, x)
        value, size = math.fsum(terms), math.fsum(map(abs, terms))
        if abs(value) > 1e-13 * size:
            return 1 if value > 0 else -1
    except OverflowError:
        pass
    if all(isinstance(e, int) and not k for e, k in total):
        at = Fraction(x)
        return _sign(sum((c * at ** int(e) for (e, _), c in total.items()), ZERO))
    with localcontext(Context(prec=DIGITS)):
        exact = _decimals(total, Decimal(x))
        whole = sum(exact, Decimal(0))
        return _sign(whole) if abs(whole) > NOTHING * sum(map(abs, exact)) else 0


def value_at(total: Plain, x: float) -> float:
    """The value of a sum at a positive finite x."""
    try:
        terms = _terms(total, x)
        value = math.fsum(terms)
        if abs(value) > 1e-3 * math.fsum(map(abs, terms)):
            return value
    except OverflowError:
        pass
    with localcontext(Context(prec=DIGITS)):
        return float(sum(_decimals(total, Decimal(x))))


def between(low: float, high: float) -> float:
    """A point strictly between two positive numbers, of which the second may be infinite and the first zero."""
    if math.isinf(high):
        return 2 * low if low else 1.0
    if low == 0:
        return high / 2
    middle = math.sqrt(low) * math.sqrt(high)
    return middle if low < middle < high else low + (high - low) / 2


def _of_two(total: Plain, low: float, high: float) -> list[float]:
    (first, a), (second, b) = ((e, c) for (e, _), c in total.items())
    ratio, degree = -a / b, second - first
    if degree < 0:
        ratio, degree = 1 / ratio, -degree
    if degree == 1:
        root = _float(ratio)
    elif degree == 2:
        root = math.sqrt(_float(ratio))
    else:
        root = _float(ratio) ** (1 / float(degree))
    return [root] if low < root < high else []


def _of_sections(total: Plain, nodes: list[float]) -> list[float]:
    """The sign changes, given points between which the sum is monotone or changes sign at most once."""
    found: list[float] = []
    before, sign = nodes[0], sign_at(total, nodes[0])
    for node in nodes[1:]:
        at = sign_at(total, node)
        if at == 0:
            continue
        if sign == -at:
            touched = [n for n in nodes if before < n < node]
            root = touched[0] if touched else _bisect(total, before, node, sign)
            if nodes[0] < root < nodes[-1] and (not found or root > found[-1]):
                found.append(root)
        before, sign = node, at
    return found


def _bisect(total: Plain, low: float, high: float, sign: int) -> float:
    """The one zero between two points of opposite signs; `sign` is that at `low`."""
    if math.isinf(high):
        step = 2.0
        high = max(2 * low, 1.0)
        while sign_at(total, high) == sign:
            low, high, step = high, high * step, step * step
    if low == 0:
        step = 2.0
        low = min(high / 2, 1.0)
        while sign_at(total, low) != sign:
            high, low, step = low, low / step, step * step
    slope = _slope(total)
    x, tried = between(low, high), 0.0
    for _ in range(400):
        at = sign_at(total, x)
        if at == 0:
            return x
        low, high = (x, high) if at == sign else (low, x)
        if high - low <= 4e-16 * high:
            break
        step = _newton(total, slope, x)
        if low < step < high and abs(step - tried) > 1e-15 * step:
            x = tried = step
            continue
        if tried and sign_at(total, tried * (1 - 1e-14)) == sign == -sign_at(total, tried * (1 + 1e-14)):
            break
        x, tried = between(low, high), 0.0
        if not low < x < high:
            break
    return _polish(total, slope, min(max(tried or x, low), high))


def _newton(total: Plain, slope: Plain, x: float) -> float:
    """The next guess of a zero, or nan."""
    try:
        rate = math.fsum(_terms(slope, x))
        return x * (1 - math.fsum(_terms(total, x)) / rate) if rate else math.nan
    except OverflowError:
        return math.nan


def _polish(total: Plain, slope: Plain, x: float) -> float:
    """A zero to the last bit, by one step of Newton with many digits."""
    with localcontext(Context(prec=DIGITS)):
        at = Decimal(x)
        for _ in range(2):
            rate = sum(_decimals(slope, at))
            if rate == 0:
                return x
            at = at * (1 - sum(_decimals(total, at)) / rate)
            if at <= 0:
                return x
        better = float(at)
    return better if abs(better - x) < 1e-6 * x else x


def _slope(total: Plain) -> Plain:
    """The derivative by ln x."""
    found: dict[tuple[Exponent, int], Fraction] = {}
    for (e, k), c in total.items():
        if e:
            found[e, k] = found.get((e, k), ZERO) + e * c
        if k:
            found[e, k - 1] = found.get((e, k - 1), ZERO) + k * c
    return {key: c for key, c in found.items() if c}


def _variations(total: Plain) -> int:
    signs = [total[key] > 0 for key in sorted(total)]
    return sum(a != b for a, b in itertools.pairwise(signs))


def _terms(total: Plain, x: float) -> list[float]:
    log = math.log(x)
    return [_float(c) * x ** (e if isinstance(e, int) else float(e)) * log**k for (e, k), c in total.items()]


def _decimals(total: Plain, x: Decimal) -> list[Decimal]:
    log = x.ln() if any(k for _, k in total) else Decimal(1)
    return [
        Decimal(c.numerator) / Decimal(c.denominator) * _power(x, e) * (log**k if k else 1)
        for (e, k), c in total.items()
    ]


def _power(x: Decimal, exponent: Exponent) -> Decimal:
    if isinstance(exponent, int):
        return x**exponent
    if exponent.denominator == 2:
        return x.sqrt() ** exponent.numerator
    return x ** (Decimal(exponent.numerator) / Decimal(exponent.denominator))


def _sign(number: Fraction | Decimal | int) -> int:
    return (number > 0) - (number < 0)


def _float(number: Fraction) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.copysign(math.inf, number)
