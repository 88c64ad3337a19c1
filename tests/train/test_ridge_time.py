"""The corner of the roofline: a maximum of sums between perfect overlap and none, that acts near the ridge alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.paths import ONE_LAYER

import symperf as sf
from symperf.analysis.bounds import bounds
from symperf.common.errors import InputError
from symperf.formulas.kernels.roofline import ridge_time
from symperf.formulas.language.symbols import SYMBOLS

ETA = SYMBOLS["ridge_efficiency"].symbol
TIMES = st.floats(1e-6, 1e3)


def time(work: float, transfer: float, eta: float) -> float:
    return float(ridge_time(work, transfer).subs(ETA, eta))


@given(work=TIMES, transfer=TIMES, eta=st.floats(0.5, 1.0))
def test_it_lies_between_perfect_overlap_and_one_after_the_other(work: float, transfer: float, eta: float) -> None:
    found = time(work, transfer, eta)
    assert max(work, transfer) <= found <= (work + transfer) * (1 + 1e-12)
    assert found == pytest.approx(time(transfer, work, eta), rel=1e-12)
    assert time(2 * work, 2 * transfer, eta) == pytest.approx(2 * found, rel=1e-12)


@given(work=TIMES, eta=st.floats(0.5, 1.0))
def test_at_the_ridge_it_attains_its_share_of_the_peak(work: float, eta: float) -> None:
    assert time(work, work, eta) == pytest.approx(work / eta, rel=1e-12)


@given(work=TIMES, transfer=TIMES)
def test_the_ends_are_the_maximum_and_the_sum(work: float, transfer: float) -> None:
    assert time(work, transfer, 1.0) == pytest.approx(max(work, transfer), rel=1e-12)
    assert time(work, transfer, 0.5) == pytest.approx(work + transfer, rel=1e-12)


@given(work=TIMES, eta=st.floats(0.55, 0.99))
def test_far_from_the_ridge_the_shorter_hides_wholly(work: float, eta: float) -> None:
    shorter = work * (2 * eta - 1)
    assert time(work, 0.999 * shorter, eta) == pytest.approx(work, rel=1e-12)
    assert time(work, 1.001 * shorter, eta) > work


def test_a_product_at_the_ridge_is_bound_by_both_and_a_crossover_is_where_they_are_equal() -> None:
    """On a device without tiles: 2 m n k / F = 2 (m k + k n + m n) / beta where both take equally long."""
    table = {
        "name": "x",
        "matrix_rate": {"bf16": 100e12},
        "memory_bandwidth": 1e12,
        "memory_capacity": 80e9,
        "launch_latency": 0.0,
        "matrix_efficiency": 1.0,
        "memory_efficiency": 1.0,
        "ridge_efficiency": 0.75,
    }
    run = sf.training(sf.Model.load(ONE_LAYER), sf.System.from_table(table, "x"), sf.Plan(), batch=1, sequence=128)
    near = [row for row in run.table() if row.flops and row.name == "layer/mlp/up/forward"]
    assert len(near) == 1
    up = near[0]
    work, moved = up.flops / up.count / 100e12, up.bytes / up.count / 1e12
    assert up.each_s == pytest.approx(max(work, moved, (work + moved) / 1.5), rel=1e-9)
    assert up.each_s > 1.05 * max(work, moved)
    assert up.theory_s == pytest.approx(max(work, moved) * up.count, rel=1e-9)


def test_one_after_the_other_has_no_corner() -> None:
    run = sf.training(sf.Model.load("gpt-22b"), sf.System.load("a100-80gb-sxm"), sf.Plan(tp=8), batch=8, sequence=2048)
    serial = bounds(run).serial
    rounder = run.bind(ridge_efficiency=0.5)
    assert bounds(rounder).serial == pytest.approx(serial, rel=1e-12)
    assert run.value("time") <= rounder.value("time") <= serial


@pytest.mark.parametrize("value", [0.49, 1.01, 0, -1])
def test_a_share_outside_a_half_to_one_is_refused(value: float) -> None:
    with pytest.raises(InputError, match="ridge_efficiency"):
        sf.training(
            sf.Model.load("gpt-22b"), sf.System.load("a100-80gb-sxm"), sf.Plan(tp=8), batch=8, sequence=2048
        ).bind(ridge_efficiency=value)
