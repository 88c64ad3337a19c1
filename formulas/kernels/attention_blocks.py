"""Attention of new tokens in blocks of queries, with what surrounds it: starts, exponentials, and the cache's write.

Shapes: b sequences of n_q new tokens, a' query heads and a'_kv key-value heads of width d_h on one device of u units.
A unit takes a block of rows of queries of one head at a time and all keys that they see. A pair of a query and a key
costs its products at the matrix rate and one exponential at the rate of the special-function units, which did not grow
with it.
"""

from __future__ import annotations

from typing import Any, Final

import sympy

from ..language.atoms import ceil_div
from ..language.dimension import BYTE, ONE, SECOND
from ..language.formula import formula
from ..language.symbols import (
    block_latency,
    cache_cast_latency,
    cache_casts,
    compute_units,
    exponent_rate,
    flop,
    memory_bandwidth,
    memory_efficiency,
    prompt_efficiency,
    prompt_latency,
    score_rate,
)
from ..sources import DAO2, KWON
from ..sources.serving import SHAH
from .thin_matmul import gap_time

BLOCK: Final = 64
"""Heads of a token that a unit takes at a time in absorbed latent attention."""


@formula(
    glyph="N_{blk}",
    dimension=ONE,
    source=DAO2,
    increasing="groups new_tokens",
    decreasing="block_rows",
)
def query_blocks(groups: Any, new_tokens: Any, block_rows: Any) -> Any:
    """Blocks of B rows of queries: g ceil(n_q / B), with g sequences times heads.

    Assumes: rows of a block are of one sequence and head; the last block of each may be partly empty.

    Source: Dao 2023 section 3.2: blocks of rows of the attention matrix are dealt to units.

    >>> query_blocks(16, 100, 64)
    32
    """
    return groups * ceil_div(new_tokens, block_rows)


@formula(
    glyph=r"\tau_{qk}",
    dimension=SECOND,
    source=SHAH,
    increasing="flop pair_flops",
    decreasing="exponent_rate prompt_efficiency score_rate",
    curvature="convex",
)
def pair_time(pair_flops: Any) -> Any:
    """Time that the whole device takes for a pair of a query and a key: W / (F_qk eta) + 1 / F_e.

    Assumes: a block's products and its exponentials do not hide each other.

    Source: Shah et al. 2024 section 3.1: an H100 has 989 TFLOP/s of products and 3.9 of exponentials, so that with
    heads of 128 elements the exponentials of 512 FLOPs of products take half as long as these.

    >>> from sympy import symbols
    >>> pair_time(symbols("W"))
    W/(prompt_efficiency*score_rate) + flop/exponent_rate
    """
    return pair_flops / (score_rate * prompt_efficiency) + flop / exponent_rate


@formula(
    glyph="T_{blk}",
    dimension=SECOND,
    source=DAO2,
    increasing="block_latency flop gap_latency groups longest_keys mean_keys new_tokens pair_flops prompt_latency "
    "traffic_bytes",
    decreasing="exponent_rate graph_removal memory_bandwidth memory_efficiency prompt_efficiency score_rate",
)
def blocked_attention_time(
    groups: Any,
    new_tokens: Any,
    block_rows: Any,
    mean_keys: Any,
    longest_keys: Any,
    pair_flops: Any,
    traffic_bytes: Any,
) -> Any:
    """Time of attention of new tokens in blocks: its start, its blocks on the units, and its bytes.

    The equation: lambda_pre + B (N_blk (l_m + B / 2) + u (l_x + B)) tau_qk + (N_blk / u + 1) lambda_blk + Q / beta'.

    The blocks are dealt to units as these become free, so that the last ends at most one block, the longest, after the
    mean of all units. The edge of the mask crosses a block: its rows get B / 2 keys on average that they do not need.

    Assumes: traffic is not hidden, since the kernel that writes keys and values into the cache runs first; groups are
    sequences times heads; blocks are whole, since an incomplete last one is charged the mean of all.

    Source: derivation, as Graham's bound of list scheduling; blocks of Dao 2023 section 3.2.

    >>> from sympy import symbols
    >>> blocked_attention_time(*symbols("g n B l_m l_x W Q"))  # doctest: +NORMALIZE_WHITESPACE
    B*(compute_units*(B + l_x) + g*(B/2 + l_m)*ceil_div(n, B))*(W/(prompt_efficiency*score_rate) + flop/exponent_rate)
    + Q/(memory_bandwidth*memory_efficiency) + block_latency*(1 + g*ceil_div(n, B)/compute_units) +
    gap_latency*complement(graph_removal) + prompt_latency
    """
    blocks = query_blocks(groups, new_tokens, block_rows)
    pairs = block_rows * (
        blocks * (mean_keys + sympy.Rational(1, 2) * block_rows) + compute_units * (longest_keys + block_rows)
    )
    starts = gap_time() + prompt_latency + (blocks / compute_units + 1) * block_latency
    return starts + pairs * pair_time(pair_flops) + traffic_bytes / (memory_bandwidth * memory_efficiency)


@formula(
    glyph="Q_{app}",
    dimension=BYTE,
    source=KWON,
    increasing="activation_bytes elements kv_bytes",
    curvature="convex",
)
def cache_write_bytes(elements: Any, activation_bytes: Any, kv_bytes: Any) -> Any:
    """Bytes of a kernel that writes elements in the format of the cache: n (w + w_kv).

    Assumes: each is read once at the width of activations and written once.

    Source: Kwon et al. 2023 section 5.1: a fused kernel reshapes new keys and values and saves them in blocks.

    >>> from sympy import symbols
    >>> cache_write_bytes(*symbols("n w v"))
    n*(v + w)
    """
    return elements * (activation_bytes + kv_bytes)


@formula(
    glyph="T_{q8}",
    dimension=SECOND,
    source=SHAH,
    increasing="cache_cast_latency cache_casts",
    curvature="affine",
)
def cache_cast_time() -> Any:
    """Time that kernels take to start that cast queries to the format of the cache: n_kv lambda_q8.

    Assumes: their bytes are counted with those of the kernel that writes the cache.

    Source: Shah et al. 2024 section 3.3: products over 8-bit keys need queries in 8 bits.

    >>> cache_cast_time()
    cache_cast_latency*cache_casts
    """
    return cache_casts * cache_cast_latency
