"""What software adds to the experts of a training step: launches of routing and of single experts, sorting, atomics."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pytest
import sympy

import symperf as sf
from symperf.common.errors import InputError
from symperf.formulas.kernels.moe import scatter_add_time
from symperf.operations.schedule import Op, terms

if TYPE_CHECKING:
    from symperf.runs.training_run import Run

HELD, ROWS, HIDDEN = 128 / 8, 4096 * 8, 2048
STATED: dict[str, Any] = {
    "host_latency": "10 us",
    "scatter_latency": "0.0086 ns",
    "routing_operations": 7.0,
    "expert_operations": 0.5,
    "expert_cast_operations": 0.25,
}
PHASES = ("forward", "backward_input", "backward_weight")


@lru_cache
def step(*, stated: bool, **plan: Any) -> Run:
    batch: int = 8 * plan["dp"]
    values = STATED if stated else {}
    return sf.training("qwen3-30b-a3b", "h100-sxm", sf.Plan(**plan), batch=batch, sequence=4096, **values)


def experts(run: Run) -> dict[str, Op]:
    """The operations of the experts by the end of their path."""
    found = terms(run.schedule_tree())
    return {path.split("/experts/")[1]: op for path, op in found.items() if "/experts/" in path and isinstance(op, Op)}


def at(run: Run, form: Any) -> float:
    """A form at the values of a run."""
    form = sympy.sympify(form)
    return float(form.subs({symbol: run.bound[symbol.name][0] for symbol in form.free_symbols}))


def test_the_host_launches_routing_once_a_pass_and_each_product_of_each_expert() -> None:
    run = step(stated=True, dp=8, ep=8)
    counts = {name: at(run, op.launches) for name, op in experts(run).items() if not op.demand.message_bytes}
    each = {f"{name}/{phase}": 1 + HELD * 0.5 for name in ("up", "down") for phase in PHASES}
    assert {name: count for name, count in counts.items() if count != 1} == pytest.approx(
        {"choice/forward": 8.0, "permute/backward": 8.0, "launches/forward": 0.0, **each}
    )


def test_the_host_waits_for_counts_and_then_launches_what_the_device_waits_for() -> None:
    """Two products of held experts, their activation and two copies, at 10 us an operation; gradients do not wait."""
    run = step(stated=True, dp=8, ep=8)
    assert set(experts(run)) & {f"launches/{phase}" for phase in PHASES} == {"launches/forward"}
    each = {row.name.split("/experts/")[-1]: row.each_s for row in run.table()}
    assert each["launches/forward"] == pytest.approx(10e-6 * (2 * (1 + HELD * 0.5) + 1 + 2))
    slow, slower = (run.bind(expert_operations=value).value("time") for value in (50.0, 51.0))
    assert slower - slow == pytest.approx(8 * 48 * 10e-6 * HELD * 6, rel=0.02)  # the products of three phases


def test_casts_of_experts_cost_the_host_in_a_low_precision() -> None:
    launches = {
        precision: {row.name: row.each_s for row in step(stated=True, dp=8, ep=8, precision=precision).table()}
        for precision in ("bf16", "fp8")
    }
    name = "layer/experts/launches/forward"
    assert launches["fp8"][name] - launches["bf16"][name] == pytest.approx(10e-6 * 2 * (1 + HELD * 0.25))


def test_a_step_without_a_host_waits_for_none() -> None:
    assert "launches/forward" not in experts(step(stated=False, dp=8, ep=8))


def test_additions_by_atomics_take_what_was_measured() -> None:
    """DLBlas pull request 66: the gradient of sorting 8192 x 8 rows of 4096 elements, 2.304 ms by PyTorch in FP16."""
    measured = scatter_add_time(8192, 8, 4096)
    assert measured.subs(dict.fromkeys(measured.free_symbols, 8.6e-12)) == pytest.approx(2.304e-3, rel=0.01)
    run = step(stated=True, dp=8, ep=8)
    each = {row.name.split("/experts/")[-1]: row.each_s for row in run.table()}
    assert each["unpermute/forward"] == pytest.approx(ROWS * HIDDEN * 8.6e-12)
    routing = 7 * run.bound["launch_latency"][0]  # each operation beside is a kernel
    assert each["permute/backward"] == pytest.approx(ROWS * HIDDEN * 8.6e-12 + routing)
    assert each["permute/forward"] < each["unpermute/forward"] / 2


@pytest.mark.parametrize(
    ("plan", "rows"),
    [
        ({"dp": 8, "ep": 8}, ROWS),
        ({"dp": 8}, 0),  # every device has all experts
        ({"dp": 128, "ep": 128}, 0),  # one each
    ],
)
def test_rows_are_sorted_where_several_devices_send_to_several_experts(plan: dict[str, Any], rows: float) -> None:
    run = step(stated=False, **plan)
    found = {name: op for name, op in experts(run).items() if "sort/" in name}
    assert set(found) == {f"{name}/{phase}" for name in ("sort", "unsort") for phase in ("forward", "backward")}
    assert {at(run, op.demand.memory_bytes) for op in found.values()} == {2 * rows * HIDDEN * 2}
    assert {at(run, op.launches) for op in found.values()} == {float(rows > 0)}


def test_kernels_that_send_a_token_once_sort_as_they_copy() -> None:
    assert not [name for name in experts(step(stated=False, dp=8, ep=8, node_limit=1)) if "sort/" in name]


@pytest.mark.parametrize(
    "name", ["routing_operations", "expert_operations", "expert_cast_operations", "scatter_latency"]
)
def test_bad_values_are_refused(name: str) -> None:
    with pytest.raises(InputError, match=name):
        sf.training("qwen3-30b-a3b", "h100-sxm", sf.Plan(), batch=1, sequence=512, **dict[str, Any]({name: -1.0}))
