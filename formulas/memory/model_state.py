"""Model state on a device: weights, gradients, the optimizer's state, and the key-value cache; all in bytes."""

from __future__ import annotations

from typing import Any

from ..language.dimension import BYTE
from ..language.formula import formula
from ..sources import AINSLIE, RAJBHANDARI


@formula(
    glyph="M_w",
    dimension=BYTE,
    source=RAJBHANDARI,
    increasing="parameters weight_bytes",
    curvature="affine",
)
def weights_memory(parameters: Any, weight_bytes: Any) -> Any:
    """Bytes of the weights that a device holds, N w_w.

    Assumes: N parameters on the device, in the format of the products.

    Source: Rajbhandari et al. 2020 section 3.1 (2 bytes in FP16).

    >>> from sympy import symbols
    >>> weights_memory(*symbols("N w"))
    N*w
    """
    return parameters * weight_bytes


@formula(
    glyph="M_g",
    dimension=BYTE,
    source=RAJBHANDARI,
    increasing="gradient_bytes parameters",
    curvature="affine",
)
def gradients_memory(parameters: Any, gradient_bytes: Any) -> Any:
    """Bytes of the accumulated gradients, N w_g.

    Assumes: every device accumulates the gradients of all its parameters (ZeRO stage 0 and 1).

    Source: Rajbhandari et al. 2020 section 3.1; Megatron-LM accumulates in FP32 (4 bytes).

    >>> from sympy import symbols
    >>> gradients_memory(*symbols("N w"))
    N*w
    """
    return parameters * gradient_bytes


@formula(
    glyph="M_o",
    dimension=BYTE,
    source=RAJBHANDARI,
    increasing="optimizer_bytes parameters",
    curvature="affine",
)
def optimizer_memory(parameters: Any, optimizer_bytes: Any) -> Any:
    """Bytes of the optimizer's state, N w_o.

    Assumes: every replica holds all of it (ZeRO stage 0).

    Source: Rajbhandari et al. 2020 section 3.1: 12 bytes for Adam with an FP32 master weight.

    >>> from sympy import symbols
    >>> optimizer_memory(*symbols("N w"))
    N*w
    """
    return parameters * optimizer_bytes


@formula(
    glyph="M_{kv}",
    dimension=BYTE,
    source=AINSLIE,
    increasing="element_bytes head_dim num_key_value_heads num_layers tokens",
    curvature="affine",
)
def kv_cache_bytes(tokens: Any, num_layers: Any, num_key_value_heads: Any, head_dim: Any, element_bytes: Any) -> Any:
    """Bytes of the key-value cache of N tokens, 2 L a_kv d_h w a token.

    Assumes: every layer caches keys and values of equal width for every token, on one device.

    Source: Ainslie et al. 2023 section 2: the cache shrinks with the key-value heads.

    >>> from sympy import symbols
    >>> kv_cache_bytes(*symbols("T L k d w"))
    2*L*T*d*k*w
    """
    return 2 * tokens * num_layers * num_key_value_heads * head_dim * element_bytes
