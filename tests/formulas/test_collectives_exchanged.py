"""All-to-alls, broadcasts and reductions in switches cost what a step-by-step run of the algorithm costs."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.collective_cases import IN_NETWORK, OUT, UP, name, value

from symperf.formulas import collectives as c

sizes = st.floats(1, 1e10)
Link = tuple[float, float]
Parcel = tuple[int, float, Any]
"""To whom, how many bytes, and what."""


class Pairwise:
    """Ranks that exchange pairwise: in step s rank r sends what it has for rank r + s, and gets from r - s.

    `held[rank]` lists the parcels that a rank has. With `flags` every word has one beside it.
    """

    def __init__(self, ranks: int, link: Link, flags: bool = False) -> None:
        self.ranks, self.link, self.factor = ranks, link, 2 if flags else 1
        self.time = 0.0
        self.sent = [0.0] * ranks

    def run(self, held: list[list[Parcel]]) -> list[list[Parcel]]:
        """Every parcel at its rank, after q - 1 steps that end for all at once."""
        bandwidth, latency = self.link
        arrived = [[parcel for parcel in parcels if parcel[0] == rank] for rank, parcels in enumerate(held)]
        for step in range(1, self.ranks):
            longest = 0.0
            for rank in range(self.ranks):
                to = (rank + step) % self.ranks
                parcels = [parcel for parcel in held[rank] if parcel[0] == to]
                size = sum(parcel[1] for parcel in parcels)
                arrived[to] += parcels
                self.sent[rank] += size
                longest = max(longest, self.factor * size / bandwidth)
            self.time += longest + latency
        return arrived


@given(st.integers(1, 12), sizes, st.booleans())
def test_a_pairwise_all_to_all_run_step_by_step(ranks: int, size: float, flags: bool) -> None:
    """Every rank gets its parcel from every other, in the closed form's time, and sends (q-1)/q n."""
    run = Pairwise(ranks, UP, flags)
    held = [[(to, size / ranks, (rank, to)) for to in range(ranks)] for rank in range(ranks)]
    arrived = run.run(held)
    for rank, parcels in enumerate(arrived):
        assert sorted(str(parcel[2]) for parcel in parcels) == sorted(str((other, rank)) for other in range(ranks))
    if flags:
        closed = c.low_latency_all_to_all_time(size, ranks, *UP)
    else:
        closed = c.pairwise_all_to_all_time(size, ranks, *UP, 0)
        assert run.time == pytest.approx(float(c.simple_all_to_all_time(size, ranks, *UP, 0)), rel=1e-12)
    assert run.time == pytest.approx(float(closed), rel=1e-12)
    assert run.sent == pytest.approx([(ranks - 1) / ranks * size] * ranks)


@given(st.integers(1, 4), st.integers(1, 5), sizes)
def test_a_hierarchical_all_to_all_run_tier_by_tier(inner: int, outer: int, size: float) -> None:
    """Inside to the device of the target's index, then to the target's domain: all arrives, in the sum of the times."""
    ranks = [(domain, device) for domain in range(outer) for device in range(inner)]
    held = {rank: [(to, size / len(ranks), rank) for to in ranks] for rank in ranks}
    inside = [Pairwise(inner, UP) for _ in range(outer)]
    for domain in range(outer):
        parcels = [
            [(to[1], each, (to, source)) for to, each, source in held[domain, device]] for device in range(inner)
        ]
        for device, got in enumerate(inside[domain].run(parcels)):
            held[domain, device] = [(what[0], each, what[1]) for _, each, what in got]
    between = [Pairwise(outer, OUT) for _ in range(inner)]
    for device in range(inner):
        parcels = [[(to[0], each, (to, source)) for to, each, source in held[d, device]] for d in range(outer)]
        for domain, got in enumerate(between[device].run(parcels)):
            held[domain, device] = [(what[0], each, what[1]) for _, each, what in got]
    for rank in ranks:
        assert all(to == rank for to, _, _ in held[rank])
        assert sorted(source for _, _, source in held[rank]) == ranks
    taken = inside[0].time + between[0].time
    assert value(c.hierarchical_all_to_all_time(size, inner, outer)) == pytest.approx(taken, rel=1e-12)
    assert between[0].sent[0] == pytest.approx((outer - 1) / outer * size)


def broadcast_trees(ranks: int) -> list[dict[int, int]]:
    """Two binary trees over ranks 1 to q - 1, q a power of two, below the source 0; inside one is a leaf of the other.

    The parent of every rank: the first tree is in order, so that odd ranks are leaves, the second is shifted by one.
    """
    first: dict[int, int] = {}

    def build(low: int, high: int, parent: int) -> None:
        if low < high:
            middle = (low + high) // 2
            first[middle] = parent
            build(low, middle, middle)
            build(middle + 1, high, middle)

    build(1, ranks, 0)

    def shifted(rank: int) -> int:
        return rank % (ranks - 1) + 1 if rank else 0

    return [first, {shifted(rank): shifted(parent) for rank, parent in first.items()}]


@pytest.mark.parametrize("ranks", [2, 4, 8, 16, 64, 512])
def test_two_broadcast_trees_counted(ranks: int) -> None:
    """Half the bytes in each: nobody sends more than n, everybody receives n, in log2(q) hops."""
    size = 1e9
    sent, received = Counter[int](), Counter[int]()
    hops = 0
    for parents in broadcast_trees(ranks):
        assert set(parents) == set(range(1, ranks))
        for rank, parent in parents.items():
            sent[parent] += size / 2
            received[rank] += size / 2
            depth, above = 1, parent
            while above:
                depth, above = depth + 1, parents[above]
            hops = max(hops, depth)
    assert 2**hops == ranks
    assert max(sent.values()) == size
    assert set(received.values()) == {size}
    counted = size / UP[0] + hops * UP[1]
    assert counted == pytest.approx(float(c.tree_broadcast_time(size, ranks, *UP, 0)), rel=1e-12)


@pytest.mark.parametrize("ranks", [2, 4, 16, 64])
@pytest.mark.parametrize("pieces", [1, 20, 500])
def test_two_broadcast_trees_run_piece_by_piece(ranks: int, pieces: int) -> None:
    """Pieces alternate between the trees; the closed form is what small pieces tend to, from above."""
    size = 1e9
    bandwidth, latency = UP
    piece = size / 2 / pieces / bandwidth
    last = 0.0
    for tree, parents in enumerate(broadcast_trees(ranks)):
        children: dict[int, list[int]] = {}
        for rank, parent in parents.items():
            children.setdefault(parent, []).append(rank)
        arrived = {0: [2 * k * piece + tree * piece for k in range(pieces)]}
        waiting = [0]
        while waiting:
            rank = waiting.pop()
            free = 0.0
            for came in arrived[rank]:
                for child in children.get(rank, []):
                    free = max(free, came) + piece
                    arrived.setdefault(child, []).append(free + latency)
            waiting += children.get(rank, [])
        last = max(last, *(times[-1] for times in arrived.values()))
    closed = float(c.tree_broadcast_time(size, ranks, *UP, 0))
    assert closed * (1 - 1e-12) <= last <= closed + 2 * np.log2(ranks) * piece + 1e-12


class Star:
    """Ranks at one switch, which can read all their copies of a part at once, add them, and store one for all.

    `out` and `into` are the bytes that each rank's link has carried, either way; `held[rank, part]` says whose data
    the rank has there.
    """

    def __init__(self, ranks: int) -> None:
        self.ranks = ranks
        self.out, self.into = [0.0] * ranks, [0.0] * ranks
        self.held = np.zeros((ranks, ranks, ranks))
        for rank in range(ranks):
            self.held[rank, :, rank] = 1

    def load_sum(self, rank: int, part: int, size: float) -> np.ndarray:
        """What a rank reads: every rank's link sends its copy, the reader's gets one sum."""
        for other in range(self.ranks):
            self.out[other] += size
        self.into[rank] += size
        total: np.ndarray = self.held[:, part].sum(axis=0)
        return total

    def store_all(self, rank: int, part: int, data: np.ndarray, size: float) -> None:
        """What a rank writes once comes to all, itself included."""
        self.out[rank] += size
        for other in range(self.ranks):
            self.into[other] += size
            self.held[other, part] = data


@given(st.integers(2, 12), sizes)
def test_a_multimem_all_reduce_run_part_by_part(ranks: int, size: float) -> None:
    """Every rank sums a part in the switch and stores it for all; the links carry n + n / q either way."""
    star = Star(ranks)
    sums = [star.load_sum(rank, rank, size / ranks) for rank in range(ranks)]
    half_way = max(star.out + star.into)
    for rank, total in enumerate(sums):
        star.store_all(rank, rank, total, size / ranks)
    assert np.all(star.held == 1)
    taken = max(star.out + star.into) / UP[0] + 2 * UP[1]
    assert taken == pytest.approx(float(c.multimem_all_reduce_time(size, ranks, *UP, 0, 1)), rel=1e-12)
    one_way = half_way / UP[0] + UP[1]
    assert one_way == pytest.approx(float(c.in_network_reduce_scatter_time(size, ranks, *UP, 0, 1)), rel=1e-12)
    assert min(star.out) == max(star.out) == pytest.approx(min(star.into))


@given(st.integers(2, 12), sizes)
def test_a_multicast_all_gather_run_part_by_part(ranks: int, size: float) -> None:
    """Every rank stores its part for all: links take in n, and one latency."""
    star = Star(ranks)
    for rank in range(ranks):
        star.store_all(rank, rank, star.held[rank, rank].copy(), size / ranks)
    assert all(np.array_equal(star.held[rank], np.eye(ranks)) for rank in range(ranks))
    taken = max(star.out + star.into) / UP[0] + UP[1]
    assert taken == pytest.approx(float(c.in_network_all_gather_time(size, ranks, *UP, 0, 1)), rel=1e-12)


@given(st.integers(2, 30), st.integers(2, 6), sizes)
def test_an_aggregation_tree_counted(ranks: int, radix: int, size: float) -> None:
    """However deep the tree of switches, each link carries the bytes once up and once down."""
    up, down = Counter[tuple[int, int]](), Counter[tuple[int, int]]()
    level = [{rank} for rank in range(ranks)]
    depth = 0
    while len(level) > 1 or depth == 0:
        for node in range(len(level)):
            up[depth, node] += size
            down[depth, node] += size
        level = [set().union(*level[k : k + radix]) for k in range(0, len(level), radix)]
        depth += 1
    assert level == [set(range(ranks))]
    taken = max(*up.values(), *down.values()) / UP[0] + 2 * UP[1]
    assert taken == pytest.approx(float(c.in_network_all_reduce_time(size, ranks, *UP, 0, 1)), rel=1e-12)


@pytest.mark.parametrize("function", IN_NETWORK, ids=name)
def test_one_rank_is_free_in_the_network(function: Any) -> None:
    """A group of one costs exactly nothing."""
    assert function(1e9, 1, *UP, 1e6, 0.9) == 0


@pytest.mark.parametrize(
    ("ranks", "tree", "loads"), [(2, 1.0, 2 / 3), (4, 1.5, 1.2), (8, 1.75, 14 / 9), (72, 2, 1.945)]
)
def test_switches_that_add_lift_the_bus_bandwidth_above_the_links(ranks: int, tree: float, loads: float) -> None:
    """Bus bandwidth over the link's rate, which ranks that add never exceed: NVLink SHARP on 8 devices gains 14/9."""
    size = 1e12
    each = (c.in_network_all_reduce_time, c.multimem_all_reduce_time)
    found = [float(c.all_reduce_bus_bandwidth(size, ranks, f(size, ranks, *UP, 0, 1))) / UP[0] for f in each]
    assert found == pytest.approx([tree, loads], rel=0.02)
    assert found[0] <= 2
    ring = float(c.all_reduce_bus_bandwidth(size, ranks, c.ring_all_reduce_time(size, ranks, *UP, 0)))
    assert ring <= UP[0]
    if ranks >= 4:
        assert min(found) > 1
    slower = c.multimem_all_reduce_time(size, ranks, UP[0], 0, 0, 0.5)
    assert float(slower) == pytest.approx(2 * float(c.multimem_all_reduce_time(size, ranks, UP[0], 0, 0, 1)))
