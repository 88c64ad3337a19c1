"""Answers of an inference with images include their encoder's pass, and what they are made of adds up."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

import pytest

import symperf as sf

MODEL, IMAGES = "qwen3-vl-4b", ("2x896x896", "1x448x448")


@lru_cache
def infer(*images: str, **values: Any) -> Any:
    """Two prompts of 2000 tokens on two H100, images among them where there are any."""
    tokens = 0 if not images else 2 * 784 + 196
    return sf.inference(
        MODEL, "h100-sxm", sf.Plan(tp=2), batch=2, prompt=2000 - tokens, generate=32, images=images, **values
    )


def test_time_is_encoder_prefill_and_decode() -> None:
    run, text = infer(*IMAGES), infer()
    assert run.value("prefill") == text.value("prefill")
    encoder = run.encoding.time_s
    assert run.value("time") == pytest.approx(encoder + text.value("time"), rel=1e-12)
    assert run.value("tokens_per_s") == pytest.approx(2 * 32 / run.value("time_s"))
    assert run.value("tokens_per_s_per_device") == pytest.approx(32 / run.value("time"))
    told = run.encoding.to_dict()
    assert told["time_s"] == run.value("time")
    assert told["time_to_first_token_s"] == encoder + run.value("prefill")


def test_breakdown_operations_and_shares_add_up() -> None:
    run = infer(*IMAGES)
    rows, operations = run.table(), run.operations()
    assert sum(row.time_s for row in rows) == pytest.approx(run.value("time"))
    assert sum(row.share for row in rows) == pytest.approx(1)
    assert len({row.name for row in rows}) == len(rows)
    assert sum(op.time_s for op in operations) == pytest.approx(run.value("time"))
    encoder = [op for op in operations if op.phase == "encoder"]
    assert sum(op.time_s for op in encoder) == pytest.approx(run.encoding.time_s)
    assert sum(row.time_s for row in rows if row.name.startswith("encoder/vision/")) == pytest.approx(
        run.encoding.time_s
    )
    assert all(row.theory_s <= row.time_s * (1 + 1e-9) for row in rows)
    patches = next(op for op in encoder if op.name == "vision/patch")
    assert patches.m == 2 * 2 * (896 // 16) ** 2
    assert sum(run.shares().values()) == pytest.approx(1)


def test_memory_holds_the_encoder_and_decides_whether_it_fits() -> None:
    run, text = infer(*IMAGES), infer()
    terms = run.memory_terms()
    assert sum(terms.values()) == pytest.approx(run.value("memory"))
    assert terms["weights/encoder"] == run.encoding.weight_bytes
    assert terms["activations"] == max(text.memory_terms()["activations"], run.encoding.activation_bytes)
    # The software's chunk, and what it leaves free, depend on the capacity.
    small = [infer(*images, memory_capacity=1e10).needed_bytes for images in ((), IMAGES)]
    between = sum(small) / 2
    assert infer(memory_capacity=between).fits
    assert not infer(*IMAGES, memory_capacity=between).fits
    assert run.fitting_sequences() < text.fitting_sequences()


def test_intervals_hold_the_encoder() -> None:
    run, text = infer(*IMAGES), infer()
    found = run.interval("time")
    assert found.value == pytest.approx(run.value("time"), rel=1e-12)
    assert found.low < found.value < found.high
    assert found.high - found.low > text.interval("time").high - text.interval("time").low
    assert run.interval("prefill") == text.interval("prefill")
    assert run.interval("tokens_per_s").value == pytest.approx(run.value("tokens_per_s"), rel=1e-12)


def test_energy_and_cost_hold_the_encoder() -> None:
    run, text = infer(*IMAGES), infer()
    assert run.cost().dollars / text.cost().dollars == pytest.approx(run.value("time") / text.value("time"))
    one, other = run.energy(), text.energy()
    assert one.total == pytest.approx(sum(one.joules.values()))
    assert all(one.joules[name] >= other.joules[name] for name in other.joules)
    flops = sum(row.flops for row in run.table() if row.name.startswith("encoder/"))
    more = sum(one.work[name] - other.work[name] for name in ("matrix", "attention"))
    assert more == pytest.approx(run.plan.devices * flops, rel=0.02)


def test_without_images_there_is_no_encoder(call: Any) -> None:
    run = infer()
    assert run.encoding is None
    assert not any(row.name.startswith("encoder") for row in run.table())
    arguments = ["infer", MODEL, "-s", "h100-sxm", "--tp", "2", "--batch", "2", "--prompt", "100", "--generate", "8"]
    _, out, _ = call([*arguments, "--json"])
    assert "images" not in json.loads(out)
    _, out, _ = call([*arguments, "--images", "1x448x448", "--json"])
    data = json.loads(out)
    assert data["time_s"] == pytest.approx(data["images"]["encode_s"] + data["prefill_s"] + data["decode_s"])
    assert data["memory_bytes"]["total"] == data["images"]["memory_bytes"]
    assert data["fits"] is data["images"]["fits"] is True
