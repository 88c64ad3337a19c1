"""Products whose loops were measured: their time by hand, the cast of narrow ones, and unaligned vocabularies."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from support.known_kernels import known

import symperf as sf
from symperf.infer.reached import reached_on
from symperf.infer.stack import Stack
from symperf.systems.kernel_constants import FAMILIES
from symperf.systems.system import System, catalogue_names

IDLE: dict[str, Any] = {"gap_latency": 0.0, "graph_removal": 1.0, "sustained_efficiency": 1.0}
B200, OLD, NEW = "b200-sxm", "vllm", "vllm-0.24"
"""A system whose loops are known, software that knows no constants of kernels, and software that knows some."""


def _run(system: sf.System | str, precision: str | None, **values: Any) -> Any:
    plan = sf.Plan(precision=precision)
    return sf.inference("llama-2-7b", system, plan, batch=16, prompt=128, generate=2, stack=OLD, **IDLE | values)


def _casting() -> sf.System:
    """The system with constants of casts, which no profile replaces here."""
    return known(B200, "casts", narrow_ends=300.0, cast_ends=1000.0, cast_passes=1.5)


def _seconds(run: Any, name: str) -> float:
    return float(next(row.each_s for row in run.table() if row.name == name))


def _by_hand(run: Any, m: int, n: int, k: int) -> float:
    """A product in the plan's format: tiles of 64 x 64 and bytes, the loop over k, and the cast."""
    b = {name: value for name, (value, _) in run.bound.items()}
    narrow = b["operand_bytes"] < 2
    moved = b["memory_bandwidth"] * b["memory_efficiency"]
    ends = b["narrow_ends"] if narrow else b["inner_ends"]
    tiles = math.ceil(m / 64) * math.ceil(n / 64)
    compute = 2 * 64**2 * tiles * (k + ends) / (b["matrix_rate"] * b["matrix_efficiency"])
    transfer = (m * k * b["operand_bytes"] + n * k * b["weight_bytes"] + 2 * m * n) / moved
    work = max(compute, transfer, (compute + transfer) / (2 * b["ridge_efficiency"]))
    if not narrow:
        return float(max(work, min(k * b["inner_latency"], work + b["split_latency"])) + b["launch_latency"])
    cast = m * (2 * b["cast_passes"] * (k + b["cast_ends"]) + b["operand_bytes"] * k) / moved + b["cast_latency"]
    return float(max(work, k * b["inner_latency"] / 2) + b["launch_latency"] + cast)


@pytest.mark.parametrize("precision", [None, "fp8", "fp8-block", "fp4"])
@pytest.mark.parametrize(("phase", "rows"), [("prefill", 16 * 128), ("decode", 16)])
def test_a_product_is_the_one_by_hand(precision: str | None, phase: str, rows: int) -> None:
    run = _run(_casting(), precision)
    assert _seconds(run, f"{phase}/layer/mlp/down") == pytest.approx(_by_hand(run, rows, 4096, 11008))


def test_16_bit_plans_and_16_bit_products_have_no_cast() -> None:
    """Neither the products of a 16-bit plan nor the head of a narrow one pay for casts."""
    system, more = _casting(), {"cast_latency": 0.1}
    assert _run(system, None, **more).value("time") == _run(system, None).value("time")
    head = "decode/head/logits"
    assert _seconds(_run(system, "fp8", **more), head) == _seconds(_run(system, "fp8"), head)
    assert _seconds(_run(system, "fp8", **more), "decode/layer/mlp/down") > 0.1


def test_narrow_weights_start_later_and_cast_nothing() -> None:
    late = 7e-6
    run = _run(known("a100-80gb-sxm", "late_starts", "casts", format_latency=late), "int4-weight")
    name = "decode/layer/mlp/down"
    earlier = _seconds(run.bind(format_latency=0.0), name)
    assert _seconds(run, name) == pytest.approx(late + earlier)


def test_old_profiles_know_nothing_of_loops() -> None:
    """What is not in a profile changes no prediction of it."""
    old, new = (
        sf.inference("llama-2-7b", "h100-sxm", batch=16, prompt=128, generate=2, stack=stack) for stack in (OLD, NEW)
    )
    assert "loops" not in old.structure.families
    assert "loops" in new.structure.families


def test_every_constant_of_a_family_is_there_or_none() -> None:
    """The catalogue gives whole families, in system files and in profiles on every system that they name."""
    for name in catalogue_names():
        known = System.load(name).quantities
        assert ("inner_latency" in known) == ("inner_ends" in known), name
    for profile in ("tensorrt-llm-1.3", "vllm-0.24", "sglang-0.5"):
        stack = Stack.load(profile)
        for name in stack.reached.keys() & set(catalogue_names()):
            reached = reached_on(System.load(name), stack.reached)
            assert FAMILIES["casts"].keys() <= reached.constants.keys(), (profile, name)


def test_a_looped_step_takes_fewer_instructions() -> None:
    """The kernels' speed depends on it: loops need a third less than tiles to choose from."""
    from symperf.codegen.passes import prune

    def count(system: str) -> int:
        plan = sf.Plan(tp=8, pp=8)
        run = sf.training("gpt3-175b", system, plan, batch=64, sequence=2048)
        return len(prune(run.compiled.program, ["time"]))

    assert count(B200) < 0.67 * count("h100-sxm")


@pytest.mark.parametrize("system", ["a100-80gb-sxm", B200])
def test_an_unaligned_vocabulary_slows_the_products_with_it_alone(system: str) -> None:
    plan = sf.Plan(micro_batch=8, attention="flash", dropout=False)
    unaligned = sf.training("gpt2", system, plan, batch=8, sequence=1024)
    aligned = sf.training("gpt2", system, plan, batch=8, sequence=1024, vocab_size=50304)
    assert any("50304" in text for text in unaligned.warnings)
    assert not any("aligned" in text for text in aligned.warnings)
    slow, fast = ({row.name: row.time_s for row in run.table()} for run in (unaligned, aligned))
    slower = {name for name in fast if slow[name] > 1.05 * fast[name]}
    assert slower == {name for name in fast if "/logits/" in name}
    equal = unaligned.bind(alignment_efficiency=1.0)
    assert equal.value("time") == pytest.approx(aligned.value("time"), rel=0.01)


def test_gpt2_gains_a_quarter_by_a_padded_vocabulary() -> None:
    """A. Karpathy on nanoGPT (2023): about 25 % on A100 of 40 GB with micro-batches of 12."""
    plan = sf.Plan(micro_batch=12, attention="flash", dropout=False)
    times = [
        sf.training("gpt2", "a100-40gb-sxm", plan, batch=12, sequence=1024, vocab_size=size).value("time")
        for size in (50257, 50304)
    ]
    assert times[0] / times[1] == pytest.approx(1.25, abs=0.03)


def test_a_vocabulary_that_is_split_is_padded() -> None:
    """Times of a group of devices do not jump with the divisibility of the vocabulary."""
    plan = sf.Plan(tp=2, attention="flash", dropout=False)
    times = [
        sf.training("gpt2", "a100-80gb-sxm", plan, batch=8, sequence=1024, vocab_size=size).value("time")
        for size in (50257, 50304)
    ]
    assert times[0] == pytest.approx(times[1], rel=0.005)


def test_time_falls_with_rates_and_grows_with_latencies() -> None:
    run = _run(_casting(), "fp8")
    base = run.value("time")
    for name in ("matrix_rate", "memory_bandwidth", "memory_efficiency", "ridge_efficiency"):
        assert run.bind(**{name: 0.9 * run.bound[name][0]}).value("time") >= base, name
    for name in ("inner_latency", "inner_ends", "narrow_ends", "cast_latency", "cast_passes", "cast_ends"):
        assert run.bind(**{name: 1.1 * run.bound[name][0]}).value("time") >= base, name
    assert np.isfinite(base)
