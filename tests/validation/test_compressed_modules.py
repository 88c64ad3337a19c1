"""Rows of DeepSeek-V4's attention modules: predicted as a run has them, or left out with their reason."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from support.kernel_tables import HEAD, write_table

import symperf as sf
from symperf.infer.stack import Stack
from symperf.systems.kernel_constants import FAMILIES
from symperf.validation.kernels.score import score

if TYPE_CHECKING:
    from pathlib import Path

    from support.kernel_tables import Row

    from symperf.validation.kernels.score import Rows

IDLE: dict[str, Any] = {"gap_latency": 0.0, "graph_removal": 1.0, "sustained_efficiency": 1.0}
MODULE: Row = HEAD | {
    "framework": "VLLM",
    "kernel_source": "FLASHMLA_SPARSE_DSV4",
    "model": "sgl-project/DeepSeek-V4-Flash-FP8",
    "kv_cache_dtype": "fp8",
    "gemm_type": "bfloat16",
    "num_heads": 16,
    "batch_size": 4,
    "isl": 3000,
    "step": 0,
    "latency": 5.0,
}
RATIOS = {"csa": 4, "hca": 128}


def found(folder: Path, table: str, row: Row) -> Rows:
    """The only group of a table of one row."""
    (rows,) = score(write_table(folder, table, [row])).values()
    return rows


@pytest.mark.parametrize(("name", "trait"), [("csa", "selected_entries"), ("hca", "all_entries")])
def test_a_module_is_the_sum_of_its_kernels(tmp_path: Path, name: str, trait: str) -> None:
    run = sf.inference(
        "deepseek-v4-flash",
        "h100-sxm",
        sf.Plan(tp=4, ep=4, precision="bf16"),
        batch=4,
        prompt=3000,
        generate=2,
        stack="vllm-0.24",
        kv_precision="fp8",
        **IDLE,
    )
    (kind,) = (k for k in run.model.architecture.kinds if trait in k.traits)
    beside = ("norm", "reduce", "weights", "read", "residual")
    terms = [
        (row.name.partition("/")[0], row.each_s)
        for row in run.table()
        if f"/{kind.label}/attention/" in row.name and row.name.rpartition("/")[2] not in beside
    ]
    row = MODULE | {"compress_ratio": RATIOS[name]}
    whole = found(tmp_path / "a", f"dsv4_{name}_context_module", row)
    assert whole.predicted[0] == pytest.approx(sum(time for phase, time in terms if phase == "prefill"))
    one = row | {"isl": 1, "step": 3000, "latency": 0.1}
    step = found(tmp_path / "b", f"dsv4_{name}_generation_module", one)
    assert step.predicted[0] == pytest.approx(sum(time for phase, time in terms if phase == "decode"))


def test_sizes_are_those_of_the_model(tmp_path: Path) -> None:
    """The larger model has a wider stream, and twice as many selected entries."""
    row = MODULE | {"compress_ratio": 4}
    larger = row | {"model": "deepseek-ai/DeepSeek-V4-Pro"}
    first, second = (found(tmp_path / n, "dsv4_csa_context_module", r) for n, r in (("a", row), ("b", larger)))
    assert second.predicted[0] > 1.2 * first.predicted[0]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (MODULE | {"model": "DeepSeek-V5"}, "no model whose sizes are known"),
        (MODULE | {"system": "rtx_pro_6000_server"}, "no kernels for this device"),
    ],
)
def test_rows_that_are_left_out_say_why(tmp_path: Path, row: Row, reason: str) -> None:
    rows = found(tmp_path, "dsv4_hca_context_module", row | {"compress_ratio": 128})
    assert len(rows.measured) == 0
    (said,) = Counter(rows.left_out)
    assert reason in said


@pytest.mark.parametrize("name", ["sglang-0.5", "tensorrt-llm-1.3", "vllm-0.24"])
def test_profiles_know_the_kernels_of_entries(name: str) -> None:
    reached = Stack.load(name).reached
    for system in ("b200-sxm", "b300-sxm", "gb200-nvl72", "gb300-nvl72", "any"):
        assert {*FAMILIES["entries"], *FAMILIES["entry_selection"]} <= set(reached[system].constants)
