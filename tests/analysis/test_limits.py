"""Asymptotics: exponents and leading terms, against the time far out."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import pytest
import sympy
from hypothesis import assume, given
from hypothesis import strategies as st
from support.analysis_cases import REAL, made, output_at, subject_at, subject_of_formula
from support.effort import some as a_part
from support.law_cases import few, regimes, some
from support.run_cases import each_run
from support.strategies import seeds

import symperf as sf
from symperf.analysis.forms import constant, monomial
from symperf.analysis.limits import leading, limit_along, limit_of, power_towards, towards
from symperf.analysis.subject import subject_of
from symperf.common.errors import InputError
from symperf.formulas.language.atoms import ceil_div, log2
from symperf.formulas.language.symbols import SYMBOLS, matrix_rate, ranks, sequence


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
    assert "towards none of it, it grows as 1 / β (memory)" in run.asymptotics("memory_bandwidth").sentence
    with pytest.raises(InputError, match="limits: time does not depend on workspace_bytes"):
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


CLOSED = (
    ("gpt", "batch", "time"),
    ("gpt", "memory_bandwidth", "time"),
    ("gpt", "sequence", "memory"),
    ("llama", "scale_out_bandwidth", "time"),
    ("llama", "matrix_rate", "layer/mlp"),
    ("one device", "sequence", "time"),
)


@pytest.mark.parametrize(("name", "symbol", "of"), a_part(CLOSED, 0.5))
def test_the_leading_term_in_symbols_is_its_number(name: str, symbol: str, of: str) -> None:
    """At both ends the closed form has the value of the exact coefficient, and holds no more symbols than the run."""
    run = made(name)
    found = run.asymptotics(symbol, of)
    for limit in (found.at_infinity, found.at_zero):
        if limit is None:
            continue
        form = limit.closed_form()
        assert form is not None
        x = 7.0
        at = {each: x if each.name == symbol else run.bound[each.name][0] for each in form.free_symbols}
        expected = limit.coefficient * x ** float(limit.exponent) * math.log2(x) ** limit.logs
        assert float(form.evalf(subs=at)) == pytest.approx(expected, rel=1e-9)
        assert sum(each.share for each in limit.monomials or ()) == pytest.approx(1.0, rel=1e-9)


def test_attention_grows_as_the_square_and_products_as_the_textbook_says() -> None:
    """2 b L s^2 h of a causal prefill in half of 4; 72 B L s h^2 of a step with rounding told as a factor."""
    model, system = sf.Model.load("llama-2-7b"), sf.System.load("h100-sxm")
    prefill = sf.inference(model, system, sf.Plan(), batch=1, prompt=512, generate=2, stack="tensorrt-llm")
    found = prefill.asymptotics("prompt", "prefill").at_infinity
    assert found is not None
    assert found.exponent == 2
    assert found.monomials is not None
    sym = SYMBOLS
    names = ("hidden_size", "num_layers", "batch", "tp", "pp", "dp", "attention_rate", "attention_efficiency")
    h, layers, b, t, p, d, rate, part = (sym[name].symbol for name in names)
    assert sympy.simplify(found.monomials[0].expr - 2 * h * layers * b / (t * p * d * rate * part)) == 0
    gpt = sf.training(
        sf.Model.load("gpt3-175b"), sf.System.load("a100-80gb-sxm"), sf.Plan(tp=8, pp=8), batch=64, sequence=2048
    )
    largest = gpt.asymptotics("batch").main.monomials
    assert largest is not None
    assert largest[0].expr.as_coeff_Mul()[0] == 72
    assert largest[0].rounding == pytest.approx(1.094, abs=5e-4)
    assert largest[0].resource == "compute"


@pytest.mark.parametrize(("symbol", "last"), [("tp", 96), ("sequence", 2048), ("pp", 96)])
def test_whole_numbers_end_where_the_run_refuses_more(symbol: str, last: int) -> None:
    """A degree ends at what it divides, a sequence at the learned positions: the answer says so."""
    gpt = sf.training(sf.Model.load("gpt3-175b"), sf.System.load("a100-80gb-sxm"), sf.Plan(), batch=96, sequence=1024)
    found = gpt.asymptotics(symbol)
    assert found.extremes.high == last
    assert found.last == pytest.approx(gpt.bind(**{symbol: last}).value("time"), rel=1e-12)
    assert f"{symbol} ends at {last}" in found.sentence
    assert found.to_dict()["largest_legal"] == last
    with pytest.raises(InputError):
        gpt.bind(**{symbol: last + 1})


@pytest.mark.parametrize(
    ("symbol", "of", "values"),
    [
        ("memory_bandwidth", "time", [1e9, 1e11, 1e12, 5e12, 1e14, 1e16]),
        ("tp", "time", [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 96]),
        ("micro_batch", "mfu", [1, 2, 4, 8, 16, 32, 64]),
        ("overlap_dp", "time", [0.0, 0.25, 1.0]),
    ],
)
def test_extremes_are_not_passed_by_any_legal_value(symbol: str, of: str, values: list[float]) -> None:
    plan = sf.Plan(dp=2, tp=2, sequence_parallel=False)
    gpt = sf.training(sf.Model.load("gpt3-175b"), sf.System.load("a100-80gb-sxm"), plan, batch=128, sequence=2048)
    found = gpt.asymptotics(symbol, of)
    seen = []
    for value in values:
        try:
            seen.append(gpt.bind(**{symbol: value}).value(of))
        except InputError:
            continue
    low, high = found.extremes.lowest, found.extremes.highest
    assert low.value is not None
    assert low.value <= min(seen) * (1 + 1e-12)
    assert high.value is None or high.value >= max(seen) * (1 - 1e-12)
    for extreme in (low, high):
        if extreme.at is not None:
            other = gpt.bind(**{symbol: int(extreme.at) if isinstance(values[0], int) else extreme.at})
            assert other.value(of) == pytest.approx(extreme.value, rel=1e-12)


@pytest.mark.parametrize("of", a_part(("time", "mfu", "tokens_per_s", "memory", "layer/mlp", "energy"), 0.5))
def test_a_quantity_lies_between_its_bounds(of: str) -> None:
    found = made("gpt").asymptotics("batch", of)
    told = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert {"leading_term", "exponent", "lower", "upper"} <= told.keys()
    assert told["lower"] <= told["value"] * (1 + 1e-12)
    assert told["upper"] is None or told["upper"] >= told["value"] * (1 - 1e-12)


def test_limits_say_themselves() -> None:
    run = made("llama")
    for found in (run.asymptotics("sequence"), run.asymptotics("memory_bandwidth", "mfu"), run.asymptotics("tp")):
        assert found.sentence.startswith(found.text(100).splitlines()[0])
        assert max(map(len, found.text(100).splitlines())) <= 110
        assert r"\begin{document}" in found.latex()
        found.plot()


EXPERTS = sf.inference("mixtral-8x7b", "h100-sxm", sf.Plan(tp=8), batch=8, prompt=2048, generate=128)


@pytest.mark.parametrize("symbol", ["generate", "prompt", "batch", "memory_bandwidth", "hidden_size"])
def test_limits_of_experts_whose_number_is_a_power_of_the_tokens(symbol: str) -> None:
    """E (1 - (1 - k / E)^T), beside symbols that move T and others that do not."""
    found = EXPERTS.asymptotics(symbol, "time")
    assert found.text(1000).startswith(found.sentence)
    limit = found.at_infinity
    assert limit is not None
    form = limit.closed_form()
    if form is not None:
        values = {each: EXPERTS.bound[each.name][0] for each in form.free_symbols}
        assert float(form.evalf(subs=values | {SYMBOLS[symbol].symbol: 1.0})) == pytest.approx(limit.coefficient)


def test_far_out_all_experts_are_read() -> None:
    limit = EXPERTS.asymptotics("batch", "decode").at_infinity
    assert limit is not None
    far = EXPERTS.bind(batch=1 << 18).value("decode")
    assert far == pytest.approx(limit.coefficient * 2.0 ** (18 * limit.exponent), rel=1e-3)


@pytest.mark.parametrize(
    ("symbol", "exponent", "far"),
    [
        ("batch", 1, 1e9),
        ("prompt", 2, 1e9),
        ("num_experts", 1, 1e12),
        ("hidden_size", 1, 1e9),
        ("dp", None, None),
        ("tp", None, None),
    ],
)
def test_powers_whose_exponent_or_base_has_the_symbol(symbol: str, exponent: int | None, far: float | None) -> None:
    """The experts that tokens reach are E (1 - (1 - k / E) ** T): all of them, or k of them for each token."""
    run = sf.inference("mixtral-8x7b", "h100-sxm", sf.Plan(tp=8), batch=32, prompt=512, generate=128)
    found = run.asymptotics(symbol)
    assert found.sentence
    if far is None:
        return
    assert found.at_infinity is not None
    assert found.at_infinity.exponent == exponent
    told = found.at_infinity.coefficient * far ** float(found.at_infinity.exponent)
    assert output_at(found.subject, symbol, [far])[0] == pytest.approx(told, rel=1e-2)


def test_a_chance_that_floats_do_not_tell_from_none_makes_no_tile_more() -> None:
    """Experts that 16384 tokens miss with a chance of 1e-226 round the rows of the others as a run does."""
    run = sf.inference("deepseek-v3", "h200-sxm", sf.Plan(tp=8, ep=8), batch=32, prompt=512, generate=128)
    for symbol in ("scale_up_bandwidth", "memory_bandwidth"):
        found = run.asymptotics(symbol)
        assert found.at_infinity is not None
        assert found.at_infinity.limit == pytest.approx(output_at(found.subject, symbol, [1e40])[0], rel=1e-9)


def test_summands_of_an_energy_say_what_the_joules_go_to() -> None:
    """The energy of bytes is memory's, and the static power's is static, whatever bounds the time that it lasts."""
    run = sf.training("llama-2-7b", "h100-sxm", sf.Plan(dp=8), batch=64, sequence=4096)
    for equation in run.asymptotics("matrix_rate", of="energy").equations():
        names = {symbol.name for symbol in equation.expr.free_symbols}
        held = {"static_power": "static", "memory_energy": "memory", "matrix_energy": "matrix"}
        assert [told for name, told in held.items() if name in names] == [equation.note.split(", ")[1]]


@pytest.mark.parametrize("symbol", ["micro_batch", "batch", "prompt", "num_experts_per_token", "memory_bandwidth"])
@pytest.mark.parametrize("model", ["jamba-v0.1", "mixtral-8x7b"])
def test_a_fraction_to_a_power_has_its_limit(model: str, symbol: str) -> None:
    """The experts that no token of a step reaches: fewer by any power as tokens grow, and symbols in what is left."""
    run = sf.inference(model, "h100-sxm", sf.Plan(), batch=16, prompt=256, generate=4)
    subject = subject_of(run, "time", "limits")
    limit = limit_along(subject, symbol, math.inf)
    x = 1e60
    expected = limit.coefficient * x ** float(limit.exponent) * math.log2(x) ** limit.logs
    assert output_at(subject, symbol, [x])[0] == pytest.approx(expected, rel=1e-9)
    assert run.asymptotics(symbol).text()


def test_powers_near_an_end() -> None:
    """`(1 - 2/x) ** 64` goes to one by 128/x; `(1/2) ** x` to zero at infinity, and to one by ln 2 x at zero."""
    x, one = monomial(1, 1), constant(1)
    missed = one - power_towards(one - constant(2) / x, constant(64), math.inf)
    exponent, logs, coefficient = leading(missed, math.inf)
    assert (exponent, logs, float(coefficient)) == (-1, 0, pytest.approx(128))
    assert not power_towards(constant(0.5), x, math.inf).over
    exponent, _, coefficient = leading(one - power_towards(constant(0.5), x, 0.0), 0.0)
    assert (exponent, float(coefficient)) == (1, pytest.approx(math.log(2)))
