"""Attention residuals: every part of a layer reads a mixture of the sums that blocks of layers have left.

Before each of a layer's two parts, and before the head, a learned query scores the norms of all sources: the embedding,
one sum for every B_r layers, and what has been added since.
"""

from __future__ import annotations

from typing import Any

from sympy import Rational

from ..language.atoms import ceil_div
from ..language.dimension import BYTE, FLOP, ONE
from ..language.formula import formula
from ..language.symbols import flop
from ..sources import KIMI_K3


@formula(
    glyph="N_{ar}",
    dimension=ONE,
    source=KIMI_K3,
    increasing="hidden_size",
    curvature="affine",
)
def attention_residual_parameters(hidden_size: Any) -> Any:
    """Weights of a mixture: a query and the scales of a norm, 2 h.

    Assumes: one query for all sources.

    Source: Kimi Team 2026 section 2.2, equations (8) and (9).

    >>> attention_residual_parameters(7168)
    14336
    """
    return 2 * hidden_size


@formula(glyph="n_{ar}", dimension=ONE, source=KIMI_K3)
def residual_sources(num_layers: Any, residual_block: Any) -> Any:
    """Sources of a mixture, the mean over the two parts of every layer.

    The equation: q + 1 - (B_r q (q - 1) + q) / (2 L), with q = ceil(L / B_r).

    Assumes: the first layer of a block leaves the sum of the block before as a source.

    Source: derivation. Attention of layer i, from 0, sees ceil(i / B_r) sums of blocks and the current one, its MLP
    floor(i / B_r) + 1 and the current one (Kimi Team 2026 equation (10)); the sum over layers of floor(i / B_r) is
    (q - 1) L - B_r q (q - 1) / 2, and q layers begin a block.

    >>> residual_sources(93, 12)
    497/93
    """
    blocks = ceil_div(num_layers, residual_block)
    less = residual_block * blocks * (blocks - 1) + blocks
    return blocks + 1 - Rational(1, 2) * less / num_layers


@formula(
    glyph="W_{ar}",
    dimension=FLOP,
    source=KIMI_K3,
    increasing="flop hidden_size mixture_sources tokens",
    curvature="affine",
)
def attention_residual_flops(tokens: Any, hidden_size: Any, mixture_sources: Any) -> Any:
    """FLOPs of a mixture: 4 T h n_m, of scores and of the weighted sum.

    Assumes: norms of the sources and the softmax are left out.

    Source: Kimi Team 2026 section 2.2, equations (8) and (9).

    >>> attention_residual_flops(1, 7168, 5)
    143360*flop
    """
    return 4 * tokens * hidden_size * mixture_sources * flop


@formula(
    glyph="Q_{ar}",
    dimension=BYTE,
    source=KIMI_K3,
    increasing="activation_bytes hidden_size mixture_sources tokens",
    curvature="convex",
)
def attention_residual_bytes(tokens: Any, hidden_size: Any, mixture_sources: Any, activation_bytes: Any) -> Any:
    """Bytes of a mixture, forward: T h w (n_m + 1), all sources in and the mixture out.

    Assumes: one fused kernel.

    Source: Kimi Team 2026 section 2.2; counted from the kernel attn_res of vLLM.

    >>> attention_residual_bytes(1, 7168, 5, 2)
    86016
    """
    return tokens * hidden_size * activation_bytes * (mixture_sources + 1)


@formula(
    glyph="Q_{ar'}",
    dimension=BYTE,
    source=KIMI_K3,
    increasing="activation_bytes hidden_size mixture_sources tokens",
    curvature="convex",
)
def attention_residual_backward_bytes(
    tokens: Any, hidden_size: Any, mixture_sources: Any, activation_bytes: Any
) -> Any:
    """Bytes of a mixture, backward: T h w (3 n_m + 1).

    Assumes: sources and the mixture's gradient in; the sources' gradients are added to what is there.

    Source: derivation: each source has a gradient from every mixture that reads it (Kimi Team 2026 section 2.2).

    >>> attention_residual_backward_bytes(1, 7168, 5, 2)
    229376
    """
    return tokens * hidden_size * activation_bytes * (3 * mixture_sources + 1)
