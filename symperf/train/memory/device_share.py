"""Where memory is counted: on the fullest device, or on that of stage i of a pipeline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sympy

from ...formulas.language.atoms import above_one, ceil_div
from ...formulas.language.symbols import (
    batch,
    dp,
    first_stage_layers,
    hidden_size,
    last_stage_layers,
    micro_batch,
    num_layers,
    pp,
    stage_number,
    tp,
    vocab_size,
    vpp,
)
from ...formulas.memory import parameters as par
from ...formulas.memory import stage_memory as each
from ...formulas.parallel import dual_pipe as dual
from ...formulas.parallel import pipeline as pipe
from ...models import counts
from . import device_counts as device
from .multi_token_counts import copied_parameters, modules_on_fullest, modules_on_stage
from .stages import held_parameters, in_flight, middle_layers, stage_count

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...plans.structure import Structure


@dataclass(frozen=True)
class Place:
    """A device of a pipeline.

    Attributes:
        share: how many layers it has of which the model has a count.
        dense: parameters of its layers but for routed experts.
        experts: those of routed experts.
        ends: parameters of the tables, norm and head on it.
        modules: modules for multi-token prediction on it.
        held: micro-batches whose activations its layers hold.
        fullest: it is the fullest device, not that of one stage.
    """

    share: Callable[[Any], Any]
    dense: Any
    experts: Any
    ends: Any
    modules: Any
    held: Any
    fullest: bool


def fullest_place(structure: Structure) -> Place:
    """The fullest device, of which each term is the largest of the first and the last stage."""
    dense, experts, ends = held_parameters(structure)
    modules, held = modules_on_fullest(structure), in_flight(structure)
    return Place(lambda count: stage_count(structure, count), dense, experts, ends, modules, held, fullest=True)


def stage_place(structure: Structure) -> Place:
    """The device of stage i, for the symbol `stage_number`; under DualPipe also that of the mirrored stage."""
    layers = stage_layers(structure)

    def share(count: Any) -> Any:
        return layers if count == num_layers else layers * (count / num_layers)

    architecture = structure.architecture
    kinds = [(num_layers, architecture.kinds[0])] if architecture.uniform_dense else []
    kinds = kinds or [(counts.count_of(kind), kind) for kind in architecture.kinds]
    dense = sympy.Add(*(share(count) * device.dense_parameters(architecture, kind) for count, kind in kinds))
    experts = sympy.Add(*(share(count) * device.expert_parameters(architecture, kind) for count, kind in kinds))
    if structure.schedule == "dualpipe":
        dense, experts = dual.dual_pipe_parameters(dense), dual.dual_pipe_parameters(experts)
    modules, held = modules_on_stage(structure), stage_in_flight(structure)
    return Place(share, dense, experts, stage_ends(structure), modules, held, fullest=False)


def stage_layers(structure: Structure) -> Any:
    """Layers of stage i."""
    if structure.stages == "given":
        first, last = each.is_first_stage(stage_number), each.is_last_stage(stage_number, pp)
        inside = above_one(stage_number) * above_one(pp / stage_number)
        return first * first_stage_layers + last * last_stage_layers + inside * middle_layers()
    return each.uneven_stage_layers(num_layers, pp, stage_number) if structure.stages == "uneven" else num_layers / pp


def stage_ends(structure: Structure) -> Any:
    """Parameters of the tables, norm and head on the device of stage i; a tied table is copied to the last stage."""
    architecture = structure.architecture
    tables = counts.embedding_parameters(architecture, tp)
    head = counts.final_norm_parameters(architecture) + counts.head_parameters(architecture, tp)
    first, last = each.is_first_stage(stage_number), each.is_last_stage(stage_number, pp)
    if structure.schedule == "dualpipe":
        return (first + last) * (tables + head)
    if architecture.tied_embeddings:
        head += above_one(pp) * par.linear_parameters(hidden_size, ceil_div(vocab_size, tp))
    head += above_one(pp) * copied_parameters(structure)
    return first * tables + last * head


def stage_in_flight(structure: Structure) -> Any:
    """Micro-batches whose activations stage i holds: schedules that split gradients hold as many on every stage."""
    count = pipe.micro_batch_count(batch, micro_batch, dp)
    if structure.schedule == "1f1b":
        return each.one_f_one_b_stage_in_flight(count, pp, stage_number)
    if structure.schedule == "interleaved":
        return each.interleaved_stage_in_flight(count, pp, vpp, stage_number)
    return in_flight(structure)
