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
    pp,
)
from ...formulas.parallel import dual_pipe as dual
from ...formulas.parallel import pipeline as pipe
from ...formulas.parallel import zero_bubble as zb
from ...operations.dealing import middle_layers
from ...operations.schedule import Overlap, Repeat, Scheduled, part
from ...operations.schedule import sequence as in_sequence
from ..memory.device_share import fullest_layers
from .host_offload import with_gradients
from .passes import of_weights, pair_passes
from .unequal_stages import split_unequal_stages

if TYPE_CHECKING:
    from ...operations.schedule import Node
    from .step import TrainingStep

ZB_TIMES = {
    "zero-bubble": zb.zero_bubble_h1_time,
    "zb-h2": zb.zero_bubble_h2_time,
    "zero-bubble-2p": zb.zero_bubble_2p_time,
}


def split_schedule(step: TrainingStep) -> list[Node | None]:
    """A pipeline with gradients of inputs and of weights as passes of their own.

    Gradients are reduced after the pipeline, as far as `overlap_dp` does not allow it beside the schedule.
    """
    structure = step.structure
    if structure.segments or structure.stages != "even":
        node, ends = split_unequal_stages(step), None
    else:
        node = _split_equal_stages(step)
        ends = step.ends(sympy.S.Half, sympy.S.One) if structure.schedule == "dualpipe" else step.ends()
    reduction = step.gradient_reduction()
    whole = node if reduction is None else Overlap(node, reduction, overlap_dp)
    return [with_gradients(structure, whole, step.share.updated_parameters), ends]


def _split_equal_stages(step: TrainingStep) -> Scheduled:
    named = _split_passes(step.structure.schedule, (step.forward, step.backward))
    passes = [step.hosted_split(name, node) for name, node in named.items()]
    counts = (*(step.micro_batches,) * 3, *(sympy.S.Zero,) * (len(passes) - 3))
    return Scheduled(tuple(passes), counts, lambda *times: _split_time(step, times))


def _split_passes(schedule: str, stage: tuple[Node, Node]) -> dict[str, Node]:
    """The passes of a stage: forward, gradients of inputs, gradients of weights, and under DualPipe a pair."""
    forward, backward = stage
    inputs, weights = part(backward, lambda op: not of_weights(op)), part(backward, of_weights)
    found: dict[str, Node] = {"forward": forward, "inputs": inputs, "weights": weights}
    return found | {"pair": pair_passes(forward, backward)} if schedule == "dualpipe" else found


def _split_time(step: TrainingStep, times: tuple[Any, ...]) -> Any:
    """The time of a schedule of equal stages, given the times of the passes of one."""
    forward, inputs, weights, *pair = times
    if pair:
        return dual.dual_pipe_time(forward, inputs, weights, pair[0], step.micro_batches, pp)
    return ZB_TIMES[step.structure.schedule](forward, inputs, weights, step.micro_batches, pp)


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
