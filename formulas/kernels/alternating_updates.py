"""Alternating updates: n_au residual streams, of which a layer computes one and predicts and corrects the others."""

from __future__ import annotations

from typing import Any

from ..language.atoms import less_one
from ..language.dimension import FLOP, ONE
from ..language.formula import formula
from ..language.symbols import flop
from ..sources import ALTUP


@formula(glyph="N_{au}", dimension=ONE, source=ALTUP, increasing="hidden_size num_update_streams", curvature="convex")
def update_parameters(hidden_size: Any, num_update_streams: Any) -> Any:
    """Weights of a layer's updates: h n of the router, its norm and a scale of h, n n n to predict, n n to correct.

    Assumes: coefficients that a router of the active stream gives, once before the layer and once behind it.

    Source: Baykal et al. 2023 section 3; counted from the modules of Gemma-3n in transformers.

    >>> update_parameters(2048, 4)
    12368
    """
    n = num_update_streams
    return hidden_size * (n + 2) + n**3 + n**2


@formula(
    glyph="W_{au}",
    dimension=FLOP,
    source=ALTUP,
    increasing="flop hidden_size num_update_streams tokens",
    curvature="convex",
)
def update_flops(tokens: Any, hidden_size: Any, num_update_streams: Any) -> Any:
    """FLOPs of the updates of a layer: 2 T (2 h n + h n n) of router and prediction, 2 T (n n n + n n) of coefficients.

    Assumes: the correction is elementwise; the router runs before the layer and behind it.

    Source: Baykal et al. 2023 section 3.

    >>> update_flops(1, 2048, 4)
    98464*flop
    """
    n = num_update_streams
    return 2 * tokens * (hidden_size * (2 * n + n**2) + n**3 + n**2) * flop


@formula(glyph="N_{aue}", dimension=ONE, source=ALTUP, increasing="hidden_size num_update_streams", curvature="concave")
def stream_projection_parameters(hidden_size: Any, num_update_streams: Any) -> Any:
    """Weights that make the further streams behind the embedding, or join them before the head: (n - 1) h h.

    Assumes: a square projection for each stream but the first.

    Source: counted from the modules of Gemma-3n in transformers.

    >>> stream_projection_parameters(2048, 4)
    12582912
    """
    return less_one(num_update_streams) * hidden_size**2
