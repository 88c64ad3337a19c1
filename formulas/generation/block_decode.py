"""Attention over a cache by kernels whose constants are known: a decode step, and sums over growing contexts.

Keys are read in blocks of 64, so that a shorter context takes as long as one of 64. Contexts are dealt to the units in
parts, whatever their number, so that device memory binds long ones; a sequence and key-value head costs a unit a time
of its own, however short its context is, and many of them wait for each other.
"""

from __future__ import annotations

from typing import Any, Final

from ..kernels.thin_matmul import gap_time
from ..kernels.windows import chunk_sums
from ..language.atoms import Max, Min, ceil_div
from ..language.dimension import ONE, SECOND
from ..language.formula import formula
from ..language.symbols import (
    block_latency,
    cache_efficiency,
    compute_units,
    decode_block_latency,
    decode_latency,
    latent_latency,
    memory_bandwidth,
)
from ..mathematics.series import excess, max_sum
from ..sources import BELTAGY, DEEPSEEK2, FLASH_DECODING
from ..sources.serving import XQA

KEYS: Final = 64
"""Keys of a block, which are read together."""


def _at(context: Any, lines: tuple[Any, Any, Any]) -> Any:
    work, own, each = lines
    return Max(context * work, own + context * each)


@formula(
    glyph="T_{start}^{kv}",
    dimension=SECOND,
    source=FLASH_DECODING,
    increasing="cache_blocks decode_block_latency decode_latency gap_latency",
    decreasing="compute_units graph_removal",
)
def cache_start_time(cache_blocks: Any) -> Any:
    """Time of attention over a cache beside its keys: lambda_dec + max(1, N_b / u) lambda_kv.

    Assumes: a block is a sequence and key-value head, or a query head where each reads keys of its own.

    Source: derivation: u units start a block each at once, and the others after them.

    >>> from sympy import symbols
    >>> cache_start_time(symbols("N"))
    decode_block_latency*Max(1, N/compute_units) + decode_latency + gap_latency*complement(graph_removal)
    """
    return gap_time() + decode_latency + Max(1, cache_blocks / compute_units) * decode_block_latency


@formula(
    glyph="T_{start}^{lat}",
    dimension=SECOND,
    source=DEEPSEEK2,
    increasing="block_latency cache_blocks gap_latency latent_latency",
    decreasing="compute_units graph_removal",
)
def latent_start_time(cache_blocks: Any) -> Any:
    """Time of absorbed attention over latents beside its keys: lambda_lat + max(1, N_b / u) lambda_blk.

    Assumes: all heads of a token attend to the same latents, so that 64 of them are a block of 64 rows of queries.

    Source: derivation, as `cache_start_time`; the latents serve all heads (DeepSeek-AI 2024, V2, section 2.1.2).

    >>> from sympy import symbols
    >>> latent_start_time(symbols("N"))
    block_latency*Max(1, N/compute_units) + gap_latency*complement(graph_removal) + latent_latency
    """
    return gap_time() + latent_latency + Max(1, cache_blocks / compute_units) * block_latency


@formula(
    glyph=r"\chi_{u}",
    dimension=ONE,
    source=FLASH_DECODING,
)
def unit_share(cache_blocks: Any) -> Any:
    """How many times as long products over whole contexts take as over split ones: u ceil(N_b / u) / N_b.

    Assumes: contexts are of one length, and a unit takes one block after the other; a few draw the whole
    bandwidth.

    Source: derivation: N_b blocks on u units take ceil(N_b / u) turns, and N_b / u if they are split.

    >>> unit_share(27).subs(compute_units, 108), unit_share(162).subs(compute_units, 108)
    (4, 4/3)
    """
    return compute_units * ceil_div(cache_blocks, compute_units) / cache_blocks


@formula(
    glyph=r"\tau_{kv}",
    dimension=SECOND,
    source=XQA,
    increasing="cache_passes traffic_bytes",
    decreasing="cache_efficiency memory_bandwidth",
    curvature="affine",
)
def cache_key_time(traffic_bytes: Any, cache_passes: Any) -> Any:
    """Time of the bytes of one key that r_k parts of a group read each: r_k Q / (beta eta_kv).

    Assumes: L2 delivers what it holds no faster than device memory, since every unit asks for the same keys.

    Source: NVIDIA's XQA kernel saves the repeated reads. Evidence: groups of 48 to 128 heads under TensorRT-LLM, which
    take a pass for each head, on six devices.

    >>> from sympy import symbols
    >>> cache_key_time(symbols("Q"), 8)
    8*Q/(cache_efficiency*memory_bandwidth)
    """
    return cache_passes * traffic_bytes / (memory_bandwidth * cache_efficiency)


@formula(
    glyph="T_{kv}",
    dimension=SECOND,
    source=FLASH_DECODING,
    increasing="context key_time key_work_time own_time start_time",
    curvature="convex",
)
def cached_attention_time(context: Any, key_work_time: Any, own_time: Any, key_time: Any, start_time: Any) -> Any:
    """Time of attention to l keys: max(l' tau_w, tau_0 + l' tau_k) + T_0, with l' = max(l, 64).

    Assumes: products hide bytes or are hidden by them; a block of keys is read whole.

    Source: as `decode_attention_time`, with the constants of its kernel.

    >>> from sympy import symbols
    >>> cached_attention_time(*symbols("l w o k T", positive=True))
    T + Max(w*Max(64, l), k*Max(64, l) + o)
    """
    return _at(Max(context, KEYS), (key_work_time, own_time, key_time)) + start_time


def _grown(steps: Any, first_context: Any, lines: tuple[Any, Any, Any]) -> Any:
    """The sum over contexts that grow by one: those below a block take as long as a block, the others are lines."""
    work, own, each = lines
    below = excess(KEYS, first_context)
    short = Min(steps, below) * _at(KEYS, lines)
    return short + max_sum(excess(steps, below), Max(first_context, KEYS), 0, work, own, each)


@formula(
    glyph="T_{kv}^{gen}",
    dimension=SECOND,
    source=FLASH_DECODING,
    increasing="key_time key_work_time own_time start_time steps",
)
def growing_attention_time(
    steps: Any, first_context: Any, key_work_time: Any, own_time: Any, key_time: Any, start_time: Any
) -> Any:
    """Sum of `cached_attention_time` over n_s steps with contexts l_0, l_0 + 1, ..., exact across every change.

    Assumes: as `cached_attention_time`.

    Source: derivation: min(n_s, 64 - l_0) steps below a block are equal, and `max_sum` is the sum of the others.

    >>> growing_attention_time(4, 62, 1, 0, 2, 10)
    554
    >>> sum(cached_attention_time(context, 1, 0, 2, 10) for context in range(62, 66))
    554
    """
    return _grown(steps, first_context, (key_work_time, own_time, key_time)) + steps * start_time


@formula(
    glyph="T_{kv}^{w}",
    dimension=SECOND,
    source=BELTAGY,
    increasing="key_time key_work_time own_time start_time steps",
)
def windowed_growing_time(
    steps: Any,
    first_context: Any,
    sliding_window: Any,
    key_work_time: Any,
    own_time: Any,
    key_time: Any,
    start_time: Any,
) -> Any:
    """Sum of `cached_attention_time` over n_s steps of a layer that attends to the last w_a keys.

    Assumes: as `windowed_generation_time`.

    Source: derivation, as `windowed_generation_time` and `growing_attention_time`.

    >>> windowed_growing_time(5, 99, 100, 1, 0, 2, 10)
    1048
    >>> sum(cached_attention_time(min(context, 100), 1, 0, 2, 10) for context in range(99, 104))
    1048
    """
    lines = (key_work_time, own_time, key_time)
    growing = excess(sliding_window + 1, first_context)
    full = excess(steps, growing) * _at(Max(sliding_window, KEYS), lines)
    return _grown(Min(steps, growing), first_context, lines) + full + steps * start_time


@formula(
    glyph="T_{kv}^{c}",
    dimension=SECOND,
    source=BELTAGY,
    increasing="key_time key_work_time own_time start_time",
)
def chunked_growing_time(
    steps: Any,
    first_context: Any,
    sliding_window: Any,
    key_work_time: Any,
    own_time: Any,
    key_time: Any,
    start_time: Any,
) -> Any:
    """Sum of `cached_attention_time` over n_s steps of a layer that attends to its own chunk of w_a tokens.

    Assumes: as `chunked_generation_time`.

    Source: derivation, as `chunked_generation_time` and `growing_attention_time`.

    >>> chunked_growing_time(4, 99, 100, 1, 0, 2, 10)
    694
    >>> sum(cached_attention_time(context, 1, 0, 2, 10) for context in (99, 100, 1, 2))
    694
    """
    lines = (key_work_time, own_time, key_time)
    sums = chunk_sums(steps, first_context, sliding_window)
    return sum(times * _grown(count, first, lines) for times, count, first in sums) + steps * start_time
