"""Pipelines of a training step: of schedules whose backward passes are whole, and of those that take them apart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import sympy

from ...formulas.language.atoms import less_one
from ...formulas.language.formula import is_memoizing
from ...formulas.language.symbols import overlap_dp, pp
from ...formulas.parallel import dual_pipe as dual
from ...formulas.parallel import zero_bubble as zb
from ...operations.reads import remembered
from ...operations.schedule import Idle, Overlap, Repeat, Scheduled, part
from ...operations.schedule import sequence as in_sequence
from .host_offload import with_gradients
from .passes import of_weights, pair_passes
from .unequal_stages import split_unequal_stages
from .unequal_whole import paced_by_deciding_stages

if TYPE_CHECKING:
    from ...operations.schedule import Node
    from ...plans.structure import Structure
    from .step import TrainingStep

ZB_TIMES = {
    "zero-bubble": zb.zero_bubble_h1_time,
    "zb-h2": zb.zero_bubble_h2_time,
    "zero-bubble-2p": zb.zero_bubble_2p_time,
}


BUBBLE = "pipeline/bubble"
"""Path of the idle term."""


class Pipeline(NamedTuple):
    """Passes of micro-batches through the stages.

    Attributes:
        forward: of one through a stage.
        backward: of the same.
        whole: of all; where backward passes are whole, of all but the first, with the ends of stages told apart.
        waiting: what a device waits for beside these, if that is not in them.
    """

    forward: Node
    backward: Node
    whole: Node
    waiting: Node | None


def pipeline_of(step: TrainingStep) -> Pipeline:
    """The pipeline of a step; while formulas are memoized, that of all steps that agree in what it is made of."""
    if is_memoizing():
        return _remembered_pipeline(step.structure, type(step))
    return _pipeline_of(step)


@remembered
def _remembered_pipeline(structure: Structure, step: type[TrainingStep]) -> Pipeline:
    return _pipeline_of(step(structure))


def _pipeline_of(step: TrainingStep) -> Pipeline:
    structure = step.structure
    forward, backward = step.passes(fullest=structure.splits)
    if structure.splits:
        whole: Node = split_unequal_stages(step) if structure.told_apart else _equal_stages(step, forward, backward)
        return Pipeline(forward, backward, whole, None)
    if structure.told_apart:
        whole = paced_by_deciding_stages(step)
    else:
        stage = in_sequence(forward, backward)
        if structure.schedule == "1f1b":
            stage = in_sequence(*step.passes(fullest=False, sends=step.later_sends))
        whole = Repeat(stage, less_one(step.micro_batches))
    return Pipeline(forward, backward, whole, step.waiting())


def whole_passes(step: TrainingStep) -> list[Node | None]:
    """The pipeline of a schedule whose backward passes are whole.

    The first micro-batch passes all L layers, on stages of the mean size; where stages differ, those after it come as
    the stages that decide let them, each with the ends of the model that it has.
    """
    found: list[Node] = [step.pipeline.whole, *([] if step.structure.told_apart else [step.ends()])]
    waiting = step.pipeline.waiting
    assert waiting is not None
    return [step.first_forward(), *found, _last_backward(step), Idle(BUBBLE, waiting, sympy.S.One)]


def _last_backward(step: TrainingStep) -> Node:
    """The last backward pass, beside which gradients are summed over the replicas and may go to the host."""
    reduction = None if step.structure.zero > 1 else step.exchanges.gradient_reduction()
    last = step.backward if reduction is None else Overlap(step.backward, reduction, overlap_dp)
    return with_gradients(step.structure, last, step.share.updated_parameters)


def split_schedule(step: TrainingStep) -> list[Node | None]:
    """A pipeline with gradients of inputs and of weights as passes of their own.

    Gradients are reduced after the pipeline, as far as `overlap_dp` does not allow it beside the schedule.
    """
    structure, node = step.structure, step.pipeline.whole
    if structure.told_apart:
        ends = None
    else:
        ends = step.ends(sympy.S.Half, sympy.S.One) if structure.schedule == "dualpipe" else step.ends()
    reduction = step.exchanges.gradient_reduction()
    whole = node if reduction is None else Overlap(node, reduction, overlap_dp)
    return [with_gradients(structure, whole, step.share.updated_parameters), ends]


def _equal_stages(step: TrainingStep, forward: Node, backward: Node) -> Scheduled:
    schedule, m = step.structure.schedule, step.micro_batches
    passes = [step.hosted_split(name, node) for name, node in _split_passes(schedule, (forward, backward)).items()]
    counts = (*(m,) * 3, *(sympy.S.Zero,) * (len(passes) - 3))
    return Scheduled(tuple(passes), counts, lambda *times: _split_time(schedule, m, times))


def _split_passes(schedule: str, stage: tuple[Node, Node]) -> dict[str, Node]:
    """The passes of a stage: forward, gradients of inputs, gradients of weights, and under DualPipe a pair."""
    forward, backward = stage
    inputs, weights = part(backward, lambda op: not of_weights(op)), part(backward, of_weights)
    found: dict[str, Node] = {"forward": forward, "inputs": inputs, "weights": weights}
    return found | {"pair": pair_passes(forward, backward)} if schedule == "dualpipe" else found


def _split_time(schedule: str, micro_batches: Any, times: tuple[Any, ...]) -> Any:
    """The time of a schedule of equal stages, given the times of the passes of one."""
    forward, inputs, weights, *pair = times
    if pair:
        return dual.dual_pipe_time(forward, inputs, weights, pair[0], micro_batches, pp)
    return ZB_TIMES[schedule](forward, inputs, weights, micro_batches, pp)
