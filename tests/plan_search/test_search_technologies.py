"""The best of all plans over many technologies is what a search at each of them finds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import search_cases as cases

import symperf as sf
from symperf.codegen.interpret import arrays, run
from symperf.codegen.program import Program
from symperf.common.errors import InputError
from symperf.plan_search.evaluate import lay_out_space
from symperf.plan_search.search import answer_search
from symperf.plan_search.space import SearchQuestion
from symperf.plan_search.technologies.best_over import BestOver, best_over, replace_technology
from symperf.plan_search.technologies.direction import LEAST_UNITS, MOST_UNITS, corner, directions
from symperf.plan_search.technologies.space import units_of
from symperf.plan_search.technologies.unit import EXACT, FAST

SMALL: dict[str, Any] = {
    "require": {"schedule": ["1f1b", "zero-bubble"], "cp": [1], "recompute": ["none", "full"], "zero": [0, 1, 3]},
}
MENU = {**SMALL["require"], "sequence_parallel": [False, True], "attention": ["flash"]}
WORK: dict[str, Any] = {"devices": 16, "batch": 16, "sequence": 512}


def table(count: int, seed: int = 0, **fixed: Any) -> dict[str, Any]:
    """Random technologies, some of which are too small for any plan."""
    draw = np.random.default_rng(seed)

    def between(low: float, high: float) -> Any:
        return np.exp(draw.uniform(math.log(low), math.log(high), count))

    return {
        "matrix_rate": between(5e13, 5e15),
        "compute_units": draw.integers(20, 600, count).astype(float),
        "vector_rate": between(5e12, 3e14),
        "memory_bandwidth": between(5e11, 2e13),
        "memory_capacity": draw.choice([1e9, 3e9, 1e10, 8e10], count),
        "l2_bandwidth": between(1e12, 5e13),
        "l2_capacity": between(5e6, 3e8),
        "scale_up_bandwidth": between(5e10, 2e12),
        "scale_out_bandwidth": between(5e9, 2e11),
        "scale_up_size": draw.choice([4.0, 8.0], count),
        "scale_up_latency": draw.choice([0.0, 1e-6, 1e-5], count),
        **fixed,
    }


def check(found: BestOver, model: sf.Model, technology: int, **work: Any) -> None:
    """Compare a technology's best plan with that of a search there that leaves nothing out."""
    at = {name: float(column[technology]) for name, column in found.columns.items()}
    system = replace_technology(found.question, at).system
    answer = answer_search(model, system, top=3, prune=False, **work)
    assert (answer.legal, answer.feasible) == (found.legal[technology], found.feasible[technology])
    if not answer.feasible:
        assert found.plan[technology] == -1
        assert math.isinf(found.time[technology])
        return
    best = answer.records[0]
    assert found.time[technology] == pytest.approx(best["time_s"], rel=1e-12)
    assert found.memory[technology] == pytest.approx(best["memory_bytes"], rel=1e-12)
    plan = found.plans[found.plan[technology]]
    assert plan == {name: best[name] for name in plan}
    assert found.run(technology).value("time") == pytest.approx(best["time_s"], rel=1e-9)


def test_each_technology_has_the_plan_that_a_search_finds() -> None:
    """Eleven quantities at random, two of which have no direction or decide what fits."""
    model = sf.Model.load("gpt-1.3b")
    found = best_over(model, sf.System.load("h100-sxm"), table(40), **WORK, require=MENU)
    for technology in range(40):
        check(found, model, technology, **WORK, require=MENU)
    assert (found.plan < 0).any()
    assert (found.plan >= 0).any()
    assert len(found.plans) > 1


@pytest.mark.parametrize("seed", [1, 6, 13, 22, 31])
def test_small_problems_with_every_kind_of_plan(seed: int) -> None:
    """The random problems of the search's own tests, with experts, memory limits and limits of degrees."""
    of = cases.problem(seed)
    model, system = sf.Model.load(of.model), sf.System.load(of.system)
    draw = np.random.default_rng(seed)
    columns = {
        "matrix_rate": 10 ** draw.uniform(13, 16, 6),
        "memory_bandwidth": 10 ** draw.uniform(11.5, 13.5, 6),
        "scale_up_bandwidth": 10 ** draw.uniform(10, 12.5, 6),
    }
    work: dict[str, Any] = {
        "devices": of.devices,
        "batch": of.batch,
        "sequence": of.sequence,
        "require": of.menu,
        "limits": of.limits,
        "values": of.values,
    }
    found = best_over(model, system, columns, **work)
    for technology in range(6):
        check(found, model, technology, **work)


def test_rates_of_other_precisions_keep_their_ratio() -> None:
    """FP8 is searched beside 16 bits; columns are of 16 bits."""
    model, system = sf.Model.load("gpt-1.3b"), sf.System.load("h100-sxm")
    require = {**MENU, "precision": ["bf16", "fp8"], "zero": [1], "schedule": ["1f1b"]}
    found = best_over(model, system, {"matrix_rate": [2e14, 1e15, 5e15]}, **WORK, require=require)
    for technology in range(3):
        check(found, model, technology, **WORK, require=require)
    assert "fp8" in {found.plans[k]["precision"] for k in found.plan}


def test_a_second_of_another_length_changes_times_alone() -> None:
    """Times are homogeneous: all rates and latencies in another unit of time give the same plans."""
    model, system = sf.Model.load("gpt-1.3b"), sf.System.load("h100-sxm")
    columns = table(30, 3, scale_up_size=np.full(30, 8.0))
    columns["scale_out_latency"], columns["launch_latency"] = np.full(30, 1e-5), np.full(30, 4e-6)
    columns["collective_latency"] = np.full(30, 4e-5)
    rates = ("matrix_rate", "vector_rate", *(name for name in columns if name.endswith("bandwidth")))
    latencies = [name for name in columns if name.endswith("latency")]
    halved = columns | {n: columns[n] / 2 for n in rates} | {n: columns[n] * 2 for n in latencies}
    first, second = (best_over(model, system, each, **WORK, require=MENU) for each in (columns, halved))
    assert np.allclose(second.time, 2 * first.time, rtol=1e-9)
    assert [second.plans[k] for k in second.plan if k >= 0] == [first.plans[k] for k in first.plan if k >= 0]


def test_order_and_repetition_make_no_difference() -> None:
    model, system = sf.Model.load("gpt-1.3b"), sf.System.load("h100-sxm")
    columns = table(60, 5)
    shuffled = np.random.default_rng(0).permutation(np.tile(np.arange(60), 3))
    one = best_over(model, system, columns, **WORK, require=MENU, threads=1)
    two = best_over(model, system, {n: c[shuffled] for n, c in columns.items()}, **WORK, require=MENU, threads=3)
    assert np.array_equal(two.time, one.time[shuffled])
    same = [one.plans[k] if k >= 0 else None for k in one.plan[shuffled]]
    assert [two.plans[k] if k >= 0 else None for k in two.plan] == same


@pytest.mark.parametrize("name", ["tpu-v4", "l40s", "v100-32gb-sxm"])
def test_systems_that_describe_less(name: str) -> None:
    """Without an L2 cache, units or a network between domains."""
    model, system = sf.Model.load("gpt-1.3b"), sf.System.load(name)
    work = {**WORK, "devices": 4}
    columns = {"matrix_rate": [5e13, 4e14], "memory_bandwidth": [4e11, 3e12]}
    found = best_over(model, system, columns, **work, require=MENU)
    for technology in range(2):
        check(found, model, technology, **work, require=MENU)


# --- proofs and bounds


def test_directions_of_a_wave() -> None:
    """ceil(T / u) u w / F falls with F, and rises with filled waves; a bare u has no direction."""
    program = Program(
        [
            ("input", "tiles"),
            ("input", "compute_units"),
            ("input", "matrix_rate"),
            ("ceil_div", 0, 1),
            ("multiply", 3, 1),
            ("divide", 4, 2),
            ("divide", 3, 2),
        ],
        {"tiles": 0, "compute_units": 1, "matrix_rate": 2},
        {},
        {"time": 5, "waves": 6},
    )
    degrees = {"compute_units": 0.0, "matrix_rate": -1.0}
    assert directions(program, ["time"], degrees, "compute_units").ways == {"compute_units": 1, "matrix_rate": -1}
    assert directions(program, ["waves"], degrees, "compute_units").ways["compute_units"] == 0
    assert directions(program, ["time"], degrees).ways["compute_units"] == 0
    assert directions(program, ["time"], degrees, "compute_units").homogeneous
    assert not directions(program, ["time"], {"compute_units": 0.0, "matrix_rate": 0.0}, "compute_units").homogeneous


@given(st.integers(1, 5000), st.integers(1, 300), st.integers(0, 300), st.integers(0, 300))
def test_filled_waves_are_never_below_their_bound(tiles: int, least: int, between: int, more: int) -> None:
    units, most = least + between, least + between + more
    bound = max(tiles, -(-tiles // most) * least)
    assert bound <= -(-tiles // units) * units
    program = Program(
        [("input", "t"), ("input", "u"), ("ceil_div", 0, 1), ("multiply", 2, 1)], {"t": 0, "u": 1}, {}, {"filled": 3}
    )
    low = corner(program, "u")
    values = run(low, {"t": tiles, "u": 7.0, LEAST_UNITS: least, MOST_UNITS: most}, arrays())
    assert float(values[low.outputs["filled"]]) == pytest.approx(bound, rel=1e-12)


@given(st.integers(1, 500), st.integers(1, 300), st.integers(0, 300), st.integers(0, 300))
def test_split_tiles_and_their_sums_are_never_below_their_bound(
    tiles: int, least: int, between: int, more: int
) -> None:
    """ceil(T / u) u / max(1, floor(u / T)) + u: parts are at most those of most units, sums at least those of least."""
    units, most = least + between, least + between + more
    program = Program(
        [
            ("input", "t"),
            ("input", "u"),
            ("ceil_div", 0, 1),
            ("multiply", 2, 1),
            ("constant", 1),
            ("add", 1, 4),
            ("ceil_div", 5, 0),
            ("subtract", 6, 4),
            ("max", 4, 7),
            ("divide", 3, 8),
            ("add", 9, 1),
        ],
        {"t": 0, "u": 1},
        {},
        {"time": 10, "parts": 8},
    )
    assert directions(program, ["time"], {"u": 0.0}, "u").ways == {"u": 1}
    assert directions(program, ["parts"], {"u": 0.0}, "u").ways == {"u": -1}
    low = corner(program, "u")
    assert "u" not in low.inputs
    values = run(low, {"t": tiles, LEAST_UNITS: least, MOST_UNITS: most}, arrays())
    bound = max(tiles, -(-tiles // most) * least) / max(1, most // tiles) + least
    assert float(values[low.outputs["time"]]) == pytest.approx(bound, rel=1e-12)
    assert bound <= -(-tiles // units) * units / max(1, units // tiles) + units


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000))
def test_no_plan_is_faster_in_a_block_than_at_its_corner(seed: int) -> None:
    """For every plan, with each coordinate anywhere between its ends."""
    units, names = _units()
    draw = np.random.default_rng(seed)
    ends = {name: np.sort(draw.choice(values, 2)) for name, values in table(50, seed).items() if name in names}
    inside = {name: np.exp(draw.uniform(*np.log(np.maximum(pair, 1e-9)))) for name, pair in ends.items()}
    inside["compute_units"] = np.float64(draw.integers(*(ends["compute_units"] + [0, 1])))
    for unit in units:
        ways = unit.proof.ways
        best = {name: ends[name][0 if ways[name] > 0 else 1] for name in ends}
        limits = {LEAST_UNITS: ends["compute_units"][0], MOST_UNITS: ends["compute_units"][1]}
        rows = np.flatnonzero(unit.legal.any(axis=0))
        at = np.zeros(len(rows), np.int64)
        mask = unit.bits(np.inf)[rows]

        def times(kind: str, values: Any) -> Any:
            pairs = unit.pairs(kind, mask)  # noqa: B023
            technologies = {name: np.array([float(value)]) for name, value in values.items()}
            found = np.concatenate([t for _, t in pairs.run(rows, technologies, at)], axis=1)  # noqa: B023
            return np.where(pairs.among(mask), found, np.inf)  # noqa: B023

        rest = {name: unit.scalars[name] for name in names if name in unit.scalars and name not in ends}
        assert (times(FAST, best | limits | rest) <= times(EXACT, inside | rest) * (1 + 1e-9)).all()


_known: list[Any] = []


def _units() -> Any:
    """The plans of a small space, with every quantity of the tables but the size of a domain as a coordinate."""
    if not _known:
        model, system = sf.Model.load("gpt-1.3b"), sf.System.load("h100-sxm")
        question = SearchQuestion(model, system, 16, 16, 512, required={n: tuple(v) for n, v in MENU.items()})
        names = [n for n in table(1) if n not in ("scale_up_size", "memory_capacity")]
        _known.append((units_of(lay_out_space(question), names, 1e15), names))
    return _known[0]


# --- bad input


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({}, "found no columns"),
        ({"matrix_rat": [1e14]}, "did you mean matrix_rate"),
        ({"matrix_rate": [1e14, 1e15], "memory_bandwidth": [1e12]}, "columns of different lengths"),
        ({"matrix_rate": [1e14, -1.0]}, "value 1 is -1"),
        ({"matrix_rate": [float("nan")]}, "value 0 is nan"),
        ({"matrix_rate": []}, "one or more values"),
        ({"matrix_rate": [[1e14]]}, "one or more values"),
        ({"matrix_rate": ["fast"]}, "expected numbers"),
        ({"memory_bandwidth": [2.0]}, "in SI units"),
        ({"vector_energy": [1e-12]}, "has none"),
    ],
)
def test_bad_columns_are_refused_in_one_line(columns: Any, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        best_over(sf.Model.load("gpt-1.3b"), sf.System.load("h100-sxm"), columns, **WORK, require=MENU)
    assert "\n" not in str(caught.value)


def test_a_value_beside_its_column_is_refused() -> None:
    values = {"memory_bandwidth": 1e12}
    with pytest.raises(InputError, match="found a value and a column"):
        best_over(
            sf.Model.load("gpt-1.3b"),
            sf.System.load("h100-sxm"),
            {"memory_bandwidth": [1e12]},
            **WORK,
            require=MENU,
            values=values,
        )


def test_a_technology_where_nothing_fits_has_no_run() -> None:
    model, system = sf.Model.load("gpt-1.3b"), sf.System.load("h100-sxm")
    found = best_over(model, system, {"memory_capacity": [1e9, 8e10]}, **WORK, require=MENU)
    assert len(found) == 2
    assert [plan >= 0 for plan in found.plan] == [False, True]
    with pytest.raises(InputError, match="no plan fits"):
        found.run(0)
