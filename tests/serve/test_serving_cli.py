"""`symperf serve`: tables, JSON, exit statuses, bad input, and no SymPy when warm."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from support.paths import ROOT

import symperf as sf
from symperf.cli import main
from symperf.report.serving import POINT_KEYS
from symperf.serve.definitions import DEFINITIONS

BASE = ["serve", "llama-2-7b", "-s", "a100-80gb-sxm", "--prompt", "512", "--generate", "64"]
KEYS = {
    "lockstep_replicas", "max_num_seqs",
    "model", "system", "stack", "devices", "replicas", "prompt", "generate", "chunk", "chunks_per_prompt",
    "prompts_per_chunk", "targets", "served", "fits", "memory_bytes", "capacity_bytes", "concurrency_limit", "capacity",
    "capacity_limit", "largest_load", "largest_load_limit", "alone", "shares", "curve", "disaggregation", "pools",
    "speculative", "adapters", "loop", "workload", "trace", "warnings", "kv_tokens", "kv_blocks", "longest_context",
    "model_context", "memory_utilization", "memory_parts", "mean_concurrency", "interval", *POINT_KEYS,
}  # fmt: skip


def answer(capsys: pytest.CaptureFixture[str], *more: str, status: int = 0) -> dict[str, Any]:
    assert main([*BASE, *more, "--json"]) == status
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert set(found) == KEYS | {"schema", "constants_version"}
    return found


def test_the_largest_load_meets_the_targets(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, "--ttft", "0.3", "--tpot", "0.03")
    assert found["served"]
    assert found["largest_load_limit"] in ("ttft", "tpot")
    assert found["load"] == found["largest_load"] < found["capacity"]
    assert found["ttft_s"] <= 0.3
    assert found["tpot_s"] <= 0.03
    assert 0 < found["utilisation"] < 1
    assert not found["saturated"]
    assert [set(each) for each in found["curve"]] == [set(POINT_KEYS)] * 10
    assert sum(found["shares"].values()) == pytest.approx(1)
    assert found["disaggregation"]["prefill_instances"] is None
    assert found["speculative"] is None


def test_without_targets_the_capacity_is_not_attained(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys)
    assert found["served"]
    assert found["largest_load"] == found["capacity"]
    assert found["largest_load_limit"] == found["capacity_limit"]
    assert found["load"] is None
    assert found["ttft_s"] is None
    assert found["curve"][-1]["utilisation"] == pytest.approx(0.95)


def test_the_documentation_lists_every_key() -> None:
    text = (ROOT / "docs" / "serving.md").read_text(encoding="utf-8")
    assert all(f"`{key}`" in text for key in KEYS)


def test_a_load_that_is_served(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, "--load", "2", "--ttft", "1")
    assert found["load"] == 2
    assert found["output_tokens_per_s"] == 128
    assert found["largest_load_limit"] == "ttft"


def test_requests_in_flight(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, "--concurrency", "32", "--dp", "2")
    assert found["loop"]["arrivals"] == "closed"
    assert found["loop"]["steady_ttft_s"] == found["ttft_s"]
    assert found["load"] * (found["ttft_s"] + 63 * found["tpot_s"]) == pytest.approx(32, rel=1e-12)
    run = answer(capsys, "--concurrency", "32", "--requests", "320", "--dp", "2")
    assert run["loop"]["arrivals"] == "benchmark"
    assert run["loop"]["steady_ttft_s"] == found["ttft_s"] < run["ttft_s"] < run["loop"]["burst_ttft_s"]
    assert run["load"] * run["loop"]["duration_s"] == pytest.approx(320)
    burst = answer(capsys, "--burst", "32", "--dp", "2")
    assert burst["loop"]["requests"] == 32
    assert burst["ttft_s"] == run["loop"]["burst_ttft_s"] < burst["loop"]["burst_last_ttft_s"]
    capped = answer(capsys, "--concurrency", "32", "--max-num-seqs", "4")
    assert capped["cache_wait_s"] > 10 * found["ttft_s"]
    assert capped["capacity_limit"] == "max_num_seqs"
    late = answer(capsys, "--concurrency", "32", "--ttft", "0.001", status=1)
    assert "32 requests in flight: misses a target" in late["warnings"][0]


def test_a_load_above_the_capacity_is_saturated(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, "--load", "1000", status=1)
    assert found["saturated"]
    assert not found["served"]
    assert found["utilisation"] >= 1
    rest = set(POINT_KEYS) - {"load", "load_per_replica", "utilisation", "saturated", "concurrency"}
    assert all(found[key] is None for key in rest)
    assert "saturated" in found["warnings"][0]


def test_a_load_that_misses_a_target(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, "--load", "2", "--tpot", "0.0001", status=1)
    assert not found["served"]
    assert not found["saturated"]
    assert "misses a target" in found["warnings"][0]


def test_targets_out_of_reach(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, "--ttft", "0.001", status=1)
    assert found["largest_load"] is None
    assert found["largest_load_limit"] == "ttft"
    assert "no load meets the targets: a request alone has TTFT" in found["warnings"][0]
    assert found["load"] is None


def test_a_model_that_does_not_fit(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "llama-2-70b", "-s", "a100-40gb-sxm", "--prompt", "9", "--generate", "9", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert set(found) == KEYS | {"schema", "constants_version"}
    assert not found["fits"]
    assert found["concurrency_limit"] == 0
    assert found["capacity"] is None
    assert found["curve"] == []
    assert "does not fit: needs" in found["warnings"][0]
    assert main(["serve", "llama-2-70b", "-s", "a100-40gb-sxm", "--prompt", "9", "--generate", "9"]) == 1
    assert "does not fit" in capsys.readouterr().out


def test_a_single_token_has_no_time_per_token(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, "--load", "1", "--set", "generate=1")
    assert found["tpot_s"] is None
    assert found["itl_s"] is None
    assert found["disaggregation"] is None
    assert found["e2e_s"] == found["ttft_s"]


def test_speculative_decoding_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, "--load", "1", "--draft", "llama-2-7b", "--acceptance", "0.6", "--draft-length", "2")
    assert found["speculative"]["draft_length"] == 2
    assert found["speculative"]["tokens_per_step"] == pytest.approx(1 + 0.6 + 0.36)
    assert found["speculative"]["speedup"] < 1  # a draft model as slow as the model


def test_tables_say_what_they_mean(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*BASE, "--tpot", "0.03", "--dp", "4"]) == 0
    text = capsys.readouterr().out
    for part in ("capacity", "largest load", "utilisation", "TTFT", "meaning", "instances", *DEFINITIONS):
        assert part in text
    assert main([*BASE, "--load", "1e6"]) == 1
    assert "saturated" in capsys.readouterr().out


def test_help_defines_every_metric(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--help"]) == 0
    text = capsys.readouterr().out
    assert all(definition in text for definition in DEFINITIONS.values())
    assert "Example:" in text


BAD = [
    (["--load", "-1"], "load: found -1.0, expected requests a second, 0 or more"),
    (["--load", "nan"], "load: found nan"),
    (["--load", "inf"], "load: found inf"),
    (["--ttft", "0"], "ttft: found 0.0, expected seconds above 0"),
    (["--ttft", "-1"], "ttft: found -1.0"),
    (["--tpot", "0"], "tpot: found 0.0"),
    (["--concurrency", "0"], "concurrency: found 0, expected a whole number"),
    (["--burst", "-2"], "burst: found -2, expected a whole number"),
    (["--max-num-seqs", "-1"], "max_num_seqs: found -1, expected a whole number from 0"),
    (["--load", "2", "--concurrency", "4"], "concurrency: found together with load, expected one load"),
    (["--burst", "2", "--concurrency", "4"], "burst: found together with concurrency, expected one load"),
    (["--requests", "4"], "requests: the length of a run with a number in flight, expected concurrency"),
    (["--requests", "4", "--concurrency", "8"], "requests: found 4 with concurrency 8, expected as many or more"),
    (["--prefix", "513"], "prefix: found 513, expected at most the 512 tokens of the shortest prompt"),
    (["--prefix", "400", "--prompt-spread", "0.5"], "prefix: found 400, expected at most the 256 tokens"),
    (["--prefix", "-1"], "prefix: found -1, expected a whole number from 0"),
    (["--prefix", "9", "--hit-rate", "1.5"], "hit_rate: found 1.5, expected a part of the requests from 0 to 1"),
    (["--turns", "2", "--hit-rate", "nan"], "hit_rate: found nan, expected a part of the requests"),
    (["--hit-rate", "0.5"], "hit_rate: nothing is there to be found again, expected prefix or turns"),
    (["--turns", "0"], "turns: found 0, expected a whole number from 1"),
    (["--prompt-spread", "1"], "prompt_spread: found 1.0, expected a part of the mean, from 0 to below 1"),
    (["--generate-spread", "-0.1"], "generate_spread: found -0.1, expected a part of the mean"),
    (["--max-generate", "63"], "max_generate: found 63, expected at least the longest, 64"),
    (["--chunk", "0"], "chunk: found 0, expected a whole number"),
    (["--chunk", "1.5"], "found '1.5', expected a whole number"),
    (["--acceptance", "0.5"], "acceptance: means something with a draft model only"),
    (["--draft", "llama-2-7b"], "acceptance: missing"),
    (["--draft", "llama-2-7b", "--acceptance", "-0.1"], "acceptance: found -0.1, expected a probability"),
    (["--draft", "llama-2-7b", "--acceptance", "1.5"], "acceptance: found 1.5, expected a probability"),
    (["--draft", "llama-2-7b", "--acceptance", "0.5", "--draft-length", "0"], "draft_length: found 0"),
    (["--draft", "llama-2-7b", "--acceptance", "0.5", "--draft-length", "99"], "draft_length: found 99"),
    (["--draft", "lama", "--acceptance", "0.5"], "lama"),
    (["--stack", "vlm"], "did you mean"),
    (["--tp", "3"], "tp: 3 does not divide"),
    (["--kv-precision", "fp7"], "kv_precision"),
    (["--set", "loadd=3"], "loadd"),
    (["--lod", "3"], "unknown argument '--lod'"),
]


@pytest.mark.parametrize(("more", "text"), BAD, ids=[" ".join(more) for more, _ in BAD])
def test_bad_input_is_one_clear_line(more: list[str], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*BASE, *more]) == 2
    out, error = capsys.readouterr()
    assert out == ""
    assert error.count("\n") == 1
    assert text in error


def test_python_refuses_the_same() -> None:
    model, system = sf.Model.load("llama-2-7b"), sf.System.load("a100-80gb-sxm")
    with pytest.raises(sf.InputError, match="prompt: found 0"):
        sf.serving(model, system, prompt=0, generate=1)
    with pytest.raises(sf.InputError, match="load: found True"):
        sf.serving(model, system, prompt=1, generate=1, load=True)


def test_a_warm_answer_needs_no_sympy() -> None:
    code = (
        "import sys; from symperf.cli import main; "
        f"main({[*BASE, '--ttft', '0.5']!r}); main({[*BASE, '--json']!r}); print('sympy' in sys.modules)"
    )
    for expected in (None, "False"):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        if expected:
            assert done.stdout.strip().endswith(expected)
