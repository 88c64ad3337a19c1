"""Stages that hold the kinds of layers dealt to them: memory and time by stage, by hand, in sweeps and searches."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

import pytest
from support.effort import some

import symperf as sf
from symperf.codegen.interpret import floats, run
from symperf.models import counts
from symperf.train.compile import compile_step

if TYPE_CHECKING:
    from symperf.evaluation.base_run import BaseRun

HOST = {"host_bandwidth": 64e9, "host_memory_bandwidth": 4e11}
FEW = {"pp": 3, "schedule": "1f1b", "zero": 0, "recompute": "none", "attention": "flash", "rank_order": "tp-cp-dp-pp"}
PLANS: dict[str, tuple[str, dict[str, Any]]] = {
    "uneven": ("deepseek-v3", {"pp": 16, "uneven_stages": True}),
    "few": ("deepseek-v3", {"pp": 2, "uneven_stages": True}),
    "each its own": ("deepseek-v3", {"pp": 61}),
    "one": ("deepseek-v3", {}),
    "given": ("deepseek-v3", {"pp": 16, "first_stage_layers": 4, "last_stage_layers": 1}),
    "given wide": ("deepseek-v3", {"pp": 4, "first_stage_layers": 1, "last_stage_layers": 10}),
    "gpipe": ("deepseek-v2", {"pp": 4, "schedule": "gpipe"}),
    "interleaved": ("deepseek-v2", {"pp": 4, "vpp": 5}),
    "interleaved uneven": ("deepseek-v3", {"pp": 4, "vpp": 5, "uneven_stages": True}),
    "interleaved uneven and counted": (
        "deepseek-v3",
        {"pp": 8, "vpp": 3, "uneven_stages": True, "account_for": "both"},
    ),
    "chunks of one": ("deepseek-v2", {"pp": 4, "vpp": 15}),
    "zero-bubble": ("deepseek-v2", {"pp": 4, "schedule": "zero-bubble"}),
    "zb-h2": ("deepseek-v3", {"pp": 8, "schedule": "zb-h2", "uneven_stages": True}),
    "dualpipe": ("deepseek-v2", {"pp": 4, "schedule": "dualpipe"}),
    "dualpipe uneven": ("deepseek-v3", {"pp": 16, "schedule": "dualpipe", "uneven_stages": True}),
    "sharded": ("deepseek-v2", {"pp": 4, "zero": 3}),
    "muon": ("deepseek-v2-lite", {"pp": 3, "optimizer": "muon", "zero": 1}),
    "fp8": ("deepseek-v2-lite", {"pp": 3, "precision": "fp8"}),
    "recomputed": ("deepseek-v2-lite", {"pp": 3, "recompute": "full", "recompute_layers": 2}),
    "offloaded": ("deepseek-v2-lite", {"pp": 3, "offload": "activations,weights"}),
}


def make(model: str, plan: dict[str, Any], **values: Any) -> sf.Run:
    """A step of 64 sequences a replica of 16."""
    laid = sf.Plan(**{"dp": 16, "ep": 16, **plan})
    return sf.training(sf.Model.load(model), sf.System.load("h100-sxm"), laid, batch=1024, sequence=4096, **values)


def mixed(found: BaseRun, name: str) -> float:
    """An answer of the run where kinds of layers are taken to be mixed evenly over the stages."""
    program = compile_step(dataclasses.replace(found.structure, segments=())).program
    return float(run(program, {n: value for n, (value, _) in found.bound.items()}, floats())[program.outputs[name]])


@pytest.mark.parametrize("name", some(PLANS, 0.45))
def test_the_fullest_stage_decides_to_the_byte(name: str) -> None:
    """Of all stages, not only of those that decide; its terms are told, and stages have the layers of the model."""
    model, plan = PLANS[name]
    found = make(model, plan, **(HOST if "offload" in plan else {}))
    rows = found.stage_memory()
    fullest = max(rows, key=lambda row: row["total"])
    assert found.value("memory") == pytest.approx(fullest["total"], rel=1e-12)
    assert found.memory_alone() == pytest.approx(fullest["total"], rel=1e-12)
    terms = found.memory_terms()
    assert sum(terms.values()) == pytest.approx(found.value("memory"), rel=1e-12)
    assert any(all(terms[n] == pytest.approx(row[n], rel=1e-9, abs=1) for n in terms) for row in rows)
    layers = sum(row["layers"] for row in rows) / (2 if plan.get("schedule") == "dualpipe" else 1)
    assert layers == pytest.approx(found.model.sizes["num_layers"], rel=1e-12)

    # The time is never less than the mean stage's, and the same on one device. Equal stages of schedules that take
    # gradients apart have the ends of the model on top, other stages where they are.
    if not {"uneven_stages", "first_stage_layers"} & set(plan):
        assert found.value("time") >= mixed(found, "time") * (0.98 if found.structure.splits else 1 - 1e-12)
    if "pp" not in plan:
        assert found.value("time") == pytest.approx(mixed(found, "time"), rel=1e-12)
        assert found.value("memory") == pytest.approx(mixed(found, "memory"), rel=1e-12)
    assert sum(row.time_s for row in found.table()) == pytest.approx(found.value("time"), rel=1e-9)
    assert sum(found.shares().values()) == pytest.approx(1, rel=1e-9)


def test_the_pace_is_that_of_the_stage_by_hand() -> None:
    """Three stages of DeepSeek-V2-Lite: a step more of m costs the slowest stage's passes and its end's."""
    found = make("deepseek-v2-lite", {"pp": 3})
    longer = found.bind(batch=2048)
    each = {row.name: row.each_s for row in found.table()}

    def passes(*roots: str) -> float:
        return sum(seconds for name, seconds in each.items() if name.startswith(roots))

    dense, experts = passes("layer/latent_attention_dense/"), passes("layer/latent_attention_experts/")
    first, last = passes("embedding/"), passes("head/", "loss/", "final_norm/")
    send = passes("pipeline/send")
    stages = [dense + 8 * experts + first, 9 * experts, 9 * experts + last]
    more = (longer.value("time") - found.value("time")) / 64
    assert more == pytest.approx(max(stages) + send, rel=1e-3)


def test_weights_of_the_stages_of_deepseek_v3() -> None:
    """Zhang and Su 2025 (arXiv 2502.07846): sixteen stages, four layers each, the last has one; 86 GiB in the middle.

    The first has three dense layers, one with experts and the table; the last one with experts, norm and head.
    """
    found = make("deepseek-v3", {"ep": 1, **PLANS["given"][1]}, num_multi_token_layers=0)
    weights = [sum(row[name] for name in row if name.startswith("weights/")) for row in found.stage_memory()]
    assert weights[1:15] == pytest.approx([86 * 2**30] * 14, rel=5e-3)
    table, dense, experts = 129280 * 7168, 583_485_440, 11_507_288_064
    assert weights[0] == pytest.approx(2 * (table + 3 * dense + experts), rel=1e-4)
    assert weights[15] == pytest.approx(2 * (table + experts), rel=1e-4)
    assert sum(weights) / 2 == pytest.approx(671_026_404_352, rel=1e-4)


def test_sweeps_and_searches_see_the_same_stages() -> None:
    """Over the number of stages, a sweep has what single runs have; so has the best plan of a search."""
    base = make("deepseek-v2", {"pp": 2})
    stages = [1, 2, 4, 5]
    swept = base.sweep(pp=stages)
    for n in stages:
        single = base.bind(pp=n)
        for name in ("time", "memory"):
            assert float(swept[name].sel(pp=n)) == pytest.approx(single.value(name), rel=1e-9), (n, name)
    asked: dict[str, Any] = {"batch": 256, "sequence": 4096}
    model, system = sf.Model.load("deepseek-v2-lite"), sf.System.load("h100-sxm")
    found = sf.search(model, system, devices=24, top=3, **asked, **FEW)
    assert len(found)
    for row in found.to_dict("records"):
        plan = {name: row[name] for name in sf.Plan.names() if name in row and row[name] == row[name]}
        single = sf.training(model, system, sf.Plan(**plan), **asked)
        assert row["time_s"] == pytest.approx(single.value("time"), rel=1e-9)


def test_launches_of_unequal_stages_are_one_term() -> None:
    """A host that launches slowly sets the pace of stages of other layers too, and of stages with a layer more."""
    for model, plan in (PLANS["uneven"], ("llama-2-7b", {"pp": 5, "uneven_stages": True, "ep": 1})):
        slow, none = make(model, plan, host_latency=1e-2), make(model, plan)
        assert slow.value("time") > 2 * none.value("time")
        assert sum(row.time_s for row in slow.table()) == pytest.approx(slow.value("time"), rel=1e-9)


def test_stages_of_an_inference_hold_what_is_dealt_to_them() -> None:
    """Three stages of DeepSeek-V2-Lite: nine layers with experts on two of them; one stage is as ever."""
    model, system = sf.Model.load("deepseek-v2-lite"), sf.System.load("h100-sxm")
    asked: dict[str, Any] = {"batch": 12, "prompt": 512, "generate": 64}
    one, three = (sf.inference(model, system, sf.Plan(pp=pp, micro_batch=4), **asked) for pp in (1, 3))
    whole, part = (found.memory_terms() for found in (one, three))
    layer = (whole["weights/layers"] - _dense_layer(one)) / 26
    assert part["weights/layers"] == pytest.approx(9 * layer, rel=1e-9)
    assert part["kv_cache"] == pytest.approx(whole["kv_cache"] / 3, rel=1e-12)
    # Three micro-batches on three stages: all stages work, at the pace of the slowest.
    assert three.value("decode") > one.bind(micro_batch=4).value("decode") / 3
    assert sum(row.time_s for row in three.table()) == pytest.approx(three.value("time"), rel=1e-9)


def _dense_layer(found: Any) -> float:
    from symperf.models import layer_counts

    architecture = found.model.architecture
    form = layer_counts.layer_parameters(architecture, architecture.kinds[0])
    values = {counts.SYMBOLS[name].symbol: size for name, size in found.model.sizes.items()}
    return 2 * float(form.subs(values))


@pytest.mark.parametrize(
    ("model", "plan"),
    [
        ("deepseek-v3", {"pp": 4, "vpp": 5}),
        ("llama-3.1-405b", {"pp": 16, "vpp": 8}),
        ("llama-2-7b", {"pp": 4, "vpp": 3, "overlap_pp": 0.5, "account_for": "both"}),
    ],
    ids=str,
)
def test_uneven_chunks_are_the_layout_that_spells_them(model: str, plan: dict[str, Any]) -> None:
    """Closed forms in layers, devices and virtual stages, and tables over the devices: the same to the last bits."""
    ep = {"ep": 16 if "deepseek" in model else 1}
    run = make(model, {**plan, **ep, "uneven_stages": True})
    layers, modules = (run.model.sizes.get(name, 0) for name in ("num_layers", "num_multi_token_layers"))
    layout = run.plan.spelled_layout(layers, modules)
    apart = {name: value for name, value in plan.items() if name not in ("vpp", "account_for")}
    spelled = make(model, {**apart, **ep, "layout": layout})
    assert run.value("time") == pytest.approx(spelled.value("time"), rel=1e-12)
    assert run.value("memory") == pytest.approx(spelled.value("memory"), rel=1e-3 if "account_for" in plan else 1e-12)
    held = [[row["layers"] for row in each.stage_memory()] for each in (run, spelled)]
    assert held[0] == pytest.approx(held[1], rel=1e-12)
    assert sum(held[0]) == layers


def test_a_sweep_over_chunks_has_the_values_of_single_runs() -> None:
    run = make("llama-2-7b", {"pp": 4, "vpp": 2, "ep": 1, "uneven_stages": True})
    swept = run.sweep(pp=[4, 8], vpp=[2, 3, 5])
    for pp in (4, 8):
        for vpp in (2, 3, 5):
            if pp * (vpp - 1) >= 32:  # no layer is left for the last turn of the devices
                assert math.isnan(float(swept["time"].sel(pp=pp, vpp=vpp)))
                continue
            single = run.bind(pp=pp, vpp=vpp)
            for name in ("time", "memory"):
                assert float(swept[name].sel(pp=pp, vpp=vpp)) == pytest.approx(single.value(name), rel=1e-9)


@pytest.mark.parametrize(
    "plan",
    [
        {"pp": 29, "account_for": "both"},
        {"pp": 28, "account_for": "both", "uneven_stages": True},
        {"pp": 29, "layout": "E|(t|)*27L"},
    ],
    ids=str,
)
def test_a_stage_may_hold_an_end_alone(plan: dict[str, Any]) -> None:
    """Of a model with layers of two kinds: none of either is on such a stage."""
    found = make("deepseek-v2-lite", plan)
    rows = found.stage_memory()
    assert rows[-1]["layers"] == 0
    assert sum(row["layers"] for row in rows) == 27
    assert found.value("memory") == pytest.approx(max(row["total"] for row in rows), rel=1e-12)
    assert found.value("time") > 0
