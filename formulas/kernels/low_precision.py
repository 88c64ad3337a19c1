"""Training with products in 8 or 4 bits: what is kept in low precision beside the 16-bit tensors, and the casts.

Linear layers alone run in low precision: their inputs, weights and output gradients are cast, each product reads
w_p bytes an element. Attention, router, head, norms and residuals stay in 16 bits.
"""

from __future__ import annotations

from typing import Any

from ..language.dimension import BYTE
from ..language.formula import formula
from ..language.symbols import (
    activation_bytes,
    amax_passes,
    cast_copies,
    product_input_bytes,
    weight_bytes,
    weight_copies,
)
from ..sources import FP8, SHAZEER, TRANSFORMER_ENGINE


@formula(
    glyph="Q_{cast}",
    dimension=BYTE,
    source=TRANSFORMER_ENGINE,
    increasing="activation_bytes amax_passes cast_copies elements product_input_bytes",
    curvature="convex",
)
def cast_bytes(elements: Any) -> Any:
    """Bytes to cast an activation or a gradient: N ((1 + n_a) w_x + n_y w_p).

    Assumes: one kernel that reads once and writes n_y copies, by rows and by columns, as products of one direction
    only need; n_a readings before it for the largest magnitude.

    Source: Transformer Engine, handling transposes (Hopper products in FP8 need both); Micikevicius et al. 2022 for
    scales.

    >>> from sympy import symbols
    >>> cast_bytes(symbols("N"))
    N*(activation_bytes*(amax_passes + 1) + cast_copies*product_input_bytes)
    """
    return elements * ((1 + amax_passes) * activation_bytes + cast_copies * product_input_bytes)


@formula(
    glyph="Q_{wc}",
    dimension=BYTE,
    source=TRANSFORMER_ENGINE,
    increasing="amax_passes parameters product_input_bytes weight_bytes weight_copies",
    curvature="convex",
)
def weight_cast_bytes(parameters: Any) -> Any:
    """Bytes to cast the weights of linear layers once a step: N ((1 + n_a) w_w + n_c w_p).

    Assumes: the copies serve every micro-batch of the step.

    Source: Transformer Engine, `is_first_microbatch`: weights are cast in the first micro-batch only.

    >>> from sympy import symbols
    >>> weight_cast_bytes(symbols("N"))
    N*(product_input_bytes*weight_copies + weight_bytes*(amax_passes + 1))
    """
    return parameters * ((1 + amax_passes) * weight_bytes + weight_copies * product_input_bytes)


@formula(
    glyph="M_{wc}",
    dimension=BYTE,
    source=TRANSFORMER_ENGINE,
    increasing="parameters product_input_bytes weight_copies",
    curvature="affine",
)
def weight_copies_memory(parameters: Any) -> Any:
    """Bytes of the low-precision copies of the weights of linear layers, n_c w_p N.

    Assumes: 16-bit weights beside them, and n_c = 2 copies: one by rows for the forward pass, one by columns for the
    gradient of the input.

    Source: Transformer Engine, handling transposes; n_c = 0 where only low-precision weights are kept.

    >>> from sympy import symbols
    >>> weight_copies_memory(symbols("N"))
    N*product_input_bytes*weight_copies
    """
    return weight_copies * parameters * product_input_bytes


@formula(
    glyph="A_{in,p}",
    dimension=BYTE,
    source=FP8,
    increasing="product_input_bytes tokens width",
    curvature="affine",
)
def product_input_kept_bytes(tokens: Any, width: Any) -> Any:
    """Bytes kept of the input of a linear layer in low precision: w_p a feature of a token.

    Assumes: only the copy by columns that the gradient of the weights reads is kept.

    Source: Micikevicius et al. 2022: inputs of products in FP8; Transformer Engine keeps the cast input.

    >>> from sympy import symbols
    >>> product_input_kept_bytes(*symbols("T w"))
    T*product_input_bytes*w
    """
    return tokens * width * product_input_bytes


@formula(
    glyph="A_{mlp,p}",
    dimension=BYTE,
    source=FP8,
    increasing="activation_bytes product_input_bytes tokens width",
    curvature="convex",
)
def cast_mlp_kept_bytes(tokens: Any, width: Any) -> Any:
    """Bytes kept inside a plain MLP whose products are in low precision, T f (w_x + w_p).

    Assumes: the input of the activation function in 16 bits, its output cast.

    Source: as `mlp_kept_bytes`, with the input of the second product in low precision.

    >>> from sympy import symbols
    >>> cast_mlp_kept_bytes(*symbols("T f"))
    T*f*(activation_bytes + product_input_bytes)
    """
    return tokens * width * (activation_bytes + product_input_bytes)


@formula(
    glyph="A_{glu,p}",
    dimension=BYTE,
    source=SHAZEER,
    increasing="activation_bytes product_input_bytes tokens width",
    curvature="convex",
)
def cast_gated_mlp_kept_bytes(tokens: Any, width: Any) -> Any:
    """Bytes kept inside a gated MLP whose products are in low precision, T f (3 w_x + w_p).

    Assumes: gate, activated gate and up in 16 bits, their product cast.

    Source: as `gated_mlp_kept_bytes`, with the input of the last product in low precision.

    >>> from sympy import symbols
    >>> cast_gated_mlp_kept_bytes(*symbols("T f"))
    T*f*(3*activation_bytes + product_input_bytes)
    """
    return tokens * width * (3 * activation_bytes + product_input_bytes)
