"""Kimi Delta Attention: a gated delta rule whose state decays by a factor of its own for every key channel.

Its products are those of `linear_attention`. Decays are as wide as keys, and come from a narrow projection; kernels
move them in w_st.
"""

from __future__ import annotations

from typing import Any

from sympy import Rational

from ..language.atoms import ceil_div
from ..language.dimension import BYTE, FLOP, ONE
from ..language.formula import formula
from ..language.symbols import flop
from ..sources import KIMI_LINEAR
from .linear_attention import delta_rule_flops, delta_solve_flops

HALF = Rational(1, 2)


@formula(
    glyph="N_{cd}",
    dimension=ONE,
    source=KIMI_LINEAR,
    increasing="hidden_size linear_key_head_dim linear_num_value_heads",
    curvature="convex",
)
def channel_decay_parameters(hidden_size: Any, linear_num_value_heads: Any, linear_key_head_dim: Any) -> Any:
    """Weights of the projection of a decay for every key channel, through the width of one key.

    The equation: h d_lk + d_lk a_lv d_lk.

    Assumes: every value head has a key's width of decays; their bias is counted apart.

    Source: Kimi Team 2025 section 4, neural parameterization: W_down and W_up of alpha.

    >>> from sympy import symbols
    >>> channel_decay_parameters(*symbols("h v d"))
    d**2*v + d*h
    """
    return hidden_size * linear_key_head_dim + linear_key_head_dim * linear_num_value_heads * linear_key_head_dim


@formula(
    glyph="N_{ng}",
    dimension=ONE,
    source=KIMI_LINEAR,
    increasing="hidden_size linear_num_value_heads linear_value_head_dim",
    curvature="convex",
)
def narrow_gate_parameters(hidden_size: Any, linear_num_value_heads: Any, linear_value_head_dim: Any) -> Any:
    """Weights of an output gate's projection through the width of one value.

    The equation: h d_lv + d_lv a_lv d_lv.

    Assumes: no biases.

    Source: Kimi Team 2025 section 4, neural parameterization: the low-rank output gate.

    >>> from sympy import symbols
    >>> narrow_gate_parameters(*symbols("h v e"))
    e**2*v + e*h
    """
    return hidden_size * linear_value_head_dim + linear_value_head_dim * linear_num_value_heads * linear_value_head_dim


@formula(
    glyph="Q_{cd}",
    dimension=BYTE,
    source=KIMI_LINEAR,
    increasing="activation_bytes linear_key_head_dim linear_num_value_heads linear_value_head_dim micro_batch "
    "sequence state_bytes",
)
def channel_delta_bytes(
    micro_batch: Any,
    sequence: Any,
    ssm_chunk_size: Any,
    linear_num_value_heads: Any,
    linear_key_head_dim: Any,
    linear_value_head_dim: Any,
    activation_bytes: Any,
    state_bytes: Any,
) -> Any:
    """Bytes of a chunked delta rule with channelwise decays, forward: each tensor once for each of its six kernels.

    The equation: b a_lv (s (w (11 d_lk + 6 d_lv + 5 c + 3) + w_st (5 d_lk + c / 2)) + 2 ceil(s / c) d_lk d_lv w).

    Decays: in w, sums out in w_st. Scores of diagonal blocks: queries, keys and sums in; blocks of a quarter of the
    chunk out. The other scores and the inverse: queries, keys, sums and blocks in; both matrices of c a token out, one
    of them cleared before. Solved form: keys, values, inverse and sums in; keys solved and decayed, values out.
    States: keys solved and decayed, solved values in; new values and states out. Results: queries, sums, new values,
    scores and states in; results out. Rates three times.

    Assumes: a key head for each value head; states between kernels in the format of activations.

    Source: counted from flash-linear-attention (kda/chunk_fwd.py, chunk_kda_fwd with the gate in its kernel, and the
    kernels that it calls); the algorithm is that of Kimi Team 2025 section 3.1.

    >>> from sympy import symbols
    >>> channel_delta_bytes(1, 64, 64, *symbols("a k v w f"))
    a*(64*f*(5*k + 32) + 2*k*v*w + 64*w*(11*k + 6*v + 323))
    """
    keys, values, chunk = linear_key_head_dim, linear_value_head_dim, ssm_chunk_size
    token = activation_bytes * (11 * keys + 6 * values + 5 * chunk + 3) + state_bytes * (5 * keys + HALF * chunk)
    states = 2 * ceil_div(sequence, chunk) * keys * values * activation_bytes
    return micro_batch * linear_num_value_heads * (sequence * token + states)


@formula(
    glyph="W_{cd'}",
    dimension=FLOP,
    source=KIMI_LINEAR,
    increasing="flop linear_key_head_dim linear_num_value_heads linear_value_head_dim micro_batch sequence",
)
def channel_delta_backward_flops(
    micro_batch: Any,
    sequence: Any,
    ssm_chunk_size: Any,
    linear_num_value_heads: Any,
    linear_key_head_dim: Any,
    linear_value_head_dim: Any,
) -> Any:
    """FLOPs of the backward pass of a chunked delta rule with channelwise decays.

    The equation: 2 (W_dn + W_dnt) + W_dnt + 4 b ceil(s / c) c a_lv d_lk d_lv: twice products and solves; and what was
    not kept, again: solved keys and values, and two products with states.

    Assumes: both score matrices of each chunk, one of them inverted, are kept.

    Source: flash-linear-attention (kda/chunk_bwd.py, chunk_kda_bwd) calls recompute_w_u_fwd and
    chunk_gated_delta_rule_fwd_h first; Kimi Team 2025 section 3.1.

    >>> from sympy import symbols
    >>> channel_delta_backward_flops(1, 64, 64, 1, 128, 128)
    26214400*flop
    """
    shape = (micro_batch, sequence, ssm_chunk_size, linear_num_value_heads, linear_key_head_dim, linear_value_head_dim)
    tokens = micro_batch * ceil_div(sequence, ssm_chunk_size) * ssm_chunk_size
    again = 4 * tokens * linear_num_value_heads * linear_key_head_dim * linear_value_head_dim * flop
    return 2 * delta_rule_flops(*shape) + 3 * delta_solve_flops(*shape) + again


@formula(
    glyph="Q_{cd'}",
    dimension=BYTE,
    source=KIMI_LINEAR,
    increasing="activation_bytes linear_key_head_dim linear_num_value_heads linear_value_head_dim micro_batch "
    "sequence state_bytes",
)
def channel_delta_backward_bytes(
    micro_batch: Any,
    sequence: Any,
    ssm_chunk_size: Any,
    linear_num_value_heads: Any,
    linear_key_head_dim: Any,
    linear_value_head_dim: Any,
    activation_bytes: Any,
    state_bytes: Any,
) -> Any:
    """Bytes of the backward pass of a chunked delta rule with channelwise decays, each tensor once a kernel.

    The equation: b a_lv (s (w (19 d_lk + 15 d_lv + 3 c + 4) + w_st (20 d_lk + 4 c + 4)) + 4 ceil(s / c) d_lk d_lv w).

    Sums of decays again. Solved form again: queries, keys, values and inverse in; keys solved, both decayed, and values
    out. States again: keys solved and decayed, solved values in; new values and states out. Scores and values inside
    chunks: new values, results' gradient and scores in; two gradients out. Passing back: three of keys' width, two
    gradients in; values' and states' out. Gradients through states and solves: queries, keys, sums, values, new values,
    two gradients, the inverse and both states in; of queries, keys, decays and the inverse in w_st, and of values, out.
    Inside chunks: queries, keys, sums and both scores' gradients in; gradients of queries, keys and decays in and out.
    Reversed sums of decays' gradient, and the gate's; casts of the three gradients from w_st.

    Assumes: as forward; both score matrices are kept.

    Source: counted from flash-linear-attention (kda/chunk_bwd.py, chunk_kda_bwd, and the kernels that it calls); the
    algorithm is that of Kimi Team 2025 section 3.1.

    >>> from sympy import symbols
    >>> channel_delta_backward_bytes(1, 64, 64, *symbols("a k v w f"))
    a*(64*f*(20*k + 260) + 4*k*v*w + 64*w*(19*k + 15*v + 196))
    """
    keys, values, chunk = linear_key_head_dim, linear_value_head_dim, ssm_chunk_size
    token = activation_bytes * (19 * keys + 15 * values + 3 * chunk + 4) + state_bytes * (20 * keys + 4 * chunk + 4)
    states = 4 * ceil_div(sequence, chunk) * keys * values * activation_bytes
    return micro_batch * linear_num_value_heads * (sequence * token + states)
