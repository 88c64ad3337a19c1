"""Pairs of queries and keys that masks leave: causal, sliding windows, chunks. Glyphs: s tokens, window w_a."""

from __future__ import annotations

from typing import Any

import sympy

from ..language.atoms import Min, ceil_div, less_one
from ..language.dimension import FLOP, ONE
from ..language.formula import formula
from ..language.symbols import flop
from ..mathematics.series import excess
from ..sources import BELTAGY, DAO2


@formula(
    glyph="n_{tri}",
    dimension=ONE,
    source=DAO2,
    increasing="sequence",
    curvature="convex",
)
def causal_pairs(sequence: Any) -> Any:
    """Pairs that a causal mask leaves: s (s + 1) / 2.

    Assumes: every query sees itself and all before it.

    Source: Dao 2023 section 3.1.1.

    >>> from sympy import symbols
    >>> causal_pairs(symbols("s"))
    s*(s + 1)/2
    """
    return sequence * (sequence + 1) / 2


@formula(
    glyph="n_{band}",
    dimension=ONE,
    source=BELTAGY,
    increasing="sequence",
)
def window_pairs(sequence: Any, sliding_window: Any) -> Any:
    """Pairs that a causal window leaves: a triangle of m = min(s, w_a) rows and then whole rows.

    The equation: m (m + 1) / 2 + w_a max(s - w_a, 0).

    Assumes: a query sees itself and the w_a - 1 tokens before it; a window of s or more is causal attention.

    Source: sum over queries i of min(i, w_a); Beltagy et al. 2020 section 3.1.

    >>> window_pairs(8192, 4096), window_pairs(100, 4096)
    (25167872, 5050)
    """
    seen = Min(sequence, sliding_window)
    return seen * (seen + 1) / 2 + sliding_window * excess(sequence, sliding_window)


@formula(
    glyph="n_{chunk}",
    dimension=ONE,
    source=BELTAGY,
)
def chunk_pairs(sequence: Any, sliding_window: Any) -> Any:
    """Pairs that causal chunks leave: n = ceil(s / w_a) - 1 whole triangles, and one of the r = s - n w_a tokens left.

    The equation: (n w_a (w_a + 1) + r (r + 1)) / 2.

    Assumes: a query sees itself and what is before it in its own chunk.

    Source: counted from the mask of Llama 4's local layers, a sum of triangles.

    >>> chunk_pairs(16384, 8192), chunk_pairs(100, 8192)
    (67117056, 5050)
    """
    whole = less_one(ceil_div(sequence, sliding_window))
    left = excess(sequence, whole * sliding_window)
    return (whole * sliding_window * (sliding_window + 1) + left * (left + 1)) * sympy.Rational(1, 2)


@formula(
    glyph="W_{band}",
    dimension=FLOP,
    source=BELTAGY,
    increasing="flop head_dim heads micro_batch visible_pairs",
    curvature="affine",
)
def masked_attention_flops(micro_batch: Any, visible_pairs: Any, heads: Any, head_dim: Any) -> Any:
    """FLOPs of the two score products of attention that skips what its mask hides: 4 b n a' d_h for n visible pairs.

    Assumes: tiles that are wholly masked are skipped and those on an edge cost only their visible part.

    Source: Beltagy et al. 2020 section 3.1, with the products of `attention_flops`.

    >>> from sympy import symbols
    >>> masked_attention_flops(*symbols("b n a d"))
    4*a*b*d*flop*n
    """
    return 4 * micro_batch * visible_pairs * heads * head_dim * flop
