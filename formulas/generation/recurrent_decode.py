"""A decode step of recurrent layers: the state of every sequence is read, moved on by the new tokens, and written.

Shapes: b sequences with n_q new tokens each; Mamba-2 has a_s heads of d_s channels with a state of n_s each and g_s
sets of B and C; Mamba-1 has h_s channels with a state of n_s each; a gated delta rule has a d_lk x d_lv matrix for each
of a_lv value heads, lightning attention a d_lv x d_lv one; a gated linear recurrent unit one number for each of h_r
channels. After each token the state is kept, so that a rejected draft can be taken back: with one new token
a state is read once and written once. Bytes do not depend on the context.
"""

from __future__ import annotations

from typing import Any

from ..kernels.ssm import recurrent_state_bytes, state_output_flops, state_update_flops
from ..language.dimension import BYTE, FLOP
from ..language.formula import formula
from ..language.symbols import flop
from ..sources import DELTANET, GRIFFIN, LIGHTNING, MAMBA, MAMBA2


@formula(
    glyph="Q_{u2}",
    dimension=BYTE,
    source=MAMBA2,
    increasing="activation_bytes micro_batch new_tokens ssm_groups ssm_head_dim ssm_num_heads ssm_state_size "
    "state_bytes",
    curvature="convex",
)
def mamba2_step_bytes(
    micro_batch: Any,
    new_tokens: Any,
    ssm_groups: Any,
    ssm_num_heads: Any,
    ssm_head_dim: Any,
    ssm_state_size: Any,
    activation_bytes: Any,
    state_bytes: Any,
) -> Any:
    """Bytes of the update of Mamba-2's states: states in and out; channels in and out, B, C and time steps.

    The equation: b (1 + n_q) a_s d_s n_s w_st + b n_q w (2 a_s d_s + 2 g_s n_s + a_s).

    Assumes: one fused kernel; A, D and the bias of time steps are one number a head, which is small.

    Source: counted from the kernel selective_state_update of mamba_ssm (Dao and Gu 2024): state, x, dt, B and C are
    loaded, state and out are stored.

    >>> from sympy import symbols
    >>> mamba2_step_bytes(1, 1, *symbols("g a d n w f"))
    2*a*d*f*n + w*(2*a*d + a + 2*g*n)
    """
    inner = ssm_num_heads * ssm_head_dim
    state = recurrent_state_bytes(micro_batch, inner, ssm_state_size, state_bytes)
    streams = 2 * inner + 2 * ssm_groups * ssm_state_size + ssm_num_heads
    return (1 + new_tokens) * state + micro_batch * new_tokens * activation_bytes * streams


@formula(
    glyph="Q_{u1}",
    dimension=BYTE,
    source=MAMBA,
    increasing="activation_bytes micro_batch new_tokens ssm_inner_size ssm_state_size state_bytes statistic_bytes",
    curvature="convex",
)
def mamba1_step_bytes(
    micro_batch: Any,
    new_tokens: Any,
    ssm_inner_size: Any,
    ssm_state_size: Any,
    activation_bytes: Any,
    state_bytes: Any,
    statistic_bytes: Any,
) -> Any:
    """Bytes of the update of Mamba-1's states: states in and out; the matrix A; channels, time steps and gate in.

    The equation: b (1 + n_q) h_s n_s w_st + h_s n_s w_s + b n_q w (4 h_s + 2 n_s).

    Assumes: one fused kernel, the gate included; A is kept in FP32 (w_s) and read once for all sequences.

    Source: counted from the kernel selective_state_update of mamba_ssm (Gu and Dao 2023): state, x, dt, A, B, C and z
    are loaded, state and out are stored.

    >>> from sympy import symbols
    >>> mamba1_step_bytes(1, 1, *symbols("i n w f s"))
    2*f*i*n + i*n*s + w*(4*i + 2*n)
    """
    state = recurrent_state_bytes(micro_batch, ssm_inner_size, ssm_state_size, state_bytes)
    streams = 4 * ssm_inner_size + 2 * ssm_state_size
    decay = ssm_inner_size * ssm_state_size * statistic_bytes
    return (1 + new_tokens) * state + decay + micro_batch * new_tokens * activation_bytes * streams


@formula(
    glyph="Q_{ud}",
    dimension=BYTE,
    source=DELTANET,
    increasing="activation_bytes linear_key_head_dim linear_num_value_heads linear_value_head_dim micro_batch "
    "new_tokens state_bytes width",
    curvature="convex",
)
def matrix_step_bytes(
    micro_batch: Any,
    new_tokens: Any,
    linear_num_value_heads: Any,
    linear_key_head_dim: Any,
    linear_value_head_dim: Any,
    width: Any,
    activation_bytes: Any,
    state_bytes: Any,
) -> Any:
    """Bytes of a step of a layer whose state is a matrix a head: states in and out, and h' features of every token.

    The equation: b (1 + n_q) a_lv d_lk d_lv w_st + b n_q w h'.

    A gated delta rule reads queries, keys, values, a decay and a rate a head and writes results: h' = 2 a_lk d_lk +
    2 a_lv d_lv + 2 a_lv. Where every key channel has a decay of its own, they are d_lk a head.

    Assumes: one fused kernel; the value heads of a key head find its queries and keys in a cache.

    Source: counted from the kernels fused_recurrent_gated_delta_rule and fused_recurrent_kda of flash-linear-attention
    (Yang et al. 2024).

    >>> from sympy import symbols
    >>> matrix_step_bytes(1, 1, *symbols("v d e h w f"))
    2*d*e*f*v + h*w
    """
    inner = linear_num_value_heads * linear_value_head_dim
    state = recurrent_state_bytes(micro_batch, inner, linear_key_head_dim, state_bytes)
    return (1 + new_tokens) * state + micro_batch * new_tokens * activation_bytes * width


@formula(
    glyph="W_{us}",
    dimension=FLOP,
    source=MAMBA,
    increasing="flop ssm_state_size tokens width",
    curvature="affine",
)
def selective_step_flops(tokens: Any, width: Any, ssm_state_size: Any) -> Any:
    """FLOPs of a step of a state-space layer: 6 T h' n_s, four of the update and two of the product with C.

    Assumes: h' channels (a_s d_s in Mamba-2); exponentials are left out.

    Source: Gu and Dao 2023 algorithm 2, as `state_update_flops` and `state_output_flops`.

    >>> from sympy import symbols
    >>> selective_step_flops(*symbols("T w n"))
    6*T*flop*n*w
    """
    return state_update_flops(tokens, width, ssm_state_size) + state_output_flops(tokens, width, ssm_state_size)


@formula(
    glyph="W_{ud}",
    dimension=FLOP,
    source=DELTANET,
    increasing="flop linear_key_head_dim linear_num_value_heads linear_value_head_dim tokens",
    curvature="affine",
)
def delta_step_flops(
    tokens: Any, linear_num_value_heads: Any, linear_key_head_dim: Any, linear_value_head_dim: Any
) -> Any:
    """FLOPs of a step of a gated delta rule: 7 T a_lv d_lk d_lv.

    The decay of the state (1), its product with the key (2), the outer product that corrects it (2), and its product
    with the query (2).

    Assumes: what is done once a channel and not once an element of the state is left out.

    Source: Yang et al. 2024 equation (10): S = alpha S (I - beta k k^T) + beta v k^T, and o = S q.

    >>> from sympy import symbols
    >>> delta_step_flops(*symbols("T v d e"))
    7*T*d*e*flop*v
    """
    return 7 * tokens * linear_num_value_heads * linear_key_head_dim * linear_value_head_dim * flop


@formula(
    glyph="Q_{ula}",
    dimension=BYTE,
    source=LIGHTNING,
    increasing="activation_bytes linear_num_value_heads linear_value_head_dim micro_batch new_tokens state_bytes",
    curvature="convex",
)
def lightning_step_bytes(
    micro_batch: Any,
    new_tokens: Any,
    linear_num_value_heads: Any,
    linear_value_head_dim: Any,
    activation_bytes: Any,
    state_bytes: Any,
) -> Any:
    """Bytes of a step of lightning attention: states in and out; queries, keys and values in, results out.

    The equation: b (1 + n_q) a_lv d_lv^2 w_st + 4 b n_q a_lv d_lv w.

    Assumes: one fused kernel; a head's decay is one number, which is small.

    Source: counted from vLLM (lightning_attn.py, _linear_attn_decode_kernel); the recurrence is that of Qin et al.
    2024 equation (4).

    >>> from sympy import symbols
    >>> lightning_step_bytes(1, 1, *symbols("a d w f"))
    2*a*d**2*f + 4*a*d*w
    """
    width = linear_num_value_heads * linear_value_head_dim
    state = recurrent_state_bytes(micro_batch, width, linear_value_head_dim, state_bytes)
    return (1 + new_tokens) * state + 4 * micro_batch * new_tokens * width * activation_bytes


@formula(
    glyph="W_{ula}",
    dimension=FLOP,
    source=LIGHTNING,
    increasing="flop linear_num_value_heads linear_value_head_dim tokens",
    curvature="affine",
)
def lightning_step_flops(tokens: Any, linear_num_value_heads: Any, linear_value_head_dim: Any) -> Any:
    """FLOPs of a step of lightning attention: 5 T a_lv d_lv^2.

    The decay of the state (1), the outer product of key and value, added (2), and its product with the query (2).

    Assumes: what is done once a channel and not once an element of the state is left out.

    Source: Qin et al. 2024 equation (4): S = lambda S + k v^T, and o = q S.

    >>> from sympy import symbols
    >>> lightning_step_flops(*symbols("T a d"))
    5*T*a*d**2*flop
    """
    return 5 * tokens * linear_num_value_heads * linear_value_head_dim**2 * flop


@formula(
    glyph="Q_{ulru}",
    dimension=BYTE,
    source=GRIFFIN,
    increasing="activation_bytes lru_width micro_batch new_tokens state_bytes",
    curvature="convex",
)
def gated_lru_step_bytes(
    micro_batch: Any, new_tokens: Any, lru_width: Any, activation_bytes: Any, state_bytes: Any
) -> Any:
    """Bytes of a step of a gated linear recurrent unit: states in and out; branch and both gates in, results out.

    The equation: b (1 + n_q) h_r w_st + 4 b n_q h_r w.

    Assumes: one fused kernel; decays' parameters are one number a channel, which is small.

    Source: De et al. 2024 equations (1) to (4): what they read and give.

    >>> from sympy import symbols
    >>> gated_lru_step_bytes(1, 1, *symbols("r w f"))
    2*f*r + 4*r*w
    """
    state = recurrent_state_bytes(micro_batch, lru_width, 1, state_bytes)
    return (1 + new_tokens) * state + 4 * micro_batch * new_tokens * lru_width * activation_bytes


@formula(
    glyph="Q_{ucv}",
    dimension=BYTE,
    source=MAMBA,
    increasing="activation_bytes conv_kernel micro_batch new_tokens weight_bytes width",
    curvature="convex",
)
def convolution_step_bytes(
    micro_batch: Any, new_tokens: Any, width: Any, conv_kernel: Any, activation_bytes: Any, weight_bytes: Any
) -> Any:
    """Bytes of a step of a causal convolution: inputs in and results out, the window in and out, and the taps.

    The equation: 2 b n_q h' w_x + 2 b h' k_c w_x + h' k_c w_w.

    Assumes: one fused kernel with its activation; the window is shifted, so that all of it is written.

    Source: counted from the kernel causal_conv1d_update (Gu and Dao 2023).

    >>> from sympy import symbols
    >>> convolution_step_bytes(1, 1, *symbols("w k x y"))
    2*k*w*x + k*w*y + 2*w*x
    """
    streams = 2 * micro_batch * new_tokens * width * activation_bytes
    window = 2 * micro_batch * width * conv_kernel * activation_bytes
    return streams + window + width * conv_kernel * weight_bytes
