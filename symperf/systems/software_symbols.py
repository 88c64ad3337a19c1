"""Symbols of a training step that are of the software and its host, not of the device, and their values' limits."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from .system_symbols import Limits
from .units import BYTES, COUNT, FRACTION, TIME

if TYPE_CHECKING:
    from collections.abc import Mapping

OPERATIONS: Final = replace(FRACTION, name="number of operations", example="12.5")
SOFTWARE: Final[Mapping[str, Limits]] = {
    "host_latency": Limits(TIME, 1e-9, 1e-2, zero=True),
    "host_collective_latency": Limits(TIME, 1e-9, 1e-1, zero=True),
    "host_wait": Limits(FRACTION, 1e-6, 1.0, zero=True),
    "routing_operations": Limits(OPERATIONS, 1e-3, 1e4, zero=True),
    "expert_operations": Limits(OPERATIONS, 1e-3, 1e3, zero=True),
    "expert_cast_operations": Limits(OPERATIONS, 1e-3, 1e3, zero=True),
    "exchange_overlap": Limits(FRACTION, 1e-9, 1.0, zero=True),
    "scatter_latency": Limits(TIME, 1e-15, 1e-6, zero=True),
    "separate_expert_kernels": Limits(FRACTION, 1e-9, 1.0, zero=True),
    "gated_passes": Limits(FRACTION, 0.1, 100.0),
    "gated_backward_passes": Limits(FRACTION, 0.1, 100.0),
    "gradient_sum_bytes": Limits(BYTES, 1 / 16, 1000, zero=True),
    "loss_metric_bytes": Limits(BYTES, 1 / 16, 1000, zero=True),
    "broadcast_piece_bytes": Limits(BYTES, 1, 1e10),
    "owned_tensors": Limits(COUNT, 1, 1e4, zero=True),
    "gathered_tensors": Limits(COUNT, 1, 1e4, zero=True),
    "sharded_operations": Limits(OPERATIONS, 1e-3, 1e4, zero=True),
    "piece_operations": Limits(OPERATIONS, 1e-3, 1e3, zero=True),
    "overhead_latency": Limits(TIME, 1e-9, 1e4, zero=True),
    "jitter": Limits(FRACTION, 1e-9, 1.0, zero=True),
}
