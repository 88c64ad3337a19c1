"""Passes of a stage taken apart: gradients of weights, transfers between devices, and pairs that overlap."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...formulas.language.symbols import exchange_overlap, overlap_ep
from ...operations.schedule import Overlap, part
from ...operations.schedule import sequence as in_sequence

if TYPE_CHECKING:
    from ...operations.schedule import Node, Op


def of_weights(op: Op) -> bool:
    """Whether an operation of a backward pass belongs to the gradients of weights, which no other stage waits for."""
    return op.path.endswith(("backward_weight", "backward_bias"))


def between_devices(op: Op) -> bool:
    """Whether DualPipe runs an operation beside the other direction's pass: transfers of experts and of stages."""
    return of_exchange(op) or op.path.startswith("pipeline/send")


def of_exchange(op: Op) -> bool:
    """Whether an operation sends tokens to their experts, or results back."""
    return "/experts/dispatch/" in op.path or "/experts/combine/" in op.path


def of_logits(op: Op) -> bool:
    """Whether an operation of a module for multi-token prediction belongs to its logits and its loss."""
    return op.path.startswith(
        ("multi_token/head/logits", "multi_token/head/gather", "multi_token/head/loss", "multi_token/head/reduce")
    )


def pair_passes(forward: Node, backward: Node) -> Node:
    """A forward and a backward pass beside each other: transfers run beside the work of the other direction."""
    both = in_sequence(forward, backward)
    return Overlap(part(both, lambda op: not between_devices(op)), part(both, between_devices), overlap_ep)


def beside_other_pass(node: Node) -> Node:
    """A whole pass, of whose transfers of experts a part runs beside the opposite pass of another micro-batch.

    That pass has about as much work. The first and the last micro-batch, which have none beside them, are told alike.
    """
    return Overlap(part(node, lambda op: not of_exchange(op)), part(node, of_exchange), exchange_overlap)
