"""Intervals of predictions: their ends, what moves them, and what the user set."""

from __future__ import annotations

import csv
import json
import math
import tomllib
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.paths import GOLDEN

import symperf as sf
from symperf.common.errors import InputError
from symperf.evaluation.causes import (
    CAUSES,
    FILE,
    HOST,
    IMBALANCE,
    KERNELS,
    KINDS,
    NETWORK,
    REST,
    SOFTWARE,
    cause_of,
    combine,
    scatter_of,
    subject_of,
)
from symperf.evaluation.uncertainty import spreads
from symperf.systems.system import catalogue_names
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
def test_each_cause_is_its_symbols_alone_in_quadrature_and_the_ends_are_all_causes(place: int) -> None:
    run = runs()[place]
    found, time = run.interval(), run.value("time")
    steps: dict[str, list[tuple[float, float]]] = {}
    for name, ends in spreads(run).items():
        if name == "matrix_efficiency" and run.plan.precision == "fp8":
            continue
        moved = [math.log(run.bind(**{name: end}).value("time") / time) for end in ends]
        steps.setdefault(cause_of(name), []).append((-min(0.0, *moved), max(0.0, *moved)))
    for cause in (NETWORK, HOST) if run.plan.precision == "fp8" else (KERNELS, NETWORK, HOST):
        own = steps.get(cause, [])
        assert found.causes[cause][0] == pytest.approx(math.hypot(*(down for down, _ in own)), rel=1e-9)
        assert found.causes[cause][1] == pytest.approx(math.hypot(*(up for _, up in own)), rel=1e-9)
    down, up = (math.hypot(*(pair[side] for pair in found.causes.values())) for side in (0, 1))
    assert found.high == pytest.approx(time * math.exp(up), rel=1e-12)
    assert found.low == pytest.approx(time * math.exp(-down), rel=1e-12)
    assert found.low < found.value == time < found.high


def test_the_rest_is_that_of_the_kind_of_answer_and_software_counts_where_it_was_not_measured() -> None:
    train, infer, _ = runs()
    assert train.interval().causes[REST] == (scatter_of("training").below, scatter_of("training").above)
    assert train.interval().causes[SOFTWARE] == scatter_of("training").software
    assert infer.interval().causes[REST] == (scatter_of("inference").below, scatter_of("inference").above)
    assert infer.interval().causes[SOFTWARE] == (0.0, 0.0)  # vLLM's kernels were measured on an H100
    other = infer.swap(stack="fastertransformer").interval()
    assert other.causes[SOFTWARE] == scatter_of("inference").software
    rate = infer.swap(stack="fastertransformer").interval("tokens_per_s").causes
    assert rate[SOFTWARE] == other.causes[SOFTWARE][::-1]
    assert rate[REST] == other.causes[REST][::-1]
    assert scatter_of("token", "nobody") == scatter_of("token")


def test_what_software_changes_is_told_apart_by_format_and_experts() -> None:
    subjects = [
        subject_of(precision, routed=routed) for precision, routed in ((None, False), ("fp8", False), ("bf16", True))
    ]
    assert subjects == ["dense", "narrow", "mixtures"]
    above = [scatter_of("prompt", "", subject).software[1] for subject in subjects]
    assert above == sorted(above)
    routed = sf.training("mixtral-8x7b", "h100-sxm", sf.Plan(ep=8, dp=8), batch=64, sequence=2048)
    assert routed.interval().causes[SOFTWARE] == scatter_of("training", subject="mixtures").software


def test_where_the_spreads_hold_more_than_asked_a_share_of_them_is_taken_and_no_rest() -> None:
    group = "vllm-0.24 b200-sxm minimax-m2.5"
    found = scatter_of("first_token", group)
    assert (found.below, found.above) == (0.0, 0.0)
    assert all(0 < share <= 1 for share in found.shares)
    moved = {"matrix_efficiency": (0.1, 0.2), "host_latency": (0.03, 0.04)}
    own, plain = (combine(moved, each, measured=True) for each in (found, scatter_of("first_token")))
    for cause in (KERNELS, HOST):
        assert own[cause] == pytest.approx(
            [share * step for share, step in zip(found.shares, plain[cause], strict=True)]
        )
    assert found.turned.turned == found


def test_no_side_of_any_interval_is_nothing() -> None:
    table = tomllib.loads(FILE.read_text(encoding="utf-8"))
    for kind in KINDS:
        for group in ("", *table[kind].get("own", {})):
            found = scatter_of(kind, group)
            for rest, share in zip((found.below, found.above), found.shares, strict=True):
                assert rest > 0 or 0 < share <= 1
                assert rest == 0 or share == 1


def test_the_steps_that_the_rest_is_from_are_of_a_software_that_was_measured() -> None:
    plan = sf.Plan(pp=2, micro_batch=1, recompute="full")
    run = sf.training("gpt-22b", "a100-80gb-sxm", plan, batch=8, sequence=1024, stack="megatron-deepspeed")
    assert run.interval().causes[SOFTWARE] == (0.0, 0.0)
    assert run.swap(system="h100-sxm").interval().causes[SOFTWARE][0] > 0
    assert run.bind(dp=8).interval().causes[SOFTWARE][0] > 0  # two nodes
    assert run.swap(stack="megatron-core-2026").interval().causes[SOFTWARE][0] > 0


def test_mixtures_alone_have_a_spread_of_their_routing_unless_it_is_stated() -> None:
    plan = sf.Plan(ep=8, dp=8)
    run = sf.training("mixtral-8x7b", "h100-sxm", plan, batch=64, sequence=2048)
    assert run.interval().causes[IMBALANCE][1] > 0
    assert run.bind(token_imbalance=1.1).interval().causes[IMBALANCE] == (0.0, 0.0)
    assert runs()[0].interval().causes[IMBALANCE] == (0.0, 0.0)


def test_every_symbol_with_a_spread_is_of_one_cause() -> None:
    """Each of the catalogue: none but what kernels reach falls to the kernels."""
    names = {name for each in catalogue_names() for name, q in sf.System.load(each).quantities.items() if q.low}
    known = {cause: {name for name in names if cause_of(name) == cause} for cause in CAUSES}
    assert {"scale_up_efficiency", "domain_efficiency", "switch_efficiency", "scale_out_latency"} <= known[NETWORK]
    assert {"launch_latency"} <= known[HOST]
    assert not any(name.startswith(("scale_", "host_")) for name in known[KERNELS])
    assert set.union(*known.values()) == names


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


def test_without_spreads_an_interval_is_what_other_software_and_the_rest_leave() -> None:
    run = runs()[0]
    fixed = run.bind(**{name: run.bound[name][0] for name in spreads(run)}).interval()
    scatter = scatter_of("training")
    assert fixed.effects == ()
    assert fixed.high == pytest.approx(fixed.value * math.exp(math.hypot(scatter.above, scatter.software[1])))
    assert fixed.low == pytest.approx(fixed.value * math.exp(-math.hypot(scatter.below, scatter.software[0])))


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
    assert set(data["interval"]["causes"]) == set(CAUSES)
    assert all(down <= 1 <= up for down, up in data["interval"]["causes"].values())
    code, out, _ = call([*TRAIN, "--json"])
    assert json.loads(out)["interval"] is None
    code, out, _ = call([*TRAIN, "--interval"])
    assert code == 0
    assert "90% interval" in out
    assert "matrix_efficiency" in out
