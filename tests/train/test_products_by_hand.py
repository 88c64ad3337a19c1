"""What an audit recomputed by hand of split products, own all-reduces and formats of experts: plain arithmetic only."""

from __future__ import annotations

import csv
import math
from typing import Any

import pytest
from support.paths import ONE_LAYER, ROOT

import symperf as sf
from symperf.validation.case import Scored
from symperf.validation.documents import document_of
from symperf.validation.rows import TableRow
from symperf.validation.score import widening

FP8 = 1 + 4 / 128
"""A byte, and an FP32 scale for each 128 values."""
CALIBRATION = ROOT / "benchmarks" / "calibration"


def rows(made: Any) -> dict[str, Any]:
    return {row.name: row for row in made.table()}


# --- products: tiles, splits along k, and their partial sums, of several experts in one kernel


def grouped(m: float, n: int, k: int, groups: int, device: dict[str, float]) -> float:
    """Seconds of products of 2-byte elements, one a group, tile by tile."""
    memory = groups * 2 * (m * k + k * n + m * n)
    again = groups * 2 * m * n * k * 2 * math.sqrt(2 / device["l2_capacity"])
    moved = max(memory, again) / (device["memory_bandwidth"] * device["memory_efficiency"])
    rate = device["matrix_rate"] * device["matrix_efficiency"]
    cache = device["l2_bandwidth"] * device["l2_efficiency"]
    units, found = int(device["compute_units"]), []
    for high, wide, split in ((128, 256, 0), (256, 128, 0), (128, 128, 0), (128, 256, 1), (64, 128, 1)):
        down, across = math.ceil(m / high), math.ceil(n / wide)
        tiles = groups * down * across
        passes = math.ceil(tiles / units) / (max(1, units // tiles) if split else 1)
        compute = passes * units * 2 * high * wide * k / rate
        panels = groups * k * 2 * (n * down + m * across) / cache
        sums = 2 * units * min(m, high) * min(n, wide) * 4 / cache if split else 0.0
        found.append(max(compute, moved, panels) + sums)
    corner = (groups * 2 * m * n * k / rate + moved) / (2 * device["ridge_efficiency"])
    power = groups * 2 * m * n * k / (device["matrix_rate"] * device.get("sustained_efficiency", math.inf))
    return max(min(found), corner, power) + device["launch_latency"]


@pytest.mark.parametrize("system", ["h100-sxm", "a100-80gb-sxm"])
@pytest.mark.parametrize("sequence", [16, 64, 256, 1024, 4096])
def test_products_of_two_experts_on_a_device(system: str, sequence: int) -> None:
    """Mixtral, eight experts over four devices: T tokens pass two experts each, so that T rows meet each of two."""
    plan = sf.Plan(dp=8, ep=4, micro_batch=1)
    made = sf.training(sf.Model.load("mixtral-8x7b"), sf.System.load(system), plan, batch=8, sequence=sequence)
    device = {name: float(value) for name, (value, _) in made.bound.items() if isinstance(value, int | float)}
    found = rows(made)
    up, down = found["layer/experts/up/forward"], found["layer/experts/down/forward"]
    assert up.each_s == pytest.approx(grouped(sequence, 2 * 14336, 4096, 2, device), rel=1e-12)
    assert down.each_s == pytest.approx(grouped(sequence, 4096, 14336, 2, device), rel=1e-12)


# --- all-reduces of vLLM's own kernel


PUBLISHED = {
    ("H100-80GB-SXM5", 2, 128): 0.004403519928455353,
    ("H100-80GB-SXM5", 2, 2097152): 0.020186240673065188,
    ("H100-80GB-SXM5", 4, 262144): 0.011191999912261963,
    ("H100-80GB-SXM5", 8, 4096): 0.011058239936828614,
    ("H100-80GB-SXM5", 8, 131072): 0.011492480039596558,
    ("A100-80GB-SXM4", 8, 65536): 0.0110316801071167,
    ("A100-80GB-SXM4", 8, 262144): 0.019524480104446414,
    ("A100-80GB-SXM4", 8, 2097152): 0.045481600761413575,
    ("B200-SXM", 2, 1048576): 0.02570111989974976,
    ("B200-SXM", 8, 131072): 0.025401279926300046,
    ("B200-SXM", 8, 524288): 0.016560640335083008,
}
"""Milliseconds by part, ranks and 16-bit elements: AIConfigurator, custom_allreduce_perf.txt, vLLM_custom_graph."""


def test_rows_are_those_of_the_published_file() -> None:
    with (CALIBRATION / "peer.csv").open(encoding="utf-8", newline="") as file:
        found = list(csv.DictReader(file))
    for (part, ranks, elements), milliseconds in PUBLISHED.items():
        key = (part, str(ranks), str(2 * elements))
        times = [r["time_us"] for r in found if (r["hw_key"], r["num_devices"], r["message_bytes"]) == key]
        assert f"{1000 * milliseconds:.4f}" in times


@pytest.mark.parametrize(("batch", "shots"), [(1, 1), (16, 2)])
def test_the_sum_of_a_decode_step_on_eight_h100(batch: int, shots: int) -> None:
    """Llama 2 70B: 8192 features of 2 bytes a sequence; one shot for one sequence, two for sixteen."""
    model, system = sf.Model.load("llama-2-70b"), sf.System.load("h100-sxm")
    made = sf.inference(model, system, sf.Plan(tp=8), batch=batch, prompt=512, generate=16, stack="vllm")
    message, link, start = batch * 8192 * 2, 450e9 * 0.613, 4.52e-6
    seconds = start + 7 * message / link if shots == 1 else 2 * start + 2 * 7 / 8 * message / link
    assert rows(made)["decode/layer/mlp/reduce"].each_s == pytest.approx(seconds, rel=1e-12)


# --- FP8 to the experts of DeepSeek-V3


def test_bytes_of_a_training_step_of_deepseek() -> None:
    """61 layers over 16 stages, 120 micro-batches of 4096 tokens of 7168 features, to eight experts each.

    Experts are in 58 layers, which are dealt to stages in order: work is that of a mean stage.
    """
    layout: dict[str, Any] = {"pp": 16, "dp": 128, "ep": 64, "node_limit": 4, "uneven_stages": True, "zero": 1}
    plan = sf.Plan(**layout, schedule="1f1b", precision="fp8", recompute="full")
    model, system = sf.Model.load("deepseek-v3"), sf.System.load("h800-sxm")
    work: dict[str, Any] = {"batch": 15360, "sequence": 4096, "num_multi_token_layers": 0}
    made = rows(sf.training(model, system, plan, **work, dispatch_element_bytes=FP8))
    times = 120 * 58 / 16
    tokens, sent = 4096 * 7168, 4096 * 8 * 7168
    expected = {
        "quantise/forward": tokens * (2 + FP8),
        "permute/forward": 2 * sent * FP8,
        "dispatch/forward": sent * FP8,
        "up/cast/forward": sent * (FP8 + 1),
        "up/cast/recompute": sent * (FP8 + 1),
        "combine/forward": sent * 2,
        "unpermute/forward": 2 * (sent + tokens),
        "unpermute/backward": 2 * (sent + tokens) + sent * FP8,
        "combine/backward": sent * FP8,
        "down/cast/backward_input": sent * (FP8 + 1),
        "up/cast/backward_input": 4096 * 8 * 2 * 2048 * (2 + 2 * 1),
        "dispatch/backward": sent * 2,
        "permute/backward": 2 * (sent + tokens),
    }
    for name, count in expected.items():
        row = made[f"layer/latent_attention_experts/experts/{name}"]
        assert row.bytes == pytest.approx(times * count, rel=1e-12), name
    assert not any("restore" in name or "quantise_results" in name for name in made)


def test_bytes_of_a_decode_step_of_deepseek() -> None:
    """128 sequences over 32 devices, 31 steps after the first token, 58 layers with experts."""
    model, system = sf.Model.load("deepseek-v3"), sf.System.load("h800-sxm")
    plan = sf.Plan(dp=32, ep=32, precision="fp8")
    made = rows(sf.inference(model, system, plan, batch=128, prompt=64, generate=32, stack="vllm-deepep"))
    copies = 31 * 58 * 4 * 8 * 7168
    root = "decode/layer/latent_attention_experts/experts"
    assert made[f"{root}/dispatch"].bytes == pytest.approx(copies * FP8, rel=1e-12)
    assert made[f"{root}/permute"].bytes == pytest.approx(2 * copies * FP8, rel=1e-12)
    assert made[f"{root}/combine"].bytes == pytest.approx(2 * copies, rel=1e-12)


# --- layouts of scripts, widths of intervals, overheads


def test_chunks_are_those_of_the_scripts() -> None:
    """Megatron-LM, examples/sc21/run_table_1.sh: layers, stages, layers of a virtual stage, micro-batch."""
    script = {
        "GPT-39.1B": (48, 2, 0, 4),
        "GPT-76.1B": (60, 4, 5, 2),
        "GPT-145.6B": (80, 8, 5, 2),
        "GPT-310.1B": (96, 16, 3, 1),
        "GPT-529.6B": (105, 35, 1, 1),
        "GPT-1008.0B": (128, 64, 0, 1),
    }
    for model, (layers, stages, virtual, micro) in script.items():
        chunks = layers // stages // virtual if virtual else 1
        said = document_of(TableRow("training.csv", 2, {"id": "SC21-1", "model": model}))
        assert said.columns == {"micro_batch_seqs": str(micro), "vpp": str(chunks)}


def test_a_stretch_is_a_ratio_of_logarithms() -> None:
    """An interval from 0.8 to 1.25: 2 is ln 2 / ln 1.25 = 3.106 times as far as its end, and so is 1/2."""
    made = [Scored("A", "a", "time_s", value, 1.0, low=0.8, high=1.25) for value in (2.0, 0.5, 1.25, 1.0)]
    assert [one.stretch for one in made] == pytest.approx([3.10628, 3.10628, 1.0, 0.0], rel=1e-5)
    assert widening(made * 5, 0.5) == pytest.approx(1.0, rel=1e-12)
    assert widening(made * 5, 0.9) == pytest.approx(3.10628, rel=1e-5)


def test_a_sweep_counts_what_a_step_adds() -> None:
    made = sf.training(sf.Model.load(ONE_LAYER), sf.System.load("a100-80gb-sxm"), sf.Plan(tp=8), batch=8, sequence=2048)
    plain, slow = made.sweep(overhead_latency=[0, 0.5])["time"].values.ravel()
    assert plain == pytest.approx(made.value("time"), rel=1e-12)
    assert slow - plain == pytest.approx(0.5, rel=1e-9)
