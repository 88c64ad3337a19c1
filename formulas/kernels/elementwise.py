"""Bytes of the kernels between the matrix products, and the FLOPs that they execute per element.

N elements of w bytes on one device; a dropout mask has w_m bytes an element. Each formula counts what must cross
device memory, each operand once, for the fused kernel named.
"""

from __future__ import annotations

from typing import Any

from ..language.dimension import BYTE, FLOP
from ..language.formula import formula
from ..language.symbols import flop
from ..sources import ANSEL, BA, KORTHIKANTI, KUNDU, SHAZEER, SU, ZHANG


@formula(
    glyph="Q_{norm}",
    dimension=BYTE,
    source=BA,
    increasing="activation_bytes elements",
    curvature="affine",
)
def norm_bytes(elements: Any, activation_bytes: Any) -> Any:
    """Bytes of a layer norm or RMS norm, forward: input in, output out, 2 w N.

    Assumes: one fused kernel; gains, biases and statistics are small.

    Source: Ba et al. 2016; Zhang and Sennrich 2019 for RMS norm.

    >>> from sympy import symbols
    >>> norm_bytes(*symbols("N w"))
    2*N*w
    """
    return 2 * elements * activation_bytes


@formula(
    glyph="Q_{an}",
    dimension=BYTE,
    source=ZHANG,
    increasing="activation_bytes elements",
    curvature="affine",
)
def residual_norm_bytes(elements: Any, activation_bytes: Any) -> Any:
    """Bytes of a fused residual addition and norm, forward: stream and branch in, sum and normalised sum out, 4 w N.

    Assumes: one fused kernel; gains and statistics are small.

    Source: counted from the operation; Zhang and Sennrich 2019 for RMS norm.

    >>> from sympy import symbols
    >>> residual_norm_bytes(*symbols("N w"))
    4*N*w
    """
    return 4 * elements * activation_bytes


@formula(
    glyph="Q_{norm'}",
    dimension=BYTE,
    source=ZHANG,
    increasing="activation_bytes elements",
    curvature="affine",
)
def norm_backward_bytes(elements: Any, activation_bytes: Any) -> Any:
    """Bytes of a norm's backward kernels: input and gradient in twice, input gradient out, 5 w N.

    Assumes: one kernel for the input's gradient and one for the gains', as in Apex and Megatron.

    Source: counted from the two kernels; the gain gradient reduces gradient times normalised input over tokens.

    >>> from sympy import symbols
    >>> norm_backward_bytes(*symbols("N w"))
    5*N*w
    """
    return 5 * elements * activation_bytes


@formula(
    glyph="Q_{an'}",
    dimension=BYTE,
    source=ANSEL,
    increasing="activation_bytes elements",
    curvature="affine",
)
def residual_norm_backward_bytes(elements: Any, activation_bytes: Any) -> Any:
    """Bytes of a norm's gradients with the sum of both branches' gradients in its kernel, 6 w N.

    The gradients of the normalised and of the whole stream and the stream in, their sum out; and for the gains'
    gradient, which is summed over tokens in a kernel of its own, the first and the stream in again.

    Assumes: a compiler joins element-wise kernels with reductions of the same rows, not with those over tokens.

    Source: counted from the operation; Ansel et al. 2024 section 4.4 for what TorchInductor joins.

    >>> from sympy import symbols
    >>> residual_norm_backward_bytes(*symbols("N w"))
    6*N*w
    """
    return 6 * elements * activation_bytes


@formula(
    glyph="Q_{drop}",
    dimension=BYTE,
    source=KORTHIKANTI,
    increasing="activation_bytes elements mask_bytes",
    curvature="convex",
)
def dropout_bytes(elements: Any, activation_bytes: Any, mask_bytes: Any) -> Any:
    """Bytes of a dropout, forward or backward: input in, output out, mask out (or in), (2 w + w_m) N.

    Assumes: one kernel; the random numbers are made on chip.

    Source: Korthikanti et al. 2022 section 4.1 keeps the mask at one byte an element.

    >>> from sympy import symbols
    >>> dropout_bytes(*symbols("N w m"))
    N*(m + 2*w)
    """
    return elements * (2 * activation_bytes + mask_bytes)


@formula(
    glyph="Q_{add}",
    dimension=BYTE,
    source=KUNDU,
    increasing="activation_bytes elements",
    curvature="affine",
)
def residual_bytes(elements: Any, activation_bytes: Any) -> Any:
    """Bytes of a residual addition, or of adding the gradients of two branches: two in, one out, 3 w N.

    Assumes: one kernel.

    Source: counted from the operation; Kundu et al. 2024 section 3 treats such kernels as bound by memory.

    >>> from sympy import symbols
    >>> residual_bytes(*symbols("N w"))
    3*N*w
    """
    return 3 * elements * activation_bytes


@formula(
    glyph="Q_{bda}",
    dimension=BYTE,
    source=KORTHIKANTI,
    increasing="activation_bytes elements mask_bytes",
    curvature="convex",
)
def dropout_residual_bytes(elements: Any, activation_bytes: Any, mask_bytes: Any) -> Any:
    """Bytes of a fused bias, dropout and residual addition, forward: two in, sum and mask out, (3 w + w_m) N.

    Assumes: one fused kernel (Megatron's bias_dropout_add); the bias is small.

    Source: counted from that kernel; masks as in Korthikanti et al. 2022 section 4.1.

    >>> from sympy import symbols
    >>> dropout_residual_bytes(*symbols("N w m"))
    N*(m + 3*w)
    """
    return elements * (3 * activation_bytes + mask_bytes)


@formula(
    glyph="Q_{act}",
    dimension=BYTE,
    source=KUNDU,
    increasing="activation_bytes elements",
    curvature="affine",
)
def activation_function_bytes(elements: Any, activation_bytes: Any) -> Any:
    """Bytes of the MLP's (bias and) activation function, forward: input in, output out, 2 w N.

    Assumes: one fused kernel over the N inner elements.

    Source: counted from the operation; Kundu et al. 2024 section 3.

    >>> from sympy import symbols
    >>> activation_function_bytes(*symbols("N w"))
    2*N*w
    """
    return 2 * elements * activation_bytes


@formula(
    glyph="Q_{act'}",
    dimension=BYTE,
    source=KUNDU,
    increasing="activation_bytes elements",
    curvature="affine",
)
def activation_function_backward_bytes(elements: Any, activation_bytes: Any) -> Any:
    """Bytes of the activation function's backward kernel: input and gradient in, input gradient out, 3 w N.

    Assumes: one fused kernel over the N inner elements.

    Source: counted from the operation; Kundu et al. 2024 section 3.

    >>> from sympy import symbols
    >>> activation_function_backward_bytes(*symbols("N w"))
    3*N*w
    """
    return 3 * elements * activation_bytes


@formula(
    glyph="Q_{glu}",
    dimension=BYTE,
    source=SHAZEER,
    increasing="activation_bytes elements",
    curvature="affine",
)
def gated_activation_bytes(elements: Any, activation_bytes: Any) -> Any:
    """Bytes of a gated activation, forward: gate and up in, product out, 3 w N.

    Assumes: one fused kernel over the N inner elements (SwiGLU, GeGLU).

    Source: Shazeer 2020, the product of an activated gate and a linear branch.

    >>> from sympy import symbols
    >>> gated_activation_bytes(*symbols("N w"))
    3*N*w
    """
    return 3 * elements * activation_bytes


@formula(
    glyph="Q_{glu'}",
    dimension=BYTE,
    source=SHAZEER,
    increasing="activation_bytes elements",
    curvature="affine",
)
def gated_activation_backward_bytes(elements: Any, activation_bytes: Any) -> Any:
    """Bytes of the gated activation's backward kernel: gate, up and gradient in, two gradients out, 5 w N.

    Assumes: one fused kernel over the N inner elements.

    Source: derivative of the product in Shazeer 2020.

    >>> from sympy import symbols
    >>> gated_activation_backward_bytes(*symbols("N w"))
    5*N*w
    """
    return 5 * elements * activation_bytes


@formula(
    glyph="Q_{rot}",
    dimension=BYTE,
    source=SU,
    increasing="activation_bytes elements",
    curvature="affine",
)
def rotary_bytes(elements: Any, activation_bytes: Any) -> Any:
    """Bytes of rotary positions on N query and key elements, forward or backward: in and out, 2 w N.

    Assumes: one fused kernel; the table of angles is small; the backward pass turns by the opposite angle.

    Source: Su et al. 2021 section 3.4.2.

    >>> from sympy import symbols
    >>> rotary_bytes(*symbols("N w"))
    2*N*w
    """
    return 2 * elements * activation_bytes


@formula(
    glyph="Q_{bias'}",
    dimension=BYTE,
    source=KUNDU,
    increasing="activation_bytes elements",
    curvature="affine",
)
def bias_gradient_bytes(elements: Any, activation_bytes: Any) -> Any:
    """Bytes of a bias gradient: the sum of the output gradient over tokens reads it once, w N.

    Assumes: a kernel of its own.

    Source: counted from the operation; Kundu et al. 2024 section 3 treats such kernels as bound by memory.

    >>> from sympy import symbols
    >>> bias_gradient_bytes(*symbols("N w"))
    N*w
    """
    return elements * activation_bytes


@formula(
    glyph="W_{vec}",
    dimension=FLOP,
    source=KUNDU,
    increasing="elements flop groups",
    curvature="affine",
)
def elementwise_flops(elements: Any, groups: Any) -> Any:
    """FLOPs of an element-wise kernel that executes g of them an element, g N.

    Assumes: a count of operations per element stated by the caller.

    Source: counted from the operation; Kundu et al. 2024 section 3.

    >>> from sympy import symbols
    >>> elementwise_flops(*symbols("N g"))
    N*flop*g
    """
    return elements * groups * flop
