"""How the loss follows the head: published times, memory, and every kind under every schedule."""

from __future__ import annotations

from typing import Any

import pytest

import symperf as sf
from symperf.common.errors import InputError
from symperf.plans.plan_fields import FIELDS

KINDS = FIELDS["loss"].choices
GEMMA = {"batch": 1, "sequence": 8192}
APPLE = {"unfused": 208.8, "fused": 144.0, "cut": 134.8}
"""Milliseconds of head and loss, forward and backward, of Gemma 2 2B with 8192 tokens on an A100 SXM4 (README of
apple/ml-cross-entropy: baseline, torch_compile and cce)."""


def step(loss: str, model: str = "gemma-2-2b", system: str = "a100-80gb-sxm", **plan: Any) -> Any:
    return sf.training(model, system, sf.Plan(loss=loss, **plan), **GEMMA)


def seconds(run: Any) -> float:
    return sum(row.time_s for row in run.table() if row.name.startswith(("head/logits", "head/loss")))


@pytest.mark.parametrize("kind", APPLE)
def test_published_times_of_a_head_are_met(kind: str) -> None:
    """Neither the unfused nor the fused loss was fitted to them; the two constants of the cut one were."""
    within = 0.01 if kind == "cut" else 0.08
    assert seconds(step(kind)) * 1e3 == pytest.approx(APPLE[kind], rel=within)


def test_a_fused_loss_reads_logits_twice_each_way_and_stores_them_once() -> None:
    """16 bits of each, in whose place its gradient comes; unfused 32 bits of probabilities, and 16 of gradients."""
    run = step("fused")
    logits = 8192 * run.model.sizes["vocab_size"] * 2
    rows = {row.name: row for row in run.table()}
    assert rows["head/loss/forward"].bytes == rows["head/loss/backward"].bytes == 2 * logits
    assert step("unfused").value("memory") - run.value("memory") == pytest.approx((2 + 1 - 1) * logits)


def test_what_is_held_falls_from_kind_to_kind() -> None:
    held = [step(kind).value("memory") for kind in ("unfused", "fused", "chunked", "fused-linear", "cut")]
    assert held == sorted(held, reverse=True)
    assert len(set(held)) == len(held)


def test_more_chunks_hold_less_and_take_longer() -> None:
    """By powers of two, of which chunks are whole tiles."""
    found = [step("chunked").bind(loss_chunks=count) for count in (1, 4, 16, 64)]
    held, times = ([run.value(name) for run in found] for name in ("memory", "time"))
    assert held == sorted(held, reverse=True)
    assert times == sorted(times)


def test_one_chunk_is_a_fused_loss_beside_the_gradient_of_its_input() -> None:
    one, fused = step("chunked").bind(loss_chunks=1), step("fused")
    assert one.value("time") == pytest.approx(fused.value("time"))
    stream = 8192 * fused.model.sizes["hidden_size"] * 2
    assert one.value("memory") - fused.value("memory") == pytest.approx(stream)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("plan", [{"tp": 2, "sequence_parallel": True}, {"pp": 2, "schedule": "zero-bubble"}])
def test_every_kind_runs_under_other_layouts(kind: str, plan: dict[str, Any]) -> None:
    run = sf.training("llama-2-7b", "h100-sxm", sf.Plan(loss=kind, **plan), batch=4, sequence=1024)
    assert sum(row.time_s for row in run.table()) == pytest.approx(run.value("time"))


def test_a_frozen_head_has_no_product_for_its_weights() -> None:
    for kind in ("chunked", "cut"):
        names = {row.name for row in step(kind, "llama-2-7b", freeze="head").table()}
        assert "head/logits/backward_input" in names
        assert "head/logits/backward_weight" not in names


def test_an_unknown_kind_is_one_line(call: Any) -> None:
    with pytest.raises(InputError, match="fusd"):
        sf.Plan(loss="fusd")
    code, out, err = call(["train", "gpt2", "-s", "h100-sxm", "--batch", "1", "--sequence", "128", "--loss", "fusd"])
    assert (code, out) == (2, "")
    assert "fused" in err


def test_logits_of_a_cut_loss_count_twice_in_hfu() -> None:
    """The backward pass makes them again; those of other kinds are there, or have had their backward pass."""
    for kind in KINDS:
        run = step(kind)
        again = run.value("hardware_flops") - run.value("model_flops")
        assert again == (2 * 8192 * 256000 * 2304 if kind == "cut" else 0)
