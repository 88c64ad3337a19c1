"""Transfers of experts that run beside the pass of another micro-batch."""

from __future__ import annotations

from typing import Any

import pytest

import symperf as sf
from symperf.common.errors import InputError

PLANS: tuple[dict[str, Any], ...] = (
    {"dp": 8},
    {"pp": 4, "dp": 8},
    {"pp": 4, "dp": 8, "vpp": 3},
    {"pp": 4, "dp": 8, "schedule": "gpipe"},
    {"pp": 5, "dp": 8, "uneven_stages": True},
    {"dp": 8, "zero": 3},
    {"dp": 8, "node_limit": 2},
)


def step(plan: dict[str, Any], **values: Any) -> Any:
    laid = sf.Plan(**{"ep": 8, **plan})
    return sf.training("qwen3-30b-a3b", "h100-sxm", laid, batch=8 * 20, sequence=4096, **values)


def exchanges(run: Any) -> float:
    return sum(row.each_s * row.count for row in run.table() if row.name.endswith(ENDS) and "/experts/" in row.name)


ENDS = ("dispatch/forward", "combine/forward", "dispatch/backward", "combine/backward")


@pytest.mark.parametrize("plan", PLANS)
def test_the_time_falls_by_the_part_that_is_hidden(plan: dict[str, Any]) -> None:
    plain = step(plan).value("time")
    run = step(plan, exchange_overlap=0.5)
    half, none, whole = (run.bind(exchange_overlap=part).value("time") for part in (0.5, 0.0, 1.0))
    assert none == pytest.approx(plain, rel=1e-9)
    assert half == pytest.approx((none + whole) / 2, rel=1e-3)
    assert whole < none


def test_on_one_stage_all_transfers_are_hidden_that_fit_beside_the_work() -> None:
    run = step({"dp": 8}, exchange_overlap=1.0)
    assert run.bind(exchange_overlap=0.0).value("time") - run.value("time") == pytest.approx(exchanges(run), rel=1e-6)


@pytest.mark.parametrize("schedule", ["zero-bubble", "dualpipe"])
def test_schedules_that_take_passes_apart_have_ways_of_their_own(schedule: str) -> None:
    plan = {"pp": 4, "dp": 8, "schedule": schedule}
    assert step(plan, exchange_overlap=1.0).value("time") == step(plan).value("time")


@pytest.mark.parametrize("part", [-0.1, 1.5])
def test_bad_parts_are_refused(part: float) -> None:
    with pytest.raises(InputError, match="exchange_overlap"):
        step({"dp": 8}, exchange_overlap=part)
