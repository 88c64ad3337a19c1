"""Formats in which tokens travel to experts and back: conversions before and after, and kernels that mix formats.

An element of a token on its way takes w bytes, its part of a block's scale included: 1 + 4/128 in FP8 with a scale in
FP32 for each 128 values. A dispatch goes to the experts, with tokens and with gradients of results; a combination comes
back, with results and with gradients of tokens.
"""

from __future__ import annotations

from typing import Any

from ..language.atoms import Max, above_one, less_one
from ..language.dimension import BYTE, ONE
from ..language.formula import formula
from ..language.symbols import activation_bytes, cast_copies, product_input_bytes
from ..sources import DEEPEP, DEEPSEEK3, MEGABLOCKS


@formula(
    glyph=r"\delta_{cvt}",
    dimension=ONE,
    source=DEEPSEEK3,
    increasing="activation_bytes",
    decreasing="element_bytes",
)
def is_converted(element_bytes: Any) -> Any:
    """Whether elements travel in fewer bytes than activations have, 1 or 0: above_one(w_x / w).

    Assumes: nothing travels in a wider format.

    Source: DeepSeek-V3 report section 3.3.3: quantised before the dispatch, and combined in BF16, as it is.

    >>> is_converted(2).subs(activation_bytes, 2), is_converted(1).subs(activation_bytes, 2)
    (0, 1)
    """
    return above_one(activation_bytes / element_bytes)


@formula(
    glyph="Q_{cvt}",
    dimension=BYTE,
    source=DEEPEP,
    increasing="activation_bytes element_bytes elements",
    curvature="convex",
)
def conversion_bytes(elements: Any, element_bytes: Any) -> Any:
    """Bytes of the kernel that converts what travels, or what has arrived: N (w_x + w).

    Assumes: one kernel reads once and writes once; a block's largest magnitude is found on the way (block scales).

    Source: DeepEP, `low_latency_dispatch` (use_fp8): BF16 is cast with a scale for each 128 values; counted.

    >>> from sympy import symbols
    >>> conversion_bytes(*symbols("N w"))
    N*(activation_bytes + w)
    """
    return elements * (activation_bytes + element_bytes)


@formula(
    glyph="Q_{tc}",
    dimension=BYTE,
    source=DEEPSEEK3,
    increasing="cast_copies element_bytes elements product_input_bytes",
)
def arrived_copies_bytes(elements: Any, element_bytes: Any) -> Any:
    """Bytes to make the other copies of what arrived in the format of its products: N (n_y - 1) (w + w_p).

    Assumes: what arrives is the copy by rows that the product reads; the one by columns, which the gradient of the
    weights reads, is made of it, wherever in the step that happens.

    Source: DeepSeek-V3 report section 3.5.2: tiles of 1 x 128 are read, transposed, quantised again and stored;
    Transformer Engine for the copies.

    >>> from sympy import symbols
    >>> arrived_copies_bytes(*symbols("N w"))
    N*(product_input_bytes + w)*less_one(Max(1, cast_copies))
    """
    return elements * less_one(Max(1, cast_copies)) * (element_bytes + product_input_bytes)


@formula(
    glyph="Q_{um,w}",
    dimension=BYTE,
    source=MEGABLOCKS,
    increasing="activation_bytes element_bytes hidden_size num_experts_per_token tokens",
    curvature="convex",
)
def mixed_combination_bytes(tokens: Any, num_experts_per_token: Any, hidden_size: Any, element_bytes: Any) -> Any:
    """Bytes of summing k_e rows of a token that came back in another format: T (k_e w + w_x) h.

    Assumes: as `combination_bytes`; also the gradient of sorting, `permutation_backward_bytes`.

    Source: counted from the scatter of Gale et al. 2022 section 5.2.

    >>> from sympy import symbols
    >>> mixed_combination_bytes(*symbols("T k h w"))
    T*h*(activation_bytes + k*w)
    """
    return tokens * (num_experts_per_token * element_bytes + activation_bytes) * hidden_size


@formula(
    glyph="Q_{um',w}",
    dimension=BYTE,
    source=DEEPSEEK3,
    increasing="activation_bytes element_bytes hidden_size num_experts_per_token tokens",
    curvature="convex",
)
def mixed_combination_backward_bytes(
    tokens: Any, num_experts_per_token: Any, hidden_size: Any, element_bytes: Any
) -> Any:
    """Bytes of the gradient of the weighted sum whose k_e rows leave in another format: T ((k_e + 1) w_x + k_e w) h.

    Assumes: as `combination_backward_bytes`; the kernel that spreads the gradient by weight quantises it: a weight
    goes into a block's scale.

    Source: DeepSeek-V3 report section 3.3.3: the gradient of activations before the down-projections is quantised and
    dispatched as activations are.

    >>> from sympy import symbols
    >>> mixed_combination_backward_bytes(*symbols("T k h w"))
    T*h*(activation_bytes*(k + 1) + k*w)
    """
    rows = num_experts_per_token
    return tokens * ((rows + 1) * activation_bytes + rows * element_bytes) * hidden_size
