"""Prefill and decode on instances of their own."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.serving_cases import affine, make

from symperf.serve.limits import Targets
from symperf.serve.pools import pools
from symperf.serve.program import form

loads = st.floats(0.01, 1000)


@given(one=loads, two=loads)
def test_the_best_share_keeps_both_pools_busy(one: float, two: float) -> None:
    share = form("decode_pool_share", prefill_load=one, decode_load=two)
    each = form("balanced_pool_load", prefill_load=one, decode_load=two)
    assert (1 - share) * one == pytest.approx(each, rel=1e-9)
    assert share * two == pytest.approx(each, rel=1e-9)
    for other in (share / 2, (1 + share) / 2):
        assert min((1 - other) * one, other * two) <= each


@given(service=st.floats(0.001, 10), slack=st.floats(0.0001, 100))
def test_prefill_pool_load_solves_the_wait(service: float, slack: float) -> None:
    load = form("prefill_pool_load", service_time=service, wait_slack=slack)
    assert load * service < 1
    assert load * service**2 / (2 * (1 - load * service)) == pytest.approx(slack, rel=1e-6)


def test_an_instance_that_prefills_serves_the_closed_form() -> None:
    engine = affine(1000, 100, 4, 1)
    service = 4 * (0.01 + 2e-5 * 250)
    found = pools(engine, Targets(ttft=0.1), 0.0, 1)
    assert found is not None
    exact = form("prefill_pool_load", service_time=service, wait_slack=0.1 - service)
    assert found.prefill_load == pytest.approx(exact, rel=1e-5)


@pytest.mark.parametrize("instances", [2, 3, 5, 8, 64])
def test_the_whole_split_is_the_best_of_all(instances: int) -> None:
    found = pools(affine(1000, 100, 4, 1, limit=100), Targets(ttft=0.2, tpot=0.014), 0.01, instances)
    assert found is not None
    assert found.prefill_instances is not None
    assert found.decode_instances is not None
    assert found.prefill_instances + found.decode_instances == instances
    every = [min((instances - k) * found.prefill_load, k * found.decode_load) for k in range(1, instances)]
    assert found.load == pytest.approx(max(every), rel=1e-12)
    assert found.load <= instances * found.load_per_instance * (1 + 1e-12)
    assert found.tpot_s <= 0.014 * (1 + 1e-6)
    assert found.ttft_s is None or found.ttft_s <= 0.2 * (1 + 1e-6)


def test_one_instance_is_not_divided_and_a_single_token_needs_no_pools() -> None:
    engine = affine(1000, 100, 4, 1)
    assert pools(engine, Targets(), 0.0, 1).load is None
    assert pools(affine(1000, 1, 4, 1), Targets(), 0.0, 8) is None


def test_moving_the_cache_takes_its_bytes_over_the_bandwidth() -> None:
    serving = make("packed", dp=2)
    system = serving.run.bound
    rate = system["scale_out_bandwidth"][0] * system["scale_out_efficiency"][0]
    exact = serving.cache_bytes("prompt") / rate + system["scale_out_latency"][0]
    assert serving.transfer_s == pytest.approx(exact, rel=1e-12)
    assert serving.pools.tpot_s > serving.steady.engine.times.decode(1.0)


def test_a_target_that_the_transfer_breaks_has_no_pools() -> None:
    engine = affine(1000, 3, 4, 1)
    assert pools(engine, Targets(tpot=0.02), 1.0, 4) is None
