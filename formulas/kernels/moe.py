"""Layers of routed experts: router, permutation of tokens, grouped products, shared experts.

Shapes: T tokens of width h on one device, E experts of which each token passes k_e, of inner width f_e. A gated
expert has three matrices, a plain one two. Imbalance is the tokens of the fullest expert over the mean.
"""

from __future__ import annotations

from typing import Any

from ..language.atoms import Max, Min, complement
from ..language.dimension import BYTE, FLOP, ONE, SECOND
from ..language.formula import formula
from ..language.symbols import flop, scatter_latency
from ..mathematics.fractions import chosen_load, fraction_power
from ..sources import FEDUS, LEPIKHIN, MEGABLOCKS, MOE, SHAZEER


@formula(
    glyph="N_{rt}",
    dimension=ONE,
    source=MOE,
    increasing="hidden_size num_experts",
    curvature="affine",
)
def router_parameters(hidden_size: Any, num_experts: Any) -> Any:
    """Weights of a router: h E.

    Assumes: one linear layer without bias.

    Source: Shazeer et al. 2017 equation (3).

    >>> from sympy import symbols
    >>> router_parameters(*symbols("h E"))
    E*h
    """
    return hidden_size * num_experts


@formula(
    glyph="W_{rt}",
    dimension=FLOP,
    source=MOE,
    increasing="flop hidden_size num_experts tokens",
    curvature="affine",
)
def router_flops(tokens: Any, hidden_size: Any, num_experts: Any) -> Any:
    """FLOPs of a router's product: 2 T h E.

    Assumes: softmax or sigmoid, top-k and balancing terms are elementwise and left out.

    Source: Shazeer et al. 2017 equation (3).

    >>> from sympy import symbols
    >>> router_flops(*symbols("T h E"))
    2*E*T*flop*h
    """
    return 2 * tokens * hidden_size * num_experts * flop


@formula(
    glyph="Q_{rt}",
    dimension=BYTE,
    source=FEDUS,
    increasing="num_experts num_experts_per_token statistic_bytes tokens",
    curvature="convex",
)
def router_bytes(tokens: Any, num_experts: Any, num_experts_per_token: Any, statistic_bytes: Any) -> Any:
    """Bytes of choosing experts, forward: scores in, probabilities out, chosen weights out, T (2 E + k_e) w_s.

    Assumes: one fused kernel of softmax (or sigmoid) and top-k in FP32.

    Source: counted from the router of Fedus et al. 2021, section 2.4 (selective precision).

    >>> from sympy import symbols
    >>> router_bytes(*symbols("T E k w"))
    T*w*(2*E + k)
    """
    return tokens * (2 * num_experts + num_experts_per_token) * statistic_bytes


@formula(
    glyph="W_{ex}",
    dimension=FLOP,
    source=SHAZEER,
    increasing="expert_intermediate_size flop hidden_size num_experts_per_token tokens",
    curvature="affine",
)
def gated_expert_flops(tokens: Any, num_experts_per_token: Any, hidden_size: Any, expert_intermediate_size: Any) -> Any:
    """FLOPs of gated routed experts: 6 T k_e h f_e.

    Assumes: no token is dropped and none is padded.

    Source: Shazeer 2020 section 2, for k_e experts a token (Shazeer et al. 2017).

    >>> from sympy import symbols
    >>> gated_expert_flops(*symbols("T k h f"))
    6*T*f*flop*h*k
    """
    return 6 * tokens * num_experts_per_token * hidden_size * expert_intermediate_size * flop


@formula(
    glyph="W_{px}",
    dimension=FLOP,
    source=FEDUS,
    increasing="expert_intermediate_size flop hidden_size num_experts_per_token tokens",
    curvature="affine",
)
def plain_expert_flops(tokens: Any, num_experts_per_token: Any, hidden_size: Any, expert_intermediate_size: Any) -> Any:
    """FLOPs of routed experts of two matrices: 4 T k_e h f_e.

    Assumes: no token is dropped and none is padded.

    Source: Fedus et al. 2021 section 2.1.

    >>> from sympy import symbols
    >>> plain_expert_flops(*symbols("T k h f"))
    4*T*f*flop*h*k
    """
    return 4 * tokens * num_experts_per_token * hidden_size * expert_intermediate_size * flop


@formula(
    glyph="m_e",
    dimension=ONE,
    source=MEGABLOCKS,
    increasing="num_experts_per_token tokens",
    decreasing="num_experts",
    curvature="convex",
)
def expert_rows(tokens: Any, num_experts_per_token: Any, num_experts: Any) -> Any:
    """Rows of an expert's products on average: T k_e / E, and at least one.

    Assumes: balanced routing; below one row an expert is either passed once or not read at all.

    Source: Gale et al. 2022 section 4: the groups of a block-sparse product.

    Reference only: of tokens that are spread evenly; a prediction has the rows of the experts that are expected to be
    chosen.

    >>> from sympy import symbols
    >>> expert_rows(*symbols("T k E"))
    Max(1, T*k/E)
    """
    return Max(tokens * num_experts_per_token / num_experts, 1)


@formula(
    glyph="m^*_e",
    dimension=ONE,
    source=LEPIKHIN,
    increasing="expert_imbalance num_experts_per_token tokens",
    decreasing="num_experts",
)
def fullest_expert_rows(tokens: Any, num_experts_per_token: Any, num_experts: Any, expert_imbalance: Any) -> Any:
    """Rows of the fullest expert's products: the mean times the imbalance, at most every token.

    The equation: min(T, max(1, chi T k_e / E)).

    Assumes: the imbalance is a figure of the routing, 1 where it is balanced.

    Source: Lepikhin et al. 2020 section 2.2 (expert capacity).

    Reference only: of the fullest expert; a prediction has the imbalance of devices, which wait for each other.

    >>> from sympy import symbols
    >>> fullest_expert_rows(*symbols("T k E chi"))
    Min(T, Max(1, T*chi*k/E))
    """
    return Min(tokens, Max(expert_imbalance * tokens * num_experts_per_token / num_experts, 1))


@formula(
    glyph="E'",
    dimension=ONE,
    source=MEGABLOCKS,
    increasing="num_experts num_experts_per_token tokens",
    curvature="concave",
)
def touched_experts(tokens: Any, num_experts_per_token: Any, num_experts: Any) -> Any:
    """Experts whose weights a layer reads at most: min(E, T k_e).

    Assumes: choices differ as far as they can; an upper bound of `expected_experts`, met for one token and for many.

    Source: Gale et al. 2022 section 4: an expert without tokens has no block.

    Reference only: the most that can be chosen; a prediction reads the weights of `expected_experts`.

    >>> from sympy import symbols
    >>> touched_experts(*symbols("T k E"))
    Min(E, T*k)
    """
    return Min(num_experts, tokens * num_experts_per_token)


@formula(
    glyph="\\bar E",
    dimension=ONE,
    source=MEGABLOCKS,
    increasing="num_experts_per_token tokens",
)
def expected_experts(tokens: Any, num_experts_per_token: Any, num_experts: Any) -> Any:
    """Distinct experts that T tokens choose, on average: E (1 - (1 - k_e / E)^T).

    A token leaves out a given expert with chance 1 - k_e / E, and T tokens all do with its T-th power; the expectation
    is the sum over E experts of the chance that some token chooses them.

    Assumes: k_e <= E; tokens choose independently, and each expert with the same chance (uniform routing). One token
    reads k_e experts, many read all. Skewed routing reads fewer.

    Source: derivation; an expert without tokens has no block (Gale et al. 2022 section 4).

    >>> expected_experts(1, 2, 8), expected_experts(2, 2, 8)
    (2, 7/2)
    """
    chance = Min(1, num_experts_per_token / num_experts)
    return num_experts * complement(fraction_power(complement(chance), tokens))


@formula(
    glyph="\\bar m_e",
    dimension=ONE,
    source=MEGABLOCKS,
    increasing="num_experts_per_token tokens",
    decreasing="num_experts",
)
def expected_expert_rows(tokens: Any, num_experts_per_token: Any, num_experts: Any) -> Any:
    """Rows of the products of an expert that has any: T k_e over the distinct experts of `expected_experts`.

    The equation: T x / (1 - (1 - x)^T) with x = k_e / E.

    Assumes: k_e <= E; uniform routing; the rows of all experts are the T k_e choices; T of at least 1, below which the
    rows of one token are counted (the quotient would no longer rise with k_e).

    Source: derivation, as `expected_experts`.

    >>> expected_expert_rows(1, 2, 8), expected_expert_rows(2, 2, 8)
    (1, 8/7)
    """
    return chosen_load(Min(1, num_experts_per_token / num_experts), Max(1, tokens))


@formula(
    glyph="Q_{ex}",
    dimension=BYTE,
    source=MEGABLOCKS,
    increasing="activation_bytes in_features num_experts num_experts_per_token out_features tokens weight_bytes",
)
def grouped_product_bytes(
    tokens: Any,
    num_experts_per_token: Any,
    num_experts: Any,
    in_features: Any,
    out_features: Any,
    activation_bytes: Any,
    weight_bytes: Any,
) -> Any:
    """Bytes of one grouped product of the experts: rows in and out, and the weights of the experts that have rows.

    The equation: T k_e (n_i + n_o) w_x + min(E, T k_e) n_i n_o w_w.

    Assumes: every row and every weight once.

    Source: Gale et al. 2022 section 5.1: one product with a group for each expert.

    Reference only: with `touched_experts`; a prediction has products of `expected_experts` groups.

    >>> from sympy import symbols
    >>> grouped_product_bytes(*symbols("T k E i o x w"))
    T*k*x*(i + o) + i*o*w*Min(E, T*k)
    """
    rows = tokens * num_experts_per_token
    weights = Min(num_experts, rows) * in_features * out_features * weight_bytes
    return rows * (in_features + out_features) * activation_bytes + weights


@formula(
    glyph="Q_{pm}",
    dimension=BYTE,
    source=MEGABLOCKS,
    increasing="activation_bytes hidden_size num_experts_per_token tokens",
    curvature="affine",
)
def permutation_bytes(tokens: Any, num_experts_per_token: Any, hidden_size: Any, activation_bytes: Any) -> Any:
    """Bytes of sorting tokens by expert, forward: read and written once for each choice, 2 T k_e h w.

    Assumes: a gather without reuse of a token between its choices.

    Source: counted from the gather of Gale et al. 2022 section 5.2.

    >>> from sympy import symbols
    >>> permutation_bytes(*symbols("T k h w"))
    2*T*h*k*w
    """
    return 2 * tokens * num_experts_per_token * hidden_size * activation_bytes


@formula(
    glyph="Q_{um}",
    dimension=BYTE,
    source=MEGABLOCKS,
    increasing="activation_bytes hidden_size num_experts_per_token tokens",
    curvature="convex",
)
def combination_bytes(tokens: Any, num_experts_per_token: Any, hidden_size: Any, activation_bytes: Any) -> Any:
    """Bytes of bringing results back and summing them by weight, forward: T (k_e + 1) h w.

    Assumes: one fused scatter and weighted sum; the weights themselves are left out.

    Source: counted from the scatter of Gale et al. 2022 section 5.2.

    >>> from sympy import symbols
    >>> combination_bytes(*symbols("T k h w"))
    T*h*w*(k + 1)
    """
    return tokens * (num_experts_per_token + 1) * hidden_size * activation_bytes


@formula(
    glyph="T_{atom}",
    dimension=SECOND,
    source=MEGABLOCKS,
    increasing="hidden_size num_experts_per_token scatter_latency tokens",
    curvature="affine",
)
def scatter_add_time(tokens: Any, num_experts_per_token: Any, hidden_size: Any) -> Any:
    """Seconds of adding all rows to their tokens by an atomic addition for each element: T k_e h lambda_add.

    A sum over choices that no kernel is made for is a `scatter_add_` into zeros, and so is the gradient of sorting,
    which adds at an index (Megatron-LM, core/transformer/moe/moe_utils.py, permute and unpermute that are not fused).

    Assumes: additions are resolved in L2 at one rate, wherever they go; a token's choices do not wait for each other.

    Source: derivation, for the scatter of Gale et al. 2022 section 5.2.

    >>> from sympy import symbols
    >>> scatter_add_time(*symbols("T k h"))
    T*h*k*scatter_latency
    """
    return tokens * num_experts_per_token * hidden_size * scatter_latency


@formula(
    glyph="Q_{pm'}",
    dimension=BYTE,
    source=MEGABLOCKS,
    increasing="activation_bytes hidden_size num_experts_per_token tokens",
    curvature="convex",
)
def permutation_backward_bytes(tokens: Any, num_experts_per_token: Any, hidden_size: Any, activation_bytes: Any) -> Any:
    """Bytes of the gradient of sorting tokens by expert: k_e rows in and their sum out, T (k_e + 1) h w.

    Assumes: one fused gather and sum.

    Source: counted from the transpose of `permutation_bytes`: a token's gradient is the sum over its choices.

    >>> from sympy import symbols
    >>> permutation_backward_bytes(*symbols("T k h w"))
    T*h*w*(k + 1)
    """
    return tokens * (num_experts_per_token + 1) * hidden_size * activation_bytes


@formula(
    glyph="Q_{um'}",
    dimension=BYTE,
    source=MEGABLOCKS,
    increasing="activation_bytes hidden_size num_experts_per_token tokens",
    curvature="convex",
)
def combination_backward_bytes(tokens: Any, num_experts_per_token: Any, hidden_size: Any, activation_bytes: Any) -> Any:
    """Bytes of the gradient of the weighted sum: its gradient and k_e results in, k_e rows out, T (2 k_e + 1) h w.

    Assumes: one fused kernel; the results are read for the gradients of the weights, which are left out themselves.

    Source: counted from the transpose of `combination_bytes` in the rows and in the weights.

    >>> from sympy import symbols
    >>> combination_backward_bytes(*symbols("T k h w"))
    T*h*w*(2*k + 1)
    """
    return tokens * (2 * num_experts_per_token + 1) * hidden_size * activation_bytes
