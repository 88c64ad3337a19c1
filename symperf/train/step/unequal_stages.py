"""Pipelines of a training step whose stages hold other layers, of schedules that take backward passes apart.

Of a stage that decides its passes count, and those of the stages before and behind it, of which one of the mean size
stands for all. The ends of the model run on the stages that have them. Operations are counted on a stage of the mean
size.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import sympy

from ...formulas.language.atoms import Max, Min, above_one, less_one
from ...formulas.language.symbols import pp
from ...formulas.memory import stage_memory as each
from ...formulas.parallel import unequal_stages as unequal
from ...formulas.parallel.zero_bubble import excess
from ...operations.schedule import ZERO, Scheduled, part
from ...operations.schedule import sequence as in_sequence
from ..memory.device_share import dealing_of
from .passes import of_weights, pair_passes
from .scheduled_parts import FORWARD, INPUTS, WEIGHTS, Parts, Sides

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .step import TrainingStep

IN_FLIGHT = {"zero-bubble": pp, "zb-h2": pp + less_one(pp), "zero-bubble-2p": 2 * pp}
"""Micro-batches that a device holds."""


def split_unequal_stages(step: TrainingStep) -> Scheduled:
    """A schedule with gradients of inputs and of weights as passes of their own, and both ends."""
    return _dual_pipe(step) if step.structure.schedule == "dualpipe" else _zero_bubble(step)


def _zero_bubble(step: TrainingStep) -> Scheduled:
    dealing, m = dealing_of(step.structure), step.micro_batches
    parts = _mean_and_ends(step, m)
    numbers = dealing.pacing
    for k, number in enumerate(numbers):
        parts.add_passes(f"{k}", step.passes_of(functools.partial(dealing.on_stage, number=number)))
        if number != 1:
            forward, backward = step.passes_of(functools.partial(dealing.before, number=number))
            parts.add(f"{k}/before/{FORWARD}", forward)
            parts.add(f"{k}/before/{INPUTS}", part(backward, lambda op: not of_weights(op)))
        if number != pp:
            forward, backward = step.passes_of(functools.partial(dealing.behind, number=number))
            parts.add(f"{k}/behind", in_sequence(forward, part(backward, lambda op: not of_weights(op))))
    flush = step.structure.schedule == "zero-bubble"
    formula = unequal.zero_bubble_stage_flush_time if flush else unequal.zero_bubble_stage_time
    in_flight, module_stage = IN_FLIGHT[step.structure.schedule], step.structure.module_stage

    def rule(times: Mapping[str, Any]) -> Any:
        found, sides = [], Sides(times, module_stage)
        first_weights = times[f"0/{WEIGHTS}"] + sides.on(numbers[0], WEIGHTS)
        for k, number in enumerate(numbers):
            forward, inputs, weights = (
                times[f"{k}/{phase}"] + sides.on(number, phase) for phase in (FORWARD, INPUTS, WEIGHTS)
            )
            before, back = (
                less_one(number) * times.get(f"{k}/before/{phase}", ZERO) + sides.before(number, phase)
                for phase in (FORWARD, INPUTS)
            )
            behind = excess(pp, number) * times.get(f"{k}/behind", ZERO) + sides.behind(number, FORWARD, INPUTS)
            found.append(
                formula(forward, inputs, weights, before, back, behind, first_weights, m, pp, in_flight, number)
            )
        return Max(*found)

    return parts.scheduled(rule)


def _dual_pipe(step: TrainingStep) -> Scheduled:
    """Devices have stage i of the one way and p + 1 - i of the other, and each end half of the micro-batches."""
    dealing, m = dealing_of(step.structure).one_way, step.micro_batches
    parts = _mean_and_ends(step, m, m / 2)
    near = [sympy.S.One, pp / 2, *(Min(number, pp + 1 - number) for number in dealing.deciding[1:-1])]
    numbers = tuple(dict.fromkeys(near))
    middle_at = numbers.index(pp / 2)
    for k, number in enumerate(numbers):
        own, far = (step.passes_of(functools.partial(dealing.on_stage, number=at)) for at in (number, pp + 1 - number))
        parts.add_passes(f"{k}", own)
        parts.add_passes(f"{k}/far", far)
        parts.add(f"{k}/pair", pair_passes(own[0], far[1]))
        parts.add(f"{k}/far/pair", pair_passes(far[0], own[1]))
        if number != 1:
            before = step.passes_of(functools.partial(dealing.before, number=number))
            behind = step.passes_of(functools.partial(dealing.behind, number=pp + 1 - number))
            parts.add(f"{k}/before/{FORWARD}", before[0])
            if k == middle_at:
                parts.add(f"{k}/before/{INPUTS}", part(before[1], lambda op: not of_weights(op)))
            parts.add(f"{k}/behind/{INPUTS}", part(behind[1], lambda op: not of_weights(op)))
            parts.add(f"{k}/before/pair", pair_passes(behind[0], before[1]))

    def rule(times: Mapping[str, Any]) -> Any:
        def end(name: str, *phases: str) -> Any:
            return sum(times[f"{name}/{phase}"] for phase in phases)

        def of_all(phase: str) -> Any:
            return pp * times[f"mean/{phase}"] + end("first", phase) + end("last", phase)

        first, last = end("first", INPUTS, WEIGHTS), end("last", INPUTS, WEIGHTS)
        ended = unequal.dual_pipe_end_time(
            end("0", INPUTS, WEIGHTS) + first,
            end("0/far", INPUTS, WEIGHTS) + last,
            end("0", WEIGHTS) + end("first", WEIGHTS),
            end("0/far", WEIGHTS) + end("last", WEIGHTS),
            of_all(INPUTS),
            pp,
        )

        def around(k: int, name: str, of_ends: Any) -> Any:
            """What passes outside of a device take, of which one of the mean size is known."""
            return less_one(numbers[k]) * times.get(f"{k}/{name}", ZERO) + above_one(numbers[k]) * of_ends

        def own(k: int, *phases: str) -> Any:
            return end(f"{k}", *phases) + each.is_first_stage(numbers[k]) * end("first", *phases)

        def far(k: int, *phases: str) -> Any:
            return end(f"{k}/far", *phases) + each.is_first_stage(numbers[k]) * end("last", *phases)

        def pairs(k: int) -> tuple[Any, Any]:
            outermost = each.is_first_stage(numbers[k])
            near = times[f"{k}/pair"] + outermost * (end("first", FORWARD) + last)
            return near, times[f"{k}/far/pair"] + outermost * (end("last", FORWARD) + first)

        def begun(k: int) -> Any:
            before = around(k, f"before/{FORWARD}", end("first", FORWARD))
            behind = around(k, f"behind/{INPUTS}", end("last", INPUTS))
            alone = own(k, FORWARD), far(k, FORWARD)
            return unequal.dual_pipe_begin_time(*alone, before, of_all(FORWARD), behind, pp, numbers[k])

        gradients = INPUTS, WEIGHTS
        middle_end = unequal.dual_pipe_middle_end_time(
            own(middle_at, *gradients),
            far(middle_at, *gradients),
            own(middle_at, INPUTS),
            far(middle_at, INPUTS),
            around(middle_at, f"before/{INPUTS}", end("first", INPUTS)),
            own(0, WEIGHTS),
            pp,
        )
        middle_backward = far(middle_at, *gradients)
        middle = begun(middle_at) + middle_backward, pairs(middle_at)[1], middle_backward, middle_end
        return Max(
            *(
                unequal.dual_pipe_device_time(
                    own(k, *gradients),
                    far(k, FORWARD),
                    far(k, *gradients),
                    *pairs(k),
                    around(k, "before/pair", end("last", FORWARD) + first),
                    begun(k),
                    ended,
                    *middle,
                    m,
                    pp,
                    number,
                )
                for k, number in enumerate(numbers)
            )
        )

    return parts.scheduled(rule)


def _mean_and_ends(step: TrainingStep, count: Any, of_ends: Any = None) -> Parts:
    """The passes of a stage of the mean size, which is counted, and those of both ends."""
    parts = Parts(step.hosted_split)
    parts.add_passes("mean", step.passes(fullest=False), count)
    for end, passes in step.end_passes().items():
        parts.add_passes(end, passes, count if of_ends is None else of_ends)
    return parts
