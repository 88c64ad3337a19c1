"""`Run`: what takes the time, by resource, by symbol and by term."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest
from support.run_cases import PIPELINED, RUNS, each_run, make

from symperf.formulas.language.symbols import SYMBOLS
from symperf.operations.schedule import Op
from symperf.train.step.step import BUBBLE

if TYPE_CHECKING:
    import symperf as sf


@pytest.fixture(scope="module")
def run() -> sf.Run:
    """The 175B run of Korthikanti et al. 2022, which several tests read."""
    return make(**PIPELINED)


@each_run
def test_elasticities_and_shares_agree(name: str) -> None:
    """Elasticities of latencies less those of rates sum to one, and by resource they are the shares."""
    answer = RUNS[name]()
    found = answer.sensitivity()
    assert set(found) <= {str(symbol) for symbol in answer.bindings}
    by_resource = dict.fromkeys(answer.shares(), 0.0)
    for symbol, elasticity in found.items():
        resource = SYMBOLS[symbol].resource
        if resource is not None:
            by_resource[resource] += elasticity if symbol.endswith("_latency") else -elasticity
    assert sum(by_resource.values()) == pytest.approx(1, rel=1e-12)
    assert by_resource == pytest.approx(answer.shares(), rel=1e-12, abs=1e-15)
    assert all(0 <= share <= 1 + 1e-12 for share in answer.shares().values())


@pytest.mark.parametrize("symbol", ["matrix_rate", "memory_bandwidth", "scale_up_bandwidth", "launch_latency"])
def test_sensitivity_is_the_derivative(run: sf.Run, symbol: str) -> None:
    """An elasticity is what a small change does, in logarithms."""
    step = 1e-6
    up, down = (run.bind(**{symbol: run.bound[symbol][0] * (1 + s)}).value("time") for s in (step, -step))
    slope = (up - down) / (2 * step) / run.value("time")
    assert run.sensitivity()[symbol] == pytest.approx(slope, rel=1e-4, abs=1e-7)


def test_table_rows(run: sf.Run) -> None:
    """Every term of the step once, in order, with what it does and what binds it."""
    table = run.table()
    assert [row.name for row in table] == list(run.time.terms)
    rows = {row.name: row for row in table}
    layers_of_a_device = 96 / 8 * 64
    qkv = rows["layer/attention/qkv/forward"]
    assert qkv.count == layers_of_a_device
    assert qkv.flops == 2 * 2048 * 12288 * 3 * 12288 / 8 * layers_of_a_device
    assert qkv.bound == "compute"
    assert qkv.share == pytest.approx(qkv.time_s / run.value("time"), rel=1e-15)
    assert rows["layer/mlp/reduce/forward"].bound == "scale_up"
    assert rows["layer/mlp/norm/forward"].bound == "memory"
    assert rows["pipeline/send/forward"].bound == "scale_out"
    idle = rows[BUBBLE]
    assert (idle.flops, idle.bytes, idle.bound) == (0, 0, None)
    assert idle.time_s == pytest.approx(idle.each_s, rel=1e-12)
    resources = {*run.shares(), None}
    assert {row.bound for row in table} <= resources


def test_hidden_transfers_take_no_time(run: sf.Run) -> None:
    """A transfer that hides behind its product is responsible for nothing; uncovered, for all of itself."""
    path = "layer/mlp/up/gather/backward"
    hidden, shown = ({row.name: row for row in run.bind(overlap_tp=overlap).table()}[path] for overlap in (1.0, 0.0))
    assert hidden.time_s == 0
    assert shown.time_s >= shown.count * shown.each_s * (1 - 1e-12) > 0


def test_terms_of_the_program_are_those_of_the_tree(run: sf.Run) -> None:
    """What the compiled structure lists is what the schedule tree holds."""
    from symperf.operations.schedule import terms
    from symperf.train.build import step_tree

    named = terms(step_tree(run.structure))
    assert [(t.path, t.idle) for t in run.compiled.terms] == [(p, not isinstance(t, Op)) for p, t in named.items()]


def test_rows_are_values(run: sf.Run) -> None:
    """A row cannot be changed behind the run's back."""
    with pytest.raises(dataclasses.FrozenInstanceError):
        run.table()[0].time_s = 0.0  # type: ignore[misc]
