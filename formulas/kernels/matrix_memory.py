"""The matrix memory of an xLSTM (mLSTM): a d_lk x d_lv matrix a head with one forget and one input gate, in chunks.

Beside the matrix a head keeps the sum of its keys, which normalizes results, and the largest exponent so far.
"""

from __future__ import annotations

from typing import Any

from ..language.atoms import ceil_div
from ..language.dimension import BYTE, FLOP
from ..language.formula import formula
from ..language.symbols import flop
from ..sources import TFLA, XLSTM


@formula(
    glyph="W_{mx}",
    dimension=FLOP,
    source=XLSTM,
    increasing="flop linear_key_head_dim linear_num_value_heads linear_value_head_dim micro_batch sequence",
)
def matrix_memory_flops(
    micro_batch: Any,
    sequence: Any,
    ssm_chunk_size: Any,
    linear_num_value_heads: Any,
    linear_key_head_dim: Any,
    linear_value_head_dim: Any,
) -> Any:
    """FLOPs of the products of a chunked matrix memory.

    The equation: b ceil(s / c) c a_lv (2 c (d_lk + d_lv) + 4 d_lk d_lv + 2 d_lk): scores and their product with the
    values; two products with the state, and one with the sum of keys.

    Assumes: the last chunk is padded; gates are elementwise.

    Source: Beck et al. 2025 section 3.2; counted from the modules of transformers (modeling_xlstm.py).

    >>> from sympy import symbols
    >>> matrix_memory_flops(1, 64, 64, 1, 256, 512)
    39878656*flop
    """
    tokens = micro_batch * ceil_div(sequence, ssm_chunk_size) * ssm_chunk_size
    inside = 2 * ssm_chunk_size * (linear_key_head_dim + linear_value_head_dim)
    states = 4 * linear_key_head_dim * linear_value_head_dim + 2 * linear_key_head_dim
    return tokens * linear_num_value_heads * (inside + states) * flop


@formula(
    glyph="Q_{mx}",
    dimension=BYTE,
    source=TFLA,
    increasing="activation_bytes linear_key_head_dim linear_num_value_heads linear_value_head_dim micro_batch "
    "sequence statistic_bytes",
    decreasing="ssm_chunk_size",
)
def matrix_memory_bytes(
    micro_batch: Any,
    sequence: Any,
    ssm_chunk_size: Any,
    linear_num_value_heads: Any,
    linear_key_head_dim: Any,
    linear_value_head_dim: Any,
    activation_bytes: Any,
    statistic_bytes: Any,
) -> Any:
    """Bytes of a chunked matrix memory, forward: what its two kernels read and write, each tensor once a kernel.

    The equation: b a_lv (s (w (3 d_lk + 3 d_lv + 4) + 2 w_s) + 2 ceil(s / c) d_lk d_lv w).

    States: keys, values and gates in; states out. Results: queries, keys, values, gates and states in; results out,
    with the normalizer and the largest exponent in FP32.

    Assumes: states between kernels in the format of activations; sums of keys are small beside them.

    Source: Beck et al. 2025, Tiled Flash Linear Attention, section 3.

    >>> from sympy import symbols
    >>> matrix_memory_bytes(1, 64, 64, *symbols("a k v w s"))
    a*(2*k*v*w + 128*s + 64*w*(3*k + 3*v + 4))
    """
    keys, values = linear_key_head_dim, linear_value_head_dim
    token = activation_bytes * (3 * keys + 3 * values + 4) + 2 * statistic_bytes
    states = 2 * ceil_div(sequence, ssm_chunk_size) * keys * values * activation_bytes
    return micro_batch * linear_num_value_heads * (sequence * token + states)


@formula(
    glyph="W_{mx'}",
    dimension=FLOP,
    source=TFLA,
    increasing="flop linear_key_head_dim linear_num_value_heads linear_value_head_dim micro_batch sequence",
)
def matrix_memory_backward_flops(
    micro_batch: Any,
    sequence: Any,
    ssm_chunk_size: Any,
    linear_num_value_heads: Any,
    linear_key_head_dim: Any,
    linear_value_head_dim: Any,
) -> Any:
    """FLOPs of the backward pass of a chunked matrix memory: twice the products; states and scores again.

    The equation: 2 W_mx + b ceil(s / c) c a_lv (2 d_lk d_lv + 2 c (2 d_lk + d_lv)).

    Assumes: three kernels compute the scores that they need, or their gradients, each for itself.

    Source: Beck et al. 2025, Tiled Flash Linear Attention, section 3: gradients of queries, keys and values in kernels
    of their own.

    >>> from sympy import symbols
    >>> matrix_memory_backward_flops(1, 64, 64, 1, 256, 512)
    104923136*flop
    """
    shape = (micro_batch, sequence, ssm_chunk_size, linear_num_value_heads, linear_key_head_dim, linear_value_head_dim)
    tokens = micro_batch * ceil_div(sequence, ssm_chunk_size) * ssm_chunk_size
    scores = 2 * ssm_chunk_size * (2 * linear_key_head_dim + linear_value_head_dim)
    again = tokens * linear_num_value_heads * (2 * linear_key_head_dim * linear_value_head_dim + scores) * flop
    return 2 * matrix_memory_flops(*shape) + again


@formula(
    glyph="Q_{mx'}",
    dimension=BYTE,
    source=TFLA,
    increasing="activation_bytes linear_key_head_dim linear_num_value_heads linear_value_head_dim micro_batch "
    "sequence statistic_bytes",
    decreasing="ssm_chunk_size",
)
def matrix_memory_backward_bytes(
    micro_batch: Any,
    sequence: Any,
    ssm_chunk_size: Any,
    linear_num_value_heads: Any,
    linear_key_head_dim: Any,
    linear_value_head_dim: Any,
    activation_bytes: Any,
    statistic_bytes: Any,
) -> Any:
    """Bytes of the backward pass of a chunked matrix memory, each tensor once a kernel.

    The equation: b a_lv (s (w (12 d_lk + 8 d_lv + 10) + 10 w_s) + 5 ceil(s / c) d_lk d_lv w).

    States again: keys, values in; states out. Passing back: queries, results' gradient in; states' gradient out.
    Gradients of values: queries, keys, results' gradient, states' gradient in. Of queries: keys, values, results'
    gradient, states in. Of keys: queries, values, results' gradient, states' gradient in. Each has its own out. Of the
    gates: queries, keys and their gradients in. Gates five times in w; normalizer and exponent in four kernels, and the
    gates' gradients, in FP32.

    Assumes: as forward; results' gradient of a value's width.

    Source: counted from Beck et al. 2025, Tiled Flash Linear Attention, section 3 (mlstm_kernels, xl_chunk).

    >>> from sympy import symbols
    >>> matrix_memory_backward_bytes(1, 64, 64, *symbols("a k v w s"))
    a*(5*k*v*w + 640*s + 64*w*(12*k + 8*v + 10))
    """
    keys, values = linear_key_head_dim, linear_value_head_dim
    token = activation_bytes * (12 * keys + 8 * values + 10) + 10 * statistic_bytes
    states = 5 * ceil_div(sequence, ssm_chunk_size) * keys * values * activation_bytes
    return micro_batch * linear_num_value_heads * (sequence * token + states)


@formula(
    glyph="W_{um}",
    dimension=FLOP,
    source=XLSTM,
    increasing="flop linear_key_head_dim linear_num_value_heads linear_value_head_dim tokens",
    curvature="affine",
)
def matrix_memory_step_flops(
    tokens: Any, linear_num_value_heads: Any, linear_key_head_dim: Any, linear_value_head_dim: Any
) -> Any:
    """FLOPs of a step of a matrix memory: 5 T a_lv d_lk d_lv: decay (1), outer product added (2), product (2).

    Assumes: what is done once a channel and not once an element of the state is left out.

    Source: Beck et al. 2024 section 2.3, equations (19) to (21).

    >>> from sympy import symbols
    >>> matrix_memory_step_flops(*symbols("T v d e"))
    5*T*d*e*flop*v
    """
    return 5 * tokens * linear_num_value_heads * linear_key_head_dim * linear_value_head_dim * flop
