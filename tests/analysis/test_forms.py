"""Exact sums of powers: arithmetic, and every sign change of one."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from symperf.analysis.forms import FormError, PowerQuotient, constant, monomial, plain
from symperf.analysis.roots import sign_at, sign_changes, value_at

fractions = st.fractions(-9, 9, max_denominator=8)
positive = st.fractions(Fraction(1, 20), 20, max_denominator=40)
exponents = st.sampled_from([-2, -1, Fraction(-1, 2), 0, Fraction(1, 2), 1, 2, 3])
sums = st.dictionaries(st.tuples(exponents, st.integers(0, 2)), fractions.filter(bool), min_size=1, max_size=6)


def form(total: dict[Any, Fraction]) -> PowerQuotient:
    return PowerQuotient({(e, k, ()): c for (e, k), c in total.items()})


def value(one: PowerQuotient, x: float) -> float:
    under = 1.0 if one.under is None else value_at(plain(one.under), x)
    return value_at(plain(one.over), x) / under if one.over else 0.0


def size(total: dict[Any, Fraction], x: float) -> float:
    return math.fsum(abs(float(c)) * x ** float(e) * abs(math.log(x)) ** k for (e, k), c in total.items())


@given(sums, sums, st.floats(0.1, 30))
def test_arithmetic_is_that_of_numbers(a: Any, b: Any, x: float) -> None:
    one, two = form(a), form(b)
    first, second = value(one, x), value(two, x)
    scale = size(a, x) + size(b, x)
    assert value(one + two, x) == pytest.approx(first + second, abs=1e-12 * scale)
    assert value(one - two, x) == pytest.approx(first - second, abs=1e-12 * scale)
    assert value(one * two, x) == pytest.approx(first * second, abs=1e-12 * size(a, x) * size(b, x))
    assume(abs(second) > 1e-6 * size(b, x))
    assert value(one / two, x) == pytest.approx(first / second, rel=1e-5, abs=1e-9 * size(a, x) / abs(second))
    assert value(one / two * two - one, x) == pytest.approx(0, abs=1e-9 * size(a, x))


@given(positive, exponents, st.floats(0.1, 30))
def test_roots_and_logarithms_of_one_power(c: Fraction, e: Any, x: float) -> None:
    one = monomial(c, e)
    number = float(c) * x ** float(e)
    assert value(one.sqrt(), x) == pytest.approx(math.sqrt(number), rel=1e-14)
    assert value(one.power(Fraction(3, 2)), x) == pytest.approx(number**1.5, rel=1e-13)
    assert value(one.log2(), x) == pytest.approx(math.log2(number), abs=1e-13)


def test_what_is_no_sum_of_powers_is_refused() -> None:
    both = monomial(1, 1) + constant(1)
    for refused in (both.sqrt, both.log2, lambda: both.power(Fraction(1, 3)), monomial(1, 1, (1,)).log2):
        with pytest.raises(FormError):
            refused()
    with pytest.raises(ZeroDivisionError):
        both / constant(0)


def test_tags_follow_the_factors() -> None:
    """A time of work / rate + bytes / bandwidth + latency is its resources' parts; a product of two times is not."""
    rate, bandwidth, latency = monomial(4, 0, (-1, 0)), monomial(1, 1, (0, -1)), monomial(3, 0, (0, 1))
    time = constant(8) / rate + constant(5) / bandwidth + latency
    compute, memory = time.parts(2) or []
    assert value(compute, 10) == 2
    assert value(memory, 10) == 3.5
    assert (time * time).parts(2) is None
    assert (rate / rate).number() == 1


@given(st.lists(positive, min_size=1, max_size=5), st.integers(-3, 2), st.fractions(1, 9), st.booleans())
def test_the_roots_of_a_product_are_found(roots: list[Fraction], shift: int, c: Fraction, negative: bool) -> None:
    """Those of odd multiplicity change the sign; they come out to the last bits."""
    product = monomial(-c if negative else c, shift)
    for root in roots:
        product = product * (monomial(1, 1) - constant(root))
    odd = sorted({float(root) for root in roots if roots.count(root) % 2})
    found = sign_changes(plain(product.over), 0.0, math.inf)
    assert found == pytest.approx(odd, rel=1e-14)
    inside = sign_changes(plain(product.over), 0.5, 10.0)
    assert inside == pytest.approx([x for x in found if 0.5 < x < 10], rel=1e-14)


@given(sums, st.floats(0.05, 1), st.floats(1.5, 50))
def test_no_sign_change_is_missed(total: Any, low: float, high: float) -> None:
    """Between the reported changes the sign stays, on a dense scan; at each it turns."""
    found = sign_changes(total, low, high)
    assert found == sorted(found)
    edges = [low, *found, high]
    signs = []
    for a, b in pairwise(edges):
        steps = [a + (b - a) * k / 41 for k in range(1, 41)]
        clear = [x for x in steps if abs(value_at(total, x)) > 1e-12 * size(total, x)]
        seen = {sign_at(total, x) for x in clear}
        assert len(seen) <= 1
        signs.append(seen.pop() if seen else 0)
    for before, after in pairwise(signs):
        assert not before or not after or before == -after


def test_signs_beyond_floats() -> None:
    """1 + 1e-30 - 1 is above zero, although floats say zero; and so are 1e400 and the ends."""
    tiny = {(1, 0): Fraction(1), (0, 0): Fraction(10**30 + 1, 10**30) - 2 + Fraction(0)}
    assert sign_at(tiny, 1.0) == 1
    assert sign_at({(200, 0): Fraction(1), (0, 0): Fraction(-1)}, 1e3) == 1
    assert sign_at({(1, 0): Fraction(-1), (0, 0): Fraction(5)}, math.inf) == -1
    assert sign_at({(0, 1): Fraction(1), (1, 0): Fraction(1)}, 0.0) == -1


@pytest.mark.parametrize(("exponent", "expected"), [(1, 3.0), (2, 3.0), (3, 3.0), (Fraction(1, 2), 9.0)])
def test_two_terms_have_a_closed_form(exponent: Any, expected: float) -> None:
    constant_term = {1: 3, 2: 9, 3: 27, Fraction(1, 2): 3}[exponent]
    total = {(exponent, 0): Fraction(1), (0, 0): Fraction(-constant_term)}
    assert sign_changes(total, 0.0, math.inf) == pytest.approx([expected], rel=1e-15)
    assert sign_changes(total, 0.0, expected) == []
    assert sign_changes(total, expected, math.inf) == []
