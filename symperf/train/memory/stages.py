"""How many layers a stage of a pipeline has, and what the fullest one holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...formulas.language.atoms import Max, less_one
from ...formulas.language.symbols import (
    batch,
    dp,
    first_stage_layers,
    last_stage_layers,
    micro_batch,
    num_layers,
    pp,
    tp,
    vpp,
)
from ...formulas.parallel import dual_pipe as dual
from ...formulas.parallel import pipeline as pipe
from ...formulas.parallel import zero_bubble as zb
from ...models import counts
from . import device_counts as device
from .multi_token_counts import copied_parameters

if TYPE_CHECKING:
    from ...plans.structure import Structure


def fullest_layers(structure: Structure) -> Any:
    """Layers of the fullest stage."""
    if structure.stages == "given":
        return pipe.fullest_of_given_layers(first_stage_layers, middle_layers(), last_stage_layers)
    return pipe.fullest_stage_layers(num_layers, pp) if structure.stages == "uneven" else num_layers / pp


def middle_layers() -> Any:
    """Layers of each stage between given ends: (L - l_1 - l_p) / (p - 2); none of two stages."""
    rest = zb.excess(num_layers, first_stage_layers + last_stage_layers)
    return rest / Max(1, less_one(Max(1, less_one(pp))))


def mean_count(structure: Structure, count: Any) -> Any:  # noqa: ARG001
    """Layers on the mean stage of which the model has `count`."""
    return count / pp


def stage_count(structure: Structure, count: Any) -> Any:
    """Layers on the fullest stage of which the model has `count`: kinds are taken to be spread evenly."""
    if structure.stages == "even":
        return count / pp
    return fullest_layers(structure) * (count / num_layers)


def stage_parameters(structure: Structure) -> tuple[Any, Any]:
    """Parameters of a stage's layers on one device, dense ones and those of routed experts."""
    architecture = structure.architecture
    if structure.stages == "even":
        return device.stage_parameters(architecture)
    scale = fullest_layers(structure)
    if architecture.uniform_dense:
        return scale * device.largest_layer_parameters(architecture), device.ZERO
    kinds = [(scale * (counts.count_of(kind) / num_layers), kind) for kind in architecture.kinds]
    dense = sum(count * device.dense_parameters(architecture, kind) for count, kind in kinds)
    return dense, sum(count * device.expert_parameters(architecture, kind) for count, kind in kinds)


def held_parameters(structure: Structure) -> tuple[Any, Any, Any]:
    """Parameters on the fullest device: of dense layers, of routed experts, and of the ends; without modules of MTP.

    Under DualPipe a device has two stages, and the first device both ends of the model.
    """
    architecture = structure.architecture
    dense, experts = stage_parameters(structure)
    if structure.schedule != "dualpipe":
        return dense, experts, counts.stage_end_parameters(architecture, copied_parameters(structure))
    return dual.dual_pipe_parameters(dense), dual.dual_pipe_parameters(experts), _both_ends(structure)


def _both_ends(structure: Structure) -> Any:
    architecture = structure.architecture
    first = counts.embedding_parameters(architecture, tp)
    return first + counts.final_norm_parameters(architecture) + counts.head_parameters(architecture, tp)


def in_flight(structure: Structure) -> Any:
    """Micro-batches whose activations the first stage holds."""
    count = pipe.micro_batch_count(batch, micro_batch, dp)
    match structure.schedule:
        case "gpipe":
            return pipe.gpipe_in_flight(count)
        case "1f1b" | "zero-bubble":
            return pipe.one_f_one_b_in_flight(count, pp)
        case "zb-h2":
            return zb.zero_bubble_h2_in_flight(count, pp)
        case "zero-bubble-2p":
            return zb.zero_bubble_2p_in_flight(count, pp)
        case "dualpipe":
            return dual.dual_pipe_in_flight(pp)
        case "interleaved":
            return pipe.interleaved_in_flight(count, pp, vpp)
