"""When a decode step stops being bound by device memory: batch, context, group of heads and tensor-parallel degree.

A step of b sequences at context l reads N weights of w bytes and b l q bytes of cache, q for one token of one
sequence over all layers, and computes 2 N FLOPs for each sequence: F' = eta_m F is the attainable matrix rate,
beta' = eta beta the attainable bandwidth, both of one device, as are N and q. Under tensor parallelism N and q are
both divided by t, so that batch and context are the same; where key-value heads are copied, q is not divided.
"""

from __future__ import annotations

from typing import Any

from ..language.atoms import Max, Min, complement
from ..language.dimension import ONE
from ..language.formula import formula
from ..language.symbols import (
    activation_bytes,
    attention_efficiency,
    attention_rate,
    flop,
    kv_bytes,
    matrix_efficiency,
    matrix_rate,
    memory_bandwidth,
    memory_efficiency,
    operand_bytes,
    weight_bytes,
)
from ..mathematics.series import TINY
from ..sources import AINSLIE, SHOEYBI, WILLIAMS
from .decode import cache_read_bytes


def _multiplies_per_byte(rate: Any, efficiency: Any) -> Any:
    """Pairs of a multiply and an add that a device computes in the time that one byte takes."""
    return rate * efficiency / (2 * flop * memory_bandwidth * memory_efficiency)


def _left(taken: Any) -> Any:
    """What a share leaves, 1 - x; where it leaves nothing, a number that keeps the quotient by it finite."""
    return Max(TINY, complement(Min(1, taken)))


@formula(
    glyph="b_1",
    dimension=ONE,
    source=WILLIAMS,
    increasing="matrix_efficiency matrix_rate weight_bytes",
    decreasing="flop memory_bandwidth memory_efficiency",
    curvature="affine",
)
def ridge_batch() -> Any:
    """Batch at which computing with a weight takes as long as reading it: w F' / (2 beta').

    Each of b sequences needs one multiply and add with every weight, 2 b / F', and the weight is read once, w / beta'.

    Assumes: weights are all that is read; no rounding to tiles, no latency.

    Source: derivation: the ridge point of the roofline (Williams et al. 2009) with intensity 2 b / w.

    >>> ridge_batch()
    matrix_efficiency*matrix_rate*weight_bytes/(2*flop*memory_bandwidth*memory_efficiency)
    """
    return weight_bytes * _multiplies_per_byte(matrix_rate, matrix_efficiency)


@formula(
    glyph="b_1^{nk}",
    dimension=ONE,
    source=WILLIAMS,
    increasing="activation_bytes matrix_efficiency matrix_rate operand_bytes weight_bytes",
    decreasing="columns flop inner memory_bandwidth memory_efficiency",
)
def product_ridge_batch(columns: Any, inner: Any) -> Any:
    """Rows at which a product with k x n weights turns compute-bound: b_1 / (1 - (w_q/n + w_a/k) F'/(2 beta')).

    From 2 b n k / F' = (w n k + b (w_q k + w_a n)) / beta', solved for b: its own rows are moved too.

    Assumes: (w_q/n + w_a/k) F' < 2 beta'; a narrower product never becomes compute-bound, whatever the batch, and the
    answer is then beyond 1e200. Each byte crosses device memory once; no rounding to tiles, no latency.

    Source: derivation from the roofline (Williams et al. 2009).

    >>> from sympy import symbols
    >>> product_ridge_batch(*symbols("n k", positive=True))  # doctest: +NORMALIZE_WHITESPACE
    matrix_efficiency*matrix_rate*weight_bytes/(2*flop*memory_bandwidth*memory_efficiency*Max(1.0e-250,
    complement(Min(1, matrix_efficiency*matrix_rate*(activation_bytes/k +
    operand_bytes/n)/(2*flop*memory_bandwidth*memory_efficiency)))))
    """
    moved = operand_bytes / columns + activation_bytes / inner
    return ridge_batch() / _left(moved * _multiplies_per_byte(matrix_rate, matrix_efficiency))


@formula(
    glyph="l^*",
    dimension=ONE,
    source=WILLIAMS,
    increasing="flop memory_bandwidth memory_efficiency parameters",
    decreasing="head_dim key_value_heads kv_bytes matrix_efficiency matrix_rate num_layers",
    curvature="affine",
)
def context_limit(parameters: Any, num_layers: Any, key_value_heads: Any, head_dim: Any) -> Any:
    """Context beyond which no batch makes a decode step compute-bound: 2 N beta' / (F' q), q = 2 L a'_kv d_h w_kv.

    A sequence brings 2 N FLOPs and l q bytes of cache of its own. With l q / beta' > 2 N / F' it brings more time of
    memory than of computing, so that a larger batch only moves the step further from the ridge.

    Assumes: weights are shared by the batch, caches are not; the FLOPs of attention are left out (they belong to
    `attention_ridge_group`). Activations, also moved for each sequence, lower the limit.

    Source: derivation: work and traffic that one more sequence adds, on the ridge (Williams et al. 2009).

    >>> from sympy import symbols
    >>> context_limit(*symbols("N L k d"))
    N*flop*memory_bandwidth*memory_efficiency/(L*d*k*kv_bytes*matrix_efficiency*matrix_rate)
    """
    read = num_layers * cache_read_bytes(1, 1, key_value_heads, head_dim, kv_bytes)
    return parameters / (read * _multiplies_per_byte(matrix_rate, matrix_efficiency))


@formula(
    glyph="b^*",
    dimension=ONE,
    source=WILLIAMS,
    increasing="context head_dim key_value_heads kv_bytes matrix_efficiency matrix_rate num_layers weight_bytes",
    decreasing="flop memory_bandwidth memory_efficiency parameters",
)
def balance_batch(parameters: Any, context: Any, num_layers: Any, key_value_heads: Any, head_dim: Any) -> Any:
    """Batch at which a decode step's work takes as long as its traffic: N w / (2 N beta'/F' - l q) = b_1 / (1 - l/l*).

    From 2 b N / F' = (N w + b l q) / beta', solved for b. It is `ridge_batch` for an empty cache and grows without
    bound as l reaches `context_limit`.

    Assumes: l < l*; from there on there is none, and the answer is beyond 1e200. Work and traffic of the whole step
    overlap; one kernel after the other, products compute from b_1 on while the step still moves more than it computes
    up to b*. Attention's FLOPs are left out. A sequence's activation bytes may be added to l as q_0 / q tokens.

    Source: derivation: the ridge of the whole step (Williams et al. 2009).

    >>> from sympy import symbols
    >>> balance_batch(symbols("N", positive=True), 0, *symbols("L k d", positive=True)) == ridge_batch()
    True
    """
    return ridge_batch() / _left(context / context_limit(parameters, num_layers, key_value_heads, head_dim))


@formula(
    glyph="g^*",
    dimension=ONE,
    source=AINSLIE,
    increasing="attention_efficiency attention_rate kv_bytes",
    decreasing="flop memory_bandwidth memory_efficiency",
    curvature="affine",
)
def attention_ridge_group() -> Any:
    """Query heads a key-value head above which attention over a cache is compute-bound: g* = w_kv F_a' / (2 beta').

    For each cached token and key-value head, 2 d_h elements of w_kv bytes are read and g = a / a_kv query heads take
    4 g d_h FLOPs: 4 g d_h / F_a' > 2 d_h w_kv / beta'. Neither batch nor context nor head size matters, since each
    sequence has its own cache: only sharing of heads, or several new tokens a step, can raise the intensity.

    Assumes: long contexts, so that queries and outputs are small; F_a' = eta_a F_a is the attention kernel's rate.

    Source: derivation; grouping after Ainslie et al. 2023 section 2.

    >>> attention_ridge_group()
    attention_efficiency*attention_rate*kv_bytes/(2*flop*memory_bandwidth*memory_efficiency)
    """
    return kv_bytes * _multiplies_per_byte(attention_rate, attention_efficiency)


@formula(
    glyph="t^*",
    dimension=ONE,
    source=SHOEYBI,
    increasing="parameters weight_bytes",
    decreasing="collective_time memory_bandwidth memory_efficiency",
    curvature="affine",
)
def reduce_bound_degree(parameters: Any, collective_time: Any) -> Any:
    """Tensor-parallel degree above which a layer's all-reduces outlast the reading of its weights: N_l w / (beta' T_c).

    From N_l w / (t beta') = T_c, with N_l the layer's weights on all devices and T_c the time of its two all-reduces of
    a few rows, which is latency and does not shrink with t. Over a double binary tree T_c = 4 log2(t) alpha + 2 T_0,
    with T_0 the start of a kernel. The hops alone give t log2(t) = x = N_l w / (4 alpha beta'), solved by
    t = exp(W(x ln 2)) with the principal branch of Lambert's W; with the starts t = exp(W(x ln 2 exp(y)) - y), where
    y = ln 2 T_0 / (2 alpha), which is less.

    Assumes: T_c at the degree itself; products bound by memory; nothing overlaps; one scale-up domain.

    Source: derivation; the two sums of a layer are Megatron's (Shoeybi et al. 2019 section 3).

    >>> from sympy import symbols
    >>> reduce_bound_degree(*symbols("N T_c"))
    N*weight_bytes/(T_c*memory_bandwidth*memory_efficiency)
    """
    return parameters * weight_bytes / (memory_bandwidth * memory_efficiency * collective_time)
