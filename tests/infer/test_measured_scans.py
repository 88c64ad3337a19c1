"""Chunked scans of software whose kernels were measured: a start, a part of the bandwidth, a latency for each chunk."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.kernel_tables import write_table
from support.oracle import evaluate

import symperf as sf
from symperf.formulas.kernels.measured_scan import (
    measured_convolution_time,
    measured_scan_time,
    measured_update_time,
    measured_window_time,
)
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


@given(work=st.floats(0, 1e16), traffic=st.floats(0, 1e13), sequence=st.integers(1, 10**6), chunk=st.integers(16, 256))
def test_a_measured_scan_is_as_written(work: float, traffic: float, sequence: int, chunk: int) -> None:
    points = {SYMBOLS[name].symbol: number for name, number in {**SCANS, **DEVICE}.items()}
    found = float(evaluate(measured_scan_time(work, traffic, sequence, chunk), points))
    parts = work / (9.9e14 * 0.5), 2.0 * traffic / (3.35e12 * 0.8), -(-sequence // chunk) * 1e-5
    assert found == pytest.approx(2e-5 + max(parts), rel=1e-9)


@given(work=st.floats(0, 1e15), traffic=st.floats(0, 1e13), batch=st.integers(1, 4096), width=st.integers(1, 10**5))
def test_measured_steps_and_convolutions_are_as_written(work: float, traffic: float, batch: int, width: int) -> None:
    own = {"update_latency": 4e-6, "update_passes": 0.9, "window_latency": 2e-6, "window_passes": 1.2}
    own |= {"convolution_latency": 5e-6, "convolution_passes": 1.5, "sequence_latency": 8e-10}
    own |= {"window_efficiency": 0.05, "convolution_efficiency": 0.2, "vector_rate": 6.7e13}
    points = {SYMBOLS[name].symbol: number for name, number in {**own, **DEVICE}.items()}
    moved = traffic / (3.35e12 * 0.8)
    found = [
        float(evaluate(form, points))
        for form in (
            measured_update_time(traffic),
            measured_window_time(work, traffic),
            measured_convolution_time(work, traffic, batch, width),
        )
    ]
    convolved = max(work / (6.7e13 * 0.2), 1.5 * moved, batch * width * 8e-10)
    wanted = [4e-6 + 0.9 * moved, 2e-6 + max(work / (6.7e13 * 0.05), 1.2 * moved), 5e-6 + convolved]
    assert found == pytest.approx(wanted, rel=1e-9)


def test_kernels_of_channelwise_decays_have_constants_of_their_own() -> None:
    """A run of Kimi Linear reads those, one of Qwen3-Next those of any delta rule; training reads neither."""
    plan, work = sf.Plan(), {"batch": 8, "prompt": 4096, "generate": 2}
    for model, before in (("kimi-linear-48b-a3b", "channel_"), ("qwen3-next-80b-a3b", "")):
        told = {f"{before}update_latency": 1e-3, f"{before}window_latency": 2e-3, f"{before}convolution_latency": 3e-3}
        told |= {f"{before}scan_latency": 4e-3}
        run = sf.inference(model, "h200-sxm", plan, stack="vllm-0.24", **work, **told)
        ends = {"state_update": 1e-3, "convolution_update": 2e-3, "convolution": 3e-3, "scan": 4e-3}
        rows = [op for op in run.operations() if "/linear_attention" in op.name]
        for end, least in ends.items():
            times = [op.time_s / op.count for op in rows if op.name.endswith(f"/{end}")]
            assert times
            assert all(least < time < 2 * least for time in times), end


def test_what_stays_in_a_cache_is_read_from_it(tmp_path: Path) -> None:
    """A state that fits the L2 cache of an H100 takes less time in a loop than one twice as large would let expect."""
    rows = [
        KDA | {"kernel_source": "fused_kda_decode", "phase": "generation", "seq_len": 1, "batch_size": batch}
        for batch in (32, 1024)
    ]
    write_table(tmp_path, "kda", rows)
    (small, large) = sorted(next(iter(score(tmp_path).values())).predicted)
    start = 5e-6
    assert 1.5 < (large - start) / (small - start) / 32 < 2


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
    work = {"batch": 1, "prompt": 128, "generate": 2, "stack": "tensorrt-llm"}
    run, bare = (sf.inference("qwen3-next-80b-a3b", "h200-sxm", plan, **work, **told) for told in (partly, {}))
    assert run.value("time") == bare.value("time")


def test_kernels_of_channelwise_decays_are_those_of_a_delta_rule(tmp_path: Path) -> None:
    """Kimi Linear's kernels have forms of their own; drafts under test are steps of their tokens."""
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
