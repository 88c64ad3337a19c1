"""What long products and long prompts reach on Blackwell: sustained_efficiency and attention_efficiency.

Run it from anywhere: python benchmarks/calibration/lasting.py

sustained_efficiency is the median share of the peak that products in bf16 of at least 2 TFLOP reach, over all software
of the tables in `kernels/`: their loops of milliseconds are at the power limit, as steps of training are, and the best
shape of a search is not. attention_efficiency is the median over causal prompts of at least 1024 tokens and 0.2 TFLOP,
in bf16 with heads of 128, by the vendor's kernels that vLLM and SGLang call (FLOPs of the causal half). Low and high
are the 10th and 90th percentile. Shapes that are kept back to score are left out (`is_test`).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow.parquet as pq

from symperf.validation.kernels.attentions import HEADS
from symperf.validation.kernels.formats import system_of
from symperf.validation.kernels.rows import is_test

if TYPE_CHECKING:
    from collections.abc import Iterator

KERNELS = Path(__file__).parent / "kernels"
DEVICES = ("b200_sxm", "gb200", "b300_sxm", "gb300")
LEAST_PRODUCT, LEAST_PROMPT = 2e12, 2e11
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


def attention(device: str) -> Spread:
    """The share of the peak that long prompts reach."""
    return _spread(device, _prompts(device))


def _products(device: str) -> Iterator[float]:
    filters = [("system", "==", device), ("gemm_dtype", "==", "bfloat16")]
    for row in pq.read_table(KERNELS / "gemm.parquet", filters=filters).to_pylist():
        work = 2.0 * row["m"] * row["n"] * row["k"]
        if work >= LEAST_PRODUCT and not is_test({"n": float(row["n"]), "k": float(row["k"])}):
            yield work / row["latency"] * 1e3


def _prompts(device: str) -> Iterator[float]:
    filters = [("system", "==", device), ("kernel_source", "in", list(VENDOR)), ("head_dim", "==", 128)]
    for row in pq.read_table(KERNELS / "context_attention.parquet", filters=filters).to_pylist():
        heads = {name: float(row[name] or 0) for name in HEADS}
        work = 2.0 * row["batch_size"] * row["num_heads"] * row["head_dim"] * row["isl"] ** 2
        wide = row["attn_dtype"] == row["kv_cache_dtype"] == "bfloat16"
        plain = not row["window_size"] and not row["step"] and row["isl"] >= 1024
        if wide and plain and work >= LEAST_PROMPT and not is_test(heads):
            yield work / row["latency"] * 1e3


def _spread(device: str, rates: Iterator[float]) -> Spread:
    shares = np.array(list(rates)) / system_of(device).matrix_rate("bf16").value
    low, middle, high = np.percentile(shares, [10, 50, 90])
    return Spread(float(middle), float(low), float(high), len(shares))


def main() -> None:
    """Print both for every device."""
    for device in DEVICES:
        for name, found in (("sustained_efficiency", sustained(device)), ("attention_efficiency", attention(device))):
            print(f"{device:10s} {name:22s} {found.value:.3f} ({found.low:.3f} to {found.high:.3f}), {found.rows} rows")


if __name__ == "__main__":
    main()
