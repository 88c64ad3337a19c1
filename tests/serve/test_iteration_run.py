"""A saturated iteration as a run: it agrees with the steady state at its capacity, and every question can be asked."""

from __future__ import annotations

import json

import pytest

import symperf as sf
from symperf.cli import main
from symperf.common.errors import InputError
from symperf.serve.iteration_run import IterationRun

CASES = {
    "dense": ("llama-2-70b", "h100-sxm", sf.Plan(tp=8)),
    "experts": ("mixtral-8x7b", "h100-sxm", sf.Plan(tp=2, dp=2)),
    "stages": ("llama-2-70b", "a100-80gb-sxm", sf.Plan(tp=4, pp=2)),
    "other stages": ("deepseek-v2-lite", "h100-sxm", sf.Plan(pp=2)),
}


def _run(case: str, **more: object) -> IterationRun:
    model, system, plan = CASES[case]
    work = {"prompt": 1024, "generate": 256} | more
    return IterationRun(sf.Model.load(model), sf.System.load(system), plan, **work)  # type: ignore[arg-type]


@pytest.mark.parametrize("case", CASES)
def test_it_serves_what_the_steady_state_can_at_its_capacity(case: str) -> None:
    """With the sequences that decode at the capacity, requests end as fast as they arrive there."""
    model, system, plan = CASES[case]
    steady = sf.serving(model, system, plan, prompt=1024, generate=256).steady
    assert steady is not None
    capacity = steady.capacity
    run = _run(case).bind(decoding=capacity.decoding / plan.pp)
    assert run.value("requests_per_s") == pytest.approx(capacity.load * plan.dp, rel=0.03)


@pytest.mark.parametrize("case", CASES)
def test_memory_holds_as_many_sequences_as_serving_says(case: str) -> None:
    """Memory as full as it gets is that of the largest number, and one more does not fit."""
    model, system, plan = CASES[case]
    limit = sf.serving(model, system, plan, prompt=1024, generate=256).held(0)
    run = _run(case)
    assert run.fitting_sequences() == pytest.approx(limit, rel=0.01)
    assert run.bind(concurrency=run.fitting_sequences()).fits
    assert not run.bind(concurrency=run.fitting_sequences() + plan.pp).fits


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("work", [{}, {"prompt": 3000}, {"generate": 1024, "prompt": 100}])
def test_a_saturated_replica_lasts(case: str, work: dict[str, int]) -> None:
    """By default as many prompts begin in an iteration as sequences end; more than prefill keeps has a warning."""
    run = _run(case, **work)
    sequences = run.bound["decoding"][0] * run.bound["groups_in_flight"][0] * run.plan.dp
    begin = run.value("requests_per_s") * run.value("time")
    assert begin == pytest.approx(sequences / (run.work.generate - 1), rel=1e-9)
    assert not any("keep" in warning for warning in run.warnings)
    more = run.bind(concurrency=run.kept_sequences() + run.plan.pp)
    assert any("more end" in warning for warning in more.warnings)


def test_prompts_take_the_places_of_requests_that_end() -> None:
    """Tokens of prompts and of generation stand in the ratio of a request's, until a full chunk is the limit."""
    run = _run("dense", concurrency=64)
    assert run.value("tokens_per_s") / run.value("requests_per_s") == pytest.approx(256)
    assert run.value("tokens_per_s") == pytest.approx(64 / run.value("time") * 256 / 255)
    full = _run("dense", concurrency=1024, chunk=2048)
    assert full.value("tokens_per_s") < 1024 / full.value("time") * 256 / 255


def test_breakdown_and_shares_add_up() -> None:
    """As of any run."""
    run = _run("experts")
    assert sum(row.time_s for row in run.table()) == pytest.approx(run.value("time"))
    assert sum(run.shares().values()) == pytest.approx(1)
    assert run.cost().per_million_tokens > 0
    assert run.memory.value() == pytest.approx(run.value("memory"))


@pytest.mark.parametrize(
    ("more", "says"),
    [({"generate": 1}, "generate"), ({"chunk": 0}, "chunk"), ({"concurrency": 0}, "concurrency")],
)
def test_bad_work_is_one_line(more: dict[str, int], says: str) -> None:
    """What no iteration can have is refused."""
    with pytest.raises(InputError, match=says):
        _run("dense", **more)


def test_a_model_that_does_not_fit_is_one_line() -> None:
    """Memory that holds not one sequence."""
    with pytest.raises(InputError, match="with one sequence takes"):
        IterationRun(sf.Model.load("llama-2-70b"), sf.System.load("h100-sxm"), sf.Plan(), prompt=1024, generate=256)


def test_derive_tells_it_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    """`derive serve` is a kind of run like others."""
    line = "derive serve llama-2-70b -s h100-sxm --tp 8 --prompt 1024 --generate 256 --concurrency 64 --json"
    assert main(line.split()) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["value"] == pytest.approx(_run("dense", concurrency=64).value("time"))


def test_serving_gives_its_iteration() -> None:
    """From the public door, with the same values."""
    served = sf.serving("llama-2-70b", "h100-sxm", sf.Plan(tp=8), prompt=1024, generate=256, memory_bandwidth=3e12)
    run = served.iteration(64)
    assert run.value("time") == _run("dense", concurrency=64).bind(memory_bandwidth=3e12).value("time")
