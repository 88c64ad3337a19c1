"""What `symperf search` adds on demand: scaling, a time limit, whole trainings, a plan explained, a plan emitted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..analysis import Unreachable
from ..common.errors import InputError, nearest, quote
from ..export.emit import FRAMEWORKS, emit
from ..export.limits import training_limits
from ..frameworks.profiles import profile_of
from ..plan_search.failures import fail
from ..plan_search.scaling import strong, training, weak
from ..plan_search.search import answer
from ..plan_search.spent import check_axes, iso_curves
from ..plan_search.versus import versus
from ..plans.plan import Plan
from .output import write, write_error
from .plots import check_plot
from .settings import field_value, split_settings

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from rich.console import Console

    from ..export.emit import Emission
    from ..models.model import Model
    from ..pictures.figure import Sheet
    from ..plan_search.scaling import Scaling, ScalingPoint
    from ..plan_search.search import Answer
    from ..plan_search.spent import IsoPoint
    from ..plan_search.versus import Versus
    from ..plans.software_limits import SoftwareLimits
    from ..systems.system import System

DAY = 86400.0
"""Seconds."""
SERVERS = ("vllm", "sglang", "trtllm")
"""Frameworks that serve: the batch of a training step is none of their business."""
SILENT = ("deepspeed",)
"""Frameworks whose text has no comments: notes go to standard error."""


@dataclass(frozen=True)
class Extras:
    """What was asked for; None where it was not.

    Attributes:
        answer: of the search; of the largest cluster where the batch grows.
        scaling: over the numbers of devices, where there are several.
        chosen: the best plan's number of devices, or the fewest within the time.
        tokens: of a training.
        within: seconds of a step.
        explained: a plan against the best.
        iso: the curves of equal time and of equal cost.
        emitted: the chosen plan in the words of a framework.
    """

    answer: Answer
    scaling: Scaling | None
    chosen: ScalingPoint | None
    tokens: float | None
    within: float | None
    explained: Versus | None
    iso: list[IsoPoint] | None
    emitted: Emission | None


def check(options: argparse.Namespace) -> None:
    """Refuse flags that do not go together, before the search.

    Raises:
        InputError: naming them.
    """
    if options.emit is not None and options.emit not in FRAMEWORKS:
        expected = " or ".join(FRAMEWORKS)
        raise InputError(f"--emit: found {quote(options.emit)}, expected {expected}{nearest(options.emit, FRAMEWORKS)}")
    for name in ("within", "tokens", "iso_time", "iso_cost"):
        value = getattr(options, name)
        if value is not None and not 0 < value < float("inf"):
            raise InputError(f"--{name.replace('_', '-')}: found {value}, expected a number above 0")
    check_plot(options)
    if options.axes is not None and not options.pareto:
        raise InputError("axes: are those of a Pareto front, expected --pareto as well")
    check_axes(options.axes)
    if options.explain is not None:
        pairs(options.explain)
    names = ("emit", "explain", "weak", "within", "tokens", "iso_time", "iso_cost")
    extra = [f"--{name.replace('_', '-')}" for name in names if getattr(options, name)]
    if options.csv and extra:
        raise InputError(f"search: found --csv and {extra[0]}, expected one of them")
    if options.emit and not options.json and len(extra) > 1 and "--explain" in extra:
        raise InputError("search: found --emit and --explain, expected one of them, or --json")


def software(options: argparse.Namespace, model: Model) -> SoftwareLimits | None:
    """What the framework runs that the best plan is written for; None where it is written for none that trains."""
    return None if options.emit is None else training_limits(options.emit, model)


def stack(options: argparse.Namespace) -> str | None:
    """The profile that is asked for, or that of the framework that the best plan is written for."""
    if options.stack is not None or options.emit is None:
        return None if options.stack is None else str(options.stack)
    return profile_of(options.emit)


def search(
    model: Model, system: System, options: argparse.Namespace, devices: list[int], question: Mapping[str, Any]
) -> tuple[Answer, Scaling]:
    """The search; where the batch grows with the devices, that of the largest cluster that has a plan."""
    if not options.weak:
        found = answer(model, system, devices=devices, **question)
        return found, strong(found)
    scaling = weak(model, system, devices=devices, **question)
    last = next((point for point in reversed(scaling.points) if point.feasible), scaling.points[-1])
    if last.answer.whole and not last.feasible:
        fail([point.answer.found[0] for point in scaling.points])
    return last.answer, scaling


def extras(model: Model, system: System, options: argparse.Namespace, found: Answer, scaling: Scaling) -> Extras:
    """Everything that was asked for beside the plans.

    Raises:
        InputError: a plan that is none.
        Unreachable: no plan is as fast as asked for.
    """
    chosen = _within(scaling, options.within) if options.within else _of(scaling, found)
    return Extras(
        found,
        scaling if len(scaling.points) > 1 else None,
        chosen,
        options.tokens,
        options.within,
        None if options.explain is None or not found.whole else versus(found, pairs(options.explain)),
        _iso(options, scaling),
        None if options.emit is None else _emit(model, system, options.emit, chosen),
    )


def _iso(options: argparse.Namespace, scaling: Scaling) -> list[IsoPoint] | None:
    if options.iso_time is None and options.iso_cost is None:
        return None
    return iso_curves(scaling, None if options.iso_time is None else options.iso_time * DAY, options.iso_cost)


def _of(scaling: Scaling, found: Answer) -> ScalingPoint:
    """The point of the best plan."""
    return next(point for point in scaling.points if point.devices == found.best.question.devices)


def _within(scaling: Scaling, seconds: float) -> ScalingPoint:
    point = scaling.within(seconds)
    if point is not None:
        return point
    fastest = min(scaling.points, key=lambda each: each.time)
    raise Unreachable(
        f"within: no step takes at most {seconds:g} s on the devices that were searched; the fastest takes "
        f"{fastest.time:.4g} s on {fastest.devices}",
        seconds,
        fastest.time,
    )


def _emit(model: Model, system: System, framework: str, chosen: ScalingPoint) -> Emission:
    plan = Plan(**{name: chosen.record[name] for name in Plan.names()})
    if framework in SERVERS:
        return emit(plan, framework, model=model, system=system)
    return emit(plan, framework, model=model, system=system, batch=chosen.batch, sequence=chosen.sequence)


def draw(found: Extras, front: list[dict[str, Any]], axes: tuple[str, ...], title: str) -> Sheet:
    """The picture: the curves of equal time and of equal cost where they were asked for, else the plans or the front.

    Args:
        found: what was asked for.
        front: the plans on it; none where it was not asked for.
        axes: of the front.
        title: of the curves.
    """
    from ..report.picture_search import iso_sheet, plans_sheet

    if found.iso:
        return iso_sheet(found.iso, title)
    return plans_sheet(found.answer, front, axes)


def as_json(found: Extras) -> dict[str, Any]:
    """Their keys in the JSON of a search; null where they were not asked for."""
    from ..report import scaling as report
    from ..report import versus as against

    point, within = found.chosen, found.within
    taken = None if found.tokens is None or point is None else training(point, found.tokens)
    return {
        "scaling": None if found.scaling is None else report.as_json(found.scaling, found.tokens),
        "within": None if within is None or point is None else report.within_json(point, within),
        "training": None if taken is None else report.training_json(taken),
        "iso": None if found.iso is None else [each.as_json() for each in found.iso],
        "explained": None if found.explained is None else against.as_json(found.explained),
        "emitted": None if found.emitted is None else found.emitted.as_json(),
    }


def show(found: Extras, console: Console) -> None:
    """Print them under the plans."""
    from ..report import scaling as report
    from ..report import versus as against

    if found.scaling is not None:
        report.show(found.scaling, console, found.tokens)
    point = found.chosen
    if found.within is not None and point is not None:
        console.print(f"\n{point.devices} devices are the fewest searched with a step of at most {found.within:g} s")
    if found.tokens is not None and point is not None:
        report.show_training(training(point, found.tokens), console)
    if found.iso is not None:
        report.show_iso(found.iso, console)
    if found.explained is not None:
        against.show(found.explained, console)


def write_emitted(found: Emission) -> None:
    """The text alone on standard output; notes on standard error where the text cannot hold them."""
    write(found.text)
    if found.framework in SILENT:
        for line in found.warnings:
            write_error(line)


def pairs(text: str) -> dict[str, Any]:
    """The fields of a plan as users write them.

    Raises:
        InputError: something without `=`, or a field given twice.

    >>> pairs("tp=8 pp=4 recompute=full sequence-parallel=true")
    {'tp': 8, 'pp': 4, 'recompute': 'full', 'sequence_parallel': True}
    """
    texts = split_settings(text.split(), "--explain", "NAME=VALUE, with spaces between")
    return {name: field_value(name, value) for name, value in texts.items()}
