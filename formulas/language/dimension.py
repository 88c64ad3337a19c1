"""What a quantity is measured in, and a checker that refuses a sum of unlike things.

A dimension is the exponents of second, byte, FLOP, joule, dollar, metre, volt and kilogram. Counts (tokens, layers,
ranks) are dimensionless. `sympy.physics.units` is not used: it lets `second + byte` pass and takes `Max` as
dimensionless.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import sympy

UNITS = ("s", "B", "FLOP", "J", "$", "m", "V", "kg")


class DimensionError(TypeError):
    """An expression adds, compares or rounds quantities of unlike dimension."""


@dataclass(frozen=True)
class Dimension:
    """Exponents of (second, byte, FLOP, joule, dollar, metre, volt, kilogram).

    >>> str(BYTE / SECOND), str(ONE), str((FLOP / SECOND) ** -1)
    ('B/s', '1', 's/FLOP')
    """

    exponents: tuple[Fraction, ...]

    def __mul__(self, other: Dimension) -> Dimension:
        return Dimension(tuple(a + b for a, b in zip(self.exponents, other.exponents, strict=True)))

    def __truediv__(self, other: Dimension) -> Dimension:
        return self * other**-1

    def __pow__(self, exponent: int | Fraction) -> Dimension:
        return Dimension(tuple(a * exponent for a in self.exponents))

    def __str__(self) -> str:
        over = [_power(u, e) for u, e in zip(UNITS, self.exponents, strict=True) if e > 0]
        under = [_power(u, -e) for u, e in zip(UNITS, self.exponents, strict=True) if e < 0]
        return "*".join(over or ["1"]) + "".join(f"/{u}" for u in under)


def _power(unit: str, exponent: Fraction) -> str:
    return unit if exponent == 1 else f"{unit}^{exponent}"


def _base(index: int) -> Dimension:
    return Dimension(tuple(Fraction(int(i == index)) for i in range(len(UNITS))))


ONE = Dimension((Fraction(0),) * len(UNITS))
SECOND, BYTE, FLOP, JOULE, DOLLAR, METRE, VOLT, KILOGRAM = (_base(i) for i in range(len(UNITS)))
RATE = FLOP / SECOND
BANDWIDTH = BYTE / SECOND
POWER = JOULE / SECOND
AREA = METRE**2


def dimension_of(expr: Any, known: dict[sympy.Symbol, Dimension]) -> Dimension:
    """The dimension of `expr`, given those of its symbols.

    Rules: the terms of a sum, and the arguments of a maximum or minimum, agree; a product adds exponents; a power
    has a rational exponent; every other function is an atom that states its own rule.

    Raises:
        DimensionError: the expression does not add up, or holds a symbol or function without a dimension.

    >>> x, y = sympy.symbols("x y")
    >>> dimension_of(x + y, {x: SECOND, y: BYTE})
    Traceback (most recent call last):
    ...
    symperf.formulas.language.dimension.DimensionError: sum of s and B: x + y

    """
    return _dimension(sympy.sympify(expr, strict=True), known, {})


def _dimension(expr: Any, known: dict[sympy.Symbol, Dimension], memo: dict[sympy.Basic, Dimension]) -> Dimension:
    if expr in memo:
        return memo[expr]
    if expr.is_Number:
        result = ONE
    elif expr.is_Symbol:
        if expr not in known:
            raise DimensionError(f"symbol {expr} has no dimension")
        result = known[expr]
    elif expr.is_Pow:
        base = _dimension(expr.base, known, memo)
        if not expr.exp.is_Rational:
            raise DimensionError(f"exponent {expr.exp} is not a rational number: {expr}")
        result = base ** Fraction(int(expr.exp.p), int(expr.exp.q))
    else:
        parts = [_dimension(arg, known, memo) for arg in expr.args]
        if expr.is_Add:
            result = alike(parts, "sum", expr)
        elif expr.is_Mul:
            result = ONE
            for part in parts:
                result = result * part
        elif hasattr(expr, "dimension"):
            result = expr.dimension(parts)
        else:
            raise DimensionError(f"{expr.func.__name__} states no dimension rule: {expr}")
    memo[expr] = result
    return result


def alike(parts: list[Dimension], what: str, expr: Any) -> Dimension:
    """The common dimension of `parts`.

    Raises:
        DimensionError: two of them differ.

    """
    for part in parts[1:]:
        if part != parts[0]:
            text = str(expr)
            raise DimensionError(f"{what} of {parts[0]} and {part}: {text if len(text) < 200 else text[:200] + '...'}")
    return parts[0]
