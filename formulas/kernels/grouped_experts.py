"""Routed experts of a layer as software runs them: a few kernels that are known together, and how uneven loads are.

Shapes: m rows of width h on one device for g experts that have any, each with a first product of U columns (2 f_e
where it is gated) and a second one of f_e inner columns. Times are of the whole: sorting, products, activation, sum.
"""

from __future__ import annotations

from typing import Any

import sympy

from ..language.atoms import Max, Min, above_one, complement, less_one, log2
from ..language.dimension import BYTE, ONE, SECOND
from ..language.formula import formula
from ..language.symbols import (
    activation_bytes,
    choice_latency,
    expert_latency,
    expert_map_latency,
    expert_memory_efficiency,
    expert_passes,
    flop,
    grouped_efficiency,
    matrix_rate,
    memory_bandwidth,
    tile_thin,
)
from ..mathematics.fractions import fraction_power
from ..sources import LEPIKHIN, MEGABLOCKS
from .roofline import ridge_time


@formula(
    glyph="Q_{fx}",
    dimension=BYTE,
    source=MEGABLOCKS,
    increasing="activation_bytes columns groups hidden_size inner left_bytes right_bytes rows",
    curvature="convex",
)
def fused_experts_bytes(
    rows: Any, groups: Any, hidden_size: Any, columns: Any, inner: Any, left_bytes: Any, right_bytes: Any
) -> Any:
    """Bytes of both grouped products: g h (U + f) w_r + m ((h + f) w_l + (U + h) w_x).

    Assumes: weights of an expert that has rows once, every row once; `left_bytes` and `right_bytes` of an element.

    Source: counted: two products with a group for each expert (Gale et al. 2022 section 5.1).

    >>> from sympy import symbols
    >>> fused_experts_bytes(*symbols("m g h U f w_l w_r"))
    g*h*w_r*(U + f) + m*(activation_bytes*(U + h) + w_l*(f + h))
    """
    weights = groups * hidden_size * (columns + inner) * right_bytes
    return weights + rows * ((hidden_size + inner) * left_bytes + (columns + hidden_size) * activation_bytes)


@formula(
    glyph="T_{fx}",
    dimension=SECOND,
    source=MEGABLOCKS,
    increasing="activation_bytes choice_latency choices expert_latency expert_passes columns flop groups "
    "hidden_size inner left_bytes right_bytes rows tile_thin",
    decreasing="expert_memory_efficiency grouped_efficiency matrix_rate memory_bandwidth ridge_efficiency",
    curvature="convex",
)
def fused_experts_time(
    rows: Any,
    groups: Any,
    hidden_size: Any,
    columns: Any,
    inner: Any,
    left_bytes: Any,
    right_bytes: Any,
    choices: Any,
) -> Any:
    """Seconds of a layer's routed experts on one device.

    lambda_e + ridge(W, Q / (beta eta_be)) + pi_e m (h + f) w_x / beta + lambda_ch n_ch, where the products compute
    W = 2 h (U + f) (m + T_t g) / (F eta_g): tiles of an expert's last rows are half empty, which is T_t rows an expert.

    Assumes: as `fused_experts_bytes`; F is the peak in the format of the products. Rows are sorted, activated, cast to
    narrower operands and summed by kernels that hide nothing of the products; n_ch choices are sorted, those of experts
    elsewhere too.

    Source: derivation from the kernels of block-sparse experts (Gale et al. 2022 section 5): gather, two grouped
    products, activation, scatter. Evidence: benchmarks/calibration/README.md, tables of 2025 and 2026.

    >>> from sympy import symbols
    >>> fused_experts_time(0, 0, *symbols("h U f w_l w_r", positive=True), 0)
    expert_latency
    >>> fused_experts_time(0, 1, 1, 0, 1, 1, 1, 0)  # doctest: +NORMALIZE_WHITESPACE
    expert_latency + Max(1/(expert_memory_efficiency*memory_bandwidth),
    (2*flop*tile_thin/(grouped_efficiency*matrix_rate) +
    1/(expert_memory_efficiency*memory_bandwidth))/(2*ridge_efficiency),
    2*flop*tile_thin/(grouped_efficiency*matrix_rate))
    """
    traffic = fused_experts_bytes(rows, groups, hidden_size, columns, inner, left_bytes, right_bytes)
    work = 2 * hidden_size * (columns + inner) * (rows + tile_thin * groups) * flop
    products = ridge_time(
        work / (matrix_rate * grouped_efficiency), traffic / (memory_bandwidth * expert_memory_efficiency)
    )
    beside = expert_passes * rows * (hidden_size + inner) * activation_bytes / memory_bandwidth
    return expert_latency + products + beside + choice_latency * choices


@formula(
    glyph="T_{em}",
    dimension=SECOND,
    source=MEGABLOCKS,
    increasing="devices expert_map_latency",
)
def expert_map_time(devices: Any) -> Any:
    """Seconds in which a device finds its own experts among those that tokens chose: lambda_em, none on one device.

    Assumes: the software numbers the experts of a device anew (vLLM's `expert_map`) by kernels of their own, once a
    layer, whatever the tokens.

    Source: derivation: kernels beside those of Gale et al. 2022 section 5. Evidence: tables of 2026 (the README of
    benchmarks/calibration), in which vLLM's kernels for weights of 4 bits take 15 to 30 us longer for one token where
    whole experts are dealt than where each is split.

    >>> from sympy import Symbol
    >>> expert_map_time(1), expert_map_time(8)
    (0, expert_map_latency)
    """
    return above_one(devices) * expert_map_latency


@formula(
    glyph="c_v^2",
    dimension=ONE,
    source=LEPIKHIN,
    increasing="tokens",
)
def load_variance(tokens: Any, routing_skew: Any) -> Any:
    """Variance of the loads of experts over their squared mean, for loads from 1 to T whose density is x^-(1 + sigma).

    The equation: (1 - sigma)^2 / (2 - sigma) (T^sigma - 1) / sigma - 1, and at least 0.

    The moments are C (T^(1 - sigma) - 1) / (1 - sigma) and C (T^(2 - sigma) - 1) / (2 - sigma) with
    C = sigma / (1 - T^-sigma); of both the one is left out beside the power of T.

    Assumes: T of at least 1; a skew of at most 1. Towards no skew, x^-1, it is ln(T) / 2 - 1.

    Source: derivation; loads of experts as power laws are those of NVIDIA's aiconfigurator, whose collector draws them.

    >>> from sympy import Rational
    >>> load_variance(10000, Rational(1, 2))
    32
    """
    skew = Min(1, routing_skew)
    left = fraction_power(1 / tokens, skew)
    return less_one(Max(1, complement(skew) ** 2 / (1 + complement(skew)) * complement(left) / (left * skew)))


@formula(
    glyph=r"\chi_{\sigma}",
    dimension=ONE,
    source=LEPIKHIN,
    increasing="ep tokens",
    decreasing="num_experts",
)
def skewed_imbalance(tokens: Any, num_experts: Any, ep: Any, routing_skew: Any) -> Any:
    """Rows of the fullest device over the mean, for loads by a power law: 1 + log2(e) / 2 sqrt(e / E c_v^2).

    A device holds E / e experts, so that its load varies by sqrt(e / E) c_v. The fullest of e such is above the mean by
    sqrt(2 ln e) deviations where loads are normal and by ln e where they are exponential; between them lies
    log2(e) / 2, which sums of few loads of a bounded power law follow.

    Assumes: as `load_variance`, with T tokens of all e devices; experts are dealt without regard to their loads. Within
    3 % (median) of drawn loads for 8 to 512 experts, exponents 1.01 and 1.2, and up to 256 devices.

    Source: derivation; Lepikhin et al. 2020 section 2.2: everybody waits for the fullest.

    >>> from sympy import Rational
    >>> skewed_imbalance(10000, 256, 1, Rational(1, 2)), skewed_imbalance(10000, 128, 4, Rational(1, 2))
    (1, 2)
    """
    return 1 + log2(ep) / 2 * sympy.sqrt(ep / num_experts * load_variance(tokens, routing_skew))
