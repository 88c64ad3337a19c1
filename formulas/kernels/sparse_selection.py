"""Sparse attention: an indexer scores every key cheaply, and attention sees the best of them, or the best blocks.

Shapes: an indexer has a_x heads of d_x features and one key of d_x features for all of them; a query selects k_x keys,
or k_b blocks of b_x keys. T tokens, s queries over l keys.
"""

from __future__ import annotations

from typing import Any

from ..language.atoms import Min, ceil_div
from ..language.dimension import FLOP, ONE
from ..language.formula import formula
from ..language.symbols import flop
from ..mathematics.series import excess
from ..sources import DEEPSEEK32
from .windows import chunk_pairs, exceeding, place_in_chunk


@formula(
    glyph="N_{idx}",
    dimension=ONE,
    source=DEEPSEEK32,
    increasing="hidden_size index_head_dim index_num_heads q_lora_rank",
    curvature="convex",
)
def indexer_parameters(hidden_size: Any, q_lora_rank: Any, index_num_heads: Any, index_head_dim: Any) -> Any:
    """Weights of the indexer beside latent attention: queries, one key, and a weight for every head.

    The equation: r_q a_x d_x + h (d_x + a_x).

    Assumes: queries from the compressed query that attention makes as well; the key's norm is counted apart.

    Source: DeepSeek-AI 2025 (V3.2) section 2.1, equation (1), and the released code.

    >>> indexer_parameters(7168, 1536, 64, 128)
    13959168
    """
    return q_lora_rank * index_num_heads * index_head_dim + hidden_size * (index_head_dim + index_num_heads)


@formula(
    glyph="N_{bidx}",
    dimension=ONE,
    source=DEEPSEEK32,
    increasing="hidden_size index_head_dim index_num_heads",
    curvature="convex",
)
def block_indexer_parameters(hidden_size: Any, index_num_heads: Any, index_head_dim: Any) -> Any:
    """Weights of an indexer that selects blocks for each group of heads: queries and one key, h d_x (a_x + 1).

    Assumes: no weights of heads, since every head selects for its own key-value head (MiniMax-M3).

    Source: counted from the modules of MiniMax-M3 in transformers, after DeepSeek-AI 2025 (V3.2) section 2.1.

    >>> block_indexer_parameters(6144, 4, 128)
    3932160
    """
    return hidden_size * index_head_dim * (index_num_heads + 1)


@formula(
    glyph="W_{idx}",
    dimension=FLOP,
    source=DEEPSEEK32,
    increasing="context flop index_head_dim index_num_heads micro_batch sequence",
    curvature="affine",
)
def index_score_flops(micro_batch: Any, sequence: Any, context: Any, index_num_heads: Any, index_head_dim: Any) -> Any:
    """FLOPs of an indexer's scores, 2 b s l a_x d_x: every query with every key or entry.

    Assumes: every pair counted; the sum over heads is apart where it is a product (`index_sum_flops`).

    Source: DeepSeek-AI 2025 (V3.2) equation (1).

    >>> from sympy import symbols
    >>> index_score_flops(*symbols("b s l a d"))
    2*a*b*d*flop*l*s
    """
    return 2 * micro_batch * sequence * context * index_num_heads * index_head_dim * flop


@formula(
    glyph="W_{xsum}",
    dimension=FLOP,
    source=DEEPSEEK32,
    increasing="context flop index_num_heads micro_batch sequence",
    curvature="affine",
)
def index_sum_flops(micro_batch: Any, sequence: Any, context: Any, index_num_heads: Any) -> Any:
    """FLOPs of the weighted sum of an indexer's scores over its heads, 2 b s l a_x.

    Assumes: every pair counted.

    Source: DeepSeek-AI 2025 (V3.2) equation (1).

    >>> from sympy import symbols
    >>> index_sum_flops(*symbols("b s l a"))
    2*a*b*flop*l*s
    """
    return 2 * micro_batch * sequence * context * index_num_heads * flop


@formula(glyph="n_{blk}", dimension=ONE, source=DEEPSEEK32, increasing="index_top_blocks")
def block_keys(context: Any, index_top_blocks: Any, index_block_size: Any) -> Any:
    """Keys that a query at place l sees of k_b selected blocks, its own block among them.

    The equation: l where ceil(l / b_x) <= k_b, else (k_b - 1) b_x + l - b_x (ceil(l / b_x) - 1).

    Assumes: the query's own block always has a place, and holds the keys up to the query.

    Source: counted from the mask of MiniMax-M3 in transformers.

    >>> [block_keys(keys, 16, 128) for keys in (2048, 2049, 8193)]
    [2048, 1921, 1921]
    """
    # Of fewer than k_b blocks, all: then what precedes the own block is ceil(l / b_x) - 1 blocks and not k_b - 1.
    whole = Min(index_top_blocks, ceil_div(context, index_block_size))
    return exceeding(whole * index_block_size, index_block_size) + place_in_chunk(context, index_block_size)


@formula(glyph="n_{bpr}", dimension=ONE, source=DEEPSEEK32)
def block_pairs(sequence: Any, index_top_blocks: Any, index_block_size: Any) -> Any:
    """Pairs that selection of blocks leaves: `block_keys` summed over the queries 1 to s.

    The equation: a triangle of m = min(s, k_b b_x) rows, then (k_b - 1) b_x keys and the place in its block for each
    query.

    Assumes: as `block_keys`.

    Source: sum of `block_keys`.

    >>> block_pairs(2048, 16, 128) == 2048 * 2049 // 2, block_pairs(4096, 16, 128)
    (True, 6162432)
    >>> sum(block_keys(keys, 16, 128) for keys in range(1, 4097))
    6162432
    """
    first = index_top_blocks * index_block_size
    seen = Min(sequence, first)
    places = excess(chunk_pairs(sequence, index_block_size), chunk_pairs(seen, index_block_size))
    whole = exceeding(first, index_block_size)
    return seen * (seen + 1) / 2 + whole * excess(sequence, first) + places
