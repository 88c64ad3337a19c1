"""Biases and limits of experts by kernels of their own: bytes as PyTorch moves them, launches, and what is kept."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pytest
import sympy

import symperf as sf
from symperf.formulas.kernels import separate_experts as apart
from symperf.operations.schedule import Op, terms

if TYPE_CHECKING:
    from symperf.runs.training_run import Run

HELD, TOKENS, CHOICES, WIDTH = 32 // 4, 4096, 4, 2880
ROWS = TOKENS * CHOICES


@lru_cache
def step(separate: float = 0.0, host: str = "0 s", model: str = "gpt-oss-20b", **plan: Any) -> Run:
    values: dict[str, Any] = {"separate_expert_kernels": separate} if separate else {}
    values |= {"host_latency": host, "expert_operations": 0.5} if host != "0 s" else {}
    return sf.training(model, "h100-sxm", sf.Plan(dp=4, ep=4, **plan), batch=4, sequence=TOKENS, **values)


def experts(run: Run) -> dict[str, Op]:
    found = terms(run.schedule_tree())
    return {path.split("/experts/")[1]: op for path, op in found.items() if "/experts/" in path and isinstance(op, Op)}


def at(run: Run, form: Any) -> float:
    form = sympy.sympify(form)
    return float(form.subs({symbol: run.bound[symbol.name][0] for symbol in form.free_symbols}))


def moved(shapes: list[tuple[float, ...]]) -> float:
    """Bytes of kernels, each given as the bytes an element of every tensor that it reads or writes."""
    return sum(sum(each) for each in shapes)


def test_bytes_are_those_of_the_kernels_that_pytorch_launches() -> None:
    """b p, t + b p, the pieces joined, with probabilities in 16 bits; products and sums of the gradients, and a join.

    Limits: each half read and written, both joined; compared (a mask of a byte), both masks of the linear half joined,
    selected, and gradients of halves joined.
    """
    assert apart.separate_bias_bytes(1, 2) == moved([(2,), (2, 2, 2), (2, 2)])
    assert apart.separate_bias_backward_bytes(1, 2) == moved([(2, 2), (2,), (2, 2), (2,), (2, 2)])
    assert apart.separate_limit_bytes(1, 2) == moved([(2, 2), (2, 2), (4, 4)])
    gate, linear = [(2, 1), (1, 2, 2)], [(2, 1), (2, 1), (1, 1, 1), (1, 2, 2)]
    assert apart.separate_limit_backward_bytes(1, 2, 1) == moved([*gate, *linear, (4, 4)])


def test_they_stand_between_the_products_of_experts() -> None:
    run = step(1.0)
    traffic = {name: at(run, op.demand.memory_bytes) for name, op in experts(run).items()}
    elements = ROWS * WIDTH
    assert traffic["bias/forward"] == pytest.approx(12 * elements)
    assert traffic["bias/backward"] == pytest.approx(16 * elements)
    assert traffic["limit/forward"] == pytest.approx(16 * elements)
    assert traffic["limit/backward"] == pytest.approx(30 * elements)
    order = [name.split("/")[0] for name in experts(run) if name.endswith("/forward")]
    assert order.index("up") < order.index("limit") < order.index("activation") < order.index("down")
    assert order.index("down") < order.index("bias") < order.index("unsort")


def test_a_part_of_them_takes_a_part_of_the_time_and_none_changes_nothing() -> None:
    none, half, whole = (step(share).value("time") for share in (0.0, 0.5, 1.0))
    assert none < half < whole
    assert half - none == pytest.approx(whole - half, rel=1e-9)
    assert step(1.0).bind(separate_expert_kernels=0.0).value("time") == pytest.approx(none, rel=1e-12)


def test_models_without_biases_and_limits_have_none() -> None:
    assert step(1.0, model="qwen3-30b-a3b").value("time") == step(model="qwen3-30b-a3b").value("time")


def test_the_host_launches_kernels_of_each_expert_and_waits_twice() -> None:
    run = step(1.0, "10 us")
    found = {name: at(run, op.launches) for name, op in experts(run).items() if name.split("/")[0] in ("bias", "limit")}
    assert found == pytest.approx(
        {"limit/forward": 3, "bias/forward": 1 + 0.5 * HELD, "bias/backward": 1 + HELD, "limit/backward": 7}
    )
    each = {row.name.split("/experts/")[-1]: row.each_s for row in run.table()}
    product = 1 + 0.5 * HELD
    assert each["launches/forward"] == pytest.approx(1e-5 * (1 + product + 3))  # sorted, multiplied, limited
    assert each["relaunches/forward"] == pytest.approx(1e-5 * (1 + product + product + 1))  # to the last copy
    assert "relaunches/forward" not in {row.name.split("/experts/")[-1] for row in step(0.0, "10 us").table()}


def test_limits_run_again_and_keep_nothing_where_the_activation_is_recomputed() -> None:
    recomputed: dict[str, Any] = {"recompute": "selective", "recompute_modules": "moe_act"}
    assert "limit/recompute" in experts(step(1.0, **recomputed))
    kept, without = (step(share).memory_terms()["activations"] for share in (1.0, 0.0))
    assert kept - without == pytest.approx(step().bound["num_layers"][0] * ROWS * 2 * WIDTH * 2)
    kept, without = (step(share, **recomputed).memory_terms()["activations"] for share in (1.0, 0.0))
    assert kept == without
