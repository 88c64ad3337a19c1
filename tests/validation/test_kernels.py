"""Measured kernels: a row is predicted as an inference predicts the same kernel, and what is not is told."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from support.kernel_tables import BMM, GEMM, GENERATION, HEAD, MLA, MOE, NCCL, PROMPT, write_table

import symperf as sf
from symperf.formulas.kernels.grouped_experts import fused_experts_time, skewed_imbalance
from symperf.formulas.language.symbols import flop, strip_units, tile_thin
from symperf.validation.kernels import faults
from symperf.validation.kernels.operations import OPERATIONS, UNMODELLED
from symperf.validation.kernels.report import as_json
from symperf.validation.kernels.rows import Group, is_test
from symperf.validation.kernels.rows import tests_of as kept_back
from symperf.validation.kernels.score import Rows, score

if TYPE_CHECKING:
    from pathlib import Path

    from support.kernel_tables import Row

STACK = "tensorrt-llm-1.3"
IDLE: dict[str, Any] = {"gap_latency": 0.0, "graph_removal": 1.0, "sustained_efficiency": 1.0}
"""A kernel in a recorded loop: no gap, and too short for the power limit."""


def _only(folder: Path) -> tuple[Group, Rows]:
    scores = score(folder)
    assert len(scores) == 1
    return next(iter(scores.items()))


def _predicted(folder: Path) -> float:
    rows = _only(folder)[1]
    assert not rows.left_out
    return float(rows.predicted[0])


@pytest.fixture(scope="module")
def llama() -> Any:
    """A dense model on one device: prompts of 300 tokens of four sequences, and one step."""
    return sf.inference("llama-2-7b", "h100-sxm", batch=4, prompt=300, generate=2, stack=STACK, **IDLE)


@pytest.fixture(scope="module")
def deepseek() -> Any:
    """Latent attention and experts, dealt to eight devices."""
    plan = sf.Plan(tp=8, ep=8, precision="bf16")
    return sf.inference("deepseek-v3", "h100-sxm", plan, batch=16, prompt=300, generate=2, stack=STACK, **IDLE)


def _term(run: Any, *ends: str) -> float:
    """Seconds of single executions of the first operations whose paths end so."""
    terms: dict[str, float] = {row.name: row.each_s for row in run.table()}
    return sum(next(value for name, value in terms.items() if name.endswith(end)) for end in ends)


def test_products_are_those_of_an_inference(tmp_path: Path, llama: Any) -> None:
    down = GEMM | {"m": 1200, "n": 4096, "k": 11008}
    assert _predicted(write_table(tmp_path, "gemm", [down])) == pytest.approx(_term(llama, "prefill/layer/mlp/down"))


@pytest.mark.parametrize(
    ("dtype", "precision"), [("fp8_block", "fp8-block"), ("int4_wo", "int4-weight"), ("sq", "int8")]
)
def test_products_in_other_formats_are_those_of_a_plan(tmp_path: Path, dtype: str, precision: str) -> None:
    run = sf.inference(
        "llama-2-7b", "h100-sxm", sf.Plan(precision=precision), batch=4, prompt=8, generate=2, stack=STACK, **IDLE
    )
    down = GEMM | {"m": 4, "n": 4096, "k": 11008, "gemm_dtype": dtype}
    assert _predicted(write_table(tmp_path, "gemm", [down])) == pytest.approx(_term(run, "decode/layer/mlp/down"))


def test_attention_is_that_of_an_inference(tmp_path: Path, llama: Any) -> None:
    prompt = _predicted(write_table(tmp_path / "a", "context_attention", [PROMPT]))
    assert prompt == pytest.approx(_term(llama, "prefill/layer/attention/flash"))
    step = _predicted(write_table(tmp_path / "b", "generation_attention", [GENERATION]))
    assert step == pytest.approx(_term(llama, "decode/layer/attention/flash"))


def test_a_window_of_the_whole_prompt_is_none(tmp_path: Path) -> None:
    rows = [PROMPT | {"window_size": window} for window in (0, 300, 4096, "")]
    found = _only(write_table(tmp_path / "a", "context_attention", rows))[1].predicted
    assert found == pytest.approx([found[0]] * 4)


def test_a_narrow_window_saves_the_pairs_outside_of_it(tmp_path: Path, llama: Any) -> None:
    """Blocks, their starts and their bytes stay; the pairs that no longer count are those of docs/kernels.md's form."""
    keys, window = 8192, 128
    narrow = PROMPT | {"isl": keys, "window_size": window}
    slow, fast = (
        _predicted(write_table(tmp_path / name, "context_attention", [row]))
        for name, row in (("b", narrow | {"window_size": 0}), ("c", narrow))
    )
    at = {name: number for name, (number, _) in llama.bound.items()}
    rows = at["query_block"]
    blocks = narrow["batch_size"] * narrow["num_heads"] * math.ceil(keys / rows)
    seen = [sum(min(n, most) for n in range(1, keys + 1)) / keys for most in (keys, window)]
    pairs = rows * (blocks * (seen[0] - seen[1]) + at["compute_units"] * (keys - window))
    each = 4 * narrow["head_dim"] / (at["score_rate"] * at["prompt_efficiency"]) + 1 / at["exponent_rate"]
    assert slow - fast == pytest.approx(pairs * each, rel=1e-9)
    assert fast < 0.5 * slow


def test_latent_attention_is_that_of_an_inference(tmp_path: Path, deepseek: Any) -> None:
    for table, row, end in (
        ("context_mla", MLA, "prefill/layer/latent_attention_dense/attention/flash"),
        ("generation_mla", MLA | {"isl": 1, "step": 300}, "decode/layer/latent_attention_dense/attention/flash"),
        ("mla_bmm", BMM, "attention/absorb_key"),
        ("mla_bmm", BMM | {"op_name": "mla_gen_post"}, "attention/absorb_value"),
    ):
        found = _predicted(write_table(tmp_path / f"{table}{row.get('op_name', '')}", table, [row]))
        assert found == pytest.approx(_term(deepseek, end)), table


def test_a_latent_module_is_the_sum_of_its_kernels(tmp_path: Path, deepseek: Any) -> None:
    names = ("query_down", "query_norm", "query_up", "latent_norm")  # one product gives both down projections
    row = MLA | {"gemm_type": "bfloat16"}
    for table, sizes, core in (
        ("mla_context_module", {}, ("latent_up", "flash")),
        ("mla_generation_module", {"isl": 1, "step": 300}, ("absorb_key", "flash", "absorb_value")),
    ):
        phase = "prefill" if "context" in table else "decode"
        ends = [f"{phase}/layer/latent_attention_dense/attention/{name}" for name in (*names, *core, "output")]
        found = _predicted(write_table(tmp_path / phase, table, [row | sizes]))
        assert found == pytest.approx(_term(deepseek, *ends))


def _experts_time(rows: float, groups: float, choices: float) -> float:
    """Seconds of experts of DeepSeek-V3 in 16 bits under the software of the tables."""
    plan = sf.Plan(dp=8, ep=8, precision="bf16")
    run = sf.inference("deepseek-v3", "h100-sxm", plan, batch=8, prompt=9, generate=2, stack="tensorrt-llm-1.3")
    time = fused_experts_time(rows, groups, 7168, 2 * 2048, 2048, 2, 2, choices)
    values = {symbol: run.bound[str(symbol)][0] for symbol in time.free_symbols - {flop}} | {tile_thin: 16}
    return float(strip_units(time).subs(values))


def test_experts_are_those_of_an_inference(tmp_path: Path) -> None:
    """16 tokens of eight devices with equal loads: 16 experts of each have a row, and all choices are sorted.

    Of a power law those that are expected to have one, on the fullest device.
    """
    row = MOE | {"num_tokens": 16}
    assert _predicted(write_table(tmp_path / "a", "moe", [row])) == pytest.approx(_experts_time(16, 16, 128))
    fullest = float(skewed_imbalance(16, 256, 8, 0.2))
    chosen = 256 * (1 - (1 - 8 / 256) ** 16) / 8
    skewed = _predicted(write_table(tmp_path / "b", "moe", [row | {"distribution": "power_law_1.2"}]))
    assert skewed == pytest.approx(_experts_time(16 * fullest, chosen, 128))


@pytest.mark.parametrize(
    ("framework", "kernel", "dtype", "device", "apart"),
    [
        ("SGLang", "sglang_fused_moe_triton", "bfloat16", "h100_sxm", False),
        ("SGLang", "sglang_fused_moe_triton", "bfloat16", "b200_sxm", True),
        ("VLLM", "vllm_unquantizedfusedmoe_triton_tritonexperts", "bfloat16", "h100_sxm", False),
        ("VLLM", "vllm_fused_moe", "bfloat16", "h100_sxm", True),
        ("VLLM", "vllm_fused_moe", "bfloat16", "a100_sxm", False),
        ("TRTLLM", "moe_torch_flow_cutlass", "nvfp4", "b200_sxm", False),
        ("TRTLLM", "moe_torch_flow_min_latency", "nvfp4", "b200_sxm", True),
        ("TRTLLM", "moe_torch_flow", "bfloat16", "h200_sxm", True),
        ("TRTLLM", "moe_torch_flow", "w4a16_mxfp4", "h200_sxm", False),
    ],
)
def test_kernels_on_request_are_scored_apart(
    tmp_path: Path, framework: str, kernel: str, dtype: str, device: str, apart: bool
) -> None:
    row = MOE | {"framework": framework, "kernel_source": kernel, "moe_dtype": dtype, "system": device}
    group, _ = _only(write_table(tmp_path, "moe", [row]))
    assert group.operation == "moe/balanced" + ("/other kernel" if apart else "")


@pytest.mark.parametrize(
    ("framework", "kernel", "apart"),
    [("SGLang", "flash_attention", True), ("SGLang", "trtllm_mla", False), ("TRTLLM", "default", False)],
)
def test_prompts_among_latents_are_scored_apart(tmp_path: Path, framework: str, kernel: str, apart: bool) -> None:
    """Long ones take (2 x 512 + 64) / (128 + 64 + 128) = 3.4 times the FLOPs of expanded keys and values."""
    row = MLA | {"framework": framework, "kernel_source": kernel, "isl": 16384, "latency": 100.0}
    group, rows = _only(write_table(tmp_path, "context_mla", [row]))
    assert group.operation == "context_mla" + ("/absorbed" if apart else "")
    expanded = _only(write_table(tmp_path / "other", "context_mla", [row | {"kernel_source": "default"}]))[1]
    assert rows.predicted[0] / expanded.predicted[0] == pytest.approx(3.4 if apart else 1.0, rel=0.25)


def test_a_bulk_exchange_has_the_multiprocessors_of_its_row(tmp_path: Path) -> None:
    """Half as many take up to twice as long; across nodes what adapters carry does not change."""
    row = HEAD | {
        "framework": "sglang",
        "node_num": 1,
        "hidden_size": 7168,
        "num_token": 32768,
        "num_topk": 8,
        "num_experts": 256,
        "dispatch_sms": 8,
        "dispatch_transmit_us": 5000.0,
        "dispatch_notify_us": 0.0,
        "combine_transmit_us": 9000.0,
        "combine_notify_us": 0.0,
    }

    def times(folder: str, **values: int) -> list[float]:
        scores = score(write_table(tmp_path / folder, "wideep_deepep_normal", [row | values]))
        return [float(rows.predicted[0]) for rows in scores.values()]

    few, many = times("a"), times("b", dispatch_sms=16)
    for one, two in zip(few, many, strict=True):
        assert 1.9 < one / two < 2
    across = [times(f"{count}", node_num=8, dispatch_sms=count) for count in (20, 24)]
    assert across[0] == across[1]


def test_experts_of_two_matrices_are_told_by_their_kernel(tmp_path: Path) -> None:
    """Without a gate there is a third less to read."""
    row = MOE | {"num_tokens": 32768, "latency": 30.0}
    gated = _predicted(write_table(tmp_path / "a", "moe", [row]))
    plain = _predicted(write_table(tmp_path / "b", "moe", [row | {"kernel_source": "moe_torch_flow_nongated"}]))
    assert 0.6 < plain / gated < 0.75


def test_collectives_count_elements(tmp_path: Path) -> None:
    halves = _predicted(write_table(tmp_path / "a", "nccl", [NCCL]))
    bytes_ = _predicted(write_table(tmp_path / "b", "nccl", [NCCL | {"nccl_dtype": "int8", "message_size": 1 << 21}]))
    assert halves == bytes_
    system = sf.System.load("h100-sxm")
    ring = 2 * 7 / 8 * (1 << 21) / (system.value("scale_up_bandwidth") * system.value("scale_up_efficiency"))
    assert ring < halves < 100 * ring


def test_parquet_is_read_as_csv(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rows = [PROMPT | {"isl": length, "window_size": window} for length in (64, 512) for window in (0, 128)]
    texts = write_table(tmp_path / "texts", "context_attention", rows)
    binary = tmp_path / "binary"
    binary.mkdir()
    parquet.write_table(arrow.Table.from_pylist(rows), binary / "context_attention.parquet")
    assert as_json(score(texts)) == as_json(score(binary))


def test_batches_of_a_table_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [GEMM | {"m": m, "gemm_dtype": dtype} for m in (1, 7, 64) for dtype in ("bfloat16", "fp8", "nvfp4")]
    folder = write_table(tmp_path, "gemm", rows)
    whole = as_json(score(folder))
    monkeypatch.setattr("symperf.validation.kernels.table.BATCH", 2)
    assert as_json(score(folder)) == whole


def test_whole_shapes_are_kept_apart() -> None:
    """All rows of an (n, k) are of one part, a quarter of many shapes is kept back, and the hash never changes."""
    draw = np.random.default_rng(1)
    columns = {"n": draw.integers(1, 200, 5000) * 64.0, "k": draw.integers(1, 20, 5000) * 64.0}
    test = kept_back(columns, 5000)
    assert 0.2 < test.mean() < 0.3
    for n, k, kept in zip(*columns.values(), test, strict=True):
        assert kept == is_test({"n": n, "k": k})
    assert [is_test({"n": 4096, "k": k}) for k in (2048, 4096, 8192, 14336)] == [False, True, False, False]


REASONS: list[tuple[str, Row, str]] = [
    ("gemm", GEMM | {"latency": 0}, faults.NO_TIME),
    ("gemm", GEMM | {"latency": -1}, faults.NO_TIME),
    ("gemm", GEMM | {"latency": ""}, faults.NO_TIME),
    ("gemm", GEMM | {"latency": "nan"}, faults.NO_TIME),
    ("gemm", GEMM | {"latency": "inf"}, faults.NO_TIME),
    ("gemm", GEMM | {"k": 0}, faults.NO_SIZE),
    ("gemm", GEMM | {"m": ""}, faults.NO_SIZE),
    ("gemm", GEMM | {"system": "abacus"}, "the catalogue has no system of this device"),
    (
        "gemm",
        GEMM | {"kernel_source": "CutlassFp8BlockScaledMMKernel"},
        "times of the host, which launches each kernel by itself: none is under 55 us",
    ),
    (
        "generation_mla",
        MLA | {"framework": "VLLM", "step": 300},
        "times of the host, which launches each kernel by itself: none is under 100 us",
    ),
    ("gemm", GEMM | {"gemm_dtype": "int3"}, "format int3: no format of a plan"),
    ("moe", MOE | {"moe_dtype": "w3afp8"}, "format w3afp8: no format of a plan"),
    ("context_attention", PROMPT | {"kv_cache_dtype": "fp2"}, "cache in fp2: no format of a cache"),
    ("nccl", NCCL | {"nccl_dtype": "quarter"}, "messages of quarter: the bytes of an element are not known"),
    ("nccl", NCCL | {"op_name": "gossip"}, "gossip: no such collective"),
    ("computescale", HEAD, UNMODELLED["computescale"]),
    ("newest_kernel", HEAD, "no operation of this name"),
]


@pytest.mark.parametrize(("table", "row", "reason"), REASONS)
def test_what_is_not_scored_is_counted_with_its_reason(tmp_path: Path, table: str, row: Row, reason: str) -> None:
    group, rows = _only(write_table(tmp_path, table, [row]))
    assert (rows.left_out, len(rows.measured)) == (Counter({reason: 1}), 0)
    entry = as_json({group: rows})["kernels"][0]
    assert (entry["rows"], entry["median"], entry["left_out"]) == (0, None, {reason: 1})


def test_rows_of_one_kernel_that_disagree_are_left_out(tmp_path: Path) -> None:
    times = {1: (0.01, 0.0101), 2: (0.01, 0.02), 3: (0.01,)}
    rows = [GEMM | {"m": m, "latency": time} for m, found in times.items() for time in found]
    other = GEMM | {"m": 3, "kernel_source": "vllm_default", "latency": 0.1}
    found = _only(write_table(tmp_path, "gemm", [*rows, other]))[1]
    assert found.left_out == Counter({faults.DISAGREE: 2})
    assert sorted(found.measured) == pytest.approx([1e-5, 1e-5, 1.01e-5, 1e-4])


def test_disagreement_is_that_of_pairs() -> None:
    """Against every pair of rows, for keys that come in any order and number."""
    draw = np.random.default_rng(7)
    for size in (0, 1, 40, 400):
        keys = draw.integers(0, 60, size).astype(np.uint64)
        seconds = np.exp(draw.normal(0, 0.1, size))
        with_same = [[b for key, b in zip(keys, seconds, strict=True) if key == own] for own in keys]
        expected = [max(found) > faults.BAND * min(found) for found in with_same]
        assert faults.disagreeing(keys, seconds).tolist() == expected


def test_a_time_that_no_device_reaches_is_left_out(tmp_path: Path) -> None:
    rows = [GEMM | {"m": m, "latency": 0.05} for m in (1, 2, 3)] + [GEMM | {"m": 8192, "latency": 0.002}]
    found = _only(write_table(tmp_path, "gemm", rows))[1]
    assert found.left_out == Counter({faults.IMPOSSIBLE: 1})


def test_errors_by_part_and_by_size_count_every_row_once(tmp_path: Path) -> None:
    rows = [GEMM | {"m": m, "n": n, "latency": m / 1000} for m in (1, 40, 400) for n in (1024, 2048, 4096, 8192)]
    entry = as_json(score(write_table(tmp_path, "gemm", rows)))["kernels"][0]
    assert {entry["device"], entry["software"], entry["operation"], entry["format"]} == {
        *("h100_sxm", "TensorRT-LLM", "gemm", "bfloat16")
    }
    assert entry["rows"] == 12
    assert entry["calibration"]["rows"] + entry["test"]["rows"] == 12
    assert [each["rows"] for each in entry["sizes"]] == [4, 4, 4]
    assert entry["mape"] >= abs(entry["bias"])


@pytest.mark.parametrize(
    ("device", "system"), [("a100_sxm", "a100-80gb-sxm"), ("gb200", "gb200-nvl72"), ("l40s", "l40s-shared-root")]
)
def test_devices_go_by_the_names_of_the_catalogue(tmp_path: Path, device: str, system: str) -> None:
    run = sf.inference("llama-2-7b", system, batch=4, prompt=8, generate=2, stack=STACK, **IDLE)
    down = GEMM | {"system": device, "m": 4, "n": 4096, "k": 11008}
    assert _predicted(write_table(tmp_path, "gemm", [down])) == pytest.approx(_term(run, "decode/layer/mlp/down"))


def test_every_operation_has_its_columns() -> None:
    """A shape is made of columns that are read, and no column is asked for twice."""
    for name, operation in OPERATIONS.items():
        numbers = (*operation.numbers, *operation.optional)
        assert len(set(numbers)) == len(numbers), name
        assert set(operation.shape) <= set(numbers), name
    assert not set(OPERATIONS) & set(UNMODELLED)
