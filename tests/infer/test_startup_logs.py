"""Start-up lines of vLLM and SGLang in public issues: tokens of the cache, weights and peaks, by their options.

Constants of memory come from other logs than those of use=test; each row names its issue.
"""

from __future__ import annotations

import csv
from typing import Any

import pytest
from support.paths import GOLDEN

import symperf as sf

GIB = 2.0**30
with (GOLDEN / "startup_logs.csv").open(encoding="utf-8", newline="") as _file:
    LOGS = {row["name"]: row for row in csv.DictReader(_file)}
TESTED = [name for name, row in LOGS.items() if row["use"] == "test"]


def _room(row: dict[str, str]) -> Any:
    """The room of a log: its context is one sequence, other options that it states are values of symbols."""
    run = sf.inference(
        row["model"],
        row["system"],
        sf.Plan(tp=int(row["tp"]), precision=row["precision"]),
        batch=1,
        prompt=int(row["length"]) - 1,
        generate=1,
        stack=row["stack"],
        **{name: float(row[name]) for name in ("chunk", "max_num_seqs", "memory_utilization") if row[name]},
    )
    return run.room()


@pytest.mark.parametrize("name", TESTED)
def test_tokens_of_the_cache_are_those_that_software_prints(name: str) -> None:
    row = LOGS[name]
    room = _room(row)
    assert room.kv_tokens == pytest.approx(int(row["tokens"]), rel=0.03)
    assert room.kv_tokens == room.kv_blocks * room.block
    assert room.concurrency == pytest.approx(int(row["tokens"]) / int(row["length"]), rel=0.03)


@pytest.mark.parametrize("name", [name for name, row in LOGS.items() if row["weights_gib"]])
def test_weights_are_those_that_vllm_prints(name: str) -> None:
    """But for a table of angles of the rotary positions, 0.03 GiB of Llama 3.1."""
    assert _room(LOGS[name]).weights / GIB == pytest.approx(float(LOGS[name]["weights_gib"]), abs=0.035)


@pytest.mark.parametrize("name", [name for name, row in LOGS.items() if row["peak_gib"]])
def test_the_peak_of_a_step_is_the_one_that_vllm_measures(name: str) -> None:
    """Inside a layer where a step has many tokens, in sampling where the vocabulary is large."""
    assert _room(LOGS[name]).reserved / GIB == pytest.approx(float(LOGS[name]["peak_gib"]), rel=0.04)


def test_every_log_is_used_or_says_why_not() -> None:
    assert all(
        row["use"] in ("test", "calibration") or (row["use"] == "left out" and row["note"]) for row in LOGS.values()
    )
    assert all(row["url"].startswith("https://github.com/vllm-project/vllm/") for row in LOGS.values())
    assert len({LOGS[name]["url"] for name in TESTED}) == 5
