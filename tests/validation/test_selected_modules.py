"""Rows of whole attention modules whose keys an indexer selects: predicted as a run has them, or left out."""

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

STACK = "tensorrt-llm-1.3"
IDLE: dict[str, Any] = {"gap_latency": 0.0, "graph_removal": 1.0, "sustained_efficiency": 1.0}
MODULE: Row = HEAD | {
    "op_name": "dsa_context_module",
    "kernel_source": "default",
    "architecture": "DeepseekV32ForCausalLM",
    "mla_dtype": "bfloat16",
    "kv_cache_dtype": "bfloat16",
    "gemm_type": "bfloat16",
    "num_heads": 16,
    "batch_size": 16,
    "isl": 3000,
    "step": 0,
    "latency": 50.0,
}
BLOCKS = MODULE | {
    "op_name": "msa_context_module",
    "kernel_source": "MiniMaxM3SparseTritonImpl",
    "framework": "VLLM",
    "architecture": "MiniMaxM3ForCausalLM",
    "num_heads": 8,
}


def found(folder: Path, table: str, row: Row) -> Rows:
    """The only group of a table of one row."""
    (rows,) = score(write_table(folder, table, [row])).values()
    return rows


def terms(model: str, stack: str, tp: int) -> dict[str, float]:
    """Seconds of the kernels of a sparse layer with experts, by phase and name."""
    plan = sf.Plan(tp=tp, ep=tp, precision="bf16")
    run = sf.inference(model, "h100-sxm", plan, batch=16, prompt=3000, generate=2, stack=stack, **IDLE)
    (kind,) = (k for k in run.model.architecture.kinds if k.traits and k.ffn == "experts")
    return {
        f"{row.name.partition('/')[0]}/{row.name.rpartition('/')[2]}": row.each_s
        for row in run.table()
        if f"/{kind.label}/attention/" in row.name and row.name.rpartition("/")[2] not in ("norm", "reduce")
    }


@pytest.mark.parametrize(
    ("row", "model", "stack", "family"),
    [(MODULE, "deepseek-v3.2", STACK, "dsa"), (BLOCKS, "minimax-m3", "vllm-0.24", "msa")],
)
def test_a_module_is_the_sum_of_its_kernels(tmp_path: Path, row: Row, model: str, stack: str, family: str) -> None:
    known = terms(model, stack, 8)
    prefill = sum(value for name, value in known.items() if name.startswith("prefill/"))
    decode = sum(value for name, value in known.items() if name.startswith("decode/"))
    whole = found(tmp_path / "a", f"{family}_context_module", row)
    assert whole.predicted[0] == pytest.approx(prefill)
    one = row | {"op_name": f"{family}_generation_module", "isl": 1, "step": 3000, "latency": 0.5}
    assert found(tmp_path / "b", f"{family}_generation_module", one).predicted[0] == pytest.approx(decode)


def test_new_tokens_after_a_context_are_what_is_left_of_a_longer_prompt(tmp_path: Path) -> None:
    """Work of 3,000 tokens is that of the first 1,000 and of 2,000 after them, but for the starts of the kernels."""
    rows = [MODULE | sizes for sizes in ({}, {"isl": 1000}, {"isl": 2000, "step": 1000})]
    (scored,) = score(write_table(tmp_path, "dsa_context_module", rows)).values()
    whole, *parts = scored.intensity * scored.predicted
    assert whole > 0
    assert len(parts) == 2


def test_layers_that_reuse_a_selection_take_less(tmp_path: Path) -> None:
    reused = MODULE | {"op_name": "dsa_context_module_skip_indexer"}
    first, second = (found(tmp_path / n, "dsa_context_module", r) for n, r in (("a", MODULE), ("b", reused)))
    assert second.predicted[0] < first.predicted[0]


def test_the_host_bounds_short_prompts_of_rows_and_of_no_run(tmp_path: Path) -> None:
    """One token of one sequence: the host's launches, which no constant of a run has."""
    row = MODULE | {"framework": "VLLM", "kernel_source": "FLASHMLA_SPARSE", "batch_size": 1, "isl": 1, "latency": 1.2}
    constants = Stack.load("vllm-0.24").reached["h100-sxm"].constants
    floor = constants["module_latency"].value + constants["index_module_latency"].value
    assert found(tmp_path, "dsa_context_module", row).predicted[0] == pytest.approx(floor)
    run = sf.inference("deepseek-v3.2", "h100-sxm", sf.Plan(precision="bf16"), batch=1, prompt=1, generate=2,
                       stack="vllm-0.24")  # fmt: skip
    assert "module_latency" not in run.compiled.program.inputs


@pytest.mark.parametrize(
    ("table", "row", "reason"),
    [
        ("dsa_context_module", MODULE | {"architecture": "OtherForCausalLM"}, "no model of the catalogue"),
        ("dsa_context_module", MODULE | {"framework": "SGLang", "kernel_source": "sglang_dsa_dense_mha_fa3"}, "all"),
        ("dsa_context_module", MODULE | {"framework": "VLLM"}, "older releases"),
        ("msa_context_module", BLOCKS | {"framework": "TRTLLM", "kernel_source": "msa_fmha_sm100"}, "plans each call"),
        ("msa_context_module", BLOCKS | {"framework": "TRTLLM", "kernel_source": "default"}, "no kernel"),
    ],
)  # fmt: skip
def test_rows_that_are_left_out_say_why(tmp_path: Path, table: str, row: Row, reason: str) -> None:
    rows = found(tmp_path, table, row)
    assert len(rows.measured) == 0
    (said,) = Counter(rows.left_out)
    assert reason in said


@pytest.mark.parametrize("name", ["sglang-0.5", STACK, "vllm-0.24"])
def test_profiles_know_the_kernels_of_selected_keys(name: str) -> None:
    """On every device that was measured, and with medians on any other; with at most 20 constants of their own."""
    reached = Stack.load(name).reached
    own = {c for family in ("selection", "selected", "block_selection", "selected_blocks") for c in FAMILIES[family]}
    for system in ("h100-sxm", "h200-sxm", "b200-sxm", "b300-sxm", "gb200-nvl72", "gb300-nvl72", "any"):
        assert {*FAMILIES["selection"], *FAMILIES["selected"]} <= set(reached[system].constants)
        counted = own | {*FAMILIES["modules"], *FAMILIES["block_modules"]}
        assert len(counted & set(reached[system].constants)) <= 20
