"""Parallel plans as a user writes them: each illegal combination has its own sentence, legal ones run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import symperf as sf
from symperf.common.errors import InputError

PLAIN: dict[str, Any] = {"batch": 64, "sequence": 4096}


def train(model: str = "llama-2-7b", batch: int = 64, sequence: int = 4096, **plan: Any) -> sf.Run:
    return sf.training(
        sf.Model.load(model), sf.System.load("h100-sxm"), sf.Plan(**plan), batch=batch, sequence=sequence
    )


ILLEGAL: list[tuple[str, dict[str, Any], str]] = [
    ("parts of a sequence", {"cp": 3}, "cp: sequence 4096 is not divisible by 2 x cp = 6"),
    ("whole parts", {"cp": 3, "cp_kind": "all-to-all"}, "cp: sequence 4096 is not divisible by cp = 3"),
    (
        "heads of Ulysses",
        {"cp": 64, "cp_kind": "all-to-all"},
        "cp: all-to-all deals heads, and cp = 64 does not divide the heads of a device, .* = 32 / 1",
    ),
    (
        "parts under sequence parallelism",
        {"cp": 4, "tp": 8, "sequence_parallel": True, "sequence": 4104},
        "sequence_parallel: the chunks of sequence 4104 over cp = 4 are not divisible by tp = 8",
    ),
    ("eager attention", {"cp": 2, "attention": "eager"}, "cp: parts of a sequence need flash attention, found eager"),
    ("recurrent layers", {"model": "bamba-9b", "cp": 2}, "cp: .* has layers with a recurrent state"),
    ("way that is none", {"cp": 2, "cp_kind": "rings"}, "cp_kind: found 'rings'.*did you mean ring"),
    ("no parts", {"cp": 0}, "cp: found 0, expected a whole number from 1"),
    ("stages of equal layers", {"pp": 5}, "pp x vpp: 5 does not divide the 32 layers"),
    ("more stages than layers", {"pp": 33, "uneven_stages": True}, "pp: 33 stages, but llama-2-7b has 32 layers"),
    ("one end only", {"pp": 4, "first_stage_layers": 7}, "first_stage_layers: needs last_stage_layers too"),
    (
        "ends that do not add up",
        {"pp": 4, "first_stage_layers": 7, "last_stage_layers": 8},
        "first_stage_layers: 7 and 8 leave no equal stages between the ends: llama-2-7b has 32 layers, and pp = 4",
    ),
    (
        "ends of one stage",
        {"pp": 1, "first_stage_layers": 16, "last_stage_layers": 16},
        "first_stage_layers: 16 and 16 leave no equal stages",
    ),
    (
        "given ends in chunks",
        {"pp": 4, "vpp": 2, "first_stage_layers": 7, "last_stage_layers": 7},
        "first_stage_layers: 7, 7 and the layers of stages between them must be divisible by vpp = 2",
    ),
    (
        "given ends of kinds in chunks",
        {"model": "deepseek-v2", "pp": 4, "vpp": 5, "first_stage_layers": 15, "last_stage_layers": 15},
        "first_stage_layers: deepseek-v2 has layers of several kinds one after another",
    ),
    ("ends that do not fill stages", {"pp": 4, "account_for": "both"}, "pp x vpp: 4 does not .* 32 .* and 2 that"),
    ("ends that are none", {"account_for": "head"}, "account_for: found 'head', expected none or embedding or loss"),
    (
        "ends counted twice",
        {"pp": 3, "account_for": "loss", "first_stage_layers": 10, "last_stage_layers": 11},
        "account_for: deals .* first_stag",
    ),
    (
        "activations of counted ends on the host",
        {"pp": 3, "account_for": "loss", "uneven_stages": True, "offload": "activations"},
        "offload: activations and account_for do not go together; expected equal or uneven stages",
    ),
    (
        "more chunks than layers and ends",
        {"pp": 4, "vpp": 9, "account_for": "both", "uneven_stages": True},
        "pp x vpp: 36 stages, but llama-2-7b has 32 layers and 2 that account_for counts",
    ),
    ("layers of a layout", {"pp": 3, "layout": "E|t*3|tL"}, "layout: has 4 layers .t., but llama-2-7b has 32"),
    ("stages of a layout", {"pp": 2, "layout": "E|t*16|t*16L"}, "layout: has 3 stages, expected pp x vpp = 2 x 1"),
    ("chunks of a layout", {"pp": 2, "vpp": 4, "layout": "Et*16|t*16L"}, "layout: has 2 stages, .* = 2 x 4"),
    ("layout of one device", {"layout": "Et*16|t*16L"}, "layout: has 2 stages, expected pp x vpp = 1 x 1"),
    ("letters", {"pp": 2, "layout": "Et*16|x*16L"}, "layout: found 'x' in .*, expected E .embedding., t"),
    ("a small letter", {"pp": 2, "layout": "et*16|t*16L"}, "layout: found 'e' .*did you mean E"),
    ("no count", {"pp": 2, "layout": "Et*|t*16L"}, "layout: found '.|' in .*, expected a whole number behind"),
    ("an open parenthesis", {"pp": 2, "layout": "E(t|t*16L"}, "layout: found '.' in .*, expected a . behind it"),
    ("too long", {"pp": 2, "layout": "E(t*99999)*99999|L"}, "layout: found more than 100000 letters"),
    (
        "no embedding",
        {"pp": 2, "layout": "t*16|t*16L"},
        "layout: found 't' first and 0 of E, expected E .embedding. first",
    ),
    ("loss twice", {"pp": 2, "layout": "Et*16L|t*16L"}, "layout: found 'L' last and 2 of L, expected L .loss. last"),
    ("a number", {"pp": 2, "layout": 4}, "layout: found 4, expected a text: what every stage has"),
    (
        "modules of a model without",
        {"pp": 2, "layout": "Et*16|t*16mL"},
        "layout: has 1 modules for multi-token prediction .m., but llama-2-7b has 0",
    ),
    ("modules before layers", {"pp": 2, "layout": "Et*16|t*15mtL"}, "layout: found m before a t"),
    (
        "modules on the first device",
        {"model": "deepseek-v3", "pp": 2, "layout": "Et*20|t*20|t*21m|L"},
        "layout: m is on stage 3 of 4, expected one of the last pp = 2, not the first of them",
    ),
    (
        "two ways",
        {"pp": 2, "layout": "Et*16|t*16L", "uneven_stages": True},
        "layout: says what every stage has, and un",
    ),
    (
        "recomputed layers of a layout",
        {"pp": 2, "layout": "Et*16|t*16L", "recompute": "full", "recompute_layers": 2},
        "recompute_layers: counts layers of each stage, and layout leaves",
    ),
    (
        "activations of a layout on the host",
        {"pp": 2, "layout": "Et*16|t*16L", "offload": "activations"},
        "offload: activations and layout do not go together",
    ),
    (
        "few micro-batches",
        {"pp": 8, "dp": 16, "schedule": "zero-bubble"},
        "zero-bubble needs at least pp micro-batches",
    ),
    ("few for H2", {"pp": 8, "dp": 8, "schedule": "zb-h2"}, "zb-h2 needs at least 2 pp - 1 micro-batches"),
    (
        "few for 2p",
        {"pp": 8, "dp": 8, "schedule": "zero-bubble-2p"},
        "zero-bubble-2p needs at least 2 pp micro-batches",
    ),
    ("zero-bubble and vpp", {"pp": 4, "vpp": 2, "schedule": "zero-bubble"}, "zero-bubble has one stage per device"),
    ("gradients in shards", {"pp": 4, "schedule": "zero-bubble", "zero": 2, "dp": 2}, "zero: stages 2 and 3 do not go"),
    ("odd stages", {"schedule": "dualpipe"}, "dualpipe runs from both ends and needs an even number of stages"),
    ("few for DualPipe", {"pp": 8, "dp": 8, "schedule": "dualpipe"}, "dualpipe needs an even number of micro-batches"),
    ("shards of nothing", {"dp": 8, "zero_shards": 4}, "zero_shards: hybrid sharding needs state to shard"),
    ("shards of replicas", {"dp": 8, "zero": 3, "zero_shards": 3}, "zero_shards: 3 does not divide dp x cp = 8 x 1"),
    (
        "shards of experts",
        {"model": "mixtral-8x7b", "dp": 8, "ep": 8, "zero": 1, "zero_shards": 8},
        "zero_shards: 8 does not divide the replicas of an expert",
    ),
    ("experts of a dense model", {"dp": 8, "ep": 8}, "ep: found 8, but llama-2-7b has no experts"),
    (
        "experts over too many",
        {"model": "mixtral-8x7b", "dp": 4, "ep": 8},
        "ep: ep x expert_tp = 8 x 1 does not divide tp x cp x dp = 1 x 1 x 4",
    ),
    ("limit without experts", {"node_limit": 4}, "node_limit: found 4, but llama-2-7b has no experts"),
    ("overlap", {"overlap_ep": 1.5}, "overlap_ep: found 1.5, expected a fraction"),
]


@pytest.mark.parametrize(("given", "message"), [case[1:] for case in ILLEGAL], ids=[case[0] for case in ILLEGAL])
def test_illegal_plans_have_their_own_sentence(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        train(**given)
    assert "\n" not in str(caught.value)


LEGAL: list[tuple[str, dict[str, Any]]] = [
    ("ring over nodes", {"cp": 16, "dp": 2, "sequence": 131072, "batch": 2}),
    ("Ulysses", {"cp": 8, "tp": 4, "cp_kind": "all-to-all", "sequence_parallel": True}),
    ("gathered keys with a pipeline", {"cp": 4, "pp": 4, "cp_kind": "all-gather", "schedule": "zero-bubble"}),
    ("experts over parts", {"model": "mixtral-8x7b", "cp": 4, "ep": 8, "dp": 2, "zero": 3}),
    ("ends of two stages", {"pp": 2, "first_stage_layers": 17, "last_stage_layers": 15}),
    ("DualPipe", {"pp": 4, "dp": 4, "schedule": "dualpipe", "zero": 1}),
    (
        "given ends and zero-bubble",
        {"pp": 4, "schedule": "zero-bubble", "first_stage_layers": 7, "last_stage_layers": 7},
    ),
    ("layout", {"pp": 4, "layout": "E|(t*4|)*6t*8L"}),
    ("ends as layers, hidden transfers", {"pp": 2, "vpp": 17, "account_for": "both", "overlap_pp": 0.5}),
    ("hybrid", {"dp": 16, "zero": 3, "zero_shards": 8}),
]


@pytest.mark.parametrize("given", [case[1] for case in LEGAL], ids=[case[0] for case in LEGAL])
def test_legal_plans_add_up(given: dict[str, Any]) -> None:
    run = train(**given)
    table = run.table()
    assert sum(row.time_s for row in table) == pytest.approx(run.value("time"), rel=1e-12)
    assert sum(run.shares().values()) == pytest.approx(1, rel=1e-12)
    assert run.value("devices") == run.plan.devices
    assert 0 < run.value("mfu") < 1


def test_uneven_stages_are_warned_of() -> None:
    run = train("llama-3.1-405b", batch=128, tp=8, pp=16, dp=8, uneven_stages=True, sequence_parallel=True)
    assert any("16 stages do not divide the 126 layers: the fullest stage is counted" in text for text in run.warnings)


def test_tokens_and_model_flops_do_not_depend_on_the_plan() -> None:
    for plan in (
        {},
        {"cp": 8},
        {"pp": 4, "schedule": "zb-h2"},
        {"pp": 4, "schedule": "dualpipe"},
        {"pp": 5, "uneven_stages": True},
    ):
        run = train(**plan)
        assert run.value("model_flops") == train().value("model_flops")
        assert run.value("tokens") == 64 * 4096


def test_a_bound_plan_field_changes_the_structure() -> None:
    run = train(dp=8)
    parts = run.bind(cp=2, dp=4)
    assert parts.structure.context == "ring"
    assert parts.bind(cp=1, dp=8).value("time") == run.value("time")


@pytest.mark.parametrize(
    "plan",
    [
        {"cp": 4},
        {"cp": 4, "cp_kind": "all-to-all"},
        {"schedule": "zero-bubble"},
        {"schedule": "dualpipe"},
        {"uneven_stages": True},
        {"uneven_stages": True, "account_for": "loss"},
    ],
    ids=str,
)
def test_a_sweep_has_the_values_and_refusals_of_single_runs(plan: dict[str, Any]) -> None:
    run = train(**plan, **({"pp": 2} if plan.get("schedule") == "dualpipe" else {}))
    found = run.sweep(pp=[1, 2, 3, 4, 8], dp=[1, 2, 8], outputs=["time", "memory"])
    for i, pp in enumerate([1, 2, 3, 4, 8]):
        for k, dp in enumerate([1, 2, 8]):
            try:
                single = train(**plan, pp=pp, dp=dp)
            except InputError:
                assert np.isnan(found["time"][i, k])
                continue
            assert float(found["time"][i, k]) == pytest.approx(single.value("time"), rel=1e-12)
            assert float(found["memory"][i, k]) == pytest.approx(single.value("memory"), rel=1e-12)
