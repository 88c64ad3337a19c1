"""Parameters, products and caches of what sparse and compressed attention have beside their attention, by layer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sympy

from ..formulas.kernels import compressed_attention as comp
from ..formulas.kernels import hyper_connections as hyper
from ..formulas.kernels import matmul, windows
from ..formulas.kernels import sparse_selection as sparse
from ..formulas.language import symbols as sym
from ..formulas.language.atoms import Max, Min
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
        gate = par.linear_parameters(h, width) if "pooled_index" in kind.traits else ZERO
        return sparse.indexer_parameters(h, sym.q_lora_rank, heads, width) + gate
    if "selected_entries" in kind.traits:
        # It has no key: the scores are with entries of its own compressor, which has overlap.
        own = sparse.indexer_parameters(h, sym.q_lora_rank, heads, width) - h * width
        return own + 2 * comp.compressor_parameters(h, width)
    return ZERO


def compressor_series(kind: LayerKind) -> int:
    """Series of values and gates of a layer's compressor; one with overlap has two."""
    return next((n for trait, n in (("selected_entries", 2), ("all_entries", 1)) if trait in kind.traits), 0)


def compressor_weights(kind: LayerKind) -> Any:
    """Weights of a layer's compressor."""
    return compressor_series(kind) * comp.compressor_parameters(h, sym.head_dim)


def vectors(kind: LayerKind) -> Any:
    """Norms, biases of positions and sinks of a layer."""
    if "indexer" in kind.traits:
        positions = sym.index_pool_size * width if "pooled_index" in kind.traits else ZERO
        return 2 * par.norm_parameters(width) + positions  # the key's norm has a bias
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
        entries = comp.compressed_entries(keys, sym.index_pool_size) if "pooled_index" in kind.traits else entries
        found["indexer_scores"] = sparse.index_score_flops(sym.batch, queries, entries, heads, width)
        if "indexer" in kind.traits:
            found["indexer_scores"] += sparse.index_sum_flops(sym.batch, queries, entries, heads)
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
    if "pooled_index" in kind.traits:
        # Selected pools and the keys behind the last whole one: as blocks with the own one, which is never whole.
        size, selected = sym.index_pool_size, sym.index_top_keys / sym.index_pool_size
        whole = Max(0, comp.compressed_entries(sequence, size) - selected)
        return sparse.block_pairs(sequence, selected + 1, size) - size * whole
    if {"indexer", "reused_index"} & set(kind.traits):
        return windows.window_pairs(sequence, sym.index_top_keys)
    if kind.mixer != "compressed_attention":
        return None
    window = windows.window_pairs(sequence, sym.sliding_window)
    if "selected_entries" in kind.traits:
        return window + comp.selected_entry_pairs(sequence, sym.compress_ratio, sym.index_top_keys)
    return window + (comp.entry_pairs(sequence, sym.compress_ratio) if "all_entries" in kind.traits else 0)


def visible_keys(kind: LayerKind, context: Any) -> Any:
    """Keys and entries that one query of compressed attention at the end of a context sees."""
    window = Min(context, sym.sliding_window)
    if "selected_entries" in kind.traits:
        return window + comp.selected_entries(context, sym.compress_ratio, sym.index_top_keys)
    return window + (comp.compressed_entries(context, sym.compress_ratio) if "all_entries" in kind.traits else 0)


def selected_keys(kind: LayerKind, context: Any) -> Any:
    """Keys that one query of latent attention at the end of a context sees."""
    return Min(context, sym.index_top_keys) if {"indexer", "reused_index"} & set(kind.traits) else context


def entry_elements(kind: LayerKind) -> Any:
    """Elements of a compressed entry of a layer, with that of its indexer."""
    if "selected_entries" in kind.traits:
        return sym.head_dim + width
    return sym.head_dim if "all_entries" in kind.traits else ZERO


def handed_selection(architecture: Architecture) -> Any:
    """Selected keys of a token that one stage of a pipeline hands to the next, as an upper bound.

    A stage that starts with layers which reuse a selection has none of its own; one that starts with an indexer needs
    none. They are counted at every boundary of a model that has such layers.
    """
    reused = any("reused_index" in kind.traits for kind in architecture.kinds)
    return sym.index_top_keys if reused else ZERO


def index_elements(kind: LayerKind) -> Any:
    """Elements of the indexer's key that a layer caches of every token; where pooled, its gate and a mark too."""
    if "pooled_index" in kind.traits:
        return 2 * width + 1
    return width if {"indexer", "block_index"} & set(kind.traits) else ZERO


def state_bytes(kind: LayerKind) -> Any:
    """Bytes that compressors with overlap keep of a sequence."""
    if "selected_entries" not in kind.traits:
        return ZERO
    formats = sym.element_bytes, sym.state_bytes
    return comp.overlap_state_bytes(1, sym.compress_ratio, entry_elements(kind), *formats)
