"""Kimi Linear and Kimi-K3: what their files say, and counts that their publishers and PyTorch state."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest
from support.paths import GOLDEN_2026

import symperf as sf
from symperf.formulas.kernels.attention_residuals import residual_sources
from symperf.models.model import make_model

HUB = 2_779_931_837_184
"""Parameters of Kimi-K3 that its page on the hub shows."""


@cache
def data(name: str) -> str:
    """The text of a golden file."""
    return (GOLDEN_2026 / "configs" / f"{name}.json").read_text(encoding="utf-8")


def kimi(**changes: Any) -> sf.Model:
    """The golden file of Kimi Linear with other keys; None removes one."""
    found = {**json.loads(data("default-kimi_linear")), **changes}
    return make_model("kimi", "test", {key: value for key, value in found.items() if value != "gone"}, "kimi.json")


def test_kimi_k3_has_the_parameters_that_the_hub_shows() -> None:
    """To the last one: corrections of routers are parameters there, and rates of decays one a channel, not a head."""
    found = sf.inspect(sf.Model.load("kimi-k3"))
    routers, rates = 92 * 896, 69 * (128 - 96)
    assert found["parts"]["full_model"] + routers + rates == HUB
    tables = found["parameters"]["embedding"] // 2
    assert round((found["parameters"]["active_per_token"] - tables) / 1e9) == 104
    classes = {row["module_class"]: row for row in found["checkpoint"]["classes"]}
    assert classes["routed_experts"]["parameters"] == 92 * 896 * 3 * 3584 * 3072
    assert {name for name, row in classes.items() if row["format"] != "bf16"} == {"routed_experts"}
    assert round(found["checkpoint"]["bytes"] / 1e12, 2) == 1.56


def test_kimi_k3_keeps_states_and_latents() -> None:
    """69 layers with a matrix for each of 96 heads in FP32 and 4 inputs of three convolutions; 24 with latents."""
    found = sf.inspect(sf.Model.load("kimi-k3"))["kv_cache"]
    assert found["state_bytes_per_sequence"] == 69 * 96 * 128 * (128 * 4 + 3 * 4 * 2)
    assert found["growing_bytes_per_token"] == 24 * (512 + 64) * 2


@pytest.mark.parametrize(("layers", "block"), [(1, 1), (12, 12), (13, 12), (93, 12), (7, 3), (5, 9)])
def test_sources_of_a_mixture_are_those_of_its_definition(layers: int, block: int) -> None:
    """Layer by layer: the sums of earlier blocks, and what has been added since."""
    attention = [-(-layer // block) + 1 for layer in range(layers)]
    mlp = [layer // block + 2 for layer in range(layers)]
    assert residual_sources(layers, block) * 2 * layers == sum(attention + mlp)


def test_mixtures_are_operations_of_every_part_and_of_the_head() -> None:
    """All sources in and the mixture out; a pipeline would have to send them on, which is refused."""
    system, model = sf.System.load("b200-sxm"), sf.Model.load("kimi-k3")
    work: dict[str, Any] = {"batch": 8, "sequence": 4096}
    run = sf.training(model, system, sf.Plan(dp=8, ep=8), **work)
    rows = {row.name: row for row in run.table() if "mixture/" in row.name}
    parts = {name.removesuffix("/mixture/forward") for name in rows if name.endswith("/forward")}
    assert len(parts) == 2 * len(model.architecture.kinds) + 1
    each = 4096 * 7168 * 2
    for name, row in rows.items():
        sources = 497 / 93 * (3 if name.endswith("/backward") else 1)
        assert row.bytes == pytest.approx(row.count * each * (sources + 1), rel=1e-12)
    with pytest.raises(sf.InputError, match="expected pp = 1"):
        sf.training(model, system, sf.Plan(dp=8, ep=8, pp=3), **work)
    with pytest.raises(sf.InputError, match="expected pp = 1"):
        sf.inference(model, system, sf.Plan(tp=8, pp=3), batch=1, prompt=64, generate=4)
    served = sf.inference(model, system, sf.Plan(tp=8, dp=2, ep=16), batch=16, prompt=64, generate=4)
    assert any(row.name == "decode/head/mixture" for row in served.table())


def test_both_ways_to_say_the_layers_are_one_model() -> None:
    """Words at the top, lists and sizes in an object of their own."""
    words = json.loads(data("default-kimi_linear"))["layer_types"]
    full = [place + 1 for place, word in enumerate(words) if word == "full_attention"]
    lists = {"full_attn_layers": full, "kda_layers": [i for i in range(1, 28) if i not in full]}
    nested = lists | {"head_dim": 128, "num_heads": 32, "short_conv_kernel_size": 4}
    gone = dict.fromkeys(("layer_types", "linear_head_dim", "linear_num_heads", "linear_conv_kernel_dim"), "gone")
    first, second = kimi(), kimi(linear_attn_config=nested, **gone)
    assert (first.sizes, first.architecture, first.layers) == (second.sizes, second.architecture, second.layers)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"layer_types": ["sliding_attention"] * 27}, "layer_types"),
        ({"layer_types": "gone", "linear_attn_config": {"full_attn_layers": [4]}}, "kda_layers"),
        ({"layer_types": "gone", "linear_attn_config": {"kda_layers": [4]}}, "full_attn_layers"),
        (
            {"layer_types": "gone", "linear_attn_config": {"kda_layers": [1, 2], "full_attn_layers": [2]}},
            "full_attn_layers",
        ),
        ({"linear_attn_config": {"head_dim": 64}}, "head_dim"),
        ({"linear_attn_config": {"heads": 64}}, "heads"),
        ({"mla_use_nope": False}, "mla_use_nope"),
        ({"attn_res_block_size": 0.5}, "attn_res_block_size"),
        ({"routed_expert_hidden_size": -1}, "routed_expert_hidden_size"),
        ({"hidden_act": "situe"}, "hidden_act"),
    ],
)
def test_faults_name_their_key(changes: dict[str, Any], told: str) -> None:
    with pytest.raises(sf.InputError, match=told):
        kimi(**changes)
