"""Collectives cost what a step-by-step run of the algorithm costs."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.collective_cases import OUT, UP, value

from symperf.formulas import collectives as c


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
