"""What the matrix units execute, counted from the operations of a schedule tree and not by a convention."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import sympy

from ..formulas.language.symbols import attention_rate, index_rate, matrix_rate, score_rate, vector_rate
from ..formulas.memory.parameters import flops_utilization

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .schedule import Op

PEAKS = (matrix_rate, attention_rate, score_rate, index_rate)
"""Of the matrix units: in the format of linear layers, in 16 bits, in that of attention and of indexers whose kernels
are known."""


def rate_of(op: Op) -> Any:
    """The rate at which an operation computes, or nothing for one that only moves bytes."""
    return _rate_in(op.time)


@lru_cache(maxsize=4096)  # operations of layers, passes and structures have the same time
def _rate_in(time: Any) -> Any:
    symbols = time.free_symbols
    return next((rate for rate in (*PEAKS, vector_rate) if rate in symbols), None)


def executed_utilization(counts: Mapping[Op, Any], time: Any, devices: Any) -> Any:
    """Part of the peak of all devices that the executed products make up: each at the peak of its own format.

    It is at most 1, since no operation computes faster than its peak. Element-wise work is not counted.

    Args:
        counts: executions of every operation, on all devices together.
        time: in which they run.
        devices: how many there are.
    """
    flops = dict.fromkeys(PEAKS, sympy.S.Zero)
    for op, times in counts.items():
        rate = rate_of(op)
        if rate in flops:
            flops[rate] += times * op.demand.flops
    return sympy.Add(*(flops_utilization(work, time, devices, rate) for rate, work in flops.items()))
