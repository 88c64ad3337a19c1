"""Strong and weak scaling, the fewest devices that are fast enough, whole trainings and what they cost."""

from __future__ import annotations

import json
import math
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

import symperf as sf
from symperf.analysis import Unreachable
from symperf.plan_search.scaling import strong, training, weak
from symperf.plan_search.search import answer
from symperf.spending.prices import rent_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from symperf.plan_search.scaling import Scaling

FEW: dict[str, Any] = {"recompute": ["none"], "zero": [1], "schedule": ["1f1b"], "cp": [1], "uneven_stages": [False]}
DEVICES = [8, 16, 32]


def asked(name: str = "a100-80gb-sxm") -> tuple[sf.Model, sf.System]:
    return sf.Model.load("gpt-6.7b"), sf.System.load(name)


@cache
def scaled(kind: str) -> Scaling:
    question: dict[str, Any] = {"batch": 32, "sequence": 1024, "require": FEW}
    if kind == "weak":
        return weak(*asked(), devices=DEVICES, **question)
    return strong(answer(*asked(), devices=DEVICES, **question))


@pytest.mark.parametrize("kind", ["strong", "weak"])
def test_each_point_is_a_search_of_its_own(kind: str) -> None:
    """On its devices alone, with its batch; speed-up and efficiency are ratios of tokens a second."""
    found = scaled(kind)
    assert [point.devices for point in found.points] == DEVICES
    first = found.points[0]
    for point in found.points:
        batch = 32 if kind == "strong" else 4 * point.devices
        alone = answer(*asked(), devices=point.devices, batch=batch, sequence=1024, require=FEW, top=1)
        assert point.batch == batch
        assert math.isclose(point.record["time_s"], alone.records[0]["time_s"], rel_tol=1e-12)
        run = alone.winner
        assert math.isclose(point.record["mfu"], run.value("mfu"), rel_tol=1e-9)
        assert math.isclose(point.record["tokens_per_s"], run.value("tokens_per_s"), rel_tol=1e-9)
        speedup, efficiency = found.speedup(point), found.efficiency(point)
        assert speedup is not None
        assert efficiency is not None
        assert math.isclose(speedup, point.rate / first.rate)
        assert math.isclose(efficiency, speedup * 8 / point.devices)
        ratio = first.time / point.time * (8 / point.devices if kind == "strong" else 1)
        assert math.isclose(efficiency, ratio, rel_tol=1e-12)
    assert found.efficiency(first) == found.speedup(first) == 1


def test_weak_scaling_loses_less_than_strong() -> None:
    """Of one batch every device has ever less work for the same messages."""
    pairs = zip(scaled("strong").points[1:], scaled("weak").points[1:], strict=True)
    for one, grown in pairs:
        assert (scaled("strong").efficiency(one) or 0) < (scaled("weak").efficiency(grown) or 0) <= 1 + 1e-9


def test_the_fewest_devices_within_a_time() -> None:
    """The first whose best plan is fast enough; none where no one is."""
    found = scaled("strong")
    times = [point.time for point in found.points]
    assert times == sorted(times, reverse=True)
    assert found.within(times[1]) is found.points[1]
    assert found.within(times[0] * 2) is found.points[0]
    assert found.within((times[1] + times[2]) / 2) is found.points[2]
    assert found.within(times[2] / 2) is None


def test_clusters_that_are_too_small_are_points_too() -> None:
    """They have no plan, and the first that has one is what others are compared with."""
    model, system = asked()
    found = answer(model, system, devices=[1, 8], batch=32, sequence=1024, require={**FEW, "zero": [0]})
    scaling = strong(found)
    points = scaling.points
    assert [point.feasible for point in points] == [False, True]
    assert scaling.first is points[1]
    assert scaling.efficiency(points[0]) is None
    assert scaling.within(1e9) is points[1]
    with pytest.raises(Unreachable, match="no plan fits on 1 devices"):
        training(points[0], 1e9)


def test_a_training_takes_whole_steps() -> None:
    """Seconds are steps times a step; without a price there are no dollars."""
    point = scaled("strong").points[1]
    taken = training(point, 300e9)
    assert taken.steps == math.ceil(300e9 / (32 * 1024))
    assert taken.seconds == taken.steps * point.time
    assert math.isclose(taken.device_hours, 16 * taken.seconds / 3600)
    unpriced = weak(*asked("h800-sxm"), devices=[8], batch=32, sequence=1024, require=FEW).points[0]
    assert (training(unpriced, 300e9).dollars, training(unpriced, 300e9).source) == (None, None)
    assert training(point, 1).steps == 1


def test_dollars_are_those_of_a_run() -> None:
    """A price that is set, or that the catalogue has with its source; devices x hours x price."""
    model, system = asked()
    priced = answer(
        model, system, devices=8, batch=32, sequence=1024, require=FEW, values={"price_per_hour": "2 USD/hour"}
    )
    taken = training(strong(priced).points[0], 1e9)
    assert taken.dollars is not None
    assert math.isclose(taken.dollars, 2 * taken.device_hours, rel_tol=1e-9)
    known = answer(*asked("h100-sxm"), devices=8, batch=32, sequence=1024, require=FEW)
    cost, taken = known.winner.cost(), training(strong(known).points[0], 1e9)
    assert taken.dollars is not None
    assert math.isclose(taken.dollars, cost.dollars * taken.steps, rel_tol=1e-12)
    assert taken.source == cost.source


def test_a_batch_that_is_not_whole() -> None:
    with pytest.raises(sf.InputError, match=r"a batch of 3 on 8 devices would be 4.5 on 12"):
        weak(*asked(), devices=[8, 12], batch=3, sequence=1024, require=FEW)


ASKED = ["search", "gpt-6.7b", "-s", "a100-80gb-sxm", "--devices", "8,16,32", "--batch", "32", "--sequence", "1024"]
ASKED += [part for name, value in FEW.items() for part in ("--require", f"{name}={str(value[0]).lower()}")]


@pytest.mark.parametrize("kind", ["strong", "weak"])
def test_the_command_line(call: Callable[[Any], Any], kind: str) -> None:
    """JSON has the table, the answer to the limit and the training; the tables say the same."""
    found = scaled(kind)
    limit = f"{found.points[1].time * 1.0001:.6g}"
    more = [*(["--weak"] if kind == "weak" else []), "--within", limit, "--tokens", "1e12"]
    code, out, err = call([*ASKED, *more, "--json"])
    assert (code, err) == (0, "")
    told = json.loads(out)
    assert told["scaling"]["kind"] == kind
    price = rent_of(asked()[1])
    assert price is not None
    rent = 3600 * price.value
    for row, point in zip(told["scaling"]["points"], found.points, strict=True):
        assert (row["devices"], row["batch"]) == (point.devices, point.batch)
        assert math.isclose(row["time_s"], point.time, rel_tol=1e-9)
        assert row["efficiency"] == found.efficiency(point)
        assert row["training"]["seconds"] == row["training"]["steps"] * row["time_s"]
        assert math.isclose(row["training"]["dollars"], rent * row["training"]["device_hours"], rel_tol=1e-9)
    chosen = found.within(float(limit))
    assert chosen is not None
    assert told["within"]["devices"] == chosen.devices
    assert told["training"]["devices"] == chosen.devices
    assert told["training"]["device_hours"] > 0
    if kind == "weak":
        assert {plan["devices"] for plan in told["plans"]} == {32}
        assert told["plans"][0]["time_s"] == told["scaling"]["points"][2]["time_s"]
    code, out, err = call([*ASKED, *more])
    assert (code, err) == (0, "")
    assert f"{kind} scaling" in out
    assert "dollars (RunPod" in " ".join(out.split())
    assert f"{chosen.devices} devices are the fewest" in out


def test_a_limit_that_nothing_meets(call: Callable[[Any], Any]) -> None:
    code, out, err = call([*ASKED, "--within", "0.001"])
    assert (code, out) == (1, "")
    assert "no step takes at most 0.001 s" in err
    assert "on 32" in err


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (["--within", "0"], "--within: found 0"),
        (["--within", "inf"], "--within: found inf"),
        (["--within", "soon"], "expected a number"),
        (["--tokens", "-1"], "--tokens: found -1"),
        (["--tokens", "nan"], "--tokens: found nan"),
        (["--weak", "--csv"], "--csv and --weak"),
        (["--weak", "--devices", "24,32", "--batch", "4"], "would be 5.33333 on 32"),
        (["--tokens", "1e9", "--csv"], "--csv and --tokens"),
    ],
)
def test_bad_input(call: Callable[[Any], Any], more: list[str], told: str) -> None:
    code, out, err = call([*ASKED, *more])
    assert (code, out) == (2, "")
    assert told in err
    assert len(err.splitlines()) == 1


def test_inference_has_none_of_it(call: Callable[[Any], Any]) -> None:
    asked = [
        "search",
        "gpt-6.7b",
        "-s",
        "h100-sxm",
        "--devices",
        "8",
        "--batch",
        "8",
        "--prompt",
        "64",
        "--generate",
        "8",
    ]
    code, out, err = call([*asked, "--tokens", "1e9"])
    assert (code, out) == (2, "")
    assert "--tokens is of training" in err
