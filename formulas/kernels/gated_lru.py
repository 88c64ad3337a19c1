"""A real-gated linear recurrent unit (RG-LRU): each of h_r channels has one state, with a decay that its input gates.

Shapes: T tokens; gates are products with a blocks on the diagonal, of h_r / a channels each.
"""

from __future__ import annotations

from typing import Any

from ..language.dimension import BYTE, ONE
from ..language.formula import formula
from ..sources import GRIFFIN


@formula(
    glyph="N_{lru}",
    dimension=ONE,
    source=GRIFFIN,
    increasing="hidden_size lru_width",
    decreasing="num_attention_heads",
    curvature="convex",
)
def gated_lru_parameters(hidden_size: Any, lru_width: Any, num_attention_heads: Any) -> Any:
    """Weights of a recurrent block: a branch and a gate in, a projection out, and two block-diagonal gates.

    The equation: 3 h h_r + 2 h_r^2 / a.

    Assumes: biases, convolution and decays are counted apart.

    Source: De et al. 2024 section 2.4, figure 2 and equations (1) and (2); block-diagonal gates: Botev et al. 2024
    (RecurrentGemma, arXiv 2404.07839) section 2, and its published code.

    >>> from sympy import symbols
    >>> gated_lru_parameters(*symbols("h r a"))
    3*h*r + 2*r**2/a
    """
    return 3 * hidden_size * lru_width + 2 * lru_width**2 / num_attention_heads


@formula(
    glyph="Q_{lru}",
    dimension=BYTE,
    source=GRIFFIN,
    increasing="activation_bytes lru_width tokens",
    curvature="affine",
)
def gated_lru_bytes(tokens: Any, lru_width: Any, activation_bytes: Any) -> Any:
    """Bytes of the unit, forward: T h_r w times 5 of the kernel of its gates, and 3 of its scan.

    Gates: the branch and both gates in; decays and gated inputs out. Scan: these in, states out.

    Assumes: gates' products are counted apart; everything in the format of activations, states stay on chip.

    Source: counted from the published code of Botev et al. 2024 (google-deepmind/recurrentgemma: RGLRU, and the kernel
    of its linear scan); the unit is that of De et al. 2024 equations (1) to (4), its kernel section 4.2.

    >>> from sympy import symbols
    >>> gated_lru_bytes(*symbols("T r w"))
    8*T*r*w
    """
    return 8 * tokens * lru_width * activation_bytes


@formula(
    glyph="Q_{lru'}",
    dimension=BYTE,
    source=GRIFFIN,
    increasing="activation_bytes lru_width tokens",
    curvature="affine",
)
def gated_lru_backward_bytes(tokens: Any, lru_width: Any, activation_bytes: Any) -> Any:
    """Bytes of the unit's backward pass: T h_r w times 5 of its scan, and 8 of the kernel of its gates.

    Scan: decays, states and their gradient in; gradients of decays and inputs out. Gates: the branch, both gates and
    these gradients in; gradients of branch and gates out.

    Assumes: as forward; decays and states are kept.

    Source: derivation: h_t = a_t h_(t-1) + x_t has dx_t = dh_t + a_(t+1) dx_(t+1) and da_t = dx_t h_(t-1), a scan from
    the end (De et al. 2024 equation (4)).

    >>> from sympy import symbols
    >>> gated_lru_backward_bytes(*symbols("T r w"))
    13*T*r*w
    """
    return 13 * tokens * lru_width * activation_bytes
