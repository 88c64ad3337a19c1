"""A search as a picture: its plans, its Pareto front, curves of equal time and equal cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ..pictures.curves import Curves, Series
from ..pictures.figure import Sheet
from ..plan_search.inference.front import AXES as INFERENCE_AXES
from ..plan_search.spent import AXES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ..plan_search.inference.front import Front
    from ..plan_search.inference.records import PlanRecord
    from ..plan_search.search import Answer
    from ..plan_search.spent import IsoPoint

DAY: Final = 86400.0
LABELS: Final = {
    "time": "step time (s)",
    "memory": "memory of a device (bytes)",
    "devices": "devices",
    "cost": "USD for a million tokens",
    "joules": "joules of a token",
}
NAMED: Final = 7
"""Plans of a front for inference that have a colour of their own."""
DEGREES: Final = ("tp", "pp", "cp", "dp", "ep")


def plans_sheet(answer: Answer, front: Sequence[dict[str, Any]], axes: Sequence[str]) -> Sheet:
    """The plans that a search for training lists, or its front along the first two axes.

    Args:
        answer: of the search.
        front: the plans on it; none where the best plans were asked for.
        axes: of the front.
    """
    x, y = axes[:2]
    records = list(front) or answer.records
    name = "Pareto front" if front else "best plans"
    series = _grouped([(each[AXES[x]], each[AXES[y]], _degrees(each)) for each in records])
    devices = ", ".join(str(found.question.devices) for found in answer.found)
    title = f"{answer.winner.model.name} on {devices} x {answer.winner.system.title}"
    told = f"{name}, of {answer.feasible:,} that fit"
    return Sheet(title, [Curves(told, LABELS[x], LABELS[y], series, height=4.0)])


def front_sheet(front: Front) -> Sheet:
    """The front of a search for inference along its first two axes, a colour for each plan."""
    x, y = (INFERENCE_AXES[name] for name in (front.axes[1], front.axes[0]))
    series = _grouped([(each.measures[x.measure], each.measures[y.measure], _name(each)) for each in front.records])
    question = front.records[0].plan.question
    work = f"{question.prompt} tokens in, {question.generate} out"
    title = f"{question.model.name} on {question.devices} x {question.system.title}, {work}"
    return Sheet(title, [Curves("Pareto front, of all plans that fit", x.title, y.title, series, height=4.0)])


def _grouped(places: Iterable[tuple[float, float, str]]) -> list[Series]:
    """Points by the plans that they are of, those of the most points in colours of their own, the others together."""
    found: dict[str, list[tuple[float, float]]] = {}
    for x, y, name in sorted(places):
        found.setdefault(name, []).append((x, y))
    names = sorted(found, key=lambda name: -len(found[name]))
    rest = [place for name in names[NAMED:] for place in found[name]]
    groups = {name: found[name] for name in found if name in names[:NAMED]} | ({"other plans": rest} if rest else {})
    return [Series(name, [x for x, _ in own], [y for _, y in own], line=False) for name, own in groups.items()]


def _name(found: PlanRecord) -> str:
    if found.pools:
        return " + ".join(_degrees(fields) for fields in found.pools.values())
    return _degrees(found.fields)


def _degrees(fields: Mapping[str, Any]) -> str:
    named = [f"{name}{fields[name]}" for name in DEGREES if (fields.get(name) or 1) > 1]
    return " ".join(named) or "1 device"


def iso_sheet(points: Sequence[IsoPoint], title: str) -> Sheet:
    """What each number of devices trains on within a time, and for a sum; where no plan fits, there is no point."""
    seconds, dollars = points[0].seconds, points[0].dollars
    asked: dict[str, list[int | None]] = {}
    if seconds is not None:
        asked[f"in {seconds / DAY:.4g} days"] = [each.tokens_in_time for each in points]
    if dollars is not None:
        asked[f"for {dollars:,.0f} dollars"] = [each.tokens_for_cost for each in points]
    devices = [each.point.devices for each in points]
    series = []
    for name, tokens in asked.items():
        found = [(n, count) for n, count in zip(devices, tokens, strict=True) if count]
        series.append(Series(name, [n for n, _ in found], [count for _, count in found]))
    return Sheet(title, [Curves("the best plan of each number", "devices", "tokens trained on", series, height=4.0)])
