"""Scaling with devices, and whole trainings, as JSON and as terminal tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..common.table import Table
from ..plan_search.scaling import training
from ..plans.plan import FIELDS, Plan
from ..spending.answers import KILOWATT_HOUR
from .scaled import gibibytes, percent, quantity, seconds

if TYPE_CHECKING:
    from rich.console import Console

    from ..plan_search.scaling import Scaling, ScalingPoint, Training
    from ..plan_search.spent import IsoPoint

DAY = 86400.0


def as_json(scaling: Scaling, tokens: float | None) -> dict[str, Any]:
    """The object under `scaling`; figures of a number of devices without a plan are null."""
    return {"kind": scaling.kind, "points": [_point(scaling, point, tokens) for point in scaling.points]}


def _point(scaling: Scaling, point: ScalingPoint, tokens: float | None) -> dict[str, Any]:
    record = point.record if point.feasible else {}
    taken = training(point, tokens) if tokens is not None and point.feasible else None
    return {
        "devices": point.devices,
        "batch": point.batch,
        "time_s": record.get("time_s"),
        "tokens_per_s": record.get("tokens_per_s"),
        "mfu": record.get("mfu"),
        "memory_bytes": record.get("memory_bytes"),
        "speedup": scaling.speedup(point),
        "efficiency": scaling.efficiency(point),
        "plan": {name: record[name] for name in Plan.names()} if record else None,
        "training": None if taken is None else training_json(taken),
    }


def training_json(taken: Training) -> dict[str, Any]:
    """The object under `training`; dollars are null where the system has no price."""
    return {
        "tokens": taken.tokens,
        "steps": taken.steps,
        "seconds": taken.seconds,
        "devices": taken.devices,
        "device_hours": taken.device_hours,
        "dollars": taken.dollars,
        "price_source": taken.source,
        "joules": taken.joules,
        "energy_basis": taken.basis,
    }


def within_json(point: ScalingPoint, limit: float) -> dict[str, Any]:
    """The object under `within`."""
    plan = {name: point.record[name] for name in Plan.names()}
    return {"seconds": limit, "devices": point.devices, "batch": point.batch, "time_s": point.time, "plan": plan}


def show(scaling: Scaling, console: Console, tokens: float | None) -> None:
    """Print one row for each number of devices."""
    grown = {"strong": "the same batch", "weak": "a batch that grows with the devices"}[scaling.kind]
    console.print(f"\n{scaling.kind} scaling: {grown}; efficiency against the first", style="bold")
    console.print(table(scaling, tokens))


def table(scaling: Scaling, tokens: float | None) -> Table:
    """One row for each number of devices; empty where no plan fits."""
    heads = ["devices", "batch", "time", "token/s", "MFU", "memory", "speedup", "efficiency"]
    heads += ["days", "device hours", "dollars"] if tokens is not None else []
    made = Table([*heads, "plan"], left=("plan",), wraps=("plan",))
    for point in scaling.points:
        made.add_row(str(point.devices), str(point.batch), *_cells(scaling, point, tokens))
    return made


def _cells(scaling: Scaling, point: ScalingPoint, tokens: float | None) -> list[str]:
    speedup, efficiency = scaling.speedup(point), scaling.efficiency(point)
    if speedup is None or efficiency is None:
        return ["none fits"]
    record = point.record
    cells = [
        seconds(record["time_s"]),
        quantity(record["tokens_per_s"], ""),
        percent(record["mfu"]),
        gibibytes(record["memory_bytes"]),
        f"{speedup:.2f}",
        percent(efficiency),
    ]
    if tokens is not None:
        taken = training(point, tokens)
        dollars = "no price" if taken.dollars is None else f"{taken.dollars:,.0f}"
        cells += [f"{taken.seconds / DAY:.3g}", f"{taken.device_hours:,.0f}", dollars]
    return [*cells, _short(record)]


def _short(record: dict[str, Any]) -> str:
    """A plan without what goes without saying."""
    plain = {"attention": ("flash",), "schedule": ("1f1b", "interleaved"), "cp_kind": ("ring",)}
    usual = {name: (field.default, *plain.get(name, ())) for name, field in FIELDS.items()}
    fields = {name: record[name] for name in Plan.names() if record[name] not in usual[name]}
    return " ".join(name if value is True else f"{name}={value}" for name, value in fields.items()) or "one device"


def show_training(taken: Training, console: Console) -> None:
    """Print what a training takes."""
    cost = (
        "the system has no price, so no dollars"
        if taken.dollars is None
        else f"{taken.dollars:,.0f} dollars ({taken.source})"
    )
    console.print(
        f"\n{quantity(taken.tokens, '').strip()} tokens: {taken.steps:,} steps, {taken.seconds / DAY:.4g} days "
        f"on {taken.devices:,} devices, {taken.device_hours:,.0f} device hours; {cost}; {_joules(taken)}"
    )


def _joules(taken: Training) -> str:
    """The energy of a training, in words."""
    if taken.joules is None:
        return "the system tells neither energies nor a power, so no joules"
    of = {"resources": "FLOPs, bytes and static power", "board": "board power all the time, an upper bound"}
    return (
        f"{quantity(taken.joules, 'J').strip()}, {taken.joules / KILOWATT_HOUR / 1e3:,.4g} MWh ({of[str(taken.basis)]})"
    )


def show_iso(points: list[IsoPoint], console: Console) -> None:
    """Print the curves of equal time and of equal cost, a row for each number of devices."""
    first = points[0]
    asked = [] if first.seconds is None else [f"{first.seconds / DAY:g} days"]
    asked += [] if first.dollars is None else [f"{first.dollars:,.0f} dollars"]
    console.print(f"\nwhat the best plans train on in {' and for '.join(asked)}", style="bold")
    heads = ["devices"]
    heads += [] if first.seconds is None else ["tokens in time", "dollars"]
    heads += [] if first.dollars is None else ["tokens for cost", "days"]
    table = Table([*heads, *(["ends by"] if len(asked) > 1 else [])])
    for each in points:
        cells = [str(each.point.devices)]
        if not each.point.feasible:
            table.add_row(*cells, "none fits")
            continue
        if first.seconds is not None:
            told = "no price" if each.dollars_in_time is None else f"{each.dollars_in_time:,.0f}"
            cells += [quantity(float(each.tokens_in_time or 0), ""), told]
        if first.dollars is not None:
            cells += [quantity(float(each.tokens_for_cost or 0), ""), f"{(each.seconds_for_cost or 0.0) / DAY:.4g}"]
        table.add_row(*cells, *([str(each.binds)] if len(asked) > 1 else []))
    console.print(table)
