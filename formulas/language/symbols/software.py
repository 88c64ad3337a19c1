"""Symbols of what software and chance add to a training step."""

from __future__ import annotations

from ..dimension import BYTE, ONE, SECOND
from .entry import FRACTION, POSITIVE, ZERO_UP, add

host_latency = add(
    "efficiency",
    "host_latency",
    r"\lambda_h",
    "Time that the host needs for one operation of a training step: its code, its dispatch, and its launches.",
    SECOND,
    ZERO_UP,
    "host",
)
host_collective_latency = add(
    "efficiency",
    "host_collective_latency",
    r"\lambda_{hc}",
    "Time that the host needs to call one collective or transfer of a training step.",
    SECOND,
    ZERO_UP,
    "host",
)
host_wait = add(
    "efficiency",
    "host_wait",
    r"\psi_h",
    "Part of the host's work that does not run ahead of the device; 1 where every launch waits for its kernel.",
    ONE,
    FRACTION,
)
routing_operations = add(
    "efficiency",
    "routing_operations",
    r"N_{route}",
    "Operations of the host that routing, sorting and sending tokens to experts take beside those of the breakdown, in "
    "each pass through a layer.",
    ONE,
    ZERO_UP,
)
expert_operations = add(
    "efficiency",
    "expert_operations",
    r"N_{each}",
    "Operations of the host for one product of one expert, where the software launches experts one by one.",
    ONE,
    ZERO_UP,
)
expert_cast_operations = add(
    "efficiency",
    "expert_cast_operations",
    r"N_{xcast}",
    "Operations of the host for the cast of one expert's rows before a product in a low precision.",
    ONE,
    ZERO_UP,
)
exchange_overlap = add(
    "efficiency",
    "exchange_overlap",
    r"\phi_x",
    "Part of the transfers of experts that runs beside the pass of another micro-batch, where passes are whole.",
    domain=FRACTION,
)
scatter_latency = add(
    "efficiency",
    "scatter_latency",
    r"\lambda_{add}",
    "Time that one element takes which is added atomically to its place, where tokens are sorted and summed by kernels "
    "that are not fused.",
    SECOND,
    ZERO_UP,
    "l2",
)
separate_expert_kernels = add(
    "efficiency",
    "separate_expert_kernels",
    r"\sigma_{xk}",
    "1 where biases of experts, and limits of the halves of their activation, are kernels of their own; 0 where the "
    "products and the activation take them along.",
    domain=FRACTION,
)
gated_passes = add(
    "efficiency",
    "gated_passes",
    r"\rho_{glu}",
    "Bytes that a software's kernels of a gated activation take the time of, over those that one kernel moves.",
    domain=POSITIVE,
)
gated_backward_passes = add(
    "efficiency",
    "gated_backward_passes",
    r"\rho_{dglu}",
    "Bytes that a software's kernels of a gated activation's gradients take the time of, over those of one kernel.",
    domain=POSITIVE,
)
gradient_sum_bytes = add(
    "format",
    "gradient_sum_bytes",
    "w_{+}",
    "Bytes that kernels of their own move for a weight whose gradient they add to the accumulated one; 0 where the "
    "product adds it.",
    BYTE,
    ZERO_UP,
)
loss_metric_bytes = add(
    "format",
    "loss_metric_bytes",
    "w_{met}",
    "Bytes that metrics over the logits move for each of them, beside the loss.",
    BYTE,
    ZERO_UP,
)
owned_tensors = add(
    "efficiency",
    "owned_tensors",
    r"N_{bcast}",
    "Tensors of a layer that have one owner each among the replicas, who updates them and broadcasts them.",
    ONE,
    ZERO_UP,
)
broadcast_piece_bytes = add(
    "format",
    "broadcast_piece_bytes",
    "p_{bc}",
    "Bytes that a rank of a broadcast's chain takes in, on all channels together, before it passes them on.",
    BYTE,
    POSITIVE,
)
gathered_tensors = add(
    "efficiency",
    "gathered_tensors",
    r"N_{gat}",
    "Tensors of a layer that ZeRO-3 gathers and reduces one by one, copying the piece of each rank by itself.",
    ONE,
    ZERO_UP,
)
sharded_operations = add(
    "efficiency",
    "sharded_operations",
    r"N_{shard}",
    "Operations of the host for one tensor of an expert that ZeRO-3 gathers module by module, or whose gradient it "
    "reduces, without those of the pieces.",
    ONE,
    ZERO_UP,
)
piece_operations = add(
    "efficiency",
    "piece_operations",
    r"N_{piece}",
    "Operations of the host for the piece that one rank holds of a tensor which ZeRO-3 gathers module by module.",
    ONE,
    ZERO_UP,
)
overhead_latency = add(
    "efficiency",
    "overhead_latency",
    r"\lambda_o",
    "Time of a training step that no kernel explains: input of data, logging, synchronisation of the host.",
    SECOND,
    ZERO_UP,
    "host",
)
jitter = add(
    "efficiency",
    "jitter",
    r"\sigma_j",
    "Standard deviation of the time that devices need for the same work, as a part of it.",
    domain=ZERO_UP,
)
