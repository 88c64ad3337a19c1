"""Intervals of predictions: their ends, what moves them, and what the user set."""

from __future__ import annotations

import csv
import json
import math
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.paths import GOLDEN

import symperf as sf
from symperf.common.errors import InputError
from symperf.evaluation.uncertainty import spreads
from symperf.validation.inference_references import STACK

if TYPE_CHECKING:
    from symperf.evaluation.base_run import BaseRun

TRAIN = ["train", "gpt-22b", "-s", "a100-80gb-sxm", "--tp", "8", "--batch", "8", "--sequence", "2048"]


def runs() -> list[BaseRun]:
    model, system = sf.Model.load("llama-2-7b"), sf.System.load("h100-sxm")
    return [
        sf.training(model, system, sf.Plan(tp=2, dp=4), batch=8, sequence=2048),
        sf.inference(model, system, sf.Plan(tp=2), batch=4, prompt=500, generate=50),
        sf.inference(model, system, sf.Plan(tp=2, precision="fp8"), batch=4, prompt=500, generate=50),
    ]


@pytest.mark.parametrize("place", range(3))
def test_ends_are_those_of_one_symbol_at_a_time_in_quadrature(place: int) -> None:
    run = runs()[place]
    found, time = run.interval(), run.value("time")
    up = down = 0.0
    for name, ends in spreads(run).items():
        moved = [math.log(run.bind(**{name: end}).value("time") / time) for end in ends]
        if name == "matrix_efficiency" and run.plan.precision == "fp8":
            continue
        up, down = up + max(0, *moved) ** 2, down + min(0, *moved) ** 2
    if run.plan.precision != "fp8":
        assert found.high == pytest.approx(time * math.exp(math.sqrt(up)), rel=1e-9)
        assert found.low == pytest.approx(time * math.exp(-math.sqrt(down)), rel=1e-9)
    assert found.low < found.value == time < found.high


def test_a_symbol_bound_to_another_value_keeps_its_relative_spread() -> None:
    run = runs()[2]
    quantity = run.quantities()["matrix_efficiency"]
    low, high = spreads(run)["matrix_efficiency"]
    bound = run.bound["matrix_efficiency"][0]
    assert bound == run.quantities()["fp8_efficiency"].value
    assert quantity.low is not None
    assert low / bound == pytest.approx(quantity.low / quantity.value)
    assert low < bound < high


def test_a_value_that_the_user_set_has_no_spread() -> None:
    run = runs()[0]
    wide = run.interval()
    narrow = run.bind(matrix_efficiency=run.bound["matrix_efficiency"][0]).interval()
    assert "matrix_efficiency" in {effect.name for effect in wide.effects}
    assert "matrix_efficiency" not in {effect.name for effect in narrow.effects}
    assert narrow.value == wide.value
    assert wide.low < narrow.low
    assert narrow.high < wide.high


@pytest.mark.parametrize("factor", [0.5, 1.0, 2.2])
def test_a_widened_interval_has_its_logarithms_times_the_factor(factor: float) -> None:
    found = runs()[0].interval()
    wide = found.widened(factor)
    assert math.log(wide.high / wide.value) == pytest.approx(factor * math.log(found.high / found.value))
    assert math.log(wide.value / wide.low) == pytest.approx(factor * math.log(found.value / found.low))
    assert wide.effects == found.effects


@pytest.mark.parametrize("factor", [0.0, -1.0, math.inf, math.nan])
def test_a_factor_that_widens_nothing_is_told(factor: float) -> None:
    with pytest.raises(InputError, match="factor: found"):
        runs()[0].interval().widened(factor)


def test_without_spreads_an_interval_is_a_point() -> None:
    run = runs()[0]
    fixed = run.bind(**{name: run.bound[name][0] for name in spreads(run)}).interval()
    assert (fixed.low, fixed.high, fixed.effects) == (fixed.value, fixed.value, ())


@given(st.sampled_from(range(2)), st.sampled_from(["time", "tokens_per_s"]))
def test_throughput_and_time_have_the_same_interval_upside_down(place: int, name: str) -> None:
    run = runs()[place]
    ends = run.interval(name)
    assert ends.holds(ends.value)
    assert not ends.holds(ends.high * 1.001)
    time, rate = run.interval("time"), run.interval("tokens_per_s")
    assert rate.high / rate.value == pytest.approx(time.value / time.low, rel=1e-9)
    assert rate.value / rate.low == pytest.approx(time.high / time.value, rel=1e-9)


def test_most_of_the_reference_latencies_are_inside() -> None:
    with (GOLDEN / "reference_inference.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    inside = 0
    for row in rows:
        run = sf.inference(
            sf.Model.load(row["model"]),
            sf.System.load(row["system"]),
            sf.Plan(tp=int(row["tp"]), precision="fp16"),
            batch=int(row["batch"]),
            prompt=int(row["prompt"]),
            generate=int(row["generate"]),
            stack=STACK,
        )
        inside += run.interval().holds(float(row["measured_s"]))
    assert inside >= 0.9 * len(rows)


def test_unknown_answers_and_free_symbols_are_refused() -> None:
    run = runs()[0]
    with pytest.raises(InputError, match=r"interval: unknown quantity 'tim'.*time"):
        run.interval("tim")
    with pytest.raises(InputError, match="free symbols have no value: memory_bandwidth"):
        run.free("memory_bandwidth").interval()


def test_the_command_line_prints_it_when_asked(call: Any) -> None:
    code, out, err = call([*TRAIN, "--interval", "--json"])
    assert (code, err) == (0, "")
    data = json.loads(out)
    low, high = data["interval"]["time_s"]
    assert data["interval"]["level"] == 0.9
    assert low < data["time_s"] < high
    assert data["interval"]["effects"][0]["name"] in runs()[0].quantities()
    code, out, _ = call([*TRAIN, "--json"])
    assert json.loads(out)["interval"] is None
    code, out, _ = call([*TRAIN, "--interval"])
    assert code == 0
    assert "90% interval" in out
    assert "matrix_efficiency" in out
