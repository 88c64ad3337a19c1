"""ZeRO-3 module by module: the host's work for each matrix of each expert, and collectives by the bucket."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import symperf as sf
from symperf.common.errors import InputError
from symperf.formulas.parallel.module_sharding import gathered_together, reduced_together

if TYPE_CHECKING:
    from symperf.runs.training_run import Run

HOST = 10e-6
STATED: dict[str, Any] = {"host_latency": HOST, "sharded_operations": 10.0, "piece_operations": 0.25}
LAYERS, EXPERTS, MATRICES = 48, 128, 3


@lru_cache
def step(*, stated: bool = True, **plan: Any) -> Run:
    values: dict[str, Any] = STATED if stated else {"host_latency": HOST}
    plan = {"attention": "flash", "recompute": "full", **plan}
    return sf.training("qwen3-30b-a3b", "a800-sxm", sf.Plan(**plan), batch=plan["dp"], sequence=8192, **values)


def hooked(more: float, **plan: Any) -> float:
    """How much longer the step is for so many more operations a tensor."""
    run = step(**plan)
    slow, slower = (run.bind(sharded_operations=1000.0 + added).value("time") for added in (0.0, more))
    return slower - slow


@given(st.integers(1, 20000), st.integers(1, 20000))
def test_a_bucket_is_filled_as_deepspeed_fills_it(width: int, inner: int) -> None:
    """Tensors are fetched while their sum is below the bucket; a gradient without room has the bucket reduced first."""
    tensor, fetched, elements = width * inner, 0, 0
    while 10 * elements < 9 * width**2:
        fetched, elements = fetched + 1, elements + tensor
    reduced, elements = 1, tensor
    while elements + tensor <= width**2:
        reduced, elements = reduced + 1, elements + tensor
    assert (gathered_together(width, inner), reduced_together(width, inner)) == (fetched, reduced)


@pytest.mark.parametrize("recompute", ["full", "none"])
def test_each_matrix_of_each_expert_costs_the_host_three_times_a_micro_batch(recompute: str) -> None:
    """Gathered before the forward pass, and before the backward pass or what it computes again; reduced once."""
    assert hooked(1.0, dp=16, zero=3, recompute=recompute) == pytest.approx(
        3 * LAYERS * EXPERTS * MATRICES * HOST, rel=1e-6
    )


def test_a_piece_of_every_rank_costs_the_host_too() -> None:
    run = step(dp=16, zero=3).bind(sharded_operations=1000.0)
    more = run.bind(piece_operations=1.25).value("time") - run.value("time")
    assert more == pytest.approx(3 * LAYERS * EXPERTS * MATRICES * 16 * HOST, rel=1e-6)


def test_collectives_of_experts_are_as_many_as_buckets() -> None:
    """A gather for each expert, of three matrices, and a reduction for each two of them."""
    apart, whole = step(dp=16, zero=3), step(stated=False, dp=16, zero=3)
    rows, before = ({row.name: row for row in run.table()} for run in (apart, whole))
    for phase in ("forward", "backward"):
        row = rows[f"parameters/gather/{phase}_experts"]
        assert row.count == LAYERS * EXPERTS
        assert row.time_s >= 0
        assert row.each_s < before[row.name].each_s < row.each_s * row.count  # the same bytes, more latencies
    assert rows["gradients/reduce_experts"].count == LAYERS * EXPERTS * MATRICES / 2


@pytest.mark.parametrize("plan", [{"dp": 16, "zero": 1}, {"dp": 1, "zero": 3}])
def test_nothing_is_gathered_without_zero_3_or_other_ranks(plan: dict[str, Any]) -> None:
    assert step(**plan).value("time") == pytest.approx(step(stated=False, **plan).value("time"), rel=1e-12)


@pytest.mark.parametrize("name", ["sharded_operations", "piece_operations"])
def test_bad_values_are_refused(name: str) -> None:
    with pytest.raises(InputError, match=name):
        sf.training("qwen3-30b-a3b", "h100-sxm", sf.Plan(), batch=1, sequence=512, **dict[str, Any]({name: -1.0}))


def test_dense_layers_have_no_collectives_of_experts() -> None:
    """Of the 27 layers of DeepSeek-V2-Lite, 26 have 64 experts 1,408 wide."""
    plan = sf.Plan(dp=16, zero=3, attention="flash", recompute="full")
    run = sf.training("deepseek-v2-lite", "a800-sxm", plan, batch=16, sequence=4096, **STATED)
    (count,) = (row.count for row in run.table() if row.name == "gradients/reduce_experts")
    assert count == pytest.approx(26 * 64 * MATRICES / reduced_together(2048, 1408))
