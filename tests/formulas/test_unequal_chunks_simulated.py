"""Closed forms of virtual stages of different times, and of transfers beside passes, against runs of each schedule."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from support.effort import cases

from symperf.formulas.memory import stage_memory
from symperf.formulas.parallel import pipeline as pipe
from symperf.formulas.parallel import unequal_chunks as chunked
from symperf.operations.laid_out import most_in_flight
from symperf.timeline import simulator as sim

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

CASES = cases(60)
"""Random cases of each kind."""


@dataclass(frozen=True)
class Chunks:
    """Times of the passes of p v virtual stages in order, and of a transfer of which a part runs beside them."""

    forward: list[float]
    backward: list[float]
    p: int
    v: int
    sent: float = 0.0
    hidden: float = 0.0

    def duration(self, item: sim.Item) -> float:
        times = self.forward if item[0].kind == "F" else self.backward
        return times[item[0].stage] + self.sent * (1 - self.hidden)

    def simulated(self, m: int) -> float:
        order = sim.interleaved(m, self.p, self.v) if self.v > 1 else sim.gpipe(m, self.p)
        return sim.simulate(order, self.duration, self.sent * self.hidden).makespan

    def way(self, times: Sequence[float], start: int, stop: int) -> float:
        """Time of some stages in order, each with its transfer."""
        return sum(times[start:stop]) + max(0, stop - start) * self.sent

    def closed(self, m: int) -> float:
        """The longest device; with m = p, and for GPipe, the longest one way and the longest the other."""
        p, v, devices, ways = self.p, self.v, [], []
        shown = self.sent * (1 - self.hidden)
        for i in range(p):
            last = (v - 1) * p + i
            both, waited = [], 0.0
            for times in (self.forward, self.backward):
                own = sum(times[i::p]) + v * shown
                rounds = range(i, last, p)
                waits = sum(
                    float(chunked.round_wait_time(times[at] + shown, self.way(times, at, at + p), p)) for at in rounds
                )
                around = self.way(times, 0, i), self.way(times, last + 1, v * p)
                both.append((own, *around, waits))
                waited += waits
            ways.append([w + float(chunked.one_way_time(*around, m)) for *around, w in both])
            ends = [times[at] + shown for at in (i, last) for times in (self.forward, self.backward)]
            (own_f, before_f, behind_f, _), (own_b, before_b, behind_b, _) = both
            around = before_f + before_b, behind_f + behind_b
            time = chunked.interleaved_device_time(own_f + own_b, *ends, *around, waited, m, p, i + 1)
            devices.append(float(time))
        if v == 1 or m == p:
            return sum(max(each[way] for each in ways) for way in (0, 1))
        return max(devices)


def draws(
    seed: int, kind: Callable[[random.Random, int], list[float]], *, least: int = 2
) -> Iterator[tuple[Chunks, int]]:
    draw = random.Random(seed)
    for _ in range(CASES):
        p, v = draw.choice((2, 3, 4, 8)), draw.choice((least, 2, 3, 5))
        forward, ratio = kind(draw, p * v), draw.uniform(1.5, 2.5)
        sent, hidden = draw.choice((0.0, 0.2)) * min(f for f in forward if f > 0.2), draw.choice((0.0, 0.5, 1.0))
        chunks = Chunks(forward, [ratio * f for f in forward], p, v, sent, hidden)
        yield chunks, p * draw.choice((1, 2, 4))


def equal(draw: random.Random, count: int) -> list[float]:
    return [draw.uniform(0.5, 2)] * count


def counted(draw: random.Random, count: int) -> list[float]:
    """The embedding alone on the first, the head alone on the last, as Llama 3 405B has them."""
    layer = draw.uniform(0.5, 2)
    return [layer * draw.uniform(0.01, 0.1), *[layer] * (count - 2), layer * draw.uniform(0.4, 1.5)]


def laid_out(draw: random.Random, count: int) -> list[float]:
    """Equal but at the ends, and maybe the last but one, which may have a module for multi-token prediction."""
    found = [layer := draw.uniform(0.5, 2)] * count
    found[0] = layer * draw.uniform(0.6, 1.2)
    found[-2:] = [layer * draw.choice((1, draw.uniform(0.7, 1.5))), layer * draw.uniform(0.3, 1.3)]
    return found


def uneven(draw: random.Random, count: int) -> list[float]:
    """Two layers on the first virtual stages, one on the others."""
    more = draw.randint(1, count - 1)
    return [1.0 + (k < more) for k in range(count)]


def any_times(draw: random.Random, count: int) -> list[float]:
    return [draw.uniform(0.5, 1.5) for _ in range(count)]


def offs(seed: int, kind: Callable[[random.Random, int], list[float]], *, least: int = 2) -> list[float]:
    """By how much the closed form is below the run of each case; never above it."""
    found = []
    for chunks, m in draws(seed, kind, least=least):
        closed, run = chunks.closed(m), chunks.simulated(m)
        assert closed <= run * (1 + 1e-9), chunks
        found.append(1 - closed / run)
    return sorted(found)


def test_equal_virtual_stages_are_exact_with_transfers_beside_them() -> None:
    """Whatever part of the transfers is hidden; without it they are `interleaved_time`."""
    assert offs(1, equal)[-1] < 1e-9
    chunks = Chunks([1.0] * 8, [2.0] * 8, 4, 2)
    assert chunks.closed(8) == float(pipe.interleaved_time(2, 4, 8, 4, 2))


def test_gpipe_is_exact_for_any_stages() -> None:
    """Also with transfers beside the passes."""
    draw = random.Random(2)
    for _ in range(CASES):
        p, m, hidden = draw.randint(1, 8), draw.randint(1, 20), draw.uniform(0, 1)
        times = [any_times(draw, p) for _ in range(2)]
        chunks = Chunks(times[0], times[1], p, 1, draw.uniform(0, 0.3), hidden)
        assert chunks.closed(m) == pytest.approx(chunks.simulated(m), rel=1e-9)


@pytest.mark.parametrize(("kind", "exact", "most"), [(counted, 0.9, 0.05), (laid_out, 0.5, 0.04)])
def test_layouts_as_people_have_them(
    kind: Callable[[random.Random, int], list[float]], exact: float, most: float
) -> None:
    """Exact for most, within 4 or 5 % for all."""
    off = offs(3, kind)
    assert sum(each < 1e-9 for each in off) > exact * len(off)
    assert off[-1] < most


@pytest.mark.parametrize(("kind", "mean", "most"), [(uneven, 0.03, 0.13), (any_times, 0.06, 0.2)])
def test_any_virtual_stages_are_bounded_from_below(
    kind: Callable[[random.Random, int], list[float]], mean: float, most: float
) -> None:
    """Where chunks of a device differ much, slow ones of several devices are in one another's way."""
    off = offs(4, kind)
    assert sum(off) / len(off) < mean
    assert off[-1] < most


def test_one_f_one_b_shows_most_transfers() -> None:
    """At most 2.5 % too long, and never too short: micro-batches in flight are too few to hide behind."""
    draw = random.Random(5)
    for _ in range(CASES):
        p, m, x = draw.randint(1, 9), draw.randint(1, 40), draw.uniform(0, 1)
        f, b = draw.uniform(0.3, 2), draw.uniform(0.3, 3)
        sent = draw.uniform(0, 0.4) * min(f, b)
        shown = sent * (1 - x)
        cost = sim.by_kind({"F": f + shown, "D": b + shown})
        run = sim.simulate(sim.one_f_one_b(m, p), cost, sent * x).makespan
        later = f + b + 2 * sent * float(chunked.one_f_one_b_shown_share(x, p))
        closed = (p - 1) * (f + b + 2 * sent) + f + b + 2 * shown + (m - 1) * later
        assert run * (1 - 1e-9) <= closed <= run * 1.025


def test_uneven_chunks_hold_what_their_run_holds() -> None:
    """Exactly: the first virtual stages have a layer more, and every device's fullest moment is that of the order."""
    draw = random.Random(6)
    for _ in range(CASES):
        p, v = draw.choice((2, 3, 4, 8)), draw.choice((2, 3, 5))
        layers, m = draw.randint(p, 4 * p * v), p * draw.randint(2, 5)
        fewest, longer = divmod(layers, p * v)
        held = [fewest + (at < longer) for at in range(p * v)]
        run = sim.simulate(sim.interleaved(m, p, v), sim.by_kind({"F": 1.0, "D": 2.0}), weight=held.__getitem__)
        for i in range(p):
            of_device = sum(at % p == i for at in range(longer))
            closed = stage_memory.uneven_chunks_in_flight(m, p, v, fewest, of_device, i + 1)
            assert closed == run.in_flight[i], (p, v, layers, m, i)


def test_chunks_of_any_size_hold_what_their_run_holds() -> None:
    draw = random.Random(7)
    for _ in range(CASES):
        p, v = draw.choice((2, 3, 4, 8)), draw.choice((2, 3, 5))
        held = [draw.randint(0, 4) for _ in range(p * v)]
        order = sim.interleaved(p * draw.randint(4, 5), p, v)
        run = sim.simulate(order, sim.by_kind({"F": 1.0, "D": 2.0}), weight=held.__getitem__)
        found = [most_in_flight(held[i::p], p, p * v + p - 1 - 2 * i) for i in range(p)]
        assert found == run.in_flight, (p, v, held)
