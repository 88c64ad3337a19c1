"""Pairs of queries and keys that masks leave: causal, sliding windows, chunks. Glyphs: s tokens, window w_a.

A context that grows by a token a step fills one chunk after another.
"""

from __future__ import annotations

from typing import Any

import sympy

from ..language.atoms import Atom, Max, Min, ceil_div, less_one
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
    glyph="n_{both}",
    dimension=ONE,
    source=BELTAGY,
)
def two_sided_pairs(sequence: Any, sliding_window: Any) -> Any:
    """Pairs that a window on both sides leaves: two causal windows of w_a / 2 + 1, which share the diagonal.

    Assumes: a query of an encoder sees itself and w_a / 2 tokens on each side; w_a is even.

    Source: Beltagy et al. 2020 section 3.1; the sum over queries i of min(i, w_a / 2) on each side, and s.

    >>> two_sided_pairs(4, 2), two_sided_pairs(100, 200), two_sided_pairs(8192, 128)
    (10, 10000, 1052608)
    """
    return 2 * window_pairs(sequence, sliding_window / 2 + 1) - sequence


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


class place_in_chunk(Atom):  # noqa: N801
    """The place of the l-th token in its chunk of c, from 1 to c: ((l - 1) mod c) + 1; it rises and starts again.

    >>> import sympy
    >>> [place_in_chunk(*map(sympy.Integer, (token, 4))) for token in (1, 4, 5)]
    [1, 4, 1]
    """

    nargs = 2
    operation = "place_in_chunk"
    directions = (0, 0)
    curvature = None

    @staticmethod
    def plain(token: Any, chunk: Any) -> Any:
        """`token - chunk (ceil(token / chunk) - 1)`."""
        return token - chunk * (ceil_div(token, chunk) - 1)

    def _tex(self, printer: Any) -> str:
        token, chunk = map(printer._print, self.args)
        return rf"\left(\left({token} - 1\right) \bmod {chunk} + 1\right)"


class exceeding(Atom):  # noqa: N801
    """What a count has beyond a limit, max(count - limit, 0), exact where both are whole.

    >>> import sympy
    >>> [exceeding(*map(sympy.Integer, pair)) for pair in ((7, 5), (5, 7))]
    [2, 0]
    """

    nargs = 2
    operation = "exceeding"
    directions = (1, -1)
    curvature = None

    @staticmethod
    def plain(count: Any, limit: Any) -> Any:
        """`max(count - limit, 0)`."""
        return Max(0, count - limit)

    def _tex(self, printer: Any) -> str:
        count, limit = map(printer._print, self.args)
        return rf"\max\left({count} - {limit},\; 0\right)"


@formula(glyph="p_c", dimension=ONE, source=BELTAGY)
def chunk_place(first_context: Any, sliding_window: Any) -> Any:
    """Place of the first step's context in its chunk of w_a tokens, from 1 to w_a: ((l_1 - 1) mod w_a) + 1.

    Assumes: chunks begin at the first token.

    Source: derivation: what is left of l_1 tokens after whole chunks, of which the last may be full.

    >>> [chunk_place(context, 4) for context in (1, 4, 5)]
    [1, 4, 1]
    """
    return place_in_chunk(first_context, sliding_window)


@formula(glyph="N_{room}", dimension=ONE, source=BELTAGY)
def chunk_room(first_context: Any, sliding_window: Any) -> Any:
    """Steps that end in the chunk of the first step's context: w_a + 1 - p.

    Assumes: as `chunk_place`.

    Source: derivation: places p to w_a.

    >>> [chunk_room(context, 4) for context in (1, 4, 5)]
    [4, 1, 4]
    """
    return exceeding(sliding_window + 1, chunk_place(first_context, sliding_window))


@formula(glyph="N_{later}", dimension=ONE, source=BELTAGY, increasing="steps")
def later_chunk_steps(steps: Any, first_context: Any, sliding_window: Any) -> Any:
    """Steps after the first chunk is full: max(0, n_s - N_room).

    Assumes: as `chunk_place`.

    Source: derivation: what is left of the steps.

    >>> [later_chunk_steps(steps, 1, 4) for steps in (3, 4, 9)]
    [0, 0, 5]
    """
    return exceeding(steps, chunk_room(first_context, sliding_window))


@formula(glyph="N_{chunk}", dimension=ONE, source=BELTAGY, increasing="steps")
def whole_chunks(steps: Any, first_context: Any, sliding_window: Any) -> Any:
    """Chunks that steps after the first chunk fill: ceil((N_later + 1) / w_a) - 1.

    Assumes: as `chunk_place`.

    Source: derivation: the quotient of whole numbers, rounded down.

    >>> [whole_chunks(steps, 1, 4) for steps in (7, 8, 12)]
    [0, 1, 2]
    """
    return less_one(ceil_div(later_chunk_steps(steps, first_context, sliding_window) + 1, sliding_window))


def chunk_sums(steps: Any, first_context: Any, sliding_window: Any) -> list[tuple[Any, Any, Any]]:
    """The steps of a generation in a layer that attends to its own chunk of c tokens: (times, steps, first context).

    The first chunk goes on from where the context stands in it, then come whole chunks, and then a part of the last.
    """
    chunk = (first_context, sliding_window)
    whole = whole_chunks(steps, *chunk)
    return [
        (1, Min(steps, chunk_room(*chunk)), chunk_place(*chunk)),
        (whole, sliding_window, 1),
        (1, exceeding(later_chunk_steps(steps, *chunk), whole * sliding_window), 1),
    ]
