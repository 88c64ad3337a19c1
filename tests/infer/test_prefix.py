"""Prompts whose first tokens are in the cache."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.effort import some

import symperf as sf
from symperf.cli import main
from symperf.runs.inference_run import InferenceRun

MODELS = ("llama-3.1-8b", "deepseek-v2-lite", "gemma-2-9b", "qwen3-next-80b-a3b")


def run(model: str, prefix: int, prompt: int = 2048, **more: Any) -> InferenceRun:
    system = sf.System.load("h200-sxm")
    plan = sf.Plan(**{name: more.pop(name) for name in list(more) if name in sf.Plan.names()})
    return InferenceRun(sf.Model.load(model), system, plan, batch=4, prompt=prompt, generate=32, prefix=prefix, **more)


@pytest.mark.parametrize("model", some(MODELS))
def test_a_longer_prefix_is_never_slower_and_decoding_is_the_same(model: str) -> None:
    plain = run(model, 0)
    last = plain.value("prefill")
    for prefix in (256, 1920):
        found = run(model, prefix)
        assert found.value("prefill") < last
        last = found.value("prefill")
        assert found.value("time_per_token") == plain.value("time_per_token")
        assert found.memory_terms()["kv_cache"] == plain.memory_terms()["kv_cache"]
    assert found.value("prefill") > run(model, 0, prompt=2048 - 1920).value("prefill") * (1 - 1e-9)


def test_new_tokens_see_the_prefix() -> None:
    """Pairs of attention: all of the prompt's, less those of the prefix among itself."""
    prompt, prefix, batch, heads, width = 2048, 1500, 4, 32, 128
    found = run("llama-3.1-8b", prefix)
    (core,) = (row for row in found.table() if row.name == "prefill/layer/attention/flash")
    pairs = (prompt * (prompt + 1) - prefix * (prefix + 1)) / 2
    assert core.flops / core.count == pytest.approx(4 * batch * heads * width * pairs)
    (product,) = (each for each in found.operations() if each.name == "layer/mlp/down" and each.phase == "prefill")
    assert product.m == batch * (prompt - prefix)


def test_a_prefix_on_the_host_comes_over_the_link() -> None:
    alone = {"overlap_offload": 0.0}
    found, kept = (run("llama-3.1-8b", 1536, offload=what, values=alone if what else None) for what in ("cache", None))
    moved = 4 * 2048 * 32 * 2 * 8 * 128 * 2 / found.bound["host_bandwidth"][0]
    assert found.value("prefill") - kept.value("prefill") == pytest.approx(moved)


def test_no_prefix_is_as_before() -> None:
    found = run("llama-3.1-8b", 0)
    assert not found.structure.prefixed
    assert not {"cached_tokens", "fresh_tokens"} & {*found.compiled.program.inputs}


def test_the_verb_tells_what_is_cached(capsys: pytest.CaptureFixture[str]) -> None:
    words = [
        "infer",
        "llama-3.1-8b",
        "-s",
        "h200-sxm",
        "--batch",
        "4",
        "--prompt",
        "2048",
        "--generate",
        "32",
        "--prefix",
    ]
    assert main([*words, "1024", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["prefill_s"] == pytest.approx(run("llama-3.1-8b", 1024).value("prefill"))
    assert main([*words, "1024"]) == 0
    assert "1024 tokens of each prompt are in the cache" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("llama-3.1-8b --prefix 64", "prefix: found 64, expected at most 63 of the 64 tokens of a prompt"),
        ("llama-3.1-8b --prefix 99", "prefix: found 99, expected at most 63"),
        ("llama-3.1-8b --prefix -1", "prefix: found -1, expected a whole number from 0"),
        ("t5-base --prefix 8", "t5-base has an encoder"),
        ("deepseek-v4-flash --prefix 8", "not modelled for the attention of deepseek-v4-flash"),
    ],
)
def test_what_is_no_prefix_is_refused(capsys: pytest.CaptureFixture[str], words: str, told: str) -> None:
    assert main(["infer", *words.split(), "-s", "h100-sxm", "--batch", "1", "--prompt", "64", "--generate", "8"]) == 2
    assert told in capsys.readouterr().err
