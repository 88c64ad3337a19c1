"""Speculative decoding: tokens of a step by chance, and the true time of the step that verifies."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.serving_cases import make

import symperf as sf
from symperf.serve.program import form

alphas = st.floats(0.01, 0.99)


def drafted(**how: object) -> object:
    return make("packed", draft=sf.Model.load("llama-2-7b"), **({"acceptance": 0.7} | how))


@given(alpha=alphas, length=st.integers(1, 40))
def test_expected_tokens_are_the_sum_of_their_chances(alpha: float, length: int) -> None:
    found = form("expected_tokens", acceptance=alpha, draft_length=length)
    assert found == pytest.approx(sum(alpha**i for i in range(length + 1)), rel=1e-9)
    assert 1 <= found <= length + 1


def test_expected_tokens_agree_with_chance() -> None:
    """Leviathan et al. 2023, equation 1: 3.36 tokens at alpha 0.8 and five drafts are (1 - 0.8^6) / 0.2 = 3.689."""
    chance = random.Random(4)

    def step() -> int:
        taken = 1
        while taken < 6 and chance.random() < 0.8:
            taken += 1
        return taken

    mean = sum(step() for _ in range(200_000)) / 200_000
    assert form("expected_tokens", acceptance=0.8, draft_length=5) == pytest.approx(3.68928, rel=1e-9)
    assert mean == pytest.approx(3.68928, rel=0.01)


@given(alpha=alphas, length=st.integers(1, 12), cost=st.floats(0.001, 1))
def test_with_free_verification_it_is_theorem_3_8(alpha: float, length: int, cost: float) -> None:
    found = form(
        "speculative_speedup",
        acceptance=alpha,
        draft_length=length,
        draft_time=cost,
        verify_time=1,
        decode_time=1,
    )
    assert found == pytest.approx((1 - alpha ** (length + 1)) / ((1 - alpha) * (length * cost + 1)), rel=1e-9)


def test_a_request_alone_is_as_fast_as_the_speedup_says() -> None:
    plain, fast = make("packed"), drafted(draft_length=4)
    found = fast.speculation()
    assert plain.point(0.0).tpot_s / fast.point(0.0).tpot_s == pytest.approx(found["speedup"], rel=1e-12)
    assert found["verify_cost"] > 1
    assert 0 < found["draft_cost"] < 1
    assert found["best_speedup"] >= found["speedup"]


def test_the_best_length_is_the_best_of_all() -> None:
    best = drafted().draft_length
    times = {k: drafted(draft_length=k).point(0.0).tpot_s for k in range(1, 13)}
    assert best == min(times, key=lambda k: times[k])


@pytest.mark.parametrize(("one", "two"), [(0.3, 0.6), (0.6, 0.9)])
def test_better_drafts_are_never_slower(one: float, two: float) -> None:
    low, high = (drafted(acceptance=a, draft_length=3) for a in (one, two))
    assert high.point(0.0).tpot_s < low.point(0.0).tpot_s
    assert high.point(2.0).tpot_s < low.point(2.0).tpot_s


def test_the_draft_model_takes_memory() -> None:
    plain, fast = make("packed"), drafted(draft_length=4)
    assert fast.limit(4) < plain.limit(0)
    assert fast.memory(4)["weights"] > plain.memory(0)["weights"]


def test_verifying_costs_less_than_as_many_steps() -> None:
    serving = drafted(draft_length=4)
    target = serving.evaluators[0]
    one = target("decode", decoding=8.0, step_tokens=1.0)
    five = target("decode", decoding=8.0, step_tokens=5.0)
    assert one < five < 5 * one
