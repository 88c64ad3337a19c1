"""Bytes on a device of a training step, as named terms: on the fullest, or on that of each stage."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import sympy

from ...formulas.language.atoms import Max, above_one, complement
from ...formulas.language.symbols import (
    batch,
    collective_buffer_bytes,
    context_bytes,
    dp,
    first_stage_layers,
    last_stage_layers,
    micro_batch,
    num_layers,
    num_recomputed_layers,
    pp,
    stage_number,
    workspace_bytes,
)
from ...formulas.memory import saved_activations as saved
from ...formulas.memory import stage_memory as each
from ...formulas.memory.stage_memory import one_f_one_b_stage_in_flight
from ...formulas.parallel import pipeline as pipe
from ...formulas.parallel.zero_bubble import excess
from ...models import counts
from ...models.architecture import UNIFORM
from ...operations.groups import expert_shard_groups, shard_groups
from ...plans.structure import ZERO_BUBBLE
from ..layers.context import context_workspace
from . import device_counts as device
from .device_share import fullest_place, stage_place
from .host_memory import buffers, host_terms, kept_on_device
from .multi_token_counts import ANY, module_activations, modules_on_fullest, recomputes
from .saved_activations import end_activations, layer_activations
from .stages import in_flight as in_flight
from .stages import middle_layers, stage_count
from .state_memory import SHARDED_FROM as SHARDED_FROM
from .state_memory import gathered_memory, state_terms, updated_parameters

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...models.architecture import LayerKind
    from ...plans.structure import Structure
    from .device_share import Place


def footprint(structure: Structure) -> dict[str, Any]:
    """Named terms of the memory of a training step on the fullest device; a total is their sum.

    The first stage of a pipeline holds the most micro-batches; the last holds the logits. Activations are the larger
    of the two, and state that of the larger: where these are two stages, the sum exceeds the fullest stage
    (`stage_footprint`) by at most what the state of the two differs by, a norm where stages are equal. A zero-bubble
    schedule holds as many micro-batches on every stage; under DualPipe the first device is both ends.
    """
    return _terms(structure, fullest_place(structure), _activations(structure))


def stage_footprint(structure: Structure) -> dict[str, Any]:
    """The same terms on the device of stage i, in the symbol `stage_number`."""
    place = stage_place(structure)
    return _terms(structure, place, _stage_activations(structure, place))


def host_footprint(structure: Structure) -> dict[str, Any]:
    """Bytes that the host holds for the fullest device, by name; nothing where nothing is offloaded."""
    place = fullest_place(structure)
    weights = place.dense + place.experts
    if structure.zero == 3:
        weights = place.dense / shard_groups(structure)[0].ranks
        if structure.architecture.routed:
            weights += place.experts / expert_shard_groups(structure)[0].ranks
    activations = stage_activations(structure, place.held) if "activations" in structure.offload else 0
    return host_terms(structure, updated_parameters(structure, place), weights, activations)


def _terms(structure: Structure, place: Place, activations: Any) -> dict[str, Any]:
    found = state_terms(structure, place)
    if structure.zero == 3:
        found["workspace/gathered"] = gathered_memory(structure)
    if structure.context != "none":
        found["workspace/context"] = context_workspace(structure)
    if {"activations", "weights"} & set(structure.offload):
        unit = device.largest_layer_parameters(structure.architecture)
        found["workspace/offload"] = buffers(structure, unit, _largest_layer(structure))
    return found | {
        "activations": activations,
        "workspace/recompute": recomputed_bytes(structure),
        "workspace/fragmentation": each.fragmentation_memory(activations),
        "workspace/driver": context_bytes,
        "workspace/collectives": collective_buffer_bytes,
        "workspace/framework": workspace_bytes,
    }


# Activations ------------------------------------------------------------------------------------------------------


def stage_activations(structure: Structure, held: Any, share: Callable[[Any], Any] | None = None) -> Any:
    """Bytes that a stage's layers keep of `held` micro-batches, host or not.

    Args:
        structure: of the step.
        held: micro-batches in flight.
        share: how many layers the stage has of which the model has a count; by default those of the fullest.
    """
    counted = [(count, layer_activations(structure, kind)) for count, kind in _kinds(structure)]
    if share is None and structure.stages == "even" and not structure.some_layers:
        return sum(saved.stage_activation_bytes(kept_bytes, count, pp, held) for count, kept_bytes in counted)
    dealt = share or (lambda count: stage_count(structure, count))
    if not structure.some_layers:
        return sum(saved.stage_activation_bytes(kept_bytes, dealt(count), 1, held) for count, kept_bytes in counted)
    plain = dataclasses.replace(structure, recompute="none")
    total = sympy.S.Zero
    for count, kind in _kinds(structure):
        again = num_recomputed_layers if count == num_layers else num_recomputed_layers * (count / num_layers)
        total += saved.stage_activation_bytes(layer_activations(structure, kind), again, 1, held)
        total += saved.stage_activation_bytes(layer_activations(plain, kind), excess(dealt(count), again), 1, held)
    return total


def _kinds(structure: Structure) -> list[tuple[Any, LayerKind]]:
    """The kinds of layers with their counts."""
    if structure.architecture.uniform_dense:
        return [(num_layers, UNIFORM)]
    return [(counts.count_of(kind), kind) for kind in structure.architecture.kinds]


def _largest_layer(structure: Structure) -> Any:
    return Max(*(layer_activations(structure, kind) for _, kind in _kinds(structure)))


def recomputed_bytes(structure: Structure) -> Any:
    """Bytes that one layer's recomputed activations take while its backward pass runs, beside what is kept of it."""
    if structure.recompute == "none" or (structure.recompute == "selective" and structure.attention == "flash"):
        return sympy.S.Zero
    kinds = [kind for _, kind in _kinds(structure)]
    plain = dataclasses.replace(structure, recompute="none")
    if structure.recompute == "selective":
        return Max(*(layer_activations(plain, kind) - layer_activations(structure, kind) for kind in kinds))
    found = [layer_activations(plain, kind) for kind in kinds]
    if structure.architecture.multi_token_head and recomputes(structure):
        found.append(ANY * (module_activations(plain) - module_activations(structure)))
    return Max(*found)


def _ends(structure: Structure) -> tuple[Any, Any]:
    """Bytes that the ends keep of one micro-batch, the last with its modules for multi-token prediction."""
    first, last = end_activations(structure)
    modules = modules_on_fullest(structure)
    return first, last + modules * module_activations(structure) if modules else last


def _last_held(structure: Structure) -> Any:
    """Micro-batches whose logits the last stage holds: all under GPipe, else one."""
    return _micro_batches() if structure.schedule == "gpipe" else sympy.S.One


def _micro_batches() -> Any:
    return pipe.micro_batch_count(batch, micro_batch, dp)


def _activations(structure: Structure) -> Any:
    """Bytes of activations on the fullest stage."""
    place = fullest_place(structure)
    held = place.held
    if structure.stages == "given":
        return _given_activations(structure, held)
    layer_bytes = kept_on_device(structure, "activations", stage_activations(structure, held))
    first, last = _ends(structure)
    if structure.schedule == "dualpipe":
        return layer_bytes + held / 2 * first + last
    last *= _last_held(structure)
    newest = layer_bytes
    if structure.schedule not in (*ZERO_BUBBLE, "gpipe"):
        newest = kept_on_device(structure, "activations", stage_activations(structure, 1))
    first_stage = layer_bytes + held * first + complement(above_one(pp)) * last
    return Max(first_stage, above_one(pp) * (newest + last))


def _given_activations(structure: Structure, held: Any) -> Any:
    """Bytes of activations on the fullest of the first, the second and the last stage, whose layers are given."""
    first, last = _ends(structure)
    last_held = _last_held(structure)
    second = held if structure.schedule == "gpipe" else one_f_one_b_stage_in_flight(_micro_batches(), pp, 2)

    def layers(count: Any, in_flight: Any) -> Any:
        share = stage_activations(
            structure, in_flight, lambda n: count if n == num_layers else count * (n / num_layers)
        )
        return kept_on_device(structure, "activations", share)

    return Max(
        layers(first_stage_layers, held) + held * first,
        layers(middle_layers(), second),
        layers(last_stage_layers, last_held) + last_held * last,
    )


def _stage_activations(structure: Structure, place: Place) -> Any:
    """Bytes of activations on the device of stage i."""
    layer_bytes = kept_on_device(structure, "activations", stage_activations(structure, place.held, place.share))
    first, last = _ends(structure)
    is_first, is_last = each.is_first_stage(stage_number), each.is_last_stage(stage_number, pp)
    if structure.schedule == "dualpipe":
        return layer_bytes + (is_first + is_last) * (place.held / 2 * first + last)
    return layer_bytes + is_first * place.held * first + is_last * _last_held(structure) * last
