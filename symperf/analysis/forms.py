"""Exact functions of one variable: quotients of sums of powers of x and of ln x, with rational coefficients.

A sum is a dictionary from (exponent, power of ln x, tag) to a coefficient. The tag counts resources: a time that is
1 / bandwidth has one `memory` in it. Tags multiply and divide as the factors that they mark, so the part of a sum that
a resource is responsible for can be read off.
"""

from __future__ import annotations

import math
from fractions import Fraction

Exponent = int | Fraction
Tag = tuple[int, ...]
Sum = dict[tuple[Exponent, int, Tag], Fraction]
Plain = dict[tuple[Exponent, int], Fraction]
"""A sum without tags."""

ONE: Sum = {(0, 0, ()): Fraction(1)}
MOST_TERMS = 100
"""Of the two sums of a quotient together."""
VANISHES = 2.0**-54
"""A chance below this one is none: one less it is one, to a run's floats, and quotients stay whole that would not."""
PER_LN_2 = Fraction(1 / math.log(2.0))


class FormError(ValueError):
    """The result of an operation is no quotient of sums of powers."""


class PowerQuotient:
    """One exact function of x.

    Attributes:
        over: the numerator.
        under: the denominator, or nothing where it is 1.
    """

    __slots__ = ("over", "under")

    def __init__(self, over: Sum, under: Sum | None = None) -> None:
        self.over = over
        self.under = under

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PowerQuotient) and self.over == other.over and self.under == other.under

    __hash__ = None  # type: ignore[assignment]

    def __add__(self, other: PowerQuotient) -> PowerQuotient:
        if self.under == other.under:
            return PowerQuotient(_plus(self.over, other.over), self.under)
        mine, theirs = self.under or ONE, other.under or ONE
        return _reduce(_plus(_times(self.over, theirs), _times(other.over, mine)), _times(mine, theirs))

    def __sub__(self, other: PowerQuotient) -> PowerQuotient:
        return self + PowerQuotient({key: -c for key, c in other.over.items()}, other.under)

    def __mul__(self, other: PowerQuotient) -> PowerQuotient:
        under = other.under if self.under is None else self.under
        if self.under is not None and other.under is not None:
            under = _times(self.under, other.under)
        return _reduce(_times(self.over, other.over), under)

    def __truediv__(self, other: PowerQuotient) -> PowerQuotient:
        if not other.over:
            raise ZeroDivisionError("division by a cost that is zero")
        if other.under is None and len(other.over) == 1:
            return PowerQuotient(_times(self.over, _inverse(other.over)), self.under)
        over = self.over if other.under is None else _times(self.over, other.under)
        under = other.over if self.under is None else _times(self.under, other.over)
        return _reduce(over, under)

    def number(self) -> Fraction | None:
        """Its value, where it is the same for every x and holds no resource."""
        if self.under is not None:
            return None
        if not self.over:
            return Fraction(0)
        return self.over.get((0, 0, ())) if len(self.over) == 1 else None

    def sqrt(self) -> PowerQuotient:
        """Its square root.

        Raises:
            FormError: it is not a single power of x.
        """
        return self.power(Fraction(1, 2))

    def power(self, exponent: Fraction) -> PowerQuotient:
        """It to a power.

        Raises:
            FormError: it is not a single power of x, and the exponent is no small whole number.
        """
        if exponent == 0:
            return constant(1)
        number = self.number()
        if number is not None and 0 < number < 1 and float(number) ** float(exponent) < VANISHES:
            return constant(0)
        if exponent.denominator == 1 and 0 < exponent <= 16:
            result = self
            for _ in range(int(exponent) - 1):
                result = result * self
            return result
        ((e, k, tag), c), *rest = self.over.items() or [((0, 0, ()), Fraction(0))]
        if rest or self.under is not None or k or c < 0 or any((t * exponent).denominator != 1 for t in tag):
            raise FormError(f"a power {exponent} of a sum")
        if not c:
            return constant(0)
        return PowerQuotient({(_whole(e * exponent), 0, tuple(int(t * exponent) for t in tag)): _power(c, exponent)})

    def log2(self) -> PowerQuotient:
        """Its logarithm to base two.

        Raises:
            FormError: it is not a single power of x, or it is zero or holds a resource.
        """
        if self.under is not None or len(self.over) != 1:
            raise FormError("a logarithm of a sum")
        ((e, k, tag), c), *_ = self.over.items()
        if k or tag or c <= 0:
            raise FormError("a logarithm of a rate or of a logarithm")
        parts = {(0, 0, ()): Fraction(math.log2(c)), (0, 1, ()): e * PER_LN_2}
        return PowerQuotient({key: value for key, value in parts.items() if value})

    def parts(self, count: int) -> list[PowerQuotient] | None:
        """What each of `count` resources is responsible for, by Euler's theorem.

        Returns:
            One form per resource; nothing where the function is not homogeneous of degree one in them.
        """
        if self.under is not None and any(tag for _, _, tag in self.under):
            return None
        found: list[Sum] = [{} for _ in range(count)]
        for (e, k, tag), c in self.over.items():
            if sum(tag) != 1:
                return None
            for which, degree in enumerate(tag):
                if degree:
                    found[which][e, k, tag] = c * degree
        return [PowerQuotient(part, self.under) for part in found]


def constant(value: float | Fraction) -> PowerQuotient:
    """The function that is the same number everywhere."""
    exact = Fraction(value)
    return PowerQuotient({(0, 0, ()): exact} if exact else {})


def monomial(coefficient: float | Fraction, exponent: Exponent, tag: Tag = ()) -> PowerQuotient:
    """`coefficient * x ** exponent`, of a resource where `tag` says so."""
    exact = Fraction(coefficient)
    return PowerQuotient({(exponent, 0, tag): exact} if exact else {})


def plain(total: Sum) -> Plain:
    """A sum without its tags.

    >>> plain({(1, 0, (1, 0)): Fraction(2), (1, 0, (0, 1)): Fraction(3)})
    {(1, 0): Fraction(5, 1)}
    """
    found: Plain = {}
    for (e, k, _), c in total.items():
        found[e, k] = found.get((e, k), Fraction(0)) + c
    return {key: c for key, c in found.items() if c}


def _plus(a: Sum, b: Sum) -> Sum:
    if not a or not b:
        return a or b
    found = dict(a)
    for key, c in b.items():
        known = found.get(key)
        total = c if known is None else known + c
        if total:
            found[key] = total
        else:
            del found[key]
    return found


def _times(a: Sum, b: Sum) -> Sum:
    if a is ONE or b is ONE:
        return b if a is ONE else a
    if len(a) == 1 == len(b):
        (((e, k, tag), c),), (((f, n, other), d),) = a.items(), b.items()
        return {(e + f, k + n, _join_tags(tag, other)): c * d}
    found: Sum = {}
    for (e, k, tag), c in a.items():
        for (f, n, other), d in b.items():
            key = (e + f, k + n, _join_tags(tag, other))
            found[key] = found[key] + c * d if key in found else c * d
    return {key: c for key, c in found.items() if c}


def _join_tags(a: Tag, b: Tag) -> Tag:
    if not a or not b:
        return a or b
    both = tuple(x + y for x, y in zip(a, b, strict=True))
    return both if any(both) else ()


def _inverse(single: Sum) -> Sum:
    ((e, k, tag), c), *_ = single.items()
    return {(-e, -k, tuple(-t for t in tag)): 1 / c}


def _reduce(over: Sum, under: Sum | None) -> PowerQuotient:
    """A quotient whose denominator is not a single power."""
    if under is not None and len(under) == 1:
        return PowerQuotient(_times(over, _inverse(under)))
    if under is not None and over == under:
        return constant(1)
    if under is not None and len(over) + len(under) > MOST_TERMS:
        raise FormError("a quotient of sums of too many terms")
    return PowerQuotient(over, under) if over else PowerQuotient({})


def _whole(exponent: Exponent) -> Exponent:
    return int(exponent) if exponent == int(exponent) else exponent


def _power(c: Fraction, exponent: Fraction) -> Fraction:
    """An exact power where there is one, else the nearest float's."""
    if exponent.denominator == 2:
        top, bottom = math.isqrt(c.numerator), math.isqrt(c.denominator)
        if top * top == c.numerator and bottom * bottom == c.denominator:
            return Fraction(top, bottom) ** exponent.numerator
    return Fraction(float(c) ** float(exponent))
