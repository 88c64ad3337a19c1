"""What a search prints is enough: its fields give the plan by themselves, and each reason says what would help."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Any

import pytest
from support import effort
from support import search_cases as problems

import symperf as sf
from symperf.plan_search.reasons import REMEDIES, SAME, reasons
from symperf.plan_search.search import answer_search
from symperf.plans.plan import FIELDS, Plan
from symperf.plans.validity import CHOICE_RULES, RULES
from symperf.report.search import fields_shown, plans

if TYPE_CHECKING:
    from collections.abc import Callable

    from symperf.plan_search.search import Answer


def check_shown(found: Answer) -> int:
    """Every plan listed is given again by the fields that are printed of it; how many there are."""
    names = fields_shown(found, found.records)
    assert names == [name for name in Plan.names() if name in names]
    question = found.found[0].question
    for record in found.records:
        whole = question.run(**{name: record[name] for name in Plan.names()})
        shown = question.run(**{name: record[name] for name in names})
        assert shown.structure == whole.structure
        assert shown.bound == whole.bound
    return len(found.records)


@pytest.mark.parametrize("seed", range(effort.cases(40, 0.05)))
def test_printed_fields_give_the_plan(seed: int) -> None:
    found = problems.problem(seed).search()
    if found.feasible:
        assert check_shown(found)


def test_what_train_would_choose_otherwise_is_printed() -> None:
    """Flash attention of a model with dropout, whose default is eager; a column for what is required."""
    model, system = sf.Model.load("gpt-6.7b"), sf.System.load("a100-80gb-sxm")
    few: dict[str, Any] = {"recompute": ["none"], "zero": [1], "cp": [1], "schedule": ["1f1b"], "overlap_dp": 0.5}
    few |= {"sequence_parallel": [True], "attention": ["eager", "flash"], "uneven_stages": [False]}
    found = answer_search(model, system, devices=16, batch=32, sequence=1024, require=few)
    assert check_shown(found) == 10
    assert {"attention", "overlap_dp", "zero"} <= set(fields_shown(found, found.records))
    assert "attention" in plans(found, found.records).heads
    plain = {**few, "attention": ["flash"], "dropout": False}
    found = answer_search(sf.Model.load("llama-2-7b"), system, devices=8, batch=8, sequence=1024, require=plain)
    assert "attention" not in fields_shown(found, found.records)


def test_columns_have_one_order() -> None:
    """Whatever the plans: that of the plan's fields."""
    for seed in (1, 5):
        found = problems.problem(seed).search()
        if found.feasible:
            heads = plans(found, found.records).heads
            order = [FIELDS[name].heading for name in Plan.names()]
            shown = [head for head in heads if head in order]
            assert shown == [head for head in order if head in shown]


def test_each_reason_names_fields_and_a_remedy() -> None:
    """Of random searches; counts are those of `rejected`."""
    seen = set()
    for seed in (3, 6):
        found = problems.problem(seed).search()
        told = reasons(found)
        assert {each.name: each.plans for each in told} == found.rejected
        for each in told:
            assert each.fields, each.name
            assert each.remedy
            assert each.example, each.name
            assert "{" not in each.example
            assert set(each.fields) <= set(FIELDS)
        seen |= {each.name for each in told}
    assert "choices_do_not_go_together" not in seen
    assert len(seen) > 8


def test_remedies_are_of_reasons_that_exist() -> None:
    """A rule that is renamed takes its remedy along."""
    rules = {rule.name for rule in (*RULES, *CHOICE_RULES)}
    assert set(REMEDIES) <= rules | set(SAME) | {"does_not_fit", "above_max_memory"}
    assert all(set(fields) <= set(FIELDS) and remedy for fields, remedy in REMEDIES.values())


def test_the_command_gives_the_plan_by_itself(call: Callable[[Any], Any]) -> None:
    words = ["search", "gpt-6.7b", "-s", "a100-80gb-sxm", "--devices", "16", "--batch", "32", "--sequence", "1024"]
    words += ["--require", "recompute=none", "--require", "zero=1", "--require", "schedule=1f1b", "--require", "cp=1"]
    words += ["--require", "dropout=false", "--set", "memory_efficiency=0.7", "--top", "3"]
    code, out, err = call([*words, "--json"])
    assert (code, err) == (0, "")
    told = json.loads(out)
    assert {each["reason"]: each["plans"] for each in told["reasons"]} == told["rejected"]
    best = told["plans"][0]
    code, out, err = call([*shlex.split(best["command"])[1:], "--json"])
    assert (code, err) == (0, "")
    assert json.loads(out)["time_s"] == pytest.approx(best["time_s"], rel=1e-9)
    code, out, err = call([*words, "--width", "200"])
    assert (code, err) == (0, "")
    assert best["command"] in out
    assert "what helps" in out


def test_each_plan_has_the_utilization_of_what_it_trains() -> None:
    """A step of adapters has fewer FLOPs of the model than one of all parameters."""
    system, few = sf.System.load("h100-sxm"), {"attention": ["flash"], "recompute": ["none"], "zero": [0], "tp": [8]}
    model, require = sf.Model.load("llama-2-7b"), {**few, "lora_rank": [None, 16]}
    found = answer_search(model, system, devices=8, batch=8, sequence=1024, require=require, top=4)
    assert {record["lora_rank"] for record in found.records} == {None, 16}
    for record in found.records:
        plan = sf.Plan(**{name: record[name] for name in sf.Plan.names()})
        run = sf.training(model, system, plan, batch=8, sequence=1024)
        assert record["mfu"] == pytest.approx(run.value("mfu"), rel=1e-9)
