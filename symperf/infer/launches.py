"""What launching kernels adds to a pass, and what recorded graphs take off it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sympy

from ..common.symbolic import replace_symbols
from ..formulas.kernels.dependent_launch import dependent_start_time
from ..formulas.language.symbols import SYMBOLS
from ..formulas.parallel.overheads import host_launch_time
from ..operations.schedule import Op, Overlap, executions, terms
from ..systems.kernel_constants import BY_FORMAT

if TYPE_CHECKING:
    from ..operations.schedule import Node
    from .structure import InferenceStructure

STARTS = (
    *("launch_latency", "cast_latency", "format_latency", "decode_latency", "latent_latency", "absorb_latency"),
    *("expert_latency", "update_latency", "channel_update_latency", "window_latency", "channel_window_latency"),
)
"""Symbols that are the start of a kernel of a decode step, measured on an idle device."""
FUSED = {"routed": 5, "sampling": 4}
"""Kernels that one operation stands for, by the last part of its path."""


def recorded(structure: InferenceStructure, node: Node) -> Node:
    """A decode step whose kernels a recorded graph starts, each in part while the one before it runs."""
    if not structure.dependent_starts:
        return node
    numbered = [f"{name}_{number}" for name in STARTS if name in BY_FORMAT for number in (2, 3)]
    known = [SYMBOLS[name].symbol for name in (*STARTS, *numbered) if name in SYMBOLS]
    return replace_symbols(node, {symbol: dependent_start_time(symbol) for symbol in known})


def launched(structure: InferenceStructure, path: str, node: Node) -> Node:
    """A pass whose kernels the host launches one by one, which takes as long as that if it takes longer.

    Collectives do not count: groups of one have none, and their latencies are fitted to whole calls.
    """
    if not structure.launched_prefill:
        return node
    counts = executions(node)
    kernels: Any = sympy.Add(
        *(
            counts[name] * FUSED.get(name.rpartition("/")[2], 1)
            for name, leaf in terms(node).items()
            if isinstance(leaf, Op) and leaf.demand.message_bytes == 0
        )
    )
    return Overlap(node, Op(path, host_launch_time(kernels)), sympy.S.One)
