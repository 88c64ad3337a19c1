"""The dimension checker accepts what adds up, gives its dimension, and refuses the rest with the reason."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st
from support.strategies import exponents

from symperf.formulas.language.atoms import (
    ATOMS,
    Max,
    Min,
    above_one,
    bubble,
    ceil_div,
    complement,
    less_one,
    log2,
    ring_share,
)
from symperf.formulas.language.dimension import (
    BANDWIDTH,
    BYTE,
    DOLLAR,
    FLOP,
    JOULE,
    ONE,
    RATE,
    SECOND,
    Dimension,
    DimensionError,
    dimension_of,
)
from symperf.formulas.language.symbols import SYMBOLS, dimensions

seconds, more_seconds, size, work, count = sympy.symbols("seconds more_seconds size work count")
KNOWN = {seconds: SECOND, more_seconds: SECOND, size: BYTE, work: FLOP, count: ONE}


def of(expr: Any) -> Dimension:
    return dimension_of(expr, KNOWN)


@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        (sympy.Integer(3), ONE),
        (size / seconds, BANDWIDTH),
        (work / seconds + 2 * work / more_seconds, RATE),
        (sympy.sqrt(size) * sympy.sqrt(size), BYTE),
        (size ** sympy.Rational(3, 2) / sympy.sqrt(size), BYTE),
        (Max(seconds, 2 * more_seconds), SECOND),
        (Min(size, size * count), BYTE),
        (Max(1, count), ONE),
        (ceil_div(size, 3 * size * count), ONE),
        (seconds * log2(count) * ring_share(count) * bubble(count, count), SECOND),
        (size * less_one(count) * complement(count) * above_one(count), BYTE),
    ],
)
def test_what_adds_up_has_its_dimension(expr: Any, expected: Dimension) -> None:
    """Sums and extrema keep the common dimension, products add exponents, counts of atoms are dimensionless."""
    assert of(expr) == expected


@pytest.mark.parametrize(
    ("expr", "reason"),
    [
        (seconds + size, "sum of "),
        (seconds + 1, "sum of "),
        (Max(seconds, size), "maximum of "),
        (Min(seconds, count), "minimum of "),
        (seconds * (count + size), "sum of "),
        (ceil_div(size, seconds), "ratio of B and s"),
        (log2(size), "log2 of a quantity in B"),
        (ring_share(size), "ring_share of a quantity in B"),
        (less_one(seconds), "less_one of a quantity in s"),
        (complement(seconds), "complement of a quantity in s"),
        (above_one(size), "above_one of a quantity in B"),
        (bubble(count, seconds), "bubble of a quantity in s"),
        (count**seconds, "exponent seconds is not a rational number"),
        (size**sympy.pi, "exponent pi is not a rational number"),
        (sympy.Symbol("other"), "symbol other has no dimension"),
        (sympy.exp(count), "exp states no dimension rule"),
        (sympy.Max(size, work), "Max states no dimension rule"),
    ],
)
def test_what_does_not_add_up_is_refused_with_the_reason(expr: Any, reason: str) -> None:
    """A mixture of quantities is an error that names the operation."""
    with pytest.raises(DimensionError, match=reason):
        of(expr)


def test_a_long_sum_is_cut_in_the_message() -> None:
    """The message of a long expression stays readable."""
    with pytest.raises(DimensionError) as caught:
        of(size + sum(seconds**2 * sympy.Symbol(f"count_{i}") for i in range(0)) + seconds * sympy.Integer(10) ** 300)
    assert len(str(caught.value)) < 250
    assert str(caught.value).endswith("...")


units = st.sampled_from([SECOND, BYTE, FLOP, JOULE, DOLLAR])
products = st.lists(st.tuples(units, st.fractions(-3, 3, max_denominator=4)), max_size=4).map(
    lambda factors: _product([unit**power for unit, power in factors])
)


def _product(factors: list[Dimension]) -> Dimension:
    result = ONE
    for factor in factors:
        result = result * factor
    return result


@given(products, products, st.fractions(-3, 3, max_denominator=4))
def test_dimensions_are_an_abelian_group(one: Dimension, two: Dimension, power: Fraction) -> None:
    """Multiplication commutes, division undoes it, powers distribute."""
    assert one * two == two * one
    assert one * two / two == one
    assert (one * two) ** power == one**power * two**power
    assert one**0 == ONE


@given(st.sampled_from(sorted(SYMBOLS)), st.sampled_from(sorted(SYMBOLS)), exponents)
def test_products_of_symbols_have_the_product_of_their_dimensions(one: str, two: str, power: Any) -> None:
    """The checker agrees with arithmetic on dimensions, whatever the symbols."""
    first, second = SYMBOLS[one], SYMBOLS[two]
    expected = first.dimension * second.dimension ** Fraction(int(power.p), int(power.q))
    assert dimension_of(3 * first.symbol * second.symbol**power, dimensions()) == expected


def test_text_of_a_dimension() -> None:
    """Numerators come first, each divisor with its own slash."""
    assert str(ONE) == "1"
    assert str(BANDWIDTH) == "B/s"
    assert str(ONE / SECOND**2) == "1/s^2"
    assert str(JOULE * BYTE / FLOP) == "B*J/FLOP"


@pytest.mark.parametrize("atom", ATOMS, ids=lambda atom: atom.__name__)
def test_every_atom_states_a_rule(atom: Any) -> None:
    """No atom of the language is refused on counts."""
    args = sympy.symbols("a b")[: 2 if atom in (Max, Min) or atom.nargs == sympy.FiniteSet(2) else 1]
    assert dimension_of(atom(*args), dict.fromkeys(args, ONE)) == ONE
