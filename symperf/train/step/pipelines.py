"""Pipelines of a training step whose backward passes are taken apart, or whose stages are given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sympy

from ...formulas.language.atoms import Max, less_one
from ...formulas.language.symbols import (
    first_stage_layers,
    last_stage_layers,
    num_layers,
    num_recomputed_layers,
    overlap_dp,
    overlap_ep,
    pp,
)
from ...formulas.memory import stage_memory as each
from ...formulas.parallel import dual_pipe as dual
from ...formulas.parallel import pipeline as pipe
from ...formulas.parallel import zero_bubble as zb
from ...operations.dealing import middle_layers
from ...operations.schedule import Overlap, Repeat, Scheduled, part
from ...operations.schedule import sequence as in_sequence
from ..memory.device_share import dealing_of, fullest_layers
from .host_offload import with_gradients

if TYPE_CHECKING:
    from ...operations.schedule import Node, Op
    from .step import TrainingStep

ZB_TIMES = {
    "zero-bubble": zb.zero_bubble_h1_time,
    "zb-h2": zb.zero_bubble_h2_time,
    "zero-bubble-2p": zb.zero_bubble_2p_time,
}


def of_weights(op: Op) -> bool:
    """Whether an operation of a backward pass belongs to the gradients of weights, which no other stage waits for."""
    return op.path.endswith(("backward_weight", "backward_bias"))


def between_devices(op: Op) -> bool:
    """Whether DualPipe runs an operation beside the other direction's pass: transfers of experts and of stages."""
    return "/experts/dispatch/" in op.path or "/experts/combine/" in op.path or op.path.startswith("pipeline/send")


def split_schedule(step: TrainingStep) -> list[Node | None]:
    """A pipeline with gradients of inputs and of weights as passes of their own.

    Every stage is taken to be the fullest; where stages have other kinds of layers, the slowest. Gradients are reduced
    after the pipeline, as far as `overlap_dp` does not allow it beside the schedule.
    """
    structure, count = step.structure, step.micro_batches
    stages = step.deciding if structure.segments else [(step.forward, step.backward)]
    ends = step.ends(sympy.S.Half, sympy.S.One) if structure.schedule == "dualpipe" else step.ends()
    passes = [one for stage in stages for one in _split_passes(structure.schedule, stage)]
    width = len(passes) // len(stages)

    def rule(*times: Any) -> Any:
        found = [_split_time(step, times[at : at + width]) for at in range(0, len(stages) * width, width)]
        return Max(*found) if structure.segments else found[0]

    counts = (*(count,) * 3, *(sympy.S.Zero,) * (width - 3))
    if structure.segments:
        # Operations are counted on a stage of the mean size.
        counts = (*(sympy.S.Zero,) * len(passes), *(count,) * 3)
        passes += _split_passes("", step.passes(fullest=False))
    node = Scheduled(tuple(passes), counts, rule)
    reduction = step.gradient_reduction()
    whole = node if reduction is None else Overlap(node, reduction, overlap_dp)
    return [with_gradients(structure, whole, step.share.updated_parameters), ends]


def _split_passes(schedule: str, stage: tuple[Node, Node]) -> list[Node]:
    """The passes of a stage: forward, gradients of inputs, gradients of weights, and under DualPipe a pair."""
    forward, backward = stage
    found = [forward, part(backward, lambda op: not of_weights(op)), part(backward, of_weights)]
    return [*found, pair_passes(forward, backward)] if schedule == "dualpipe" else found


def _split_time(step: TrainingStep, times: tuple[Any, ...]) -> Any:
    """The time of a schedule of equal stages, given the times of the passes of one."""
    forward, inputs, weights, *pair = times
    if pair:
        return dual.dual_pipe_time(forward, inputs, weights, pair[0], step.micro_batches, pp)
    return ZB_TIMES[step.structure.schedule](forward, inputs, weights, step.micro_batches, pp)


def pair_passes(forward: Node, backward: Node) -> Node:
    """A forward and a backward pass beside each other: transfers run beside the work of the other direction."""
    both = in_sequence(forward, backward)
    return Overlap(part(both, lambda op: not between_devices(op)), part(both, between_devices), overlap_ep)


def paced_by_deciding_stages(step: TrainingStep) -> Scheduled:
    """All micro-batches but the first, at the pace of the slowest of the stages that decide, and both ends.

    The time of (m - 1) max over i of (T_i + [i = 1] T_1 + [i = p] T_p) + T_1 + T_p, where T_i is that of the layers of
    stage i; by `uneven_stages_time`. Operations are counted on a stage of the mean size.
    """
    first, last = step.both_ends()
    numbers = dealing_of(step.structure).deciding
    stages = [in_sequence(*passes) for passes in step.deciding]

    def rule(*times: Any) -> Any:
        first_time, last_time = times[-2:]
        slowest = Max(
            *(
                time + each.is_first_stage(number) * first_time + each.is_last_stage(number, pp) * last_time
                for number, time in zip(numbers, times, strict=False)
            )
        )
        return pipe.uneven_stages_time(first_time + last_time, slowest, step.micro_batches)

    mean = in_sequence(*step.passes(fullest=False))
    counts = (*(sympy.S.Zero,) * len(stages), less_one(step.micro_batches), *(step.micro_batches,) * 2)
    return Scheduled((*stages, mean, first, last), counts, rule)


def paced_by_given_stages(step: TrainingStep) -> Scheduled:
    """All micro-batches but the first, at the pace of the slowest of the first, the last and the other stages.

    The time of (m - 1)(T_s + l_r T_r + max(l_1 T_l + T_1, l_o T_l, l_p T_l + T_p)) + T_1 + T_p, where T_l is that of a
    layer, T_s that of the transfers, and T_r that of a recomputed layer, l_r in each stage; by `uneven_stages_time`.
    """
    later = less_one(step.micro_batches)
    layer = in_sequence(
        *(Repeat(in_sequence(forward, backward), count / num_layers) for forward, backward, count in step.each)
    )
    again = in_sequence(*(Repeat(node, count / num_layers) for node, count in step.again))
    transfers = in_sequence(step.transfer("forward"), step.transfer("backward"))
    first, last = step.both_ends()

    def rule(layer_time: Any, transfer_time: Any, first_time: Any, last_time: Any, again_time: Any) -> Any:
        slowest = Max(
            first_stage_layers * layer_time + first_time,
            middle_layers() * layer_time,
            last_stage_layers * layer_time + last_time,
        )
        fixed = transfer_time + num_recomputed_layers * again_time
        return pipe.uneven_stages_time(first_time + last_time, fixed + slowest, step.micro_batches)

    ends = step.micro_batches, step.micro_batches
    counts = (later * fullest_layers(step.structure), later, *ends, later * num_recomputed_layers)
    return Scheduled((layer, transfers, first, last, again), counts, rule)
