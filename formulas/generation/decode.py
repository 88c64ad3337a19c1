"""Attention over a key-value cache: a decode step, a whole generation, and a chunk of a prompt.

Shapes: b sequences, a' query heads and a'_kv key-value heads of width d_h on one device, n_q new tokens of each
sequence, l cached keys. How often keys and values are read for the query heads of a group is a matter of the kernel
(`cache_reads`); the context is split over units that would otherwise idle, and a second kernel adds the parts.
"""

from __future__ import annotations

from typing import Any

from ..kernels.thin_matmul import kernel_start_time
from ..kernels.windows import chunk_sums
from ..language.atoms import Max, Min, ceil_div
from ..language.dimension import BYTE, ONE, SECOND
from ..language.formula import formula
from ..language.symbols import (
    attention_efficiency,
    attention_rate,
    compute_units,
    memory_bandwidth,
    memory_efficiency,
    statistic_bytes,
)
from ..mathematics.series import excess, max_sum
from ..sources import AINSLIE, BELTAGY, DAO2, FLASH_DECODING, KWON


@formula(
    glyph="Q_{read}",
    dimension=BYTE,
    source=AINSLIE,
    increasing="context head_dim key_value_heads kv_bytes micro_batch",
    curvature="affine",
)
def cache_read_bytes(micro_batch: Any, context: Any, key_value_heads: Any, head_dim: Any, kv_bytes: Any) -> Any:
    """Bytes of the keys and values of l tokens: 2 b l a'_kv d_h w_kv.

    Assumes: each is read once for all query heads of its group; only slots that hold a token are read.

    Source: Ainslie et al. 2023 section 2.

    >>> from sympy import symbols
    >>> cache_read_bytes(*symbols("b l k d w"))
    2*b*d*k*l*w
    """
    return 2 * micro_batch * context * key_value_heads * head_dim * kv_bytes


@formula(
    glyph="b_{spl}",
    dimension=ONE,
    source=FLASH_DECODING,
    increasing="compute_units micro_batch",
    decreasing="key_value_heads",
    curvature="convex",
)
def split_sequences(micro_batch: Any, key_value_heads: Any) -> Any:
    """Sequences times the parts into which flash decoding cuts their contexts: b n_k = max(b, u / a'_kv).

    Assumes: contexts of many tokens a part; a context is cut so far that every one of u units has a part.

    Source: Flash-Decoding (Dao et al. 2023): keys and values are split until the device is filled.

    >>> from sympy import symbols
    >>> split_sequences(*symbols("b k"))
    Max(b, compute_units/k)
    """
    return Max(micro_batch, compute_units / key_value_heads)


@formula(
    glyph="Q_{part}",
    dimension=BYTE,
    source=FLASH_DECODING,
    increasing="compute_units head_dim heads micro_batch statistic_bytes",
    decreasing="key_value_heads",
    curvature="convex",
)
def partial_bytes(micro_batch: Any, heads: Any, key_value_heads: Any, head_dim: Any) -> Any:
    """Bytes of the partial results of split contexts, once: b_k a' (d_h + 1) w_s.

    Assumes: partial outputs and their statistic are kept at w_s bytes (FP32).

    Source: Flash-Decoding (Dao et al. 2023): a last kernel reduces over the splits.

    >>> from sympy import symbols
    >>> partial_bytes(*symbols("b a k d"))
    a*statistic_bytes*(d + 1)*Max(b, compute_units/k)
    """
    return split_sequences(micro_batch, key_value_heads) * heads * (head_dim + 1) * statistic_bytes


def attention_lines(work_flops: Any, own_bytes: Any, key_time: Any) -> tuple[Any, Any, Any]:
    """Compute time of a key, time of the bytes that do not depend on the context, time of a key's bytes."""
    own = own_bytes / (memory_bandwidth * memory_efficiency)
    return work_flops / (attention_rate * attention_efficiency), own, key_time


@formula(
    glyph="T_{dec}",
    dimension=SECOND,
    source=FLASH_DECODING,
    increasing="context gap_latency key_time launch_latency own_bytes work_flops",
    decreasing="attention_efficiency attention_rate graph_removal memory_bandwidth memory_efficiency",
)
def decode_attention_time(context: Any, work_flops: Any, own_bytes: Any, key_time: Any) -> Any:
    """Time of the attention of new tokens to l keys: max(l W / F', Q_0 / beta' + l tau_k) and the kernel's start.

    Assumes: `work_flops` and `key_time` for one key of every sequence (`shared_read_time` or `repeated_read_time` of
    its bytes), `own_bytes` for queries, outputs and partial results; equal contexts; the sustained part of the peak is
    the flash kernel's.

    Source: roofline (Kundu et al. 2024 section 3); the kernel is Flash-Decoding's (Dao et al. 2023).

    >>> from sympy import symbols
    >>> decode_attention_time(*symbols("l W Q_0 T", positive=True))  # doctest: +NORMALIZE_WHITESPACE
    gap_latency*complement(graph_removal) + launch_latency + Max(W*l/(attention_efficiency*attention_rate),
    Q_0/(memory_bandwidth*memory_efficiency) + T*l)
    """
    work, own, each = attention_lines(work_flops, own_bytes, key_time)
    return Max(context * work, own + context * each) + kernel_start_time()


@formula(
    glyph="T_{gen}",
    dimension=SECOND,
    source=FLASH_DECODING,
    increasing="first_context gap_latency key_time launch_latency own_bytes steps work_flops",
    decreasing="attention_efficiency attention_rate graph_removal memory_bandwidth memory_efficiency",
)
def generation_attention_time(steps: Any, first_context: Any, work_flops: Any, own_bytes: Any, key_time: Any) -> Any:
    """Sum of `decode_attention_time` over n_s steps with contexts l_0, l_0 + 1, ..., exact across a change of bound.

    Assumes: as `decode_attention_time`.

    Source: derivation: each step is the larger of two lines in its context, so `max_sum` is their sum.

    >>> from sympy import symbols
    >>> generation_attention_time(*symbols("n l W Q_0 T", positive=True))  # doctest: +NORMALIZE_WHITESPACE
    n*(gap_latency*complement(graph_removal) + launch_latency) + max_sum(n, l, 0,
    W/(attention_efficiency*attention_rate), Q_0/(memory_bandwidth*memory_efficiency), T)
    """
    work, own, each = attention_lines(work_flops, own_bytes, key_time)
    return max_sum(steps, first_context, 0, work, own, each) + steps * kernel_start_time()


@formula(
    glyph="T_{gen}^{w}",
    dimension=SECOND,
    source=BELTAGY,
    increasing="gap_latency key_time launch_latency own_bytes steps work_flops",
    decreasing="attention_efficiency attention_rate graph_removal memory_bandwidth memory_efficiency",
)
def windowed_generation_time(
    steps: Any, first_context: Any, sliding_window: Any, work_flops: Any, own_bytes: Any, key_time: Any
) -> Any:
    """Sum over n_s steps of a layer that attends to the last w_a keys: contexts grow up to the window, then stay.

    The first max(w_a + 1 - l_0, 0) steps grow, as in `generation_attention_time`; the rest take as long as w_a keys do.

    Assumes: as `decode_attention_time`; what has left the window is not read.

    Source: derivation: the contexts are min(l, w_a); windows after Beltagy et al. 2020 section 3.1.

    >>> from sympy import symbols
    >>> windowed_generation_time(*symbols("n l w W Q_0 T", positive=True))  # doctest: +NORMALIZE_WHITESPACE
    n*(gap_latency*complement(graph_removal) + launch_latency) + (n + 1)*complement(Min(1, ((w + 2)*complement(Min(1,
    (l + 1)/(w + 2))) + 1)/(n + 1)))*Max(W*w/(attention_efficiency*attention_rate),
    Q_0/(memory_bandwidth*memory_efficiency) + T*w) + max_sum(Min(n, (w + 2)*complement(Min(1, (l + 1)/(w + 2)))), l,
    0, W/(attention_efficiency*attention_rate), Q_0/(memory_bandwidth*memory_efficiency), T)
    """
    work, own, each = attention_lines(work_flops, own_bytes, key_time)
    growing = excess(sliding_window + 1, first_context)
    full = Max(sliding_window * work, own + sliding_window * each)
    grown = max_sum(Min(steps, growing), first_context, 0, work, own, each)
    return grown + excess(steps, growing) * full + steps * kernel_start_time()


@formula(
    glyph="T_{gen}^{c}",
    dimension=SECOND,
    source=BELTAGY,
    increasing="gap_latency key_time launch_latency own_bytes work_flops",
    decreasing="attention_efficiency attention_rate graph_removal memory_bandwidth memory_efficiency",
)
def chunked_generation_time(
    steps: Any, first_context: Any, sliding_window: Any, work_flops: Any, own_bytes: Any, key_time: Any
) -> Any:
    """Sum over n_s steps of a layer that attends to its own chunk of w_a tokens: contexts grow to w_a and start again.

    The step at context l reads ((l - 1) mod w_a) + 1 keys. With p the first context's place, min(n_s, w_a + 1 - p)
    steps go on from p keys; the others are whole chunks and a part of one from 1 on.

    Assumes: as `decode_attention_time`; what is outside of the chunk is not read.

    Source: derivation, as `windowed_generation_time`; chunks are those of Llama 4's local layers.

    >>> from sympy import symbols
    >>> chunked_generation_time(6, 1, 4, *symbols("W Q_0 T", positive=True))  # doctest: +NORMALIZE_WHITESPACE
    6*gap_latency*complement(graph_removal) + 6*launch_latency + max_sum(2, 1, 0,
    W/(attention_efficiency*attention_rate), Q_0/(memory_bandwidth*memory_efficiency), T) + max_sum(4, 1, 0,
    W/(attention_efficiency*attention_rate), Q_0/(memory_bandwidth*memory_efficiency), T)
    """
    work, own, each = attention_lines(work_flops, own_bytes, key_time)
    total = steps * kernel_start_time()
    for times, count, first in chunk_sums(steps, first_context, sliding_window):
        total += times * max_sum(count, first, 0, work, own, each)
    return total


def mean_chunk_context(steps: Any, first_context: Any, sliding_window: Any) -> Any:
    """Keys that a step of `chunked_generation_time` reads, the mean over at least one step.

    >>> import sympy
    >>> mean_chunk_context(*map(sympy.Integer, (4, 3, 4)))
    5/2
    """
    sums = chunk_sums(steps, first_context, sliding_window)
    return sum(times * max_sum(count, first, 0, 0, 0, 1) for times, count, first in sums) / Max(steps, 1)


@formula(
    glyph="T_{pre}",
    dimension=SECOND,
    source=DAO2,
    increasing="gap_latency launch_latency traffic_bytes work_flops",
    decreasing="attention_efficiency attention_rate graph_removal memory_bandwidth memory_efficiency",
)
def prefill_attention_time(work_flops: Any, traffic_bytes: Any) -> Any:
    """Time of one flash kernel over many new tokens: the slower of work and traffic, and the kernel's start.

    Assumes: attention runs in 16 bits, whatever the products run in.

    Source: Dao 2023, as `flash_time` of the training step.

    >>> from sympy import symbols
    >>> prefill_attention_time(*symbols("W Q"))  # doctest: +NORMALIZE_WHITESPACE
    gap_latency*complement(graph_removal) + launch_latency + Max(Q/(memory_bandwidth*memory_efficiency),
    W/(attention_efficiency*attention_rate))
    """
    work = work_flops / (attention_rate * attention_efficiency)
    return Max(work, traffic_bytes / (memory_bandwidth * memory_efficiency)) + kernel_start_time()


@formula(
    glyph="Q_{chunk}",
    dimension=BYTE,
    source=AINSLIE,
    increasing="activation_bytes context head_dim heads key_value_heads kv_bytes micro_batch new_tokens",
    curvature="convex",
)
def chunk_attention_bytes(
    micro_batch: Any,
    new_tokens: Any,
    context: Any,
    heads: Any,
    key_value_heads: Any,
    head_dim: Any,
    activation_bytes: Any,
    kv_bytes: Any,
) -> Any:
    """Bytes of the attention of n_q new tokens of b sequences to l keys: queries and outputs, and the cache once.

    Assumes: keys and values of a group stay in L2 while its query tiles pass.

    Source: as `cache_read_bytes`; queries in and outputs out.

    >>> from sympy import symbols
    >>> chunk_attention_bytes(*symbols("b n l a k d w c"))
    2*a*b*d*n*w + 2*b*c*d*k*l
    """
    own = 2 * micro_batch * new_tokens * heads * head_dim * activation_bytes
    return own + cache_read_bytes(micro_batch, context, key_value_heads, head_dim, kv_bytes)


@formula(
    glyph="N_{page}",
    dimension=ONE,
    source=KWON,
    increasing="tokens",
)
def paged_tokens(tokens: Any, kv_block: Any) -> Any:
    """Token slots that a paged cache holds for one sequence of T tokens: B_kv ceil(T / B_kv).

    Assumes: blocks of B_kv tokens, none shared.

    Source: Kwon et al. 2023 section 4.1: memory is wasted only in a sequence's last block.

    >>> paged_tokens(33, 16)
    48
    """
    return kv_block * ceil_div(tokens, kv_block)
