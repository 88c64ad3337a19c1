"""The study of a full factorial of technology: its points, its best plans, and what its page says of them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from support.study_pages import module, rows

from symperf import Model, System, Technology
from symperf.plan_search.search import answer_search
from symperf.plan_search.technologies.best_over import replace_technology

study, page = module("factorial"), module("factorial_page")
ROWS = rows("factorial")
SMALL = study.Asked(
    model="gpt-1.3b",
    devices=16,
    batch=16,
    sequence=512,
    require={"schedule": ["1f1b"], "cp": [1], "recompute": ["none"], "zero": [0, 1], "sequence_parallel": [True]},
)
FEW = study.Factorial(("14nm", "2nm"), ("hbm2", "hbm4"), ("nvlink2", "nvlink5"), ("hdr",))


def test_a_chip_is_that_of_the_technology() -> None:
    """All chips at once, against the generator one by one."""
    chips = study.Factorial().chips()
    logic = study.logic_of("3nm", chips)
    count = len(chips["die_area"])
    assert count == 1500
    for at in np.random.default_rng(0).integers(0, count, 12):
        budget = {name: float(column[at]) for name, column in chips.items()} | {"stacks": 4}
        chip = Technology.load(study.SET, "3nm", memory="hbm3", scale_up="none").chip(**budget)
        for name, column in logic.items():
            assert column[at] == pytest.approx(chip.value(name), rel=1e-12)


def test_the_whole_factorial_has_a_million_points_and_the_sets_own_chip() -> None:
    whole = study.Factorial()
    assert len(whole.cells()) * len(whole.chips()["power"]) == 1_008_000
    assert len(ROWS) == len(whole.cells())
    budget = Technology.load(study.SET).budget
    assert {name: budget[name].value for name in study.DEFAULT} == pytest.approx(study.DEFAULT)
    assert all(value in whole.budgets[name] for name, value in study.DEFAULT.items())


def test_the_best_plan_is_that_of_a_search_at_the_point() -> None:
    """50 random points of a small factorial."""
    found = study.found_at(FEW, SMALL)
    model, system = Model.load(SMALL.model), System.load(SMALL.system)
    assert len(found) == 8 * 1500
    assert found.question.system.name == system.name
    for at in np.random.default_rng(1).integers(0, len(found), 50):
        point = {name: float(column[at]) for name, column in found.columns.items()}
        here = replace_technology(found.question, point).system
        best = answer_search(
            model, here, devices=16, batch=16, sequence=512, require=dict(SMALL.require), top=1, prune=False
        ).records[0]
        assert found.time[at] == pytest.approx(best["time_s"], rel=1e-12)
        plan = found.plans[found.plan[at]]
        assert plan == {name: best[name] for name in plan}


def test_rows_tell_each_cell_of_what_was_found() -> None:
    found = study.found_at(FEW, SMALL)
    told = study.rows_of(FEW, found)
    assert [tuple(row[name] for name in ("node", "memory", "scale_up", "scale_out")) for row in told] == FEW.cells()
    for k, row in enumerate(told):
        times = found.time[1500 * k : 1500 * (k + 1)]
        assert row["kept_s"] >= row["time_s"] * (1 - 1e-9)
        assert row["node"] != FEW.nodes[0] or row["kept_s"] == pytest.approx(row["time_s"])
        assert row["fastest_s"] == times.min() <= row["time_s"] <= times.max() == row["slowest_s"]
        assert math.fsum(row[f"share_{name}"] for name in study.RESOURCES) == pytest.approx(1, abs=1e-9)


def _cell(row: dict[str, Any], **other: str) -> dict[str, Any]:
    wanted = {name: row[name] for name in ("node", "memory", "scale_up", "scale_out")} | other
    return next(each for each in ROWS if all(each[name] == value for name, value in wanted.items()))


@pytest.mark.parametrize(
    ("axis", "order"),
    [("memory", study.MEMORIES), ("scale_up", study.SCALE_UP), ("scale_out", study.SCALE_OUT), ("node", study.NODES)],
)
def test_nothing_slows_down_where_one_thing_gets_better(axis: str, order: tuple[str, ...]) -> None:
    """A later memory or network is faster and no smaller; a later node has more units too, whose waves are whole."""
    slack = 1.02 if axis == "node" else 1 + 1e-9
    for row in ROWS:
        place = order.index(row[axis])
        if place and not (axis == "scale_up" and order[place] == "nvlink5"):
            before = _cell(row, **{axis: order[place - 1]})
            assert row["time_s"] <= before["time_s"] * slack


def test_shares_and_ranges_of_every_row() -> None:
    for row in ROWS:
        shares = [row[f"share_{name}"] for name in study.RESOURCES]
        assert min(shares) >= 0
        assert math.fsum(shares) == pytest.approx(1, abs=1e-6)
        assert row["fastest_s"] <= row["time_s"] <= row["slowest_s"]
        assert row["chips"] == 1500
        assert row["tp"] * row["pp"] * row["cp"] * row["dp"] == 1024
        assert row["memory_bytes"] <= 320e9


def test_the_gain_of_all_nodes_is_no_more_than_that_of_compute() -> None:
    """No bandwidth or latency gets better from node to node but those of the L2, which do not bind at the last."""
    for row in ROWS:
        if row["node"] == "1nm":
            first = _cell(row, node="14nm")
            assert 1 <= first["time_s"] / row["time_s"] <= row["matrix_rate"] / first["matrix_rate"] * (1 + 1e-9)


def test_the_page_is_a_function_of_its_table() -> None:
    blocks = page.blocks({"factorial": ROWS, "cache": rows("factorial_cache")})
    assert set(blocks) == {"size", "nodes", "gains", "binds", "plans", "chips", "reading", "l2"}
    assert "1,008,000 points" in blocks["size"]
    counts = [line.split("|")[2:-1] for line in blocks["binds"].splitlines()[2:]]
    assert all(sum(map(int, line)) == 96 for line in counts)
