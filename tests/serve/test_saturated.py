"""Saturated engines: generated tokens a second that TensorRT-LLM publishes of Llama-3.1-8B under FP8."""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path

import pytest

import symperf as sf
from symperf.serve.request import ServingRequest
from symperf.serve.serving import Serving

ROWS = Path(__file__).parents[1] / "golden" / "saturated.csv"
STACK = "tensorrt-llm-0.13"


@cache
def errors() -> dict[tuple[str, str, int, int], float]:
    """What is predicted over what was measured, less one, by system, version, prompt and generation."""
    model, found = sf.Model.load("llama-3.1-8b"), {}
    with ROWS.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            prompt, generate = int(row["prompt"]), int(row["generate"])
            serving = Serving(
                model,
                sf.System.load(row["system"]),
                sf.Plan(precision="fp8"),
                ServingRequest(prompt, generate),
                stack=STACK,
                kv_precision="fp8",
            )
            assert serving.steady is not None
            predicted = serving.steady.capacity.load * generate
            found[row["system"], row["version"], prompt, generate] = predicted / float(row["tokens_per_s"]) - 1
    return found


def test_all_rows_are_scored() -> None:
    assert len(errors()) == 30


def test_the_mean_error_is_small() -> None:
    found = errors().values()
    assert sum(map(abs, found)) / len(found) < 0.065
    assert sum(found) / len(found) == pytest.approx(0, abs=0.04)


@pytest.mark.parametrize("system", ["h100-sxm", "h200-sxm"])
def test_none_is_far_off(system: str) -> None:
    assert max(abs(error) for key, error in errors().items() if key[0] == system) < 0.17
