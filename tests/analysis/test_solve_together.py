"""Several targets at once, shares of the time, what binds, and what else binds: against dense scans of bound runs."""

from __future__ import annotations

import json
import math
from functools import cache
from typing import Any

import numpy as np
import pytest
from support.analysis_cases import made
from support.effort import some

import symperf as sf
from symperf.analysis import Unreachable
from symperf.analysis.solution import Solution, is_higher_better
from symperf.common.errors import InputError


@cache
def run_of(name: str) -> Any:
    """A run that no test changes."""
    if name == "infer":
        return sf.inference("llama-2-70b", "h100-sxm", sf.Plan(tp=8), batch=8, prompt=200, generate=200)
    if name == "serve":
        from symperf.serve.iteration_run import IterationRun

        model, system = sf.Model.load("llama-2-7b"), sf.System.load("h100-sxm")
        return IterationRun(model, system, sf.Plan(tp=2), prompt=512, generate=128, concurrency=16)
    return made(name)


def met(of: str, value: float, target: float) -> bool:
    """Whether a target is met: times, bytes and shares at most, rates and utilisations at least."""
    return value >= target if is_higher_better(of) else value <= target


def quantity(run: Any, of: str) -> float:
    """A quantity of a bound run, or the share of a resource."""
    resource = of.removeprefix("share of ")
    return float(run.value(of) if resource == of else run.shares()[resource])


WHOLE = [
    ("gpt", "batch", {"time": 20.0, "mfu": 0.45}, 8, 160),
    ("gpt", "batch", {"mfu": 0.52, "time": 40.0}, 8, 240),
    ("gpt", "tp", {"memory": 80e9, "time": 15.0}, 1, 96),
    ("gpt", "micro_batch", {"memory": 80e9, "mfu": 0.5}, 1, 64),
    ("gpt", "sequence", {"share of compute": 0.6, "time": 10.0}, 8, 2048),
    ("llama", "dp", {"tokens_per_s": 1e5}, 1, 512),
    ("llama", "sequence", {"memory": 78e9, "time": 20.0}, 64, 400),
    ("infer", "batch", {"tokens_per_s": 1200.0, "time_per_token": 0.02}, 1, 80),
    ("infer", "prompt", {"prefill": 0.2, "memory": 60e9}, 200, 260),
    ("serve", "concurrency", {"time": 0.012, "memory": 20e9}, 1, 60),
]


@pytest.mark.parametrize("case", some(WHOLE, 0.5), ids=lambda case: f"{case[0]} {case[1]}")
def test_whole_numbers_against_every_legal_value(case: tuple[Any, ...]) -> None:
    """The answer is the first or the last legal number that meets all targets; what binds is missed just beyond it."""
    name, symbol, targets, low, high = case
    run = run_of(name)
    good: dict[int, bool] = {}
    missed: dict[int, list[str]] = {}
    for n in range(low, high + 1):
        try:
            bound = run.bind(**{symbol: n})
        except InputError:
            continue
        missed[n] = [of for of, wanted in targets.items() if not met(of, quantity(bound, of), wanted)]
        good[n] = not missed[n]
    meeting = [n for n, fine in good.items() if fine]
    if not meeting:
        with pytest.raises(Unreachable):
            run.solve(symbol, low=low, high=high, **targets)
        return
    found = run.solve(symbol, low=low, high=high, **targets)
    n = int(found.value)
    assert n == (meeting[-1] if found.end == "largest" else meeting[0])
    legal = list(good)
    beside = legal.index(n) + (1 if found.end == "largest" else -1)
    if 0 <= beside < len(legal):
        assert found.binding in missed[legal[beside]]
    for of, value in found.reached_all.items():
        assert quantity(run.bind(**{symbol: n}), of) == pytest.approx(value, rel=1e-12)


REAL = [
    ("gpt", "memory_bandwidth", {"time": 14.0, "mfu": 0.5}),
    ("gpt", "memory_bandwidth", {"time": 13.0, "share of memory": 0.02}),
    ("gpt", "memory_bandwidth", {"share of compute": 0.5}),
    ("gpt", "matrix_rate", {"time": 12.0, "mfu": 0.4}),
    ("llama", "scale_out_bandwidth", {"tokens_per_s": 3e5, "mfu": 0.3}),
    ("llama", "launch_latency", {"time": 20.0, "mfu": 0.3}),
    ("infer", "memory_bandwidth", {"time_per_token": 0.012, "prefill": 0.04}),
    ("infer", "memory_bandwidth", {"time_per_token": 0.012, "decode_mbu": 0.3}),
    ("infer", "scale_up_latency", {"time": 4.0, "prefill": 0.1}),
]


@pytest.mark.parametrize("case", some(REAL, 0.5), ids=lambda case: f"{case[0]} {case[1]}")
def test_real_symbols_against_a_dense_scan(case: tuple[Any, ...]) -> None:
    """All targets are met inside the intervals that are told, and at least one is missed outside of them."""
    name, symbol, targets = case
    run = run_of(name)
    now = run.bound[symbol][0]
    try:
        found: Solution | None = run.solve(symbol, **targets)
    except Unreachable:
        found = None
    spans = found.admissible if found else ()
    for x in (now * np.geomspace(1e-3, 1e3, 37)).tolist():
        try:
            bound = run.bind(**{symbol: x})
        except InputError:
            continue
        fine = all(met(of, quantity(bound, of), wanted) for of, wanted in targets.items())
        assert fine == any(low <= x <= high for low, high in spans), x
    if found is not None and found.binding:
        assert quantity(run.bind(**{symbol: found.value}), found.binding) == pytest.approx(targets[found.binding])


def test_targets_that_exclude_each_other_say_the_limit() -> None:
    """One line: which is missed, with which, and how near it gets."""
    run = run_of("gpt")
    with pytest.raises(
        Unreachable, match=r"^time <= 5 s is unreachable with mfu >= 53 %, the limit is [0-9.]+ s at batch = 1"
    ):
        run.solve("batch", mfu=0.53, time=5.0)
    with pytest.raises(Unreachable, match=r"with memory <= 40 GB, the limit is .* at tp = 16"):
        run.solve("tp", memory=40e9, tokens_per_s_per_device=160.0)
    with pytest.raises(Unreachable, match=r"^mfu >= 60 % is unreachable with time <= 13 s, the limit is") as error:
        run.solve("matrix_rate", time=13.0, mfu=0.6)
    assert error.value.limit is not None
    assert math.isfinite(error.value.limit)
    with pytest.raises(Unreachable, match=r"^share of compute = 90 % is unreachable, the limit is 8[0-9.]+ %"):
        run.solve("memory_bandwidth", time=13.0, **{"share of compute": 0.9})


def test_what_else_binds_is_told() -> None:
    """The positions that a model is made for, its window, the memory, and rules that end before the target does."""
    run = run_of("infer")
    assert any("position table of 4096 tokens ends before" in note for note in run.solve("prompt", time=10.0).also)
    learned = run_of("gpt").solve("sequence", memory=80e9)
    assert learned.value == 2048
    assert learned.binding == "sequence: 4096 tokens, but gpt3-175b has 2048 learned positions"
    assert "the run accepts no more: sequence: 4096" in learned.sentence
    loose = run_of("gpt").solve("sequence", time=1e9)
    assert (loose.value, loose.binding) == (2048, learned.binding)
    crowded = run_of("gpt").solve("micro_batch", time=14.5)
    assert any(note.startswith("The capacity ends before: memory is 115 GB of 84.99 GB") for note in crowded.also)
    windowed = sf.inference("mistral-7b", "h100-sxm", sf.Plan(), batch=1, prompt=200, generate=200)
    assert any("attention window of 4096 tokens" in note for note in windowed.solve("prompt", prefill=2.0).also)


def test_a_target_met_everywhere_binds_nothing() -> None:
    found = run_of("gpt").solve("memory_bandwidth", low=1e12, high=4e12, time=100.0, mfu=0.01)
    assert found.binding is None
    assert found.value == run_of("gpt").bound["memory_bandwidth"][0]
    assert found.sentence.endswith("are met for every memory_bandwidth considered.")


def test_answers_are_plain() -> None:
    """As JSON without NaN or infinity: the keys of the contract are always there."""
    keys = {"value", "closed_form", "binding", "reachable", "limit"}
    run = run_of("gpt")
    for found in (run.solve("batch", time=20.0, mfu=0.45), run.solve("memory_bandwidth", time=14.0, mfu=0.5)):
        assert keys <= set(json.loads(json.dumps(found.to_dict(), allow_nan=False)))
        assert found.latex().startswith("\\documentclass")


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({}, "found no target, expected one such as time = 0.02"),
        ({"time": -1.0}, "time is -1.0, expected a finite number above 0"),
        ({"time": math.nan}, "time is nan"),
        ({"tmie": 1.0}, "unknown quantity 'tmie'; did you mean time"),
        ({"share of computed": 0.5}, "expected the share of compute or .*; did you mean compute"),
        ({"memory": 80e9, "parameters": 1e9}, "does not depend on memory_bandwidth"),
        ({"time": 20.0, "low": 5e12, "high": 1e12}, "no value of memory_bandwidth from 5e.12 to 1e.12"),
    ],
)
def test_bad_targets_are_told_in_one_line(asked: dict[str, float], says: str) -> None:
    with pytest.raises(InputError, match=f"^solve: .*{says}") as error:
        run_of("gpt").solve("memory_bandwidth", **asked)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("targets", [{"time": 0.038}, {"time": 0.038, "memory": 80e9}])
def test_a_jump_over_a_target_is_told_and_the_answer_meets_the_targets(targets: dict[str, float]) -> None:
    """Where a quantity jumps over its target no value brings it there: the last one that meets it is the answer."""
    stack = "tensorrt-llm"  # its kernels have jumps of their own at these sizes
    run = sf.serving("llama-2-70b", "h100-sxm", sf.Plan(tp=8), prompt=1024, generate=256, stack=stack).iteration()
    found = run.solve("decoding", **targets)
    assert run.bind(decoding=found.value).value("time") <= 0.038
    assert run.bind(decoding=found.value * (1 + 1e-9)).value("time") > 0.038
    assert ("jumps over" in found.sentence) == (len(targets) == 1)
