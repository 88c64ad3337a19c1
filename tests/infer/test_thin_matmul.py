"""The second kernel of thin products that the library splits along k: who pays it, and that no law breaks."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

import symperf as sf
from symperf.codegen.interpret import floats
from symperf.codegen.interpret import run as evaluate
from symperf.codegen.lower import lower
from symperf.formulas.kernels import matmul
from symperf.formulas.kernels import thin_matmul as thin

SECOND, GAP = 1.65e-6, 1.3e-6
UNITS = 132
LIMIT = 64 * UNITS // 2
"""Columns of the widest product of an H200 that is split."""
ROWS = st.integers(1, 512)
COLUMNS = st.one_of(st.integers(1, 20_000), st.integers(LIMIT - 200, LIMIT + 200))
INNER = st.one_of(st.integers(1, 20_000), st.integers(2000, 2100))


@cache
def _served() -> tuple[Any, dict[str, float]]:
    m, n, k = sympy.symbols("m n k", positive=True)
    form = thin.thin_matmul_time(m, n, k, 1, 2, 2, matmul.matmul_bytes(m, n, k, 1, 2, 2, 2))
    run = sf.inference("llama-2-7b", "h200-sxm", sf.Plan(), batch=1, prompt=9, generate=2, stack="none")
    values = {name: float(value) for name, (value, _) in run.bound.items()}
    own = {"flop": 1.0, "split_latency": SECOND, "gap_latency": GAP, "graph_removal": 0.0}
    return lower([], {"time": form}), values | own


def seconds(m: float, n: float, k: float, **changes: float) -> float:
    """Of a product on an H200 with 16-bit factors, in numbers."""
    program, values = _served()
    given_ = values | {"m": float(m), "n": float(n), "k": float(k)} | changes
    found = evaluate(program, {name: given_[name] for name in program.inputs}, floats())
    return float(found[program.outputs["time"]])


@pytest.mark.parametrize("m", [1, 8, 16])
@pytest.mark.parametrize(("n", "k"), [(512, 8192), (1280, 8192), (4096, 4096), (LIMIT, 2049)])
def test_a_split_product_pays_the_second_kernel_and_the_gap_before_it(m: int, n: int, k: int) -> None:
    values = _served()[1]
    bytes_ = 2 * n * k / (values["memory_bandwidth"] * values["memory_efficiency"])
    assert seconds(m, n, k) == pytest.approx(bytes_ + 2 * GAP + values["launch_latency"] + SECOND, rel=1e-9)
    assert seconds(m, n, k, graph_removal=1.0) == pytest.approx(bytes_ + values["launch_latency"] + SECOND, rel=1e-9)


@given(ROWS, COLUMNS, st.integers(1, 2048))
def test_up_to_the_limit_of_k_there_is_no_second_kernel(m: int, n: int, k: int) -> None:
    assert seconds(m, n, k) == seconds(m, n, k, split_latency=0.0)
    assert seconds(m, n, k) == pytest.approx(seconds(m, n, k, gap_latency=0.0) + GAP, rel=1e-12)


@pytest.mark.parametrize(("n", "k"), [(8192, 4096), (28672, 8192), (57344, 8192)])
def test_a_wide_product_has_none_either(n: int, k: int) -> None:
    assert seconds(1, n, k) == seconds(1, n, k, split_latency=0.0)


@given(ROWS, COLUMNS, INNER)
def test_it_costs_at_most_itself_and_its_gap(m: int, n: int, k: int) -> None:
    whole = seconds(m, n, k, split_inner=1e9)
    assert whole <= seconds(m, n, k) <= whole + SECOND + GAP + 1e-15


@given(ROWS, COLUMNS, INNER, st.sampled_from("mnk"), st.integers(1, 3000))
def test_time_never_falls_as_a_side_grows(m: int, n: int, k: int, side: str, more: int) -> None:
    sizes = {"m": m, "n": n, "k": k}
    assert seconds(**sizes) <= seconds(**(sizes | {side: sizes[side] + more})) * (1 + 1e-12)


def test_just_above_the_limit_of_columns_a_product_takes_no_less() -> None:
    times = [seconds(1, n, 4096) for n in range(LIMIT - 2, LIMIT + 2000)]
    assert times == sorted(times)
    assert times[3] == times[2] == pytest.approx(times[1], rel=1e-3)
    assert times[-1] > times[2]


def test_a_step_of_inference_pays_the_gap_twice_for_a_split_product() -> None:
    """The output projection of Llama 2 7B, 4096 x 4096, is split; each of two devices has a k of 2048, which is not."""
    how: dict[str, Any] = {"batch": 1, "prompt": 64, "generate": 2, "stack": "none"}
    for tp, kernels in ((1, 2), (2, 1)):
        times = []
        for gap in (0.0, GAP):
            run = sf.inference("llama-2-7b", "h200-sxm", sf.Plan(tp=tp), **how, gap_latency=gap)
            times.append({row.name: row.each_s for row in run.table()}["decode/layer/attention/output"])
        assert times[1] - times[0] == pytest.approx(kernels * GAP, rel=1e-6)


def test_split_inner_and_split_latency_are_named_with_their_source() -> None:
    run = sf.inference("llama-2-7b", "h200-sxm", sf.Plan(), batch=1, prompt=9, generate=2, stack="tensorrt-llm")
    bound = run.bound
    assert bound["split_inner"][0] == 2048
    assert "cuBLAS" in bound["split_inner"][1]
    assert bound["split_latency"][0] == pytest.approx(1.65e-6)
    assert "h200.py" in bound["split_latency"][1]
    smooth = sf.System.load("tpu-v5e")
    assert "split_latency" not in smooth.quantities
