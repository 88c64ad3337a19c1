"""RWKV-7: a generalized delta rule, S = S (diag(w) + a b^T) + v k^T, with vectors for decay, removal and addition.

The state is a d_lk x d_lv matrix a head. Decays, rates, gates and what values take from the first layer's pass through
narrow widths; every layer's two parts read mixtures of a token and the one before (token shift).
"""

from __future__ import annotations

from typing import Any

from ..language.atoms import ceil_div
from ..language.dimension import BYTE, FLOP, ONE
from ..language.formula import formula
from ..language.symbols import flop
from ..sources import RWKV7


@formula(
    glyph="N_{wkv}",
    dimension=ONE,
    source=RWKV7,
    increasing="hidden_size linear_key_head_dim linear_num_value_heads linear_value_head_dim",
    curvature="convex",
)
def wkv_parameters(
    hidden_size: Any, linear_num_value_heads: Any, linear_key_head_dim: Any, linear_value_head_dim: Any
) -> Any:
    """Weights of a time mixing's wide projections: receptance, key and value in; and out.

    The equation: 2 h a_lv (d_lk + d_lv).

    Assumes: no biases; narrow projections are counted apart.

    Source: Peng et al. 2025 section 4, equations (3) to (12).

    >>> wkv_parameters(768, 12, 64, 64)
    2359296
    """
    return 2 * hidden_size * linear_num_value_heads * (linear_key_head_dim + linear_value_head_dim)


@formula(
    glyph="N_{nar}",
    dimension=ONE,
    source=RWKV7,
    increasing="hidden_size inner width",
    curvature="convex",
)
def narrow_parameters(hidden_size: Any, inner: Any, width: Any) -> Any:
    """Weights of a projection through a narrow width: k (h + h').

    Assumes: a product into the narrow width k, an elementwise function, and a product out of it to h' features; a bias
    is counted apart.

    Source: Peng et al. 2025 section 4, equation (1): loramlp.

    >>> narrow_parameters(768, 64, 768)
    98304
    """
    return inner * (hidden_size + width)


@formula(
    glyph="W_{wkv}",
    dimension=FLOP,
    source=RWKV7,
    increasing="flop linear_key_head_dim linear_num_value_heads linear_value_head_dim micro_batch sequence",
)
def wkv_flops(
    micro_batch: Any,
    sequence: Any,
    ssm_chunk_size: Any,
    linear_num_value_heads: Any,
    linear_key_head_dim: Any,
    linear_value_head_dim: Any,
) -> Any:
    """FLOPs of the products of a chunked generalized delta rule, without its triangular solve.

    The equation: b ceil(s / c) c a_lv (8 c d_lk + 6 c d_lv + 8 d_lk d_lv): four kinds of scores, three products of
    scores with values, and four with the state.

    Assumes: the last chunk is padded.

    Source: Peng et al. 2025 appendix on the chunked form; counted from flash-linear-attention
    (generalized_delta_rule/dplr/chunk.py, chunk_dplr_fwd).

    >>> wkv_flops(1, 16, 16, 1, 64, 64)
    753664*flop
    """
    tokens = micro_batch * ceil_div(sequence, ssm_chunk_size) * ssm_chunk_size
    scores = ssm_chunk_size * (8 * linear_key_head_dim + 6 * linear_value_head_dim)
    states = 8 * linear_key_head_dim * linear_value_head_dim
    return tokens * linear_num_value_heads * (scores + states) * flop


@formula(
    glyph="Q_{wkv}",
    dimension=BYTE,
    source=RWKV7,
    increasing="activation_bytes linear_key_head_dim linear_num_value_heads linear_value_head_dim micro_batch "
    "sequence state_bytes",
)
def wkv_bytes(
    micro_batch: Any,
    sequence: Any,
    ssm_chunk_size: Any,
    linear_num_value_heads: Any,
    linear_key_head_dim: Any,
    linear_value_head_dim: Any,
    activation_bytes: Any,
    state_bytes: Any,
) -> Any:
    """Bytes of a chunked generalized delta rule, forward: what its six kernels move, each tensor once a kernel.

    The equation: b a_lv (s (w (15 d_lk + 8 d_lv + 4 c) + w_st (4 d_lk + 6 c)) + 2 ceil(s / c) d_lk d_lv w).

    Sums of decays, inclusive and not: in w, both out in w_st. Scores: four operands and both sums in; four decayed
    operands, two scores in w and two in w_st out. Inverse: in and out. Solved form: an operand, values, inverse and
    scores in; two out. States: three operands, values and solved values in; new values and states out. Results:
    queries, values, new values, two scores and states in; results out.

    Assumes: states between kernels in the format of activations.

    Source: counted from flash-linear-attention (generalized_delta_rule/dplr/chunk.py, chunk_dplr_fwd, and the kernels
    that it calls); the rule is that of Peng et al. 2025.

    >>> from sympy import symbols
    >>> wkv_bytes(1, 16, 16, *symbols("a k v w f"))
    a*(16*f*(4*k + 96) + 2*k*v*w + 16*w*(15*k + 8*v + 64))
    """
    keys, values, chunk = linear_key_head_dim, linear_value_head_dim, ssm_chunk_size
    token = activation_bytes * (15 * keys + 8 * values + 4 * chunk) + state_bytes * (4 * keys + 6 * chunk)
    states = 2 * ceil_div(sequence, chunk) * keys * values * activation_bytes
    return micro_batch * linear_num_value_heads * (sequence * token + states)


@formula(
    glyph="W_{wkv'}",
    dimension=FLOP,
    source=RWKV7,
    increasing="flop linear_key_head_dim linear_num_value_heads linear_value_head_dim micro_batch sequence",
)
def wkv_backward_flops(
    micro_batch: Any,
    sequence: Any,
    ssm_chunk_size: Any,
    linear_num_value_heads: Any,
    linear_key_head_dim: Any,
    linear_value_head_dim: Any,
) -> Any:
    """FLOPs of the backward pass of a chunked generalized delta rule: twice its products; all but results again.

    The equation: 2 W_wkv + b ceil(s / c) c a_lv (8 c d_lk + 2 c d_lv + 6 d_lk d_lv).

    Assumes: only the operands are kept.

    Source: flash-linear-attention (ChunkDPLRDeltaRuleFunction.backward) calls all forward kernels but the last first.

    >>> wkv_backward_flops(1, 16, 16, 1, 64, 64)
    2064384*flop
    """
    shape = (micro_batch, sequence, ssm_chunk_size, linear_num_value_heads, linear_key_head_dim, linear_value_head_dim)
    tokens = micro_batch * ceil_div(sequence, ssm_chunk_size) * ssm_chunk_size
    scores = ssm_chunk_size * (8 * linear_key_head_dim + 2 * linear_value_head_dim)
    again = scores + 6 * linear_key_head_dim * linear_value_head_dim
    return 2 * wkv_flops(*shape) + tokens * linear_num_value_heads * again * flop


@formula(
    glyph="Q_{wkv'}",
    dimension=BYTE,
    source=RWKV7,
    increasing="activation_bytes linear_key_head_dim linear_num_value_heads linear_value_head_dim micro_batch "
    "sequence state_bytes",
)
def wkv_backward_bytes(
    micro_batch: Any,
    sequence: Any,
    ssm_chunk_size: Any,
    linear_num_value_heads: Any,
    linear_key_head_dim: Any,
    linear_value_head_dim: Any,
    activation_bytes: Any,
    state_bytes: Any,
) -> Any:
    """Bytes of the backward pass of a chunked generalized delta rule, each tensor once a kernel.

    The equation: b a_lv (s (w (41 d_lk + 22 d_lv + 4 c) + w_st (12 d_lk + 16 c)) + 5 ceil(s / c) d_lk d_lv w).

    All forward kernels but the last: 14 of keys' width and 5 of values' in w, 4 in w_st, 2 c in w and 6 c in w_st, and
    states once. Scores: values, new values, results' gradient and a score in; a gradient, and two in w_st out. Passing
    back: three operands, two gradients in; states' and values' out. Values: a score, an operand, results' and states'
    gradients in; one out. Operands: three, four of values' width and both states in; four gradients out. Solved form:
    inverse, scores, three of values' width, two of keys' in; two scores' gradients and one of each width out. Inside
    chunks: four operands, sums, four scores' gradients and four gradients in; four and two of decays out; these summed,
    and cast.

    Assumes: as forward; only the operands are kept.

    Source: counted from flash-linear-attention (ChunkDPLRDeltaRuleFunction.backward, and the kernels that it calls).

    >>> from sympy import symbols
    >>> wkv_backward_bytes(1, 16, 16, *symbols("a k v w f"))
    a*(16*f*(12*k + 256) + 5*k*v*w + 16*w*(41*k + 22*v + 64))
    """
    keys, values, chunk = linear_key_head_dim, linear_value_head_dim, ssm_chunk_size
    token = activation_bytes * (41 * keys + 22 * values + 4 * chunk) + state_bytes * (12 * keys + 16 * chunk)
    states = 5 * ceil_div(sequence, chunk) * keys * values * activation_bytes
    return micro_batch * linear_num_value_heads * (sequence * token + states)


@formula(
    glyph="W_{uw}",
    dimension=FLOP,
    source=RWKV7,
    increasing="flop linear_key_head_dim linear_num_value_heads linear_value_head_dim tokens",
    curvature="affine",
)
def wkv_step_flops(
    tokens: Any, linear_num_value_heads: Any, linear_key_head_dim: Any, linear_value_head_dim: Any
) -> Any:
    """FLOPs of a step of RWKV-7: 9 T a_lv d_lk d_lv.

    The decay of the state (1), its product with the removal key (2), the outer product that removes (2), that which
    adds (2), and the product with the receptance (2).

    Assumes: what is done once a channel and not once an element of the state is left out.

    Source: Peng et al. 2025 section 4, equation (17).

    >>> from sympy import symbols
    >>> wkv_step_flops(*symbols("T v d e"))
    9*T*d*e*flop*v
    """
    return 9 * tokens * linear_num_value_heads * linear_key_head_dim * linear_value_head_dim * flop


@formula(
    glyph="Q_{sh}",
    dimension=BYTE,
    source=RWKV7,
    increasing="activation_bytes hidden_size tokens width",
    curvature="convex",
)
def token_shift_bytes(tokens: Any, hidden_size: Any, width: Any, activation_bytes: Any) -> Any:
    """Bytes of a token shift: T w (4 h + h'): differences to the token before, and mixtures of h' features together.

    Assumes: two kernels: tokens in, differences out; both in, all mixtures out.

    Source: counted from flash-linear-attention (token_shift, fused_addcmul_rwkv7); Peng et al. 2025 equation (3).

    >>> from sympy import symbols
    >>> token_shift_bytes(*symbols("T h x w"))
    T*w*(4*h + x)
    """
    return tokens * activation_bytes * (4 * hidden_size + width)


@formula(
    glyph="Q_{sh'}",
    dimension=BYTE,
    source=RWKV7,
    increasing="activation_bytes hidden_size tokens width",
    curvature="convex",
)
def token_shift_backward_bytes(tokens: Any, hidden_size: Any, width: Any, activation_bytes: Any) -> Any:
    """Bytes of a token shift's gradients: T w (6 h + h').

    Assumes: tokens, differences and the mixtures' gradients in; gradients of both out; that of the differences once
    more in, and what it adds out.

    Source: counted as `token_shift_bytes`.

    >>> from sympy import symbols
    >>> token_shift_backward_bytes(*symbols("T h x w"))
    T*w*(6*h + x)
    """
    return tokens * activation_bytes * (6 * hidden_size + width)


@formula(
    glyph="Q_{op}",
    dimension=BYTE,
    source=RWKV7,
    increasing="activation_bytes linear_key_head_dim linear_num_value_heads linear_value_head_dim tokens",
    curvature="convex",
)
def wkv_operand_bytes(
    tokens: Any,
    linear_num_value_heads: Any,
    linear_key_head_dim: Any,
    linear_value_head_dim: Any,
    activation_bytes: Any,
) -> Any:
    """Bytes of what makes the operands of RWKV-7's rule and its results: T a_lv w (9 d_lk + 10 d_lv).

    Decays in and out; keys and rates in, removal keys, keys and their replacement out; values, the first layer's and a
    gate in, values out: 7 and 4. Results in and out of their norm; receptance, keys, values, results and gate in, gated
    results out: 2 and 6.

    Assumes: one fused kernel for each of these.

    Source: counted from flash-linear-attention (layers/rwkv7.py); Peng et al. 2025 equations (4) to (16).

    >>> from sympy import symbols
    >>> wkv_operand_bytes(*symbols("T v d e w"))
    T*v*w*(9*d + 10*e)
    """
    widths = 9 * linear_key_head_dim + 10 * linear_value_head_dim
    return tokens * linear_num_value_heads * activation_bytes * widths


@formula(
    glyph="Q_{op'}",
    dimension=BYTE,
    source=RWKV7,
    increasing="activation_bytes linear_key_head_dim linear_num_value_heads linear_value_head_dim tokens",
    curvature="convex",
)
def wkv_operand_backward_bytes(
    tokens: Any,
    linear_num_value_heads: Any,
    linear_key_head_dim: Any,
    linear_value_head_dim: Any,
    activation_bytes: Any,
) -> Any:
    """Bytes of the gradients of RWKV-7's operands and results: T a_lv w (14 d_lk + 17 d_lv).

    Operands: what they are made of (3 and 3) and their gradients (4 and 1) in, the others out (3 and 3). Results:
    receptance, keys, values, gate, normed results and the gradient in (2 and 4), gradients of the first five out
    (2 and 3), and those through the norm (3).

    Assumes: one fused kernel for each.

    Source: counted as `wkv_operand_bytes`.

    >>> from sympy import symbols
    >>> wkv_operand_backward_bytes(*symbols("T v d e w"))
    T*v*w*(14*d + 17*e)
    """
    widths = 14 * linear_key_head_dim + 17 * linear_value_head_dim
    return tokens * linear_num_value_heads * activation_bytes * widths
