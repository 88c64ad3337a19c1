"""Context parallelism: a sequence in c parts, of which every device has the queries, keys and values of one.

Ring attention passes keys and values round, all-to-all (Ulysses) deals heads instead of tokens for the time of the
attention, all-gather collects all keys and values first. T tokens, a' query and a'_kv key-value heads of width d_h are
those of one device. T_a is the time of attention between the queries of one part and the keys of one part, unmasked.
"""

from __future__ import annotations

from typing import Any

from ..collectives import hierarchical_all_gather_time, hierarchical_all_to_all_time, hierarchical_reduce_scatter_time
from ..language.atoms import Max, above_one, complement, less_one, ring_share
from ..language.dimension import BYTE, ONE, SECOND
from ..language.formula import formula
from ..language.symbols import flop
from ..sources import LLAMA3, RING_ATTENTION, STRIPED, ULYSSES
from ..sources.training import TRANSFORMER_ENGINE_CODE


def ulysses_holds(heads: int, cp: int) -> bool:
    """Whether heads can be dealt to c devices: c divides the query heads of a device.

    >>> ulysses_holds(32, 8), ulysses_holds(8, 16)
    (True, False)
    """
    return heads % cp == 0


@formula(
    glyph="n_{kv}",
    dimension=BYTE,
    source=RING_ATTENTION,
    increasing="element_bytes head_dim key_value_heads tokens",
    curvature="affine",
)
def key_value_part_bytes(tokens: Any, key_value_heads: Any, head_dim: Any, element_bytes: Any) -> Any:
    """Bytes of the keys and values of a device's tokens, 2 T a'_kv d_h w: what one step of the ring passes on.

    Assumes: keys and values of equal width.

    Source: Liu et al. 2023 section 3: a block's keys and values are sent, 2 c d elements.

    >>> from sympy import symbols
    >>> key_value_part_bytes(*symbols("T a d w"))
    2*T*a*d*w
    """
    return 2 * tokens * key_value_heads * head_dim * element_bytes


@formula(
    glyph="n_{ring}",
    dimension=BYTE,
    source=RING_ATTENTION,
    increasing="cp key_value_bytes",
    curvature="concave",
)
def ring_attention_bytes(key_value_bytes: Any, cp: Any) -> Any:
    """Bytes that a device sends in the forward pass of ring attention: (c - 1) times its keys and values.

    Assumes: every part visits every device; none goes home.

    Source: Liu et al. 2023 section 3.

    >>> from sympy import symbols
    >>> ring_attention_bytes(*symbols("n c"))
    n*less_one(c)
    """
    return less_one(cp) * key_value_bytes


@formula(
    glyph="n_{ring}'",
    dimension=BYTE,
    source=RING_ATTENTION,
    increasing="cp key_value_bytes",
)
def ring_attention_backward_bytes(key_value_bytes: Any, cp: Any) -> Any:
    """Bytes that a device sends in the backward pass of ring attention: keys, values and their gradients.

    The equation: (c - 1) n + [c > 1] c n, as the gradients also go home.

    Assumes: gradients in the format of keys and values.

    Source: Liu et al. 2023 section 3; counted: gradients collect what every device adds and return to their part.

    >>> from sympy import symbols
    >>> ring_attention_backward_bytes(symbols("n"), 4), ring_attention_backward_bytes(symbols("n"), 1)
    (7*n, 0)
    """
    return less_one(cp) * key_value_bytes + above_one(cp) * cp * key_value_bytes


@formula(
    glyph=r"\chi_c",
    dimension=ONE,
    source=STRIPED,
    increasing="cp",
)
def contiguous_imbalance(cp: Any) -> Any:
    """Causal pairs of the last of c contiguous parts over the mean of all parts: 1 + (c - 1) / c.

    Assumes: contiguous parts. Balanced ones have 1: of 2c chunks device i has the i-th from the start and the i-th
    from the end (Grattafiori et al. 2024 section 3.3.2).

    Source: Brandon et al. 2023 section 3; counted: c - 1/2 blocks on the last device, c / 2 on average.

    Reference only: of parts that are not balanced; a prediction has balanced ones.

    >>> contiguous_imbalance(1), contiguous_imbalance(8)
    (1, 15/8)
    """
    return 1 + ring_share(cp)


@formula(
    glyph="T_{ring}",
    dimension=SECOND,
    source=RING_ATTENTION,
    increasing="block_time causal_share cp transfer_time",
)
def ring_attention_time(block_time: Any, transfer_time: Any, causal_share: Any, cp: Any) -> Any:
    """Time of ring attention whose steps are alike: kappa T_a + (c - 1) max(kappa T_a, T_c).

    Assumes: a part's transfer to the next device runs beside the attention to it and does not slow it; kappa is 1
    without a mask and 1/2 for balanced causal parts: an early and a late chunk see two of four chunks in every step.

    Source: Liu et al. 2023 section 3: while one block is computed the next one comes; Brandon et al. 2023 for the mask.

    >>> from sympy import symbols
    >>> ring_attention_time(*symbols("t s k c"))
    k*t + less_one(c)*Max(s, k*t)
    """
    step = causal_share * block_time
    return step + less_one(cp) * Max(step, transfer_time)


@formula(
    glyph="T_{ring}'",
    dimension=SECOND,
    source=RING_ATTENTION,
    increasing="block_time causal_share scatter_time transfer_time",
)
def ring_attention_backward_time(
    block_time: Any, transfer_time: Any, scatter_time: Any, causal_share: Any, cp: Any
) -> Any:
    """Time of the backward pass of ring attention: keys, values and their gradients go round, these also home.

    With w = kappa T_a: max(w, T_c) + (c-2) max(w, T_c + T_sca) + max(w, T_sca) + T_sca; one part: w.

    Assumes: as `ring_attention_time`; T_a is that of the backward pass, T_sca the time to pass on a part's gradients,
    which leave when what a device adds is added.

    Source: Liu et al. 2023 section 3; derivation: the steps of `sharded_backward_time` without a first gather.

    >>> from sympy import symbols
    >>> ring_attention_backward_time(*symbols("t s g k"), 1)
    k*t
    >>> ring_attention_backward_time(2, 1, 1, 1, 4)
    9
    """
    step = causal_share * block_time
    alone = complement(above_one(cp)) * step
    ends = above_one(cp) * (Max(step, transfer_time) + Max(step, scatter_time) + scatter_time)
    return alone + ends + less_one(Max(1, less_one(cp))) * Max(step, transfer_time + scatter_time)


@formula(
    glyph="T_{ring}^{con}",
    dimension=SECOND,
    source=STRIPED,
    increasing="block_time cp transfer_time",
)
def unbalanced_ring_attention_time(block_time: Any, transfer_time: Any, cp: Any) -> Any:
    """Time of causal ring attention over contiguous parts: the last device computes half a block and c - 1 whole ones.

    T_a / 2 + [c > 1] max(T_a, T_c + T_a / 2) + max(c - 2, 0) max(T_a, T_c).

    Assumes: as `ring_attention_time`; devices pass parts on in step, also those whose queries the mask hides.

    Source: Brandon et al. 2023 section 3: only the first step is half as long, though half of all pairs are masked.
    The first step takes max(T_a / 2, T_c), each other one max(T_a, T_c), the last one T_a.

    Reference only: of parts that are not balanced; a prediction has balanced ones.

    >>> unbalanced_ring_attention_time(2, 0, 8), unbalanced_ring_attention_time(2, 0, 1)
    (15, 1)
    """
    first = above_one(cp) * Max(block_time, transfer_time + block_time / 2)
    return block_time / 2 + first + less_one(Max(1, less_one(cp))) * Max(block_time, transfer_time)


@formula(
    glyph="n_{mrg}",
    dimension=BYTE,
    source=TRANSFORMER_ENGINE_CODE,
    increasing="cp element_bytes tokens width",
)
def merged_partials_bytes(tokens: Any, width: Any, element_bytes: Any, cp: Any) -> Any:
    """Traffic of merging what the c steps of a ring found for the same tokens: (2 [c > 1] + 3 (c - 1)) T d w.

    The first partial result is scaled, or copied: read and written. Each further one is read and added to the sum,
    which is read and written. Forward they are results of attention, backward gradients of queries and of keys and
    values.

    Assumes: kernels of their own after the attention, partial results in the format of activations; those of the
    device with the last tokens, whose steps all have all queries and for whom others wait; the statistic of each row,
    one number a head, is not counted.

    Source: Transformer Engine, transformer_engine/pytorch/attention/dot_product_attention/context_parallel.py:
    flash_attn_fwd_out_correction_init, flash_attn_fwd_out_correction, and dq.copy_, dq.add_, dkv.add_; counted.

    >>> from sympy import symbols
    >>> merged_partials_bytes(*symbols("T d w"), 1), merged_partials_bytes(*symbols("T d w"), 4)
    (0, 11*T*d*w)
    """
    return (2 * above_one(cp) + 3 * less_one(cp)) * tokens * width * element_bytes


@formula(
    glyph="T_{min}",
    dimension=ONE,
    source=RING_ATTENTION,
    increasing="element_bytes key_value_heads rate",
    decreasing="causal_share flop heads link_bandwidth",
    curvature="affine",
)
def ring_attention_least_tokens(
    heads: Any, key_value_heads: Any, element_bytes: Any, causal_share: Any, rate: Any, link_bandwidth: Any
) -> Any:
    """Tokens of a device from which on ring attention hides its transfers: R a'_kv w / (2 kappa a' beta).

    Assumes: attention at its rate R, 4 kappa T^2 a' d_h FLOPs a step; no latency.

    Source: Liu et al. 2023 section 3.2, c >= F / B, which this is for a'_kv = a', w = 2 and no mask.

    Reference only: a rule of thumb; a prediction compares the times of a step of the ring.

    >>> from sympy import symbols
    >>> ring_attention_least_tokens(8, 8, 2, 1, *symbols("F B"))
    F/(B*flop)
    """
    return rate * key_value_heads * element_bytes / (2 * causal_share * heads * link_bandwidth * flop)


@formula(
    glyph="n_{qry}",
    dimension=BYTE,
    source=ULYSSES,
    increasing="element_bytes head_dim heads tokens",
    curvature="affine",
)
def query_part_bytes(tokens: Any, heads: Any, head_dim: Any, element_bytes: Any) -> Any:
    """Bytes of the queries, and of the attention's results, of a device's tokens: T a' d_h w.

    Assumes: results are as wide as queries.

    Source: Jacobs et al. 2023 section 3.2.

    >>> from sympy import symbols
    >>> query_part_bytes(*symbols("T a d w"))
    T*a*d*w
    """
    return tokens * heads * head_dim * element_bytes


@formula(
    glyph="n_{kv}^{rep}",
    dimension=BYTE,
    source=ULYSSES,
    increasing="cp element_bytes head_dim key_value_heads tokens",
    curvature="convex",
)
def dealt_key_value_bytes(tokens: Any, key_value_heads: Any, head_dim: Any, element_bytes: Any, cp: Any) -> Any:
    """Bytes of keys and values that a device deals out by heads: 2 T max(a'_kv, c) d_h w.

    Assumes: with fewer key-value heads than devices each head goes to several.

    Source: Jacobs et al. 2023 section 3.2; counted for grouped heads: every device needs at least one head.

    >>> from sympy import symbols
    >>> dealt_key_value_bytes(*symbols("T a d w c"))
    2*T*d*w*Max(a, c)
    """
    return 2 * tokens * Max(key_value_heads, cp) * head_dim * element_bytes


@formula(
    glyph="n_{uly}",
    dimension=BYTE,
    source=ULYSSES,
    increasing="cp key_value_bytes query_bytes",
)
def ulysses_bytes(query_bytes: Any, key_value_bytes: Any, cp: Any) -> Any:
    """Bytes that a device sends in four all-to-alls, of queries, keys, values and results: (c-1)/c (2 Q_q + Q_kv).

    Assumes: a device keeps its own c-th part; key_value_bytes as of `dealt_key_value_bytes`. The backward pass sends
    as many.

    Source: Jacobs et al. 2023 section 3.2: 4 N h / P a device for equal heads.

    >>> from sympy import symbols
    >>> ulysses_bytes(*symbols("q k c"))
    (k + 2*q)*ring_share(c)
    """
    return ring_share(cp) * (2 * query_bytes + key_value_bytes)


@formula(
    glyph="T_{uly}",
    dimension=SECOND,
    source=ULYSSES,
    increasing="inner_ranks key_value_bytes outer_ranks query_bytes scale_out_half_bytes scale_out_latency "
    "scale_up_half_bytes scale_up_latency",
    decreasing="scale_out_bandwidth scale_out_efficiency scale_up_bandwidth scale_up_efficiency",
)
def ulysses_time(query_bytes: Any, key_value_bytes: Any, inner_ranks: Any, outer_ranks: Any) -> Any:
    """Time of the four all-to-alls of Ulysses on one side: queries, keys, values, and results back.

    The equation: 2 T_aa(Q_q) + 2 T_aa(Q_kv / 2).

    Assumes: one after another, not beside computation; c = q_u q_o devices; keys and values of equal width.

    Source: Jacobs et al. 2023 section 3.2, with `hierarchical_all_to_all_time`.

    >>> from sympy import symbols
    >>> ulysses_time(*symbols("q k"), 1, 1)
    0
    """
    queries = hierarchical_all_to_all_time(query_bytes, inner_ranks, outer_ranks)
    return 2 * queries + 2 * hierarchical_all_to_all_time(key_value_bytes / 2, inner_ranks, outer_ranks)


@formula(
    glyph="T_{gkv}",
    dimension=SECOND,
    source=LLAMA3,
    increasing="inner_ranks key_value_bytes outer_ranks scale_out_half_bytes scale_out_latency "
    "scale_up_half_bytes scale_up_latency",
    decreasing="scale_out_bandwidth scale_out_efficiency scale_up_bandwidth scale_up_efficiency",
)
def gathered_key_value_time(key_value_bytes: Any, inner_ranks: Any, outer_ranks: Any) -> Any:
    """Time to gather the keys and values of all c parts before the attention, forward: T_ag(c Q_kv).

    Assumes: not beside computation; key_value_bytes are a device's own, of c = q_u q_o; the backward pass gathers
    them again or keeps them.

    Source: Grattafiori et al. 2024 section 3.3.2: all-gather based context parallelism, with
    `hierarchical_all_gather_time`.

    >>> from sympy import symbols
    >>> gathered_key_value_time(symbols("n"), 1, 1)
    0
    """
    return hierarchical_all_gather_time(key_value_bytes * inner_ranks * outer_ranks, inner_ranks, outer_ranks)


@formula(
    glyph="T_{gkv}'",
    dimension=SECOND,
    source=LLAMA3,
    increasing="inner_ranks key_value_bytes outer_ranks scale_out_half_bytes scale_out_latency "
    "scale_up_half_bytes scale_up_latency",
    decreasing="scale_out_bandwidth scale_out_efficiency scale_up_bandwidth scale_up_efficiency",
)
def scattered_key_value_time(key_value_bytes: Any, inner_ranks: Any, outer_ranks: Any) -> Any:
    """Time to sum the gradients of all keys and values and scatter them to their parts, backward: T_rs(c Q_kv).

    Assumes: as `gathered_key_value_time`; gradients in the format of keys and values.

    Source: derivation: `gathered_key_value_time` run backwards.

    >>> from sympy import symbols
    >>> scattered_key_value_time(symbols("n"), 1, 1)
    0
    """
    return hierarchical_reduce_scatter_time(key_value_bytes * inner_ranks * outer_ranks, inner_ranks, outer_ranks)
