"""Linear attention by a gated delta rule, in chunks of c_s tokens: the state is a d_lk x d_lv matrix a value head."""

from __future__ import annotations

from typing import Any

from ..language.atoms import ceil_div
from ..language.dimension import BYTE, FLOP, ONE
from ..language.formula import formula
from ..language.symbols import flop
from ..sources import DELTANET


@formula(
    glyph="N_{dn}",
    dimension=ONE,
    source=DELTANET,
    increasing="hidden_size linear_key_head_dim linear_num_key_heads linear_num_value_heads linear_value_head_dim",
    curvature="convex",
)
def delta_rule_parameters(
    hidden_size: Any,
    linear_num_key_heads: Any,
    linear_num_value_heads: Any,
    linear_key_head_dim: Any,
    linear_value_head_dim: Any,
) -> Any:
    """Weights of a gated delta layer's projections: queries, keys, values, gate, decay and rate in; and out.

    The equation: h (2 a_lk d_lk + 3 a_lv d_lv + 2 a_lv).

    Assumes: no biases; convolution, norm and the vectors over heads are counted apart.

    Source: Yang et al. 2024 section 3.4, figure 1.

    >>> from sympy import symbols
    >>> delta_rule_parameters(*symbols("h k v d e"))
    h*(2*d*k + 3*e*v + 2*v)
    """
    keys = 2 * linear_num_key_heads * linear_key_head_dim
    values = 3 * linear_num_value_heads * linear_value_head_dim
    return hidden_size * (keys + values + 2 * linear_num_value_heads)


@formula(
    glyph="W_{dn}",
    dimension=FLOP,
    source=DELTANET,
    increasing="flop linear_key_head_dim linear_num_value_heads linear_value_head_dim micro_batch sequence",
)
def delta_rule_flops(
    micro_batch: Any,
    sequence: Any,
    ssm_chunk_size: Any,
    linear_num_value_heads: Any,
    linear_key_head_dim: Any,
    linear_value_head_dim: Any,
) -> Any:
    """FLOPs of the products of a chunked gated delta rule, without its triangular solves.

    The equation: b ceil(s / c) c a_lv (2 c (2 d_lk + d_lv) + 6 d_lk d_lv): key and query scores, their product with
    the new values; and three products with the state.

    Assumes: queries and keys repeated for every value head; the last chunk is padded.

    Source: Yang et al. 2024 section 3.3, equations of the chunkwise form.

    >>> from sympy import symbols
    >>> delta_rule_flops(1, 64, 64, 1, 128, 128)
    9437184*flop
    """
    tokens = micro_batch * ceil_div(sequence, ssm_chunk_size) * ssm_chunk_size
    scores = 2 * ssm_chunk_size * (2 * linear_key_head_dim + linear_value_head_dim)
    states = 6 * linear_key_head_dim * linear_value_head_dim
    return tokens * linear_num_value_heads * (scores + states) * flop


@formula(
    glyph="W_{dnt}",
    dimension=FLOP,
    source=DELTANET,
    increasing="flop linear_key_head_dim linear_num_value_heads linear_value_head_dim micro_batch sequence",
)
def delta_solve_flops(
    micro_batch: Any,
    sequence: Any,
    ssm_chunk_size: Any,
    linear_num_value_heads: Any,
    linear_key_head_dim: Any,
    linear_value_head_dim: Any,
) -> Any:
    """FLOPs of the two triangular solves of a chunk, of c rows with d_lk and d_lv right sides: c^2 each.

    The equation: b ceil(s / c) c^2 a_lv (d_lk + d_lv).

    Assumes: a forward substitution, one product and one sum for each entry below the diagonal.

    Source: Yang et al. 2024 section 3.3: the WY form needs (I + tril(...))^-1 of keys and values.

    >>> from sympy import symbols
    >>> delta_solve_flops(1, 64, 64, 1, 128, 128)
    1048576*flop
    """
    tokens = micro_batch * ceil_div(sequence, ssm_chunk_size) * ssm_chunk_size
    width = linear_key_head_dim + linear_value_head_dim
    return tokens * ssm_chunk_size * linear_num_value_heads * width * flop


@formula(
    glyph="Q_{dn}",
    dimension=BYTE,
    source=DELTANET,
    increasing="activation_bytes linear_key_head_dim linear_num_value_heads linear_value_head_dim micro_batch "
    "sequence state_bytes",
)
def delta_rule_bytes(
    micro_batch: Any,
    sequence: Any,
    ssm_chunk_size: Any,
    linear_num_value_heads: Any,
    linear_key_head_dim: Any,
    linear_value_head_dim: Any,
    activation_bytes: Any,
    state_bytes: Any,
) -> Any:
    """Bytes of a chunked gated delta rule, forward: what its six kernels read and write, each tensor once a kernel.

    The equation: b a_lv (s (w (7 d_lk + 6 d_lv + 2 c + 2) + w_st (2 c + 6)) + 2 ceil(s / c) d_lk d_lv w).

    Sums of decays: in and out. Key scores: keys in, c a token out in w_st. Inverse: in, and out in w. Solved keys and
    values: keys, values and inverse in, both out. States: keys, solved keys and values in, new values and states out.
    Results: queries, keys, new values and states in, results out. Rates twice in w, sums of decays six times in w_st.

    Assumes: queries and keys repeated for every value head; states between kernels in the format of activations.

    Source: counted from flash-linear-attention (gated_delta_rule/chunk.py, chunk_gated_delta_rule_fwd, and the kernels
    that it calls); the algorithm is that of Yang et al. 2024 section 3.3.

    >>> from sympy import symbols
    >>> delta_rule_bytes(1, 64, 64, *symbols("a k v w f"))
    a*(8576*f + 2*k*v*w + 64*w*(7*k + 6*v + 130))
    """
    keys, values = linear_key_head_dim, linear_value_head_dim
    token = activation_bytes * (7 * keys + 6 * values + 2 * ssm_chunk_size + 2) + state_bytes * (2 * ssm_chunk_size + 6)
    states = 2 * ceil_div(sequence, ssm_chunk_size) * keys * values * activation_bytes
    return micro_batch * linear_num_value_heads * (sequence * token + states)
