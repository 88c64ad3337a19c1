"""Sums of monomials: the shape to which the active branches of a cost are brought, without SymPy's `simplify`.

A monomial is a set of (generator, exponent) pairs; generators are symbols and those atoms that stay as they are. Each
monomial has two coefficients: the exact one, and the one without the roundings up that were made numbers.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import sympy

Number = Fraction | float
Power = Fraction | int
"""Exponents are integers where they are whole."""
Monomial = frozenset[tuple[Any, Power]]
Sum = dict[Monomial, tuple[Number, Number]]

ONE: Monomial = frozenset()
UNIT = Fraction(1)
LARGEST_POWER = 4
"""Powers of sums are multiplied out up to this one."""


def constant(number: Number) -> Sum:
    """A number as a sum; nothing where it is 0."""
    return {ONE: (number, number)} if number else {}


def generator(expr: Any, exponent: Power = 1) -> Sum:
    """A symbol or an atom, to a power."""
    return {frozenset({(expr, exponent)}): (UNIT, UNIT)}


def whole(exponent: Fraction) -> Power:
    """An exponent as an integer where it is one."""
    return int(exponent) if exponent.denominator == 1 else exponent


def number(value: Any) -> Number:
    """A Python or SymPy number, exact where it is rational; a whole float counts as exact.

    >>> number(2.0), number(0.5), number(sympy.Rational(1, 3))
    (Fraction(2, 1), 0.5, Fraction(1, 3))
    """
    if isinstance(value, sympy.Rational):
        return Fraction(int(value.p), int(value.q))
    found = float(value)
    return Fraction(int(found)) if found.is_integer() and abs(found) < 2**53 else found


def add(*sums: Sum) -> Sum:
    """The sum of sums; what cancels is gone."""
    found: Sum = {}
    for each in sums:
        for monomial, (exact, smooth) in each.items():
            before = found.get(monomial)
            if before is not None:
                total = before[0] + exact
                same = before[0] is before[1] and exact is smooth
                exact, smooth = total, total if same else before[1] + smooth
            found[monomial] = (exact, smooth)
    return {monomial: pair for monomial, pair in found.items() if pair[0]}


def multiply(left: Sum, right: Sum) -> Sum:
    """The product of two sums, multiplied out."""
    found: list[Sum] = [{_join(one, other): _times(a, b)} for one, a in left.items() for other, b in right.items()]
    return found[0] if len(found) == 1 else add(*found)


def power(base: Sum, exponent: Power) -> Sum | None:
    """A sum to a power, or None where that is no sum of monomials."""
    if len(base) == 1:
        ((monomial, (exact, smooth)),) = base.items()
        raised = frozenset((each, whole(Fraction(of * exponent))) for each, of in monomial)
        risen = _raise(exact, exponent)
        return {raised: (risen, risen if exact is smooth else _raise(smooth, exponent))}
    if exponent.denominator != 1 or not 0 < exponent <= LARGEST_POWER:
        return None
    found = base
    for _ in range(int(exponent) - 1):
        found = multiply(found, base)
    return found


def rounded(pair: tuple[Number, Number]) -> tuple[Number, float]:
    """The coefficient without roundings and the factor by which they raise it.

    Where parts cancel, what is left of them may be rounding alone, or have changed its sign: no factor gives that, and
    the exact coefficient stands by itself.

    >>> rounded((6, 4)), rounded((-1, 0))
    ((4, 1.5), (-1, 1.0))
    """
    exact, smooth = pair
    factor = float(exact / smooth) if smooth else 0.0
    return (smooth, factor) if factor > 0 else (exact, 1.0)


def product(monomial: Monomial) -> Any:
    """A monomial as a SymPy expression."""
    return sympy.Mul(*(each ** sympy.Rational(of.numerator, of.denominator) for each, of in monomial))


def exact_number(value: Number) -> Any:
    """A coefficient as a SymPy number."""
    if isinstance(value, Fraction):
        return sympy.Rational(value.numerator, value.denominator)
    return sympy.Float(value, 17)


def expression(found: Sum) -> Any:
    """A sum of monomials as a SymPy expression."""
    return sympy.Add(*(exact_number(exact) * product(monomial) for monomial, (exact, _) in found.items()))


def _join(one: Monomial, other: Monomial) -> Monomial:
    if not one or not other:
        return one or other
    found = dict(one)
    for each, of in other:
        found[each] = found[each] + of if each in found else of
    return frozenset((each, of) for each, of in found.items() if of)


def _times(one: tuple[Number, Number], other: tuple[Number, Number]) -> tuple[Number, Number]:
    """The product of both coefficients, once where they are the same."""
    exact = one[0] * other[0]
    return exact, exact if one[0] is one[1] and other[0] is other[1] else one[1] * other[1]


def _raise(base: Number, exponent: Power) -> Number:
    if isinstance(base, Fraction) and exponent.denominator == 1:
        return base ** int(exponent)
    return number(float(base) ** float(exponent)) if base != 1 else Fraction(1)
