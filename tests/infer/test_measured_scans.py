"""Chunked scans of software whose kernels were measured: a start, a part of the bandwidth, a latency for each chunk."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.kernel_tables import write_table
from support.oracle import evaluate

import symperf as sf
from symperf.formulas.kernels.scan import measured_scan_time
from symperf.formulas.language.symbols import SYMBOLS
from symperf.validation.kernels.score import score

if TYPE_CHECKING:
    from pathlib import Path

SCANS = {"scan_latency": 2e-5, "chunk_latency": 1e-5, "scan_passes": 2.0}
DEVICE = {
    "attention_rate": 9.9e14,
    "attention_efficiency": 0.5,
    "memory_bandwidth": 3.35e12,
    "memory_efficiency": 0.8,
}


@given(work=st.floats(0, 1e16), traffic=st.floats(0, 1e13), sequence=st.integers(1, 10**6), chunk=st.integers(16, 256))
def test_a_measured_scan_is_as_written(work: float, traffic: float, sequence: int, chunk: int) -> None:
    points = {SYMBOLS[name].symbol: number for name, number in {**SCANS, **DEVICE}.items()}
    found = float(evaluate(measured_scan_time(work, traffic, sequence, chunk), points))
    parts = work / (9.9e14 * 0.5), 2.0 * traffic / (3.35e12 * 0.8), -(-sequence // chunk) * 1e-5
    assert found == pytest.approx(2e-5 + max(parts), rel=1e-9)


def test_one_long_sequence_waits_for_its_chunks_and_many_short_ones_do_not() -> None:
    """A run that states all three constants has them in place of the starts of six kernels; training has not."""
    plan = sf.Plan()
    for batch, prompt in ((1, 65536), (512, 128)):
        run = sf.inference("qwen3-next-80b-a3b", "h200-sxm", plan, batch=batch, prompt=prompt, generate=2, **SCANS)
        (scan,) = [op for op in run.operations() if op.name.endswith("linear_attention/scan")]
        waited = 2e-5 + prompt / 64 * 1e-5
        assert (scan.time_s / scan.count == pytest.approx(waited, rel=0.05)) == (batch == 1)
        assert scan.time_s / scan.count >= waited
    partly = {name: SCANS[name] for name in ("scan_latency", "scan_passes")}
    run = sf.inference("qwen3-next-80b-a3b", "h200-sxm", plan, batch=1, prompt=128, generate=2, **partly)
    bare = sf.inference("qwen3-next-80b-a3b", "h200-sxm", plan, batch=1, prompt=128, generate=2)
    assert run.value("time") == bare.value("time")


KDA = {
    "framework": "VLLM",
    "version": "1",
    "system": "h100_sxm",
    "op_name": "kda",
    "batch_size": 4,
    "d_model": 7168,
    "d_conv": 4,
    "num_k_heads": 12,
    "head_k_dim": 128,
    "num_v_heads": 12,
    "head_v_dim": 128,
    "latency": 0.02,
}


def test_kernels_of_channelwise_decays_are_those_of_a_delta_rule(tmp_path: Path) -> None:
    """Kimi Linear's kernels are scored as those of a gated delta rule; drafts under test are steps of their tokens."""
    rows = [
        KDA | {"kernel_source": kernel, "phase": phase, "seq_len": tokens}
        for kernel, phase, tokens in (
            ("chunk_kda", "context", 256),
            ("causal_conv1d_fn_qkv3", "context", 256),
            ("fused_kda_decode", "generation", 1),
            ("fused_recurrent_kda", "verify", 4),
            ("fused_recurrent_kda", "verify", 8),
        )
    ]
    write_table(tmp_path, "kda", rows)
    found = {group.operation: rows.predicted for group, rows in score(tmp_path).items()}
    assert set(found) == {f"kda/{row['kernel_source']}" for row in rows}
    four, eight = sorted(found["kda/fused_recurrent_kda"])
    assert four < eight
