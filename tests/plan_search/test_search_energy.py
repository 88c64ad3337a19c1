"""Searches by tokens per joule: of resources where the system tells their energies, else of boards."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import pytest

import symperf as sf
from symperf.plan_search.explain import alternatives
from symperf.plan_search.search import answer

if TYPE_CHECKING:
    from collections.abc import Callable

ENERGIES = {
    "matrix_energy": 4e-13,
    "vector_energy": 2e-12,
    "memory_energy": 4e-11,
    "l2_energy": 5e-12,
    "scale_up_energy": 1.3e-10,
    "scale_out_energy": 4e-10,
    "static_power": 90.0,
}
FEW: dict[str, Any] = {
    "recompute": ["none", "full"],
    "zero": [0, 1],
    "schedule": ["1f1b", "interleaved"],
    "cp": [1],
    "attention": ["flash"],
}
ASKED: dict[str, Any] = {"devices": 8, "batch": 16, "sequence": 512, "require": FEW}


def by_joules(model: str = "gpt2", **how: Any) -> Any:
    values = {**ENERGIES, **how.pop("values", {})}
    asked = {**ASKED, "by": "tokens_per_joule", "values": values, **how}
    return answer(sf.Model.load(model), sf.System.load("h100-sxm"), **asked)


@pytest.mark.parametrize("static", [0.0, 600.0])
def test_as_the_energy_of_every_plan(static: float) -> None:
    """All plans that fit, each run alone: the same ten take the fewest joules, in the same order."""
    values = {"static_power": static}
    found = by_joules(values=values, prune=True)
    assert found.criterion.basis == "resources"
    assert found.pruned == 0
    every = by_joules(values=values, top=found.feasible)
    assert len(every.records) == found.feasible > 100
    tokens = ASKED["batch"] * ASKED["sequence"]
    worth = []
    for record in every.records[:: found.feasible // 12]:
        run = every.best.question.run(**{name: record[name] for name in sf.Plan.names()})
        energy = run.energy()
        assert energy.basis == "resources"
        assert math.isclose(record["tokens_per_joule"], tokens / energy.total, rel_tol=1e-9)
        assert math.isclose(record["time_s"], run.value("time"), rel_tol=1e-9)
        worth.append(tokens / energy.total)
    assert worth == sorted(worth, reverse=True)
    best = [record["tokens_per_joule"] for record in found.records]
    assert best == [record["tokens_per_joule"] for record in every.records[: len(best)]]


def test_the_fewest_joules_are_not_the_least_time() -> None:
    """Without static power waiting is free: a plan that computes nothing twice and waits longer takes fewer joules."""
    fast = by_joules(by="time", values={"static_power": 0.0})
    frugal = by_joules(values={"static_power": 0.0})
    assert frugal.records[0]["time_s"] > fast.records[0]["time_s"]
    joules = [each.best.question.run(**each.winner_fields).energy().total for each in (fast, frugal)]
    assert joules[1] < joules[0]


def test_numbers_of_devices_are_ranked_together() -> None:
    found = by_joules(devices=[4, 8])
    worth = [record["tokens_per_joule"] for record in found.records]
    assert worth == sorted(worth, reverse=True)
    alone = [by_joules(devices=count).records[0]["tokens_per_joule"] for count in (4, 8)]
    assert worth[0] == max(alone)


def test_alternatives_take_more_joules() -> None:
    found = by_joules()
    near = alternatives(found)
    assert near
    mine = found.winner.energy().total
    for each in near:
        run = found.best.question.run(**each.fields)
        assert math.isclose(run.energy().total / mine - 1, each.slower, rel_tol=1e-6, abs_tol=1e-9)
        assert math.isclose(each.time, run.value("time"), rel_tol=1e-12)
        assert each.slower >= -1e-12
        assert (each.needs, each.factor) == (None, None)


def test_the_front_stays_one_of_time_and_memory() -> None:
    time, joules = (by_joules(by=by, pareto=True).front for by in ("time", "tokens_per_joule"))
    assert [(r["time_s"], r["memory_bytes"]) for r in time] == [(r["time_s"], r["memory_bytes"]) for r in joules]


COMMAND = ["search", "gpt2", "-s", "a100-80gb-sxm", "--devices", "4", "--batch", "8", "--sequence", "256"]
COMMAND += ["--require", "cp=1", "--require", "zero=0,1", "--require", "schedule=1f1b", "--by", "tokens-per-joule"]


@pytest.mark.parametrize(
    ("more", "basis", "told"),
    [
        ([], "board", "every device at its board power all the time, an upper bound"),
        (["--set", "memory_energy=4e-11"], "resources", "FLOPs, bytes and static power"),
    ],
)
def test_the_answer_says_what_joules_count(more: list[str], basis: str, told: str, call: Callable[[Any], Any]) -> None:
    code, out, err = call([*COMMAND, *more, "--json"])
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert found["energy_basis"] == basis
    code, out, _ = call([*COMMAND, *more])
    assert code == 0
    assert told in " ".join(out.split())
    assert ("more J" in out) is (basis == "resources")
    assert json.loads(call([*COMMAND[:-2], *more, "--json"]).out)["energy_basis"] is None
