"""Families that only a table tells: a file in the keys of its hub each, against counts of PyTorch or its publisher."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.effort import some
from support.kind_cases import train
from support.mutations import change, doubled, keys, read, renamed, without
from support.paths import GOLDEN_2026

import symperf as sf
from symperf.models.families import FAMILIES
from symperf.models.families.older import OLDER
from symperf.models.keys import without_cost
from symperf.models.model import Model, make_model

ROWS = {row["name"]: row for row in json.loads((GOLDEN_2026 / "recombined.json").read_text(encoding="utf-8"))}
"""Name -> parameters, their source, and the configuration."""


def made(name: str, **changes: Any) -> sf.Model:
    """The model of a row, with some keys changed."""
    return make_model(name, "test", ROWS[name]["config"] | changes, f"{name}.json")


@pytest.mark.parametrize("name", sorted(ROWS))
def test_parameters(name: str) -> None:
    assert sf.inspect(made(name))["parameters"]["total"] == ROWS[name]["parameters"]


def test_every_such_family_has_a_file() -> None:
    assert {row["config"]["model_type"] for row in ROWS.values()} >= set(OLDER)


@pytest.mark.parametrize("name", some(sorted(ROWS), 0.3))
def test_no_slip_in_a_key_makes_another_model(name: str) -> None:
    """Renamed: refused, or as without it; doubled: another model, refused by name, or known to be without cost."""
    data = ROWS[name]["config"]
    model, harmless = read(data), FAMILIES[data["model_type"]].harmless
    for path, value in keys(data):
        found = read(change(data, path, renamed))
        if isinstance(found, Model) and path[0] not in ("rope_scaling",):
            assert value is None or without_cost(f"{path[-1]}_renamed"), path
            assert found == read(change(data, path, without)), path
        if isinstance(value, int) and value and path[0] not in ("rope_scaling",):
            found = read(change(data, path, doubled))
            if found == model and not without_cost(path[-1]):
                assert path[-1] in (*harmless, "max_position_embeddings", "n_ctx"), path


def test_layers_of_gpt_neo_alternate_and_may_be_told_twice() -> None:
    kinds = [kind.mixer for kind in made("gpt-neo-1.3b").architecture.kinds]
    assert kinds == ["attention", "local_attention"]
    with pytest.raises(sf.InputError, match="attention_layers"):
        made("gpt-neo-1.3b", attention_layers=["global"] * 24)
    with pytest.raises(sf.InputError, match="attention_types"):
        made("gpt-neo-1.3b", attention_types=[[["global"], 23]])


def test_positions_of_baichuan_follow_its_size() -> None:
    found = [made(name).architecture.positions for name in ("baichuan2-7b", "baichuan2-13b")]
    assert found == ["rotary", "alibi"]


def test_experts_of_exaone_may_be_told_layer_by_layer() -> None:
    name = "k-exaone-236b-a23b"
    told = made(name, mlp_layer_types=None, is_moe_layer=[False, *[True] * 47])
    assert (told.sizes, told.layers) == (made(name).sizes, made(name).layers)
    more = made(name, mlp_layer_types=None, is_moe_layer=[False, False, *[True] * 46])
    assert more.layers != told.layers
    patterned = made(name, layer_types=None)
    assert patterned.layers == told.layers


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("chatglm3-6b", {"pre_seq_len": 128}, "pre_seq_len"),
        ("qwen-7b", {"intermediate_size": 22017}, "intermediate_size"),
        ("decilm-7b", {"num_key_value_heads_per_layer": [4]}, "num_key_value_heads_per_layer"),
        ("decilm-7b", {"num_key_value_heads_per_layer": [3] * 32}, "num_key_value_heads_per_layer"),
        ("decilm-7b", {"num_key_value_heads_per_layer": None}, "num_key_value_heads_per_layer"),
        ("snowflake-arctic", {"use_residual": False}, "use_residual"),
        ("snowflake-arctic", {"moe_layer_frequency": 2}, "moe_layer_frequency"),
        ("k-exaone-236b-a23b", {"mlp_layer_types": None, "is_moe_layer": [1] * 48}, "is_moe_layer"),
        ("minicpm-2b", {"sparse_config": {"kernel_size": 32}}, "sparse_config"),
        ("minicpm-2b", {"num_experts": 8}, "num_experts"),
    ],
)
def test_faults_name_their_key(name: str, change: dict[str, Any], words: str) -> None:
    with pytest.raises(sf.InputError, match=words):
        made(name, **change)


@pytest.mark.parametrize("name", ["decilm-7b", "snowflake-arctic"])
def test_they_run(name: str) -> None:
    """Layers with key-value heads of their own, and an MLP beside experts with a norm for each."""
    model = made(name)
    run = train(model, batch=4)
    assert run.value("parameters") == ROWS[name]["parameters"]
    assert sf.inference(model, sf.System.load("h200-sxm"), sf.Plan(), batch=1, prompt=64, generate=8).value("time") > 0
