"""The steady state beside an event-by-event simulation of the same policy: means within 5 %."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.serving_cases import affine, make

from symperf.serve.point import point
from symperf.serve.simulator import Measured, poisson
from symperf.serve.simulator import simulate as run
from symperf.serve.steady import Steady

if TYPE_CHECKING:
    from symperf.serve.engine import Engine

ENGINES = {
    "affine, cut prompts": affine(1000, 100, 4, 1),
    "affine, several prompts a chunk": affine(200, 100, 1, 5),
    "affine, one prompt a chunk": affine(400, 200, 1, 1, each=1e-4),
    "prefill only": affine(400, 1, 2, 1),
    "70b on h100": make("packed").steady.engine,
    "7b on a100, cut prompts": make("cut").steady.engine,
    "7b on a100, short prompts": make("short").steady.engine,
}
"""Engines whose memory is no limit at the loads that are tried."""


def simulate(engine: Engine, load: float, requests: int, seed: int) -> Measured:
    """Poisson arrivals; the first fifth is left out."""
    return run(engine, poisson(engine, load, seed), requests, skip=requests // 5)


cases = pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES.keys())


@cases
@pytest.mark.parametrize("part", [0.1, 0.3, 0.5, 0.6])
def test_means_agree_within_5_percent(engine: object, part: float) -> None:
    steady = Steady(engine)
    load = part * steady.capacity.load
    state, found = steady.at_load(load), simulate(engine, load, requests=12000, seed=7)
    assert state is not None
    assert found.throughput == pytest.approx(load, rel=0.05)
    assert state.first_token == pytest.approx(found.first_token, rel=0.05)
    if engine.generate > 1:
        assert state.iteration == pytest.approx(found.per_token, rel=0.05)
        assert state.decoding == pytest.approx(found.decoding, rel=0.05)


@cases
@pytest.mark.parametrize(("part", "within"), [(0.7, 0.05), (0.8, 0.05), (0.9, 0.1)])
def test_time_per_token_agrees_near_the_capacity(engine: object, part: float, within: float) -> None:
    steady = Steady(engine)
    load = part * steady.capacity.load
    state, found = steady.at_load(load), simulate(engine, load, requests=12000, seed=7)
    assert state is not None
    assert found.throughput == pytest.approx(load, rel=0.05)
    if engine.generate > 1:
        assert state.iteration == pytest.approx(found.per_token, rel=within)


@cases
def test_saturation_is_where_the_queue_grows(engine: object) -> None:
    steady = Steady(engine)
    above = 1.3 * steady.capacity.load
    assert steady.at_load(above) is None
    found = simulate(engine, above, requests=8000, seed=3)
    assert found.waiting_at_end > 500
    assert found.throughput == pytest.approx(steady.capacity.load, rel=0.05)
    assert simulate(engine, 0.7 * steady.capacity.load, requests=8000, seed=3).waiting_at_end < 100


@pytest.mark.parametrize("limit", [10, 30])
def test_memory_limits_throughput_as_simulated(limit: int) -> None:
    engine = affine(400, 200, 1, 1, each=1e-4, limit=limit)
    steady = Steady(engine)
    assert steady.capacity.limit == "kv_cache"
    found = simulate(engine, 1.3 * steady.capacity.load, requests=4000, seed=5)
    assert found.throughput == pytest.approx(steady.capacity.load, rel=0.05)
    for part in (0.2, 0.4, 0.6):
        load = part * steady.capacity.load
        state, measured = steady.at_load(load), simulate(engine, load, requests=8000, seed=5)
        assert state is not None
        assert state.iteration == pytest.approx(measured.per_token, rel=0.05)


@pytest.mark.parametrize("part", [0.3, 0.6, 0.8])
def test_bounds_of_percentiles_hold(part: float) -> None:
    serving = make("cut")
    load = part * serving.steady.capacity.load
    found = point(serving, load)
    assert found.ttft_bound_s is not None
    times = simulate(serving.steady.engine, load, requests=8000, seed=11).first_tokens
    for name, tail in (("p90", 0.1), ("p99", 0.01)):
        bound = found.ttft_bound_s[name]
        assert bound is not None
        assert sum(time > bound for time in times) <= tail * len(times)
