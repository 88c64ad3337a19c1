"""Closed forms of schedules equal an event-by-event run of the schedule, for equal stages, and bound it for unequal."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest
from support.effort import cases

from symperf.formulas.parallel import dual_pipe as dual
from symperf.formulas.parallel import pipeline as pipe
from symperf.formulas.parallel import zero_bubble as zb
from symperf.timeline import simulator as sim

if TYPE_CHECKING:
    from collections.abc import Iterator

CASES = cases(600)
"""Random cases of each schedule."""


def draws(seed: int) -> Iterator[random.Random]:
    """One generator, once for each case."""
    generator = random.Random(seed)
    for _ in range(CASES):
        yield generator


def times(draw: random.Random) -> tuple[float, float, float]:
    """Times of F, B and W, each anywhere within a factor of 30."""
    return draw.uniform(0.1, 3), draw.uniform(0.1, 3), draw.uniform(0.1, 3)


def close(expected: float) -> Any:
    return pytest.approx(expected, rel=1e-9, abs=0)


def test_gpipe_and_one_f_one_b() -> None:
    """Time and memory, with fewer micro-batches than stages too; every device is idle for the same time."""
    for draw in draws(1):
        m, p = draw.randint(1, 30), draw.randint(1, 10)
        forward, backward, _ = times(draw)
        cost = sim.by_kind({"F": forward, "D": backward})
        gpipe, alternating = sim.simulate(sim.gpipe(m, p), cost), sim.simulate(sim.one_f_one_b(m, p), cost)
        assert gpipe.makespan == close(float(pipe.gpipe_time(forward, backward, m, p)))
        assert alternating.makespan == close(float(pipe.one_f_one_b_time(forward, backward, m, p)))
        assert max(gpipe.in_flight) == pipe.gpipe_in_flight(m)
        assert alternating.in_flight == [min(m, p - stage) for stage in range(p)]
        assert alternating.in_flight[0] == pipe.one_f_one_b_in_flight(m, p)
        idle = float(pipe.bubble_fraction(m, p, 1)) * m * (forward + backward)
        assert all(alternating.makespan - busy == pytest.approx(idle, abs=1e-9) for busy in alternating.busy)


def test_interleaved() -> None:
    """Time and memory in Megatron-LM's order, where p divides m."""
    for draw in draws(2):
        p, v = draw.randint(1, 8), draw.randint(1, 5)
        m = p * draw.randint(1, 5)
        assert pipe.interleaved_holds(m, p)
        forward, backward, _ = times(draw)
        run = sim.simulate(sim.interleaved(m, p, v), sim.by_kind({"F": forward / v, "D": backward / v}))
        assert run.makespan == close(float(pipe.interleaved_time(forward, backward, m, p, v)))
        assert run.in_flight[0] == max(run.in_flight)
        assert run.in_flight[0] / v == close(float(pipe.interleaved_in_flight(m, p, v)))


def test_interleaving_tends_to_no_bubble() -> None:
    """The simulated idle time is that of one chunk over v."""
    runs = [sim.simulate(sim.interleaved(12, 4, v), sim.by_kind({"F": 1 / v, "D": 2 / v})) for v in (1, 2, 4, 8, 64)]
    idle = [run.makespan - 36 for run in runs]
    assert idle == pytest.approx([9 / v for v in (1, 2, 4, 8, 64)], rel=1e-9)
    assert idle[-1] < 0.15


def test_zero_bubble_h1() -> None:
    """Time with and without a barrier, idle time and memory, for any three times, where m >= p."""
    for draw in draws(3):
        p = draw.randint(1, 9)
        m = p + draw.randint(0, 25)
        assert zb.zero_bubble_holds(m, p)
        f, i, g = times(draw)
        run = sim.simulate(sim.zero_bubble_h1(m, p), sim.by_kind({"F": f, "B": i, "W": g}))
        assert run.makespan == close(float(zb.zero_bubble_h1_time(f, i, g, m, p)))
        assert run.period == close(float(zb.zero_bubble_time(f, i, g, m, p, p)))
        assert run.period == close(float(zb.zero_bubble_1p_time(f, i, g, m, p)))
        idle = float(zb.zero_bubble_h1_idle_time(f, i, g, p))
        assert run.makespan - max(run.busy) == pytest.approx(idle, abs=1e-9)
        assert run.in_flight == [pipe.one_f_one_b_in_flight(m, p)] * p


def test_zero_bubble_h2() -> None:
    """The same, where m >= 2p - 1, with twice the memory."""
    for draw in draws(4):
        p = draw.randint(1, 8)
        limit = 2 * p - 1
        m = limit + draw.randint(0, 20)
        f, i, g = times(draw)
        run = sim.simulate(sim.zero_bubble_h2(m, p), sim.by_kind({"F": f, "B": i, "W": g}))
        assert run.period == close(float(zb.zero_bubble_h2_time(f, i, g, m, p)))
        assert run.makespan == close(float(zb.zero_bubble_flush_time(f, i, g, m, p, limit)))
        idle = float(zb.zero_bubble_h2_idle_time(f, i, g, p))
        assert run.period - max(run.busy) == pytest.approx(idle, abs=1e-9)
        assert run.in_flight == [zb.zero_bubble_h2_in_flight(m, p)] * p


def test_outside_their_conditions_zero_bubble_forms_are_refused_for_a_reason() -> None:
    """With m < p there are cases in which ZB-H1 takes longer than the closed form."""
    times_, m, p = (2.0, 0.6, 2.5), 6, 8
    run = sim.simulate(sim.zero_bubble_h1(m, p), sim.by_kind(dict(zip("FBW", times_, strict=True))))
    assert not zb.zero_bubble_holds(m, p)
    assert run.makespan > 1.01 * float(zb.zero_bubble_h1_time(*times_, m, p))


def test_no_order_under_a_memory_limit_beats_the_zero_bubble_form() -> None:
    """Orders with M in flight on every device never end before the bound, and one often reaches it."""
    reached = 0
    for draw in draws(5):
        p = draw.randint(2, 7)
        limit = draw.randint(p, 2 * p + 2)
        m = limit + draw.randint(0, 15)
        f, i, g = times(draw)
        steps = [1 + (limit - 1) * (p - 1 - stage) // (p - 1) for stage in range(p)]
        steep = [max(limit - 2 * stage, p - stage) for stage in range(p)]
        bound = float(zb.zero_bubble_time(f, i, g, m, p, limit))
        runs = [
            sim.simulate(sim.split(m, ahead, [limit - each for each in ahead]), sim.by_kind({"F": f, "B": i, "W": g}))
            for ahead in (steps, steep)
        ]
        assert all(max(run.in_flight) <= limit for run in runs)
        assert min(run.period for run in runs) >= bound * (1 - 1e-9)
        reached += min(run.period for run in runs) == close(bound)
    assert reached > 0.7 * CASES


def test_zero_bubbles_lie_below_those_of_one_f_one_b() -> None:
    """ZB-H1 is faster than 1F1B of the same passes, ZB-H2 and 2p no slower than H1; simulated and in closed form."""
    for draw in draws(6):
        p = draw.randint(2, 7)
        m = 2 * p + draw.randint(0, 12)
        f, i, g = times(draw)
        h1, h2 = (
            sim.simulate(order(m, p), sim.by_kind({"F": f, "B": i, "W": g}))
            for order in (sim.zero_bubble_h1, sim.zero_bubble_h2)
        )
        old = sim.simulate(sim.one_f_one_b(m, p), sim.by_kind({"F": f, "D": i + g}))
        assert h1.makespan < old.makespan
        assert h2.period <= h1.period * (1 + 1e-12)
        closed = [float(each(f, i, g, m, p)) for each in (zb.zero_bubble_2p_time, zb.zero_bubble_h2_time)]
        assert m * (f + i + g) * (1 - 1e-12) <= closed[0] <= closed[1] * (1 + 1e-12)
        assert closed[1] - closed[0] <= max(f, g) * (1 + 1e-9)


def test_the_memory_for_no_bubble() -> None:
    """With that many micro-batches in flight the bound is the work alone, with one fewer it is more."""
    for draw in draws(7):
        p, (f, i, g) = draw.randint(2, 8), times(draw)
        enough = int(zb.no_bubble_in_flight(f, i, g, p))
        m = enough + draw.randint(0, 10)
        assert float(zb.zero_bubble_time(f, i, g, m, p, enough)) == close(m * (f + i + g))
        if enough > p:
            assert float(zb.zero_bubble_time(f, i, g, m, p, enough - 1)) > m * (f + i + g)


def test_dual_pipe() -> None:
    """Time, the middle devices' idle time and memory, where p and m are even and m >= 2p."""
    for draw in draws(8):
        p = 2 * draw.randint(1, 5)
        m = 2 * p + 2 * draw.randint(0, 6)
        assert dual.dual_pipe_holds(m, p)
        f, i, g = times(draw)
        both = draw.uniform(max(f, i + g), f + i + g)
        run = sim.simulate(sim.dual_pipe(m, p), sim.by_kind({"F": f, "B": i, "W": g, "D": i + g, "FD": both}))
        assert run.makespan == close(float(dual.dual_pipe_time(f, i, g, both, m, p)))
        assert run.in_flight == [dual.dual_pipe_in_flight(p)] * p
        if g <= f and i <= f:
            idle = float(dual.dual_pipe_idle_time(f, i, g, both, p))
            assert run.makespan - run.busy[p // 2] == pytest.approx(idle, abs=1e-9)


def test_dual_pipe_has_the_bubble_of_its_report() -> None:
    """(PP/2 - 1)(F&B + B - 3W) at T_f = T_i >= T_g, which is less than that of ZB-1p and of 1F1B."""
    for f, g, both in ((1.0, 1.0, 2.5), (1.0, 0.8, 2.6), (2.0, 1.0, 4.0)):
        run = sim.simulate(sim.dual_pipe(20, 8), sim.by_kind({"F": f, "B": f, "W": g, "D": f + g, "FD": both}))
        assert run.makespan - run.busy[4] == pytest.approx(3 * (both + (f + g) - 3 * g), abs=1e-9)
        assert run.makespan - run.busy[4] < float(zb.zero_bubble_h1_idle_time(f, f, g, 8))


def uneven(draw: random.Random, stages: int) -> list[float]:
    return [draw.uniform(0.5, 2) for _ in range(stages)]


def test_unequal_stages() -> None:
    """Exact for GPipe, an upper bound for 1F1B, exact for it too if no stage is slower than the last."""
    exact = 0
    for draw in draws(9):
        m, p, ratio = draw.randint(1, 20), draw.randint(1, 8), draw.uniform(0.5, 3)
        forward = uneven(draw, p)
        if draw.random() < 0.5:
            forward[-1] = max(forward)
        both = [each * (1 + ratio) for each in forward]
        closed = float(pipe.uneven_stages_time(sum(both), max(both), m))

        def cost(item: sim.Item, forward: list[float] = forward, ratio: float = ratio) -> float:
            return forward[item[0].stage] * (1 if item[0].kind == "F" else ratio)

        assert sim.simulate(sim.gpipe(m, p), cost).makespan == close(closed)
        run = sim.simulate(sim.one_f_one_b(m, p), cost).makespan
        assert run <= closed * (1 + 1e-9)
        assert run >= max(m * max(both), sum(both)) * (1 - 1e-9)
        if pipe.uneven_stages_exact(both):
            exact += 1
            assert run == close(closed)
    assert exact > 0.4 * CASES


def test_layers_that_stages_do_not_divide() -> None:
    """ceil(L / p) layers set the pace: exact for 1F1B with the full stages last, and for GPipe wherever they are."""
    for draw in draws(10):
        p, m = draw.randint(1, 8), draw.randint(1, 20)
        count = draw.randint(p, 40)
        layers = [count // p + (stage >= p - count % p) for stage in range(p)]
        assert max(layers) == pipe.fullest_stage_layers(count, p)
        closed = float(pipe.uneven_layers_time(3, 0, 0, count, m, p))

        def cost(item: sim.Item, layers: list[int] = layers) -> float:
            return layers[item[0].stage] * (1.0 if item[0].kind == "F" else 2.0)

        assert sim.simulate(sim.one_f_one_b(m, p), cost).makespan == close(closed)
        draw.shuffle(layers)
        assert sim.simulate(sim.gpipe(m, p), cost).makespan == close(closed)


def test_given_end_stages() -> None:
    """Llama-3.1-405B has 126 layers on 16 stages, 7 on the first and the last, which also have table and head."""
    layers = [7, *[8] * 14, 7]
    assert sum(layers) == 126
    closed = float(pipe.uneven_stages_time(126 * 3, 8 * 3, 32))

    def cost(item: sim.Item) -> float:
        return layers[item[0].stage] * (1.0 if item[0].kind == "F" else 2.0)

    assert sim.simulate(sim.gpipe(32, 16), cost).makespan == close(closed)
    run = sim.simulate(sim.one_f_one_b(32, 16), cost).makespan
    assert 0.97 * closed < run <= closed


def test_a_schedule_that_waits_for_itself_is_stuck() -> None:
    """The simulator notices: a backward pass before its own forward pass."""
    with pytest.raises(ValueError, match="stuck"):
        sim.simulate([[(sim.Task("D", 0, 0),), (sim.Task("F", 0, 0),)]], sim.by_kind({"F": 1, "D": 1}))
