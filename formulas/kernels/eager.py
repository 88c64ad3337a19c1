"""Bytes of norms, rotary positions and gated activations as the operations of PyTorch run them, one kernel each.

N elements of w bytes on one device; what is computed in 32 bits (w_s) is written and read again between kernels. A
fused kernel, or a compiler, moves what `elementwise` counts. A gain, or a mean of each row, is small.
"""

from __future__ import annotations

from typing import Any

from ..language.dimension import BYTE
from ..language.formula import formula
from ..sources import SHAZEER, SU, ZHANG


@formula(
    glyph="Q_{norm}^e",
    dimension=BYTE,
    source=ZHANG,
    increasing="activation_bytes elements statistic_bytes",
    curvature="convex",
)
def eager_norm_bytes(elements: Any, activation_bytes: Any, statistic_bytes: Any) -> Any:
    """Bytes of an RMS norm operation by operation, forward: (4 w + 7 w_s) N.

    Into 32 bits (w + w_s), squares (2 w_s), their mean (w_s), the product with its root (2 w_s), back (w_s + w), the
    product with the gain (2 w).

    Assumes: the gain is applied in 16 bits.

    Source: counted from Qwen3MoeRMSNorm of transformers (models/qwen3_moe/modeling_qwen3_moe.py at 00d4b3d2), which is
    Zhang and Sennrich's norm. PyTorch's composite of rms_norm (aten/src/ATen/native/layer_norm.cpp) has the same steps,
    but for the gain, which it has come to apply in 32 bits.

    >>> from sympy import symbols
    >>> eager_norm_bytes(*symbols("N w w_s"))
    N*(4*w + 7*w_s)
    """
    return elements * (4 * activation_bytes + 7 * statistic_bytes)


@formula(
    glyph="Q_{norm'}^e",
    dimension=BYTE,
    source=ZHANG,
    increasing="activation_bytes elements statistic_bytes",
    curvature="convex",
)
def eager_norm_backward_bytes(elements: Any, activation_bytes: Any, statistic_bytes: Any) -> Any:
    """Bytes of the gradients of `eager_norm_bytes`, operation by operation: (8 w + 17 w_s) N.

    Of the product with the gain both gradients (2 w, 3 w) and the sum of the second (w); into 32 bits (w + w_s); of the
    product with the root both (2 w_s, 3 w_s) and the sum of the second (w_s); of the square its power, twice that, and
    the product with the gradient (6 w_s); the sum of both (3 w_s); back (w_s + w).

    Assumes: as automatic differentiation runs it, without a formula of its own.

    Source: counted from torch/csrc/autograd/FunctionsManual.cpp (mul, pow, mean) for the steps of `eager_norm_bytes`.

    >>> from sympy import symbols
    >>> eager_norm_backward_bytes(*symbols("N w w_s"))
    N*(8*w + 17*w_s)
    """
    return elements * (8 * activation_bytes + 17 * statistic_bytes)


@formula(
    glyph="Q_{norm}^c",
    dimension=BYTE,
    source=ZHANG,
    increasing="activation_bytes elements statistic_bytes",
    curvature="convex",
)
def copied_norm_bytes(elements: Any, activation_bytes: Any, statistic_bytes: Any) -> Any:
    """Bytes of a norm that reads a copy of its input in 32 bits, forward: (2 w + 2 w_s) N.

    Into 32 bits (w + w_s), then one kernel (w_s + w).

    Assumes: the kernel writes the format of its gain (Apex's MixedFusedRMSNorm).

    Source: counted from `self.norm1(_residual.float())` of InternLM, internlm/model/modeling_internlm.py at 9481df97;
    Zhang and Sennrich 2019 for RMS norm.

    >>> from sympy import symbols
    >>> copied_norm_bytes(*symbols("N w w_s"))
    N*(2*w + 2*w_s)
    """
    return elements * (2 * activation_bytes + 2 * statistic_bytes)


@formula(
    glyph="Q_{norm'}^c",
    dimension=BYTE,
    source=ZHANG,
    increasing="activation_bytes elements statistic_bytes",
    curvature="convex",
)
def copied_norm_backward_bytes(elements: Any, activation_bytes: Any, statistic_bytes: Any) -> Any:
    """Bytes of the gradients of `copied_norm_bytes`: (3 w + 4 w_s) N.

    Copy and gradient in twice (2 w_s + 2 w), the copy's gradient out (w_s), and back (w_s + w).

    Assumes: two kernels, as `norm_backward_bytes`, and one for the copy.

    Source: as `copied_norm_bytes`; the gradient of a copy into another format is a copy back.

    >>> from sympy import symbols
    >>> copied_norm_backward_bytes(*symbols("N w w_s"))
    N*(3*w + 4*w_s)
    """
    return elements * (3 * activation_bytes + 4 * statistic_bytes)


@formula(
    glyph="Q_{rot}^e",
    dimension=BYTE,
    source=SU,
    increasing="activation_bytes elements statistic_bytes",
    curvature="convex",
)
def eager_rotary_bytes(elements: Any, activation_bytes: Any, statistic_bytes: Any) -> Any:
    """Bytes of rotary positions as a product of complex numbers, forward or backward: (2 w + 4 w_s) N.

    Into 32 bits (w + w_s), the product (2 w_s), back (w_s + w).

    Assumes: frequencies are small. With halves that are turned and joined (transformers' rotate_half: 3 w, two products
    of 2 w each, their sum of 3 w) it is 10 w, which is the same in 16 bits.

    Source: counted from the operations, for the rotation of Su et al. 2021.

    >>> from sympy import symbols
    >>> eager_rotary_bytes(*symbols("N w w_s"))
    N*(2*w + 4*w_s)
    """
    return elements * (2 * activation_bytes + 4 * statistic_bytes)


@formula(
    glyph="Q_{glu}^e",
    dimension=BYTE,
    source=SHAZEER,
    increasing="activation_bytes elements",
    curvature="affine",
)
def eager_gated_bytes(elements: Any, activation_bytes: Any) -> Any:
    """Bytes of a gated activation as two kernels, forward: the function of the gate (2 w), the product (3 w), 5 w N.

    Assumes: gate and up are results of their own, or parts of one.

    Source: counted from the operations of Shazeer 2020's gated MLP, as transformers' Qwen3MoeMLP runs them.

    >>> from sympy import symbols
    >>> eager_gated_bytes(*symbols("N w"))
    5*N*w
    """
    return 5 * elements * activation_bytes


@formula(
    glyph="Q_{glu'}^e",
    dimension=BYTE,
    source=SHAZEER,
    increasing="activation_bytes elements",
    curvature="affine",
)
def eager_gated_backward_bytes(elements: Any, activation_bytes: Any) -> Any:
    """Bytes of the gradients of `eager_gated_bytes`: of both factors (3 w each), of the function (3 w), 9 w N.

    Assumes: as automatic differentiation runs it: two products with the gradient, and the function's own kernel.

    Source: counted from the operations, as `eager_gated_bytes`.

    >>> from sympy import symbols
    >>> eager_gated_backward_bytes(*symbols("N w"))
    9*N*w
    """
    return 9 * elements * activation_bytes
