"""Replicas in lock step against a simulation of several ranks, and in the answers of serving."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.effort import part
from support.lockstep_simulator import simulate
from support.serving_cases import affine

import symperf as sf
from symperf.serve.lockstep import fullest_prompts
from symperf.serve.program import form
from symperf.serve.steady import Steady

if TYPE_CHECKING:
    from symperf.serve.serving import Serving

WORKS = {"whole prompts": (1000, 100, 1, 2), "cut prompts": (1000, 100, 4, 1), "long chunks": (2048, 256, 1, 1)}


@pytest.mark.parametrize(("ranks", "shared", "load"), [(4, 0.0, 0.3), (4, 0.5, 0.8), (16, 0.0, 0.6), (16, 0.5, 0.3)])
@pytest.mark.parametrize("work", WORKS)
def test_ranks_in_lock_step_take_the_times_of_a_simulation(work: str, ranks: int, shared: float, load: float) -> None:
    engine = affine(*WORKS[work])
    engine = dataclasses.replace(engine, ranks=ranks, times=dataclasses.replace(engine.times, shared=shared))
    steady = Steady(engine)
    state = steady.at_load(load * steady.capacity.load)
    assert state is not None
    first, later, _ = simulate(engine, load * steady.capacity.load, 3000)
    assert state.first_token == pytest.approx(first, rel=0.2)
    assert state.iteration == pytest.approx(later, rel=0.15)


@given(st.floats(0, 1), st.integers(1, 256), st.floats(0, 100))
@part(0.5)
def test_more_ranks_prefill_in_more_iterations_and_wait_for_more(share: float, ranks: int, decoding: float) -> None:
    some = form("lockstep_share", chunk_share=share, ranks=ranks)
    assert share - 1e-12 <= some <= min(1, ranks * share) + 1e-12
    assert form("lockstep_share", chunk_share=share, ranks=1) == pytest.approx(share)
    fullest = form("fullest_rank_sequences", decoding=decoding, ranks=ranks)
    assert decoding <= fullest < decoding + 0.5
    seen = form("prefilling_ranks_seen", chunk_share=share, ranks=ranks)
    assert 1 / ranks - 1e-12 <= seen <= 1 + 1e-12


def test_the_fullest_rank_has_what_is_left_of_ceilings() -> None:
    """Counted: the mean over all remainders of ceil(N / d) - N / d."""
    for ranks in (1, 2, 8):
        counted = sum(-(-n // ranks) - n / ranks for n in range(ranks)) / ranks
        assert form("fullest_rank_sequences", decoding=5, ranks=ranks) == pytest.approx(5 + counted)


@given(st.floats(0.01, 3), st.integers(1, 8), st.integers(1, 64))
@part(0.5)
def test_the_fullest_of_more_ranks_begins_more_prompts(arrivals: float, most: int, ranks: int) -> None:
    one, several = fullest_prompts(arrivals, most, 1), fullest_prompts(arrivals, most, ranks)
    assert one <= several * (1 + 1e-9) <= most * (1 + 1e-8)
    assert one <= arrivals * (1 + 1e-9)


def served(load: float, **plan: Any) -> Serving:
    asked: dict[str, Any] = {"prompt": 2048, "generate": 64, "stack": "sglang-0.5", "load": load}
    return sf.serving("qwen3-30b-a3b", "h200-sxm", sf.Plan(**plan), **asked)


def test_only_replicas_that_share_experts_wait_for_one_another() -> None:
    """One request in a while finds the ranks idle; under load later tokens wait for the prefill of any rank."""
    apart, inside, together = (served(20, **plan) for plan in ({"dp": 8}, {"tp": 8, "ep": 8}, {"dp": 8, "ep": 8}))
    assert [each.lockstep_ranks for each in (apart, inside, together)] == [1, 1, 8]
    assert together.answer.prefill_share > 2 * apart.answer.prefill_share
    gathered = served(20, dp=8, ep=8, expert_exchange="gather")
    assert gathered.lockstep_ranks == 8


def test_each_replica_keeps_its_own_cache_and_its_share_of_the_experts() -> None:
    """Attention over replicas: the cache of a sequence is whole on each, its experts an eighth."""
    apart, together = served(1, dp=8), served(1, dp=8, ep=8)
    assert apart.cache_bytes("sequence") == together.cache_bytes("sequence")
    sizes = apart.run.model.sizes
    experts = 3 * sizes["num_experts"] * sizes["hidden_size"] * sizes["expert_intermediate_size"] * sizes["num_layers"]
    saved = apart.memory(0)["weights"] - together.memory(0)["weights"]
    assert saved == pytest.approx(2 * experts * 7 / 8, rel=1e-9)


LOOPS = [
    *(("whole prompts", 16, 0.5, 0.0, 8), ("cut prompts", 4, 0.0, 0.0, 8), ("long chunks", 16, 0.0, 0.0, 8)),
    *(("whole prompts", 4, 0.5, 0.4, 8), ("cut prompts", 4, 0.0, 0.4, 2), ("long chunks", 16, 0.5, 0.4, 8)),
]


@pytest.mark.parametrize(("work", "ranks", "shared", "spread", "flying"), LOOPS)
def test_loops_of_ranks_in_lock_step_take_the_times_of_a_simulation(
    work: str, ranks: int, shared: float, spread: float, flying: int
) -> None:
    """Requests that are all alike stay in step on all ranks, which then prefill together; others lose it."""
    engine = affine(*WORKS[work])
    times = dataclasses.replace(engine.times, shared=shared)
    engine = dataclasses.replace(engine, ranks=ranks, times=times, generate_ratio=spread)
    state = Steady(engine).at_concurrency(flying)
    first, later, rate = simulate(engine, 0.0, 1500, seed=3, flying=flying)
    assert state.first_token == pytest.approx(first, rel=0.02 if not spread else 0.05)
    assert state.iteration == pytest.approx(later, rel=0.03 if not spread else 0.06)
    assert state.load == pytest.approx(rate, rel=0.08)
