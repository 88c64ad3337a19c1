"""Asymptotics: exponents and leading terms, against the time far out."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support.analysis_cases import REAL, made, output_at, subject_at, subject_of_formula
from support.law_cases import few, regimes, some
from support.run_cases import each_run
from support.strategies import seeds

from symperf.analysis.limits import limit_of, towards
from symperf.common.errors import InputError
from symperf.formulas.language.atoms import ceil_div, log2
from symperf.formulas.language.symbols import matrix_rate, ranks, sequence


@given(some, seeds, regimes, st.sampled_from(REAL), st.booleans())
@few
def test_the_leading_term_is_what_is_left_far_out(
    name: str, seed: int, regime: str, symbol: str, at_zero: bool
) -> None:
    """At 1e-60 or 1e60 the time is its leading term to 1e-9, in any structure."""
    subject = subject_at(name, seed, regime)
    assume(symbol in subject.program.inputs)
    end = 0.0 if at_zero else math.inf
    limit = limit_of(subject, towards(subject, subject.forms(symbol=symbol), end), end)
    x = 1e-60 if at_zero else 1e60
    expected = limit.coefficient * x ** float(limit.exponent) * math.log2(x) ** limit.logs
    assert output_at(subject, symbol, [x])[0] == pytest.approx(expected, rel=1e-9)


@each_run
def test_known_exponents(name: str) -> None:
    """The square of the sequence, and one over a rate that runs dry; no rate helps for ever."""
    run = made(name)
    assert run.asymptotics("sequence").at_infinity.exponent == 2  # type: ignore[union-attr]
    assert run.asymptotics("batch").at_infinity.exponent == 1  # type: ignore[union-attr]
    for rate in ("memory_bandwidth", "matrix_rate"):
        found = run.asymptotics(rate)
        assert found.at_zero is not None
        assert found.at_infinity is not None
        assert found.at_zero.exponent == -1
        assert found.at_zero.limit is None
        assert found.at_infinity.exponent == 0
        assert found.at_infinity.limit == pytest.approx(run.bind(**{rate: 1e16}).value("time"), rel=0.02)
        assert found.at_zero.bound == ("memory" if rate == "memory_bandwidth" else "compute")


def test_ends_that_a_symbol_does_not_have() -> None:
    """A whole number does not go to zero, nor a fraction to infinity."""
    run = made("gpt")
    assert run.asymptotics("sequence").at_zero is None
    assert run.asymptotics("overlap_tp").at_infinity is None
    told = run.asymptotics("memory_bandwidth").to_dict()
    assert json.loads(json.dumps(told))["at_zero"]["exponent"] == -1.0
    assert "memory_bandwidth^-1 as memory_bandwidth -> 0" in str(run.asymptotics("memory_bandwidth"))
    with pytest.raises(InputError, match="time does not depend on workspace_bytes"):
        run.asymptotics("workspace_bytes")


def test_other_quantities_have_limits_too() -> None:
    run = made("llama")
    found = run.asymptotics("memory_bandwidth", of="mfu")
    assert found.at_zero is not None
    assert found.at_zero.exponent == 1
    assert found.at_zero.limit == 0.0
    memory = run.asymptotics("sequence", of="memory").at_infinity
    assert memory is not None
    assert memory.exponent == 1
    assert memory.bound == "activations"


def test_logarithms_and_roundings() -> None:
    subject = subject_of_formula(3 * log2(ranks) * ranks + ranks, {"ranks": 2})
    limit = limit_of(subject, towards(subject, subject.forms(symbol="ranks"), math.inf), math.inf)
    assert (limit.exponent, limit.logs, limit.coefficient) == (Fraction(1), 1, pytest.approx(3))
    assert limit.leading("ranks") == "3 ranks log2(ranks)"
    rounded = subject_of_formula(ceil_div(5, matrix_rate) + ceil_div(sequence, 4), {"matrix_rate": 1, "sequence": 9})
    limit = limit_of(rounded, towards(rounded, rounded.forms(symbol="matrix_rate"), math.inf), math.inf)
    assert limit.limit == 1 + 3  # the quotient is just above zero, and rounds up to one
    limit = limit_of(rounded, towards(rounded, rounded.forms(symbol="matrix_rate"), 0.0), 0.0)
    assert (limit.exponent, limit.coefficient) == (-1, 5)
