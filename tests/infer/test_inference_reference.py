"""Inference against published latencies, with the constants of the catalogue; the rows only score."""

from __future__ import annotations

import csv

import pytest
from support.paths import GOLDEN

import symperf as sf
from symperf.serve.engine import WAY
from symperf.validation.inference_references import STACK

with (GOLDEN / "reference_inference.csv").open(encoding="utf-8", newline="") as file:
    ROWS = list(csv.DictReader(file))
OUTSIDE = {"host_latency", *WAY}
"""Latencies of the host beside its steps, and of a request outside the engine."""


def _error(row: dict[str, str]) -> float:
    run = sf.inference(
        sf.Model.load(row["model"]),
        sf.System.load(row["system"]),
        sf.Plan(tp=int(row["tp"]), precision=row["precision"]),
        batch=int(row["batch"]),
        prompt=int(row["prompt"]),
        generate=int(row["generate"]),
        stack=STACK,
    )
    return run.value("time") / float(row["measured_s"]) - 1


def test_there_are_22_rows_and_all_only_score() -> None:
    assert len(ROWS) == 22
    assert {row["use"] for row in ROWS} == {"test"}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['model']} {row['system']} tp{row['tp']}")
def test_no_reference_row_is_off_by_more_than_10_percent(row: dict[str, str]) -> None:
    assert abs(_error(row)) <= 0.1


def test_the_mean_absolute_error_of_the_reference_rows_is_at_most_4_percent() -> None:
    errors = [_error(row) for row in ROWS]
    assert sum(map(abs, errors)) / len(errors) <= 0.04


def test_the_stacks_hold_at_most_two_latencies() -> None:
    from symperf.infer.stack import Stack, names

    for name in names():
        stack = Stack.load(name)
        assert {key for key in stack.quantities if key.endswith("_latency")} - OUTSIDE <= {
            "gap_latency",
            "step_latency",
        }
        assert all(quantity.source for quantity in stack.quantities.values())
        assert stack.source
