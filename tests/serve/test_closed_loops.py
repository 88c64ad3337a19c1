"""Closed loops, bursts and finite runs beside an event-by-event simulation, and what holds exactly."""

from __future__ import annotations

import dataclasses
import itertools
import math
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.serving_cases import Affine, affine

from symperf.serve.bursts import Burst, finite_run
from symperf.serve.closed import ClosedLoop
from symperf.serve.simulator import burst, closed_loop, poisson, simulate
from symperf.serve.steady import Steady

if TYPE_CHECKING:
    from symperf.serve.engine import Engine

ENGINES = {
    "cut prompts": affine(1000, 100, 4, 1),
    "one prompt a chunk": affine(400, 200, 1, 1, each=1e-4),
    "several prompts a chunk": affine(200, 100, 1, 5),
    "few places": affine(400, 200, 1, 1, each=1e-4, limit=12),
}
engines = pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES.keys())
ratios = pytest.mark.parametrize("ratio", [0.0, 0.1, 0.5])


def spread(engine: Engine, ratio: float) -> Engine:
    """An engine whose requests generate from (1 - r) to (1 + r) times as much."""
    return dataclasses.replace(engine, generate_ratio=ratio)


@engines
@ratios
@pytest.mark.parametrize("part", [0.1, 0.4, 0.75])
def test_a_loop_is_that_of_the_simulation(engine: Engine, ratio: float, part: float) -> None:
    engine = spread(engine, ratio)
    steady = Steady(engine)
    most = min(steady.capacity.decoding, float(engine.limit))
    count = max(1, round(part * most))
    requests = max(40 * count, 400)
    source = closed_loop(engine, count, 3 * requests, seed=3)
    found = simulate(engine, source, requests + 10 * count, skip=10 * count)
    state = steady.at_concurrency(count)
    assert state.first_token == pytest.approx(found.first_token, rel=0.06)
    assert state.iteration == pytest.approx(found.per_token, rel=0.03)
    assert state.load == pytest.approx(found.throughput, rel=0.05)


@engines
def test_a_loop_of_one_is_a_request_alone(engine: Engine) -> None:
    alone, found = Steady(engine).at_arrivals(0.0), Steady(spread(engine, 0.3)).at_concurrency(1)
    assert found.first_token == pytest.approx(alone.first_token, rel=1e-9)
    assert found.iteration == pytest.approx(alone.iteration, rel=1e-9)


@settings(max_examples=60, deadline=None)
@given(
    name=st.sampled_from(sorted(ENGINES)),
    ratio=st.floats(0.0, 0.9),
    count=st.floats(1.0, 3000.0),
)
def test_littles_law_holds_exactly(name: str, ratio: float, count: float) -> None:
    engine = spread(ENGINES[name], ratio)
    state = Steady(engine).at_concurrency(count)
    assert state.load * (state.first_token + engine.steps * state.iteration) == pytest.approx(count, rel=1e-12)
    assert state.load <= Steady(engine).capacity.load * 1.02
    assert min(state.boundary, state.queue, state.cache) >= 0


@engines
@ratios
def test_a_benchmark_is_that_of_the_simulation(engine: Engine, ratio: float) -> None:
    """N at once, then a loop, ten requests for each place: means over all, and the rate from first to last."""
    engine = spread(engine, ratio)
    for count in (1, 8, 20, 60):
        found = simulate(engine, closed_loop(engine, count, 10 * count, seed=3))
        run = finite_run(ClosedLoop(Steady(engine), count), 10 * count)
        assert run.first_token == pytest.approx(found.first_token, rel=0.1)
        assert run.iteration == pytest.approx(found.per_token, rel=0.05)
        assert run.throughput == pytest.approx(found.throughput, rel=0.05)


@engines
@pytest.mark.parametrize("count", [1, 7, 40, 200])
def test_a_burst_is_that_of_the_simulation(engine: Engine, count: int) -> None:
    found = simulate(engine, burst(engine, count))
    run = Burst(ClosedLoop(Steady(engine), count)).alone()
    assert run.first_token == pytest.approx(found.first_token, rel=0.03)
    assert run.burst_last_first_token == pytest.approx(max(found.first_tokens), rel=0.03)
    assert run.iteration == pytest.approx(found.per_token, rel=0.04)
    assert run.duration == pytest.approx(found.end, rel=0.05)


@pytest.mark.parametrize(("prompt", "generate"), [(800, 20), (400, 200), (100, 400)])
@pytest.mark.parametrize("count", [130, 200, 470, 500])
def test_a_burst_of_several_waves_is_that_of_the_simulation(prompt: int, generate: int, count: int) -> None:
    """More than may run at once, bound by prefill, by places, and between the two; with and without a rest."""
    engine = affine(prompt, generate, 1, 4, each=1e-4, limit=100)
    found = simulate(engine, burst(engine, count))
    run = Burst(ClosedLoop(Steady(engine), count)).alone()
    assert run.duration == pytest.approx(found.end, rel=0.02)
    assert run.first_token == pytest.approx(found.first_token, rel=0.03)
    assert run.iteration == pytest.approx(found.per_token, rel=0.12)


def test_more_requests_in_flight_never_serve_less() -> None:
    for engine in ENGINES.values():
        for ratio in (0.0, 0.4):
            steady = Steady(spread(engine, ratio))
            loads = [steady.at_concurrency(1.3**k).load for k in range(26)]
            assert all(after >= before * 0.99 for before, after in itertools.pairwise(loads))
            assert math.isclose(loads[-1], steady.capacity.load, rel_tol=0.03)


@dataclasses.dataclass(frozen=True)
class Apart(Affine):
    """Prompts in iterations of their own, which come first."""

    apart: bool = True

    def mixed(self, sequences: float, tokens: float, ranks: float = 1.0) -> float:
        return self.decode(sequences) + self.prefill(tokens, ranks)


def prefilled_apart(name: str) -> Engine:
    engine = ENGINES[name]
    return dataclasses.replace(engine, times=Apart(engine.times.base, engine.times.each, engine.times.token))


@pytest.mark.parametrize("name", ["cut prompts", "one prompt a chunk", "several prompts a chunk"])
@ratios
def test_loops_where_prompts_come_first_are_those_of_the_simulation(name: str, ratio: float) -> None:
    engine = spread(prefilled_apart(name), ratio)
    for count in (4, 16, 48):
        found = simulate(engine, closed_loop(engine, count, seed=3), 40 * count + 400, skip=20 * count)
        state = Steady(engine).at_concurrency(count)
        assert state.first_token == pytest.approx(found.first_token, rel=0.1)
        assert state.iteration == pytest.approx(found.per_token, rel=0.06)
        assert state.load == pytest.approx(found.throughput, rel=0.05)


@pytest.mark.parametrize("name", ["cut prompts", "one prompt a chunk", "several prompts a chunk"])
@pytest.mark.parametrize("part", [0.3, 0.6, 0.8])
def test_random_arrivals_where_prompts_come_first_are_those_of_the_simulation(name: str, part: float) -> None:
    engine = dataclasses.replace(prefilled_apart(name), limit=400)
    steady = Steady(engine)
    load = part * steady.capacity.load
    state, found = steady.at_load(load), simulate(engine, poisson(engine, load, 3), 5000, skip=1000)
    assert state is not None
    assert state.first_token == pytest.approx(found.first_token, rel=0.06)
    assert state.iteration == pytest.approx(found.per_token, rel=0.03)
