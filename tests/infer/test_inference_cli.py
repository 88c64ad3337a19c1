"""`symperf infer`: the JSON of the public contract, the tables, and one clear line for bad input."""

from __future__ import annotations

import json
from typing import Any

import pytest

import symperf as sf

INFER = ["infer", "llama-2-7b", "-s", "h100-sxm", "--batch", "2", "--prompt", "100", "--generate", "20"]
PHASES = {"prefill", "decode"}


def refuse(constant: str) -> None:
    raise AssertionError(constant)


def answer(call: Any, *arguments: str) -> Any:
    code, out, err = call([*arguments, "--json"])
    assert (code, err) == (0, "")
    return json.loads(out, parse_constant=refuse)


def test_json_has_every_key_of_the_contract(call: Any) -> None:
    data = answer(call, *INFER, "--tp", "2")
    for key in ("prefill_s", "decode_s", "time_s", "time_per_token_s", "tokens_per_s"):
        assert isinstance(data[key], float), key
        assert data[key] > 0
    assert data["time_s"] == pytest.approx(data["prefill_s"] + data["decode_s"])
    assert data["time_per_token_s"] == pytest.approx(data["decode_s"] / 19)
    assert data["tokens_per_s"] == pytest.approx(2 * 20 / data["time_s"])
    memory = data["memory_bytes"]
    assert set(memory) == {"weights", "kv_cache", "activations", "workspace", "total"}
    assert sum(value for name, value in memory.items() if name != "total") == pytest.approx(memory["total"])
    assert data["fits"] is True
    assert data["capacity_bytes"] == 79.18 * 2**30
    assert sum(data["shares"].values()) == pytest.approx(1)
    assert {row["phase"] for row in data["operations"]} == PHASES
    for row in data["operations"]:
        assert set(row) == {"phase", "name", "m", "n", "k", "count", "time_s", "bound"}
        assert row["bound"] is None or row["bound"] in data["shares"]
        assert all(row[letter] is None or (type(row[letter]) is int and row[letter] > 0) for letter in "mnk")
    assert sum(row["time_s"] for row in data["operations"]) == pytest.approx(data["time_s"])
    for row in data["breakdown"]:
        assert {"name", "time_s", "share", "bound", "flops", "bytes"} <= set(row)
    assert sum(row["share"] for row in data["breakdown"]) == pytest.approx(1)
    assert data["warnings"] == []


def test_products_have_the_shapes_of_the_model(call: Any) -> None:
    shapes = {(row["phase"], row["name"]): (row["m"], row["n"], row["k"]) for row in answer(call, *INFER)["operations"]}
    assert shapes["prefill", "layer/attention/qkv"] == (200, 3 * 4096, 4096)
    assert shapes["decode", "layer/mlp/down"] == (2, 4096, 11008)
    assert shapes["decode", "head/logits"] == (2, 32000, 4096)
    assert shapes["prefill", "head/logits"] == (2, 32000, 4096)
    assert shapes["decode", "layer/attention/norm"] == (None, None, None)


def test_tables_show_both_phases_and_the_software(call: Any) -> None:
    code, out, err = call([*INFER, "--stack", "vllm"])
    assert (code, err) == (0, "")
    for text in ("prefill", "decode", "MBU", "layer/mlp/gate_up", "vLLM", "step_latency", "would fit"):
        assert text in out
    lines = out.splitlines()
    assert sum("layer/mlp/down" in line for line in lines) == 2


def test_help_defines_the_metrics(call: Any) -> None:
    code, out, _ = call(["infer", "--help"])
    assert code == 0
    for text in ("TTFT", "TPOT", "first generated token", "MBU", "Example"):
        assert text in out


def test_stacks_are_listed(call: Any) -> None:
    names = [row["name"] for row in answer(call, "list", "stacks")["stacks"]]
    assert {"fastertransformer", "tensorrt-llm", "vllm", "none"} <= set(names)


def test_the_cache_that_does_not_fit_says_how_many_sequences_would(call: Any) -> None:
    data = answer(call, *INFER, "--batch", "4000")
    assert data["fits"] is False
    (text,) = (text for text in data["warnings"] if "does not fit" in text)
    fit = data["sequences_that_fit"]
    assert f"{fit} of 4000 sequences fit" in text
    assert answer(call, *INFER, "--batch", str(fit))["fits"]
    assert not answer(call, *INFER, "--batch", str(fit + 1))["fits"]


def test_weights_that_do_not_fit_say_so(call: Any) -> None:
    data = answer(call, "infer", "llama-2-70b", *INFER[2:])
    assert data["fits"] is False
    assert data["sequences_that_fit"] == 0
    assert any("not one of" in text for text in data["warnings"])


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ("llama-2-7b --prompt 4000 --generate 200", "4200 exceeds the 4096 tokens"),
        ("llama-2-70b --tp 16 --set scale_up_size=16", "tp = 16 exceeds 8 key-value heads"),
        ("llama-2-7b --zero 1", "zero: means nothing in inference"),
    ],
)
def test_warnings(call: Any, arguments: str, text: str) -> None:
    model, *rest = arguments.split()
    data = answer(call, "infer", model, *INFER[2:], *rest)
    assert any(text in warning for warning in data["warnings"])


BAD = [
    ("--generate 0", ["generate: found 0, expected a whole number from 1"]),
    ("--batch 0", ["batch: found 0"]),
    ("--prompt -3", ["prompt: found -3"]),
    ("--prompt 1.5", ["--prompt", "'1.5'", "whole number"]),
    ("--precision fp7", ["precision: found 'fp7'", "fp8"]),
    ("--kv-precision fp4", ["kv_precision: found 'fp4'", "fp8"]),
    ("--stack vlm", ["stack: found 'vlm'", "did you mean vllm"]),
    ("--stack missing.toml", ["missing.toml: no such file"]),
    ("--tp 3", ["tp: 3 does not divide the 32 attention heads"]),
    ("--pp 33", ["pp: 33 stages, but", "32 layers"]),
    ("--dp 3", ["batch: 2 sequences are not divisible"]),
    ("--set prompts=3", ["unknown symbol 'prompts'", "prompt"]),
    ("--set gap_latency=-1", ["gap_latency: found -1"]),
    ("--set graph_removal=2", ["graph_removal: found 2"]),
    ("--set kv_block=0.5", ["kv_block: found 0.5"]),
    ("--set weight_bytes=inf", ["weight_bytes"]),
    ("--promt 3", ["unknown argument '--promt'", "--prompt"]),
]


@pytest.mark.parametrize(("flags", "says"), BAD, ids=[flags for flags, _ in BAD])
def test_bad_input_is_one_clear_line(call: Any, flags: str, says: list[str]) -> None:
    code, out, err = call([*INFER, *flags.split()])
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    for text in says:
        assert text in err


STACK = """
name = "mine"
[fusion]
residual_norm = true
rotary_cache = true
gate_up = true
split_context = true
fused_prefill = true
[gap_latency]
value = "1 us"
[graph_removal]
value = 0.5
[step_latency]
value = "1 ms"
[sampling_kernels]
value = 3
[kv_block]
value = 32
"""


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ('"1 us"', '"1 km"', "gap_latency.value: "),
        ("gate_up = true", "gate_up = 1", "fusion.gate_up: found 1, expected true or false"),
        ("gate_up", "gate_upp", "fusion: unknown key 'gate_upp'; did you mean gate_up?"),
        ("[kv_block]\nvalue = 32", "", "missing kv_block"),
        ("[kv_block]", "[kv_blok]", "unknown key 'kv_blok'; did you mean kv_block?"),
        ('name = "mine"', "name = ", "not valid TOML"),
        ("value = 0.5", "value = 1.5", "graph_removal.value: found 1.5"),
    ],
)
def test_a_stack_of_the_users_own(call: Any, tmp_path: Any, before: str, after: str, says: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(STACK, encoding="utf-8")
    assert answer(call, *INFER, "--stack", str(path))["stack"] == "mine"
    path.write_text(STACK.replace(before, after), encoding="utf-8")
    code, out, err = call([*INFER, "--stack", str(path)])
    assert (code, out) == (2, "")
    assert says in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("wrong", [{"batch": "2"}, {"prompt": True}, {"generate": float("nan")}, {"stack": 3}])
def test_python_refuses_wrong_types(wrong: dict[str, Any]) -> None:
    work: dict[str, Any] = {"batch": 1, "prompt": 2, "generate": 3} | wrong
    with pytest.raises(sf.InputError, match=next(iter(wrong))):
        sf.inference(sf.Model.load("llama-2-7b"), sf.System.load("h100-sxm"), **work)
