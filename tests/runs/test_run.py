"""`Run`: values by name, and other runs by binding and freeing symbols."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.run_cases import PIPELINED, RUNS, each_run, make

import symperf as sf
from symperf.evaluation.base_run import ALIASES
from symperf.report.training import as_json
from symperf.train.step.step import BUBBLE

NUMBERS = (
    "time_s",
    "tokens_per_s",
    "tokens_per_s_per_device",
    "tflops_per_device",
    "mfu",
    "hfu",
    "devices",
    "capacity_bytes",
)
"""Keys of the contract's JSON object that hold one number."""
KEYS = {*NUMBERS, "memory_bytes", "fits", "shares", "breakdown", "warnings"}


@pytest.fixture(scope="module")
def run() -> sf.Run:
    """The 175B run of Korthikanti et al. 2022, which several tests read."""
    return make(**PIPELINED)


@each_run
def test_the_json_object_of_the_contract(name: str) -> None:
    """Every key is there, numbers equal `value` of the same name, and it is strict JSON."""
    answer = RUNS[name]()
    found = as_json(answer)
    assert set(found) >= KEYS
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    for key in NUMBERS:
        assert found[key] == answer.value(key), key
    memory = dict(found["memory_bytes"])
    total, reserved = memory.pop("total"), memory.pop("reserved")
    assert set(memory) == {"weights", "gradients", "optimizer", "activations", "workspace"}
    assert sum(memory.values()) == pytest.approx(total, rel=1e-12)
    assert reserved == pytest.approx(total + sum(answer.reserved_parts().values()), rel=1e-12)
    assert found["fits"] is (reserved <= found["capacity_bytes"])
    assert all({"name", "time_s", "share", "bound", "flops", "bytes"} <= set(row) for row in found["breakdown"])
    assert sum(found["shares"].values()) == pytest.approx(1, rel=1e-12)
    assert sum(row["time_s"] for row in found["breakdown"]) == pytest.approx(found["time_s"], rel=1e-12)


def test_aliases_and_derived_values(run: sf.Run) -> None:
    """Other names of a value give that value, and values agree with one another."""
    for alias, name in ALIASES.items():
        assert run.value(alias) == run.value(name)
    assert run.value("time_s") == run.value("time")
    assert run.value("tokens_per_second") == run.value("tokens_per_s")
    assert run.value("tokens_per_s") == pytest.approx(64 * 2048 / run.value("time"), rel=1e-12)
    assert run.value("tokens_per_s_per_device") * run.value("devices") == pytest.approx(run.value("tokens_per_s"))
    assert run.value("mfu") == pytest.approx(run.value("tflops_per_device") / 312, rel=1e-12)
    assert run.value("hfu") > run.value("mfu")
    assert run.value("devices") == 64
    assert run.value("capacity_bytes") == 79.15 * 2**30
    assert run.value("memory") == pytest.approx(sum(run.memory_terms().values()), rel=1e-12)


def test_a_term_has_a_value(run: sf.Run) -> None:
    """The seconds of one execution of a term, by its path."""
    for row in run.table():
        assert run.value(row.name) == row.each_s


@pytest.mark.parametrize(("wrong", "near"), [("tme", "time"), ("mfuu", "mfu"), ("memory_byte", "memory_bytes")])
def test_an_unknown_value_is_an_input_error(run: sf.Run, wrong: str, near: str) -> None:
    """The line names what was asked for and the nearest that there is."""
    with pytest.raises(sf.InputError, match=rf"value: unknown quantity '{wrong}'.*{near}"):
        run.value(wrong)


def test_values_may_be_given(run: sf.Run) -> None:
    """`training` takes values of symbols by name: the device's, the model's, defaults."""
    other = sf.training(
        run.base_model,
        run.base_system,
        run.plan,
        batch=64,
        sequence=2048,
        memory_bandwidth=4e12,
        hidden_size=24576,
        workspace_bytes=1e9,
    )
    assert other.bound["memory_bandwidth"][0] == 4e12
    assert other.model.sizes["hidden_size"] == 24576
    assert other.memory_terms()["workspace/framework"] == 1e9
    assert run.memory_terms()["workspace/framework"] == 0
    assert "set by the user" in other.bound["workspace_bytes"][1]


def test_bind_a_plan_field(run: sf.Run) -> None:
    """A new run under the other plan; the old one is unchanged."""
    other = run.bind(tp=4, sequence_parallel=False)
    assert (other.plan.tp, other.plan.sequence_parallel) == (4, False)
    assert (run.plan.tp, run.plan.sequence_parallel) == (8, True)
    assert other.value("time") == make(**(PIPELINED | {"tp": 4, "sequence_parallel": False})).value("time")
    assert other.value("devices") == 32


def test_bind_a_figure_of_the_system(run: sf.Run) -> None:
    """A number in SI units, or a text with a unit; it is the figure that the run uses."""
    twice, text = run.bind(memory_bandwidth=4.078e12), run.bind(memory_bandwidth="4078 GB/s")
    assert twice.value("time") == text.value("time") < run.value("time")
    assert twice.compiled is run.compiled
    assert run.bind(matrix_rate=624e12).value("time") < run.value("time")


def test_bind_a_size_batch_and_sequence(run: sf.Run) -> None:
    """Sizes of the model and the work are symbols too; an earlier value is kept."""
    assert run.bind(num_layers=192).value("time") > run.value("time")
    assert run.bind(batch=128).value("tokens") == 128 * 2048
    assert run.bind(sequence=1024).value("tokens") == 64 * 1024
    both = run.bind(num_layers=192).bind(vocab_size=100_000)
    assert (both.model.sizes["num_layers"], both.model.sizes["vocab_size"]) == (192, 100_000)
    assert run.bind().value("time") == run.value("time")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"micro_bach": 2}, "unknown symbol 'micro_bach'.*micro_batch"),
        ({"memory_bandwith": 2e12}, "unknown symbol 'memory_bandwith'.*memory_bandwidth"),
        ({"tp": 0}, "tp: found 0"),
        ({"tp": 7}, "tp: 7 does not divide the 96 attention heads"),
        ({"batch": 63}, "schedule: interleaved needs micro-batches divisible by pp"),
        ({"micro_batch": 3}, "batch: 64 sequences are not divisible"),
        ({"hidden_size": -1}, "hidden_size: found -1"),
        ({"memory_bandwidth": -1}, "memory_bandwidth: found -1"),
        ({"memory_bandwidth": float("nan")}, "memory_bandwidth: found nan"),
        ({"weight_bytes": 0}, "weight_bytes: found 0"),
        ({"recompute": "som"}, "recompute: found 'som'"),
    ],
)
def test_what_cannot_be_bound_is_an_input_error(run: sf.Run, values: dict[str, Any], message: str) -> None:
    """An unknown name with the nearest, or a value out of range, in one line."""
    with pytest.raises(sf.InputError, match=message) as caught:
        run.bind(**values)
    assert "\n" not in str(caught.value)


def test_free(run: sf.Run) -> None:
    """A free symbol has no binding; the form keeps it; values are refused until it is bound again."""
    free = run.free("micro_batch", "memory_bandwidth")
    names = {str(symbol) for symbol in free.bindings}
    assert {str(symbol) for symbol in run.bindings} - names == {"micro_batch", "memory_bandwidth"}
    assert free.time.expr == run.time.expr
    left = free.time.expr.xreplace(free.bindings).free_symbols
    assert {str(symbol) for symbol in left} == {"micro_batch", "memory_bandwidth"}
    for refused in (lambda: free.value("time"), free.table, free.shares, free.sensitivity):
        with pytest.raises(sf.InputError, match="memory_bandwidth, micro_batch"):
            refused()
    half = free.bind(micro_batch=1)
    with pytest.raises(sf.InputError, match=r"no value: memory_bandwidth;"):
        half.value("time")
    assert half.bind(memory_bandwidth=2.039e12).value("time") == run.value("time")
    assert "free" in free.latex()


def test_an_unknown_symbol_cannot_be_freed(run: sf.Run) -> None:
    """The line names the nearest."""
    with pytest.raises(sf.InputError, match=r"no symbol 'micro_bach'.*micro_batch"):
        run.free("micro_bach")


@given(st.sampled_from([1, 2, 4, 8]), st.sampled_from([1, 2, 4, 8]), st.sampled_from([1, 2, 4]), st.integers(1, 4))
def test_values_hold_over_plans(tp: int, pp: int, dp: int, micro_batch: int) -> None:
    """Any plan that is accepted has finite, positive answers that add up."""
    answer = make("llama-2-7b", "h100-sxm", micro_batch * dp * 8, tp=tp, pp=pp, dp=dp, micro_batch=micro_batch)
    assert 0 < answer.value("mfu") <= answer.value("hfu") < 1
    assert answer.value("devices") == tp * pp * dp
    assert sum(answer.shares().values()) == pytest.approx(1, rel=1e-12)
    assert sum(row.time_s for row in answer.table()) == pytest.approx(answer.value("time"), rel=1e-12)
    idle = {row.name: row for row in answer.table()}[BUBBLE]
    assert (idle.time_s > 0) is (pp > 1)


def test_memory_alone_is_the_memory(run: sf.Run) -> None:
    """The small program for memory gives what the whole step's program gives."""
    for change in ({}, {"recompute": "full"}, {"tp": 4}, {"zero": 1}):
        other = run.bind(**change)
        assert other.memory_alone() == pytest.approx(other.value("memory"), rel=1e-13)
