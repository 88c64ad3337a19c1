"""What experts cost more where software adds their biases and limits their gates by kernels of its own.

N results of experts, or N elements of their inner width, on the device. Megatron-Core adds the bias of the second
product expert by expert, times the probabilities of the expert's rows, t + b p, and joins the pieces; the gate and the
linear half of a limited activation are cut out of the first product, limited, and joined, before the fused kernel.
"""

from __future__ import annotations

from typing import Any

from ..language.dimension import BYTE
from ..language.formula import formula
from ..sources import MEGATRON_EXPERTS


@formula(
    glyph="Q_{xb}",
    dimension=BYTE,
    source=MEGATRON_EXPERTS,
    increasing="activation_bytes elements",
    curvature="affine",
)
def separate_bias_bytes(elements: Any, activation_bytes: Any) -> Any:
    """Bytes of biases that are added to N results of experts by kernels of their own, forward: 6 w N.

    Out goes the product of bias and probabilities (w); a sum takes it and the results and gives as much (3 w); the
    pieces of the experts are copied into one tensor (2 w).

    Assumes: probabilities in the format of activations, as without `moe_router_dtype`; in FP32 the three tensors are
    FP32 too, and a cast follows: 28 bytes for 12.

    Source: counted from `TEGroupedMLP._apply_bias` of Megatron-LM, megatron/core/transformer/moe/experts.py.

    >>> from sympy import symbols
    >>> separate_bias_bytes(*symbols("N w"))
    6*N*w
    """
    return 6 * elements * activation_bytes


@formula(
    glyph="Q_{xb'}",
    dimension=BYTE,
    source=MEGATRON_EXPERTS,
    increasing="activation_bytes elements",
    curvature="affine",
)
def separate_bias_backward_bytes(elements: Any, activation_bytes: Any) -> Any:
    """Bytes of the gradients of `separate_bias_bytes`: 8 w N.

    The gradient times probabilities is written (2 w) and summed over rows for the bias (w); times the bias (2 w) it is
    summed over columns for the probabilities (w); pieces of the gradient of the results are joined (2 w).

    Assumes: as `separate_bias_bytes`; the gradient of joined pieces is a view of each.

    Source: counted from PyTorch's autograd of `separate_bias_bytes` (MulBackward0, SplitBackward0).

    >>> from sympy import symbols
    >>> separate_bias_backward_bytes(*symbols("N w"))
    8*N*w
    """
    return 8 * elements * activation_bytes


@formula(
    glyph="Q_{xl}",
    dimension=BYTE,
    source=MEGATRON_EXPERTS,
    increasing="activation_bytes elements",
    curvature="affine",
)
def separate_limit_bytes(elements: Any, activation_bytes: Any) -> Any:
    """Bytes of limits on both halves of a gated activation over N elements, before its fused kernel, forward: 8 w N.

    Each half is read and written limited (4 w), and both are joined to one tensor of 2 N elements (4 w).

    Assumes: three kernels; halves are views.

    Source: counted from `weighted_bias_quick_geglu_impl` of Megatron-LM, megatron/core/fusions/fused_bias_geglu.py.

    >>> from sympy import symbols
    >>> separate_limit_bytes(*symbols("N w"))
    8*N*w
    """
    return 8 * elements * activation_bytes


@formula(
    glyph="Q_{xl'}",
    dimension=BYTE,
    source=MEGATRON_EXPERTS,
    increasing="activation_bytes elements mask_bytes",
    curvature="convex",
)
def separate_limit_backward_bytes(elements: Any, activation_bytes: Any, mask_bytes: Any) -> Any:
    """Bytes of the gradients of `separate_limit_bytes`: N (11 w + 8 w_m).

    A half limited on one side compares (w + w_m) and selects (2 w + w_m); one limited on both compares twice, joins the
    masks (3 w_m) and selects: 7 w + 8 w_m in all. Gradients of the halves are joined (4 w).

    Assumes: the gate is limited above, the linear half on both sides (gpt-oss).

    Source: counted from PyTorch's `clamp_backward` (torch/csrc/autograd/FunctionsManual.cpp) and SplitBackward0.

    >>> from sympy import symbols
    >>> separate_limit_backward_bytes(*symbols("N w m"))
    N*(8*m + 11*w)
    """
    return elements * (11 * activation_bytes + 8 * mask_bytes)
