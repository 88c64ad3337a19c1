"""What passes between a device and its host beside the passes of a stage, and what each of them holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...formulas.language.symbols import (
    gradient_bytes,
    offloaded_activations,
    offloaded_optimizer,
    offloaded_weights,
    overlap_offload,
    weight_bytes,
)
from ...formulas.memory import offload as host
from ...operations.schedule import Demand, Op, Overlap
from ..memory.host_memory import SHARDED_GRADIENTS, moves_activations

if TYPE_CHECKING:
    from ...operations.schedule import Node
    from ...plans.structure import Structure


def host_transfer(path: str, message: Any) -> Op:
    """A transfer between a device and its host."""
    return Op(path, host.host_transfer_time(message), Demand(message_bytes=message))


def drive_transfer(path: str, message: Any) -> Op:
    """A transfer between a device and the drives of its host."""
    return Op(path, host.drive_transfer_time(message), Demand(message_bytes=message))


def beside_pass(structure: Structure, phase: str, weights: Any, activations: Any, updated: Any) -> list[Op]:
    """The transfers of one pass of one micro-batch through a stage: activations out or back, weights in, gradients out.

    Args:
        structure: says what the host keeps.
        phase: "forward" or "backward".
        weights: parameters of the stage's layers that this device fetches.
        activations: bytes that the stage's layers keep of one micro-batch and that the host may hold.
        updated: parameters whose gradients the host keeps, which go there with every backward pass if they are sharded.
    """
    found = []
    if moves_activations(structure):
        found.append(host_transfer(f"offload/activations/{phase}", offloaded_activations * activations))
    if "weights" in structure.offload:
        move = drive_transfer if "weights" in structure.nvme else host_transfer
        found.append(move(f"offload/weights/{phase}", offloaded_weights * weights * weight_bytes))
    if phase == "backward" and gradients_leave_at_once(structure):
        found.append(host_transfer("offload/gradients", offloaded_optimizer * updated * gradient_bytes))
    return found


def with_gradients(structure: Structure, passes: Node, updated: Any) -> Node:
    """The last passes with the gradients that the host updates with, on their way there."""
    if "optimizer" not in structure.offload or gradients_leave_at_once(structure):
        return passes
    message = offloaded_optimizer * updated * gradient_bytes
    return Overlap(passes, host_transfer("offload/gradients", message), overlap_offload)


def gradients_leave_at_once(structure: Structure) -> bool:
    """Whether every backward pass sends its gradients to the host; else the last sends their sums."""
    return "gradients" in structure.offload and structure.zero >= SHARDED_GRADIENTS
