"""Pipelines of a training step whose stages hold other layers, of schedules whose backward passes are whole.

Of a stage that decides its passes count, and those of the stages before and behind it, of which one of the mean size
stands for all. The ends of the model run on the stages that have them. What is told here is all micro-batches but the
first, which passes stages of the mean size, and but the bubble: a schedule's whole time without these two.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import sympy

from ...formulas.language.atoms import Max, Min, above_one, complement, less_one
from ...formulas.language.symbols import overlap_pp, pp
from ...formulas.parallel import pipeline as pipe
from ...formulas.parallel import unequal_chunks as chunked
from ...formulas.parallel import unequal_stages as unequal
from ...formulas.parallel.zero_bubble import excess
from ...operations.schedule import ZERO, Scheduled
from ...operations.schedule import sequence as in_sequence
from .scheduled_parts import BACKWARD, FORWARD, Parts, Sides

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .step import TrainingStep

PHASES = (FORWARD, BACKWARD)
SHOWN = complement(overlap_pp)
"""Part of a transfer that takes time of a device."""


def paced_by_deciding_stages(step: TrainingStep) -> Scheduled:
    """All micro-batches but the first, as the stages that decide see them, and both ends.

    Under 1F1B by `one_f_one_b_later_time`, at most at the pace of the slowest stage.
    """
    if step.structure.schedule != "1f1b":
        return paced_by_ways(step)
    parts, m, numbers = Parts(), step.micro_batches, step.dealing.deciding
    module_stage = step.structure.module_stage
    for k, (number, (forward, backward)) in enumerate(zip(numbers, step.deciding, strict=True)):
        parts.add(f"{k}/forward", forward)
        parts.add(f"{k}/backward", backward)
        if number != pp:
            behind = step.passes_of(functools.partial(step.dealing.behind, number=number), sympy.S.One)
            parts.add(f"{k}/behind", in_sequence(*behind))
    parts.add("mean", in_sequence(*step.passes(fullest=False)), less_one(m))
    parts.add_ends(step, m)

    def rule(times: Mapping[str, Any]) -> Any:
        later, paces, ends = [], [], Sides(times, module_stage)
        for k, number in enumerate(numbers):
            one, two = (times[f"{k}/{phase}"] + ends.on(number, phase) for phase in ("forward", "backward"))
            behind = excess(pp, number) * times.get(f"{k}/behind", ZERO) + ends.behind(number, "forward", "backward")
            paces.append(one + two)
            later.append(unequal.one_f_one_b_later_time(one, two, behind, m, pp, number))
        slowest = pipe.uneven_stages_time(ZERO, Max(*paces), m)
        return ends.all("forward", "backward") + Min(slowest, Max(*later))

    return parts.scheduled(rule)


def paced_by_ways(step: TrainingStep) -> Scheduled:
    """The same of GPipe, by the slowest of each direction, and of interleaved stages, by the device that decides."""
    parts, m = _around(step), step.micro_batches
    interleaved, module_stage = step.structure.schedule == "interleaved", step.structure.module_stage
    if interleaved:
        _add_chunks(parts, step)
    parts.add("mean", in_sequence(*step.passes(fullest=False)), less_one(m))
    parts.add("slots", step.waiting())
    parts.add_ends(step, m)

    def rule(times: Mapping[str, Any]) -> Any:
        sides = Sides(times, module_stage)
        ways: dict[str, list[Any]] = {phase: [] for phase in PHASES}
        whole = []
        for k, number in enumerate(step.dealing.deciding):
            waits = dict.fromkeys(PHASES, ZERO)
            if interleaved:
                waits = {phase: _waits(step, times, k, number, phase) for phase in PHASES}
                whole.append(_device_time(step, times, sides, k, number, sum(waits.values())))
            for phase in PHASES:
                before, behind = _outside(times, sides, k, number, phase)
                own = times[f"{k}/{phase}"] + sides.on(number, phase)
                ways[phase].append(waits[phase] + chunked.one_way_time(own, before, behind, m))
        apart = sum(Max(*ways[phase]) for phase in PHASES)
        alternating = above_one(m / pp)
        total = alternating * Max(*whole) + complement(alternating) * apart if interleaved else apart
        told = times["mean"] + times["slots"]
        return Max(total, told) - told

    return parts.scheduled(rule)


def _around(step: TrainingStep) -> Parts:
    """Passes of the stages that decide, and one of the mean size of those before and behind each."""
    parts, dealing = Parts(), step.dealing
    for k, (number, passes) in enumerate(zip(dealing.deciding, step.deciding, strict=True)):
        sides = {"": passes}
        for side, layers_of, there in (
            ("before/", dealing.before, number != 1),
            ("behind/", dealing.behind, number != pp),
        ):
            if there:
                held = functools.partial(layers_of, number=number)
                sides[side] = step.passes_of(held, sympy.S.One, shards=False)
        for side, both in sides.items():
            for phase, node in zip(PHASES, both, strict=True):
                parts.add(f"{k}/{side}{phase}", node)
    return parts


def _add_chunks(parts: Parts, step: TrainingStep) -> None:
    """The first and the last chunk of devices that decide, and their rounds through all devices."""
    dealing = step.dealing
    for phase in PHASES:
        parts.add(f"send/{phase}", step.transfer(phase))
    for k, number in enumerate(dealing.deciding):
        held: dict[str, tuple[Any, Any]] = {
            "first": (functools.partial(dealing.first_chunk, number=number), SHOWN),
            "last": (functools.partial(dealing.last_chunk, number=number), SHOWN),
        }
        for at, turn in enumerate(dealing.rounds(number)):
            if turn.own is not None and turn.way is not None:
                held |= {f"own{at}": (turn.own, SHOWN), f"way{at}": (turn.way, pp)}
        for name, (layers_of, sends) in held.items():
            for phase, node in zip(PHASES, step.passes_of(layers_of, sends, shards=False), strict=True):
                parts.add(f"{k}/{name}/{phase}", node)


def _outside(times: Mapping[str, Any], sides: Sides, k: int, number: Any, *phases: str) -> tuple[Any, Any]:
    """The time of passes before the first chunk of a device, and behind its last one."""
    before, behind = (
        sum((times.get(f"{k}/{side}/{phase}", ZERO) for phase in phases), ZERO) for side in ("before", "behind")
    )
    return (
        less_one(number) * before + sides.before(number, *phases),
        Max(0, pp - number) * behind + sides.behind(number, *phases),
    )


def _waits(step: TrainingStep, times: Mapping[str, Any], k: int, number: Any, phase: str) -> Any:
    """What a device waits for in its rounds, in one direction."""
    found = ZERO
    for at, turn in enumerate(step.dealing.rounds(number)):
        if turn.own is None:
            found += turn.times * overlap_pp * pp * times[f"send/{phase}"]
            continue
        embedding = _embedding(times, number, phase) if turn.embedding else ZERO
        own, way = (times[f"{k}/{name}{at}/{phase}"] + embedding for name in ("own", "way"))
        found += turn.times * chunked.round_wait_time(own, way, pp)
    return found


def _embedding(times: Mapping[str, Any], number: Any, phase: str) -> Any:
    """The time of the embedding, if a device has it."""
    return complement(above_one(number)) * times[f"first/{phase}"]


def _device_time(step: TrainingStep, times: Mapping[str, Any], sides: Sides, k: int, number: Any, waits: Any) -> Any:
    """The time of interleaved stages as a device sees it."""
    own = sum(times[f"{k}/{phase}"] for phase in PHASES) + sides.on(number, *PHASES)
    first = [times[f"{k}/first/{phase}"] + _embedding(times, number, phase) for phase in PHASES]
    last = [times[f"{k}/last/{phase}"] + sides.on(number, phase) - _embedding(times, number, phase) for phase in PHASES]
    before, behind = _outside(times, sides, k, number, *PHASES)
    passes = own, first[0], first[1], last[0], last[1]
    return chunked.interleaved_device_time(*passes, before, behind, waits, step.micro_batches, pp, number)
