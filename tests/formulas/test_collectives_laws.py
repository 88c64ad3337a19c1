"""Laws of collectives: nothing at one rank, never below their bounds, and the best algorithm taken."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st
from support.collective_cases import LOW_LATENCY, ONE_TIER, SCALE_UP, TWO_TIERS, name, tiers, value
from support.effort import part
from support.oracle import evaluate, sample
from support.strategies import seeds

from symperf.formulas import collectives as c
from symperf.formulas.language.symbols import SYMBOLS


@pytest.mark.parametrize("function", ONE_TIER, ids=name)
def test_one_rank_is_free_on_one_tier(function: Any) -> None:
    """A group of one costs exactly nothing, half-bandwidth size or not."""
    assert function(sympy.Symbol("n"), 1, *sympy.symbols("BW alpha half")) == 0


@pytest.mark.parametrize("function", LOW_LATENCY, ids=name)
def test_one_rank_is_free_by_the_low_latency_protocol(function: Any) -> None:
    """The same without a start-up."""
    assert function(sympy.Symbol("n"), 1, *sympy.symbols("BW alpha")) == 0


@pytest.mark.parametrize("function", SCALE_UP, ids=name)
def test_one_rank_is_free_on_scale_up(function: Any) -> None:
    """The same with the figures of the scale-up tier."""
    assert function(sympy.Symbol("n"), 1) == 0


@pytest.mark.parametrize("function", TWO_TIERS, ids=name)
def test_one_rank_is_free_on_two_tiers(function: Any) -> None:
    """The same where the group might have spanned domains."""
    assert function(sympy.Symbol("n"), 1, 1) == 0


def test_one_stage_sends_nothing() -> None:
    """A pipeline of one stage has no neighbours, whatever its stride."""
    assert value(c.group_send_time(1e9, 1, 64), scale_up_half_bytes=1e6, scale_out_half_bytes=1e6) == 0


@pytest.mark.parametrize("time", [c.scale_up_send_time(1e6), *(c.group_send_time(1e6, 4, r) for r in (2, 8))])
def test_a_send_has_no_start_up_of_collectives(time: Any) -> None:
    """A transfer from one rank to another pays its bytes and one hop."""
    assert value(time, scale_up_half_bytes=1e9, scale_out_half_bytes=1e9) == value(time)


@given(st.sampled_from([2**k for k in range(11)]), st.floats(1e9, 1e12), st.floats(0, 1e-3))
def test_the_crossover_is_where_ring_and_tree_cost_the_same(ranks: int, bandwidth: float, latency: float) -> None:
    """Below it the tree is better, at it both cost the same, above it the ring is."""
    size = float(c.ring_tree_crossover_bytes(ranks, bandwidth, latency))

    def times(n: float) -> tuple[float, float]:
        each = (c.ring_all_reduce_time, c.tree_all_reduce_time)
        return tuple(float(time(n, ranks, bandwidth, latency, 0)) for time in each)  # type: ignore[return-value]

    assert size >= 0
    ring, tree = times(size)
    assert ring == pytest.approx(tree, rel=1e-9)
    if ranks > 2 and latency > 1e-9:
        ring, tree = times(size / 2)
        assert tree < ring
        ring, tree = times(size * 2)
        assert ring < tree


@given(st.sampled_from([2, 4, 8, 64]), st.floats(1e10, 1e12), st.floats(1e-7, 1e-4), st.floats(1e5, 1e9))
def test_protocols_cross_where_the_start_up_ends(ranks: int, bandwidth: float, latency: float, half: float) -> None:
    """At n = half - q/(q-1) log2(q) alpha BW, if that is positive; below it low latency is better, above it plain."""

    def times(n: float) -> tuple[float, float, float]:
        low = float(c.low_latency_all_reduce_time(n, ranks, bandwidth, latency))
        each = (c.simple_all_reduce_time, c.all_reduce_time)
        return (low, *(float(time(n, ranks, bandwidth, latency, half)) for time in each))  # type: ignore[return-value]

    size = half - ranks / (ranks - 1) * np.log2(ranks) * latency * bandwidth
    if size <= 1:
        low, plain, best = times(1e6)
        assert best == plain < low
        return
    low, plain, best = times(size)
    assert low == pytest.approx(plain, rel=1e-9)
    low, plain, best = times(size / 2)
    assert best == low < plain
    low, plain, best = times(size * 2)
    assert best == plain < low


@given(seed=seeds)
@part(0.2)
def test_no_form_of_the_literature_outruns_the_better_protocol(seed: int) -> None:
    """On one tier and on two the forms that costs use are at least as fast as rings, trees and pairs."""
    names = ("message_bytes", "ranks", "link_bandwidth", "link_latency", "half_bytes")
    symbols = [SYMBOLS[each].symbol for each in names]
    points = sample(symbols, seed)
    for best, others in (
        (c.all_reduce_time, (c.ring_all_reduce_time, c.tree_all_reduce_time)),
        (c.all_gather_time, (c.ring_all_gather_time,)),
        (c.reduce_scatter_time, (c.ring_reduce_scatter_time,)),
        (c.all_to_all_time, (c.pairwise_all_to_all_time,)),
    ):
        for other in others:
            found = evaluate(other(*symbols), points) * (1 + 1e-12)
            assert np.all(evaluate(best(*symbols), points) <= found), other
    arguments, points = tiers(seed)
    for other in (c.flat_ring_all_reduce_time, c.flat_tree_all_reduce_time):
        found = evaluate(other(*arguments), points) * (1 + 1e-12)
        assert np.all(evaluate(c.pipelined_all_reduce_time(*arguments), points) <= found), other


@given(seed=seeds)
@part(0.2)
def test_hops_count_where_there_is_no_start_up(seed: int) -> None:
    """Without `half_bytes` the plain protocol is Rabenseifner's; with it, time never falls below that."""
    names = ("message_bytes", "ranks", "link_bandwidth", "link_latency", "half_bytes")
    n, q, bandwidth, latency, half = (SYMBOLS[each].symbol for each in names)
    points = sample([n, q, bandwidth, latency, half], seed)
    with_start = evaluate(c.all_reduce_time(n, q, bandwidth, latency, half), points)
    n_, q_, b_, a_ = (points[each] for each in (n, q, bandwidth, latency))
    bare = 2 * (1 - 1 / q_) * n_ / b_ + 2 * np.log2(q_) * a_
    np.testing.assert_allclose(evaluate(c.all_reduce_time(n, q, bandwidth, latency, 0), points), bare, rtol=1e-12)
    assert np.all(with_start >= bare * (1 - 1e-12))


@pytest.mark.parametrize(
    "function",
    [c.ring_all_reduce_time, c.tree_all_reduce_time, c.simple_all_reduce_time, c.all_reduce_time],
    ids=name,
)
@given(seed=seeds)
@part(0.2)
def test_no_all_reduce_beats_the_lower_bound(function: Any, seed: int) -> None:
    """2 (q-1)/q n / BW is never undercut."""
    names = ("message_bytes", "ranks", "link_bandwidth", "link_latency", "half_bytes")
    symbols = [SYMBOLS[each].symbol for each in names]
    points = sample(symbols, seed)
    bound = evaluate(c.all_reduce_lower_bound_time(*symbols[:3]), points)
    assert np.all(evaluate(function(*symbols), points) >= bound * (1 - 1e-12))


def _attainable(points: dict[Any, Any], tier: str) -> Any:
    return points[SYMBOLS[f"{tier}_bandwidth"].symbol] * points[SYMBOLS[f"{tier}_efficiency"].symbol]


@pytest.mark.parametrize(
    ("function", "times"),
    [
        (c.hierarchical_all_reduce_time, 2),
        (c.flat_ring_all_reduce_time, 2),
        (c.flat_tree_all_reduce_time, 2),
        (c.pipelined_all_reduce_time, 2),
        (c.group_all_reduce_time, 2),
        (c.hierarchical_all_gather_time, 1),
        (c.hierarchical_reduce_scatter_time, 1),
    ],
    ids=lambda item: getattr(item, "__name__", ""),
)
@given(seed=seeds)
@part(0.2)
def test_no_collective_beats_the_door_of_a_domain(function: Any, times: int, seed: int) -> None:
    """The q_u adapters of a domain must let (q_o-1)/q_o n through, once or twice; links inside (q_u-1)/q_u n a rank."""
    arguments, points = tiers(seed)
    size, inner, outer = (points[symbol] for symbol in arguments)
    found = evaluate(function(*arguments), points) * (1 + 1e-12)
    assert np.all(found >= times * (1 - 1 / outer) * size / inner / _attainable(points, "scale_out"))
    alone = outer == 1
    inside = times * (1 - 1 / inner) * size / _attainable(points, "scale_up")
    assert np.all(found[alone] >= inside[alone])


@pytest.mark.parametrize(
    ("two_tiers", "scale_up"),
    [
        (c.group_all_reduce_time, c.scale_up_all_reduce_time),
        (c.hierarchical_all_gather_time, c.scale_up_all_gather_time),
        (c.hierarchical_reduce_scatter_time, c.scale_up_reduce_scatter_time),
        (c.hierarchical_all_to_all_time, c.scale_up_all_to_all_time),
    ],
    ids=lambda function: function.__name__,
)
@given(seed=seeds)
@part(0.2)
def test_one_domain_is_scale_up_alone(two_tiers: Any, scale_up: Any, seed: int) -> None:
    """A group inside one domain never feels the network."""
    (size, inner, _), points = tiers(seed)
    np.testing.assert_allclose(
        evaluate(two_tiers(size, inner, 1), points), evaluate(scale_up(size, inner), points), rtol=1e-12
    )


@pytest.mark.parametrize(
    ("two_tiers", "one_tier"),
    [
        (c.group_all_reduce_time, c.all_reduce_time),
        (c.hierarchical_all_reduce_time, c.all_reduce_time),
        (c.flat_ring_all_reduce_time, c.ring_all_reduce_time),
        (c.flat_tree_all_reduce_time, c.tree_all_reduce_time),
        (c.pipelined_all_reduce_time, c.all_reduce_time),
        (c.hierarchical_all_gather_time, c.all_gather_time),
        (c.hierarchical_reduce_scatter_time, c.reduce_scatter_time),
        (c.hierarchical_all_to_all_time, c.all_to_all_time),
    ],
    ids=lambda function: function.__name__,
)
@given(seed=seeds)
@part(0.2)
def test_one_device_a_domain_is_scale_out_alone(two_tiers: Any, one_tier: Any, seed: int) -> None:
    """A group with one device in each domain uses nothing but its adapter."""
    (size, _, outer), points = tiers(seed)
    tier = [SYMBOLS[f"scale_out_{each}"].symbol for each in ("bandwidth", "efficiency", "latency", "half_bytes")]
    alone = one_tier(size, outer, tier[0] * tier[1], tier[2], tier[3])
    np.testing.assert_allclose(evaluate(two_tiers(size, 1, outer), points), evaluate(alone, points), rtol=1e-12)


@given(seed=seeds)
@part(0.2)
def test_the_group_takes_the_best_algorithm(seed: int) -> None:
    """The all-reduce of a group is the better of its two algorithms."""
    arguments, points = tiers(seed)
    each = [
        evaluate(time(*arguments), points) for time in (c.hierarchical_all_reduce_time, c.pipelined_all_reduce_time)
    ]
    best = evaluate(c.group_all_reduce_time(*arguments), points)
    assert np.array_equal(best, np.minimum.reduce(each))


@given(seed=seeds)
@part(0.2)
def test_gather_and_scatter_make_an_all_reduce(seed: int) -> None:
    """Reduce-scatter and all-gather cost the all-reduce, on one tier and on two, in every algorithm of both."""
    arguments, points = tiers(seed)
    n, q, _ = arguments
    for scatter, gather, whole in (
        (c.hierarchical_reduce_scatter_time, c.hierarchical_all_gather_time, c.hierarchical_all_reduce_time),
        (c.pipelined_reduce_scatter_time, c.pipelined_all_gather_time, c.pipelined_all_reduce_time),
        (c.group_reduce_scatter_time, c.group_all_gather_time, c.group_all_reduce_time),
    ):
        halves = evaluate(scatter(*arguments) + gather(*arguments), points)
        np.testing.assert_allclose(evaluate(whole(*arguments), points), halves, rtol=1e-12)
    halves = evaluate(c.scale_up_reduce_scatter_time(n, q) + c.scale_up_all_gather_time(n, q), points)
    np.testing.assert_allclose(evaluate(c.scale_up_all_reduce_time(n, q), points), halves, rtol=1e-12)


@pytest.mark.parametrize("function", ONE_TIER + LOW_LATENCY, ids=name)
@given(seed=seeds)
@part(0.2)
def test_more_bytes_or_hops_take_longer_and_bandwidth_helps(function: Any, seed: int) -> None:
    """In proportion at most: doubling everything that costs doubles the time."""
    names = ("message_bytes", "ranks", "link_bandwidth", "link_latency", "half_bytes")
    symbols = [SYMBOLS[each].symbol for each in names]
    size, _, bandwidth, latency, _ = symbols
    points = sample(symbols, seed)
    time = function(*(symbols[:4] if function in LOW_LATENCY else symbols))
    base = evaluate(time, points)

    def scaled(**by: float) -> Any:
        return evaluate(time, {s: v * by.get(str(s), 1.0) for s, v in points.items()})

    assert np.all(scaled(message_bytes=2) >= base)
    assert np.all(scaled(message_bytes=2) <= 2 * base * (1 + 1e-12))
    assert np.all(scaled(link_latency=2) >= base)
    assert np.all(scaled(link_bandwidth=2) <= base)
    both = scaled(link_latency=0.5, link_bandwidth=2)
    np.testing.assert_allclose(both, base / 2, rtol=1e-12)
    assert {size, bandwidth, latency} <= set(points)
