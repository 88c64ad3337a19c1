"""Requests that differ: lengths that spread, shared prefixes and conversations, beside simulations and exact limits."""

from __future__ import annotations

import dataclasses
import random

import pytest
from support.serving_cases import Affine, make

from symperf.serve.engine import Engine
from symperf.serve.lengths import Lengths
from symperf.serve.memory import shared_bytes
from symperf.serve.mix import mix_of
from symperf.serve.simulator import closed_loop, poisson, simulate
from symperf.serve.steady import Steady
from symperf.serve.workload import Workload

WORKLOADS = {
    "whole prompts": (400, 100, Workload(prompt_spread=0.5)),
    "many in a chunk": (100, 100, Workload(prompt_spread=0.8, generate_spread=0.5)),
    "one or cut": (1000, 200, Workload(prompt_spread=0.5, generate_spread=0.9)),
    "cut": (4000, 100, Workload(prompt_spread=0.6, generate_spread=0.3)),
    "a prefix": (1500, 100, Workload(prefix=1000, hit_rate=0.7, generate_spread=0.3)),
    "turns": (300, 100, Workload(turns=5, hit_rate=0.8)),
    "turns that all hit": (300, 100, Workload(turns=5)),
    "turns that never hit": (300, 100, Workload(turns=8, hit_rate=0)),
}
workloads = pytest.mark.parametrize("name", WORKLOADS)
CHUNK = 1000


def engine(name: str) -> Engine:
    """An engine of affine iterations for a workload."""
    prompt, generate, load = WORKLOADS[name]
    mix = mix_of(load, prompt, generate, CHUNK)
    assert mix is not None
    times = Affine(0.01, 5e-5, 2e-5)
    numbers = mix.tokens, generate, generate - 1.0, mix.chunks, mix.packed, 1, 10**6
    return Engine(times, *numbers, generate_ratio=load.generate_spread, chunk=float(CHUNK), mix=mix)


@workloads
def test_means_of_prompts_are_those_of_drawn_ones(name: str) -> None:
    mix, source = engine(name).mix, random.Random(1)
    assert mix is not None
    drawn = [mix.draw(source) for _ in range(20000)]
    chunks = [-(-new // CHUNK) for new, _ in drawn]
    count = len(drawn)
    assert mix.tokens == pytest.approx(sum(new for new, _ in drawn) / count, rel=0.02)
    assert mix.cached == pytest.approx(sum(cached for _, cached in drawn) / count, rel=0.02)
    assert mix.chunks == pytest.approx(sum(chunks) / count, rel=0.02)
    pairs = sum(new * (cached + new / 2) for new, cached in drawn) / count
    assert mix.tokens * (mix.chunk_context + mix.tokens / 2) == pytest.approx(pairs, rel=0.03)
    if mix.sums.whole < 1e-9:
        squares = sum(each**2 for each in chunks) / count
        assert mix.sums.chunk_squares == pytest.approx(squares, rel=0.02)


@workloads
def test_the_steady_state_is_that_of_the_simulation(name: str) -> None:
    serving = engine(name)
    steady = Steady(serving)
    load = 0.6 * steady.capacity.load
    state, found = steady.at_load(load), simulate(serving, poisson(serving, load, 7), 6000, skip=1000)
    assert state is not None
    assert state.first_token == pytest.approx(found.first_token, rel=0.12)
    assert state.iteration == pytest.approx(found.per_token, rel=0.05)


@workloads
def test_loops_and_the_capacity_are_those_of_the_simulation(name: str) -> None:
    serving = engine(name)
    steady = Steady(serving)
    count = max(2, int(0.5 * steady.capacity.decoding))
    found = simulate(serving, closed_loop(serving, count, seed=7), 5000, skip=10 * count)
    state = steady.at_concurrency(count)
    assert state.iteration == pytest.approx(found.per_token, rel=0.05)
    assert state.load == pytest.approx(found.throughput, rel=0.05)
    assert state.first_token == pytest.approx(found.first_token, rel=0.16)
    many = int(2 * steady.capacity.decoding)
    full = simulate(serving, closed_loop(serving, many, seed=7), 2 * many + 1500, skip=many)
    assert steady.capacity.load == pytest.approx(full.throughput, rel=0.05)


def test_uniform_lengths_have_their_moments() -> None:
    for mean, ratio in ((100, 0.3), (7, 0.9), (1024, 0.111), (1, 0.5)):
        law = Lengths(mean, ratio)
        every = range(law.lowest, law.highest + 1)
        assert law.expected == pytest.approx(sum(every) / len(every))
        assert law.squared == pytest.approx(sum(each**2 for each in every) / len(every))
        chunks = [-(-each // 64) for each in every]
        assert law.chunks(64) == pytest.approx((sum(chunks) / len(every), sum(c**2 for c in chunks) / len(every)))


# --- whole systems


def test_no_spread_no_hit_and_one_turn_change_nothing() -> None:
    plain = make("cut").point(1.0)
    for how in ({"prefix": 500, "hit_rate": 0.0}, {"turns": 1}, {"generate_spread": 1e-9}, {"max_generate": 128}):
        found = make("cut", **how).point(1.0)
        for field in dataclasses.fields(plain):
            one, other = getattr(plain, field.name), getattr(found, field.name)
            if isinstance(one, float) and field.name not in ("kv_use", "utilisation"):
                assert other == pytest.approx(one, rel=1e-9), (how, field.name)


def test_the_second_half_of_a_prompt_is_a_prompt_behind_a_cached_one() -> None:
    """Both chunks of a prompt take as long as one alone, and one that has as many tokens in the cache before it."""
    case = {"prompt": 2048, "chunk": 1024, "name": "cut"}
    both = make(**case).steady.engine.times.prefill(1024.0)
    first = make(**case | {"prompt": 1024}).steady.engine.times.prefill(1024.0)
    second = make(**case, prefix=1024).steady.engine.times.prefill(1024.0)
    assert 2 * both == pytest.approx(first + second, rel=2e-3)
    assert second > first


def test_a_step_behind_a_cached_prompt_is_a_step_behind_a_prompt() -> None:
    plain, cached = make("cut"), make("cut", prefix=1500)
    assert cached.steady.engine.times.decode(9.0) == pytest.approx(plain.steady.engine.times.decode(9.0), rel=1e-9)


def test_a_shared_prefix_is_held_once() -> None:
    plain, cached, missed = make("cut"), make("cut", prefix=1500), make("cut", prefix=1500, hit_rate=0.0)
    shared = shared_bytes(cached)
    assert shared > 0 == shared_bytes(plain) == shared_bytes(missed)
    assert cached.room(0).shared == shared
    assert cached.memory(0)["fixed"] == plain.memory(0)["fixed"]
    before, after = (each.cache_bytes("sequence") for each in (plain, cached))
    assert before - after == pytest.approx(shared, rel=0.02)
    assert missed.limit(0) == plain.limit(0) < cached.limit(0)


def test_cached_tokens_never_cost_more_than_prefilled_ones() -> None:
    waits = [make("cut", prefix=1200, hit_rate=rate).point(1.0).ttft_s for rate in (0.0, 0.3, 0.6, 1.0)]
    assert waits == sorted(waits, reverse=True)
    loads = [make("cut", turns=3, hit_rate=rate).steady.capacity.load for rate in (0.0, 0.5, 1.0)]
    assert loads == sorted(loads)


def test_reserved_memory_holds_fewer_sequences() -> None:
    plain, reserved = make("short"), make("short", max_generate=2048)
    assert reserved.limit(0) < plain.limit(0)
    assert reserved.steady.engine.times.decode(5.0) == pytest.approx(plain.steady.engine.times.decode(5.0), rel=1e-12)


def test_longer_requests_are_met_more_often() -> None:
    """Of lengths that spread, a step sees longer contexts than of lengths that are alike."""
    alike, spread = make("short", generate=1000), make("short", generate=1000, generate_spread=0.9)
    inputs = spread.requests.iteration_inputs()
    assert inputs["generate"] == pytest.approx(1000 * (1 + 0.27), rel=0.01)
    assert spread.steady.engine.times.decode(64.0) > alike.steady.engine.times.decode(64.0)
