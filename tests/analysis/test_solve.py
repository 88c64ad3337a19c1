"""The inverse: solving and binding gives the target, or it is out of reach."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support.analysis_cases import REAL, made, output_at, subject_at
from support.effort import cases
from support.law_cases import few, regimes, some
from support.run_cases import RUNS, each_run
from support.strategies import seeds

import symperf as sf
from symperf.analysis import Unreachable
from symperf.analysis.direction import direction
from symperf.analysis.solution import Solution
from symperf.analysis.solve_real import solutions, solve_real
from symperf.analysis.symbols import Domain, domain_of
from symperf.common.errors import InputError

CASES = cases(1000, 0.25)


def targets(seed: int) -> list[tuple[str, str, str, float]]:
    """Random (run, symbol, quantity, factor on the quantity)."""
    random = np.random.default_rng(seed)
    names, quantities = sorted(RUNS), ("time", "tokens_per_s", "mfu")
    found = []
    for _ in range(CASES):
        name, symbol = random.choice(names), random.choice(REAL)
        found.append((str(name), str(symbol), str(random.choice(quantities)), float(np.exp(random.normal(0, 0.5)))))
    return found


def asked(run: Any, symbol: str, of: str, target: float) -> Solution | Unreachable | InputError:
    """What `solve` gives or raises."""
    try:
        return run.solve(symbol, **{of: target})  # type: ignore[no-any-return]
    except (Unreachable, InputError) as error:
        return error


def out_of_reach(run: Any, symbol: str, of: str, target: float, error: Unreachable | InputError) -> None:
    """Both ends of the symbol are on one side of the target, or it makes no difference."""
    limits = domain_of(symbol)
    ends = [run.bind(**{symbol: x}).value(of) for x in (limits.low, limits.high)]
    if isinstance(error, InputError):
        assert "does not depend" in str(error)
        assert ends[0] == ends[1]
        return
    assert (ends[0] - target) * (ends[1] - target) > 0
    assert error.limit is not None
    assert min(abs(end - target) for end in ends) >= abs(error.limit - target) * (1 - 1e-9)


def test_solving_then_binding_gives_the_target() -> None:
    """On 250 random cases, nightly 1,000: the quantity at the answer is the target to 1e-9, or no value reaches it."""
    reached = 0
    for name, symbol, of, factor in targets(7):
        run = made(name)
        if symbol not in run.bound:
            continue
        target = run.value(of) * factor
        answer = asked(run, symbol, of, target)
        if not isinstance(answer, Solution):
            out_of_reach(run, symbol, of, target, answer)
            continue
        reached += 1
        assert run.bind(**{symbol: answer.value}).value(of) == pytest.approx(target, rel=1e-9)
        assert answer.reached == pytest.approx(target, rel=1e-9)
        assert answer.value in answer.values
    assert reached > CASES / 4


@given(some, seeds, regimes, st.sampled_from(REAL), st.floats(-2, 2))
@few
def test_every_solution_is_found(name: str, seed: int, regime: str, symbol: str, shift: float) -> None:
    """At random points of any structure: a dense scan crosses the target exactly at the solutions."""
    subject = subject_at(name, seed, regime)
    assume(symbol in subject.program.inputs and subject.values[symbol] > 0)
    low, high = subject.values[symbol] / 300, subject.values[symbol] * 300
    xs = np.geomspace(low, high, 801)
    heights = output_at(subject, symbol, xs)
    target = float(heights[0] + (heights[-1] - heights[0]) / (1 + math.exp(shift)))
    assume(heights.max() > heights.min() * (1 + 1e-9))
    found = solutions(subject.line(symbol, low, high), subject.position, target)
    assert output_at(subject, symbol, found) == pytest.approx(target, rel=1e-12)
    crossed = np.flatnonzero((heights[1:] - target) * (heights[:-1] - target) < 0)
    assert len(found) >= len(crossed) >= 1
    for k in crossed:
        assert any(xs[k] <= x <= xs[k + 1] for x in found)


@each_run
@pytest.mark.parametrize("symbol", ["sequence", "batch", "hidden_size", "num_layers", "vocab_size", "tp"])
def test_whole_numbers_are_the_last_that_meet_the_target(name: str, symbol: str) -> None:
    """The answer is accepted by the run, meets the target, and no accepted number just beyond it does."""
    run = made(name)
    target = run.value("time") * 1.37
    answer = run.solve(symbol, time=target)
    assert answer.whole
    assert answer.meets == "<="
    n = int(answer.value)
    assert run.bind(**{symbol: n}).value("time") == answer.reached <= target
    step = -1 if symbol == "tp" else 1
    for beyond in range(n + step, n + step * 70, step):
        try:
            other = run.bind(**{symbol: beyond}).value("time")
        except InputError:
            continue
        assert other > target


def test_the_longest_sequence_that_fits() -> None:
    """Memory is a target like any other; one more token does not fit."""
    run = made("llama").bind(micro_batch=1)
    answer = run.solve("sequence", memory=80e9)
    assert run.bind(sequence=int(answer.value)).value("memory") <= 80e9
    assert run.bind(sequence=int(answer.value) + 1).value("memory") > 80e9


def test_more_is_better_for_throughput() -> None:
    """A utilisation is met from above: the smallest batch that fills the pipeline well enough."""
    run = made("gpt")
    answer = run.solve("batch", mfu=run.value("mfu") * 0.9)
    assert answer.meets == ">="
    assert answer.reached >= answer.target
    smaller = run.bind(batch=int(answer.value) - 8)
    assert smaller.value("mfu") < answer.target


@each_run
def test_unreachable_targets_say_the_limit(name: str) -> None:
    run = made(name)
    with pytest.raises(Unreachable, match=r"^time = .* is unreachable, the limit is .* at memory_bandwidth = 10 PB/s"):
        run.solve("memory_bandwidth", time=run.value("time") / 100)
    error = asked(run, "memory_bandwidth", "time", run.value("time") / 100)
    assert isinstance(error, Unreachable)
    assert error.limit == pytest.approx(run.bind(memory_bandwidth=1e16).value("time"), rel=1e-12)
    with pytest.raises(Unreachable, match="unreachable, the limit is"):
        run.solve("sequence", time=1e-9)
    with pytest.raises(Unreachable, match=r"launch_latency = 0"):
        run.solve("launch_latency", time=run.value("time") / 2)


@pytest.mark.parametrize("seconds", [1e6, 1e30])
def test_an_absurd_target_where_roundings_move_says_the_limit(seconds: float) -> None:
    """What is known of a quantity does not drown in the target that it is held against."""
    run = sf.inference("llama-2-7b", "h100-sxm", sf.Plan(), batch=8, prompt=200, generate=100)
    with pytest.raises(Unreachable) as caught:
        run.solve("memory_bandwidth", time=seconds)
    assert caught.value.limit == pytest.approx(run.bind(memory_bandwidth=1e9).value("time"))


def test_limits_of_the_search_can_be_given() -> None:
    run = made("gpt")
    with pytest.raises(Unreachable, match="the largest considered"):
        run.solve("memory_bandwidth", high=3e12, time=12.8)
    assert run.solve("memory_bandwidth", high=6e12, time=12.8).value < 6e12


def test_a_closed_form_of_a_solution() -> None:
    """Inside the regime: expressed in the time and all other symbols, it gives the same number."""
    run = made("no tiles")
    answer = run.solve("memory_bandwidth", time=run.value("time") * 1.1)
    form = answer.closed_form()
    names = {s.name for s in form.free_symbols}
    assert "time" in names
    assert "memory_bandwidth" not in names
    values = {s: answer.target if s.name == "time" else run.bound[s.name][0] for s in form.free_symbols}
    assert float(form.xreplace(values)) == pytest.approx(answer.value, rel=1e-9)


def test_answers_are_plain() -> None:
    answer = made("gpt").solve("memory_bandwidth", time=14.0)
    assert json.loads(json.dumps(answer.to_dict()))["of"] == "time"
    assert str(answer).startswith("memory_bandwidth = ")


@given(some, seeds, regimes, st.sampled_from((*REAL, "sequence", "batch", "hidden_size", "tp", "pp", "num_layers")))
@few
def test_proved_directions_hold(name: str, seed: int, regime: str, symbol: str) -> None:
    """Where a direction is proved, the time never moves the other way."""
    subject = subject_at(name, seed, regime)
    assume(symbol in subject.program.inputs)
    low, high = 1.0, 4096.0
    if symbol in REAL:
        now = subject.values[symbol] or 1e-6
        low, high = now / 100, now * 100
    way = direction(subject, symbol, low, high)
    xs = np.linspace(low, high, 2048) if symbol in REAL else np.arange(low, high + 1)
    heights: Any = output_at(subject, symbol, xs)
    if way is not None:
        assert np.all(np.diff(heights) * way >= -1e-12 * heights[1:] if way else np.diff(heights) == 0)


@pytest.mark.parametrize("symbol", ["memory_bandwidth", "launch_latency", "sequence", "batch", "num_layers"])
def test_the_usual_directions_are_proved(symbol: str) -> None:
    subject = subject_at("gpt", 3)
    way = direction(subject, symbol, 1.0, 1e9)
    assert way == (-1 if symbol == "memory_bandwidth" else 1)


def test_a_rounding_in_the_way_is_solved_by_halving() -> None:
    """The sum over a generation's steps rounds what depends on a rate, and has no jump there."""
    from support.analysis_cases import subject_of_formula

    from symperf.formulas.language.atoms import ceil_div
    from symperf.formulas.language.symbols import matrix_rate, memory_bandwidth

    expr = (
        ceil_div(1e9, memory_bandwidth) * 0
        + 1e9 / memory_bandwidth
        + 1 / matrix_rate
        + ceil_div(memory_bandwidth, memory_bandwidth + 1)
    )
    subject = subject_of_formula(expr, {"memory_bandwidth": 1e8, "matrix_rate": 1.0})
    found = solve_real(subject, "memory_bandwidth", Domain(False, 1e3, 1e12), 22.0)
    assert found.value == pytest.approx(5e7, rel=1e-12)
    with pytest.raises(Unreachable):
        solve_real(subject, "memory_bandwidth", Domain(False, 1e3, 1e12), 1.5)
