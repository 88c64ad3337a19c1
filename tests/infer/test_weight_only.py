"""Formats that a device does not multiply run as weight-only kernels; caches below 8 bits take their scales."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.effort import some
from support.paths import GOLDEN_2026

import symperf as sf
from symperf.cli import main
from symperf.infer.formats import FORMATS, KV_BYTES, WEIGHT_ONLY

WORK: dict[str, Any] = {"batch": 8, "prompt": 512, "generate": 64}


def run(precision: str | None, system: str, model: str = "llama-3.1-8b", **more: Any) -> Any:
    plan = sf.Plan(precision=precision)
    return sf.inference(model, system, plan, **WORK, **({"stack": "vllm-0.24"} | more))


@pytest.mark.parametrize(("precision", "kernels"), WEIGHT_ONLY.items())
def test_a_format_has_weight_only_kernels_of_its_bits(precision: str, kernels: str) -> None:
    assert FORMATS[kernels].rate is None
    assert FORMATS[kernels].weight == pytest.approx(FORMATS[precision].weight, rel=0.01)


@pytest.mark.parametrize("system", some(["h100-sxm", "a100-80gb-sxm"]))
@pytest.mark.parametrize(("precision", "kernels"), [("fp4", "nvfp4-weight"), ("mxfp4-mxfp8", "mxfp4-weight")])
def test_4_bits_run_on_devices_that_do_not_multiply_them(system: str, precision: str, kernels: str) -> None:
    if system == "h100-sxm" and precision == "mxfp4-mxfp8":
        pytest.skip("it multiplies 8 bits")
    model = "qwen3-30b-a3b"
    found, same = run(precision, system, model), run(kernels, system, model)
    assert any("are widened" in warning for warning in found.warnings)
    for what in ("prefill", "time_per_token", "memory"):
        assert found.value(what) == pytest.approx(same.value(what), rel=1e-9)
    wide = run("bf16", system, model)
    assert found.value("time_per_token") < wide.value("time_per_token")
    assert found.bound["matrix_rate"] == wide.bound["matrix_rate"]


def test_nvfp4_takes_the_constants_of_marlin() -> None:
    """vLLM serves both by its Marlin kernels for experts."""
    four, nv = run("int4-weight", "h100-sxm", "qwen3-30b-a3b"), run("fp4", "h100-sxm", "qwen3-30b-a3b")
    assert nv.bound["grouped_efficiency"] == four.bound["grouped_efficiency"]
    assert nv.bound["grouped_efficiency"] != run("bf16", "h100-sxm", "qwen3-30b-a3b").bound["grouped_efficiency"]


def test_a_checkpoint_in_nvfp4_runs_on_hopper_and_ampere() -> None:
    path = str(GOLDEN_2026 / "configs" / "qwen3.6-27b-nvfp4.json")
    for system in ("h100-sxm", "a100-80gb-sxm"):
        found = sf.inference(path, system, batch=1, prompt=64, generate=8)
        assert found.fits
        assert any("stores them: nvfp4-weight, attention in fp8" in warning for warning in found.warnings)
        assert any("no matrix_rate in fp8" in each for each in found.warnings) is (system == "a100-80gb-sxm")


@pytest.mark.parametrize("name", some(KV_BYTES))
def test_a_cache_takes_its_bytes_and_is_never_slower_than_a_wider_one(name: str) -> None:
    wide, found = run(None, "h100-sxm", kv_precision="bf16"), run(None, "h100-sxm", kv_precision=name)
    share = found.memory_terms()["kv_cache"] / wide.memory_terms()["kv_cache"]
    assert share == pytest.approx(KV_BYTES[name] / 2)
    assert found.bound["cache_casts"][0] == (name not in ("bf16", "fp16"))


def test_scales_of_caches_are_counted() -> None:
    """NVFP4: 9 bytes for 16 values; GGUF: 34 and 18 bytes for 32; LMDeploy: 68 bytes for a head of 128."""
    assert {name: KV_BYTES[name] for name in ("nvfp4", "q8_0", "q4_0", "int4")} == {
        "nvfp4": 9 / 16,
        "q8_0": 34 / 32,
        "q4_0": 18 / 32,
        "int4": 68 / 128,
    }


def test_serving_holds_more_sequences_with_a_narrower_cache(capsys: pytest.CaptureFixture[str]) -> None:
    limits = []
    words = [
        "serve",
        "llama-3.1-8b",
        "-s",
        "h100-sxm",
        "--prompt",
        "512",
        "--generate",
        "64",
        "--max-num-seqs",
        "0",
        "--json",
    ]
    for name in ("bf16", "fp8", "nvfp4"):
        assert main([*words, "--kv-precision", name]) == 0
        limits.append(json.loads(capsys.readouterr().out)["concurrency_limit"])
    assert limits == sorted(set(limits))
