"""Layers dealt to the stages of a pipeline in order: how many of the model's first layers lie on a stage.

A stage of l_h layers behind l_b others has the layers l_b + 1 to l_b + l_h. Of layers of one kind that follow one
another it has what both intervals share; so the first l_f layers of the model are all that a formula is needed for.
"""

from __future__ import annotations

from typing import Any

from ..language.atoms import Max, Min, ceil_div, complement, less_one
from ..language.dimension import ONE
from ..language.formula import formula
from ..sources import NARAYANAN
from .zero_bubble import excess


@formula(
    glyph="L_{f,i}",
    dimension=ONE,
    source=NARAYANAN,
    increasing="held_layers layers_in_front",
    decreasing="layers_before",
)
def leading_layers(layers_in_front: Any, layers_before: Any, held_layers: Any) -> Any:
    """Of the first l_f layers of a model, those on a stage of l_h layers behind l_b: min(l_h, max(l_f - l_b, 0)).

    Assumes: layers are dealt to stages in order, in contiguous blocks.

    Source: derivation: the intervals (l_b, l_b + l_h] and (0, l_f] share so many; stages as in section 2.2.

    >>> [leading_layers(3, start, 2) for start in (0, 2, 4)]
    [2, 1, 0]
    """
    return Min(held_layers, excess(layers_in_front, layers_before))


@formula(
    glyph="L_{f,i}^{rest}",
    dimension=ONE,
    source=NARAYANAN,
    increasing="held_layers layers_before",
    decreasing="layers_in_front",
)
def following_layers(layers_in_front: Any, layers_before: Any, held_layers: Any) -> Any:
    """Of all layers but the first l_f, those on a stage of l_h layers behind l_b: max(l_h - max(l_f - l_b, 0), 0).

    Assumes: as `leading_layers`, of which it is the rest. A stage may be empty, and layers are whole: those of it
    that lie in front are one at least.

    Source: derivation: l_h layers without those of (0, l_f].

    >>> [following_layers(3, start, 2) for start in (0, 2, 4)], following_layers(3, 4, 0)
    ([0, 1, 2], 0)
    """
    return held_layers * complement(Min(1, excess(layers_in_front, layers_before) / Max(1, held_layers)))


@formula(
    glyph="L_{f,i}^{v}",
    dimension=ONE,
    source=NARAYANAN,
)
def leading_layers_of_chunks(layers_in_front: Any, chunk_layers: Any, stages: Any, stage_number: Any) -> Any:
    """Of the first l_f layers of a model, those on device i when chunks of l_c layers are dealt to p devices in turn.

    l_c r + min(l_c, max(l_f - r p l_c - (i - 1) l_c, 0)), where r = ceil(l_f / (p l_c)) - 1 rounds are whole.

    Assumes: equal chunks, as interleaved schedules need them; 1 <= i <= p.

    Source: derivation: a whole round gives every device a chunk, the last one is dealt as `leading_layers` has it.
    Chunk j of a device is stage (j - 1) p + i of the model (Narayanan et al. 2021 section 2.2.2).

    >>> [leading_layers_of_chunks(11, 2, 4, i) for i in (1, 2, 3, 4)]
    [4, 3, 2, 2]
    """
    rounds = less_one(ceil_div(layers_in_front, chunk_layers * stages))
    left = layers_in_front - rounds * chunk_layers * stages
    return rounds * chunk_layers + Min(chunk_layers, excess(left, chunk_layers * less_one(stage_number)))
