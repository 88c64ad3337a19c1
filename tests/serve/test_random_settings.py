"""The closed forms beside simulations of random settings: forty of them nightly, a few by default."""

from __future__ import annotations

import pytest
from support.effort import NIGHTLY
from support.random_settings import compare, draw, prefilled_first
from support.serving_cases import make

from symperf.serve.simulator import closed_loop, simulate

SEEDS = range(40) if NIGHTLY else (1, 6, 14, 21, 25)
REQUESTS = 12000 if NIGHTLY else 4000


@pytest.mark.parametrize("seed", SEEDS)
def test_closed_forms_are_near_the_simulation(seed: int) -> None:
    """TPOT and throughput within 5 % up to 0.9 of the capacity, TTFT within 10 % up to 0.8."""
    found = compare(draw(seed), REQUESTS)
    if found.used <= 0.9:
        assert abs(found.errors["tpot"]) <= 0.05, found.setting.name
        assert abs(found.errors["throughput"]) <= 0.05, found.setting.name
    if found.used <= 0.8:
        assert abs(found.errors["ttft"]) <= 0.1, found.setting.name


@pytest.mark.parametrize("seed", range(0, 80, 2) if NIGHTLY else (2, 6, 24, 36))
def test_random_arrivals_are_near_the_simulation_where_prompts_come_first(seed: int) -> None:
    """As SGLang schedules: TPOT and throughput within 5 %, TTFT within 6 %, cut prompts and several a chunk."""
    found = compare(prefilled_first(draw(seed)), REQUESTS)
    assert abs(found.errors["tpot"]) <= 0.05, found.setting.name
    assert abs(found.errors["throughput"]) <= 0.05, found.setting.name
    assert abs(found.errors["ttft"]) <= 0.06, found.setting.name


@pytest.mark.parametrize("name", ["packed", "cut", "short"] if NIGHTLY else ["cut"])
@pytest.mark.parametrize("ratio", [0.0, 0.2])
def test_loops_of_models_are_near_the_simulation(name: str, ratio: float) -> None:
    steady = make(name, generate_spread=ratio).steady
    for part in (0.2, 0.6):
        count = max(1, round(part * steady.capacity.decoding))
        found = simulate(steady.engine, closed_loop(steady.engine, count, seed=7), 60 * count, skip=20 * count)
        state = steady.at_concurrency(count)
        assert state.iteration == pytest.approx(found.per_token, rel=0.05)
        assert state.load == pytest.approx(found.throughput, rel=0.05)
        assert state.first_token == pytest.approx(found.first_token, rel=0.1)
