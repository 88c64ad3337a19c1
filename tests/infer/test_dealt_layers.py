"""Pipelines of an inference whose stages do not divide the layers: dealt as vLLM deals them, by hand."""

from __future__ import annotations

from typing import Any

import pytest

import symperf as sf
from symperf.common.errors import InputError
from symperf.plan_search.inference.search import search_inference

SYSTEM = sf.System.load("h100-sxm")
DEALT = [6, 6, 7, 7, 6]
"""32 layers on 5 stages: the two that are left go to the stages before the last (vLLM, get_pp_indices)."""


def make(model: str, *, batch: int, **plan: Any) -> Any:
    return sf.inference(
        sf.Model.load(model), SYSTEM, sf.Plan(**plan), batch=batch, prompt=512, generate=32, stack="none"
    )


def passes(found: Any, phase: str) -> tuple[float, float, float]:
    """Seconds of one layer, of both ends and of a transfer to the next stage, each once."""
    each = {row.name: row.each_s for row in found.table() if row.name.startswith(f"{phase}/")}
    layer = sum(seconds for name, seconds in each.items() if "/layer/" in name)
    send = each[f"{phase}/pipeline/send"]
    return layer, sum(each.values()) - layer - send, send


def test_a_dense_model_by_hand() -> None:
    """One micro-batch passes all layers; five come at the pace of the fullest stage."""
    one = make("llama-2-7b", batch=1, pp=5, micro_batch=1)
    layer, ends, send = passes(one, "prefill")
    assert one.value("prefill") == pytest.approx(32 * layer + ends + 5 * send, rel=1e-9)
    five = one.bind(batch=5)
    assert five.value("prefill") == pytest.approx(one.value("prefill") + 4 * (7 * layer + send), rel=1e-2)
    assert sum(row.time_s for row in five.table()) == pytest.approx(five.value("time"), rel=1e-9)
    whole = make("llama-2-7b", batch=1, pp=1, micro_batch=1)
    part, all_ = one.memory_terms(), whole.memory_terms()
    assert part["kv_cache"] == pytest.approx(max(DEALT) / 32 * all_["kv_cache"], rel=1e-12)
    assert part["weights/layers"] == pytest.approx(max(DEALT) / 32 * all_["weights/layers"], rel=1e-12)
    assert part["weights/ends"] == 0


def test_a_stage_with_an_end_may_be_the_fullest() -> None:
    """Gemma's table is as large as several of its layers: the last stage has a copy, and a layer less."""
    found = make("gemma-2-2b", batch=1, pp=4).memory_terms()
    whole = make("gemma-2-2b", batch=1, pp=1).memory_terms()
    assert found["weights/ends"] > 0
    assert found["weights/layers"] == pytest.approx(6 / 26 * whole["weights/layers"], rel=1e-9)


@pytest.mark.parametrize(("model", "pp", "fullest"), [("deepseek-v3", 4, 16), ("kimi-k2", 6, 11)])
def test_models_of_61_layers_run_in_a_pipeline(model: str, pp: int, fullest: int) -> None:
    """Caches of the fullest stage; a token waits for all layers, and more sequences for the slowest stage."""
    found = make(model, batch=1, tp=8, pp=pp, ep=8, precision="fp8")
    whole = found.bind(pp=1)
    assert found.memory_terms()["kv_cache"] == pytest.approx(fullest / 61 * whole.memory_terms()["kv_cache"], rel=1e-9)
    assert found.value("decode") == pytest.approx(whole.value("decode"), rel=0.02)
    assert found.value("decode") > whole.value("decode")
    full = found.bind(batch=4 * pp, micro_batch=1)
    assert full.value("decode") / found.value("decode") == pytest.approx(4 * pp * fullest / 61, rel=0.05)


def test_more_stages_than_layers_are_refused() -> None:
    with pytest.raises(InputError, match=r"^pp: 33 stages, but llama-2-7b has 32 layers$"):
        make("llama-2-7b", batch=1, pp=33)


def test_a_search_tries_stages_that_do_not_divide_the_layers() -> None:
    """27 layers on two stages, as a single run has them."""
    model = sf.Model.load("deepseek-v2-lite")
    asked: dict[str, Any] = {"prompt": 512, "generate": 32}
    require = {"tp": 1, "pp": 2, "ep": 1, "precision": "bf16", "kv_precision": "bf16", "micro_batch": 2}
    found = search_inference(model, SYSTEM, devices=2, batch=[4], require=require, **asked)
    assert len(found)
    single = sf.inference(model, SYSTEM, sf.Plan(pp=2, micro_batch=2), batch=4, **asked)
    assert found["time_s"].iloc[0] == pytest.approx(single.value("time"), rel=1e-9)
