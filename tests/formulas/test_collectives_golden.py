"""Collectives cost what a pocket calculator gives."""

from __future__ import annotations

from typing import Any

import pytest
from support.collective_cases import value

from symperf.formulas import collectives as c


@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        # 8 ranks, 1 GB, 100 GB/s, 5 us: 2 * 7/8 * 10 ms + 14 * 5 us
        (c.ring_all_reduce_time(1e9, 8, 1e11, 5e-6, 0), 17.57e-3),
        # 2 * 10 ms + 2 * 3 * 5 us
        (c.tree_all_reduce_time(1e9, 8, 1e11, 5e-6, 0), 20.03e-3),
        # the bytes of the ring, the hops of the tree
        (c.all_reduce_time(1e9, 8, 1e11, 5e-6, 0), 17.53e-3),
        (c.all_reduce_time(1e3, 8, 1e11, 5e-6, 0), 30.0175e-6),
        # 20 MB of start-up take 350 us, the hops pass meanwhile
        (c.simple_all_reduce_time(1e9, 8, 1e11, 5e-6, 20e6), 17.85e-3),
        (c.all_reduce_time(1e9, 8, 1e11, 5e-6, 20e6), 17.85e-3),
        # 4 MB: 2 * 7/8 of 24 MB take 420 us, or of twice 4 MB 140 us and 6 hops
        (c.simple_all_reduce_time(4e6, 8, 1e11, 5e-6, 20e6), 420e-6),
        (c.low_latency_all_reduce_time(4e6, 8, 1e11, 5e-6), 170e-6),
        (c.all_reduce_time(4e6, 8, 1e11, 5e-6, 20e6), 170e-6),
        (c.all_gather_time(4e6, 8, 1e11, 5e-6, 20e6), 85e-6),
        (c.reduce_scatter_time(4e6, 8, 1e11, 5e-6, 20e6), 85e-6),
        (c.all_gather_time(1e9, 8, 1e11, 5e-6, 20e6), 8.925e-3),
        # 70 us of twice the bytes and 7 hops
        (c.all_to_all_time(4e6, 8, 1e11, 5e-6, 20e6), 105e-6),
        (c.all_to_all_time(1e9, 8, 1e11, 5e-6, 20e6), 8.925e-3),
        (c.ring_all_gather_time(1e9, 8, 1e11, 5e-6, 0), 8.785e-3),
        (c.ring_reduce_scatter_time(1e9, 8, 1e11, 5e-6, 0), 8.785e-3),
        (c.pairwise_all_to_all_time(1e9, 8, 1e11, 5e-6, 0), 8.785e-3),
        (c.all_to_all_time(1e9, 8, 1e11, 5e-6, 0), 8.785e-3),
        (c.ring_broadcast_time(1e9, 8, 1e11, 5e-6, 0), 10.035e-3),
        (c.tree_broadcast_time(1e9, 8, 1e11, 5e-6, 0), 10.015e-3),
        (c.send_time(1e9, 1e11, 5e-6, 0), 10.005e-3),
        # at n = half, bytes move at half the bandwidth
        (c.send_time(1e6, 1e11, 0, 1e6), 20e-6),
        (c.ring_all_reduce_time(1e6, 2, 1e11, 0, 1e6), 20e-6),
        # 8 (8 - 1 - 3) * 5 us * 100 GB/s
        (c.ring_tree_crossover_bytes(8, 1e11, 5e-6), 16e6),
        (c.all_reduce_lower_bound_time(1e9, 8, 1e11), 17.5e-3),
    ],
)
def test_one_tier_by_hand(expr: Any, expected: float) -> None:
    """The closed forms give what a pocket calculator gives."""
    assert float(expr) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        # 240 MB over 4 domains of 8: 7/8 ms + 3 * 4 us inside, twice; 2 * 3/4 of 30 MB at 22.5 GB/s = 2 ms + 4 * 11 us
        (c.hierarchical_all_reduce_time(240e6, 8, 4), 2 * (875e-6 + 12e-6) + 2000e-6 + 44e-6),
        (c.hierarchical_all_gather_time(240e6, 8, 4), 875e-6 + 12e-6 + 1000e-6 + 22e-6),
        (c.hierarchical_reduce_scatter_time(240e6, 8, 4), 875e-6 + 12e-6 + 1000e-6 + 22e-6),
        # 3/4 of all 240 MB leave the domain
        (c.hierarchical_all_to_all_time(240e6, 8, 4), 875e-6 + 28e-6 + 8000e-6 + 33e-6),
        # 2 * 31/32 of 30 MB through each adapter; 4 * 7 hops inside and 4 between, twice
        (c.flat_ring_all_reduce_time(240e6, 8, 4), 2 * 31 / 32 * 30 / 22.5e3 + 2 * 28 * 4e-6 + 2 * 4 * 11e-6),
        (c.flat_tree_all_reduce_time(240e6, 8, 4), 2 * 30 / 22.5e3 + 2 * 3 * 4e-6 + 2 * 2 * 11e-6),
        # the slower tier of 2 * 875 us and 2 ms, and all hops
        (c.pipelined_all_reduce_time(240e6, 8, 4), 2000e-6 + 2 * 3 * 4e-6 + 2 * 2 * 11e-6),
        (c.group_all_reduce_time(240e6, 8, 4), 2000e-6 + 2 * 3 * 4e-6 + 2 * 2 * 11e-6),
        (c.group_send_time(240e6, 4, 8), 240 / 22.5e3 + 11e-6),
        (c.group_send_time(240e6, 4, 2), 1000e-6 + 4e-6),
        (c.group_send_time(240e6, 8, 2), 240 / 22.5e3 + 11e-6),
        (c.scale_up_all_reduce_time(240e6, 8), 1750e-6 + 24e-6),
    ],
)
def test_two_tiers_by_hand(expr: Any, expected: float) -> None:
    """On a system of 8-device domains the tiers carry what they should."""
    assert value(expr) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        # 24 MB inside: start-ups of 48 MB take 175 us of (7/8) (24 + 48) MB = 262.5 us, twice 24 MB 175 us and 3 hops
        (c.scale_up_all_gather_time(24e6, 8), 187e-6),
        # the 3 MB of each device outside: 3/4 of 6 MB in 200 us and 2 hops, not of 12 MB in 400 us
        (c.hierarchical_all_gather_time(24e6, 8, 4), 187e-6 + 222e-6),
        (c.hierarchical_all_reduce_time(24e6, 8, 4), 2 * (187e-6 + 222e-6)),
        # outside, the slower tier, 2 * 3/4 of twice 3 MB take 400 us, of 12 MB 800 us; 6 hops inside and 4 outside
        (c.pipelined_all_reduce_time(24e6, 8, 4), 400e-6 + 24e-6 + 44e-6),
        (c.group_all_reduce_time(24e6, 8, 4), 468e-6),
        # 2.4 GB: 2 * 7/8 of 2448 MB take 17.85 ms inside, 2 * 3/4 of 309 MB 20.6 ms outside
        (c.group_all_reduce_time(2400e6, 8, 4), 20.6e-3),
        # 2.4 GB: start-ups inside and outside count whole
        (c.hierarchical_all_gather_time(2400e6, 8, 4), 7 / 8 * 2448 / 240e3 + 3 / 4 * 309 / 22.5e3),
    ],
)
def test_two_tiers_with_start_ups_by_hand(expr: Any, expected: float) -> None:
    """The same, where a collective has 48 MB of start-up inside and 9 MB outside."""
    assert value(expr, scale_up_half_bytes=48e6, scale_out_half_bytes=9e6) == pytest.approx(expected, rel=1e-12)
