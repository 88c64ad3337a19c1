"""Errors by group, by aim, by where constants are from; and layouts that compete."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.calibration_scripts import script
from support.validation_cases import TRAINING

import symperf as sf
from symperf.common.errors import InputError
from symperf.evaluation.causes import scatter_of
from symperf.infer.stack import Stack
from symperf.infer.stack import names as stacks
from symperf.systems.software import Software
from symperf.systems.software import names as training_stacks
from symperf.systems.system import System, catalogue_names
from symperf.validation import report, tables
from symperf.validation.case import Case, Scored
from symperf.validation.chosen import LEAST, chosen_symbols, chosen_table, judged
from symperf.validation.groups import (
    by_aim,
    check_grouping,
    contests,
    group_of,
    grouped,
    split,
    worst_groups,
)
from symperf.validation.labels import GROUPINGS, judged_as, shape_of, year_of
from symperf.validation.models import from_dimensions
from symperf.validation.rows import PACKAGED, TableRow, read
from symperf.validation.score import Report, predict_case
from symperf.validation.serving import SOURCES
from symperf.validation.training import express

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def _scored(
    errors: Sequence[float], source: str = "A", chosen: float | None = 0.0, reach: float = 1.2, **labels: str
) -> list[Scored]:
    return [
        Scored(
            source, f"{source}-{n}", "time_s", 1 + n, (1 + n) * (1 + error), labels, (1 + n) / reach, (1 + n) * reach
        )
        if chosen is None
        else Scored(
            *(source, f"{source}-{n}", "time_s", 1.0 + n, (1 + n) * (1 + error), labels),
            low=(1 + n) * (1 + error) / reach,
            high=(1 + n) * (1 + error) * reach,
            chosen=chosen,
        )
        for n, error in enumerate(errors)
    ]


def _case(**cells: str) -> Scored:
    (case,) = express(TableRow("training.csv", 2, TRAINING | cells))
    assert isinstance(case, Case)
    found = predict_case(case)
    assert isinstance(found, Scored)
    return found


def test_a_group_has_mean_median_bias_coverage_and_width_by_hand() -> None:
    found = group_of("G", _scored([0.1, -0.3, 0.05, 0.1], judged="training"))
    assert found.mape == pytest.approx(0.1375)
    assert found.median == pytest.approx(0.1)
    assert found.bias == pytest.approx(-0.0125)
    assert found.coverage == 0.75  # 0.7 times 1.2 is below 1
    assert found.width == pytest.approx(1.44)
    assert found.aim == pytest.approx(judged()["aim"]["training"])
    assert found.excess == pytest.approx(found.mape / found.aim)


@given(st.lists(st.tuples(st.floats(-0.5, 0.5), st.sampled_from("abc")), min_size=1, max_size=40))
def test_every_row_is_in_one_group_and_the_groups_make_the_whole(rows: list[tuple[float, str]]) -> None:
    scored = [row for error, name in rows for row in _scored([error], device=name)]
    found = grouped(scored, "device")
    assert sum(one.rows for one in found) == len(scored)
    assert sum(one.rows * one.mape for one in found) == pytest.approx(sum(abs(row.error) for row in scored))
    assert [one.rows for one in found] == sorted((one.rows for one in found), reverse=True)


def test_blackwell_and_mixtures_stand_apart_with_their_own_aims() -> None:
    rows = _scored([0.11] * 3, "DGXC", judged="training") + _scored([0.11] * 2, "DGXC", judged="blackwell")
    found = {one.name: one for one in by_aim(rows + _scored([0.3], "DGXC", judged="mixtures"))}
    assert [(name, one.mape <= one.aim) for name, one in found.items()] == [
        ("DGXC, training", False),
        ("DGXC, blackwell", True),
        ("DGXC, mixtures", False),
    ]
    assert judged_as("DGXC", routed=True, generation="Blackwell", serves=False) == "blackwell"
    assert judged_as("X memory", routed=True, generation="Blackwell", serves=True) == "memory"


def test_the_worst_groups_are_worst_over_their_aims_and_none_is_told_twice() -> None:
    rows = _scored([0.15] * 12, "A", device="a", judged="inference") + _scored([0.14] * 12, "B", device="b")
    found = worst_groups(rows, 10)
    assert [(by, one.name) for by, one in found[:2]] == [("family", "B"), ("family", "A")]
    assert all(one.rows >= 10 for _, one in found)
    assert len({(one.rows, one.mape) for _, one in found}) == len(found)


def test_rows_that_set_constants_are_told_apart_and_no_part_of_what_all_rows_say() -> None:
    apart = _scored([0.5] * 4, "VTRAINS (calibration)", device="a")
    found = Report([*_scored([0.1, 0.1], device="a"), *apart], [])
    told = report.as_json(found, ["device"])
    assert report.total(found).startswith("2 rows scored, 0 left out, 4 that set constants told apart; median")
    assert [(one["name"], one["rows"]) for one in told["sources"]] == [("A", 2), ("VTRAINS (calibration)", 4)]
    assert [(one["name"], one["rows"]) for one in told["groups"]["device"]] == [("a", 2)]
    assert told["constants"]["kernels"]["rows"] == 2


def test_an_unknown_grouping_is_one_line_with_the_nearest(call: Any) -> None:
    with pytest.raises(InputError, match=r"by: found 'divice'.*device"):
        check_grouping("divice")
    code, out, err = call(["validate", "--source", "KORTH", "--by", "divice"])
    assert (code, out, err.count("\n")) == (2, "", 1)


def test_the_command_line_tells_groups(call: Any) -> None:
    code, out, _ = call(["validate", "--source", "KORTH", "--by", "device", "--by", "class", "--json"])
    found = json.loads(out)
    assert code == 0
    assert [one["name"] for one in found["groups"]["device"]] == ["a100-80gb-sxm"]
    assert [one["name"] for one in found["groups"]["class"]] == ["dense"]
    assert found["groups"]["device"][0]["rows"] == found["sources"][0]["rows"]
    assert found["groups"]["device"][0]["mape"] == pytest.approx(found["sources"][0]["mape"])
    assert sum(one["rows"] for one in found["constants"].values()) == found["sources"][0]["rows"]


def test_reports_have_a_table_of_each_grouping() -> None:
    found = report.markdown(Report(_scored([0.1, 0.2], software="NeMo"), []), 0, ["software", "year"])
    assert "| NeMo | 2 | 15.0% |" in found
    assert "| not told | 2 | 15.0% |" in found


# --- what a prediction rests on


def test_a_share_chosen_after_errors_were_seen_marks_what_goes_with_it() -> None:
    hopper = {"hw_key": "H100-80GB-SXM5", "framework": "llm-foundry"}
    assert (_case(**hopper).chosen or 0) > 0.3
    plain = _case(hw_key="H100-80GB-SXM5", framework="lit-gpt")
    assert plain.chosen is not None
    assert plain.chosen < LEAST
    kernels, chosen = split([plain, _case(**hopper)])
    assert (len(kernels), len(chosen)) == (1, 1)


def test_memory_goes_with_no_constant() -> None:
    assert split(_scored([0.1], chosen=None)) == ([], [])


def test_every_entry_of_the_table_means_a_value_of_the_catalogue() -> None:
    """Each symbol is one that some system or software has, from a source that holds the entry's text."""
    sources: dict[str, set[str]] = {}
    known = [System.load(name).quantities for name in catalogue_names()]
    hopper = System.load("h100-sxm")
    for name in training_stacks():
        equipped = Software.load(name).on(hopper)
        known += [equipped.quantities, equipped.software]
    known += [Stack.load(name).quantities for name in stacks()]
    for quantities in known:
        for symbol, quantity in quantities.items():
            sources.setdefault(symbol, set()).add(quantity.source)
    for entry in chosen_table():
        for symbol in entry.symbols:
            assert any(entry.source in source for source in sources[symbol]), (symbol, entry.source)


def test_a_value_that_is_given_is_not_chosen() -> None:
    run = sf.inference("llama-2-7b", "h100-sxm", batch=1, prompt=20, generate=20, stack="vllm")
    assert "step_latency" in chosen_symbols(run)
    assert "step_latency" not in chosen_symbols(run.bind(step_latency=1e-3))


def test_every_family_has_a_year() -> None:
    families = {
        tables.source_of(row)
        for name in tables.TABLES
        if name != "serving.csv"
        for row in read(PACKAGED / name, tables.columns_of(name))
    }
    assert {name for name in {*families, *SOURCES.values()} if year_of(name) == "not told"} == set()
    frameworks = ("NeMo (recipe v25.04.02)", "Megatron-Bridge 26.04.01", "vLLM nightly (Feb 2026)", "TensorRT 10.8")
    assert [year_of("NIM", text) for text in frameworks] == ["2025", "2026", "2026", "2025"]


# --- layouts


def test_contests_rank_layouts_of_one_model_system_and_work() -> None:
    def rows(predicted: Sequence[float], contest: str) -> list[Scored]:
        return [
            Scored("A", str(n), "time_s", 1.0 + n, value, {"contest": contest, "layout": f"tp={n}"}, low=1.0, high=2.0)
            for n, value in enumerate(predicted)
        ]

    right, turned = rows([1, 2, 3, 4], "x"), rows([3, 2, 1], "y")
    found = contests([*right, *turned, *rows([1, 2], "z")])
    assert found is not None
    assert (found.contests, found.rows) == (2, 7)
    assert found.correlation == pytest.approx((4 * 1 + 3 * -1) / 7)
    assert found.ordered == pytest.approx(6 / 9)
    assert contests(rows([1, 2], "z")) is None
    memory = [dataclasses.replace(row, low=None, high=None) for row in right]
    assert contests(memory) is None
    level = [dataclasses.replace(row, measured=1 + n / 100) for n, row in enumerate(rows([1, 2, 3], "w"))]
    assert contests(level) is None
    apart = contests([*right, *level])
    assert apart is not None
    assert (apart.contests, apart.level, apart.rows, apart.correlation) == (1, 1, 4, 1.0)


def test_models_of_other_shapes_do_not_compete() -> None:
    """Heads leave the number of parameters as it is, and change the time."""
    models = [
        from_dimensions({"layers": 12, "hidden": 768, "heads": 12, "vocab": 50304} | extra)
        for extra in ({}, {"heads": 12}, {"heads": 24})
    ]
    assert shape_of(models[0]) == shape_of(models[1]) != shape_of(models[2])


def test_steps_of_several_batches_compete_by_their_time_for_each_sequence() -> None:
    labels = [{"contest": "m s 8 sequence=1", "layout": f"batch={n}", "batch": str(n)} for n in (8, 16, 32)]
    times = ((8.0, 9.0), (12.0, 14.0), (20.0, 21.0))
    rows = [
        Scored("A", str(n), "time_s", *pair, label, low=1.0, high=30.0)
        for n, (pair, label) in enumerate(zip(times, labels, strict=True))
    ]
    found = contests(rows)
    assert found is not None
    assert (found.correlation, found.ordered) == (1.0, 1.0)
    worse = [*rows[:2], dataclasses.replace(rows[2], predicted=32.0)]  # 1 a sequence: between 1.125 and 0.875
    found = contests(worse)
    assert found is not None
    assert found.ordered == pytest.approx(2 / 3)


def test_the_csv_of_a_report_has_what_groups_are_made_of() -> None:
    found = _case()
    (line,) = report.as_csv([found]).splitlines()[1:]
    assert found.labels["device"] in line
    assert found.labels["contest"] in line
    assert set(GROUPINGS[1:]) <= set(report.LABELS) <= {*found.labels, "concurrency"}


# --- the calibration of intervals


def test_the_quantiles_of_the_calibration_by_hand() -> None:
    with script("intervals") as intervals:
        assert intervals.quantile([float(n) for n in range(1, 20)], 0.95) == 19.0
        assert intervals.quantile([float(n) for n in range(1, 40)], 0.95) == 38.0
        needs = [("a", 0.1)] * 90 + [("b", 0.5)] * 10
        assert intervals.pooled(needs, 0.5) == 0.1
        assert intervals.pooled(needs, 0.51) == 0.5


def test_only_a_profile_with_kernels_of_its_own_can_be_without_them(tmp_path: Path) -> None:
    with script("intervals") as intervals:
        with pytest.raises(ValueError, match="no list of kernels"):
            intervals.without("vllm-0.19", tmp_path)
        assert Stack.load("vllm-0.24").reached
        assert not Stack.load(intervals.without("vllm-0.24", tmp_path)).reached


def test_what_the_file_of_intervals_says_by_hand() -> None:
    """A side without a rest has the share of the spreads instead; what software changes has both sides apart."""
    with script("intervals") as intervals:
        assert intervals.told([0.0, 0.25, 0.5, 2.0]) == ["below = 0.000", "above = 0.250", "share_below = 0.500"]
        moved = intervals.changed("token", "dense", [("a", 0.3), ("a", -0.1), ("b", 0.2)])
        assert moved.splitlines()[2:] == ["below = 0.100", "above = 0.300", "rows = 3", "groups = 2"]


@given(st.lists(st.floats(0.0, 2.0), min_size=39, max_size=80))
def test_a_quantile_holds_the_part_of_its_rows_that_it_is_meant_to(needs: list[float]) -> None:
    with script("intervals") as intervals:
        end = intervals.quantile(needs, 0.95)
        assert sum(need <= end for need in needs) >= 0.95 * len(needs)
        assert intervals.pooled([("g", need) for need in needs], 0.95) <= end


def test_the_rest_of_training_is_what_its_calibration_rows_need() -> None:
    """Each side of the file's rest leaves at most a tenth of a sample of the measured steps out."""
    with script("intervals") as intervals:
        rows = intervals.read_own(intervals.STEPS)[::20]
        inside = 0
        for row in rows:
            run = intervals.step_of(row)
            time = float(row["step_time_s"])
            _, (below, above, *_) = intervals.need(run, "time_s", time, run.value("time"), "g")
            inside += below <= scatter_of("training").below and above <= scatter_of("training").above
    assert inside >= 0.8 * len(rows)
