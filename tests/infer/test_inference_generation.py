"""A generation in closed form equals the sum over its steps, also where a term changes its bound inside the range."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st
from support.inference_cases import CASES, answers, make, names

from symperf.codegen.interpret import floats, run
from symperf.codegen.lower import lower
from symperf.formulas.mathematics.series import max_sum

seconds = st.one_of(st.just(0.0), st.floats(1e-12, 1e-3))
rationals = st.fractions(0, 10, max_denominator=50)


@given(st.integers(0, 40), st.integers(1, 60), rationals, rationals, rationals, rationals)
def test_max_sum_is_the_sum_of_the_larger_lines_exactly(
    count: int, start: int, a: Fraction, b: Fraction, c: Fraction, d: Fraction
) -> None:
    given_numbers = [sympy.Rational(x.numerator, x.denominator) for x in (a, b, c, d)]
    expected = sum((max(a + b * x, c + d * x) for x in range(start, start + count)), Fraction(0))
    assert max_sum(count, start, *given_numbers) == sympy.Rational(expected.numerator, expected.denominator)


PROGRAM = lower([], {"sum": max_sum(*sympy.symbols("count start a b c d"))})


@given(st.integers(0, 5000), st.integers(1, 100_000), seconds, seconds, seconds, seconds)
def test_max_sum_in_floats_is_right_to_1e_12(count: int, start: int, a: float, b: float, c: float, d: float) -> None:
    inputs = {"count": count, "start": start, "a": a, "b": b, "c": c, "d": d}
    found = run(PROGRAM, inputs, floats())[PROGRAM.outputs["sum"]]
    expected = math.fsum(max(a + b * x, c + d * x) for x in range(start, start + count))
    assert found == pytest.approx(expected, rel=1e-12, abs=1e-300)


def test_max_sum_crosses_where_the_lines_do() -> None:
    assert max_sum(10, 1, 5, 0, 0, 1) == 5 * 5 + 6 + 7 + 8 + 9 + 10
    assert max_sum(10, 1, 0, 1, 5, 0) == 5 * 5 + 6 + 7 + 8 + 9 + 10
    assert max_sum(3, 1, 2, 1, 2, 1) == 3 + 4 + 5
    assert max_sum(0, 1, 2, 1, 5, 0) == 0


def _explicit(answer: Any, prompt: int, generate: int) -> float:
    """Decode time as the sum of generations of two tokens, each of which has one step."""
    prompts = np.arange(prompt, prompt + generate - 1, dtype=float)
    return math.fsum(answers(answer, prompt=prompts, generate=np.full(generate - 1, 2.0))["decode"])


@given(names, st.integers(1, 1200), st.integers(2, 800), st.integers(1, 64), st.sampled_from([1, 2, 4]))
def test_a_generation_is_the_sum_of_its_steps(name: str, prompt: int, generate: int, batch: int, tp: int) -> None:
    answer = make(name, batch=batch, tp=tp, prompt=prompt, generate=generate)
    assert answer.value("decode") == pytest.approx(_explicit(answer, prompt, generate), rel=1e-12)


@given(st.integers(1, 500), st.integers(100, 2000), st.floats(0.001, 0.02))
def test_also_where_attention_turns_from_memory_to_compute_on_the_way(
    prompt: int, generate: int, efficiency: float
) -> None:
    answer = make(batch=8, prompt=prompt, generate=generate, attention_efficiency=efficiency)
    assert answer.value("decode") == pytest.approx(_explicit(answer, prompt, generate), rel=1e-12)


def test_such_a_turn_lies_inside_a_range_that_is_tried() -> None:
    bounds = set()
    for prompt in (1, 4000):
        answer = make(batch=8, prompt=prompt, generate=2, attention_efficiency=0.015, launch_latency=0, gap_latency=0)
        bounds |= {op.bound for op in answer.operations() if op.name == "layer/attention/flash" and op.count == 32}
    assert {"compute", "memory"} <= bounds


@given(names, st.integers(1, 1000), st.integers(2, 500), st.data())
def test_a_generation_may_be_cut_anywhere(name: str, prompt: int, generate: int, data: st.DataObject) -> None:
    cut = data.draw(st.integers(1, generate - 1))
    whole = make(name, prompt=prompt, generate=generate).value("decode")
    parts = [make(name, prompt=prompt, generate=cut + 1), make(name, prompt=prompt + cut, generate=generate - cut)]
    assert whole == pytest.approx(sum(part.value("decode") for part in parts), rel=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_one_generated_token_needs_no_step(name: str) -> None:
    answer = make(name, generate=1)
    assert answer.value("decode") == 0
    assert answer.value("time") == answer.value("prefill")
    assert answer.value("time_per_token") == pytest.approx(make(name, generate=2).value("decode"), rel=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_the_number_of_operations_does_not_depend_on_what_is_generated(name: str) -> None:
    assert len(make(name, generate=2).compiled.program) == len(make(name, generate=1500, prompt=5).compiled.program)
