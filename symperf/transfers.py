"""What passes between a device and its host beside the passes of a stage, and what each of them holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sympy

from .formulas import memory as mem
from .formulas import offload as host
from .formulas.offload import remaining
from .formulas.symbols import (
    gradient_bytes,
    offloaded_activations,
    offloaded_optimizer,
    offloaded_weights,
    optimizer_bytes,
    overlap_offload,
    weight_bytes,
)
from .schedule import Demand, Op, Overlap

if TYPE_CHECKING:
    from .schedule import Node
    from .structure import Structure

PARTS = {
    "activations": offloaded_activations,
    "optimizer": offloaded_optimizer,
    "weights": offloaded_weights,
}
"""The part of each that the host keeps."""


def host_transfer(path: str, message: Any) -> Op:
    """A transfer between a device and its host."""
    return Op(path, host.host_transfer_time(message), Demand(message_bytes=message))


def beside_pass(structure: Structure, phase: str, weights: Any, activations: Any) -> list[Op]:
    """The transfers of one pass of one micro-batch through a stage: activations out or back, weights in.

    Args:
        structure: says what the host keeps.
        phase: "forward" or "backward".
        weights: parameters of the stage's layers that this device fetches.
        activations: bytes that the stage's layers keep of one micro-batch.
    """
    found = []
    if "activations" in structure.offload:
        found.append(host_transfer(f"offload/activations/{phase}", offloaded_activations * activations))
    if "weights" in structure.offload:
        found.append(host_transfer(f"offload/weights/{phase}", offloaded_weights * weights * weight_bytes))
    return found


def with_gradients(structure: Structure, passes: Node, updated: Any) -> Node:
    """The last passes with the gradients that the host updates with, on their way there."""
    if "optimizer" not in structure.offload:
        return passes
    message = offloaded_optimizer * updated * gradient_bytes
    return Overlap(passes, host_transfer("offload/gradients", message), overlap_offload)


def kept(structure: Structure, what: str, size: Any) -> Any:
    """What stays on the device of a class of memory."""
    return remaining(PARTS[what]) * size if what in structure.offload else size


def buffers(structure: Structure, layer_weights: Any, layer_activations: Any) -> Any:
    """Bytes of the device for layers on their way to or from the host."""
    total = sympy.S.Zero
    if "activations" in structure.offload:
        total += host.transfer_buffer_memory(layer_activations, offloaded_activations)
    if "weights" in structure.offload:
        total += host.transfer_buffer_memory(layer_weights * weight_bytes, offloaded_weights)
    return total


def host_terms(structure: Structure, updated: Any, weights: Any, activations: Any) -> dict[str, Any]:
    """Bytes of the host for one device, by name.

    Args:
        structure: says what the host keeps.
        updated: parameters whose state the device has.
        weights: parameters of its layers, without those of other shards.
        activations: bytes that its layers keep of the micro-batches in flight.
    """
    found = {}
    if "optimizer" in structure.offload:
        found["optimizer"] = host.host_optimizer_memory(offloaded_optimizer * updated, optimizer_bytes)
    if "weights" in structure.offload:
        found["weights"] = mem.weights_memory(offloaded_weights * weights, weight_bytes)
    if "activations" in structure.offload:
        found["activations"] = offloaded_activations * activations
    return found
