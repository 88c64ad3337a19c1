"""What offloading leaves on a device, and what the host holds for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sympy

from ...formulas.language.atoms import above_one, complement
from ...formulas.language.symbols import (
    batch,
    dp,
    gradient_bytes,
    micro_batch,
    offloaded_activations,
    offloaded_optimizer,
    offloaded_weights,
    optimizer_bytes,
    weight_bytes,
)
from ...formulas.memory import model_state
from ...formulas.memory import offload as host
from ...formulas.memory.offload import remaining_share
from ...formulas.parallel.pipeline import micro_batch_count
from ...plans.offloaded_inputs import inputs_of

if TYPE_CHECKING:
    from ...plans.structure import Structure

PARTS = {
    "activations": offloaded_activations,
    "gradients": offloaded_optimizer,
    "optimizer": offloaded_optimizer,
    "weights": offloaded_weights,
}
"""The part of each that the host keeps."""
SHARDED_GRADIENTS = 2
"""The ZeRO stage from which gradients are sharded."""


def kept_on_device(structure: Structure, what: str, size: Any) -> Any:
    """What stays on the device of a class of memory."""
    return remaining_share(PARTS[what]) * size if what in structure.offload else size


def gradients_on_device(structure: Structure, size: Any) -> Any:
    """What stays on the device of gradients that the host updates with.

    Where they are not sharded, several micro-batches add them up there, and the host has the sums (DeepSpeed,
    runtime/zero/stage_1_and_2.py, `reduce_ready_partitions_and_remove_grads`; torchao's CPUOffloadOptimizer
    accumulates none elsewhere).
    """
    left = kept_on_device(structure, "gradients", size)
    if structure.zero >= SHARDED_GRADIENTS:
        return left
    several = above_one(micro_batch_count(batch, micro_batch, dp))
    return several * size + complement(several) * left


def moves_activations(structure: Structure) -> bool:
    """Whether the host keeps activations: all of a layer, or the inputs of parts of it."""
    return "activations" in structure.offload or bool(inputs_of(structure.offload))


def buffers(structure: Structure, layer_weights: Any, layer_activations: Any) -> Any:
    """Bytes of the device for layers on their way to or from the host."""
    total = sympy.S.Zero
    if moves_activations(structure):
        total += host.transfer_buffer_memory(layer_activations, offloaded_activations)
    if "weights" in structure.offload:
        total += host.transfer_buffer_memory(layer_weights * weight_bytes, offloaded_weights)
    if "gradients" in structure.offload:
        total += host.transfer_buffer_memory(layer_weights * gradient_bytes, offloaded_optimizer)
    return total


def drive_terms(structure: Structure, updated: Any, weights: Any) -> dict[str, Any]:
    """Bytes of the host's drives for one device, by name; arguments as of `host_terms`."""
    found = {}
    if "optimizer" in structure.nvme:
        found["optimizer"] = model_state.optimizer_memory(offloaded_optimizer * updated, optimizer_bytes)
    if "weights" in structure.nvme:
        found["weights"] = model_state.weights_memory(offloaded_weights * weights, weight_bytes)
    return found


def host_terms(structure: Structure, updated: Any, weights: Any, activations: Any) -> dict[str, Any]:
    """Bytes of the host for one device, by name.

    Args:
        structure: says what the host keeps.
        updated: parameters whose state the device has.
        weights: parameters of its layers, without those of other shards.
        activations: bytes that its layers keep of the micro-batches in flight and may be moved.
    """
    found = {}
    if "optimizer" in structure.offload:
        element = 0 if "optimizer" in structure.nvme else optimizer_bytes
        found["optimizer"] = host.host_optimizer_memory(offloaded_optimizer * updated, element)
    if "weights" in structure.offload and "weights" not in structure.nvme:
        found["weights"] = model_state.weights_memory(offloaded_weights * weights, weight_bytes)
    if moves_activations(structure):
        found["activations"] = offloaded_activations * activations
    return found
