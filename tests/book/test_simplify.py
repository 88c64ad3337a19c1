"""Simpler forms for display: what the rules are for, and that no value ever changes."""

from __future__ import annotations

from typing import Any

import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st
from support.effort import some
from support.oracle import sample

from symperf.book.simplify import is_at_least_one, is_at_most, is_non_negative, is_positive, is_whole, simplified
from symperf.formulas.language.atoms import Max, Min, above_one, ceil_div, complement, less_one, ring_share
from symperf.formulas.language.symbols import (
    batch,
    dp,
    matrix_efficiency,
    overlap,
    pp,
    sequence,
    strip_units,
    tp,
    traffic_bytes,
)
from symperf.formulas.mathematics.series import excess
from symperf.formulas.registry import load

FORMULAS = load()


@pytest.mark.parametrize(
    ("expr", "simpler"),
    [
        (above_one(1 + above_one(pp)), above_one(pp)),
        (above_one(1 + 3 * above_one(pp)), above_one(pp)),
        (above_one(above_one(1 + above_one(pp)) + 1), above_one(pp)),
        (above_one(Max(1, traffic_bytes)), above_one(traffic_bytes)),
        (above_one(pp) ** 2, above_one(pp)),
        (Max(1, tp * pp), tp * pp),
        (Max(1, ceil_div(batch, dp)), ceil_div(batch, dp)),
        (Max(1, batch / dp), Max(1, batch / dp)),
        (Min(1, tp), sympy.S.One),
        (Max(0, traffic_bytes), traffic_bytes),
        (Max(traffic_bytes, traffic_bytes * tp), traffic_bytes * tp),
        (Max(traffic_bytes, traffic_bytes * above_one(tp)), traffic_bytes),
        (Max(traffic_bytes, traffic_bytes + overlap), traffic_bytes + overlap),
        (ceil_div(batch * sequence, 1), batch * sequence),
        (ceil_div(batch * tp, tp), batch),
        (ceil_div(1, tp), sympy.S.One),
        (ceil_div(batch, tp), ceil_div(batch, tp)),
        (ceil_div(traffic_bytes, 1), ceil_div(traffic_bytes, 1)),
        (less_one(tp) + 1, tp),
        (2 * less_one(tp) + 3, 2 * tp + 1),
        (less_one(tp + 1), tp),
        (complement(complement(overlap)), overlap),
        (excess(batch, tp), Max(0, batch - tp)),
        (traffic_bytes * excess(batch, tp), traffic_bytes * Max(0, batch - tp)),
    ],
    ids=str,
)
def test_what_nobody_would_write(expr: Any, simpler: Any) -> None:
    assert simplified(expr) == simpler


counts = st.sampled_from([batch, tp, pp, sequence, sympy.S.One, sympy.Integer(2)])
leaves = st.one_of(
    counts, st.sampled_from([overlap, matrix_efficiency, traffic_bytes, sympy.S.Zero, sympy.Rational(1, 3)])
)


def _nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    pairs, several = st.tuples(inner, inner), st.lists(inner, min_size=2, max_size=3)
    at_least_one = inner.map(lambda part: part + 1)
    return st.one_of(
        several.map(lambda parts: sympy.Add(*parts)),
        several.map(lambda parts: sympy.Mul(*parts)),
        several.map(lambda parts: Max(*parts)),
        several.map(lambda parts: Min(*parts)),
        pairs.map(lambda pair: pair[0] / (pair[1] + 1)),
        st.tuples(inner, st.one_of(counts, at_least_one)).map(lambda pair: ceil_div(*pair)),
        inner.map(above_one),
        st.tuples(inner, st.integers(1, 3)).map(lambda pair: pair[1] * above_one(pair[0]) + 1),
        at_least_one.map(less_one),
        st.tuples(counts, st.integers(1, 3)).map(lambda pair: pair[1] * less_one(pair[0]) + pair[1]),
        at_least_one.map(ring_share),
        st.one_of(st.just(overlap), inner.map(above_one)).map(complement),
        pairs.map(lambda pair: (pair[0] + 1) * complement(Min(1, (pair[1] + 1) / (pair[0] + 1)))),
    )


expressions = st.recursive(leaves, _nested, max_leaves=12)


def exact_points(expr: Any) -> list[dict[Any, Any]]:
    """Points of the domains, with their edges, as exact numbers."""
    points = sample(expr.free_symbols, seed=3, size=12, decades=1.0)
    return [{symbol: sympy.Rational(float(array[k])) for symbol, array in points.items()} for k in range(12)]


@given(expr=expressions)
def test_no_value_changes(expr: Any) -> None:
    found = simplified(expr)
    assert found.free_symbols <= expr.free_symbols
    for point in exact_points(expr):
        assert found.xreplace(point) == expr.xreplace(point), (expr, found, point)


@given(expr=expressions, other=expressions)
def test_what_is_proved_holds(expr: Any, other: Any) -> None:
    for point in exact_points(expr + other):
        value, high = expr.xreplace(point), other.xreplace(point)
        assert not is_whole(expr) or value.is_integer
        assert not is_at_least_one(expr) or value >= 1
        assert not is_positive(expr) or value > 0
        assert not is_non_negative(expr) or value >= 0
        assert not is_at_most(expr, other) or value <= high


@pytest.mark.parametrize("name", some(FORMULAS, 0.25))
def test_no_formula_changes(name: str) -> None:
    expr = strip_units(FORMULAS[name].expression)
    assert simplified(simplified(expr)) == simplified(expr)
