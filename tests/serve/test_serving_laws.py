"""Laws of serving: limits, monotony, saturation, and the closed forms that hold exactly."""

from __future__ import annotations

import dataclasses
import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.effort import some
from support.serving_cases import CASES, Affine, affine, make

import symperf as sf
from symperf.serve.limits import Targets, largest_load
from symperf.serve.program import form
from symperf.serve.steady import Steady

parts = st.floats(0.001, 0.999)
systems = {name: make(name) for name in CASES}
engines = st.builds(
    affine,
    st.integers(50, 3000),
    st.integers(1, 400),
    st.integers(1, 8),
    st.just(1),
    st.floats(1e-6, 1e-3),
    st.integers(1, 2000),
) | st.builds(
    affine,
    st.integers(50, 3000),
    st.integers(1, 400),
    st.just(1),
    st.integers(1, 12),
    st.floats(1e-6, 1e-3),
    st.integers(12, 2000),
)


@pytest.mark.parametrize("name", some([name for name in CASES if name != "cut"]))
def test_without_load_it_is_one_request_alone(name: str) -> None:
    """The limit of no load is `inference` of a batch of one."""
    serving = systems[name]
    case = CASES[name]
    alone = sf.inference(
        serving.run.base_model,
        serving.run.base_system,
        serving.plan,
        batch=1,
        prompt=case["prompt"],
        generate=128,
        stack=case["stack"],
    )
    found = serving.point(0.0)
    assert found.ttft_s == pytest.approx(alone.value("prefill"), rel=1e-12)
    assert found.tpot_s == pytest.approx(alone.value("time_per_token"), rel=1e-12)
    assert found.e2e_s == pytest.approx(alone.value("time"), rel=1e-12)
    assert serving.point(1e-9).ttft_s == pytest.approx(found.ttft_s, rel=1e-6)


def test_a_cut_prompt_alone_takes_all_of_its_iterations() -> None:
    serving = systems["cut"]
    assert serving.chunks == 4
    assert serving.point(0.0).ttft_s == pytest.approx(4 * serving.steady.engine.times.prefill(512), rel=1e-12)
    assert serving.point(0.0).ttft_s > make("cut", chunk=2048).point(0.0).ttft_s


@settings(max_examples=60, deadline=None)
@given(engine=engines, one=parts, two=parts)
def test_times_never_fall_with_the_load(engine: object, one: float, two: float) -> None:
    steady = Steady(engine)
    low, high = sorted((one, two))
    before, after = (steady.at_load(part * steady.capacity.load) for part in (low, high))
    assert before is not None
    assert after is not None
    assert before.iteration <= after.iteration * (1 + 1e-9)
    assert before.first_token <= after.first_token * (1 + 1e-9)
    assert before.decoding <= after.decoding * (1 + 1e-9)


@pytest.mark.parametrize("name", some(CASES))
def test_times_of_models_never_fall_along_the_curve(name: str) -> None:
    steady = systems[name].steady
    states = [steady.at_load(k / 60 * steady.capacity.load) for k in range(60)]
    for before, after in itertools.pairwise(states):
        assert before.iteration <= after.iteration * (1 + 1e-9)
        assert before.first_token <= after.first_token * (1 + 1e-9)


@settings(max_examples=60, deadline=None)
@given(engine=engines, part=st.floats(0.0, 3.0))
def test_utilisation_below_one_means_not_saturated(engine: object, part: float) -> None:
    steady = Steady(engine)
    state = steady.at_load(part * steady.capacity.load)
    assert (state is None) == (part * steady.capacity.load >= steady.capacity.load)
    if state is not None:
        assert state.load <= steady.capacity.load
        assert state.decoding <= max(engine.limit, steady.capacity.decoding) * (1 + 1e-6)
        assert 0 <= state.chunk_share <= 1


@settings(max_examples=40, deadline=None)
@given(engine=engines, more=st.integers(1, 300), ttft=st.floats(1.2, 30), tpot=st.floats(1.2, 10))
def test_more_memory_never_lowers_the_largest_load(engine: object, more: int, ttft: float, tpot: float) -> None:
    first = Steady(engine).at_arrivals(0.0)
    targets = Targets(ttft * first.first_token, tpot * first.iteration)
    found = [
        largest_load(Steady(dataclasses.replace(engine, limit=limit)), targets, 1.0).load
        for limit in (engine.limit, engine.limit + more)
    ]
    assert None not in found
    assert found[0] <= found[1] * (1 + 1e-5)
    assert Steady(engine).capacity.load <= Steady(
        dataclasses.replace(engine, limit=engine.limit + more)
    ).capacity.load * (1 + 1e-9)


@settings(max_examples=40, deadline=None)
@given(engine=engines, ttft=st.floats(1.05, 30), tpot=st.floats(1.05, 10))
def test_the_largest_load_meets_its_targets_and_more_does_not(engine: object, ttft: float, tpot: float) -> None:
    steady = Steady(engine)
    first = steady.at_arrivals(0.0)
    targets = Targets(ttft * first.first_token, tpot * first.iteration)
    found = largest_load(steady, targets, 1.0)
    assert found.load is not None
    assert found.load <= steady.capacity.load
    assert found.state is not None
    assert targets.missed(found.state, 1.0) is None
    above = steady.at_load(found.load * (1 + 1e-5))
    assert above is None or targets.missed(above, 1.0) is not None


def test_without_targets_the_largest_load_is_the_capacity() -> None:
    found = systems["packed"].largest
    assert (found.load, found.limit, found.state) == (systems["packed"].steady.capacity.load, "chunk", None)
    assert systems["packed"].answer is None
    assert systems["packed"].point(found.load).saturated


def test_affine_decoding_is_exact() -> None:
    """With next to no prefill, time per token is tau_1 / (1 - rho), and so is the mean of the negative binomial law."""
    engine = dataclasses.replace(affine(1, 400, 1, 1, each=1e-3), times=Affine(0.01, 1e-3, 0.0))
    steady = Steady(engine)
    load = 1.0
    spare = form("affine_capacity", request_work=1e-3 * engine.steps) - load
    exact = form("loaded_iteration_time", alone_time=0.011, load=load, spare_load=spare)
    state = steady.at_load(load)
    assert state is not None
    assert state.iteration == pytest.approx(exact, rel=0.01)
    ratio = load * engine.steps * 1e-3
    weights = [1.0]
    for n in range(1, 3000):
        weights.append(weights[-1] * load * engine.steps * (0.01 + 1e-3 * n) / n)
    mean = sum(n * weight for n, weight in enumerate(weights)) / sum(weights)
    assert mean == pytest.approx(ratio * (0.01 / 1e-3 + 1) / (1 - ratio), rel=1e-9)
    assert mean == pytest.approx(form("decoding_sequences", load=load, decode_steps=engine.steps, iteration_time=exact))


def test_prefill_alone_is_the_queue_of_pollaczek_and_khinchine() -> None:
    steady = Steady(affine(400, 1, 2, 1))
    service = 2 * (0.01 + 2e-5 * 200)
    for part in (0.2, 0.5, 0.9):
        load = part / service
        state = steady.at_load(load)
        assert state is not None
        assert state.queue == pytest.approx(part * service / (2 * (1 - part)), rel=1e-9)
        assert state.first_token == pytest.approx(service + state.queue, rel=1e-9)


def test_throughput_is_the_load_and_never_above_the_capacity() -> None:
    serving = systems["packed"]
    most = serving.steady.capacity.load
    for found in serving.curve:
        assert found.output_tokens_per_s == found.load * 128
        assert found.tokens_per_s == found.load * (1024 + 128)
        assert found.output_tokens_per_s_per_device == found.output_tokens_per_s / 8
        assert found.load < most
        assert found.tpot_s == found.itl_s == pytest.approx((found.e2e_s - found.ttft_s) / 127, rel=1e-12)
        assert 0 < found.kv_use < 1
        assert math.isclose(
            found.ttft_s, found.boundary_wait_s + found.queue_wait_s + found.cache_wait_s + found.prefill_s
        )


def test_replicas_share_the_load() -> None:
    one, four = systems["packed"], make("packed", dp=4)
    assert four.steady.capacity.load == one.steady.capacity.load
    assert four.point(20.0).ttft_s == one.point(5.0).ttft_s
    assert four.point(20.0).output_tokens_per_s == 20.0 * 128


@pytest.mark.parametrize("name", CASES)
def test_shares_of_an_iteration_sum_to_one(name: str) -> None:
    serving = systems[name]
    shares = serving.shares(serving.curve[4])
    assert sum(shares.values()) == pytest.approx(1, rel=1e-9)
    assert min(shares.values()) >= -1e-12
