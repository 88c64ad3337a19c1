"""A plan for inference against the best of a search, and the fewest devices within a time."""

from __future__ import annotations

import json
from typing import Any

import pytest

import symperf as sf
from symperf.analysis import Unreachable
from symperf.cli import main
from symperf.common.errors import InputError
from symperf.plan_search.inference.search import InferenceAnswer, answer_inference
from symperf.plan_search.inference.versus import fewest_devices, time_of, versus

MODEL, H100 = sf.Model.load("llama-3.1-8b"), sf.System.load("h100-sxm")
REQUIRE = {"precision": ["bf16"], "kv_precision": ["bf16"]}


def _search(model: sf.Model = MODEL, **how: Any) -> InferenceAnswer:
    asked = {"devices": 4, "prompt": 512, "generate": 64, **how}
    return answer_inference(model, H100, require=REQUIRE, **asked)


@pytest.fixture(scope="module")
def loads() -> InferenceAnswer:
    return _search(ttft=1.0, tpot=0.02)


@pytest.fixture(scope="module")
def batches() -> InferenceAnswer:
    return _search(devices=[1, 2, 4], batch=16)


def test_the_best_plan_is_the_best(loads: InferenceAnswer, batches: InferenceAnswer) -> None:
    for answer in (loads, batches):
        fields = {name: value for name, value in answer.winner.fields.items() if value is not None}
        found = versus(answer, fields)
        assert (found.verdict, found.behind) == ("the best", 0)


def test_differences_of_resources_sum_to_that_of_the_times(loads: InferenceAnswer, batches: InferenceAnswer) -> None:
    for answer, fields in ((loads, {"tp": 4}), (loads, {"pp": 2, "chunk": 512}), (batches, {"tp": 2, "pp": 2})):
        found = versus(answer, fields)
        assert found.verdict == "worse"
        assert found.plan is not None
        assert found.behind is not None
        assert found.behind > 0
        difference = time_of(found.plan)[1] - time_of(found.winner)[1]
        assert sum(term.difference for term in found.terms) == pytest.approx(difference, rel=1e-6, abs=1e-12)


def test_a_plan_has_the_numbers_of_the_search_that_finds_it(loads: InferenceAnswer) -> None:
    found = versus(loads, {"tp": 4, "chunk": 512}).plan
    (alone,) = answer_inference(
        MODEL, H100, devices=4, prompt=512, generate=64, ttft=1.0, tpot=0.02,
        require={**REQUIRE, "tp": [4], "chunk": [512]},
    ).records  # fmt: skip
    assert found is not None
    assert found.measures == alone.measures


def test_what_cannot_run_says_why(loads: InferenceAnswer, batches: InferenceAnswer) -> None:
    assert versus(loads, {"tp": 3, "dp": 1}).verdict == "refused"
    assert "the search is of 4" in versus(loads, {"tp": 2, "dp": 1}).reason
    ruled = versus(batches, {"dp": 4, "micro_batch": 8})
    assert (ruled.verdict, ruled.rule) == ("refused", "batch_is_not_divisible")
    big = _search(sf.Model.load("llama-3.1-70b"), tpot=0.05, ttft=2.0)
    assert versus(big, {"tp": 1}).verdict == "does not fit"
    strict = _search(ttft=1.0, tpot=0.0045)
    missed = versus(strict, {"tp": 1})
    assert (missed.verdict, missed.rule) == ("misses a limit", "tpot_out_of_reach")
    with pytest.raises(InputError, match="no choice 'tq'"):
        versus(loads, {"tq": 1})


def test_the_fewest_devices_are_those_of_the_first_batch_that_is_fast_enough(batches: InferenceAnswer) -> None:
    times = {n: min(p.time for p in batches.plans if p.question.devices == n) for n in (1, 2, 4)}
    assert times[4] < times[2] < times[1]
    for devices, time in times.items():
        found = fewest_devices(batches, time)
        assert (found.measures["devices"], found.measures["time_s"]) == (devices, time)
    with pytest.raises(Unreachable, match="the fastest takes"):
        fewest_devices(batches, times[4] / 2)


def test_the_command_line_tells_both(capsys: pytest.CaptureFixture[str]) -> None:
    base = ["search", "llama-3.1-8b", "-s", "h100-sxm", "--devices", "1,2", "--prompt", "512", "--generate", "64"]
    base += ["--require", "precision=bf16", "--require", "kv_precision=bf16"]
    assert main([*base, "--batch", "16", "--within", "5", "--explain", "pp=2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["within"]["devices"], found["explained"]["verdict"]) == (1, "worse")
    assert main([*base, "--batch", "16", "--within", "5", "--explain", "pp=2"]) == 0
    text = capsys.readouterr().out
    assert "1 device is the fewest searched" in text
    assert "worse than the best" in text
    assert main([*base, "--tpot", "0.05", "--within", "5"]) == 2
    assert "within: is of a static batch" in capsys.readouterr().err
    assert main([*base, "--tpot", "0.05", "--within", "5", "--csv"]) == 2
    assert "found --csv with --explain or --within" in capsys.readouterr().err
