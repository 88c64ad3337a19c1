"""Kernels of recurrent layers in generation and prefill, with constants of software that was measured.

Shapes as in `ssm`, `linear_attention` and `convolution`.
"""

from __future__ import annotations

from typing import Any

from ..language.atoms import Max, ceil_div
from ..language.dimension import SECOND
from ..language.formula import formula
from ..language.symbols import (
    attention_efficiency,
    attention_rate,
    chunk_latency,
    convolution_efficiency,
    convolution_latency,
    convolution_passes,
    memory_bandwidth,
    memory_efficiency,
    scan_latency,
    scan_passes,
    sequence_latency,
    update_latency,
    update_passes,
    vector_rate,
    window_efficiency,
    window_latency,
    window_passes,
)
from ..sources import DELTANET, MAMBA, MAMBA2


@formula(
    glyph="T_{sc}",
    dimension=SECOND,
    source=MAMBA2,
    increasing="chunk_latency scan_latency scan_passes sequence traffic_bytes work_flops",
    decreasing="attention_efficiency attention_rate memory_bandwidth memory_efficiency ssm_chunk_size",
)
def measured_scan_time(work_flops: Any, traffic_bytes: Any, sequence: Any, ssm_chunk_size: Any) -> Any:
    """Time of a software's chunked scan: lambda + max(W / (F_a eta_a), rho Q / (B_m eta_m), ceil(s / c) lambda_c).

    Assumes: starts of all its kernels in lambda; it moves rho times the bytes that `traffic_bytes` counts, fewer where
    kernels are joined, more where they reach less of the bandwidth. Each state needs the one before: a sequence takes
    at least lambda_c a chunk, however few sequences and heads there are.

    Source: derivation: `chunked_scan_time` with a start, a part of the bandwidth and a latency that are measured; they
    are those of the software's kernels, not of the device. States in order: Dao and Gu 2024 listing 1, step 3.

    >>> from sympy import symbols
    >>> measured_scan_time(*symbols("W Q s c"))  # doctest: +NORMALIZE_WHITESPACE
    scan_latency + Max(chunk_latency*ceil_div(s, c), W/(attention_efficiency*attention_rate),
    Q*scan_passes/(memory_bandwidth*memory_efficiency))
    """
    work = work_flops / (attention_rate * attention_efficiency)
    moved = scan_passes * traffic_bytes / (memory_bandwidth * memory_efficiency)
    return scan_latency + Max(work, moved, ceil_div(sequence, ssm_chunk_size) * chunk_latency)


@formula(
    glyph="T_{ud}",
    dimension=SECOND,
    source=DELTANET,
    increasing="traffic_bytes update_latency update_passes",
    decreasing="memory_bandwidth memory_efficiency",
    curvature="convex",
)
def measured_update_time(traffic_bytes: Any) -> Any:
    """Time of a software's kernel that moves states on by a few tokens: lambda + rho Q / (B_m eta_m).

    Assumes: one kernel; it takes the time of rho times the bytes of its closed form.

    Source: derivation: states are read and written whole, and each has few operations for its bytes (Yang et al. 2024
    equation (10)); start and passes are measured.

    >>> from sympy import Symbol
    >>> measured_update_time(Symbol("Q"))
    Q*update_passes/(memory_bandwidth*memory_efficiency) + update_latency
    """
    return update_latency + update_passes * traffic_bytes / (memory_bandwidth * memory_efficiency)


@formula(
    glyph="T_{cw}",
    dimension=SECOND,
    source=MAMBA,
    increasing="traffic_bytes window_latency window_passes work_flops",
    decreasing="memory_bandwidth memory_efficiency vector_rate window_efficiency",
    curvature="convex",
)
def measured_window_time(work_flops: Any, traffic_bytes: Any) -> Any:
    """Time of a software's convolution of a few tokens whose window is kept.

    The equation: lambda + max(W / (F_v eta_cw), rho Q / (B_m eta_m)).

    Assumes: as `measured_update_time`; a thread loads and shifts the window of its channel beside the products, so that
    the units that compute bind where a memory is fast.

    Source: derivation: as `measured_update_time`, of the kernel causal_conv1d_update (Gu and Dao 2023).

    >>> from sympy import symbols
    >>> measured_window_time(*symbols("W Q"))
    window_latency + Max(W/(vector_rate*window_efficiency), Q*window_passes/(memory_bandwidth*memory_efficiency))
    """
    moved = window_passes * traffic_bytes / (memory_bandwidth * memory_efficiency)
    return window_latency + Max(moved, work_flops / (vector_rate * window_efficiency))


@formula(
    glyph="T_{cv}",
    dimension=SECOND,
    source=MAMBA,
    increasing="convolution_latency convolution_passes micro_batch sequence_latency traffic_bytes width work_flops",
    decreasing="convolution_efficiency memory_bandwidth memory_efficiency vector_rate",
    curvature="convex",
)
def measured_convolution_time(work_flops: Any, traffic_bytes: Any, micro_batch: Any, width: Any) -> Any:
    """Time of a software's convolution over whole sequences.

    The equation: lambda + max(W / (F_v eta_cv), rho Q / (B_m eta_m), b h' lambda_sq).

    Assumes: as `measured_window_time`; kernels that take a block for each sequence and channel start these one after
    the other, however short the sequences are; lambda_sq is 0 of others.

    Source: derivation, as `measured_scan_time`; the kernel causal_conv1d_fn has a block for each sequence and channel
    (Gu and Dao 2023).

    >>> from sympy import symbols
    >>> measured_convolution_time(*symbols("W Q b w"))  # doctest: +NORMALIZE_WHITESPACE
    convolution_latency + Max(W/(convolution_efficiency*vector_rate), b*sequence_latency*w,
    Q*convolution_passes/(memory_bandwidth*memory_efficiency))
    """
    moved = convolution_passes * traffic_bytes / (memory_bandwidth * memory_efficiency)
    computed = work_flops / (vector_rate * convolution_efficiency)
    return convolution_latency + Max(computed, moved, micro_batch * width * sequence_latency)
