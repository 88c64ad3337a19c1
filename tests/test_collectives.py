"""Collectives cost what a step-by-step run of the algorithm costs, nothing at one rank, and never beat their bounds."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st
from oracle import evaluate, sample
from strategies import seeds

from symperf.formulas import collectives as c
from symperf.formulas.symbols import SYMBOLS

if TYPE_CHECKING:
    from collections.abc import Callable

SYSTEM = {
    "scale_up_size": 8,
    "scale_up_bandwidth": 300e9,
    "scale_up_efficiency": 0.8,
    "scale_up_latency": 4e-6,
    "scale_up_half_bytes": 0.0,
    "scale_out_bandwidth": 25e9,
    "scale_out_efficiency": 0.9,
    "scale_out_latency": 11e-6,
    "scale_out_half_bytes": 0.0,
}
UP, OUT = (240e9, 4e-6), (22.5e9, 11e-6)
"""Attainable bandwidth and latency of the two tiers of SYSTEM."""

ONE_TIER = (
    c.ring_all_reduce_time,
    c.tree_all_reduce_time,
    c.simple_all_reduce_time,
    c.all_reduce_time,
    c.ring_all_gather_time,
    c.ring_reduce_scatter_time,
    c.simple_all_gather_time,
    c.all_gather_time,
    c.reduce_scatter_time,
    c.tree_broadcast_time,
    c.ring_broadcast_time,
    c.simple_broadcast_time,
    c.broadcast_time,
    c.pairwise_all_to_all_time,
    c.simple_all_to_all_time,
    c.all_to_all_time,
)
LOW_LATENCY = (
    c.low_latency_all_reduce_time,
    c.low_latency_all_gather_time,
    c.low_latency_broadcast_time,
    c.low_latency_all_to_all_time,
)
"""Those of one tier that no `half_bytes` delays."""

SCALE_UP = (
    c.scale_up_all_reduce_time,
    c.scale_up_all_gather_time,
    c.scale_up_reduce_scatter_time,
    c.scale_up_all_to_all_time,
    c.scale_up_broadcast_time,
)
TWO_TIERS = (
    c.hierarchical_all_reduce_time,
    c.hierarchical_all_gather_time,
    c.hierarchical_reduce_scatter_time,
    c.hierarchical_all_to_all_time,
    c.hierarchical_broadcast_time,
    c.flat_ring_all_reduce_time,
    c.flat_tree_all_reduce_time,
    c.pipelined_all_reduce_time,
    c.group_all_reduce_time,
)


def name(function: Callable[..., Any]) -> str:
    return function.__name__


def value(expr: Any, **other: float) -> float:
    """An expression's value on SYSTEM."""
    points = {SYMBOLS[key].symbol: number for key, number in {**SYSTEM, **other}.items()}
    return float(evaluate(expr, points))


# --- by hand


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
        # 80 us of twice the bytes and 3 or 7 hops; all bytes go to the last rank of a broadcast
        (c.broadcast_time(4e6, 8, 1e11, 5e-6, 20e6), 95e-6),
        (c.broadcast_time(1e9, 8, 1e11, 5e-6, 20e6), 10.2e-3),
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
        # 30 MB through each adapter bind; 3 hops inside, 2 between
        (c.hierarchical_broadcast_time(240e6, 8, 4), 30 / 22.5e3 + 12e-6 + 22e-6),
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
        # twice 3 MB outside in 266.7 us, 3 hops inside and 2 outside, against 12 MB in 533 us
        (c.hierarchical_broadcast_time(24e6, 8, 4), 6 / 22.5e3 + 12e-6 + 22e-6),
        # 2.4 GB: start-ups inside and outside count whole
        (c.hierarchical_all_gather_time(2400e6, 8, 4), 7 / 8 * 2448 / 240e3 + 3 / 4 * 309 / 22.5e3),
        (c.hierarchical_broadcast_time(2400e6, 8, 4), 309 / 22.5e3),
    ],
)
def test_two_tiers_with_start_ups_by_hand(expr: Any, expected: float) -> None:
    """The same, where a collective has 48 MB of start-up inside and 9 MB outside."""
    assert value(expr, scale_up_half_bytes=48e6, scale_out_half_bytes=9e6) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("ranks", "stride", "inner", "outer"),
    [
        (1, 1, 1, 1),
        (8, 1, 8, 1),
        (4, 1, 4, 1),
        (16, 1, 8, 2),
        (4, 2, 4, 1),
        (8, 2, 4, 2),
        (8, 8, 1, 8),
        (4, 64, 1, 4),
        (2, 5, 2, 1),
        (2, 6, 2, 1),
        (2, 7, 2, 1),
        (4, 3, 3, 2),
        (12, 1, 8, 2),
    ],
)
def test_placement_by_hand(ranks: int, stride: int, inner: int, outer: int) -> None:
    """A group of `ranks` devices, `stride` apart, in domains of 8."""
    assert value(c.inner_ranks_of(ranks, stride)) == inner
    assert value(c.outer_ranks_of(ranks, stride)) == outer


powers = st.integers(0, 10).map(lambda exponent: 2**exponent)


@given(powers, powers, powers)
def test_placement_counts_devices(ranks: int, stride: int, size: int) -> None:
    """The two counts are those of the devices that the group really has in each domain."""
    domains = Counter(rank * stride // size for rank in range(ranks))
    assert value(c.inner_ranks_of(ranks, stride), scale_up_size=size) == max(domains.values())
    assert value(c.outer_ranks_of(ranks, stride), scale_up_size=size) == len(domains)


counts = st.integers(1, 40)


@given(counts, counts, counts)
def test_placement_of_any_group(ranks: int, stride: int, size: int) -> None:
    """The fullest domain is counted exactly; domains are at most those that the group touches, one if one holds it."""
    domains = Counter(rank * stride // size for rank in range(ranks))
    outer = value(c.outer_ranks_of(ranks, stride), scale_up_size=size)
    assert value(c.inner_ranks_of(ranks, stride), scale_up_size=size) == max(domains.values())
    assert outer <= len(domains)
    assert (outer == 1) == (len(domains) == 1)


# --- nothing at one rank


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


# --- a step-by-step run


class Ring:
    """A ring of ranks that reduce-scatters and all-gathers what it is given, counting as it goes.

    `links[i]` is the (bandwidth, latency) from rank i to its successor. Each rank starts a step when its parcel has
    come and its port is free; `time` is when the last parcel arrives.
    """

    def __init__(self, ranks: int, links: list[tuple[float, float]]) -> None:
        self.ranks, self.links = ranks, links
        self.sent = [0.0] * ranks
        self.hops = [0] * ranks
        self.ready = np.zeros((ranks, ranks))
        self.port = [0.0] * ranks

    def _pass(self, first: int, size: float, step: int) -> list[tuple[int, int, int]]:
        """Every rank passes one part on; returns (from, to, part)."""
        moves = []
        arrivals = {}
        for rank in range(self.ranks):
            part, to = (rank + first - step) % self.ranks, (rank + 1) % self.ranks
            bandwidth, latency = self.links[rank]
            start = max(self.ready[rank, part], self.port[rank])
            self.port[rank] = start + latency + size / bandwidth
            arrivals[to, part] = self.port[rank]
            self.sent[rank] += size
            self.hops[rank] += 1
            moves.append((rank, to, part))
        for (to, part), when in arrivals.items():
            self.ready[to, part] = max(self.ready[to, part], when)
        return moves

    def reduce_scatter(self, held: np.ndarray, size: float) -> None:
        """After q - 1 steps rank r has the whole sum of part r + 1."""
        for step in range(self.ranks - 1):
            parcels = [(to, part, held[rank, part].copy()) for rank, to, part in self._pass(0, size / self.ranks, step)]
            for to, part, parcel in parcels:
                held[to, part] += parcel

    def all_gather(self, held: np.ndarray, size: float) -> None:
        """After q - 1 more steps every rank has every part."""
        for step in range(self.ranks - 1):
            parcels = [(to, part, held[rank, part].copy()) for rank, to, part in self._pass(1, size / self.ranks, step)]
            for to, part, parcel in parcels:
                held[to, part] = parcel

    @property
    def time(self) -> float:
        """When the last parcel has arrived."""
        return float(self.ready.max())


def contributions(ranks: int) -> np.ndarray:
    """`held[rank, part]` as a vector that says whose data it sums: one each at the start."""
    held = np.zeros((ranks, ranks, ranks))
    for rank in range(ranks):
        held[rank, :, rank] = 1
    return held


sizes = st.floats(1, 1e10)
few = st.integers(1, 12)


@given(few, sizes)
def test_a_ring_all_reduce_run_step_by_step(ranks: int, size: float) -> None:
    """The simulated ring sums everything everywhere, sends 2 (q-1)/q n a rank, and takes the closed form's time."""
    ring, held = Ring(ranks, [UP] * ranks), contributions(ranks)
    ring.reduce_scatter(held, size)
    half_way = ring.time
    assert all(np.all(held[rank, (rank + 1) % ranks] == 1) for rank in range(ranks))
    assert half_way == pytest.approx(float(c.ring_reduce_scatter_time(size, ranks, *UP, 0)), rel=1e-12)
    ring.all_gather(held, size)
    assert np.all(held == 1)
    assert ring.time == pytest.approx(float(c.ring_all_reduce_time(size, ranks, *UP, 0)), rel=1e-12)
    assert max(ring.sent) / UP[0] == pytest.approx(float(c.all_reduce_lower_bound_time(size, ranks, UP[0])), rel=1e-12)


@given(few, sizes)
def test_a_ring_all_gather_run_step_by_step(ranks: int, size: float) -> None:
    """From its own part each rank gathers all, in the closed form's time."""
    ring = Ring(ranks, [OUT] * ranks)
    held = np.zeros((ranks, ranks, 1))
    for rank in range(ranks):
        held[rank, (rank + 1) % ranks] = 1
    ring.all_gather(held, size)
    assert np.all(held == 1)
    assert ring.time == pytest.approx(float(c.ring_all_gather_time(size, ranks, *OUT, 0)), rel=1e-12)


class Halving:
    """Ranks, a power of two, that halve and double what they exchange, with a flag beside every word if `flags`.

    In a step every rank exchanges with the one whose number differs in one bit, over its own link; `time` is when all
    are done, as every step ends for all at once.
    """

    def __init__(self, ranks: int, link: tuple[float, float], flags: bool = False) -> None:
        self.ranks, self.link, self.flags = ranks, link, flags
        self.bits = [2**k for k in range(ranks.bit_length() - 1)]
        self.sent = 0.0
        self.time = 0.0

    def _exchange(self, size: float) -> None:
        bandwidth, latency = self.link
        self.sent += (2 if self.flags else 1) * size
        self.time += (2 if self.flags else 1) * size / bandwidth + latency

    def reduce_scatter(self, held: np.ndarray, size: float) -> None:
        """After log2(q) steps rank r has the whole sum of part r."""
        parts = np.arange(self.ranks)
        for bit in reversed(self.bits):
            before = held.copy()
            for rank in range(self.ranks):
                mine = (parts & -bit) == (rank & -bit)
                held[rank, mine] = before[rank, mine] + before[rank ^ bit, mine]
            self._exchange(size / self.ranks * bit)

    def all_gather(self, held: np.ndarray, size: float) -> None:
        """From part r after log2(q) more steps every rank has every part."""
        parts = np.arange(self.ranks)
        for bit in self.bits:
            before = held.copy()
            for rank in range(self.ranks):
                theirs = (parts & -bit) == ((rank ^ bit) & -bit)
                held[rank, theirs] = before[rank ^ bit, theirs]
            self._exchange(size / self.ranks * bit)


powers_to_16 = st.sampled_from([1, 2, 4, 8, 16])


@given(powers_to_16, sizes, st.booleans())
def test_halving_and_doubling_run_step_by_step(ranks: int, size: float, flags: bool) -> None:
    """It sums everything everywhere, in the time of the plain protocol without start-up, or with flags of the other."""
    run, held = Halving(ranks, UP, flags), contributions(ranks)
    if flags:
        gather, reduce = c.low_latency_all_gather_time, c.low_latency_all_reduce_time
        times = [float(time(size, ranks, *UP)) for time in (gather, reduce)]
    else:
        times = [float(time(size, ranks, *UP, 0)) for time in (c.simple_all_gather_time, c.simple_all_reduce_time)]
    run.reduce_scatter(held, size)
    assert all(np.all(held[rank, rank] == 1) for rank in range(ranks))
    assert run.time == pytest.approx(times[0], rel=1e-12)
    run.all_gather(held, size)
    assert np.all(held == 1)
    assert run.time == pytest.approx(times[1], rel=1e-12)
    bound = float(c.all_reduce_lower_bound_time(size, ranks, UP[0]))
    assert run.sent / UP[0] == pytest.approx(2 * bound if flags else bound, rel=1e-12)


def binary_tree(ranks: int) -> dict[int, int]:
    """The parent of every rank but the root, 0, in a binary tree whose odd ranks are all leaves."""
    parents = {}
    for rank in range(1, ranks):
        bit = rank & -rank
        parent = (rank ^ bit) | (bit << 1)
        parents[rank] = parent if parent < ranks else rank ^ bit
    return parents


def depth(parents: dict[int, int], rank: int) -> int:
    return 0 if rank not in parents else 1 + depth(parents, parents[rank])


@pytest.mark.parametrize("ranks", [2, 4, 8, 16, 64, 512])
def test_a_double_binary_tree_counted(ranks: int) -> None:
    """Two mirrored trees, half the bytes in each, up and down: no rank sends more than 2 n, in 2 log2(q) hops."""
    size = 1e9
    tree = binary_tree(ranks)
    mirror = {ranks - 1 - rank: ranks - 1 - parent for rank, parent in tree.items()}
    sent, received = Counter[int](), Counter[int]()
    for parents in (tree, mirror):
        assert set(parents) | set(parents.values()) == set(range(ranks))
        for rank, parent in parents.items():
            sent[rank] += size / 2
            received[parent] += size / 2
            sent[parent] += size / 2
            received[rank] += size / 2
    hops = max(depth(parents, rank) for parents in (tree, mirror) for rank in range(ranks))
    assert 2**hops == ranks
    if ranks > 2:
        assert max(sent.values()) == max(received.values()) == 2 * size
    assert max(sent.values()) <= 2 * size
    counted = 2 * size / UP[0] + 2 * hops * UP[1]
    assert counted == pytest.approx(float(c.tree_all_reduce_time(size, ranks, *UP, 0)), rel=1e-12)


@pytest.mark.parametrize("pieces", [1, 10, 1000])
def test_a_pipelined_chain_run_piece_by_piece(pieces: int) -> None:
    """A chain's broadcast takes the closed form's time and the filling of the chain, which small pieces make vanish."""
    ranks, size, (bandwidth, latency) = 6, 1e9, UP
    piece = size / pieces / bandwidth
    arrived = [0.0] * pieces
    for _ in range(ranks - 1):
        free, passed = 0.0, []
        for when in arrived:
            free = max(free, when) + piece
            passed.append(free + latency)
        arrived = passed
    closed = float(c.ring_broadcast_time(size, ranks, *UP, 0))
    assert arrived[-1] == pytest.approx(closed + (ranks - 2) * piece, rel=1e-12)


@given(st.sampled_from([1, 2, 4]), st.sampled_from([1, 2, 4]), sizes)
def test_a_hierarchical_all_reduce_run_tier_by_tier(inner: int, outer: int, size: float) -> None:
    """Reduce-scatter inside, all-reduces of the devices between domains, all-gather inside, in that time."""
    held = np.zeros((outer, inner, inner, outer, inner))
    for domain in range(outer):
        for rank in range(inner):
            held[domain, rank, :, domain, rank] = 1
    flat = held.reshape(outer, inner, inner, outer * inner)
    inside = [Halving(inner, UP) for _ in range(outer)]
    for domain in range(outer):
        inside[domain].reduce_scatter(flat[domain], size)
    between = [Halving(outer, OUT) for _ in range(inner)]
    for rank in range(inner):
        columns = np.repeat(flat[:, rank, rank][:, None], outer, axis=1)
        between[rank].reduce_scatter(columns, size / inner)
        between[rank].all_gather(columns, size / inner)
        assert np.all(columns == 1)
        flat[:, rank, rank] = columns[:, 0]
    for domain in range(outer):
        inside[domain].all_gather(flat[domain], size)
    assert np.all(flat == 1)
    run = inside[0].time + between[0].time
    assert value(c.hierarchical_all_reduce_time(size, inner, outer)) == pytest.approx(run, rel=1e-12)


def flat_ring(inner: int, outer: int, first: int) -> list[tuple[int, int]]:
    """All devices as (domain, device), each domain entered at device `first` and left at the one before it."""
    return [(domain, (first + step) % inner) for domain in range(outer) for step in range(inner)]


@pytest.mark.parametrize(("inner", "outer"), [(1, 1), (1, 4), (4, 1), (2, 2), (4, 2), (8, 3), (8, 16)])
def test_flat_rings_counted(inner: int, outer: int) -> None:
    """With one ring per device, adapters and links carry what the closed form charges, over as many hops."""
    size = 1e9
    ranks = inner * outer
    by_adapter, inside = Counter[tuple[int, int]](), Counter[tuple[int, int]]()
    latencies = []
    for first in range(inner):
        order = flat_ring(inner, outer, first)
        crosses = [order[i][0] != order[(i + 1) % ranks][0] for i in range(ranks)]
        for device, crossing in zip(order, crosses, strict=True):
            (by_adapter if crossing else inside)[device] += 2 * (ranks - 1) / ranks * size / inner
        for start in range(ranks):
            path = [crosses[(start + hop) % ranks] for hop in range(2 * (ranks - 1))]
            latencies.append(sum(OUT[1] if crossing else UP[1] for crossing in path))
    share = 2 * (ranks - 1) / ranks
    if outer > 1:
        assert len(by_adapter) == ranks, "one ring leaves by each adapter"
        assert max(by_adapter.values()) == pytest.approx(share * size / inner, rel=1e-12)
    if inner > 1:
        over = inner / (inner - 1) if outer > 1 else 1
        assert max(inside.values()) * over == pytest.approx(share * size), "links charged one ring too many, if any"
    charged = value(c.flat_ring_all_reduce_time(0, inner, outer))
    spare = 0 if 1 in (inner, outer) else UP[1] + (UP[1] if inner > 2 else OUT[1])
    assert charged == pytest.approx(max(latencies) + spare, rel=1e-12), "two hops too many, if any"
    slowest = max([n / OUT[0] for n in by_adapter.values()] + [n / UP[0] for n in inside.values()], default=0.0)
    time = value(c.flat_ring_all_reduce_time(size, inner, outer)) - charged
    assert slowest <= time * (1 + 1e-12)
    assert time == pytest.approx(slowest, rel=1e-9)


# --- laws


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
def test_no_form_of_the_literature_outruns_the_better_protocol(seed: int) -> None:
    """On one tier and on two the forms that costs use are at least as fast as rings, trees and pairs."""
    names = ("message_bytes", "ranks", "link_bandwidth", "link_latency", "half_bytes")
    symbols = [SYMBOLS[each].symbol for each in names]
    points = sample(symbols, seed)
    for best, others in (
        (c.all_reduce_time, (c.ring_all_reduce_time, c.tree_all_reduce_time)),
        (c.all_gather_time, (c.ring_all_gather_time,)),
        (c.reduce_scatter_time, (c.ring_reduce_scatter_time,)),
        (c.broadcast_time, (c.tree_broadcast_time, c.ring_broadcast_time)),
        (c.all_to_all_time, (c.pairwise_all_to_all_time,)),
    ):
        for other in others:
            found = evaluate(other(*symbols), points) * (1 + 1e-12)
            assert np.all(evaluate(best(*symbols), points) <= found), other
    arguments, points = _tiers(seed)
    for other in (c.flat_ring_all_reduce_time, c.flat_tree_all_reduce_time):
        found = evaluate(other(*arguments), points) * (1 + 1e-12)
        assert np.all(evaluate(c.pipelined_all_reduce_time(*arguments), points) <= found), other


@given(seed=seeds)
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
def test_no_all_reduce_beats_the_lower_bound(function: Any, seed: int) -> None:
    """2 (q-1)/q n / BW is never undercut."""
    names = ("message_bytes", "ranks", "link_bandwidth", "link_latency", "half_bytes")
    symbols = [SYMBOLS[each].symbol for each in names]
    points = sample(symbols, seed)
    bound = evaluate(c.all_reduce_lower_bound_time(*symbols[:3]), points)
    assert np.all(evaluate(function(*symbols), points) >= bound * (1 - 1e-12))


def _tiers(seed: int) -> tuple[list[Any], dict[Any, Any]]:
    names = ("message_bytes", "inner_ranks", "outer_ranks", *SYSTEM)
    points = sample([SYMBOLS[each].symbol for each in names], seed)
    return [SYMBOLS[each].symbol for each in names[:3]], points


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
        (c.hierarchical_broadcast_time, 1),
    ],
    ids=lambda item: getattr(item, "__name__", ""),
)
@given(seed=seeds)
def test_no_collective_beats_the_door_of_a_domain(function: Any, times: int, seed: int) -> None:
    """The q_u adapters of a domain must let (q_o-1)/q_o n through, once or twice; links inside (q_u-1)/q_u n a rank."""
    arguments, points = _tiers(seed)
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
        (c.hierarchical_broadcast_time, c.scale_up_broadcast_time),
    ],
    ids=lambda function: function.__name__,
)
@given(seed=seeds)
def test_one_domain_is_scale_up_alone(two_tiers: Any, scale_up: Any, seed: int) -> None:
    """A group inside one domain never feels the network."""
    (size, inner, _), points = _tiers(seed)
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
        (c.hierarchical_broadcast_time, c.broadcast_time),
    ],
    ids=lambda function: function.__name__,
)
@given(seed=seeds)
def test_one_device_a_domain_is_scale_out_alone(two_tiers: Any, one_tier: Any, seed: int) -> None:
    """A group with one device in each domain uses nothing but its adapter."""
    (size, _, outer), points = _tiers(seed)
    tier = [SYMBOLS[f"scale_out_{each}"].symbol for each in ("bandwidth", "efficiency", "latency", "half_bytes")]
    alone = one_tier(size, outer, tier[0] * tier[1], tier[2], tier[3])
    np.testing.assert_allclose(evaluate(two_tiers(size, 1, outer), points), evaluate(alone, points), rtol=1e-12)


@given(seed=seeds)
def test_the_group_takes_the_best_algorithm(seed: int) -> None:
    """The all-reduce of a group is the better of its two algorithms."""
    arguments, points = _tiers(seed)
    each = [
        evaluate(time(*arguments), points) for time in (c.hierarchical_all_reduce_time, c.pipelined_all_reduce_time)
    ]
    best = evaluate(c.group_all_reduce_time(*arguments), points)
    assert np.array_equal(best, np.minimum.reduce(each))


@given(seed=seeds)
def test_gather_and_scatter_make_an_all_reduce(seed: int) -> None:
    """Reduce-scatter and all-gather cost the all-reduce, on one tier and on two, in every algorithm of both."""
    arguments, points = _tiers(seed)
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
