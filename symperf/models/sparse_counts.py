"""Parameters, products and caches of what sparse and compressed attention have beside their attention, by layer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sympy

from ..formulas.kernels import compressed_attention as comp
from ..formulas.kernels import hyper_connections as hyper
from ..formulas.kernels import matmul, windows
from ..formulas.kernels import sparse_selection as sparse
from ..formulas.language import symbols as sym
from ..formulas.language.atoms import Min
from ..formulas.memory import parameters as par

if TYPE_CHECKING:
    from .architecture import Architecture, LayerKind

ZERO = sympy.S.Zero
h, heads, width = sym.hidden_size, sym.index_num_heads, sym.index_head_dim


def indexer_weights(kind: LayerKind) -> Any:
    """Weights of a layer's indexer, with the compressor of its own entries if it has one."""
    if "block_index" in kind.traits:
        return sparse.block_indexer_parameters(h, heads, width)
    if "indexer" in kind.traits:
        return sparse.indexer_parameters(h, sym.q_lora_rank, heads, width)
    if "selected_entries" in kind.traits:
        # It has no key: the scores are with entries of its own compressor, which has overlap.
        own = sparse.indexer_parameters(h, sym.q_lora_rank, heads, width) - h * width
        return own + 2 * comp.compressor_parameters(h, width)
    return ZERO


def compressor_weights(kind: LayerKind) -> Any:
    """Weights of a layer's compressor; one with overlap has two series."""
    if "selected_entries" in kind.traits:
        return 2 * comp.compressor_parameters(h, sym.head_dim)
    return comp.compressor_parameters(h, sym.head_dim) if "all_entries" in kind.traits else ZERO


def vectors(kind: LayerKind) -> Any:
    """Norms, biases of positions and sinks of a layer."""
    if "indexer" in kind.traits:
        return 2 * par.norm_parameters(width)  # the key's, with a bias
    if "block_index" in kind.traits:
        return 2 * par.norm_parameters(width)  # of queries and of the key
    if kind.mixer != "compressed_attention":
        return ZERO
    total = par.norm_parameters(sym.q_lora_rank) + par.norm_parameters(sym.head_dim) + sym.num_attention_heads
    if "all_entries" in kind.traits:
        total += (sym.compress_ratio + 1) * sym.head_dim
    if "selected_entries" in kind.traits:
        total += (2 * sym.compress_ratio + 1) * (sym.head_dim + width)
    return total


def connection_weights(architecture: Architecture, kind: LayerKind) -> Any:
    """Parameters of a layer's hyper-connections, before each of its parts."""
    return parts(kind) * hyper.hyper_connection_parameters(h, sym.num_streams) if architecture.hyper_connections else 0


def parts(kind: LayerKind) -> int:
    """Parts of a layer that add to the residual stream."""
    return (kind.mixer != "none") + (kind.ffn != "none")


def flops(architecture: Architecture, kind: LayerKind, queries: Any, keys: Any) -> dict[str, Any]:
    """FLOPs of a layer's indexer, compressor and connections, by class; every pair scored."""
    tokens = sym.batch * queries
    found = {
        "indexer_projections": matmul.matmul_flops(tokens, 1, indexer_weights(kind), 1),
        "compressor": matmul.matmul_flops(tokens, 1, compressor_weights(kind), 1),
    }
    if indexer_weights(kind) != 0:
        entries = comp.compressed_entries(keys, sym.compress_ratio) if "selected_entries" in kind.traits else keys
        found["indexer_scores"] = sparse.index_score_flops(sym.batch, queries, entries, heads, width)
        if "indexer" in kind.traits:
            found["indexer_scores"] += sparse.index_sum_flops(sym.batch, queries, keys, heads)
    if architecture.hyper_connections:
        found["hyper_connections"] = parts(kind) * hyper.hyper_connection_flops(tokens, h, sym.num_streams)
    return found


def dense_keys(kind: LayerKind, queries: Any, keys: Any, stepwise: bool) -> Any:
    """Keys and entries that a query of compressed attention scores where nothing is masked or selected."""
    window = Min(keys, sym.sliding_window) if stepwise else queries
    if "window_only" in kind.traits:
        return window
    return window + comp.compressed_entries(keys, sym.compress_ratio)


def prefill_pairs(kind: LayerKind, sequence: Any) -> Any | None:
    """Pairs that the selection of a layer leaves of s queries, or None where nothing is selected."""
    if "block_index" in kind.traits:
        return sparse.block_pairs(sequence, sym.index_top_blocks, sym.index_block_size)
    if {"indexer", "reused_index"} & set(kind.traits):
        return windows.window_pairs(sequence, sym.index_top_keys)
    if kind.mixer != "compressed_attention":
        return None
    window = windows.window_pairs(sequence, sym.sliding_window)
    if "selected_entries" in kind.traits:
        return window + comp.selected_entry_pairs(sequence, sym.compress_ratio, sym.index_top_keys)
    return window + (comp.entry_pairs(sequence, sym.compress_ratio) if "all_entries" in kind.traits else 0)


def selected_keys(kind: LayerKind, context: Any) -> Any:
    """Keys that one query of latent attention at the end of a context sees."""
    return Min(context, sym.index_top_keys) if {"indexer", "reused_index"} & set(kind.traits) else context


def entry_elements(kind: LayerKind) -> Any:
    """Elements of a compressed entry of a layer, with that of its indexer."""
    if "selected_entries" in kind.traits:
        return sym.head_dim + width
    return sym.head_dim if "all_entries" in kind.traits else ZERO


def index_elements(kind: LayerKind) -> Any:
    """Elements of the indexer's key that a layer caches of every token."""
    return width if {"indexer", "block_index"} & set(kind.traits) else ZERO


def state_bytes(kind: LayerKind) -> Any:
    """Bytes that compressors with overlap keep of a sequence."""
    if "selected_entries" not in kind.traits:
        return ZERO
    formats = sym.element_bytes, sym.state_bytes
    return comp.overlap_state_bytes(1, sym.compress_ratio, entry_elements(kind), *formats)
