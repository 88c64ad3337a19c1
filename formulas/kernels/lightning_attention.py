"""Lightning attention: linear attention whose heads have fixed decays, in chunks of c_s tokens.

Shapes: b sequences of s tokens; a_lv heads, whose keys and values are both d_lv wide; a head's state is a d_lv x d_lv
matrix. A chunk has scores of its own tokens; what is before it comes from the state.
"""

from __future__ import annotations

from typing import Any

from ..language.atoms import ceil_div
from ..language.dimension import BYTE, FLOP, ONE
from ..language.formula import formula
from ..language.symbols import flop
from ..sources import LIGHTNING


@formula(
    glyph="N_{la}",
    dimension=ONE,
    source=LIGHTNING,
    increasing="hidden_size linear_num_value_heads linear_value_head_dim",
    curvature="affine",
)
def lightning_parameters(hidden_size: Any, linear_num_value_heads: Any, linear_value_head_dim: Any) -> Any:
    """Weights of a layer's projections: queries, keys, values and gate in; and out: 5 h a_lv d_lv.

    Assumes: no biases; the norm of the results is counted apart. Decays are no parameters.

    Source: MiniMax 2025 (MiniMax-01, arXiv 2501.08313) section 2.2, figure 3.

    >>> from sympy import symbols
    >>> lightning_parameters(*symbols("h a d"))
    5*a*d*h
    """
    return 5 * hidden_size * linear_num_value_heads * linear_value_head_dim


@formula(
    glyph="W_{la}",
    dimension=FLOP,
    source=LIGHTNING,
    increasing="flop linear_num_value_heads linear_value_head_dim micro_batch sequence",
)
def lightning_flops(
    micro_batch: Any, sequence: Any, ssm_chunk_size: Any, linear_num_value_heads: Any, linear_value_head_dim: Any
) -> Any:
    """FLOPs of the four products of a chunk: scores and their values inside; the state's results, and its update.

    The equation: b ceil(s / c) c a_lv (4 c d_lv + 4 d_lv^2).

    Assumes: the last chunk is padded, and all pairs inside a chunk are computed; decays are elementwise.

    Source: Qin et al. 2024 algorithm 1.

    >>> from sympy import symbols
    >>> lightning_flops(1, 256, 256, *symbols("a d")).expand()
    1024*a*d**2*flop + 262144*a*d*flop
    """
    tokens = micro_batch * ceil_div(sequence, ssm_chunk_size) * ssm_chunk_size
    width = linear_num_value_heads * linear_value_head_dim
    return 4 * tokens * width * (ssm_chunk_size + linear_value_head_dim) * flop


@formula(
    glyph="Q_{la}",
    dimension=BYTE,
    source=LIGHTNING,
    increasing="activation_bytes linear_num_value_heads linear_value_head_dim micro_batch sequence state_bytes",
    decreasing="ssm_chunk_size",
)
def lightning_bytes(
    micro_batch: Any,
    sequence: Any,
    ssm_chunk_size: Any,
    linear_num_value_heads: Any,
    linear_value_head_dim: Any,
    activation_bytes: Any,
    state_bytes: Any,
) -> Any:
    """Bytes of lightning attention, forward: what its four kernels read and write, each tensor once a kernel.

    The equation: b a_lv (9 s d_lv w + 4 ceil(s / c) d_lv^2 w_st).

    Inside chunks: queries, keys, values in, results out (4). States of chunks: keys and values in (2), states out.
    Passing: states in and out. Of the states: queries and results in, results out (3); states in.

    Assumes: what a kernel's other blocks read again comes from L2.

    Source: counted from vLLM (lightning_attn.py: _fwd_diag_kernel, _fwd_kv_parallel, _fwd_kv_reduce,
    _fwd_none_diag_kernel); the algorithm is that of Qin et al. 2024.

    >>> from sympy import symbols
    >>> lightning_bytes(1, 256, 256, *symbols("a d w f")).expand()
    4*a*d**2*f + 2304*a*d*w
    """
    width, chunks = linear_num_value_heads * linear_value_head_dim, ceil_div(sequence, ssm_chunk_size)
    states = 4 * chunks * linear_value_head_dim * state_bytes
    return micro_batch * width * (9 * sequence * activation_bytes + states)


@formula(
    glyph="W_{la'}",
    dimension=FLOP,
    source=LIGHTNING,
    increasing="flop linear_num_value_heads linear_value_head_dim micro_batch sequence",
)
def lightning_backward_flops(
    micro_batch: Any, sequence: Any, ssm_chunk_size: Any, linear_num_value_heads: Any, linear_value_head_dim: Any
) -> Any:
    """FLOPs of the backward pass: two gradients of each product, and the scores of a chunk again.

    The equation: b ceil(s / c) c a_lv (10 c d_lv + 8 d_lv^2).

    Inside a chunk: scores again, gradients of scores, queries, keys and values. With states: gradients of queries, keys
    and values, and of the state.

    Assumes: as forward; states of chunks are kept.

    Source: Qin et al. 2024 algorithm 2.

    >>> from sympy import symbols
    >>> lightning_backward_flops(1, 256, 256, *symbols("a d")).expand()
    2048*a*d**2*flop + 655360*a*d*flop
    """
    tokens = micro_batch * ceil_div(sequence, ssm_chunk_size) * ssm_chunk_size
    width = linear_num_value_heads * linear_value_head_dim
    return tokens * width * (10 * ssm_chunk_size + 8 * linear_value_head_dim) * flop


@formula(
    glyph="Q_{la'}",
    dimension=BYTE,
    source=LIGHTNING,
    increasing="activation_bytes linear_num_value_heads linear_value_head_dim micro_batch sequence state_bytes",
    decreasing="ssm_chunk_size",
)
def lightning_backward_bytes(
    micro_batch: Any,
    sequence: Any,
    ssm_chunk_size: Any,
    linear_num_value_heads: Any,
    linear_value_head_dim: Any,
    activation_bytes: Any,
    state_bytes: Any,
) -> Any:
    """Bytes of the backward pass: what its four kernels read and write, each tensor once a kernel.

    The equation: b a_lv (18 s d_lv w + 5 ceil(s / c) d_lv^2 w_st).

    Inside chunks: queries, keys, values and results' gradient in, three gradients out (7). Gradients of states: queries
    and results' gradient in (2), states out. Passing: states in and out. Of the states: results' gradient in, that of
    queries in and out (3); keys and values in, their gradients in and out (6); states and their gradients in.

    Assumes: as forward; states of chunks are kept.

    Source: counted from lightning-attention (lightning_attn2_parallel.py: _bwd_diag_kernel, _bwd_dkv_parallel,
    _bwd_dkv_reduce, _bwd_none_diag_kernel) of Qin et al. 2024.

    >>> from sympy import symbols
    >>> lightning_backward_bytes(1, 256, 256, *symbols("a d w f")).expand()
    5*a*d**2*f + 4608*a*d*w
    """
    width, chunks = linear_num_value_heads * linear_value_head_dim, ceil_div(sequence, ssm_chunk_size)
    states = 5 * chunks * linear_value_head_dim * state_bytes
    return micro_batch * width * (18 * sequence * activation_bytes + states)
