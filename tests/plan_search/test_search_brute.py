"""A search finds what trying every plan finds: the same best, the same ten, the same counts."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest
from support import effort
from support import search_cases as cases

from symperf.common.errors import InputError

CLOSE = 1e-9
"""Relative: families add in another order than single runs."""
PROBLEMS = effort.cases(200, 0.025)
TOGETHER = 5


def same(a: float, b: float) -> bool:
    return math.isclose(a, b, rel_tol=CLOSE)


def check(of: cases.Problem, **how: Any) -> bool:
    """Compare a search with trying every plan; whether there was one that fits."""
    expected = cases.tried(of)
    found = of.search(**how)
    assert (found.considered, found.legal, found.feasible) == (
        expected.considered,
        expected.legal,
        len(expected.plans),
    )
    assert found.considered == found.feasible + sum(found.rejected.values())
    if not expected.plans:
        return False
    records = found.records
    assert len(records) == min(10, len(expected.plans))
    for record, (time, _, fields) in zip(records, expected.plans, strict=False):
        assert same(record["time_s"], time)
        run = of.run(**{name: record[name] for name in fields})
        assert same(run.value("time"), record["time_s"])
        assert same(run.needed_alone(), record["memory_bytes"])
        equals = [each for each in expected.plans if same(each[0], time)]
        if len(equals) == 1:
            assert {name: record[name] for name in fields} == fields
        else:
            assert {name: record[name] for name in fields} in [each[2] for each in equals]
    assert same(records[0]["memory_bytes"], min(e[1] for e in expected.plans if same(e[0], expected.plans[0][0])))
    assert same(records[0]["mfu"], found.winner.value("mfu"))
    return True


@pytest.mark.parametrize("part", range(PROBLEMS // TOGETHER))
def test_a_search_finds_what_trying_every_plan_finds(part: int) -> None:
    """Random small problems, 5 or nightly 200, dense and with experts; every rule, limits of memory and degrees."""
    answered = [check(cases.problem(seed)) for seed in range(part * TOGETHER, (part + 1) * TOGETHER)]
    assert any(answered)


@pytest.mark.parametrize(
    ("layers", "menu", "dealt"), [(6, {}, {"none", "both"}), (4, {"account_for": ["both"]}, {"both"})]
)
def test_ends_of_the_model_are_dealt_as_layers(layers: int, menu: dict[str, Any], dealt: set[str]) -> None:
    """Where four stages of six layers could not be interleaved without, and wherever a question names ends alone."""
    few: dict[str, Any] = {"recompute": ["none"], "cp_kind": ["ring"], "schedule": ["interleaved"], "tp": [1]}
    few |= {"sequence_parallel": [False], "rank_order": ["tp-cp-dp-pp"], **cases.EVEN, **cases.PLAIN, **menu}
    of = cases.Problem("llama-3.2-1b", "h100-sxm", 4, 8, 128, few, {"num_layers": layers})
    assert check(of)
    assert {each["account_for"] for each in of.search(top=100).records} == dealt


@pytest.mark.parametrize("ends", [["none"], ["none", "loss"], ["both"]], ids=str)
def test_chunks_are_uneven_where_a_question_says_so(ends: list[str]) -> None:
    """Layers spread over any number of virtual stages, with ends among them and without."""
    few: dict[str, Any] = {"recompute": ["none"], "cp_kind": ["ring"], "tp": [1], "uneven_stages": [True]}
    few |= {"sequence_parallel": [False], "rank_order": ["tp-cp-dp-pp"], **cases.PLAIN, "account_for": ends}
    few |= {"schedule": ["1f1b", "interleaved"]}
    of = cases.Problem("llama-3.2-1b", "h100-sxm", 4, 8, 128, few, {"num_layers": 7})
    assert check(of)
    assert any(each["vpp"] > 1 and each["pp"] * each["vpp"] > 4 for each in of.search(top=100).records)


@pytest.mark.parametrize("seed", range(0, 4 * effort.cases(15), 4))
def test_pruning_changes_nothing(seed: int) -> None:
    """The ten best are the same without any bound, also where only one plan is asked for."""
    of = cases.problem(seed)
    pruned, whole = of.search(top=3), of.search(top=3, prune=False)
    assert not whole.feasible or pruned.records == whole.records
    assert (pruned.feasible, pruned.rejected) == (whole.feasible, whole.rejected)
    assert whole.pruned == 0


@pytest.mark.parametrize("seed", range(3, 3 + 12 * effort.cases(5, 0.4), 12))
def test_what_is_left_out_is_never_better(seed: int) -> None:
    """ZeRO without replicas, selective recomputation with flash attention, GPipe: none beats the best that is found."""
    of = cases.problem(seed)
    found = of.search(top=1)
    best = found.records[0]["time_s"] if found.feasible else math.inf
    schedules = of.menu.get("schedule", cases.WHOLE["schedule"])
    more = ["gpipe"] if "1f1b" in schedules else []
    wider = dataclasses.replace(
        of, menu={**of.menu, "schedule": [*schedules, *more], "zero": of.menu.get("zero", [0])[:1]}
    )
    for plan in cases.every(wider, duplicates=True):
        try:
            run = of.run(**plan)
        except InputError:
            continue
        if run.needed_alone() <= min(of.max_memory or math.inf, run.value("capacity_bytes")):
            assert run.value("time") >= best * (1 - CLOSE)
