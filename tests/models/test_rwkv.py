"""RWKV-7: parameters of its released models to the last, and what files may say."""

from __future__ import annotations

import json
from typing import Any

import pytest

import symperf as sf
from symperf.models.catalogue import CATALOGUE
from symperf.models.model import make_model

RELEASED = {
    "rwkv7-world-0.19b": 191_034_624,
    "rwkv7-world-0.4b": 450_767_872,
    "rwkv7-world-1.5b": 1_527_404_544,
    "rwkv7-world-2.9b": 2_947_735_040,
}
"""Parameters of the released models: Peng et al. 2025 (arXiv 2503.14456), table of released models."""


def rwkv(**changes: Any) -> sf.Model:
    """The smallest released model with other keys."""
    data = json.loads(CATALOGUE.path("rwkv7-world-0.19b").read_text(encoding="utf-8"))
    found = {key: value for key, value in (data | changes).items() if value != "gone"}
    return make_model("rwkv", "test", found, "rwkv.json")


@pytest.mark.parametrize(("name", "parameters"), RELEASED.items())
def test_released_models_have_the_parameters_of_the_paper(name: str, parameters: int) -> None:
    """And by its formula: 2 D V + 4 D + L D (12 D + 2 (d_w + d_a + d_v + d_g) + 19) - (2 D d_v + D)."""
    model = sf.Model.load(name)
    sizes = model.sizes
    h, layers = sizes["hidden_size"], sizes["num_layers"]
    narrow = sum(sizes[each] for each in ("decay_rank", "rate_rank", "value_rank", "gate_rank"))
    formula = 2 * h * sizes["vocab_size"] + 4 * h + layers * h * (12 * h + 2 * narrow + 19)
    formula -= 2 * h * sizes["value_rank"] + h
    assert sf.inspect(model)["parameters"]["total"] == formula == parameters


def test_a_sequence_keeps_matrices_and_two_tokens_a_layer() -> None:
    found = sf.inspect(sf.Model.load("rwkv7-world-1.5b"))["kv_cache"]
    assert found["state_bytes_per_sequence"] == 24 * (32 * 64 * 64 * 4 + 2 * 2048 * 2)
    assert found["growing_bytes_per_token"] == 0


def test_a_step_by_hand() -> None:
    """States in and out and eight vectors a head; four products with the state, which torch would count."""
    system, plan = sf.System.load("h100-sxm"), sf.Plan()
    run = sf.inference("rwkv7-world-1.5b", system, plan, batch=3, prompt=16, generate=2, stack="none")
    (update,) = [row for row in run.table() if row.name == "decode/layer/wkv_dense_2/wkv/state_update"]
    assert update.bytes == 23 * 3 * (2 * 32 * 64 * 64 * 4 + 32 * (5 * 64 + 2 * 64) * 2)
    assert update.flops == 23 * 3 * 9 * 32 * 64 * 64
    inspected = sf.inspect(sf.Model.load("rwkv7-world-1.5b"), batch=3, context=16)
    assert inspected["flops_ssm"]["scan"] == 24 * 3 * 8 * 32 * 64 * 64


def test_several_ways_to_say_the_same() -> None:
    first = rwkv()
    for other in (
        rwkv(num_heads="gone"),
        rwkv(head_dim=None),
        rwkv(intermediate_size=None),
        rwkv(intermediate_size="gone", hidden_ratio="gone"),
        rwkv(value_dim=768),
        rwkv(value_dim=[768] * 12),
    ):
        assert (other.sizes, other.architecture) == (first.sizes, first.architecture)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"attn": {"layers": [3], "num_heads": 12}}, "attn"),
        ({"head_dim": 63}, "head_dim"),
        ({"head_dim": 32}, "num_heads"),
        ({"value_dim": [768] * 11 + [1536]}, "value_dim"),
        ({"value_dim": 767}, "value_dim"),
        ({"value_dim": []}, "value_dim"),
        ({"v_low_rank_dim": "gone"}, "v_low_rank_dim"),
        ({"hidden_ratio": "4", "intermediate_size": None}, "hidden_ratio"),
        ({"hidden_act": "relu3"}, "hidden_act"),
    ],
)
def test_faults_name_their_key(changes: dict[str, Any], told: str) -> None:
    with pytest.raises(sf.InputError, match=told):
        rwkv(**changes)
