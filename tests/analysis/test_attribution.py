"""Who is responsible for the time, what would be gained, and between which bounds it lies."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from support.analysis_cases import made, subject_at
from support.effort import some as a_part
from support.law_cases import few, regimes, some
from support.run_cases import each_run
from support.strategies import seeds

import symperf as sf
from symperf.analysis.attribution import least
from symperf.analysis.bounds import serial
from symperf.analysis.gains import falls
from symperf.analysis.symbols import domain_of
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
def test_gains_are_those_of_binding_what_is_better(name: str) -> None:
    """At 1.1 and at 2 times as good a new run has the promised gain: of resources, and of single symbols."""
    of = made(name)
    gains = of.gains()
    assert [gain.key for gain in gains] == sorted((gain.key for gain in gains), reverse=True)
    assert {gain.resource for gain in gains.resources} <= set(of.shares())
    for gain in gains:
        for factor, speed_up in ((1.1, gain.plus_10_percent), (2.0, gain.times_2)):
            if factor > 1.5 and any(2 * of.bound[s][0] > domain_of(s).high for s in gain.symbols):
                continue
            if not all(of.bound[s][0] for s in gain.symbols):
                continue
            values = {
                s: of.bound[s][0] / factor if falls(s) else min(of.bound[s][0] * factor, domain_of(s).high)
                for s in gain.symbols
            }
            assert of.value("time") / of.bind(**values).value("time") == pytest.approx(speed_up, rel=1e-12)
        assert gain.limit is not None
        if gain.symbol is None:
            assert 1 <= gain.plus_10_percent <= gain.times_2 * (1 + 1e-12)
            assert gain.plus_10_percent <= 1.1 * (1 + 1e-12)
            assert gain.share == pytest.approx(of.shares()[gain.resource], rel=1e-9, abs=1e-12)
        assert gain.times_2 <= gain.limit * (1 + 1e-12)
    told = json.loads(json.dumps(gains.to_dict(), allow_nan=False))
    assert [each["limit"] for each in told["gains"]] == [gain.limit for gain in gains]


def test_a_fraction_gains_up_to_1() -> None:
    of = made("gpt")
    gain = next(each for each in of.gains() if each.symbol == "memory_efficiency")
    best = of.value("time") / of.bind(memory_efficiency=1.0).value("time")
    assert gain.times_2 == gain.limit == pytest.approx(best, rel=1e-12)
    overlap = next(each for each in of.bind(overlap_tp=0.0).gains() if each.symbol == "overlap_tp")
    hidden = of.bind(overlap_tp=0.0).value("time") / of.bind(overlap_tp=1.0).value("time")
    assert overlap.times_2 == overlap.limit == pytest.approx(hidden, rel=1e-12)
    assert overlap.plus_10_percent < hidden


@pytest.mark.parametrize("of", a_part(("mfu", "tokens_per_s", "energy", "layer/mlp"), 0.5))
def test_other_quantities_gain_too(of: str) -> None:
    """More of rates and utilisations, less of everything else."""
    run = made("gpt")
    found = run.gains(of)
    if of == "layer/mlp":
        assert next(each for each in found if each.symbol == "scale_out_bandwidth").limit == pytest.approx(1.0)
    now = run.value(of) if of != "layer/mlp" else None
    assert now is None or found.value == pytest.approx(now, rel=1e-12)
    gain = next(each for each in found if each.symbol == "memory_bandwidth")
    other = run.bind(memory_bandwidth=2 * run.bound["memory_bandwidth"][0]).gains(of).value
    more = of in ("mfu", "tokens_per_s")
    assert gain.times_2 == pytest.approx(other / found.value if more else found.value / other, rel=1e-12)
    rate = next(each for each in found if each.symbol == "matrix_rate")
    assert (rate.times_2 < 1) == (of == "mfu")


def test_what_the_run_sets_from_a_symbol_moves_with_it() -> None:
    """An inference in 16 bits has one rate: attention's follows."""
    run = sf.inference(
        sf.Model.load("llama-2-7b"), sf.System.load("h100-sxm"), sf.Plan(), batch=64, prompt=2048, generate=2
    )
    gain = next(each for each in run.gains("prefill") if each.symbol == "matrix_rate")
    twice = run.bind(matrix_rate=2 * run.bound["matrix_rate"][0])
    assert twice.bound["attention_rate"][0] == 2 * run.bound["attention_rate"][0]
    assert gain.times_2 == pytest.approx(run.value("prefill") / twice.value("prefill"), rel=1e-12)


def test_answers_say_themselves() -> None:
    run = made("gpt")
    gains, matrix, between = run.gains(), run.attribution(), run.bounds()
    assert "makes the step" in str(gains).splitlines()[0]
    assert "nothing else gives" in gains.sentence
    assert "are due to compute" in matrix.sentence
    assert "at least" in between.sentence
    for answer in (gains, matrix, between):
        assert max(map(len, answer.text(120).splitlines())) <= 120
        assert r"\begin{tabular}" in answer.latex()
        assert "<table>" in answer._repr_html_()
        answer.plot()


def test_a_quantity_that_nothing_better_changes() -> None:
    with pytest.raises(sf.InputError, match="gains: memory depends on nothing that can be bought or tuned"):
        made("gpt").gains("memory")
    with pytest.raises(sf.InputError, match="gains: unknown quantity 'tim'; did you mean time"):
        made("gpt").gains("tim")


def faster(values: dict[str, float], powers: dict[str, int], factor: float) -> dict[str, float]:
    """Values with rates times a factor and latencies over it."""
    return values | {name: values[name] * factor**power for name, power in powers.items()}


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
