"""Blocks whose weights several layers share, with what each use has for itself (Zamba2): counts, nothing sharded.

A use reads the stream beside the embedding of its tokens: its first norm and its queries, keys and values are twice as
wide. Its MLP (and its attention, where the model has that) has an adapter of low rank of its own, and so has its result
a projection, which is added to what the next layer reads, not to the stream. N_B blocks take turns.

Source: Glorioso et al. 2024, "The Zamba2 Suite" (arXiv 2411.15242) section 2 and figure 2; transformers,
Zamba2HybridLayer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sympy

from ..formulas.kernels import attention as att
from ..formulas.language import symbols as sym
from ..formulas.memory import parameters as par

if TYPE_CHECKING:
    from .architecture import Architecture, LayerKind

ZERO = sympy.S.Zero
h, rank = sym.hidden_size, sym.adapter_rank


def read_width(kind: LayerKind) -> Any:
    """Features of a token that the projections of queries, keys and values read."""
    return 2 * h if kind.reads_embedding else h


def wider_weights(kind: LayerKind) -> Any:
    """Weights of queries, keys and values that read the embedding beside the stream, and their norm's."""
    if not kind.reads_embedding:
        return ZERO
    return h * att.query_key_value_width(sym.num_attention_heads, sym.num_key_value_heads, sym.head_dim)


def attention_adapter_weights(kind: LayerKind) -> Any:
    """Weights of the adapters of queries, keys and values, three pairs of matrices."""
    if "adapted_attention" not in kind.traits:
        return ZERO
    widths = att.query_key_value_width(sym.num_attention_heads, sym.num_key_value_heads, sym.head_dim)
    return 3 * par.linear_parameters(2 * h, rank) + par.linear_parameters(rank, widths)


def joining_weights(kind: LayerKind) -> Any:
    """Weights of the projection of a use's result."""
    return par.linear_parameters(h, h) if kind.shared else ZERO


def adapter_weights(architecture: Architecture, kind: LayerKind) -> Any:
    """Weights of the MLP's adapter."""
    if not kind.shared:
        return ZERO
    ups = 2 if architecture.gated_mlp else 1
    return par.linear_parameters(h, rank) + par.linear_parameters(rank, ups * sym.intermediate_size)


def own_weights(architecture: Architecture, kind: LayerKind) -> Any:
    """Weights that every use has for itself."""
    adapters = attention_adapter_weights(kind) + adapter_weights(architecture, kind)
    return adapters + joining_weights(kind)


def of_all_layers(count: Any, each: Any, own: Any, kind: LayerKind) -> Any:
    """What `count` layers of a kind have together, of which each has `each`, and `own` of it for itself."""
    return sym.num_shared_blocks * (each - own) + count * own if kind.shared else count * each
