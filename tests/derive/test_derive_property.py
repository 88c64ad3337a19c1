"""Whatever moves, either the lines of a derivation give the run's value or one of its conditions is broken."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from support.effort import NIGHTLY, cases, some
from support.move_cases import ALL, make, moves, outputs_at, seconds_at, spent_at

import symperf as sf
from symperf.derive import derive
from symperf.derive.question import quantities

if TYPE_CHECKING:
    from collections.abc import Mapping

    from symperf.derive import Derivation

COUNT = 500
"""Moves of each structure: more than 10,000 of all together."""
each_structure = pytest.mark.parametrize("name", some(ALL, 0.25))


@cache
def of_time(name: str) -> Derivation:
    """The time of a structure's run, derived once."""
    return derive(make(name))


def verdict(derivation: Derivation, points: Mapping[str, Any], truth: Any, slack: Any = 0.0) -> Any:
    """Where all conditions hold, after a check that the lines are the quantity there."""
    lines, holds = derivation.elsewhere.at(points)
    size = np.shape(truth)
    held = np.all([np.broadcast_to(each, size) for each in holds], axis=0) & np.isfinite(truth + slack)
    lines = np.broadcast_to(lines, size)
    error = np.abs(lines - truth)
    wrong = held & ~(error <= 1e-12 * np.abs(truth) + slack)
    run = derivation.run
    for k in np.flatnonzero(wrong)[:1]:
        moved = {n: (run.bound[n][0], points[n][k]) for n in points if points[n][k] != run.bound[n][0]}
        pytest.fail(f"{run}: {derivation.of} {derivation.term}: {lines[k]} for {truth[k]} at {moved}")
    return held


@each_structure
def test_time(name: str) -> None:
    """Any symbols by little or much, to special values, alone and together; half of the single moves change nothing."""
    derivation = of_time(name)
    run = derivation.run
    points = moves(run, 1, cases(COUNT))
    held = verdict(derivation, points, outputs_at(run, points)["time"])
    assert 0.25 < np.mean(held[::3]) < 0.95
    assert NIGHTLY <= np.sum(held[2::3]) < 0.5 * len(held[2::3])  # of few moves of many symbols none may hold


@pytest.mark.parametrize("name", some(ALL, 0.1))
def test_other_quantities(name: str) -> None:
    """Memory, throughput, utilisation, energy and cost rest on conditions of their own and on those of the time."""
    run = make(name)
    points = moves(run, 2, cases(COUNT))
    truth = outputs_at(run, points) | spent_at(run, points)
    truth["device_seconds"] = truth["time"] * truth["devices"]
    for of in some(quantities(run), 0.3):
        held = verdict(derive(run, of), points, truth[of])
        assert held.any()


@pytest.mark.parametrize("name", some(ALL, 0.1))
def test_terms(name: str) -> None:
    """Terms and folders, of time and of memory, by what the breakdown says; waiting rests on what is waited for."""
    run = make(name)
    points = moves(run, 3, cases(COUNT))
    seconds, outputs = seconds_at(run, points), outputs_at(run, points)
    folders = list(dict.fromkeys(path.rpartition("/")[0] or path for path in seconds))
    for folder in [*some(folders, 0.15), *(each for each in seconds if each == "pipeline/bubble")]:
        parts = (each for path, each in seconds.items() if path == folder or path.startswith(f"{folder}/"))
        verdict(derive(run, term=folder), points, sum(parts), slack=1e-15 * np.abs(outputs["time"]))
    for path in ("weights", "activations"):
        own = (each for key, each in outputs.items() if f"{key}/".startswith(f"memory/{path}/"))
        verdict(derive(run, "memory", term=path), points, sum(own))


@pytest.mark.parametrize("name", some(ALL, 0.1))
@pytest.mark.parametrize("fold", ["all", "none"])
def test_free_symbols(name: str, fold: str) -> None:
    """What is free may move inside the regime; where all else is a number, nothing else may."""
    run = make(name)
    free = ("memory_bandwidth", "batch")
    derivation = derive(run, free=free, fold=[fold])
    points = moves(run, 4, cases(COUNT))
    held = verdict(derivation, points, outputs_at(run, points)["time"])
    alone = {each: points[each] if each in free else np.full_like(points[each], run.bound[each][0]) for each in points}
    assert verdict(derivation, alone, outputs_at(run, alone)["time"]).sum() > held.sum() or fold == "none"


@each_structure
def test_own_values(name: str) -> None:
    """A derivation holds where it was made; many points at once are judged like each alone."""
    derivation = of_time(name)
    run = derivation.run
    assert derivation.holds(run.bindings)
    assert derivation.holds({})
    assert derivation.value_at(run.bindings) == pytest.approx(run.value("time"), rel=1e-12)
    points = moves(run, 5, 6)
    lines, holds = derivation.elsewhere.at(points)
    for k in range(6):
        point = {each: float(values[k]) for each, values in points.items()}
        assert derivation.holds(point) == all(bool(np.broadcast_to(each, 6)[k]) for each in holds)
        np.testing.assert_array_equal(derivation.value_at(point), np.broadcast_to(lines, 6)[k])


BINDS: tuple[dict[str, Any], ...] = (
    {"memory_bandwidth": 4e12},
    {"launch_latency": 0.0},
    {"workspace_bytes": 1e9},
    {"batch": 64},
    {"batch": 960},
    {"tp": 2},
    {"pp": 2},
    {"dp": 2},
    {"micro_batch": 2},
    {"num_layers": 64},
    {"vocab_size": 50000},
    {"tp": 4, "batch": 32},
    {"scale_up_size": 4},
    {"sequence": 1024},
    {"generate": 400},
    {"prompt": 1000, "launch_latency": 1e-6},
)
"""Moves of a run by what a user may bind."""


@pytest.mark.parametrize("name", some(ALL, 0.1))
def test_runs_bound_anew(name: str) -> None:
    """Runs of other plans, sizes and figures: where the form of the cost is another one, nothing holds."""
    run = make(name)
    answers = {of: derive(run, of) for of in ("time", "memory", "tokens_per_s")}
    tried = 0
    for moved in BINDS:
        try:
            after = run.bind(**moved)
        except sf.InputError:
            continue
        tried += 1
        for of, derivation in answers.items():
            if derivation.holds(after.bindings):
                assert after.structure == run.structure
                assert derivation.value_at(after.bindings) == pytest.approx(after.value(of), rel=1e-12), (moved, of)
            else:
                assert derivation.broken(after.bindings)
    assert tried >= 5
    assert answers["time"].holds(run.bind(launch_latency=run.bound["launch_latency"][0] * (1 + 1e-9)).bindings)


def _training(model: str, system: str, batch: int, sequence: int, **plan: Any) -> sf.Run:
    return sf.training(sf.Model.load(model), sf.System.load(system), sf.Plan(**plan), batch=batch, sequence=sequence)


@pytest.mark.parametrize(
    ("run", "moved"),
    [
        (lambda: _training("llama-2-7b", "h100-sxm", 64, 4096, dp=64), {"batch": 128}),
        (lambda: _training("llama-2-70b", "h100-sxm", 64, 4096, dp=64, zero=3), {"batch": 128}),
        (lambda: _training("llama-2-7b", "h100-sxm", 8, 4096, tp=8, micro_batch=8), {"batch": 16}),
        (lambda: _training("gpt3-175b", "a100-80gb-sxm", 64, 2048, tp=8, pp=8, overlap_tp=1.0), {"overlap_tp": 0.5}),
        (lambda: _training("gpt3-175b", "a100-80gb-sxm", 64, 2048, tp=8, pp=8, overlap_tp=0.0), {"overlap_tp": 0.5}),
        (lambda: _training("gpt3-175b", "a100-80gb-sxm", 8, 2048, tp=8), {"pp": 8}),
        (lambda: _training("gpt3-175b", "a100-80gb-sxm", 8, 2048, tp=8), {"dp": 8}),
        (lambda: _training("gpt3-175b", "a100-80gb-sxm", 8, 2048), {"tp": 8}),
        (lambda: _training("llama-2-7b", "h100-sxm", 64, 4096, dp=64), {"num_attention_heads": 64}),
        (lambda: _training("llama-2-7b", "h100-sxm", 64, 4096, dp=64), {"intermediate_size": 11000}),
        (lambda: _training("llama-2-7b", "h100-sxm", 64, 4096, dp=64), {"gradient_bytes": 2}),
    ],
)
def test_a_part_that_was_zero(run: Any, moved: dict[str, Any]) -> None:
    """One micro-batch, full overlap, one stage, one rank; sizes in terms of others and formats in coefficients."""
    before = run()
    after, derivation = before.bind(**moved), derive(before)
    same = derivation.value_at(after.bindings) == pytest.approx(after.value("time"), rel=1e-12)
    assert same or not derivation.holds(after.bindings)
    for of in ("mfu", "memory", "device_seconds"):
        answer = derive(before, of)
        expected = after.value("time") * after.value("devices") if of == "device_seconds" else after.value(of)
        same = answer.value_at(after.bindings) == pytest.approx(expected, rel=1e-12)
        assert same or not answer.holds(after.bindings)


def test_runs_of_another_structure() -> None:
    """A move that changes the form of the cost breaks every derivation; so do numbers that only it has."""
    run = _training("llama-2-7b", "h100-sxm", 64, 4096, dp=8, attention="flash")
    derivation = derive(run)
    for moved in ({"cp": 2}, {"zero": 1}, {"recompute": "full"}, {"host_latency": 1e-6}):
        after = run.bind(**moved)
        assert after.structure != run.structure
        assert not derivation.holds(after.bindings)
    assert derivation.holds(run.bind(batch=128).bindings)
    assert run.bind(batch=128).bindings == dict(run.bind(batch=128).bindings)


def test_a_token_alone_has_no_time_between_tokens() -> None:
    """The mean of no step is that of the step which would follow: no line says so."""
    run = sf.inference(
        sf.Model.load("llama-2-7b"), sf.System.load("h100-sxm"), sf.Plan(), batch=1, prompt=200, generate=2
    )
    assert not derive(run, "time_per_token").holds({"generate": 1})
    assert derive(run).holds({"generate": 1})


@pytest.mark.parametrize(
    ("bindings", "complaint"),
    [
        ({"batsh": 3}, "no symbol 'batsh'; did you mean batch"),
        ({"batch": "3"}, "batch: found '3', expected a number"),
        ({"batch": True}, "expected a number"),
    ],
)
def test_bad_bindings(bindings: dict[str, Any], complaint: str) -> None:
    """One line, with the nearest."""
    derivation = derive(_training("llama-2-7b", "h100-sxm", 64, 4096, dp=8), "memory")
    with pytest.raises(sf.InputError, match=complaint):
        derivation.holds(bindings)
