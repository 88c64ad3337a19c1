"""`inspect` against numbers that PyTorch counted on real architectures, to the last digit."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path
from typing import Any

import pytest

import symperf as sf

GOLDEN = Path(__file__).parent / "golden"


def rows(name: str) -> list[dict[str, str]]:
    """The rows of a golden table."""
    with (GOLDEN / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def golden_model(name: str) -> sf.Model:
    """The model as it was counted; its config is beside the tables where the catalogue's is another."""
    own = GOLDEN / "configs" / f"{name}.json"
    return sf.Model.load(own if own.exists() else name)


@pytest.mark.parametrize("row", rows("params.csv"), ids=lambda row: row["model"])
def test_parameters(row: dict[str, str]) -> None:
    """Total, tables, the rest, active and per layer."""
    found = sf.inspect(golden_model(row["model"]))
    assert found["parameters"] == {
        "total": int(row["params_total"]),
        "embedding": int(row["params_embedding"]),
        "non_embedding": int(row["params_non_embedding"]),
        "active_per_token": int(row["params_active_per_token"]),
        "per_layer": int(row["params_per_layer"]),
    }
    assert found["layers"] == [{"kind": "attention + MLP", "count": int(row["num_layers"])}]
    assert found["family"] == row["model_type"]


@pytest.mark.parametrize("row", rows("kv.csv"), ids=lambda row: row["model"])
def test_kv_bytes_per_token(row: dict[str, str]) -> None:
    """Bytes of a token in the caches of all layers while no window is full."""
    counted = int(row["bytes_per_token_theory_shapes"] or 0)
    counted = counted or int(row["bytes_per_token_growing"]) + int(row["bytes_per_token_within_window"])
    assert row["cache_dtype"] == "bfloat16"
    assert sf.inspect(golden_model(row["model"]))["kv_bytes_per_token"] == counted


def _fields(row: dict[str, str]) -> str:
    return "-".join(row[key] for key in ("model", "phase", "batch", "q_len"))


CLASSES = {
    "lm_head": "flops_lm_head",
    "projections": "flops_attn_proj",
    "attention_scores": "flops_attn_core",
    "mlp": "flops_mlp_dense",
    "total": "flops_total",
}
PREFILL = [row for row in rows("flops.csv") if row["phase"] == "prefill"]
FORWARD = [row for row in rows("flops.csv") if row["phase"].startswith("train_fwd") and row["attn_impl"] == "eager"]


@pytest.mark.parametrize("row", PREFILL, ids=_fields)
def test_forward_flops_by_class(row: dict[str, str]) -> None:
    """Every class of products of a forward pass, and their total; attention counted in full."""
    assert row["q_len"] == row["kv_len"]
    found = sf.inspect(golden_model(row["model"]), batch=int(row["batch"]), sequence=int(row["q_len"]))
    assert found["flops_forward"] == {name: int(row[column]) for name, column in CLASSES.items()}


@pytest.mark.parametrize("row", FORWARD, ids=_fields)
def test_training_flops(row: dict[str, str]) -> None:
    """A forward pass of training, and with its backward pass three times as much."""
    found = sf.inspect(golden_model(row["model"]), batch=int(row["batch"]), sequence=int(row["q_len"]))
    passes = {"train_fwd": 1, "train_fwd_bwd": 3}[row["phase"]]
    assert passes * found["flops_forward"]["total"] == int(row["flops_total"])


@pytest.mark.parametrize("row", PREFILL, ids=_fields)
def test_causal_half(row: dict[str, str]) -> None:
    """With the causal half only the visible pairs count; windows are not modelled, which a warning says."""
    model = golden_model(row["model"])
    length = int(row["q_len"])
    found = sf.inspect(model, batch=int(row["batch"]), sequence=length, causal_half=True)["flops_forward"]
    assert found["attention_scores"] == int(row["flops_attn_core"]) * (length + 1) // (2 * length)
    if not model.sliding_window or model.sliding_window >= length:
        assert found["attention_scores"] == int(row["flops_attn_core_unmasked"])
    assert found["total"] == sum(value for name, value in found.items() if name != "total")


def test_the_answer_is_json_of_whole_numbers() -> None:
    """Every count is an exact integer, however large, and the object is JSON."""

    def numbers(value: Any) -> list[Any]:
        if isinstance(value, dict):
            return [n for v in value.values() for n in numbers(v)]
        if isinstance(value, list):
            return [n for v in value for n in numbers(v)]
        return [value] if isinstance(value, int | float) else []

    found = sf.inspect(sf.Model.load("llama-3.1-405b"), batch=10**6 + 1, sequence=10**6 + 3)
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert all(isinstance(number, int) for number in numbers(found))
    scores = found["flops_forward"]["attention_scores"]
    assert scores == 4 * (10**6 + 1) * (10**6 + 3) ** 2 * 128 * 128 * 126
    assert math.log2(scores) > 64


@pytest.mark.parametrize("wrong", [{"batch": 0}, {"sequence": -1}, {"batch": 1.5}, {"sequence": True}])
def test_bad_sizes_are_refused(wrong: dict[str, Any]) -> None:
    """Batch and sequence are positive whole numbers."""
    with pytest.raises(sf.InputError, match=f"{next(iter(wrong))}: found"):
        sf.inspect(sf.Model.load("gpt2"), **wrong)
