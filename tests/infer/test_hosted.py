"""Weights and caches on the host, experts on its processors: bytes are conserved, and nothing gets faster."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.effort import some

import symperf as sf
from symperf.cli import main
from symperf.cli.settings import parse_offload
from symperf.common.errors import InputError

WORK: dict[str, Any] = {"batch": 4, "prompt": 2000, "generate": 64}
CASES = (
    ("llama-3.1-8b", "h100-sxm", "weights", {}),
    ("llama-3.1-8b", "h100-sxm", "cache", {}),
    ("llama-3.1-8b", "h100-sxm", "weights,cache", {"tp": 2, "pp": 3}),
    ("mixtral-8x7b", "h100-sxm", "experts", {"tp": 2}),
    ("mixtral-8x7b", "h100-sxm", "weights,experts", {"precision": "fp8"}),
)


def run(model: str, system: str, offload: str | None, plan: dict[str, Any], **values: float) -> Any:
    return sf.inference(model, system, sf.Plan(offload=offload, **plan), **WORK, **values)


@pytest.mark.parametrize(("model", "system", "what", "plan"), some(CASES, 0.6))
def test_bytes_are_conserved(model: str, system: str, what: str, plan: dict[str, Any]) -> None:
    plain, hosted = run(model, system, None, plan), run(model, system, what, plan)
    host, before, after = hosted.host_memory(), plain.memory_terms(), hosted.memory_terms()
    assert host["total"] == pytest.approx(sum(size for name, size in host.items() if name != "total"))
    if plan.get("pp", 1) == 1:
        left = before["weights/layers"] - after["weights/layers"]
        assert left == pytest.approx(host.get("weights", 0.0) + host.get("experts", 0.0))
        if {"weights", "experts"} <= set(what.split(",")) or what == "weights":
            assert after["weights/layers"] == pytest.approx(0.0, abs=1e-6 * before["weights/layers"])
    if "cache" in what:
        assert host["cache"] == pytest.approx(before["kv_cache"], rel=0.05 if plan else 1e-12)
        assert 0 < after["kv_cache"] < before["kv_cache"] / 2
    assert hosted.value("memory") < plain.value("memory")


@pytest.mark.parametrize(("model", "system", "what", "plan"), some(CASES, 0.6))
def test_a_host_never_makes_a_pass_faster(model: str, system: str, what: str, plan: dict[str, Any]) -> None:
    plain = run(model, system, None, plan)
    last = {phase: plain.value(phase) for phase in ("prefill", "decode")}
    for part in (0.0, 0.1, 0.6, 1.0):
        found = run(model, system, what, plan, **{f"offloaded_{name}": part for name in what.split(",")})
        for phase, least in last.items():
            assert found.value(phase) >= least * (1 - 1e-12)
            if not part:
                assert found.value(phase) == pytest.approx(least)
            last[phase] = found.value(phase)


def test_streamed_weights_take_at_least_their_bytes_over_the_link() -> None:
    found = run("llama-3.1-8b", "h100-sxm", "weights", {}, offloaded_weights=0.5)
    least = found.host_memory()["weights"] / found.bound["host_bandwidth"][0]
    assert found.value("time_per_token") > least
    assert found.value("time_per_token") == pytest.approx(least, rel=0.02)  # all else of a step hides
    alone = run("llama-3.1-8b", "h100-sxm", "weights", {}, offloaded_weights=0.5, overlap_offload=0)
    plain = run("llama-3.1-8b", "h100-sxm", None, {})
    assert alone.value("time_per_token") == pytest.approx(least + plain.value("time_per_token"))


def test_a_step_with_a_hosted_cache_reads_its_mean_context() -> None:
    found = run("llama-3.1-8b", "h100-sxm", "cache", {}, overlap_offload=0)
    plain = run("llama-3.1-8b", "h100-sxm", None, {})
    tokens = WORK["prompt"] + WORK["generate"] / 2
    moved = WORK["batch"] * tokens * 32 * 2 * 8 * 128 * 2 / found.bound["host_bandwidth"][0]
    assert found.value("time_per_token") - plain.value("time_per_token") == pytest.approx(moved)


@given(work=st.floats(0.1, 3), slope=st.floats(0, 0.1), moved=st.floats(0.1, 6))
def test_the_mean_step_is_close_to_the_mean_of_steps(work: float, slope: float, moved: float) -> None:
    """Attention grows from step to step; the maximum of means is a lower bound, exact away from the crossover."""
    import sympy

    from symperf.operations.schedule import Op, Overlap, StepSeries, closed_form, sequence

    count = 40
    growing = Op("attention", sympy.Float(sum(slope * i for i in range(count))), summed=True)
    layer = Overlap(sequence(Op("products", sympy.Float(work)), growing), Op("fetch", sympy.Float(moved)), 1)
    found = float(closed_form(StepSeries(layer, count)))
    steps = sum(max(work + slope * i, moved) for i in range(count))
    assert found <= steps * (1 + 1e-9)
    assert found >= steps / 1.5
    if not work <= moved <= work + slope * (count - 1):
        assert found == pytest.approx(steps)


def test_experts_on_the_host_take_the_bytes_that_are_chosen() -> None:
    found = run("mixtral-8x7b", "h100-sxm", "experts", {})
    (op,) = (each for each in found.operations() if each.name.endswith("experts/host") and each.phase == "decode")
    chosen = 8 * (1 - (1 - 2 / 8) ** WORK["batch"])
    weights = chosen * 3 * 4096 * 14336 * 2
    assert op.time_s / op.count == pytest.approx(weights / found.bound["host_memory_bandwidth"][0], rel=1e-6)
    many = run("mixtral-8x7b", "h100-sxm", "experts", {}, host_memory_bandwidth=1e13)
    (op,) = (each for each in many.operations() if each.name.endswith("experts/host") and each.phase == "decode")
    assert op.time_s / op.count == pytest.approx(WORK["batch"] * 2 * 2 * 3 * 4096 * 14336 / 5.3e12, rel=1e-6)


def test_serving_holds_more_sequences_and_serves_them_no_faster() -> None:
    asked: dict[str, Any] = {"prompt": 1000, "generate": 100}
    plain = sf.serving("llama-3.1-8b", "h100-sxm", **asked)
    for what in ("weights", "cache"):
        found = sf.serving("llama-3.1-8b", "h100-sxm", sf.Plan(offload=what), **asked)
        assert found.limit(0) > plain.limit(0)
        assert found.point(0.0).tpot_s >= plain.point(0.0).tpot_s
        assert found.point(0.0).ttft_s >= plain.point(0.0).ttft_s
        assert found.steady.capacity.load <= plain.steady.capacity.load * (1 + 1e-9)


def test_runs_that_leave_nothing_to_a_host_have_no_terms_of_it() -> None:
    found = run("mixtral-8x7b", "h100-sxm", None, {})
    assert not any("offload" in name or "host" in name for name in found.compiled.program.outputs)
    assert not any(name.startswith(("host_", "offloaded_")) for name in found.compiled.program.inputs)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("llama-3.1-8b -s h100-sxm --offload optimizer", "expected weights or cache or experts in inference"),
        ("llama-3.1-8b -s h100-sxm --set offloaded_cache=0.5", "offloaded_cache: means something for what the host"),
        ("llama-3.1-8b -s h100-sxm --offload weight", "did you mean weights?"),
        ("llama-3.1-8b -s h100-sxm --offload weights=1.5", "--offload weights: found '1.5', expected a fraction"),
        ("llama-3.1-8b -s h100-sxm --offload weights=half", "--offload weights: found 'half', expected a fraction"),
        ("llama-3.1-8b -s h100-sxm --offload experts", "offload: found experts, but llama-3.1-8b has none"),
        ("mamba-1.4b -s h100-sxm --offload cache", "offload: found cache, but mamba-1.4b keeps no keys"),
        ("mixtral-8x7b -s rtx-4090 --offload experts", "rtx-4090 describes no bandwidth of its host's memory"),
        ("llama-3.1-8b -s tpu-v5e --offload weights", "tpu-v5e describes no link to its host"),
        ("mixtral-8x7b -s h100-sxm --dp 8 --ep 8 --offload experts", "experts do not go with ep = 8, expected 1"),
    ],
)
def test_what_a_host_cannot_do_is_refused(capsys: pytest.CaptureFixture[str], words: str, told: str) -> None:
    assert main(["infer", *words.split(), "--batch", "8", "--prompt", "64", "--generate", "8"]) == 2
    assert told in capsys.readouterr().err


def test_training_keeps_its_own_names() -> None:
    with pytest.raises(InputError, match=r"offload: found 'cache', expected .*\(cache is of inference only\)"):
        sf.training("llama-2-7b", "h100-sxm", sf.Plan(offload="cache"), batch=8, sequence=1024)
    with pytest.raises(InputError, match="the part of weights is given twice"):
        parse_offload("weights=0.5", {"offloaded_weights": 0.2})
