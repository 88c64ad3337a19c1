"""Bytes of norms and additions where the residual stream has more bytes an element than the other activations.

N elements on one device: w_res bytes of the stream, w of what branches give and take. So Mamba trains, so
Megatron-LM with --fp32-residual-connection, and so torch.autocast does, whose additions keep the wider format.
"""

from __future__ import annotations

from typing import Any

from ..language.dimension import BYTE
from ..language.formula import formula
from ..sources import ANSEL, MAMBA, ZHANG


@formula(
    glyph="Q_{normw}",
    dimension=BYTE,
    source=ZHANG,
    increasing="activation_bytes elements stream_bytes",
    curvature="convex",
)
def wide_norm_bytes(elements: Any, activation_bytes: Any, stream_bytes: Any) -> Any:
    """Bytes of a norm of a wide residual stream, forward: stream in, output out, (w_res + w) N.

    Assumes: as `norm_bytes`; the stream has w_res bytes an element.

    Source: counted from the operation; Zhang and Sennrich 2019 for RMS norm.

    >>> from sympy import symbols
    >>> wide_norm_bytes(*symbols("N w w_res"))
    N*(w + w_res)
    """
    return elements * (activation_bytes + stream_bytes)


@formula(
    glyph="Q_{normw'}",
    dimension=BYTE,
    source=ZHANG,
    increasing="activation_bytes elements stream_bytes",
    curvature="convex",
)
def wide_norm_backward_bytes(elements: Any, activation_bytes: Any, stream_bytes: Any) -> Any:
    """Bytes of such a norm's backward kernels: stream and gradient in twice, input gradient out, (2 w_res + 3 w) N.

    Assumes: as `norm_backward_bytes`; gradients have w bytes.

    Source: as `norm_backward_bytes`.

    >>> from sympy import symbols
    >>> wide_norm_backward_bytes(*symbols("N w w_res"))
    N*(3*w + 2*w_res)
    """
    return elements * (3 * activation_bytes + 2 * stream_bytes)


@formula(
    glyph="Q_{addw}",
    dimension=BYTE,
    source=MAMBA,
    increasing="activation_bytes elements stream_bytes",
    curvature="convex",
)
def wide_residual_bytes(elements: Any, activation_bytes: Any, stream_bytes: Any) -> Any:
    """Bytes of adding a branch, or its gradient, to a wide stream: stream in and out, branch in, (2 w_res + w) N.

    Assumes: one kernel.

    Source: counted from mamba_ssm (residual_in_fp32), which keeps the stream of Gu and Dao 2023 in FP32.

    >>> from sympy import symbols
    >>> wide_residual_bytes(*symbols("N w w_res"))
    N*(w + 2*w_res)
    """
    return elements * (activation_bytes + 2 * stream_bytes)


@formula(
    glyph="Q_{anw}",
    dimension=BYTE,
    source=ANSEL,
    increasing="activation_bytes elements stream_bytes",
    curvature="convex",
)
def wide_residual_norm_bytes(elements: Any, activation_bytes: Any, stream_bytes: Any) -> Any:
    """Bytes of a fused addition to a wide stream and norm, forward: (2 w_res + 2 w) N.

    Stream and branch in, sum and normalised sum out; the stream has w_res bytes an element.

    Assumes: as `residual_norm_bytes`.

    Source: as `residual_norm_bytes`; under torch.autocast additions keep the wider format, that of the embedding.

    >>> from sympy import symbols
    >>> wide_residual_norm_bytes(*symbols("N w w_res"))
    N*(2*w + 2*w_res)
    """
    return elements * (2 * activation_bytes + 2 * stream_bytes)


@formula(
    glyph="Q_{anw'}",
    dimension=BYTE,
    source=ANSEL,
    increasing="activation_bytes elements stream_bytes",
    curvature="convex",
)
def wide_residual_norm_backward_bytes(elements: Any, activation_bytes: Any, stream_bytes: Any) -> Any:
    """Bytes of its gradients with the sum of both branches' gradients, (4 w_res + 3 w) N.

    As `residual_norm_backward_bytes`: gradients and stream in, the sum out (3 w_res + w), for the gains' gradient the
    first and the stream in again (w + w_res); and the sum in the branch's format (w).

    Assumes: as `residual_norm_backward_bytes`.

    Source: as `residual_norm_backward_bytes`.

    >>> from sympy import symbols
    >>> wide_residual_norm_backward_bytes(*symbols("N w w_res"))
    N*(3*w + 4*w_res)
    """
    return elements * (3 * activation_bytes + 4 * stream_bytes)
