"""Attention to selected keys in inference, against sums over tokens: what is scored, gathered and kept."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest
from support.known_kernels import known
from support.paths import GOLDEN_2026

import symperf as sf
from symperf.formulas.kernels.sparse_selection import block_keys
from symperf.models.model import make_model

NAMES = ("deepseek-v3.2", "minimax-m3-vl")
TOP = 2048
"""Keys that a query of either model selects."""
PAIR = {"deepseek-v3.2": 2 * 64 * 128, "minimax-m3-vl": 2 * 4 * 128}
"""FLOPs of the indexer's score of a query and a key."""
EACH = {"deepseek-v3.2": 2 * 128 * (2 * 512 + 64), "minimax-m3-vl": 4 * 64 * 128}
"""FLOPs of attention of a token to a key."""
INDEX = {"deepseek-v3.2": 132, "minimax-m3-vl": 256}
"""Bytes of an indexer's cached key: 8 bits and a scale beside latents, else as activations."""


@cache
def model(name: str) -> sf.Model:
    """A golden model."""
    return sf.Model.load(GOLDEN_2026 / "configs" / f"{name}.json")


def inference(name: str, system: Any = "h200-sxm", tp: int = 1, **work: Any) -> Any:
    """A run in 16 bits."""
    work = {"batch": 2, "prompt": 3000, "generate": 5, "stack": "none"} | work
    return sf.inference(model(name), system, sf.Plan(precision="bf16", tp=tp), **work)


def rows(run: Any) -> dict[str, Any]:
    """Rows of the sparse layers that have experts, by phase and name."""
    (kind,) = (k for k in run.model.architecture.kinds if k.traits and k.ffn == "experts")
    return {
        f"{row.name.partition('/')[0]}/{row.name.rpartition('/')[2]}": row
        for row in run.table()
        if f"/{kind.label}/attention/" in row.name
    }


def seen(name: str, tokens: int) -> int:
    """Keys that the query at the end of so many tokens sees."""
    return min(tokens, TOP) if name == "deepseek-v3.2" else int(block_keys(tokens, 16, 128))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("prompt", [100, 2048, 5000])
def test_prefill_scores_every_pair_and_computes_those_that_are_selected(name: str, prompt: int) -> None:
    found = rows(inference(name, prompt=prompt))
    scores, core = found["prefill/index_scores"], found["prefill/flash"]
    assert scores.flops / scores.count == pytest.approx(2 * PAIR[name] * prompt * (prompt + 1) // 2)
    keys = sum(seen(name, token) for token in range(1, prompt + 1))
    assert core.flops / core.count == pytest.approx(2 * EACH[name] * keys)


@pytest.mark.parametrize("prompt", [100, 2046, 9000])
def test_a_step_scores_every_key_and_reads_those_that_it_selects(prompt: int) -> None:
    """Over whole steps, of latents: the mean of contexts from the prompt's first step on."""
    found = rows(inference("deepseek-v3.2", prompt=prompt))
    contexts = range(prompt + 1, prompt + 5)
    scores, core = found["decode/index_scores"], found["decode/flash"]
    assert scores.flops / scores.count == pytest.approx(2 * PAIR["deepseek-v3.2"] * sum(contexts) / 4)
    bound = min(sum(contexts) / 4, TOP)
    assert core.flops / core.count == pytest.approx(2 * EACH["deepseek-v3.2"] * bound)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("families", [("selection", "selected"), ("selected",)])
def test_steps_are_summed_exactly_over_a_growing_context(name: str, families: tuple[str, ...]) -> None:
    """One generation of eight steps takes as long as eight of one, across the end of the selection's growth."""
    system = known("h200-sxm", *families, slot_share=0.3)
    whole = rows(inference(name, system, prompt=2044, generate=9))
    for end in ("index_scores", "flash"):
        each = [rows(inference(name, system, prompt=2044 + step, generate=2))[f"decode/{end}"] for step in range(8)]
        assert whole[f"decode/{end}"].each_s == pytest.approx(sum(row.each_s for row in each))


@pytest.mark.parametrize("name", NAMES)
def test_caches_hold_the_indexer_s_keys(name: str) -> None:
    """A token caches latents or keys and values, and one index key in each layer that has an indexer."""
    run, sizes = inference(name, kv_precision="fp8", batch=1, prompt=1024, generate=1024), model(name).sizes
    elements = 576 if name == "deepseek-v3.2" else 2 * 4 * 128
    layers = sum(sizes[kind.count] for kind in run.model.architecture.kinds)
    indexed = sum(sizes[kind.count] for kind in run.model.architecture.kinds if kind.traits)
    assert run.memory_terms()["kv_cache"] == pytest.approx(2048 * (layers * elements + indexed * INDEX[name]))


def test_an_indexer_beside_latents_is_whole_on_every_device() -> None:
    one, eight = (rows(inference("deepseek-v3.2", tp=tp)) for tp in (1, 8))
    for name in ("prefill/index_scores", "prefill/index_query", "decode/index_key"):
        assert one[name].flops == pytest.approx(eight[name].flops)
    assert one["prefill/flash"].flops == pytest.approx(8 * eight["prefill/flash"].flops)


def test_an_indexer_of_blocks_is_dealt_as_key_value_heads() -> None:
    one, four, eight = (rows(inference("minimax-m3-vl", tp=tp)) for tp in (1, 4, 8))
    assert one["prefill/index_scores"].flops == pytest.approx(4 * four["prefill/index_scores"].flops)
    assert four["prefill/index_scores"].flops == pytest.approx(eight["prefill/index_scores"].flops)
    # 16 heads of queries, a key and a value; a query and a key of the indexer.
    assert four["prefill/qkv"].flops / 57 == pytest.approx(2 * 6000 * 6144 * 128 * (16 + 2 + 2))


def test_layers_that_reuse_an_index_have_no_indexer() -> None:
    data = {**_config("glm-5"), "indexer_types": ["full", "shared"] * 39}
    reuse = make_model("glm", "a test", data, "glm.json")
    run = sf.inference(reuse, "h200-sxm", sf.Plan(precision="bf16"), batch=1, prompt=4096, generate=4, stack="none")
    names = {row.name for row in run.table() if "index_" in row.name}
    shared = [kind.label for kind in reuse.architecture.kinds if "reused_index" in kind.traits]
    assert shared
    assert names
    assert not any(f"/{label}/" in name for label in shared for name in names)
    assert all(f"prefill/layer/{label}/attention/flash" in {row.name for row in run.table()} for label in shared)


def _config(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((GOLDEN_2026 / "configs" / f"{name}.json").read_text(encoding="utf-8"))
    return found


def test_longer_contexts_cost_less_than_attention_to_all_keys() -> None:
    """Beyond the selection only the indexer grows: of a step over 100,000 keys attention to latents is a small part."""
    found = rows(inference("deepseek-v3.2", prompt=100_000))
    assert found["decode/flash"].each_s < found["decode/index_scores"].each_s * 5
    short = rows(inference("deepseek-v3.2", prompt=50_000))
    assert found["decode/flash"].each_s == pytest.approx(short["decode/flash"].each_s)
