"""Symbols of what software and chance add to a training step."""

from __future__ import annotations

from ..dimension import ONE, SECOND
from .entry import FRACTION, ZERO_UP, add

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
    r"N_{cast}",
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
