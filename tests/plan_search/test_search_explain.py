"""A plan against the best: terms that sum to the difference, rules that refuse, memory that is missing."""

from __future__ import annotations

import json
import math
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

import symperf as sf
from symperf.plan_search.search import answer
from symperf.plan_search.versus import versus
from symperf.plans.plan import Plan

if TYPE_CHECKING:
    from collections.abc import Callable

    from symperf.plan_search.search import Answer

FEW: dict[str, Any] = {"recompute": ["none", "full"], "zero": [0, 1], "schedule": ["1f1b"], "cp": [1]}


@cache
def found() -> Answer:
    require = {**FEW, "uneven_stages": [False]}
    model, system = sf.Model.load("gpt-6.7b"), sf.System.load("a100-80gb-sxm")
    return answer(model, system, devices=[8, 16], batch=32, sequence=1024, require=require)


PLANS = [
    {"tp": 4, "pp": 2, "recompute": "full", "zero": 1},
    {"tp": 8, "pp": 2, "sequence_parallel": True, "micro_batch": 4, "zero": 1},
    {"pp": 4, "tp": 4, "zero": 0},
    {"tp": 2, "dp": 4, "zero": 1},
    {"tp": 2, "pp": 2, "vpp": 2, "schedule": "interleaved", "zero": 1},
]


@pytest.mark.parametrize("fields", PLANS, ids=str)
def test_terms_sum_to_the_difference(fields: dict[str, Any]) -> None:
    """Each term is the difference of the two breakdowns' rows, and they sum to the difference of the times."""
    against = versus(found(), fields)
    plan = Plan(**against.given)
    model, system = sf.Model.load("gpt-6.7b"), sf.System.load("a100-80gb-sxm")
    run = sf.training(model, system, plan, batch=32, sequence=1024)
    best = sf.training(model, system, against.winner, batch=32, sequence=1024)
    assert against.devices == plan.devices == against.winner.devices
    assert against.difference == run.value("time") - best.value("time")
    assert math.isclose(math.fsum(term.difference for term in against.terms), against.difference, rel_tol=1e-9)
    rows = [{row.name: row.time_s for row in each.table()} for each in (best, run)]
    assert {term.name for term in against.terms} == {*rows[0], *rows[1]}
    for term in against.terms:
        assert (term.winner, term.plan) == (rows[0].get(term.name, 0.0), rows[1].get(term.name, 0.0))
    sizes = [abs(term.difference) for term in against.terms]
    assert sizes == sorted(sizes, reverse=True)
    bytes_apart = math.fsum(term.difference for term in against.memory_terms)
    assert math.isclose(bytes_apart, run.needed_bytes - best.needed_bytes, rel_tol=1e-9)
    assert against.verdict == "slower"
    assert against.difference > 0


def test_the_best_itself() -> None:
    """The winner, written out or with its defaults left open, loses nothing."""
    fields = found().winner_fields
    for given in (fields, {name: value for name, value in fields.items() if value is not None}):
        against = versus(found(), given)
        assert (against.verdict, against.difference, against.reason) == ("the best", 0.0, "")


def test_a_plan_outside_of_the_space() -> None:
    """One that was not to be tried is compared, and says so; it can be faster than the best."""
    against = versus(found(), {**found().winner_fields, "overlap_dp": 1.0, "cp": 1})
    assert against.verdict == "faster"
    assert against.difference is not None
    assert against.difference < 0
    assert against.reason == "not searched: overlap_dp = 1.0, not 0.0"


REFUSED = [
    ({"tp": 3, "dp": 1}, "tp_does_not_divide_heads", "tp x pp x dp x cp = 3"),
    ({"tp": 16, "sequence_parallel": True, "pp": 1, "dp": 1, "micro_batch": 5}, "batch_is_not_divisible", "divisible"),
    ({"pp": 16, "vpp": 4, "schedule": "interleaved"}, "stages_do_not_divide_layers", "does not divide the 32 layers"),
    ({"vpp": 2, "schedule": "interleaved"}, "vpp_needs_a_pipeline", "need a pipeline"),
    ({"pp": 2, "schedule": "interleaved"}, "interleaved_needs_vpp_above_1", "needs vpp above 1"),
    ({"tp": 8, "dp": 4}, None, "but the search is of 16"),
    ({"ep": 2}, "ep_needs_experts", "has no experts"),
]


@pytest.mark.parametrize(("fields", "rule", "told"), REFUSED, ids=lambda value: str(value))
def test_refusals_name_the_rule(fields: dict[str, Any], rule: str | None, told: str) -> None:
    """A plan that cannot run has no time; the rule that refuses it is named."""
    against = versus(found(), fields)
    assert (against.verdict, against.rule, against.time, against.terms) == ("refused", rule, None, ())
    assert told in against.reason


def test_memory_that_is_missing() -> None:
    """A plan that does not fit says by how much, against the capacity or the limit of the search."""
    model, system = sf.Model.load("gpt-6.7b"), sf.System.load("a100-80gb-sxm")
    run = sf.training(model, system, Plan(dp=16), batch=32, sequence=1024)
    against = versus(found(), {"zero": 0})
    assert against.verdict == "does not fit"
    assert against.missing == run.needed_bytes - run.value("capacity_bytes") > 0
    assert math.isclose(math.fsum(term.plan for term in against.memory_terms), run.needed_bytes, rel_tol=1e-12)
    limited = answer(
        model, system, devices=16, batch=32, sequence=1024, require={**FEW, "tp": [8], "pp": [1]}, max_memory="30 GB"
    )
    against = versus(limited, {"tp": 4, "zero": 1, "micro_batch": 8})
    assert (against.verdict, against.limit) == ("does not fit", 30e9)


def test_fields_left_open() -> None:
    """Replicas fill the devices, and a field that the search holds at one value has it."""
    against = versus(found(), {"tp": 4, "zero": 1})
    assert (against.given["dp"], against.given["cp"], against.given["schedule"]) == (4, 1, "1f1b")
    with pytest.raises(sf.InputError, match="did you mean zero"):
        versus(found(), {"zerro": 1})


ASKED = ["search", "gpt-6.7b", "-s", "a100-80gb-sxm", "--devices", "16", "--batch", "32", "--sequence", "1024"]
ASKED += [part for name, value in FEW.items() for part in ("--require", f"{name}={','.join(map(str, value))}")]
ASKED += ["--require", "uneven_stages=false"]


def test_the_command_line(call: Callable[[Any], Any]) -> None:
    """Tables and JSON; null where it is not asked for."""
    code, out, err = call([*ASKED, "--explain", "tp=4 pp=2 recompute=full zero=1"])
    assert (code, err) == (0, "")
    assert "% slower" in out
    assert "layer/mlp/up/recompute" in out
    code, out, err = call([*ASKED, "--json", "--explain", "tp=4 pp=2 recompute=full zero=1"])
    told = json.loads(out)["explained"]
    assert (code, err, told["verdict"]) == (0, "", "slower")
    total = math.fsum(term["difference_s"] for term in told["terms"])
    assert math.isclose(total, told["time_s"] - told["winner_time_s"], rel_tol=1e-9)
    code, out, err = call([*ASKED, "--json", "--explain", "ep=2"])
    told = json.loads(out)["explained"]
    assert (code, err, told["rule"], told["time_s"]) == (0, "", "ep_needs_experts", None)
    code, out, _ = call([*ASKED, "--explain", "zero=0"])
    assert "does not fit" in out
    assert "too much" in out
    code, out, _ = call([*ASKED, "--json"])
    told = json.loads(out)
    assert [told[key] for key in ("explained", "emitted", "scaling", "within", "training")] == [None] * 5


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("tp", "expected NAME=VALUE"),
        ("tp=2 tp=4", "tp is given twice"),
        ("tp=two", "tp: found 'two'"),
        ("zerro=1", "did you mean zero?"),
        ("zero=9", "expected 0, 1, 2 or 3"),
    ],
)
def test_bad_input(call: Callable[[Any], Any], text: str, told: str) -> None:
    code, out, err = call([*ASKED, "--explain", text])
    assert (code, out) == (2, "")
    assert told in err
    assert len(err.splitlines()) == 1
