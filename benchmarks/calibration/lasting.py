"""What long products and long prompts reach on Blackwell: the efficiencies that a lasting load has there.

Run it from anywhere: python benchmarks/calibration/lasting.py

sustained_efficiency is the median share of the peak that products in bf16 of at least 2 TFLOP reach, over all
software of the tables in `kernels/`: their loops of milliseconds are at the power limit, as steps of training are,
and the best shape of a search is not. fp8_efficiency and fp4_efficiency are the same of products in FP8 and NVFP4 by
TensorRT-LLM, whose FP8 products are cuBLAS's (`cublas_scaled_mm` of `_torch/modules/linear.py`), as those of
Transformer Engine are. Its module casts the activations first: the bytes of that pass, at the device's
memory_efficiency, are taken off (3 an element with a scale that is given, 5 with one that is looked for, 2.56 into
NVFP4). attention_efficiency is the median over causal prompts of at least 1024 tokens and 0.2 TFLOP, in bf16 with
heads of 128, by the vendor's kernels that vLLM and SGLang call (FLOPs of the causal half). ssd_passes is the median
of what scans of Mamba-2 over at least 2048 tokens take, over the time of `ssd_bytes`: TensorRT-LLM has the kernels of
mamba_ssm, which train too, and a table of them on a B200 alone. Low and high are the 10th and 90th percentile. Shapes
that are kept back to score are left out (`is_test`).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow.parquet as pq

from symperf.formulas.kernels import ssm
from symperf.validation.kernels.attentions import HEADS
from symperf.validation.kernels.formats import system_of
from symperf.validation.kernels.recurrent import MAMBA, RECURRENT
from symperf.validation.kernels.rows import is_test

if TYPE_CHECKING:
    from collections.abc import Iterator

KERNELS = Path(__file__).parent / "kernels"
DEVICES = ("b200_sxm", "gb200", "b300_sxm", "gb300")
LEAST_PRODUCT, LEAST_PROMPT = 2e12, 2e11
LEAST_SCAN = 2048
NARROW = {"fp8": {"fp8_static": 3.0, "fp8": 5.0}, "fp4": {"nvfp4": 2.0 + 9 / 16}}
"""Format -> its tables, and the bytes that the cast of an element moves in them."""
VENDOR = ("trtllm_mha", "vllm_flashinfer_trtllmprefill")
"""Kernels of TensorRT-LLM as SGLang and vLLM call them."""


class Spread(NamedTuple):
    """A median with its spread, and of how many rows."""

    value: float
    low: float
    high: float
    rows: int


def sustained(device: str) -> Spread:
    """The share of the peak that long products reach."""
    return _spread(device, _products(device))


def narrow(device: str, precision: str) -> Spread:
    """The share of the peak in a narrow format that long products reach, without the casts before them."""
    return _spread(device, _narrow_products(device, NARROW[precision]), precision)


def attention(device: str) -> Spread:
    """The share of the peak that long prompts reach."""
    return _spread(device, _prompts(device))


def scans() -> Spread:
    """The time of Mamba-2's scans on a B200, over that of the bytes that they move."""
    found = np.array(list(_scans("b200_sxm")))
    low, middle, high = np.percentile(found, [10, 50, 90])
    return Spread(float(middle), float(low), float(high), len(found))


def _scans(device: str) -> Iterator[float]:
    filters = [("system", "==", device), ("kernel_source", "==", "mamba_chunk_scan_combined")]
    for row in pq.read_table(KERNELS / "mamba2.parquet", filters=filters).to_pylist():
        heads = row["n_groups"], row["nheads"], row["head_dim"], row["d_state"]
        size = row["batch_size"], row["seq_len"], row["chunk_size"]
        kept = is_test({name: float(row[name]) for name in (*RECURRENT, *MAMBA)})
        if row["batch_size"] * row["seq_len"] >= LEAST_SCAN and row["seq_len"] >= row["chunk_size"] and not kept:
            yield row["latency"] / 1e3 / (float(ssm.ssd_bytes(*size, *heads, 2, 4)) / _attained(device))


def _attained(device: str) -> float:
    """Bytes a second that kernels of the device move."""
    system = system_of(device)
    return system.quantities["memory_bandwidth"].value * system.quantities["memory_efficiency"].value


def _products(device: str) -> Iterator[float]:
    for row, work in _long(device, [("gemm_dtype", "==", "bfloat16")]):
        yield work / row["latency"] * 1e3


def _narrow_products(device: str, tables: dict[str, float]) -> Iterator[float]:
    for row, work in _long(device, [("framework", "==", "TRTLLM"), ("gemm_dtype", "in", list(tables))]):
        cast = tables[row["gemm_dtype"]] * row["m"] * row["k"] / _attained(device)
        yield work / (row["latency"] / 1e3 - cast)


def _long(device: str, filters: list[tuple[str, str, Any]]) -> Iterator[tuple[dict[str, Any], float]]:
    """Rows of long products, each with its FLOPs."""
    asked = [("system", "==", device), *filters]
    for row in pq.read_table(KERNELS / "gemm.parquet", filters=asked).to_pylist():
        work = 2.0 * row["m"] * row["n"] * row["k"]
        if work >= LEAST_PRODUCT and not is_test({"n": float(row["n"]), "k": float(row["k"])}):
            yield row, work


def _prompts(device: str) -> Iterator[float]:
    filters = [("system", "==", device), ("kernel_source", "in", list(VENDOR)), ("head_dim", "==", 128)]
    for row in pq.read_table(KERNELS / "context_attention.parquet", filters=filters).to_pylist():
        heads = {name: float(row[name] or 0) for name in HEADS}
        work = 2.0 * row["batch_size"] * row["num_heads"] * row["head_dim"] * row["isl"] ** 2
        wide = row["attn_dtype"] == row["kv_cache_dtype"] == "bfloat16"
        plain = not row["window_size"] and not row["step"] and row["isl"] >= 1024
        if wide and plain and work >= LEAST_PROMPT and not is_test(heads):
            yield work / row["latency"] * 1e3


def _spread(device: str, rates: Iterator[float], precision: str = "bf16") -> Spread:
    shares = np.array(list(rates)) / system_of(device).matrix_rate(precision).value
    low, middle, high = np.percentile(shares, [10, 50, 90])
    return Spread(float(middle), float(low), float(high), len(shares))


def main() -> None:
    """Print all for every device."""
    for device in DEVICES:
        found = {"sustained": sustained(device), "attention": attention(device)}
        found |= {precision: narrow(device, precision) for precision in NARROW}
        for name, each in found.items():
            spread = f"{each.value:.3f} ({each.low:.3f} to {each.high:.3f})"
            print(f"{device:10s} {name + '_efficiency':22s} {spread}, {each.rows} rows")
    each = scans()
    print(f"b200_sxm   ssd_passes             {each.value:.2f} ({each.low:.2f} to {each.high:.2f}), {each.rows} rows")


if __name__ == "__main__":
    main()
