"""The study of speed-ups: factors multiply exactly, ends are the catalogue's systems, the files obey the identities."""

from __future__ import annotations

import csv
import itertools
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.study_pages import STUDIES, module
from support.study_pages import rows as rows_of

from symperf import InputError, Model, Plan, System, training
from symperf.systems.kernel_constants import TRAINED

factors, speedup, page, common = (module(name) for name in ("speedup_factors", "speedup", "speedup_page", "study"))

SMALL = factors.Work("gpt3-1.3b", 8, 16, 2048)
PLAN = Plan(tp=2, pp=2, dp=2, micro_batch=1, attention="flash", sequence_parallel=True)
SYSTEMS = (speedup.FIRST, *speedup.DEVICES)
THREE = ("a", "b", "c")
KEYS = ("model", "devices", "device")


def _rows(name: str) -> list[dict[str, Any]]:
    return rows_of(f"speedup_{name}")


def _by(rows: list[dict[str, Any]], *names: str) -> dict[tuple[Any, ...], list[dict[str, Any]]]:
    found: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in rows:
        found.setdefault(tuple(row[name] for name in names), []).append(row)
    return found


# --- factors of any function of groups

TIMES = st.lists(st.floats(1e-6, 1e6), min_size=8, max_size=8).map(
    lambda values: dict(zip(factors.subsets(THREE), values, strict=True))
)


@given(TIMES)
def test_factors_multiply_to_the_whole_in_every_order_and_in_the_mean(times: Any) -> None:
    total = times[frozenset()] / times[frozenset(THREE)]
    orders = [factors.chain(times, order) for order in itertools.permutations(THREE)]
    for found in orders:
        assert math.prod(found.values()) == pytest.approx(total, rel=1e-12)
    mean = factors.shapley(times, THREE)
    assert math.prod(mean.values()) == pytest.approx(total, rel=1e-12)
    spread = factors.spread(times, THREE)
    for group in THREE:
        own = [found[group] for found in orders]
        assert mean[group] == pytest.approx(math.exp(sum(map(math.log, own)) / len(own)), rel=1e-12)
        assert spread[group] == (min(own), max(own))


@given(TIMES, st.floats(0.1, 10))
def test_a_group_that_always_gives_one_factor_has_it_and_equal_groups_have_equal_ones(
    times: Any, factor: float
) -> None:
    alone = {some: 1 / factor if "a" in some else 1.0 for some in factors.subsets(THREE)}
    scaled = {some: times[some - {"a"}] * alone[some] for some in times}
    assert factors.shapley(scaled, THREE)["a"] == pytest.approx(factor, rel=1e-12)
    even = {some: times[frozenset(THREE[: len(some)])] for some in times}
    one, *others = factors.shapley(even, THREE).values()
    assert others == pytest.approx([one, one], rel=1e-12)


# --- systems between two


def test_every_quantity_of_a_system_is_in_one_group_or_left_out() -> None:
    grouped = [name for names in factors.QUANTITIES.values() for name in names]
    assert len(grouped) == len(set(grouped))
    for name in SYSTEMS:
        for quantity in System.load(name).quantities:
            left = quantity.startswith(factors.LEFT_OUT)
            assert (quantity in grouped) is not left, quantity


@pytest.mark.parametrize("name", speedup.DEVICES)
def test_the_ends_are_the_systems_of_the_catalogue(name: str) -> None:
    """With nothing taken it is the first, with everything the second: each number the same, to the last bit."""
    first, second, precision = System.load(speedup.FIRST), System.load(name), speedup.DEVICES[name][-1]
    for own, taken in ((first, frozenset()), (second, frozenset(factors.GROUPS))):
        system = factors.mixed(first, second, taken, precision)
        assert system.levels == ("memory",)
        assert (system.quantised, system.tiers) == (own.quantised, own.tiers)
        for group in factors.QUANTITIES.values():
            for quantity in group:
                assert (quantity in system.quantities) is (quantity in own.quantities)
                if quantity in own.quantities:
                    assert system.value(quantity) == own.value(quantity)
        assert system.matrix_rate("bf16").value == own.matrix_rate("bf16").value
        assert (precision in system.matrix_rates) is bool(taken)
        if taken:
            assert system.matrix_rate(precision).value == own.matrix_rate(precision).value


def test_a_group_changes_its_own_quantities_alone() -> None:
    first, second = System.load(speedup.FIRST), System.load("b200-sxm")
    plain = factors.mixed(first, second, frozenset(), "fp4")
    for group, names in factors.QUANTITIES.items():
        system = factors.mixed(first, second, frozenset({group}), "fp4")
        changed = {
            name
            for name in {*plain.quantities, *system.quantities}
            if plain.quantities.get(name) != system.quantities.get(name) and not name.startswith(factors.LEFT_OUT)
        }
        assert changed <= set(names)
        assert changed
        assert (system.matrix_rates == plain.matrix_rates) is (group != "compute")
    lower = factors.mixed(first, second, frozenset({"precision"}), "fp4")
    assert lower.matrix_rate("fp4").value == pytest.approx(4 * 312e12, rel=1e-12)
    assert lower.quantities == plain.quantities


def test_a_held_plan_has_the_time_of_a_training_on_the_catalogue_system() -> None:
    """B200 has no rate of L2, so that nothing is left out of it that a step's time uses."""
    first, second = System.load(speedup.FIRST), System.load("b200-sxm")
    system = factors.mixed(first, second, frozenset(factors.GROUPS), "fp8")
    assert {name for name in second.families if name in TRAINED} <= set(system.families)
    for precision in ("bf16", "fp8"):
        own = Plan(tp=2, pp=2, dp=2, attention="flash", sequence_parallel=True, precision=precision)
        run = training(Model.load(SMALL.model), second, own, batch=SMALL.batch, sequence=SMALL.sequence)
        assert factors.held(SMALL, system, PLAN, precision).time == run.value("time")


def test_better_rates_never_slow_a_held_plan() -> None:
    """Bandwidth, capacity and rates all rise from A100 to B200: with units as they are, no corner gets slower."""
    first, second = System.load(speedup.FIRST), System.load("b200-sxm")
    names = ("compute", "memory", "attained")
    times = {
        some: factors.held(SMALL, factors.mixed(first, second, some), PLAN).time for some in factors.subsets(names)
    }
    for some in factors.subsets(("compute", "attained")):
        assert times[some | {"memory"}] <= times[some]
    assert math.prod(factors.shapley(times, names).values()) == pytest.approx(
        times[frozenset()] / times[frozenset(names)], rel=1e-12
    )


# --- plans


def test_the_best_plan_is_at_least_as_fast_as_a_held_one_and_the_more_is_free_the_faster() -> None:
    system = speedup.own("h100-sxm")
    held = factors.held(SMALL, system, PLAN)
    same_layout = factors.best(SMALL, system, like=PLAN)
    free = factors.best(SMALL, system)
    assert held.fits
    assert free.time <= same_layout.time <= held.time
    for name in Plan.names():
        if name not in (*factors.FREE, "schedule"):
            assert getattr(same_layout.plan, name) == getattr(PLAN, name), name
    assert same_layout.plan.effective_schedule == PLAN.effective_schedule


def test_where_nothing_fits_there_is_no_best_plan() -> None:
    work = factors.Work("gpt3-175b", 1, 1, 2048)
    assert factors.best(work, speedup.own(speedup.FIRST)) is None
    with pytest.raises(InputError, match="no plan fits 1 a100-80gb-sxm"):
        speedup.start(work)


def test_a_mixture_of_experts_is_taken_apart_by_the_same_functions() -> None:
    work, plan = (
        factors.Work("deepseek-v3", 256, 512, 4096),
        Plan(pp=16, dp=16, ep=16, micro_batch=1, uneven_stages=True),
    )
    first, second = System.load(speedup.FIRST), System.load("h200-sxm")
    names = ("compute", "memory", "network")
    times = {some: factors.held(work, factors.mixed(first, second, some), plan).time for some in factors.subsets(names)}
    assert math.prod(factors.shapley(times, names).values()) == pytest.approx(
        times[frozenset()] / times[frozenset(names)], rel=1e-12
    )
    assert min(factors.shapley(times, names).values()) > 1


@given(st.sets(st.sampled_from(factors.GROUPS)))
def test_a_mixed_system_has_a_family_of_constants_as_one_of_the_two_has_it(taken: set[str]) -> None:
    """No corner halves a family; what of it changes the form of the cost comes with one group alone."""
    first, second = System.load(speedup.FIRST), System.load("b200-sxm")
    families = set(factors.mixed(first, second, frozenset(taken)).families)
    assert "domain" in families
    assert ("loops" in families) is ("attained" in taken)


# --- the files


def test_the_files_have_all_comparisons_and_corners() -> None:
    corners = _by(_rows("corners"), *KEYS)
    expected = {(w.model, w.devices, device) for w in speedup.WORKS for device in speedup.DEVICES}
    assert corners.keys() == expected
    assert all(
        speedup.times_of(rows).keys() == set(factors.subsets(factors.GROUPS)) and len(rows) == 64
        for rows in corners.values()
    )


def test_factors_are_those_of_the_corners_and_multiply_to_the_speed_up_of_the_best_plans() -> None:
    corners, totals = _by(_rows("corners"), *KEYS), _by(_rows("totals"), *KEYS)
    for key, rows in _by(_rows("factors"), *KEYS).items():
        again = common.as_read({"factors": speedup.factor_rows(corners[key])})["factors"]
        assert not common.missing(rows, again)
        whole = next(row for row in totals[key] if row["precision"] == rows[0]["precision"])
        for column in ("path", "mean"):
            assert math.prod(row[column] for row in rows) == pytest.approx(whole["best_plan"], rel=1e-8)
        for row in rows:
            assert row["least"] <= min(row["mean"], row["path"], row["changed_first"], row["changed_last"])
            assert row["largest"] >= max(row["mean"], row["path"], row["changed_first"], row["changed_last"])


def test_a_speed_up_is_the_ratio_of_peaks_times_the_ratio_of_mfus() -> None:
    for row in _rows("totals"):
        assert row["best_plan"] == pytest.approx(row["peak_ratio"] * row["mfu"] / row["first_mfu"], rel=1e-8)
        assert row["best_plan"] == pytest.approx(row["first_time_s"] / row["time_s"], rel=1e-8)
        if row["same_plan_fits"]:
            assert row["best_plan"] >= row["same_plan"] * (1 - 1e-9)


def test_usual_schedules_are_no_faster_than_all() -> None:
    """On A100 and on the other device; their ratio may be either."""
    for work in speedup.WORKS[:1]:
        assert speedup.start(work).time <= speedup.start(work, usual=True).time
        assert speedup.start(work, usual=True).plan.effective_schedule in speedup.USUAL["schedule"]
    for row in _rows("totals"):
        assert 0.5 < row["usual_schedules"] / row["best_plan"] < 2


def test_free_plans_are_no_slower_where_the_held_one_fits() -> None:
    for rows in _by(_rows("corners"), *KEYS).values():
        times = speedup.times_of(rows)
        fits = {frozenset(row["changed"].split("+")) - {"nothing"}: row["fits"] for row in rows}
        for some in factors.subsets(factors.GROUPS[:-1]):
            assert fits[some | {"plan"}]
            if fits[some]:
                assert times[some | {"plan"}] <= times[some] * (1 + 1e-9)


def test_the_finer_path_multiplies_to_the_same() -> None:
    totals = {(*[r[k] for k in KEYS], r["precision"]): r["best_plan"] for r in _rows("totals")}
    for key, rows in _by(_rows("path"), *KEYS).items():
        assert math.prod(row["factor"] for row in rows) == pytest.approx(rows[-1]["so_far"], rel=1e-8)
        assert rows[-1]["so_far"] == pytest.approx(totals[*key, rows[0]["precision"]], rel=1e-8)
        assert [row["step"] for row in rows] == [
            *speedup.DEVICES[key[-1]],
            "compute",
            "memory",
            "network",
            "attained",
            "batch",
            "layout",
        ]


def test_shares_sum_to_one_and_elasticities_are_part_of_them() -> None:
    for row in _rows("shares"):
        parts = [row[name] for name in ("compute", "memory", "scale_up", "scale_out", "launch")]
        assert sum(parts) == pytest.approx(1, abs=1e-8)
        assert 0 <= row["matrix_rate"] <= row["compute"] + 1e-9


def test_the_elasticity_is_the_derivative_of_the_time() -> None:
    system = speedup.own("h100-sxm")
    held = factors.held(SMALL, system, PLAN)
    rate = system.matrix_rate("bf16").value
    low, high = (
        factors.held(SMALL, system.with_values({"matrix_rate": rate * x}, "bf16"), PLAN).time
        for x in (1 - 1e-6, 1 + 1e-6)
    )
    slope = math.log(high / low) / math.log((1 + 1e-6) / (1 - 1e-6))
    assert held.run.sensitivity()["matrix_rate"] == pytest.approx(slope, rel=1e-5)


def test_the_ratio_of_peaks_is_that_of_the_summary() -> None:
    ratio = next(r["ratio"] for r in _rows("rates") if (r["device"], r["quantity"]) == ("b200-sxm", "bf16"))
    assert round(ratio, 1) == 7.2
    assert "2250 / 312 = 7.21" in (STUDIES / "speedup.md").read_text(encoding="utf-8")


def test_the_ladder_starts_at_the_totals_and_says_what_the_page_says() -> None:
    totals = {(*[r[k] for k in KEYS], r["precision"]): r for r in _rows("totals")}
    for key, rows in _by(_rows("ladder"), *KEYS).items():
        found = {row["assumption"]: row["speedup"] for row in rows}
        assert found["its rates, A100's plan"] == pytest.approx(totals[*key, "bf16"]["same_plan"], rel=1e-8)
        assert found["its best plan"] == pytest.approx(totals[*key, "bf16"]["best_plan"], rel=1e-8)
        assert found["fp4"] == pytest.approx(totals[*key, "fp4"]["best_plan"], rel=1e-8)
        climb = [found[name] for name in speedup.LADDER if name in found and not name.startswith("both")]
        assert climb == sorted(climb)


def test_what_the_page_says_in_words_holds() -> None:
    """A100's best plans recompute nothing; what fp8, fp4 would need of the MFU."""
    for row in _rows("totals"):
        assert "recompute" not in row["first_plan"]
        ratio = page.PUBLISHED / row["peak_ratio"]
        if row["device"] == "b200-sxm":
            bounds = {"bf16": (4.5, 5), "fp8": (2, 3), "fp4": (1, 1.5)}[row["precision"]]
            assert bounds[0] < ratio < bounds[1]


def test_the_csv_files_are_plain_tables() -> None:
    for path in sorted(STUDIES.glob("speedup_*.csv")):
        with path.open(encoding="utf-8", newline="") as file:
            header, *rows = csv.reader(file)
        assert rows
        assert all(len(row) == len(header) for row in rows), path.name


# --- the figure


def test_the_figure_stacks_to_the_products() -> None:
    figures = pytest.importorskip("matplotlib.figure")
    rows = _rows("factors")
    figure = figures.Figure(figsize=(8, 5), layout="constrained")
    page.draw(figure, rows)
    axes = figure.get_axes()
    assert len(axes) == len(speedup.WORKS)
    totals = [found["plan"]["total"] for found in page.groups_of(rows).values()]
    tops: list[float] = []
    for axis in axes:
        ends: dict[int, list[float]] = {}
        for bar in axis.patches:
            ends.setdefault(round(bar.get_x() + bar.get_width() / 2), []).append(
                (bar.get_y() + bar.get_height()) / bar.get_y()
            )
        tops += [math.prod(each) for each in ends.values()]
    assert tops == pytest.approx(totals, rel=1e-8)
