"""The causal depthwise convolution before a scan: every channel has k_c taps of its own."""

from __future__ import annotations

from typing import Any

from ..language.dimension import BYTE, FLOP, ONE
from ..language.formula import formula
from ..language.symbols import flop
from ..sources import MAMBA


@formula(
    glyph="N_{cv}",
    dimension=ONE,
    source=MAMBA,
    increasing="conv_kernel width",
    curvature="affine",
)
def convolution_parameters(width: Any, conv_kernel: Any) -> Any:
    """Weights of a depthwise convolution: k_c a channel.

    Assumes: no bias; a bias adds one a channel.

    Source: Gu and Dao 2023 section 3.4, figure 3.

    >>> from sympy import symbols
    >>> convolution_parameters(*symbols("w k"))
    k*w
    """
    return width * conv_kernel


@formula(
    glyph="W_{cv}",
    dimension=FLOP,
    source=MAMBA,
    increasing="conv_kernel flop tokens width",
    curvature="affine",
)
def convolution_flops(tokens: Any, width: Any, conv_kernel: Any) -> Any:
    """FLOPs of a depthwise convolution: 2 T h' k_c for T results a channel.

    Assumes: taps that meet padding are counted.

    Source: Gu and Dao 2023 section 3.4, figure 3; one product and one sum a tap.

    >>> from sympy import symbols
    >>> convolution_flops(*symbols("T w k"))
    2*T*flop*k*w
    """
    return 2 * tokens * width * conv_kernel * flop


@formula(
    glyph="Q_{conv}",
    dimension=BYTE,
    source=MAMBA,
    increasing="activation_bytes conv_kernel tokens weight_bytes width",
    curvature="convex",
)
def convolution_bytes(tokens: Any, width: Any, conv_kernel: Any, activation_bytes: Any, weight_bytes: Any) -> Any:
    """Bytes of a causal convolution, forward: channels in and out once, and the taps.

    The equation: 2 T h' w_x + h' k_c w_w.

    Assumes: one fused kernel with its activation; earlier tokens come from cache or registers.

    Source: counted from the kernel of Gu and Dao 2023 (causal_conv1d).

    >>> from sympy import symbols
    >>> convolution_bytes(*symbols("T w k x y"))
    2*T*w*x + k*w*y
    """
    return 2 * tokens * width * activation_bytes + width * conv_kernel * weight_bytes


@formula(
    glyph="A_{cv}",
    dimension=BYTE,
    source=MAMBA,
    increasing="activation_bytes conv_kernel micro_batch width",
    curvature="affine",
)
def convolution_state_bytes(micro_batch: Any, width: Any, conv_kernel: Any, activation_bytes: Any) -> Any:
    """Bytes that generation keeps of a convolution: the last k_c inputs of every channel, b h' k_c w.

    Assumes: a full window is kept; k_c - 1 would do.

    Source: counted from the cache that Gu and Dao 2023 publish (mamba_ssm, InferenceParams).

    >>> from sympy import symbols
    >>> convolution_state_bytes(*symbols("b w k x"))
    b*k*w*x
    """
    return micro_batch * width * conv_kernel * activation_bytes
