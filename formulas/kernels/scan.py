"""Recurrent layers: the time of chunked scans, and what backward passes of scans and convolutions need in training.

Shapes as in `ssm`, `linear_attention` and `convolution`. A backward pass has two products for each of the forward
pass, and computes again what the kernels do not keep: scores and states of the chunks.
"""

from __future__ import annotations

from typing import Any

from ..language.atoms import Max, ceil_div
from ..language.dimension import BYTE, FLOP, SECOND
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
from ..sources import DELTANET, MAMBA, MAMBA2
from .linear_attention import delta_rule_flops, delta_solve_flops
from .ssm import ssd_flops


@formula(
    glyph="T_{cs}",
    dimension=SECOND,
    source=MAMBA2,
    increasing="kernels launch_latency traffic_bytes work_flops",
    decreasing="attention_efficiency matrix_rate memory_bandwidth memory_efficiency",
    curvature="convex",
)
def chunked_scan_time(work_flops: Any, traffic_bytes: Any, kernels: Any) -> Any:
    """Time of a chunked scan, forward: its products at the flash kernel's part of the matrix peak, or its traffic.

    The equation: max(W / (F eta_a), Q / (B_m eta_m)) + N_ker lambda.

    Assumes: N_ker kernels, one after the other, whose products reach as much of the peak as a fused attention kernel's,
    which they resemble.

    Source: Dao and Gu 2024 section 6 and listing 1.

    >>> from sympy import symbols
    >>> chunked_scan_time(*symbols("W Q K"))
    K*launch_latency + Max(Q/(memory_bandwidth*memory_efficiency), W/(attention_efficiency*matrix_rate))
    """
    rate = matrix_rate * attention_efficiency
    return Max(work_flops / rate, traffic_bytes / (memory_bandwidth * memory_efficiency)) + kernels * launch_latency


@formula(
    glyph="T_{cs'}",
    dimension=SECOND,
    source=MAMBA2,
    increasing="kernels launch_latency traffic_bytes work_flops",
    decreasing="attention_backward_efficiency matrix_rate memory_bandwidth memory_efficiency",
    curvature="convex",
)
def chunked_scan_backward_time(work_flops: Any, traffic_bytes: Any, kernels: Any) -> Any:
    """Time of a chunked scan's backward pass, from its own work and traffic.

    The equation: max(W / (F eta_a'), Q / (B_m eta_m)) + N_ker lambda.

    Assumes: N_ker kernels, those that compute again what was not kept among them; their products reach as much of the
    peak as the backward kernel of attention.

    Source: Dao and Gu 2024 section 6; as forward.

    >>> from sympy import symbols
    >>> chunked_scan_backward_time(*symbols("W Q K"))
    K*launch_latency + Max(Q/(memory_bandwidth*memory_efficiency), W/(attention_backward_efficiency*matrix_rate))
    """
    rate = matrix_rate * attention_backward_efficiency
    return Max(work_flops / rate, traffic_bytes / (memory_bandwidth * memory_efficiency)) + kernels * launch_latency


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
    """FLOPs of the backward pass of Mamba-2's scan: twice the forward products, and three of the four once more.

    The equation: 2 W_ssd + b ceil(s / c) c (2 c n_s g + 2 c d_s a_s + 2 d_s n_s a_s).

    Assumes: each forward product has two gradients; the kernels keep neither scores nor states, and the product of
    results' gradient and channels is computed twice: for the scores' gradient, and for that of the decays.

    Source: mamba_ssm (ssd_combined.py, _mamba_chunk_scan_combined_bwd) calls _bmm_chunk_fwd and _chunk_state_fwd first,
    and _chunk_scan_bwd_ddAcs_stable beside _chunk_scan_bwd_dcb.

    >>> from sympy import symbols
    >>> ssd_backward_flops(1, 256, 256, 1, *symbols("a d n")).expand()
    2560*a*d*flop*n + 393216*a*d*flop + 393216*flop*n
    """
    tokens = micro_batch * ceil_div(sequence, ssm_chunk_size) * ssm_chunk_size
    scores = 2 * ssm_chunk_size * ssm_state_size * groups
    heads = 2 * ssm_head_dim * ssm_num_heads * (ssm_chunk_size + ssm_state_size)
    forward = ssd_flops(micro_batch, sequence, ssm_chunk_size, groups, ssm_num_heads, ssm_head_dim, ssm_state_size)
    return 2 * forward + tokens * (scores + heads) * flop


@formula(
    glyph="Q_{ssd'}",
    dimension=BYTE,
    source=MAMBA2,
    increasing="activation_bytes micro_batch sequence ssm_groups ssm_head_dim ssm_num_heads ssm_state_size state_bytes",
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
    """Bytes of the backward pass of Mamba-2's scan: what its kernels read and write, each tensor once a kernel.

    The equation: b s (11 w (a_s d_s + g_s n_s) + 8 g_s n_s w_st + a_s (5 w + 39 w_st))
    + b ceil(s / c) (a_s d_s n_s (5 w + 6 w_st) + 8 c^2 g_s w_st).

    Channels x, results' gradient y, and gradient of x: states again (x), gradients of states (y), of channels (x, y and
    out), of B (x), of C (y), of scores (x, y), of decays (x, y): 11. B and C: scores again (2), states (1), gradients
    of states, channels, B and C (1 each), and of each of them through the scores (2 in and 2 out): 11; their
    gradients in w_st are written, summed over splits of heads (in and out) and read: 8. Scores are written and read
    twice, their gradient written, summed (in and out) and read twice: 8. States in w_st: written, passed (in and out);
    their gradients written; both read where gradients are passed: 6; both are written there in w, and read by the
    gradients of channels and B, and of C: 5. Time steps in w: copied (2), decays again (1), and their gradient (in and
    out, 2). Time steps, sums and their gradients in w_st: decays (2), states (2), gradients of states (1), channels
    (4), B (4, and 2 of a sum), C (3), scores (2), decays (5); reversed sums (6) and sums (6) of the parts, and the
    last kernel (2): 39.

    Assumes: as forward; heads of a group are not split over blocks, and one block has the rows of a chunk.

    Source: counted from mamba_ssm (ssd_combined.py, _mamba_chunk_scan_combined_bwd, without a gate).

    >>> from sympy import symbols
    >>> ssd_backward_bytes(1, 1, 1, *symbols("g a d n w f"))
    a*d*n*(6*f + 5*w) + a*(39*f + 5*w) + 8*f*g*n + 8*f*g + 11*w*(a*d + g*n)
    """
    tokens, chunks = micro_batch * sequence, micro_batch * ceil_div(sequence, ssm_chunk_size)
    inner, shared = ssm_num_heads * ssm_head_dim, ssm_groups * ssm_state_size
    streams = tokens * (11 * activation_bytes * (inner + shared) + 8 * shared * state_bytes)
    time_steps = tokens * ssm_num_heads * (5 * activation_bytes + 39 * state_bytes)
    states = chunks * inner * ssm_state_size * (5 * activation_bytes + 6 * state_bytes)
    return streams + time_steps + states + 8 * chunks * ssm_chunk_size**2 * ssm_groups * state_bytes


@formula(
    glyph="Q_{scan'}",
    dimension=BYTE,
    source=MAMBA,
    increasing="activation_bytes ssm_inner_size ssm_state_size tokens",
    curvature="convex",
)
def selective_scan_backward_bytes(tokens: Any, ssm_inner_size: Any, ssm_state_size: Any, activation_bytes: Any) -> Any:
    """Bytes of the backward pass of Mamba-1's fused scan, T w (9 h_s + 4 n_s).

    Assumes: channels, time steps, gate, result and the gated result's gradient in; gradients of channels, time steps
    and gate out, and the gated result once more, which the next product's gradient reads; B and C in and their
    gradients out. States are computed again on chip.

    Source: Gu and Dao 2023 section 3.3.2 (recomputation); operands counted from mamba_ssm (selective_scan_interface.py,
    MambaInnerFn.backward: selective_scan_cuda.bwd with recompute_out_z).

    >>> from sympy import symbols
    >>> selective_scan_backward_bytes(*symbols("T i n w"))
    T*w*(9*i + 4*n)
    """
    return tokens * activation_bytes * (9 * ssm_inner_size + 4 * ssm_state_size)


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

    The equation: 3 T h' w_x + 2 h' k_c w_g.

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
    """Bytes of the backward pass of a chunked delta rule: what its kernels read and write, each tensor once a kernel.

    The equation: b a_lv (s (w (20 d_lk + 15 d_lv + 2 c + 3) + 15 w_st) + 4 ceil(s / c) d_lk d_lv w).

    Solved keys and values again: keys, values in, both out. States again: keys, solved keys and values in, new values
    and states out. Values' gradient inside chunks: queries, keys, results' gradient in; it out. Passing back: queries,
    keys, solved keys, both gradients in; values' and states' out. Gradients of queries, keys and solved keys: queries,
    keys, new values, two gradients and both states in; three out. Of the solved form: keys, values and two gradients
    in; two out. Sum of the keys' two gradients: two in, one out. Twice the inverse of a chunk (c a token); rates three
    times in w; decays and their gradients 15 times in w_st.

    Assumes: queries and keys repeated for every value head; the inverse is kept.

    Source: counted from flash-linear-attention (gated_delta_rule/chunk.py, chunk_gated_delta_rule_bwd, and the kernels
    that it calls); the algorithm is that of Yang et al. 2024 section 3.3.

    >>> from sympy import symbols
    >>> delta_rule_backward_bytes(1, 64, 64, *symbols("a k v w f"))
    a*(960*f + 4*k*v*w + 64*w*(20*k + 15*v + 131))
    """
    keys, values = linear_key_head_dim, linear_value_head_dim
    token = activation_bytes * (20 * keys + 15 * values + 2 * ssm_chunk_size + 3) + 15 * state_bytes
    states = 4 * ceil_div(sequence, ssm_chunk_size) * keys * values * activation_bytes
    return micro_batch * linear_num_value_heads * (sequence * token + states)
