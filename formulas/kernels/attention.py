"""Attention core: scores, softmax and the weighted sum of values, for the heads that one device holds.

Shapes: b sequences of s tokens, a' query heads and a'_kv key-value heads of width d_h. Eager attention stores the
b a' s^2 scores; flash attention (Dao 2022) keeps them on chip and computes them again in the backward pass.
"""

from __future__ import annotations

from typing import Any

import sympy

from ..language.atoms import Max
from ..language.dimension import BYTE, FLOP, ONE, SECOND
from ..language.formula import formula
from ..language.symbols import (
    attention_backward_efficiency,
    attention_efficiency,
    flop,
    launch_latency,
    matrix_rate,
    memory_bandwidth,
    memory_efficiency,
)
from ..sources import AINSLIE, DAO, DAO2, KORTHIKANTI, NARAYANAN


@formula(
    glyph="W_{att}",
    dimension=FLOP,
    source=NARAYANAN,
    increasing="context flop head_dim heads micro_batch sequence",
    curvature="affine",
)
def attention_flops(micro_batch: Any, sequence: Any, context: Any, heads: Any, head_dim: Any) -> Any:
    """FLOPs of the two score products, every pair counted: 4 b s l a' d_h.

    Assumes: the whole square of queries and keys, masked or not; softmax is left out.

    Source: Narayanan et al. 2021, appendix: 4 B s^2 h per layer, with h = a d_h and l = s.

    >>> from sympy import symbols
    >>> attention_flops(*symbols("b s l a d_h"))
    4*a*b*d_h*flop*l*s
    """
    return 4 * micro_batch * sequence * context * heads * head_dim * flop


@formula(
    glyph="W_{flash}",
    dimension=FLOP,
    source=DAO2,
    increasing="flop head_dim heads micro_batch sequence",
    curvature="convex",
)
def flash_flops(micro_batch: Any, sequence: Any, heads: Any, head_dim: Any) -> Any:
    """FLOPs of causal flash attention, forward: the s (s + 1) / 2 visible pairs only, 2 b s (s + 1) a' d_h.

    Assumes: tiles that are wholly masked are skipped and those on the diagonal cost only their visible half.

    Source: Dao 2023 section 3.1.1 (causal mask halves the work).

    >>> from sympy import symbols
    >>> flash_flops(*symbols("b s a d_h"))
    2*a*b*d_h*flop*s*(s + 1)
    """
    return 2 * micro_batch * sequence * (sequence + 1) * heads * head_dim * flop


@formula(
    glyph="Q_{flash}",
    dimension=BYTE,
    source=DAO,
    increasing="activation_bytes head_dim heads key_value_heads micro_batch sequence statistic_bytes",
    curvature="convex",
)
def flash_bytes(
    micro_batch: Any,
    sequence: Any,
    heads: Any,
    key_value_heads: Any,
    head_dim: Any,
    activation_bytes: Any,
    statistic_bytes: Any,
) -> Any:
    """Device-memory bytes of flash attention, forward: queries, keys, values in; outputs and statistics out.

    Assumes: keys and values of a head stay in L2 while its query tiles pass; one statistic per query and head.

    Source: Dao et al. 2022, algorithm 1; grouped heads after Ainslie et al. 2023.

    >>> from sympy import symbols
    >>> flash_bytes(*symbols("b s a k d w c"))
    b*s*(a*c + d*w*(2*a + 2*k))
    """
    each = 2 * heads + 2 * key_value_heads
    return micro_batch * sequence * (head_dim * activation_bytes * each + heads * statistic_bytes)


@formula(
    glyph="T_{flash}",
    dimension=SECOND,
    source=DAO2,
    increasing="launch_latency traffic_bytes work_flops",
    decreasing="attention_efficiency matrix_rate memory_bandwidth memory_efficiency",
    curvature="convex",
)
def flash_time(work_flops: Any, traffic_bytes: Any) -> Any:
    """Time of the forward flash kernel: work at its sustained part of the matrix peak, or traffic, plus a launch.

    Assumes: one kernel; its efficiency is a figure of the device.

    Source: Dao 2023, figures 4 to 7, report FLOPs over time against the peak.

    >>> from sympy import symbols
    >>> flash_time(*symbols("W Q"))
    launch_latency + Max(Q/(memory_bandwidth*memory_efficiency), W/(attention_efficiency*matrix_rate))
    """
    return (
        Max(work_flops / (matrix_rate * attention_efficiency), traffic_bytes / (memory_bandwidth * memory_efficiency))
        + launch_latency
    )


@formula(
    glyph="T_{flash'}",
    dimension=SECOND,
    source=DAO2,
    increasing="launch_latency traffic_bytes work_flops",
    decreasing="attention_backward_efficiency matrix_rate memory_bandwidth memory_efficiency",
    curvature="convex",
)
def flash_backward_time(work_flops: Any, traffic_bytes: Any) -> Any:
    """Time of the backward flash kernel, from the forward one's work and traffic: 5/2 of the FLOPs, twice the bytes.

    Assumes: five products where the forward pass has two (scores again, and four gradients of two products);
    inputs, output and output gradient in, three gradients out.

    Source: Dao 2023 section 4.1 (backward FLOPs are 2.5 times the forward's).

    >>> from sympy import symbols
    >>> flash_backward_time(*symbols("W Q"))
    launch_latency + Max(2*Q/(memory_bandwidth*memory_efficiency), 5*W/(2*attention_backward_efficiency*matrix_rate))
    """
    return (
        Max(
            sympy.Rational(5, 2) * work_flops / (matrix_rate * attention_backward_efficiency),
            2 * traffic_bytes / (memory_bandwidth * memory_efficiency),
        )
        + launch_latency
    )


@formula(
    glyph="N_{score}",
    dimension=ONE,
    source=KORTHIKANTI,
    increasing="heads micro_batch sequence",
    curvature="affine",
)
def score_elements(micro_batch: Any, sequence: Any, heads: Any) -> Any:
    """Attention scores that eager attention stores: b a' s^2.

    Assumes: the whole square is stored, masked or not.

    Source: Korthikanti et al. 2022 section 4.1.

    >>> from sympy import symbols
    >>> score_elements(*symbols("b s a"))
    a*b*s**2
    """
    return micro_batch * heads * sequence**2


@formula(
    glyph="Q_{sm}",
    dimension=BYTE,
    source=KORTHIKANTI,
    increasing="activation_bytes elements",
    curvature="affine",
)
def softmax_bytes(elements: Any, activation_bytes: Any) -> Any:
    """Bytes of a fused scale, mask and softmax, forward: scores in, probabilities out, 2 w a score.

    Assumes: one fused kernel that keeps a row on chip (Megatron's scaled_masked_softmax).

    Source: counted from the kernel that Korthikanti et al. 2022 use (Megatron-LM, fused_kernels).

    >>> from sympy import symbols
    >>> softmax_bytes(*symbols("N w"))
    2*N*w
    """
    return 2 * elements * activation_bytes


@formula(
    glyph="Q_{sm'}",
    dimension=BYTE,
    source=KORTHIKANTI,
    increasing="activation_bytes elements",
    curvature="affine",
)
def softmax_backward_bytes(elements: Any, activation_bytes: Any) -> Any:
    """Bytes of the softmax's backward kernel: probabilities and their gradient in, score gradient out, 3 w a score.

    Assumes: one fused kernel.

    Source: counted from the kernel that Korthikanti et al. 2022 use (Megatron-LM, fused_kernels).

    >>> from sympy import symbols
    >>> softmax_backward_bytes(*symbols("N w"))
    3*N*w
    """
    return 3 * elements * activation_bytes


@formula(
    glyph="n_{qkv}",
    dimension=ONE,
    source=AINSLIE,
    increasing="head_dim heads key_value_heads",
    curvature="convex",
)
def query_key_value_width(heads: Any, key_value_heads: Any, head_dim: Any) -> Any:
    """Features of the joint projection of queries, keys and values: (a' + 2 a'_kv) d_h.

    Assumes: keys and values of equal width. MHA has a'_kv = a', MQA a'_kv = 1.

    Source: Ainslie et al. 2023 section 2.

    >>> from sympy import symbols
    >>> query_key_value_width(*symbols("a k d"))
    d*(a + 2*k)
    """
    return (heads + 2 * key_value_heads) * head_dim


@formula(
    glyph="s^*",
    dimension=ONE,
    source=NARAYANAN,
    increasing="intermediate_size",
    curvature="affine",
)
def attention_mlp_crossover(hidden_size: Any, intermediate_size: Any) -> Any:
    """Context at which the score products cost as many FLOPs as the plain MLP: 4 s h = 4 h f, so s = f.

    Assumes: MHA with a d_h = h, every pair counted, an MLP of two products. For GPT, f = 4 h; against all of a
    layer's other products (24 h^2 a token) the crossover is s = 6 h.

    Source: equate 4 b s^2 h (`attention_flops`) and 4 b s h f.

    >>> from sympy import symbols
    >>> attention_mlp_crossover(*symbols("h f"))
    f
    """
    score_flops_per_key = 4 * hidden_size
    mlp_flops = 4 * hidden_size * intermediate_size
    return mlp_flops / score_flops_per_key
