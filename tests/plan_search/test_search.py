"""Searches: counts, bounds, order, alternatives, the Pareto front, answers in Python and on the command line."""

from __future__ import annotations

import csv
import io
import json
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from support import search_cases as cases

import symperf as sf
from symperf.analysis import Unreachable
from symperf.plan_search.api import search
from symperf.plan_search.bounds import ideal_time, lower_bounds, waits
from symperf.plan_search.evaluate import evaluate, lay_out_space
from symperf.plan_search.explain import alternatives
from symperf.plan_search.search import answer
from symperf.plan_search.space import SearchQuestion
from symperf.plan_search.tally import Tally
from symperf.plans.plan import Plan

if TYPE_CHECKING:
    from collections.abc import Callable

SMALL = {"recompute": ["none", "full"], "zero": [0, 1], "schedule": ["1f1b", "interleaved"], "cp": [1]}


def gpt(**how: Any) -> Any:
    asked: dict[str, Any] = {"devices": 16, "batch": 32, "sequence": 1024, "require": SMALL}
    return answer(sf.Model.load("gpt-6.7b"), sf.System.load("a100-80gb-sxm"), **(asked | how))


@pytest.mark.parametrize(
    "stated", [{}, {"host_latency": 1e-4}, {"overhead_latency": 0.5, "jitter": 0.03}], ids=["plain", "host", "chance"]
)
def test_plans_are_runs(stated: dict[str, float]) -> None:
    """Each plan that is listed has the time, the memory and the MFU of a run of it, and the order is that of time."""
    found = gpt(values=stated)
    times = [record["time_s"] for record in found.records]
    assert times == sorted(times)
    for record in found.records[::3]:
        plan = Plan(**{name: record[name] for name in Plan.names()})
        model, system = sf.Model.load("gpt-6.7b"), sf.System.load("a100-80gb-sxm")
        run = sf.training(model, system, plan, batch=32, sequence=1024, **stated)
        for name in ("time_s", "tokens_per_s", "mfu"):
            assert math.isclose(record[name], run.value(name), rel_tol=1e-9)
        assert math.isclose(record["memory_bytes"], run.needed_bytes, rel_tol=1e-9)
        assert record["devices"] == run.plan.devices == 16
        assert run.fits


def test_the_bound_is_below_every_time() -> None:
    """What prunes is a lower bound: of dense models and of experts, for every schedule, recomputed or not."""
    asked = (
        ("gpt-6.7b", {"recompute": ["none"], "zero": [1], "cp": [1], "attention": ["flash"]}),
        ("olmoe-1b-7b", {"recompute": ["none"], "zero": [0], "cp": [1], "schedule": ["1f1b", "dualpipe"]}),
        ("deepseek-v2-lite", {"recompute": ["full"], "zero": [0], "cp": [1], "schedule": ["1f1b", "zero-bubble"]}),
    )
    for model, required in asked:
        question = SearchQuestion(
            sf.Model.load(model),
            sf.System.load("h100-sxm"),
            16,
            64,
            1024,
            values={"memory_capacity": 1e14},
            required={name: tuple(values) for name, values in required.items()},
        )
        space = lay_out_space(question)
        tally = Tally(space.legal, [made.length for made in space.tables], len(space.combinations), front=False)
        assert evaluate(space, tally, prune=False)
        assert len(tally.best) == tally.feasible == space.legal > 100
        members = {member.number: member for member in space.members}
        tightest = 0.0
        for time, (number, table, row) in zip(tally.best.time, tally.best.place, strict=True):
            member = members[number]
            columns = {name: column[row : row + 1] for name, column in space.tables[table].columns.items()}
            ideal = ideal_time(question, member.structure, member.scalars)
            waiting, other = lower_bounds(question, columns, ideal)
            bound = float((waiting if waits(member.structure) else other)[0])
            assert bound <= time
            tightest = max(tightest, bound / time)
        assert tightest > 0.2


def test_counts_add_up() -> None:
    """Every plan that is considered fits, or is refused for one reason."""
    found = gpt(max_memory="60 GB", limits={"tp": 4})
    assert found.considered == found.feasible + sum(found.rejected.values())
    assert found.legal >= found.feasible > 0
    assert {"does_not_fit", "above_max_memory"} & set(found.rejected)
    assert all(record["tp"] <= 4 and record["memory_bytes"] <= 60e9 for record in found.records)


def test_alternatives_are_the_best_with_another_value() -> None:
    """Each is what a search without the winner's value finds, and equally fast where it says what it needs."""
    found = gpt(prune=False)
    near = alternatives(found)
    assert {each.field for each in near} >= {"tp", "pp", "dp", "micro_batch", "recompute", "zero", "schedule"}
    best = found.winner_fields
    for each in near:
        values = [v for v in found.best.question.candidates[each.field] if v != best[each.field]]
        again = gpt(require={**SMALL, each.field: values}, top=1).records[0]
        if each.field == "rank_order":  # alone, it has the plans too that it leaves as they are: here they do not count
            whole = gpt(prune=False, top=found.feasible).records
            again = next(record for record in whole if record["rank_order"] in values)
        assert math.isclose(again["time_s"], each.time, rel_tol=1e-9)
        assert each.exact
        assert each.slower >= 0
        if each.needs is not None:
            runs = [found.best.question.run(**fields) for fields in (best, each.fields)]
            values_then = {each.needs: runs[0].bound[each.needs][0] * each.factor}
            if each.needs == "matrix_rate" or each.needs in runs[0].system.quantities:
                times = [run.bind(**values_then).value("time") for run in runs]
                assert math.isclose(times[0], times[1], rel_tol=1e-3)


def test_the_front_is_what_no_plan_beats() -> None:
    """Of all plans that fit those that none is as good as in time and memory, and no other."""
    of = cases.problem(1)
    front = of.search(pareto=True).front
    points = [(time, memory) for time, memory, _ in cases.tried(of).plans]
    best = [p for p in points if not any(q[0] <= p[0] * (1 - 1e-9) and q[1] <= p[1] * (1 + 1e-9) for q in points)]
    lowest = [p for p in best if not any(q[1] <= p[1] * (1 - 1e-9) and q[0] <= p[0] * (1 + 1e-9) for q in points)]
    distinct = {(f"{time:.8g}", f"{memory:.8g}") for time, memory in lowest}
    assert {(f"{r['time_s']:.8g}", f"{r['memory_bytes']:.8g}") for r in front} == distinct


def test_several_numbers_of_devices() -> None:
    """They are ranked together."""
    both = gpt(devices=[8, 16])
    alone = [gpt(devices=count) for count in (8, 16)]
    assert both.considered == sum(each.considered for each in alone)
    assert [r["time_s"] for r in both.records] == sorted(r["time_s"] for a in alone for r in a.records)[:10]


def test_ranked_by_cost() -> None:
    """Tokens per dollar: fewer devices win where they lose less throughput than they save."""
    dear = gpt(devices=[8, 16], by="tokens_per_dollar", values={"price_per_hour": 6e-4})
    worth = [record["tokens_per_dollar"] for record in dear.records]
    assert worth == sorted(worth, reverse=True)
    first = dear.records[0]
    assert math.isclose(worth[0], 32 * 1024 / (first["time_s"] * first["devices"] * 6e-4), rel_tol=1e-12)


def test_ranked_by_energy() -> None:
    """Tokens per joule at board power: the same order as by cost, with watts for the price."""
    watts = sf.System.load("a100-80gb-sxm").value("power")
    frugal = gpt(devices=[8, 16], by="tokens_per_joule")
    worth = [record["tokens_per_joule"] for record in frugal.records]
    assert worth == sorted(worth, reverse=True)
    first = frugal.records[0]
    assert math.isclose(worth[0], 32 * 1024 / (first["time_s"] * first["devices"] * watts), rel_tol=1e-12)


def test_in_python() -> None:
    """A table, best first, with the counts in its attributes."""
    model, system = sf.Model.load("gpt-6.7b"), sf.System.load("a100-80gb-sxm")
    table = search(model, system, devices=16, batch=32, sequence=1024, top=3, max_tp=4, **SMALL)
    assert [*table.columns[: len(Plan.names())]] == Plan.names()
    assert table.time_s.is_monotonic_increasing
    assert table.tp.max() <= 4
    assert len(table) == 3
    assert math.isclose(sum(table.attrs["shares"].values()), 1)
    assert table.attrs["considered"] == table.attrs["feasible"] + sum(table.attrs["rejected"].values())


ASKED = ["search", "gpt-6.7b", "-s", "a100-80gb-sxm", "--devices", "16", "--batch", "32", "--sequence", "1024"]
FEW = ["--require", "recompute=none,full", "--require", "zero=0,1", "--require", "schedule=1f1b,interleaved"]
FEW += ["--require", "cp=1"]


def test_json_on_the_command_line(call: Callable[[Any], Any]) -> None:
    """The keys of the contract, and the same plans as in Python."""
    code, out, err = call([*ASKED, *FEW, "--top", "3", "--json"])
    found = json.loads(out)
    assert (code, err) == (0, "")
    assert {"plans", "considered", "feasible", "rejected"} <= set(found)
    records = gpt(top=3).records
    assert [
        {**each, "command": shown["command"]} for each, shown in zip(records, found["plans"], strict=True)
    ] == found["plans"]
    assert {*Plan.names(), "time_s", "tokens_per_s", "mfu", "memory_bytes"} <= set(found["plans"][0])
    assert math.isclose(sum(found["shares"].values()), 1)
    assert found["space"]["tp"] == [1, 2, 4, 8, 16]


def test_csv_and_tables_on_the_command_line(call: Callable[[Any], Any]) -> None:
    code, out, err = call([*ASKED, *FEW, "--csv"])
    rows = list(csv.DictReader(io.StringIO(out)))
    assert (code, err, len(rows)) == (0, "", 10)
    assert [float(row["time_s"]) for row in rows] == [record["time_s"] for record in gpt().records]
    code, out, err = call([*ASKED, *FEW, "--max-micro-batch", "2"])
    assert (code, err) == (0, "")
    for text in (
        "plans considered",
        "time is due to compute",
        "another value of one field",
        "does not fit",
        "left out",
    ):
        assert text in out
    code, out, err = call([*ASKED, *FEW, "--pareto"])
    assert (code, err) == (0, "")
    assert "no other plan is as good" in out


BAD = [
    (["--require", "tp=3"], "tp = 3 does not divide 16 devices"),
    (["--require", "tp=8", "--max-tp", "4"], "constraints contradict each other: tp = 8, and max_tp = 4"),
    (["--max-tp", "1", "--max-pp", "2", "--max-dp", "4", "--max-cp", "1"], "no tp x pp x cp x dp is 16 devices"),
    (["--require", "schedule=interleaved", "--max-vpp", "1"], "schedule = interleaved needs vpp above 1"),
    (["--require", "vpp=2", "--require", "schedule=1f1b"], "vpp = 2 needs schedule interleaved"),
    (["--require", "zerro=1"], "did you mean zero?"),
    (["--require", "zero=9"], "expected 0, 1, 2 or 3"),
    (["--require", "zero"], "expected NAME=VALUE"),
    (["--require", "zero=1", "--require", "zero=2"], "zero is given twice"),
    (["--by", "beauty"], "expected time or tokens_per_dollar or tokens_per_joule"),
    (["--max-memory", "70"], "no unit"),
    (["--max-memory", "70 s"], "max_memory"),
    (["--top", "0"], "top: found 0"),
    (["--csv", "--json"], "expected one of them"),
    (["--max-tp", "0"], "max_tp: found 0"),
    (["--set", "memory_bandwith=1"], "did you mean memory_bandwidth"),
    (["--devices", "x"], "--devices: found 'x'"),
    (["--devices", "0"], "devices: found 0"),
    (["--devices", ","], "--devices"),
    (["--batch", "0"], "batch: found 0"),
    (["--sequence", "4096"], "learned positions"),
    (["--require", "precision=int8"], "precision"),
]


@pytest.mark.parametrize(("more", "told"), BAD, ids=[" ".join(more) for more, _ in BAD])
def test_bad_input(call: Callable[[Any], Any], more: list[str], told: str) -> None:
    code, out, err = call([*ASKED, "--json", *more] if "--csv" not in more else [*ASKED, *more])
    assert (code, out) == (2, "")
    assert told in err
    assert len(err.splitlines()) == 1


def test_devices_that_no_plan_can_use(call: Callable[[Any], Any]) -> None:
    """The nearest number that one can use is named."""
    asked = ["--devices", "23", "--require", "uneven_stages=false", *FEW]
    code, _, err = call([*ASKED, *asked])
    assert code == 2
    assert "no legal plan uses 23 devices" in err
    assert "the nearest number that one can use is 16" in err


def test_what_fits_nowhere(call: Callable[[Any], Any]) -> None:
    """The least memory, the smallest cluster, and the constraint without which there is an answer."""
    asked = ["recompute=none", "zero=0", "dp=16", "schedule=1f1b"]
    more = [part for text in asked for part in ("--require", text)]
    code, out, err = call([*ASKED, "--set", "memory_capacity=40 GB", *more])
    assert (code, out) == (1, "")
    assert "fits in no plan on 16 x a100-80gb-sxm: the least memory is" in err
    assert "of 37.25 GiB" in err
    assert "it fits with zero = 3 in place of 0" in err
    assert "it fits with dp = 1 in place of 16" in err
    assert "the smallest cluster found that it fits has " in err
    with pytest.raises(Unreachable, match="it fits without max_memory"):
        gpt(max_memory="3 GB", devices=8)


def test_interruption_keeps_the_best_so_far() -> None:
    """Ctrl-C: what was seen is ranked, and the answer says that it is not the whole."""
    seen = []

    def stop(done: int, total: int) -> None:
        seen.append((done, total))
        raise KeyboardInterrupt

    found = gpt(progress=stop)
    assert not found.whole
    assert seen[0][0] <= seen[0][1] == found.legal
    assert found.records
    whole = gpt()
    assert found.records[0]["time_s"] >= whole.records[0]["time_s"]
    assert np.isfinite([r["time_s"] for r in found.records]).all()
