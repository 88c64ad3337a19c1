"""Regimes are exact: what a dense scan sees is reported, what is reported is there, and inside nothing switches."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import sympy
from hypothesis import assume, given
from hypothesis import strategies as st
from support.analysis_cases import REAL, evaluated, made, output_at, scan, subject_at
from support.law_cases import few, regimes, some
from support.legal_cases import accepted
from support.run_cases import each_run
from support.strategies import COUNTS, exact_points, programs, seeds

import symperf as sf
from symperf.analysis.forms import FormError, plain
from symperf.analysis.numbers import numbers
from symperf.analysis.regimes import Regimes, regimes_of
from symperf.analysis.roots import value_at
from symperf.analysis.spelling import scaled
from symperf.analysis.subject import Subject
from symperf.codegen.interpret import floats, run
from symperf.codegen.lower import lower
from symperf.formulas.language.atoms import Max, ceil_div, less_one

spans = st.sampled_from([1.5, 10.0, 1e3])


def drawn(name: str, seed: int, regime: str, symbol: str, span: float) -> tuple[Subject, float, float]:
    subject = subject_at(name, seed, regime)
    assume(symbol in subject.program.inputs)
    now = subject.values[symbol] or 1e-6
    return subject, now / span, now * span


@given(some, seeds, regimes, st.sampled_from(REAL), spans)
@few
def test_no_crossover_is_missed(name: str, seed: int, regime: str, symbol: str, span: float) -> None:
    """Every switch that floats show on a dense grid is among the reported ones, to 1e-9."""
    subject, low, high = drawn(name, seed, regime, symbol, span)
    found = regimes_of(subject, symbol, low, high)
    reported = np.array([(c.x, change.before.position) for c in found.crossovers for change in c.changes] or [(0, -1)])
    for flip in scan(subject, symbol, low, high):
        same = reported[reported[:, 1] == flip.position][:, 0]
        assert len(same), flip
        assert np.min(np.abs(same / flip.x - 1)) < 1e-9, flip


@given(some, seeds, regimes, st.sampled_from(REAL), spans)
@few
def test_every_crossover_is_one(name: str, seed: int, regime: str, symbol: str, span: float) -> None:
    """At each, the two branches are equal; the time has no jump there."""
    subject, low, high = drawn(name, seed, regime, symbol, span)
    found = regimes_of(subject, symbol, low, high)
    for crossover in found.crossovers:
        assert low < crossover.x < high
        values = run(subject.program, subject.values | {symbol: crossover.x}, floats())
        for change in crossover.changes:
            assert change.before.side != change.after.side
            _, first, second = subject.program.instructions[change.before.position]
            assert values[first] == pytest.approx(values[second], rel=1e-9)
        assert crossover.changes or crossover.bound
        around = output_at(subject, symbol, [crossover.x * (1 - 1e-12), crossover.x * (1 + 1e-12)])
        assert around[0] == pytest.approx(around[1], rel=1e-9)


@given(some, seeds, regimes, st.sampled_from(REAL))
@few
def test_the_bounding_resource_is_the_largest_share_throughout(name: str, seed: int, regime: str, symbol: str) -> None:
    """At random points of each regime its resource has the largest Euler share, to rounding."""
    subject, low, high = drawn(name, seed, regime, symbol, 100.0)
    found = regimes_of(subject, symbol, low, high)
    assert found.intervals[0].low == low
    assert found.intervals[-1].high == high
    random = np.random.default_rng(seed)
    xs = np.exp(random.uniform(np.log(low), np.log(high), 500))
    at = numbers(subject, {symbol: xs})
    parts = at.parts[subject.position]
    assert parts is not None
    parts = np.broadcast_to(parts, (len(parts), 500))
    for before, after in pairwise(found.intervals):
        assert before.high == after.low
    for k, x in enumerate(xs):
        (regime_at,) = (r for r in found.intervals if r.low <= x < r.high)
        mine = parts[subject.names.index(str(regime_at.bound)), k]
        assert mine >= parts[:, k].max() - 1e-9 * parts[:, k].sum()


@given(some, seeds, regimes, st.sampled_from(REAL))
@few
def test_active_branches_give_the_time(name: str, seed: int, regime: str, symbol: str) -> None:
    """With every maximum and minimum replaced by its reported branch, the time is the same to 1e-12."""
    subject, low, high = drawn(name, seed, regime, symbol, 100.0)
    random = np.random.default_rng(seed)
    tried = 0
    for interval in regimes_of(subject, symbol, low, high).intervals:
        inside = np.exp(random.uniform(np.log(interval.low), np.log(interval.high), 400))
        tried += inside.size
        forced = _forced(subject, symbol, inside, interval.cell.sides)
        assert forced == pytest.approx(output_at(subject, symbol, inside), rel=1e-12)
    assert tried >= 400


def _forced(subject: Subject, symbol: str, xs: Any, sides: dict[int, int]) -> Any:
    """The output with the given operand of every maximum and minimum."""
    from symperf.codegen.interpret import arrays

    forward = arrays().forward
    inputs = subject.values | {symbol: xs}
    values: list[Any] = []
    for at, (operation, *operands) in enumerate(subject.program.instructions):
        if operation == "input":
            values.append(inputs[operands[0]])
        elif operation == "constant":
            values.append(float(operands[0]))
        elif operation in ("max", "min"):
            values.append(values[operands[sides[at]]])
        else:
            values.append(forward[operation](*(values[o] for o in operands)))
    return np.broadcast_to(values[subject.position], np.shape(xs))


@given(programs, exact_points, st.integers(0, 20), st.sampled_from(["sum", "quotient"]))
def test_random_programs_along_a_symbol(program: Any, point: Any, which: int, output: str) -> None:
    """The pieces of any program are its values, or the program is refused."""
    # Multiples of 1/64 are what they are in floats: a quotient that is whole is so for both, and no ceiling jumps.
    values = {str(name): math.ceil(value * 64) / 64 for name, value in point.items()}
    assume(program.inputs)
    symbol = sorted(program.inputs)[which % len(program.inputs)]
    low, high = (1.0, 40.0) if symbol in map(str, COUNTS) else (0.01, 1.0)
    program.outputs = {"out": program.outputs[output]}
    subject = Subject(program, "out", {name: values[name] for name in program.inputs}, {}).smooth(symbol)
    try:
        line = subject.line(symbol, low, high)
    except FormError:
        return
    pieces = line.values[subject.position]
    xs = np.exp(np.random.default_rng(0).uniform(np.log(low), np.log(high), 50))
    expected = output_at(subject, symbol, xs)
    for x, value in zip(xs, expected, strict=True):
        form = pieces.at(x)
        under = 1.0 if form.under is None else value_at(plain(form.under), x)
        exact = value_at(plain(form.over), x) / under if form.over else 0.0
        assert exact == pytest.approx(value, rel=1e-9, abs=1e-9)


@each_run
def test_whole_numbers_are_tried_one_by_one(name: str) -> None:
    """Inside an interval of a whole number the bounding resource is that of every number in it that the run accepts."""
    run_ = made(name)
    found = run_.regimes("tp", 1, 64)
    assert found.view == "whole"
    legal = accepted(run_, "tp", range(1, 65))
    assert found.legal is not None
    assert found.legal.values == sorted(legal)
    assert [each.value for each in found.legal.skipped] == [n for n in range(1, 65) if n not in legal]
    for n, other in legal.items():
        (regime,) = (r for r in found.intervals if r.low <= n <= r.high)
        shares = other.shares()
        assert regime.bound == max(shares, key=lambda each: shares[each])


@pytest.mark.parametrize(("low", "high"), [(128, 4096), (1000, 9000)])
def test_whole_ranges_do_not_depend_on_chunks(low: int, high: int) -> None:
    """A range that is evaluated in several chunks has the regimes of one that is not, where they meet."""
    run_ = made("no tiles")
    found = run_.regimes("sequence", low, high, view="whole")
    part = run_.regimes("sequence", 2000, 3000, view="whole")
    inside = [c.x for c in found.crossovers if 2000 < c.x <= 3000]
    assert inside == [c.x for c in part.crossovers]


def test_rounded_choices_do_not_become_thousands_of_regimes() -> None:
    """Tiles and waves flicker; regimes tell resources apart, and the smooth view has no rounding at all."""
    run_ = made("gpt")
    whole, smooth = run_.regimes("sequence", 128, 4096), run_.regimes("sequence", 128, 4096, view="smooth")
    assert (whole.view, smooth.view) == ("whole", "smooth")
    assert len(whole.intervals) < 100
    assert len(smooth.intervals) < 60
    assert whole.intervals[-1].bound == smooth.intervals[-1].bound == "compute"
    assert run_.regimes("sequence", 128, 1 << 20).view == "smooth"


def test_the_memory_goes_to_its_parts() -> None:
    """With fewer micro-batches than stages fewer are in flight: the memory rises with the batch up to 8 of them."""
    run_ = made("gpt").bind(vpp=1)
    found = run_.regimes("batch", 1, 64, of="memory")
    last = found.crossovers[-1]
    assert last.x == 8.0  # where both are as large
    assert last.changes[0].before.text == "batch/(micro_batch*dp)"
    assert last.changes[0].after.text == "pp"
    assert found.intervals[-1].value == run_.bind(batch=64).value("memory")
    for regime in found.intervals:
        parts: dict[str, float] = {}
        for path, size in run_.bind(batch=int(regime.at)).memory_terms().items():
            parts[path.partition("/")[0]] = parts.get(path.partition("/")[0], 0.0) + size
        assert regime.bound == max(parts, key=lambda part: parts[part])
        assert regime.shares == pytest.approx({part: size / sum(parts.values()) for part, size in parts.items()})


@each_run
def test_reports_are_plain_and_readable(name: str) -> None:
    found = made(name).regimes("memory_bandwidth", 1e11, 1e14)
    told = found.to_dict()
    assert told["intervals"][0]["low"] == 1e11
    assert len(told["crossovers"]) == len(told["intervals"]) - 1
    assert all(math.isfinite(r["value"]) for r in told["intervals"])
    first, second = found.spans
    assert str(found).startswith(
        f"From memory_bandwidth 100 GB/s to {scaled(first.high, 'B/s')} memory binds the time; "
    )
    assert "memory -> compute" in str(made(name).regimes("memory_bandwidth", 1e11, 1e14, band=0.0))
    assert (first.high, first.bound, second.bound) == (second.low, "memory", "compute")
    for interval in found.intervals:
        assert sum(interval.shares.values()) == pytest.approx(1)
        assert interval.branches
    merged = found.bounds()
    assert [b for _, _, b in merged] == ["memory", "compute"]
    assert merged[0][1] == merged[1][0]


@each_run
def test_closed_forms_are_the_crossovers(name: str) -> None:
    """Where a crossover has a closed form, its value is the number; most have one."""
    run_ = made(name)
    found = run_.regimes("memory_bandwidth", 1e11, 1e14).crossovers
    switches = [c for c in found if c.changes]
    forms = [(c, c.closed_form()) for c in switches]
    told = [(c, form) for c, form in forms if form is not None]
    assert len(told) >= 0.8 * len(switches)
    for crossover, form in told:
        assert "memory_bandwidth" not in {s.name for s in form.free_symbols}
        number = form.xreplace({s: run_.bound[s.name][0] for s in form.free_symbols})
        assert float(number) == pytest.approx(crossover.x, rel=1e-9)


def test_a_rounding_that_depends_on_a_real_symbol_is_sampled() -> None:
    """Then there are no exact pieces; a dense grid shows the changes, and they are halved down."""
    from support.analysis_cases import subject_of_formula

    from symperf.formulas.language.atoms import Max, ceil_div
    from symperf.formulas.language.symbols import matrix_rate, memory_bandwidth

    expr = Max(1e12 / matrix_rate, ceil_div(1e9, memory_bandwidth) * 1e-3)
    subject = subject_of_formula(expr, {"matrix_rate": 1e13, "memory_bandwidth": 1e8})
    found = regimes_of(subject, "memory_bandwidth", 1e6, 1e9)
    assert found.view == "sampled"
    # 0.1 s is passed where 1e9 / x rounds up to 100 or less: at 1e7
    assert [c.x for c in found.crossovers] == pytest.approx([1e7], rel=1e-9)
    assert evaluated(subject, "memory_bandwidth", np.array([1.1e7]))[subject.position] == pytest.approx(0.1)


def test_regimes_is_a_plain_answer() -> None:
    assert isinstance(made("gpt").regimes("launch_latency", 1e-6, 2e-6), Regimes)


def test_what_follows_the_batch_moves_with_it() -> None:
    """Without a micro-batch of its own, an inference run takes it from the batch: along the batch both move."""
    run_ = sf.inference(
        sf.Model.load("llama-2-7b"), sf.System.load("h100-sxm"), sf.Plan(), batch=1, prompt=64, generate=16
    )
    found = run_.regimes("batch", 1, 2048, of="decode")
    assert found.intervals[0].bound == "memory"
    assert any(c.bound and c.bound[1] == "compute" for c in found.crossovers)
    for interval in found.intervals:
        assert interval.value == pytest.approx(run_.bind(batch=int(interval.low)).value("decode"), rel=1e-12)
    answer = run_.solve("batch", time=2 * run_.value("time"))
    assert run_.bind(batch=int(answer.value)).value("time") <= answer.target
    assert run_.bind(batch=int(answer.value) + 1).value("time") > answer.target


def test_an_inference_run_is_solved_through_its_rounding() -> None:
    run_ = sf.inference(
        sf.Model.load("llama-2-7b"), sf.System.load("h100-sxm"), sf.Plan(), batch=1, prompt=64, generate=16
    )
    target = 1.2 * run_.value("time")
    answer = run_.solve("memory_bandwidth", time=target)
    assert run_.bind(memory_bandwidth=answer.value).value("time") == pytest.approx(target, rel=1e-9)
    found = run_.bounds()
    assert found.overlapped <= found.time <= found.serial


@pytest.mark.parametrize("parts", [1.0, 3.0, 60.0, 107.0, 200.0])
def test_smooth_floors_are_ratios(parts: float) -> None:
    """Splits along k: ceil((u + 1) / T) - 1, the floor of u / T, tends to u / T, and is at most 1 below it."""
    units, tiles = sympy.symbols("u T", positive=True)
    program = lower([], {"time": Max(1, less_one(ceil_div(units + 1, tiles)))})
    subject = Subject(program, "time", {"u": 108.0, "T": parts}, {})
    exact, smooth = (run(each.program, each.values, floats())[each.position] for each in (subject, subject.smooth("T")))
    assert smooth == max(1.0, 108 / parts)
    assert exact == max(1, 108 // parts)
