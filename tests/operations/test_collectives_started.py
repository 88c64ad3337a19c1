"""What a collective costs beside its hops and bytes: the start of its kernel; and the listings that tell latencies."""

from __future__ import annotations

import csv
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.calibration_scripts import FOLDER, script
from support.collective_cases import literature

import symperf as sf
from symperf.formulas import collectives
from symperf.infer.stack import Stack

SYSTEMS = {"A100": "a100-80gb-sxm", "H100": "h100-sxm", "H200": "h200-sxm"}


def value(system: str, name: str) -> float:
    return sf.System.load(system).value(name)


def seconds(run: Any, name: str, phase: str) -> float:
    """Seconds of one call."""
    (found,) = [op for op in run.operations() if (op.name, op.phase) == (name, phase)]
    return float(found.time_s) / found.count


def small(system: str, message: float, ranks: int) -> float:
    """A small all-reduce by the low-latency protocol: twice the bytes, and two hops for each doubling of the ranks."""
    rate = value(system, "scale_up_bandwidth") * value(system, "scale_up_efficiency")
    return 4 * (ranks - 1) / ranks * message / rate + 2 * math.log2(ranks) * value(system, "scale_up_latency")


@given(st.floats(0, 1e3), st.integers(1, 4096), st.floats(0, 1))
def test_a_start_is_paid_once_and_not_alone(time: float, ranks: int, start: float) -> None:
    found = float(collectives.started_collective_time(time, ranks, start).doit())
    assert found == pytest.approx(time + (start if ranks > 1 else 0.0))


@pytest.mark.parametrize("tp", [2, 4, 8])
def test_an_all_reduce_of_a_token_starts_as_a_kernel(tp: int) -> None:
    """One token of Llama 2 7B: 8 KiB; the library's kernel follows the software's gap."""
    system, work = literature("h100-sxm"), {"batch": 1, "prompt": 8, "generate": 2}
    run = sf.inference("llama-2-7b", system, sf.Plan(tp=tp), **work, stack="tensorrt-llm")
    start = value("h100-sxm", "launch_latency") + Stack.load("tensorrt-llm").quantities["gap_latency"].value
    assert seconds(run, "layer/mlp/reduce", "decode") == pytest.approx(small("h100-sxm", 8192, tp) + start, rel=1e-9)


def test_software_s_own_all_reduce_has_no_start_beside_its_time() -> None:
    run = sf.inference("llama-2-7b", "h100-sxm", sf.Plan(tp=8), batch=1, prompt=8, generate=2, stack="vllm")
    rate = value("h100-sxm", "scale_up_bandwidth") * value("h100-sxm", "peer_efficiency")
    wanted = value("h100-sxm", "peer_latency") + 7 * 8192 / rate
    assert seconds(run, "layer/mlp/reduce", "decode") == pytest.approx(wanted, rel=1e-9)


def test_collectives_and_sends_of_a_step_start_too() -> None:
    """Each call takes as much longer as a kernel takes to start, however many ranks and bytes it has."""
    plan = sf.Plan(tp=2, pp=2, dp=2)
    made = sf.training("gpt-6.7b", literature("a100-80gb-sxm"), plan, batch=8, sequence=1024)
    slow = made.bind(launch_latency=1e-3 + value("a100-80gb-sxm", "launch_latency"))
    more = {
        after.name: after.each_s - before.each_s
        for before, after in zip(made.table(), slow.table(), strict=True)
        if {"reduce", "send", "gather"} & set(after.name.split("/"))
    }
    assert len(more) >= 3
    assert list(more.values()) == pytest.approx([1e-3] * len(more), rel=1e-6)


# --- what tells latencies


def listed(part: str) -> list[dict[str, str]]:
    with (FOLDER / "nccl.csv").open(encoding="utf-8", newline="") as file:
        return [row for row in csv.DictReader(file) if row["hw_key"].startswith(part)]


def test_listings_have_sources_and_only_calibrate() -> None:
    rows = [*listed("A100"), *listed("H100")]
    assert len(rows) == 149
    assert len({row["id"] for row in rows}) == len(rows)
    for row in rows:
        assert row["use"] == "calibration"
        assert row["url"].startswith("https://github.com/")
        assert row["source_locator"]
        assert float(row["time_us"]) > 0


@pytest.mark.parametrize("ranks", [4, 8])
def test_all_reduces_of_4_to_512_kib_on_h100_are_as_listed(ranks: int) -> None:
    """Within 25 % each and 12 % in the mean, by one latency for both numbers of ranks."""
    rows = [
        row
        for row in listed("H100")
        if row["num_devices"] == str(ranks) and 2**12 <= float(row["message_bytes"]) <= 2**19
    ]
    gaps = {"stream": 2.1e-6, "graph": 1.3e-6}
    errors = [
        (
            small("h100-sxm", float(row["message_bytes"]), ranks)
            + value("h100-sxm", "launch_latency")
            + gaps[row["mode"]]
        )
        / (float(row["time_us"]) * 1e-6)
        - 1
        for row in rows
    ]
    assert len(rows) >= 8
    assert np.abs(errors).max() < 0.25
    assert np.abs(errors).mean() < 0.12


def test_the_catalogue_has_what_the_script_finds() -> None:
    with script("collectives") as found:
        for part in ("A100", "H100"):
            latency = found.latency_of(part)
            quantity = sf.System.load(SYSTEMS[part]).quantities["scale_up_latency"]
            assert quantity.value == pytest.approx(latency[0], rel=0.01)
            assert (quantity.low, quantity.high) == pytest.approx(latency[1:], rel=0.01)
            sets, link, share = found.PARTS[part]
            predict = found.partial(found.called, part, found.FORM, link * share[0])
            half = found.fit_half(predict, list(sets.values()), latency[0])
            assert value(SYSTEMS[part], "scale_up_half_bytes") == pytest.approx(half[0], rel=0.03)
    assert value("h200-sxm", "scale_up_latency") == value("h100-sxm", "scale_up_latency")


# --- the profile of a release


@pytest.mark.parametrize(
    ("stack", "split"), [("tensorrt-llm-0.6", False), ("tensorrt-llm", False), ("tensorrt-llm-0.13", True)]
)
def test_tensorrt_llm_splits_long_contexts_from_0_13_on(stack: str, split: bool) -> None:
    """32 heads of one sequence leave most of 132 units idle, which long contexts notice."""
    assert Stack.load(stack).fusion.split_context is split
    times = []
    for name in (stack, "tensorrt-llm-0.13"):
        run = sf.inference("llama-2-7b", "h100-sxm", batch=1, prompt=3000, generate=2, stack=name)
        times.append(seconds(run, "layer/attention/flash", "decode"))
    assert times[0] / times[1] == pytest.approx(1.0) if split else times[0] > 1.5 * times[1]


def test_tensorrt_llm_sums_by_kernels_of_its_own_from_0_9_on() -> None:
    """The default of the builder changed; the sums of a step become faster, and nothing else does."""
    sums, rest = [], []
    for name in ("tensorrt-llm", "tensorrt-llm-0.9"):
        run = sf.inference("llama-2-13b", "h100-sxm", sf.Plan(tp=8), batch=1, prompt=200, generate=2, stack=name)
        found = {op.name: op.time_s for op in run.operations() if op.phase == "decode"}
        sums.append(sum(time for op, time in found.items() if op.endswith("reduce")))
        rest.append({op: time for op, time in found.items() if not op.endswith("reduce")})
    assert sums[1] < 0.8 * sums[0]
    assert rest[0] == rest[1]


def test_the_device_idles_between_the_engine_calls_of_tensorrt_llm() -> None:
    """115 us a step, which one sequence of a small model notices and a whole request pays for every token."""
    run = sf.inference("llama-2-7b", "h100-sxm", batch=1, prompt=200, generate=200, stack="tensorrt-llm")
    without = run.bind(step_latency=0.0)
    assert run.value("time") - without.value("time") == pytest.approx(200 * 115e-6, rel=0.01)
