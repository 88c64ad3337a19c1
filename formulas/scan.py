"""Recurrent layers in training: the time of chunked scans, and what backward passes of scans and convolutions need.

Shapes as in `ssm`, `linear_attention` and `convolution`. A backward pass has two products for each of the forward
pass, and computes again what the kernels do not keep: scores and states of the chunks.
"""

from __future__ import annotations

from typing import Any

from .atoms import Max, ceil_div
from .dimension import BYTE, FLOP, SECOND
from .formula import formula
from .linear_attention import delta_rule_flops, delta_solve_flops
from .sources import DELTANET, MAMBA, MAMBA2
from .ssm import ssd_flops
from .symbols import (
    attention_backward_efficiency,
    attention_efficiency,
    flop,
    launch_latency,
    matrix_rate,
    memory_bandwidth,
    memory_efficiency,
)


@formula(
    glyph="T_{cs}",
    dimension=SECOND,
    source=MAMBA2,
    increasing="launch_latency traffic_bytes work_flops",
    decreasing="attention_efficiency matrix_rate memory_bandwidth memory_efficiency",
    curvature="convex",
)
def chunked_scan_time(work_flops: Any, traffic_bytes: Any) -> Any:
    """Time of a chunked scan, forward: its products at the flash kernel's part of the matrix peak, or its traffic.

    The equation: max(W / (F eta_a), Q / (B_m eta_m)) + 5 lambda.

    Assumes: five kernels (decays, states of chunks, passing of states, scores, results) whose products reach as much of
    the peak as a fused attention kernel's, which they resemble.

    Source: Dao and Gu 2024 section 6 and listing 1; the kernels are those of mamba_ssm (ssd_combined.py), and of
    flash-linear-attention for the delta rule.

    >>> from sympy import symbols
    >>> chunked_scan_time(*symbols("W Q")).has(attention_efficiency)
    True
    """
    return (
        Max(work_flops / (matrix_rate * attention_efficiency), traffic_bytes / (memory_bandwidth * memory_efficiency))
        + 5 * launch_latency
    )


@formula(
    glyph="T_{cs'}",
    dimension=SECOND,
    source=MAMBA2,
    increasing="launch_latency traffic_bytes work_flops",
    decreasing="attention_backward_efficiency matrix_rate memory_bandwidth memory_efficiency",
    curvature="convex",
)
def chunked_scan_backward_time(work_flops: Any, traffic_bytes: Any) -> Any:
    """Time of a chunked scan's backward pass, from its own work and traffic.

    The equation: max(W / (F eta_a'), Q / (B_m eta_m)) + 12 lambda.

    Assumes: twelve kernels: four that compute decays, scores and states again, and eight of gradients; their products
    reach as much of the peak as the backward kernel of attention.

    Source: counted from mamba_ssm (ssd_combined.py, _mamba_chunk_scan_combined_bwd).

    >>> from sympy import symbols
    >>> chunked_scan_backward_time(*symbols("W Q")).has(attention_backward_efficiency)
    True
    """
    rate = matrix_rate * attention_backward_efficiency
    return Max(work_flops / rate, traffic_bytes / (memory_bandwidth * memory_efficiency)) + 12 * launch_latency


@formula(
    glyph="W_{ssd'}",
    dimension=FLOP,
    source=MAMBA2,
    increasing="flop groups micro_batch sequence ssm_head_dim ssm_num_heads ssm_state_size",
)
def ssd_backward_flops(
    micro_batch: Any,
    sequence: Any,
    ssm_chunk_size: Any,
    groups: Any,
    ssm_num_heads: Any,
    ssm_head_dim: Any,
    ssm_state_size: Any,
) -> Any:
    """FLOPs of the backward pass of Mamba-2's scan: twice the forward products, and scores and states once more.

    The equation: 2 W_ssd + b ceil(s / c) c (2 c n_s g + 2 d_s n_s a_s).

    Assumes: each forward product has two gradients; the kernels keep neither scores nor states.

    Source: mamba_ssm (ssd_combined.py, _mamba_chunk_scan_combined_bwd) calls _bmm_chunk_fwd and _chunk_state_fwd first.

    >>> from sympy import symbols
    >>> ssd_backward_flops(1, 256, 256, 1, *symbols("a d n")).expand()
    2560*a*d*flop*n + 262144*a*d*flop + 393216*flop*n
    """
    tokens = micro_batch * ceil_div(sequence, ssm_chunk_size) * ssm_chunk_size
    again = 2 * ssm_chunk_size * ssm_state_size * groups + 2 * ssm_head_dim * ssm_state_size * ssm_num_heads
    forward = ssd_flops(micro_batch, sequence, ssm_chunk_size, groups, ssm_num_heads, ssm_head_dim, ssm_state_size)
    return 2 * forward + tokens * again * flop


@formula(
    glyph="Q_{ssd'}",
    dimension=BYTE,
    source=MAMBA2,
    increasing="activation_bytes micro_batch sequence ssm_groups ssm_head_dim ssm_num_heads ssm_state_size state_bytes",
    decreasing="ssm_chunk_size",
)
def ssd_backward_bytes(
    micro_batch: Any,
    sequence: Any,
    ssm_chunk_size: Any,
    ssm_groups: Any,
    ssm_num_heads: Any,
    ssm_head_dim: Any,
    ssm_state_size: Any,
    activation_bytes: Any,
    state_bytes: Any,
) -> Any:
    """Bytes of the backward pass of Mamba-2's scan: inputs and output gradient in, gradients out; states and theirs.

    The equation: b s w (3 a_s d_s + 4 g_s n_s) + 2 b s a_s w_st + 8 b ceil(s / c) a_s d_s n_s w_st.

    Assumes: each tensor once; the states of the chunks, and their gradients, move as states do in the forward pass:
    written, read and written where they are passed on, and read.

    Source: counted from mamba_ssm (ssd_combined.py, _mamba_chunk_scan_combined_bwd).

    >>> from sympy import symbols
    >>> ssd_backward_bytes(1, 256, 256, *symbols("g a d n w f"))
    8*a*d*f*n + 512*a*f + 256*w*(3*a*d + 4*g*n)
    """
    tokens = micro_batch * sequence
    inner = ssm_num_heads * ssm_head_dim
    streams = tokens * activation_bytes * (3 * inner + 4 * ssm_groups * ssm_state_size)
    states = 8 * micro_batch * ceil_div(sequence, ssm_chunk_size) * inner * ssm_state_size
    return streams + 2 * tokens * ssm_num_heads * state_bytes + states * state_bytes


@formula(
    glyph="Q_{scan'}",
    dimension=BYTE,
    source=MAMBA,
    increasing="activation_bytes ssm_inner_size ssm_state_size tokens",
    curvature="convex",
)
def selective_scan_backward_bytes(tokens: Any, ssm_inner_size: Any, ssm_state_size: Any, activation_bytes: Any) -> Any:
    """Bytes of the backward pass of Mamba-1's fused scan, T w (8 h_s + 4 n_s).

    Assumes: channels, time steps, gate, result and its gradient in; gradients of channels, time steps and gate out; B
    and C in and their gradients out. States are computed again on chip.

    Source: Gu and Dao 2023 section 3.3.2 (recomputation); operands counted from mamba_ssm (selective_scan_bwd).

    >>> from sympy import symbols
    >>> selective_scan_backward_bytes(*symbols("T i n w"))
    T*w*(8*i + 4*n)
    """
    return tokens * activation_bytes * (8 * ssm_inner_size + 4 * ssm_state_size)


@formula(
    glyph="Q_{cv'}",
    dimension=BYTE,
    source=MAMBA,
    increasing="activation_bytes conv_kernel gradient_bytes tokens width",
    curvature="convex",
)
def convolution_backward_bytes(
    tokens: Any, width: Any, conv_kernel: Any, activation_bytes: Any, gradient_bytes: Any
) -> Any:
    """Bytes of a causal convolution's backward pass: input and gradient in, input gradient out; gradients of taps.

    The equation: 3 T omega w_x + 2 omega k_c w_g.

    Assumes: one fused kernel with the gradient of its activation, which is computed again; taps' gradients are added
    to what is there.

    Source: counted from the kernel of Gu and Dao 2023 (causal_conv1d_bwd).

    >>> from sympy import symbols
    >>> convolution_backward_bytes(*symbols("T w k x g"))
    3*T*w*x + 2*g*k*w
    """
    return 3 * tokens * width * activation_bytes + 2 * width * conv_kernel * gradient_bytes


@formula(
    glyph="W_{dn'}",
    dimension=FLOP,
    source=DELTANET,
    increasing="flop linear_key_head_dim linear_num_value_heads linear_value_head_dim micro_batch sequence",
)
def delta_rule_backward_flops(
    micro_batch: Any,
    sequence: Any,
    ssm_chunk_size: Any,
    linear_num_value_heads: Any,
    linear_key_head_dim: Any,
    linear_value_head_dim: Any,
) -> Any:
    """FLOPs of the backward pass of a chunked delta rule: twice products and solves; and what was not kept, again.

    The equation: 2 (W_dn + W_dnt) + W_dnt + b ceil(s / c) c a_lv (4 d_lk d_lv + 2 c d_lk).

    Assumes: solved keys and values, two products with states, and query scores are computed again; the inverse of each
    chunk is kept.

    Source: flash-linear-attention (chunk_gated_delta_rule_bwd) calls recompute_w_u_fwd and
    chunk_gated_delta_rule_fwd_h first; Yang et al. 2024 section 3.3.

    >>> from sympy import symbols
    >>> delta_rule_backward_flops(1, 64, 64, 1, 128, 128)
    27262976*flop
    """
    shape = (
        micro_batch,
        sequence,
        ssm_chunk_size,
        linear_num_value_heads,
        linear_key_head_dim,
        linear_value_head_dim,
    )
    tokens = micro_batch * ceil_div(sequence, ssm_chunk_size) * ssm_chunk_size
    again = 4 * linear_key_head_dim * linear_value_head_dim + 2 * ssm_chunk_size * linear_key_head_dim
    products, solves = delta_rule_flops(*shape), delta_solve_flops(*shape)
    return 2 * products + 3 * solves + tokens * linear_num_value_heads * again * flop


@formula(
    glyph="Q_{dn'}",
    dimension=BYTE,
    source=DELTANET,
    increasing="activation_bytes linear_key_head_dim linear_num_value_heads linear_value_head_dim micro_batch "
    "sequence state_bytes",
    decreasing="ssm_chunk_size",
)
def delta_rule_backward_bytes(
    micro_batch: Any,
    sequence: Any,
    ssm_chunk_size: Any,
    linear_num_value_heads: Any,
    linear_key_head_dim: Any,
    linear_value_head_dim: Any,
    activation_bytes: Any,
    state_bytes: Any,
) -> Any:
    """Bytes of the backward pass of a chunked delta rule: inputs and output gradient in, gradients out; states.

    The equation: b a_lv (s w (4 d_lk + 3 d_lv) + 4 ceil(s / c) d_lk d_lv w_st).

    Assumes: queries, keys, values and the output's gradient in, three gradients out; one state a chunk and its
    gradient are written and read once.

    Source: counted from Yang et al. 2024 section 3.3 and flash-linear-attention (chunk_gated_delta_rule_bwd).

    >>> from sympy import symbols
    >>> delta_rule_backward_bytes(1, 64, 64, *symbols("a k v w f"))
    a*(4*f*k*v + 64*w*(4*k + 3*v))
    """
    width = 4 * linear_key_head_dim + 3 * linear_value_head_dim
    states = 4 * ceil_div(sequence, ssm_chunk_size) * linear_key_head_dim * linear_value_head_dim
    return micro_batch * linear_num_value_heads * (sequence * activation_bytes * width + states * state_bytes)
