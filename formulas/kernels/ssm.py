"""Layers with a recurrent state: Mamba-2's chunked scan (SSD), and Mamba-1's selective scan.

Shapes: b sequences of s tokens; Mamba-2 has a_s heads of d_s channels with a state of n_s each, in chunks of c_s
tokens, and g sets of B and C; Mamba-1 has h_s channels with a state of n_s each.
"""

from __future__ import annotations

from typing import Any

from ..language.atoms import ceil_div
from ..language.dimension import BYTE, FLOP, ONE
from ..language.formula import formula
from ..language.symbols import flop
from ..sources import MAMBA, MAMBA2


@formula(
    glyph="N_{m2}",
    dimension=ONE,
    source=MAMBA2,
    increasing="hidden_size ssm_groups ssm_head_dim ssm_num_heads ssm_state_size",
    curvature="convex",
)
def mamba2_parameters(
    hidden_size: Any, ssm_num_heads: Any, ssm_head_dim: Any, ssm_groups: Any, ssm_state_size: Any
) -> Any:
    """Weights of a Mamba-2 layer's two projections: in to gate, channels, B, C and time steps; and out.

    The equation: h (3 a_s d_s + 2 g_s n_s + a_s).

    Assumes: no biases; convolution, norm and the three vectors over heads are counted apart.

    Source: Dao and Gu 2024 section 7.1, figure 6.

    >>> from sympy import symbols
    >>> mamba2_parameters(*symbols("h a d g n"))
    h*(3*a*d + a + 2*g*n)
    """
    inner = ssm_num_heads * ssm_head_dim
    return hidden_size * (3 * inner + 2 * ssm_groups * ssm_state_size + ssm_num_heads)


@formula(
    glyph="N_{m1}",
    dimension=ONE,
    source=MAMBA,
    increasing="hidden_size ssm_inner_size ssm_state_size ssm_time_step_rank",
    curvature="convex",
)
def mamba1_parameters(hidden_size: Any, ssm_inner_size: Any, ssm_state_size: Any, ssm_time_step_rank: Any) -> Any:
    """Weights of a Mamba-1 layer's four projections: in (twice), time step, B and C, time step up, and out.

    The equation: h_s (3 h + 2 r_s + 2 n_s).

    Assumes: no biases; convolution, A and D are counted apart.

    Source: Gu and Dao 2023 section 3.4, figure 3, and algorithm 2.

    >>> from sympy import symbols
    >>> mamba1_parameters(*symbols("h i n r"))
    i*(3*h + 2*n + 2*r)
    """
    return ssm_inner_size * (3 * hidden_size + 2 * ssm_time_step_rank + 2 * ssm_state_size)


@formula(
    glyph="W_{ssd}",
    dimension=FLOP,
    source=MAMBA2,
    increasing="flop groups micro_batch sequence ssm_head_dim ssm_num_heads ssm_state_size",
)
def ssd_flops(
    micro_batch: Any,
    sequence: Any,
    ssm_chunk_size: Any,
    groups: Any,
    ssm_num_heads: Any,
    ssm_head_dim: Any,
    ssm_state_size: Any,
) -> Any:
    """FLOPs of the four products inside the chunks of Mamba-2's scan: scores, results, states and their outputs.

    The equation: b ceil(s / c) c (2 c n_s g + 2 c d_s a_s + 4 d_s n_s a_s).

    Assumes: the last chunk is padded; g is the number of score matrices: the groups, or the heads where B and C are
    repeated for each head first. Decays are elementwise.

    Source: Dao and Gu 2024 listing 1, steps 1, 2 and 4.

    >>> from sympy import symbols
    >>> ssd_flops(1, 256, 256, 1, *symbols("a d n"))
    flop*(1024*a*d*n + 131072*a*d + 131072*n)
    """
    tokens = micro_batch * ceil_div(sequence, ssm_chunk_size) * ssm_chunk_size
    scores = 2 * ssm_chunk_size * ssm_state_size * groups
    results = 2 * ssm_chunk_size * ssm_head_dim * ssm_num_heads
    states = 4 * ssm_head_dim * ssm_state_size * ssm_num_heads
    return tokens * (scores + results + states) * flop


@formula(
    glyph="W_{pass}",
    dimension=FLOP,
    source=MAMBA2,
    increasing="flop micro_batch sequence ssm_head_dim ssm_num_heads ssm_state_size",
    decreasing="ssm_chunk_size",
)
def state_passing_flops(
    micro_batch: Any,
    sequence: Any,
    ssm_chunk_size: Any,
    ssm_num_heads: Any,
    ssm_head_dim: Any,
    ssm_state_size: Any,
) -> Any:
    """FLOPs of passing states between chunks as one product of n + 1 decays a side: 2 b (n + 1)^2 a_s d_s n_s.

    Assumes: n = ceil(s / c_s) chunks and an initial state; a scan would need only 2 b n a_s d_s n_s.

    Source: Dao and Gu 2024 listing 1, step 3.

    >>> from sympy import symbols
    >>> state_passing_flops(1, 2048, 256, *symbols("a d n"))
    162*a*d*flop*n
    """
    chunks = ceil_div(sequence, ssm_chunk_size) + 1
    return 2 * micro_batch * chunks**2 * ssm_num_heads * ssm_head_dim * ssm_state_size * flop


@formula(
    glyph="Q_{ssd}",
    dimension=BYTE,
    source=MAMBA2,
    increasing="activation_bytes micro_batch sequence ssm_groups ssm_head_dim ssm_num_heads ssm_state_size state_bytes",
)
def ssd_bytes(
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
    """Bytes of Mamba-2's scan, forward: what its five kernels read and write, each tensor once a kernel.

    The equation: b s (w (3 a_s d_s + 4 g_s n_s) + a_s (w + 6 w_st))
    + b ceil(s / c) (2 a_s d_s n_s (w + w_st) + 2 c^2 g_s w_st).

    Decays: time steps in; they and their sums out, in w_st. States: channels, B, time steps and sums in; states out.
    Passing: states in; out again in w. Scores: B and C in; a matrix a chunk and group out, in w_st. Results: scores,
    channels, C, time steps, sums and passed states in; results out. So channels move three times, B and C four times,
    states 2 (w + w_st), scores 2 w_st, and a time step w + 6 w_st.

    Assumes: what a kernel's other blocks read again comes from L2; the gate is another kernel's; the last chunk's
    scores are padded, its time steps are not.

    Source: counted from the kernels of Dao and Gu 2024 (mamba_ssm, ssd_combined.py, _mamba_chunk_scan_combined_fwd).

    >>> from sympy import symbols
    >>> ssd_bytes(1, 256, 256, *symbols("g a d n w f"))
    a*d*n*(2*f + 2*w) + 256*a*(6*f + w) + 131072*f*g + 256*w*(3*a*d + 4*g*n)
    """
    tokens, chunks = micro_batch * sequence, micro_batch * ceil_div(sequence, ssm_chunk_size)
    inner, shared = ssm_num_heads * ssm_head_dim, ssm_groups * ssm_state_size
    streams = tokens * activation_bytes * (3 * inner + 4 * shared)
    time_steps = tokens * ssm_num_heads * (activation_bytes + 6 * state_bytes)
    states = chunks * inner * ssm_state_size * (2 * activation_bytes + 2 * state_bytes)
    return streams + time_steps + states + 2 * chunks * ssm_chunk_size**2 * ssm_groups * state_bytes


@formula(
    glyph="W_{step}",
    dimension=FLOP,
    source=MAMBA,
    increasing="flop ssm_state_size tokens width",
    curvature="affine",
)
def state_output_flops(tokens: Any, width: Any, ssm_state_size: Any) -> Any:
    """FLOPs of reading a state at every token: 2 T h' n_s, the product with C.

    Assumes: h' channels (a_s d_s in Mamba-2); the update of the state is elementwise.

    Source: Gu and Dao 2023 algorithm 2, y = C h.

    >>> from sympy import symbols
    >>> state_output_flops(*symbols("T w n"))
    2*T*flop*n*w
    """
    return 2 * tokens * width * ssm_state_size * flop


@formula(
    glyph="W_{upd}",
    dimension=FLOP,
    source=MAMBA,
    increasing="flop ssm_state_size tokens width",
    curvature="affine",
)
def state_update_flops(tokens: Any, width: Any, ssm_state_size: Any) -> Any:
    """FLOPs of a step of the recurrence at every token, elementwise: 4 T h' n_s.

    Assumes: decay times state, input times B, their sum, and the decay's own product with the time step; exponentials
    are left out.

    Source: Gu and Dao 2023 equations (2a) and (4): h = A h + B x.

    >>> from sympy import symbols
    >>> state_update_flops(*symbols("T w n"))
    4*T*flop*n*w
    """
    return 4 * tokens * width * ssm_state_size * flop


@formula(
    glyph="Q_{scan}",
    dimension=BYTE,
    source=MAMBA,
    increasing="activation_bytes ssm_inner_size ssm_state_size tokens",
    curvature="convex",
)
def selective_scan_bytes(tokens: Any, ssm_inner_size: Any, ssm_state_size: Any, activation_bytes: Any) -> Any:
    """Bytes of Mamba-1's fused scan, forward: channels, time steps and gate in, results before and after the gate out.

    The equation: T w (5 h_s + 2 n_s).

    Assumes: the state stays on chip, but for one of each 2048 tokens, which is left out; every channel's block reads B
    and C, but for the first from L2.

    Source: Gu and Dao 2023 section 3.3.2: O(BLD + DN) reads and writes; operands counted from mamba_ssm
    (selective_scan_fwd_kernel.cuh: out and out_z).

    >>> from sympy import symbols
    >>> selective_scan_bytes(*symbols("T i n w"))
    T*w*(5*i + 2*n)
    """
    return tokens * activation_bytes * (5 * ssm_inner_size + 2 * ssm_state_size)


@formula(
    glyph="A_{st}",
    dimension=BYTE,
    source=MAMBA,
    increasing="micro_batch ssm_state_size state_bytes width",
    curvature="affine",
)
def recurrent_state_bytes(micro_batch: Any, width: Any, ssm_state_size: Any, state_bytes: Any) -> Any:
    """Bytes of the recurrent state of a layer: b h' n_s w_st, whatever the length of the sequence.

    Assumes: h' channels with a state of n_s each.

    Source: Gu and Dao 2023 section 3.1.

    >>> from sympy import symbols
    >>> recurrent_state_bytes(*symbols("b w n f"))
    b*f*n*w
    """
    return micro_batch * width * ssm_state_size * state_bytes
