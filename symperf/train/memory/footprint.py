"""Bytes on a device of a training step, as named terms: on the fullest, or on that of each stage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sympy

from ...formulas.language.atoms import Max, above_one, complement
from ...formulas.language.symbols import (
    batch,
    dp,
    loss_working_bytes,
    micro_batch,
    num_layers,
    num_recomputed_layers,
    offloaded_activations,
    pp,
    stage_number,
    workspace_bytes,
)
from ...formulas.memory import reserved_memory as beside
from ...formulas.memory import saved_activations as saved
from ...formulas.memory import stage_memory as each
from ...formulas.parallel import pipeline as pipe
from ...formulas.parallel.zero_bubble import excess
from ...models import counts
from ...operations.reads import changed, remembered
from ...operations.shapes import Shapes
from ...operations.vocabulary import pad_vocabulary
from ...plans.gradients import gradients_of
from ...plans.offloaded_inputs import inputs_of
from ...plans.structure import ZERO_BUBBLE
from ..layers.context import context_workspace
from . import device_counts as device
from .device_share import dealing_of, fullest_share, last_chunk_in_flight, stage_share
from .end_activations import end_activations, logits_kept, logits_shape
from .host_memory import buffers, drive_terms, host_terms, kept_on_device, moves_activations
from .multi_token_counts import (
    ANY,
    apart,
    module_activations,
    module_logits,
    modules_on_fullest,
    modules_on_stage,
    recomputes,
)
from .offloaded_inputs import moved_activations
from .saved_activations import layer_activations, unneeded_below
from .state_memory import SHARDED_FROM as SHARDED_FROM
from .state_memory import gathered_ends, gathered_memory, state_terms
from .stored_weights import widened_memory

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...models.architecture import LayerKind
    from ...operations.dealing import Dealing
    from ...plans.structure import Structure
    from .device_share import DeviceShare

EXACT = 1 - sympy.Rational(1, 10**12)
"""Factor within which two sums of the same terms are one."""


def footprint(structure: Structure) -> dict[str, Any]:
    """Named terms of the memory of a training step on the fullest device; a total is their sum.

    The first stage of a pipeline holds the most micro-batches; the last holds the logits. Activations are the larger
    of the two, and state that of the larger: where these are two stages, the sum exceeds the fullest stage
    (`stage_footprint`) by at most what the state of the two differs by, a norm where stages are equal. A zero-bubble
    schedule holds as many micro-batches on every stage; under DualPipe the first device is both ends. Where kinds of
    layers come one after another, the terms are those of the fullest of the stages that decide.
    """
    if structure.told_apart:
        return of_largest(stage_footprint(structure), dealing_of(structure))
    return pad_vocabulary(structure, _with_activations(_fullest_state(structure), _fullest_activations(structure)))


def memory(structure: Structure) -> Any:
    """Bytes on the fullest device: the sum of the terms of `footprint`."""
    if structure.told_apart:
        return Max(*dealing_of(structure).on_deciding(sympy.Add(*stage_footprint(structure).values())))
    return sympy.Add(*footprint(structure).values())


def of_largest(terms: dict[str, Any], dealing: Dealing) -> dict[str, Any]:
    """The terms of the stage whose sum is largest, the first of equals; sums may differ by rounding."""
    chosen = shares_of_largest(dealing.on_deciding(sympy.Add(*terms.values())))
    return {
        name: sympy.Add(*(share * form for share, form in zip(chosen, dealing.on_deciding(terms[name]), strict=True)))
        for name in terms
    }


def shares_of_largest(totals: list[Any]) -> list[Any]:
    """1 for the largest of some forms, the first of equals, and 0 for all others."""
    largest, left = Max(*totals), sympy.S.One
    chosen = []
    for total in totals[:-1]:
        fuller = above_one(largest / total * EXACT)
        chosen.append(left * complement(fuller))
        left *= fuller
    chosen.append(left)
    return chosen


def stage_footprint(structure: Structure) -> dict[str, Any]:
    """The same terms on the device of stage i, in the symbol `stage_number`."""
    return pad_vocabulary(structure, _with_activations(_state_of_stage(structure), _activations_of_stage(structure)))


def host_footprint(structure: Structure) -> dict[str, Any]:
    """Bytes that the host holds for the fullest device, by name, on its drives under `nvme/`; of what is offloaded."""
    share = fullest_share(structure)
    weights = share.sharded(share.layer_parameters, 3)
    moved = stage_activations(share, share.in_flight, of=moved_activations) if moves_activations(structure) else 0
    drives = drive_terms(structure, share.updated_parameters, weights)
    found = host_terms(structure, share.updated_parameters, weights, moved)
    return pad_vocabulary(structure, found | {f"nvme/{name}": size for name, size in drives.items()})


def saved_activations(structure: Structure) -> Any:
    """Bytes on the fullest device of what forward passes keep for backward passes, without what comes and goes.

    This is what Korthikanti et al. 2022 section 4 call activations: tensors that a forward pass creates and a gradient
    needs. Recomputed tensors and those of the loss alone are none.
    """
    if structure.told_apart:
        kept = Max(*dealing_of(structure).on_deciding(_stage_activations(stage_share(structure), passing=False)))
    else:
        kept = _activations(fullest_share(structure), passing=False)
    return pad_vocabulary(structure, {"saved": kept})["saved"]


@remembered
def _fullest_state(structure: Structure) -> dict[str, Any]:
    return _state(fullest_share(structure))


@remembered
def _state_of_stage(structure: Structure) -> dict[str, Any]:
    return _state(stage_share(structure))


@remembered
def _fullest_activations(structure: Structure) -> Any:
    return _activations(fullest_share(structure))


@remembered
def _activations_of_stage(structure: Structure) -> Any:
    return _stage_activations(stage_share(structure))


def _state(share: DeviceShare) -> dict[str, Any]:
    """All terms but activations."""
    structure = share.structure
    found = state_terms(structure, share)
    if structure.zero == 3:
        found["workspace/gathered"] = gathered_memory(structure)
        found["workspace/gathered_ends"] = gathered_ends(structure, share)
    if structure.stored:
        found["workspace/widened"] = widened_memory(structure)
    if structure.context != "none":
        found["workspace/context"] = context_workspace(structure)
    if moves_activations(structure) or {"gradients", "weights"} & set(structure.offload):
        unit = device.largest_layer_parameters(structure.architecture)
        found["workspace/offload"] = buffers(structure, unit, _largest_layer(structure))
    return found


def _with_activations(state: dict[str, Any], activations: Any) -> dict[str, Any]:
    return {**state, "activations": activations, "workspace/framework": workspace_bytes}


# Activations ------------------------------------------------------------------------------------------------------


def stage_activations(
    share: DeviceShare,
    in_flight: Any,
    layers_of: Callable[[Any], Any] | None = None,
    of: Callable[[Structure, LayerKind], Any] = layer_activations,
) -> Any:
    """Bytes that a stage's layers keep, host or not.

    Args:
        share: what the device holds.
        in_flight: micro-batches that it holds activations of.
        layers_of: how many layers the stage has of which the model has a count; by default those of the share.
        of: what one layer of a kind keeps.
    """
    structure, layers_of = share.structure, layers_of or share.layers_of
    plain = changed(structure, recompute="none") if structure.some_layers else structure
    total = sympy.S.Zero
    for of_model, kind in counts.kinds_with_counts(structure.architecture):
        count, kept = layers_of(of_model), of(structure, kind)
        if structure.some_layers:
            again = num_recomputed_layers * _share_of_stage(structure, of_model, layers_of)
            total += saved.stage_activation_bytes(of(plain, kind), excess(count, again), 1, in_flight)
            count = again
        total += saved.stage_activation_bytes(kept, count, 1, in_flight)
    return total


def _of_stage(share: DeviceShare, in_flight: Any) -> Any:
    """The same, but for what the lowest layer of a single stage does not keep where gradients end in it."""
    structure = share.structure
    total, gradients = stage_activations(share, in_flight), gradients_of(structure)
    lowest = next((kind for kind in structure.architecture.kinds if gradients.ends_in(kind)), None)
    if lowest is None or structure.schedule == "dualpipe" or structure.some_layers:
        return total
    return total - complement(above_one(pp)) * in_flight * unneeded_below(structure, lowest)


def _on_device(share: DeviceShare, in_flight: Any, kept: Any) -> Any:
    """What stays on the device of what a stage's layers keep."""
    if not inputs_of(share.structure.offload):
        return kept_on_device(share.structure, "activations", kept)
    return kept - offloaded_activations * stage_activations(share, in_flight, of=moved_activations)


def _share_of_stage(structure: Structure, of_model: Any, layers_of: Callable[[Any], Any]) -> Any:
    """Part of a stage's layers that is of a kind of which the model has a count."""
    return layers_of(of_model) / layers_of(num_layers) if structure.told_apart else of_model / num_layers


def _largest_layer(structure: Structure) -> Any:
    return Max(*(moved_activations(structure, kind) for _, kind in counts.kinds_with_counts(structure.architecture)))


def recomputed_bytes(structure: Structure) -> Any:
    """Bytes that one layer's recomputed activations take while its backward pass runs, beside what is kept of it."""
    if structure.recompute == "none" or (structure.modules == ("core_attn",) and structure.attention == "flash"):
        return sympy.S.Zero
    plain = changed(structure, recompute="none", modules=())
    kinds = [kind for _, kind in counts.kinds_with_counts(structure.architecture)]
    found = [layer_activations(plain, kind) for kind in kinds]
    if "op" not in structure.modules:
        found = [form - layer_activations(structure, kind) for form, kind in zip(found, kinds, strict=True)]
    if structure.modules != ("core_attn",):
        found = [sympy.expand(form) for form in found]
    if structure.recompute == "full" and structure.architecture.multi_token_head and recomputes(structure):
        found.append(ANY * (module_activations(plain) - module_activations(structure)))
    return Max(*found)


def _ends(structure: Structure) -> tuple[Any, Any]:
    """Bytes that the ends keep: the first of one micro-batch, the last of all whose logits it holds.

    The last has its modules for multi-token prediction. It holds the logits of all micro-batches under GPipe, else of
    one.
    """
    first, last = end_activations(structure)
    modules = modules_on_fullest(structure)
    if modules:
        last += modules * (module_logits(structure) if apart(structure) else module_activations(structure))
    return first, last * (_micro_batches() if structure.schedule == "gpipe" else sympy.S.One)


def stage_logits(structure: Structure) -> Any:
    """Bytes of logits on the device of stage i, among its activations: those kept, and what the loss needs."""
    rows, columns = logits_shape(structure)
    if not rows:
        return sympy.S.Zero
    held = _micro_batches() if structure.schedule == "gpipe" else sympy.S.One
    if structure.architecture.head == "labels":
        kept = held * saved.logits_kept_bytes(rows, columns)
    else:
        kept = logits_kept(structure, Shapes.of(structure, structure.architecture.kinds[-1]))
        if structure.architecture.multi_token_head:
            modules = logits_kept(structure, Shapes.of(structure, structure.architecture.module_kind))
            kept += modules_on_fullest(structure) * modules
        kept *= held
    ends = each.is_last_stage(stage_number, pp)
    ends += each.is_first_stage(stage_number) if structure.schedule == "dualpipe" else 0
    if structure.loss != "unfused":
        return ends * kept
    return ends * (kept + beside.loss_working_memory(rows, columns, loss_working_bytes))


def _passing(structure: Structure, loss: Any = sympy.S.One) -> Any:
    """Bytes of the larger of what comes and goes: a loss, on the part of devices that has one, or a layer's again."""
    rows, columns = logits_shape(structure)
    again = recomputed_bytes(structure)
    if not rows or structure.loss != "unfused":
        return again
    working = loss * beside.loss_working_memory(rows, columns, loss_working_bytes)
    return Max(again, working) if again else working


def _none(*_: Any) -> Any:
    """No bytes that come and go."""
    return sympy.S.Zero


def _micro_batches() -> Any:
    return pipe.micro_batch_count(batch, micro_batch, dp)


def _activations(share: DeviceShare, *, passing: bool = True) -> Any:
    """Bytes of activations on the fullest stage, with what comes and goes or without."""
    structure, held = share.structure, share.in_flight
    went = _passing if passing else _none
    layer_bytes = _on_device(share, held, _of_stage(share, held))
    first, last = _ends(structure)
    if structure.schedule == "dualpipe":
        return layer_bytes + held / 2 * first + last + went(structure)
    newest = layer_bytes
    if structure.schedule not in (*ZERO_BUBBLE, "gpipe"):
        newest = _on_device(share, 1, stage_activations(share, 1))
    single = complement(above_one(pp))
    first_stage = layer_bytes + held * first + single * last + went(structure, single)
    return Max(first_stage, above_one(pp) * (newest + last + went(structure)))


def _stage_activations(share: DeviceShare, *, passing: bool = True) -> Any:
    """Bytes of activations on the device of stage i, with what comes and goes or without."""
    structure, held = share.structure, share.in_flight
    went = _passing if passing else _none
    layer_bytes = _on_device(share, held, _of_stage(share, held))
    first, last = _ends(structure)
    is_first, is_last = each.is_first_stage(stage_number), each.is_last_stage(stage_number, pp)
    if structure.schedule == "dualpipe":
        ends = is_first + is_last
        return layer_bytes + ends * (held / 2 * first + last) + went(structure, ends)
    if apart(structure):
        body = module_activations(structure) - module_logits(structure)
        layer_bytes += modules_on_stage(structure) * last_chunk_in_flight(structure) * body
    return layer_bytes + is_first * held * first + is_last * last + went(structure, is_last)
