"""What launching kernels adds to a pass, and what recorded graphs take off it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sympy

from ..common.symbolic import replace_symbols
from ..formulas.kernels.dependent_launch import dependent_start_time, recorded_share
from ..formulas.language.atoms import complement
from ..formulas.language.symbols import SYMBOLS, graph_removal, start_removal
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


def recorded(structure: InferenceStructure, path: str, node: Node, tokens: Any) -> Node:
    """A decode step whose kernels a recorded graph starts, each in part while the one before it runs.

    Args:
        structure: what gives it its form.
        path: of the launches of a step for which there is no graph.
        node: the step.
        tokens: new ones of the step; above those of the largest graph, the host launches the kernels.
    """
    if structure.dependent_starts:
        numbered = [f"{name}_{number}" for name in STARTS if name in BY_FORMAT for number in (2, 3)]
        known = [SYMBOLS[name].symbol for name in (*STARTS, *numbered) if name in SYMBOLS]
        node = replace_symbols(node, {symbol: dependent_start_time(symbol) for symbol in known})
    if not structure.graphs:
        return node
    share = recorded_share(tokens)
    return _launches(structure, path, _within(node, share), complement(share))


def launched(structure: InferenceStructure, path: str, node: Node, tokens: Any) -> Node:
    """A pass whose kernels the host launches one by one, which takes as long as that if it takes longer.

    Args:
        structure: what gives it its form.
        path: of the launches.
        node: the pass.
        tokens: new ones; where passes with prompts are recorded too, above those of the largest graph gaps are whole.
    """
    if structure.graphs:
        node = _within(node, recorded_share(tokens) if structure.graphs == "passes" else sympy.S.Zero)
    return _launches(structure, path, node, sympy.S.One)


def _within(node: Node, share: Any) -> Node:
    """A pass of which recorded graphs remove only a share of what they may."""
    return replace_symbols(node, {symbol: symbol * share for symbol in (graph_removal, start_removal)})


def _launches(structure: InferenceStructure, path: str, node: Node, share: Any) -> Node:
    """A pass beside the host's launches of a share of its kernels.

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
    return Overlap(node, Op(path, host_launch_time(kernels * share)), sympy.S.One)
