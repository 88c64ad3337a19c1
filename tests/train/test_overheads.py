"""What launches, software and stragglers add to a training step, and ZeRO-1's gathering beside the first pass."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import symperf as sf
from symperf.formulas.parallel.overheads import straggler_share
from symperf.operations.schedule import terms


def small(**values: Any) -> Any:
    """A step of kernels so short that launches could bind it."""
    model, system = sf.Model.load("gpt2"), sf.System.load("h100-sxm")
    return sf.training(model, system, sf.Plan(dp=2, attention="flash"), batch=4, sequence=128, **values)


def test_without_them_a_step_has_the_form_that_it_had() -> None:
    plain = small()
    assert small(host_latency=0, overhead_latency=0, jitter=0).structure == plain.structure
    assert not any(row.name.startswith(("host/", "waits/")) for row in plain.table())
    assert small(jitter=1e-9).value("time") == pytest.approx(plain.value("time"), rel=1e-6)


def test_launches_bind_small_kernels_and_hide_behind_large_ones() -> None:
    plain, slow, quick = small(), small(host_latency="20 us"), small(host_latency="1 ns")
    assert quick.value("time") == pytest.approx(plain.value("time"))
    assert slow.value("time") > plain.value("time")
    rows = {row.name: row for row in slow.table()}
    forward = rows["host/launches/forward"]
    assert forward.time_s > 0
    kernels = sum(
        slow.value(f"term/{path}/count")
        for path, leaf in terms(slow.schedule_tree()).items()
        if path.startswith("layer/") and path.endswith("/forward") and leaf.demand.message_bytes == 0
    )
    assert forward.count == kernels
    assert forward.each_s == pytest.approx(20e-6, rel=1e-12)
    assert slow.shares()["host"] > 0.5
    assert sum(slow.shares().values()) == pytest.approx(1)
    assert sum(row.time_s for row in slow.table()) == pytest.approx(slow.value("time"))


@given(st.floats(1e-6, 1e-3), st.floats(1.0, 4.0))
def test_a_slower_host_never_makes_a_step_faster(latency: float, factor: float) -> None:
    assert small(host_latency=latency * factor).value("time") >= small(host_latency=latency).value("time")


def test_a_fixed_time_is_added_once() -> None:
    assert small(overhead_latency=0.25).value("time") == pytest.approx(small().value("time") + 0.25)


def test_stragglers_stretch_the_step_by_the_bound_of_the_slowest_of_all() -> None:
    plain, spread = small(), small(jitter=0.05)
    share = 0.05 * 1.178 * math.sqrt(math.log2(2))
    assert spread.value("time") == pytest.approx(plain.value("time") * (1 + share))
    (row,) = [row for row in spread.table() if row.name == "waits/stragglers"]
    assert row.time_s == pytest.approx(plain.value("time") * share)


@pytest.mark.parametrize("devices", [2, 8, 64, 512])
def test_the_expected_slowest_of_many_is_below_the_bound(devices: int) -> None:
    draws = np.random.default_rng(devices).normal(size=(4000, devices)).max(axis=1)
    symbol = next(iter(straggler_share(devices).free_symbols))
    bound = float(straggler_share(devices).subs(symbol, 1))
    assert draws.mean() < bound < 2.2 * draws.mean()


@pytest.mark.parametrize("zero", [1, 2])
def test_updated_parameters_may_be_gathered_beside_the_first_forward_pass(zero: int) -> None:
    model, system = sf.Model.load("gpt-22b"), sf.System.load("a100-80gb-sxm")
    times = [
        sf.training(
            model, system, sf.Plan(tp=8, dp=4, zero=zero, overlap_parameters=part), batch=16, sequence=2048
        ).value("time")
        for part in (0.0, 0.5, 1.0)
    ]
    assert times[0] > times[1] > times[2]
    gather = sf.training(model, system, sf.Plan(tp=8, dp=4, zero=zero), batch=16, sequence=2048).value(
        "parameters/gather"
    )
    assert times[0] - times[1] == pytest.approx(gather / 2)
    assert times[0] - times[2] <= gather * (1 + 1e-12)
