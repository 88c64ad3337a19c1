"""ZeRO and FSDP: the tables of their papers, laws of sharding, and two streams run unit by unit."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.collective_cases import value

from symperf.formulas import collectives as c
from symperf.formulas.language.symbols import gradient_bytes, optimizer_bytes, weight_bytes
from symperf.formulas.parallel import sharding as sh

MIXED = {weight_bytes: 2, gradient_bytes: 2, optimizer_bytes: 12}
"""Bytes of a parameter in FP16 with Adam (Rajbhandari et al. 2020)."""


def mixed(expr: Any) -> float:
    return float(expr.subs(MIXED))


@pytest.mark.parametrize(
    ("parameters", "shards", "expected"),
    [
        # Rajbhandari et al. 2020 figure 1 and table 1: 7.5 B, 128 B and 1 T parameters, in GB
        (7.5e9, 64, (31.4, 16.6, 1.88)),
        (7.5e9, 4, (52.5, 41.3, 30)),
        (128e9, 64, (536, 284, 32)),
        (128e9, 1024, (513, 257, 2)),
        (1e12, 1024, (4011, 2013, 15.6)),
    ],
)
def test_memory_as_in_the_tables_of_zero(parameters: float, shards: int, expected: tuple[float, ...]) -> None:
    """State of one device in GB at stages 1, 2 and 3, as rounded there."""
    found = [mixed(each(parameters, shards)) / 1e9 for each in (sh.zero_1_memory, sh.zero_2_memory, sh.zero_3_memory)]
    assert found == pytest.approx(expected, rel=5e-3)
    assert mixed(sh.replicated_state_memory(parameters)) == 16 * parameters


counts = st.integers(1, 4096)


@given(counts, st.integers(1, 10**12))
def test_laws_of_memory(shards: int, parameters: int) -> None:
    """One shard is no sharding; each stage keeps less; all shards of stage 3 together are the state, once."""
    stages = [mixed(each(parameters, shards)) for each in (sh.zero_1_memory, sh.zero_2_memory, sh.zero_3_memory)]
    whole = mixed(sh.replicated_state_memory(parameters))
    assert stages[2] <= stages[1] <= stages[0] <= whole
    assert stages[2] * shards == pytest.approx(whole, rel=1e-12)
    one = [mixed(each(parameters, 1)) for each in (sh.zero_1_memory, sh.zero_2_memory, sh.zero_3_memory)]
    assert one == [whole] * 3


def test_with_many_shards_only_what_is_gathered_is_left() -> None:
    """ZeRO-3's state tends to nothing, as the d grows; what is left are the units in use."""
    state = mixed(sh.zero_3_memory(70e9, 10**9))
    left = mixed(sh.gathered_units_memory(70e9 / 80, 2))
    assert state < 1e-4 * left
    assert left == 70e9 / 80 * 6


@given(counts)
def test_laws_of_traffic(shards: int) -> None:
    """Stage 3 sends half as many bytes again as stage 2, which sends what an all-reduce sends; one shard sends none."""
    two, three = (mixed(each(1e9, shards)) for each in (sh.zero_2_traffic_bytes, sh.zero_3_traffic_bytes))
    assert three == pytest.approx(1.5 * two)
    ring = float(c.ring_all_reduce_time(2e9, shards, 1, 0, 0))
    assert two == pytest.approx(ring, rel=1e-12)
    if shards == 1:
        assert two == three == 0


@given(st.integers(1, 8), st.integers(1, 64), st.floats(1, 1e10))
def test_hybrid_sharding_run_tier_by_tier(inner: int, outer: int, size: float) -> None:
    """Its bytes between domains are those of an all-reduce of each shard; one domain has none."""
    between = float(sh.hybrid_between_bytes(size / 4, inner, outer).subs({gradient_bytes: 4}))
    ring = float(c.ring_all_reduce_time(size / inner, outer, 1, 0, 0))
    assert between == pytest.approx(ring, rel=1e-12, abs=0)
    time = value(sh.hybrid_reduction_time(size, inner, outer))
    parts = value(c.scale_up_reduce_scatter_time(size, inner)) + value(
        c.all_reduce_time(size / inner, outer, 22.5e9, 11e-6, 0)
    )
    assert time == pytest.approx(parts, rel=1e-12, abs=0)
    assert value(sh.hybrid_gather_time(size, inner)) == value(c.scale_up_all_gather_time(size, inner))


class Streams:
    """A stream of computation and one of communication, each in order, as a framework issues them."""

    def __init__(self) -> None:
        self.free = {"compute": 0.0, "network": 0.0}

    def run(self, stream: str, time: float, *after: float) -> float:
        """Run something when the stream is free and all of `after` is over; when it ends."""
        self.free[stream] = max(self.free[stream], *after, 0.0) + time
        return self.free[stream]


durations = st.floats(0, 10)
units = st.integers(1, 40)


@given(durations, durations, units)
def test_a_sharded_forward_pass_run_unit_by_unit(work: float, gather: float, count: int) -> None:
    """Unit k + 1 is gathered when unit k starts; the closed form is exact."""
    streams = Streams()
    gathered = streams.run("network", gather)
    started = end = 0.0
    for unit in range(count):
        started = max(gathered, end)
        end = streams.run("compute", work, gathered)
        if unit + 1 < count:
            gathered = streams.run("network", gather, started)
    assert end == pytest.approx(float(sh.sharded_forward_time(work, gather, count)), rel=1e-9, abs=1e-12)


@given(durations, durations, durations, units)
def test_a_sharded_backward_pass_run_unit_by_unit(work: float, gather: float, scatter: float, count: int) -> None:
    """The same with gradients reduced after each unit, before the gather that the next unit issues."""
    streams = Streams()
    gathered = streams.run("network", gather)
    end = 0.0
    for unit in range(count):
        started = max(gathered, end)
        if unit:
            streams.run("network", scatter, end)
        end = streams.run("compute", work, gathered)
        if unit + 1 < count:
            gathered = streams.run("network", gather, started)
    finished = streams.run("network", scatter, end)
    closed = float(sh.sharded_backward_time(work, gather, scatter, count))
    assert finished == pytest.approx(closed, rel=1e-9, abs=1e-12)


@given(durations, durations, durations, units)
def test_bounds_of_sharded_passes(work: float, gather: float, scatter: float, count: int) -> None:
    """Never below the longer stream, never above both in turn; free transfers leave the work."""
    forward = float(sh.sharded_forward_time(work, gather, count))
    backward = float(sh.sharded_backward_time(work, gather, scatter, count))
    slack = 1 + 1e-12
    assert count * max(work, gather) <= forward * slack
    assert forward <= count * (work + gather) * slack
    assert count * max(work, gather + scatter) <= backward * slack
    assert backward <= count * (work + gather + scatter) * slack
    assert float(sh.sharded_backward_time(work, 0, 0, count)) == pytest.approx(count * work, rel=1e-12)
    assert float(sh.sharded_forward_time(work, 0, count)) == pytest.approx(count * work, rel=1e-12)
