"""Training in 32 bits, with products in FP32 or TF32."""

from __future__ import annotations

from typing import Any

import pytest

import symperf as sf
from symperf.common.errors import InputError


def step(precision: str, model: str = "llama-2-7b", **plan: Any) -> Any:
    return sf.training(model, "a100-80gb-sxm", sf.Plan(precision=precision, **plan), batch=8, sequence=1024)


@pytest.mark.parametrize("precision", ["fp32", "tf32"])
def test_every_parameter_has_sixteen_bytes(precision: str) -> None:
    """Weight, gradient and two moments; FP16 with a master copy has 18."""
    run = step(precision)
    state = sum(run.value(f"memory/{name}") for name in ("weights", "gradients", "optimizer"))
    assert state == pytest.approx(16 * run.value("parameters"), rel=1e-6)


def test_products_run_at_the_rate_of_their_format() -> None:
    """312, 156 and 19.5 TFLOP/s by the data sheet, and activations are twice as wide."""
    half, tf32, fp32 = (step(precision) for precision in ("bf16", "tf32", "fp32"))
    name = "layer/mlp/up/forward"
    assert tf32.value(name) == pytest.approx(2 * half.value(name), rel=0.1)
    assert fp32.value(name) == pytest.approx(16 * half.value(name), rel=0.1)
    moved = "term/layer/mlp/norm/forward/bytes"
    assert tf32.value(moved) == fp32.value(moved) == 2 * half.value(moved)
    assert all(0 < run.value("mfu_executed") < 1 for run in (half, tf32, fp32))


def test_rows_are_aligned_by_their_own_elements() -> None:
    """GPT-2's 50,257 tokens leave rows of TF32 unaligned as well; FP32 does not run on tensor units."""
    padded, odd = ("gpt2", {"vocab_size": 50304}), ("gpt2", {"vocab_size": 50257})
    found = {}
    for precision in ("bf16", "tf32", "fp32"):
        times = [step(precision, name).bind(**sizes).value("head/logits/forward") for name, sizes in (padded, odd)]
        found[precision] = times[1] / times[0]
    assert found["bf16"] > 2
    assert found["tf32"] > 2
    assert found["fp32"] == pytest.approx(1, rel=0.01)


def test_other_optimizers_keep_no_master_copy() -> None:
    assert step("fp32", optimizer="sgd-momentum").value("memory/optimizer") == pytest.approx(
        4 * step("fp32").value("parameters"), rel=1e-6
    )


def test_inference_and_devices_without_the_format_refuse_it() -> None:
    with pytest.raises(InputError, match="tf32"):
        sf.inference("gpt2", "a100-80gb-sxm", sf.Plan(precision="tf32"), batch=1, prompt=8, generate=8)
    with pytest.raises(InputError, match="tf32"):
        sf.training("gpt2", "tpu-v5e", sf.Plan(precision="tf32"), batch=1, sequence=128)


def test_a_device_that_widens_16_bits_keeps_their_state() -> None:
    """BF16 on a device whose products are widened is still stored in 16 bits."""
    run = sf.training("gpt2", "v100-32gb-sxm", sf.Plan(precision="bf16"), batch=1, sequence=128)
    assert run.bound["weight_bytes"][0] == 2
