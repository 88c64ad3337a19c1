"""The optimizer step: bound by device memory."""

from __future__ import annotations

from typing import Any

from ..language.dimension import BYTE, FLOP
from ..language.formula import formula
from ..language.symbols import flop
from ..sources import KINGMA, MICIKEVICIUS


@formula(
    glyph="Q_{adam}",
    dimension=BYTE,
    source=KINGMA,
    increasing="gradient_bytes optimizer_bytes parameters weight_bytes",
    curvature="convex",
)
def adam_bytes(parameters: Any, weight_bytes: Any, gradient_bytes: Any, optimizer_bytes: Any) -> Any:
    """Bytes of a fused Adam step: gradient in, master weight and moments in and out, weight out.

    Assumes: one fused kernel; w_o bytes of state per parameter (12: FP32 master weight and two moments).

    Source: Kingma and Ba 2014 algorithm 1; FP32 master weights after Micikevicius et al. 2017 section 3.1.

    >>> from sympy import symbols
    >>> adam_bytes(*symbols("N w g o"))
    N*(g + 2*o + w)
    """
    return parameters * (gradient_bytes + 2 * optimizer_bytes + weight_bytes)


@formula(
    glyph="W_{adam}",
    dimension=FLOP,
    source=KINGMA,
    increasing="flop parameters",
    curvature="affine",
)
def adam_flops(parameters: Any) -> Any:
    """FLOPs of an Adam step on the vector units: 14 a parameter.

    Assumes: first moment 3, second moment 4, bias corrections 2, root, sum and quotient 3, weight update 2.

    Source: counted from Kingma and Ba 2014 algorithm 1.

    >>> from sympy import symbols
    >>> adam_flops(symbols("N"))
    14*N*flop
    """
    return 14 * parameters * flop


@formula(
    glyph="Q_{reset}",
    dimension=BYTE,
    source=MICIKEVICIUS,
    increasing="gradient_bytes parameters",
    curvature="affine",
)
def gradient_reset_bytes(parameters: Any, gradient_bytes: Any) -> Any:
    """Bytes to set the accumulated gradients to zero, w_g a parameter.

    Assumes: one kernel that writes; every replica resets its whole accumulator, ZeRO stage 1 or not.

    Source: counted from the operation; gradients are accumulated over micro-batches, Micikevicius et al. 2017.

    >>> from sympy import symbols
    >>> gradient_reset_bytes(*symbols("N g"))
    N*g
    """
    return parameters * gradient_bytes


@formula(
    glyph="Q_{clip}",
    dimension=BYTE,
    source=MICIKEVICIUS,
    increasing="gradient_bytes parameters",
    curvature="affine",
)
def gradient_clip_bytes(parameters: Any, gradient_bytes: Any) -> Any:
    """Bytes to take the norm of the accumulated gradients and scale them by it, 3 w_g a parameter.

    Assumes: a kernel that reads, and one that reads and writes; the norm exceeds its limit, so that scaling runs.

    Source: counted from the steps of gradient clipping as in Megatron-LM.

    >>> from sympy import symbols
    >>> gradient_clip_bytes(*symbols("N g"))
    3*N*g
    """
    return 3 * parameters * gradient_bytes


@formula(
    glyph="Q_{unscale}",
    dimension=BYTE,
    source=MICIKEVICIUS,
    increasing="gradient_bytes parameters",
    curvature="affine",
)
def gradient_unscale_bytes(parameters: Any, gradient_bytes: Any) -> Any:
    """Bytes to undo the loss scale and look for infinities, 2 w_g a parameter.

    Assumes: one kernel that reads and writes; FP16 training only.

    Source: Micikevicius et al. 2017 section 3.2 (loss scaling).

    >>> from sympy import symbols
    >>> gradient_unscale_bytes(*symbols("N g"))
    2*N*g
    """
    return 2 * parameters * gradient_bytes
