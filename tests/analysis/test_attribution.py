"""Who is responsible for the time, what would be gained, and between which bounds it lies."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from support.analysis_cases import made, subject_at
from support.law_cases import few, regimes, some
from support.run_cases import each_run
from support.strategies import seeds

from symperf.analysis.attribution import faster, least
from symperf.analysis.bounds import serial
from symperf.codegen.interpret import floats, run


@each_run
def test_the_sums_of_the_matrix_agree(name: str) -> None:
    """Rows with the breakdown, columns with the shares, all with the time."""
    of = made(name)
    time, found = of.value("time"), of.attribution()
    assert found.total == pytest.approx(time, rel=1e-12)
    rows, columns = found.row_sums(), found.column_sums()
    for row in of.table():
        assert rows[row.name] == pytest.approx(row.time_s, rel=1e-9, abs=1e-12 * time)
    assert list(rows) == [row.name for row in of.table()]
    for resource, share in of.shares().items():
        assert columns[resource] == pytest.approx(share * time, rel=1e-9, abs=1e-12 * time)
    assert math.fsum(columns.values()) == pytest.approx(math.fsum(rows.values()), rel=1e-12)


@each_run
def test_groups_of_terms_add_up(name: str) -> None:
    found = made(name).attribution()
    for depth in (1, 2, 3):
        grouped = found.grouped(depth)
        assert grouped.total == pytest.approx(found.total, rel=1e-12)
        assert grouped.column_sums() == pytest.approx(found.column_sums(), rel=1e-12)
    assert set(found.grouped(1).rows) == {row.split("/")[0] for row in found.rows}
    told = json.loads(json.dumps(found.to_dict()))
    assert told["resources"] == list(found.columns)
    assert len(told["terms"]) == len(found.rows)


@each_run
def test_a_bound_is_the_largest_of_its_row(name: str) -> None:
    of = made(name)
    found = of.attribution()
    for row, seconds in zip(of.table(), found.seconds, strict=True):
        if row.bound is not None and row.time_s > 0:
            assert found.columns[seconds.index(max(seconds))] == row.bound


@each_run
def test_gains_are_those_of_binding_faster_resources(name: str) -> None:
    """At 1.1 and at 2 times the rates, and half the latencies, a new run has the promised speed-up."""
    of = made(name)
    gains = of.gains()
    assert [g.infinite or math.inf for g in gains] == sorted((g.infinite or math.inf for g in gains), reverse=True)
    for gain in gains:
        for factor, speed_up in ((1.1, gain.plus_10_percent), (2.0, gain.times_2)):
            values = {
                s: of.bound[s][0] / factor if s.endswith("_latency") else of.bound[s][0] * factor for s in gain.symbols
            }
            assert of.value("time") / of.bind(**values).value("time") == pytest.approx(speed_up, rel=1e-12)
        assert gain.infinite is not None
        assert 1 <= gain.plus_10_percent <= gain.times_2 * (1 + 1e-12)
        assert gain.times_2 <= gain.infinite * (1 + 1e-12)
        assert gain.plus_10_percent <= 1.1 * (1 + 1e-12)
        assert gain.share == of.shares()[gain.resource]
        json.dumps(gain.to_dict())


@given(some, seeds, regimes)
@few
def test_the_limit_of_a_gain_is_approached(name: str, seed: int, regime: str) -> None:
    """At 1e9 times its rates, a resource's limit is nearly there, and never passed."""
    subject = subject_at(name, seed, regime)
    for resource in subject.names:
        powers = {s: -subject.degree(s) for s, owner in subject.resources.items() if owner == resource}
        limit = least(subject, powers)
        near = run(subject.program, faster(subject.values, powers, 1e9), floats())[subject.position]
        assert limit <= near * (1 + 1e-12)
        now = run(subject.program, subject.values, floats())[subject.position]
        assert near == pytest.approx(limit, rel=1e-5, abs=1e-7 * now)


@given(some, seeds, regimes)
@few
def test_the_time_lies_between_its_bounds(name: str, seed: int, regime: str) -> None:
    """T_overlap <= T <= T_serial at random points of every structure."""
    subject = subject_at(name, seed, regime)
    time = run(subject.program, subject.values, floats())[subject.position]
    assert serial(subject) >= time * (1 - 1e-12)
    alone = []
    for resource in subject.names:
        others = {s: -subject.degree(s) for s, owner in subject.resources.items() if owner != resource}
        alone.append(least(subject, others))
    assert max(alone) <= time * (1 + 1e-12)
    assert sum(alone) >= 0


@each_run
def test_bounds_of_a_run(name: str) -> None:
    of = made(name)
    found = of.bounds()
    assert found.overlapped <= found.time <= found.serial
    assert found.time == of.value("time")
    assert found.overlapped == max(found.by_resource.values())
    assert found.overlapped > 0
    if name == "no tiles":  # no choice between levels that is not a maximum: what runs in turn adds up
        assert found.serial >= math.fsum(found.by_resource.values()) * (1 - 1e-12)
    json.dumps(found.to_dict())


def test_without_overlap_the_serial_bound_is_of_operations_alone() -> None:
    """Hiding transfers behind work changes the time, never the serial bound."""
    hidden = made("llama").bind(overlap_tp=1.0, overlap_dp=1.0)
    shown = made("llama").bind(overlap_tp=0.0, overlap_dp=0.0)
    assert hidden.bounds().serial == pytest.approx(shown.bounds().serial, rel=1e-12)
    assert hidden.value("time") < shown.value("time") <= shown.bounds().serial
