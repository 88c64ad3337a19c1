"""Dollars and joules of searches for training: orders, fronts, and curves of equal time and equal cost."""

from __future__ import annotations

import itertools
import json
import math
from typing import TYPE_CHECKING, Any

import pytest

import symperf as sf
from symperf.common.errors import InputError
from symperf.plan_search.scaling import strong, training
from symperf.plan_search.search import answer_search
from symperf.plan_search.spent import AXES, front, iso_curves
from symperf.report.picture_search import iso_sheet
from symperf.spending.prices import rent_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from symperf.plan_search.search import Answer

FEW: dict[str, Any] = {"recompute": ["none"], "zero": [1], "cp": [1], "schedule": ["1f1b"], "rank_order": "tp-cp-dp-pp"}
FEW |= {"attention": ["flash"], "uneven_stages": [False], "sequence_parallel": [True, False]}
WORK: dict[str, Any] = {"devices": [8, 16, 32], "batch": 32, "sequence": 1024, "require": FEW}
DAY = 86400.0


def searched(system: str = "h100-sxm", **how: Any) -> Answer:
    return answer_search(sf.Model.load("gpt-6.7b"), sf.System.load(system), **WORK, **how)


def test_the_price_of_the_catalogue_ranks() -> None:
    """As `train --cost` counts it; what is owned has its hours, and the electricity of its board power."""
    found = searched(by="tokens_per_dollar")
    best = found.records[0]
    cost = found.winner.cost()
    assert best["tokens_per_dollar"] == pytest.approx(cost.tokens / cost.dollars, rel=1e-9)
    assert best["dollars_per_million_tokens"] == pytest.approx(cost.per_million_tokens, rel=1e-9)
    assert best["devices"] == 8  # fewer devices lose less throughput than they save
    owned = {
        "price": 30000.0,
        "lifetime": 4 * 365 * DAY,
        "electricity_price": 3e-8,
        "facility_overhead": 1.3,
        "power": 700,
    }
    found = searched("h800-sxm", by="tokens_per_dollar", values=owned)
    cost = found.winner.cost()
    assert cost.basis == "owned"
    assert found.records[0]["tokens_per_dollar"] == pytest.approx(cost.tokens / cost.dollars, rel=1e-9)


@pytest.mark.parametrize(
    ("system", "values", "told"),
    [
        ("h800-sxm", {}, "system h800-sxm has no price; set price_per_hour, or price and lifetime"),
        ("h800-sxm", {"price": 3e4}, "has a price without a lifetime"),
        (
            "h800-sxm",
            {"price": 3e4, "lifetime": 1e8, "electricity_price": 3e-8, "memory_energy": 1e-11},
            "set price_per_hour",
        ),
    ],
)
def test_what_dollars_need_is_named(system: str, values: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError) as error:
        searched(system, by="tokens_per_dollar", values=values)
    assert told in str(error.value)
    assert str(error.value).startswith("by: tokens_per_dollar: ")


def test_a_front_is_what_no_plan_is_as_good_as() -> None:
    """Along any axes: against all plans, each evaluated by itself."""
    found = searched(pareto=True)
    whole = [
        each for count in (8, 16, 32) for each in searched(prune=False, top=900).records if each["devices"] == count
    ]
    assert len(whole) == found.feasible
    for axes in (("time", "memory", "devices"), ("time", "cost"), ("memory", "cost"), ("cost", "devices", "memory")):
        names = [AXES[axis] for axis in axes]
        points = {tuple(round(each[name], 9 - int(math.log10(each[name]))) for name in names) for each in whole}
        best = {p for p in points if not any(q != p and all(a <= b for a, b in zip(q, p, strict=True)) for q in points)}
        kept = [
            tuple(round(each[name], 9 - int(math.log10(each[name]))) for name in names) for each in front(found, axes)
        ]
        assert len(kept) == len(set(kept))
        assert set(kept) == best, axes


def test_joules_are_those_of_board_power_only() -> None:
    found = searched("h800-sxm", pareto=True, values={"power": 700})
    energy = found.winner.energy()
    assert energy.basis == "board"
    records = front(found, ("time", "joules"))
    assert min(each["joules_per_token"] for each in records) <= energy.per_token * (1 + 1e-9)
    for each in records:
        assert each["joules_per_token"] == pytest.approx(700 * each["devices"] / each["tokens_per_s"])
    with pytest.raises(InputError, match="--by tokens-per-joule ranks by them"):
        front(searched("h800-sxm", pareto=True, values={"memory_energy": 1e-11}), ("time", "joules"))


def test_a_training_has_the_joules_of_its_steps() -> None:
    point = strong(searched()).points[0]
    taken = training(point, 3e11)
    energy = point.answer.winner.energy()
    assert taken.joules == pytest.approx(energy.total * taken.steps)
    assert taken.basis == energy.basis
    assert taken.dollars == pytest.approx(point.answer.winner.cost().dollars * taken.steps)


def test_curves_of_equal_time_and_cost() -> None:
    """Whole steps: one more takes longer, or costs more, than what was asked for; where both are, the fewer ends."""
    scaling = strong(searched())
    rent = rent_of(sf.System.load("h100-sxm"))
    assert rent is not None
    for each in iso_curves(scaling, 3 * DAY, 20_000.0):
        step = each.point.batch * each.point.sequence
        assert each.tokens_in_time is not None
        assert each.tokens_for_cost is not None
        steps, paid = each.tokens_in_time // step, each.tokens_for_cost // step
        assert steps * each.point.time <= 3 * DAY < (steps + 1) * each.point.time
        price = rent.value * each.point.devices * each.point.time
        assert paid * price <= 20_000 < (paid + 1) * price
        assert each.dollars_in_time == pytest.approx(steps * price)
        assert each.seconds_for_cost == pytest.approx(paid * each.point.time)
        assert each.binds == ("time" if steps < paid else "cost")
    one = iso_curves(scaling, 3 * DAY, None)
    assert all(each.tokens_for_cost is None and each.binds is None for each in one)
    rising = [each.tokens_in_time for each in one]
    assert all(a is not None and b is not None and a < b for a, b in itertools.pairwise(rising))


def test_the_curves_are_drawn(call: Callable[[Any], Any], tmp_path: Path) -> None:
    """Of each curve a point for each number of devices."""
    points = iso_curves(strong(searched()), 3 * DAY, 20_000.0)
    timed, paid = iso_sheet(points, "").charts[0].series
    assert (timed.name, paid.name) == ("in 3 days", "for 20,000 dollars")
    assert timed.x == paid.x == [each.point.devices for each in points]
    assert timed.y == [each.tokens_in_time for each in points]
    assert paid.y == [each.tokens_for_cost for each in points]
    target = tmp_path / "iso.svg"
    code, _, err = call([*ASKED, *required(), "--iso-time", "3", "--iso-cost", "20000", "--plot", str(target)])
    assert (code, err) == (0, "")
    assert "<svg" in target.read_text(encoding="utf-8")


ASKED = ["search", "gpt-6.7b", "-s", "h100-sxm", "--devices", "8,16", "--batch", "32", "--sequence", "1024"]


def required() -> list[str]:
    words = []
    for name, value in FEW.items():
        texts = [str(each).lower() for each in (value if isinstance(value, list) else [value])]
        words += ["--require", f"{name}={','.join(texts)}"]
    return words


def test_the_command_line(call: Callable[[Any], Any]) -> None:
    words = [*ASKED, *required(), "--by", "tokens-per-dollar", "--tokens", "3e11"]
    code, out, err = call([*words, "--iso-time", "3", "--iso-cost", "20000", "--json"])
    assert (code, err) == (0, "")
    told = json.loads(out)
    assert [each["devices"] for each in told["iso"]] == [8, 16]
    assert told["training"]["joules"] > 0
    assert told["plans"][0]["tokens_per_dollar"] == max(each["tokens_per_dollar"] for each in told["plans"])
    code, out, err = call([*words, "--iso-time", "3"])
    assert (code, err) == (0, "")
    assert "what the best plans train on in 3 days" in out
    assert "MWh" in out
    code, out, err = call([*ASKED, *required(), "--pareto", "--axes", "time,cost"])
    assert (code, err) == (0, "")
    assert "no other plan is as good in time and cost" in out
    assert "USD/M token" in out


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (["--iso-time", "0"], "--iso-time: found 0.0, expected a number above 0"),
        (["--axes", "time,cost"], "expected --pareto as well"),
        (["--pareto", "--axes", "time"], "expected two or more of"),
        (["--pareto", "--axes", "time,cots"], "did you mean cost?"),
        (["--iso-cost", "5", "-s", "h800-sxm"], "iso-cost: system h800-sxm has no price"),
        (["--iso-time", "5", "--csv"], "found --csv and --iso-time"),
        (["--iso-time", "5", "--plot", "iso.gif"], "expected a file that ends in .png"),
        (["--iso-time", "5", "--prompt", "5", "--generate", "5"], "--iso-time is of training"),
    ],
)
def test_bad_flags(call: Callable[[Any], Any], more: list[str], told: str) -> None:
    code, out, err = call([*ASKED, *required(), *more])
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert told in err
