"""Disentangled attention (DeBERTa): contents and relative positions have vectors of their own, and scores together.

Shapes: b sequences of s tokens, a' heads of width d_h, a table of R vectors of relative positions, which projections of
queries and keys make R queries and R keys a head. A score is the sum of three: of contents, of a content's query with
the position's key, and of a position's query with the content's key.
"""

from __future__ import annotations

from typing import Any

from ..language.dimension import FLOP, ONE
from ..language.formula import formula
from ..language.symbols import flop
from ..sources import DEBERTA


@formula(
    glyph="W_{rel}",
    dimension=FLOP,
    source=DEBERTA,
    increasing="flop head_dim heads micro_batch rows sequence",
    curvature="affine",
)
def relative_scores_flops(micro_batch: Any, sequence: Any, rows: Any, heads: Any, head_dim: Any) -> Any:
    """FLOPs of the scores of contents with relative positions and of these with contents: 4 b s R a' d_h.

    Assumes: every token is scored with all R relative positions, of which a gather takes those of its pairs.

    Source: He et al. 2021, algorithm 1, lines 3 to 12: the products of Q_c with K_r and of K_c with Q_r.

    >>> from sympy import symbols
    >>> relative_scores_flops(*symbols("b s R a d_h"))
    4*R*a*b*d_h*flop*s
    """
    return 4 * micro_batch * sequence * rows * heads * head_dim * flop


@formula(
    glyph="N_{rel}",
    dimension=ONE,
    source=DEBERTA,
    increasing="heads micro_batch rows sequence",
    curvature="convex",
)
def disentangled_elements(micro_batch: Any, sequence: Any, rows: Any, heads: Any) -> Any:
    """Scores of one layer that are alive at once: b a' s (2 s + R).

    Assumes: eager products: the scores of contents, the sum of those with positions, and one product with all R
    positions, which a gather reads.

    Source: He et al. 2021, algorithm 1: the sum of its lines 2 to 12.

    >>> from sympy import symbols
    >>> disentangled_elements(*symbols("b s R a"))
    a*b*s*(R + 2*s)
    """
    return micro_batch * heads * sequence * (2 * sequence + rows)
