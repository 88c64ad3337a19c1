"""Hyper-connections: n_hc residual streams, which every part of a layer reads as a mixture and mixes anew."""

from __future__ import annotations

from typing import Any

from ..language.dimension import BYTE, FLOP, ONE
from ..language.formula import formula
from ..language.symbols import flop
from ..sources import HYPER_CONNECTIONS


@formula(
    glyph="N_{hc}", dimension=ONE, source=HYPER_CONNECTIONS, increasing="hidden_size num_streams", curvature="convex"
)
def hyper_connection_parameters(hidden_size: Any, num_streams: Any) -> Any:
    """Weights of the connections at one part of a layer: (2 + n) n (n h) of the projection, (2 + n) n biases, 3 scales.

    Assumes: dynamic connections, of all streams of a token together: n weights to read, n to write, n n to mix.

    Source: Zhu et al. 2024 section 2.2; counted from the modules of DeepSeek-V4 in transformers.

    >>> hyper_connection_parameters(4096, 4)
    393243
    """
    mixing = (2 + num_streams) * num_streams
    return mixing * num_streams * hidden_size + mixing + 3


@formula(
    glyph="N_{hce}", dimension=ONE, source=HYPER_CONNECTIONS, increasing="hidden_size num_streams", curvature="convex"
)
def stream_head_parameters(hidden_size: Any, num_streams: Any) -> Any:
    """Weights that join the streams before the head: n (n h) of the projection, n biases and a scale.

    Assumes: one weight for each stream.

    Source: as `hyper_connection_parameters`.

    >>> stream_head_parameters(4096, 4)
    65541
    """
    return num_streams * num_streams * hidden_size + num_streams + 1


@formula(
    glyph="W_{hc}",
    dimension=FLOP,
    source=HYPER_CONNECTIONS,
    increasing="flop hidden_size num_streams tokens",
    curvature="convex",
)
def hyper_connection_flops(tokens: Any, hidden_size: Any, num_streams: Any) -> Any:
    """FLOPs of the connections at one part of a layer: 2 T n n h (2 + n) for their weights, 2 T n n h to mix.

    Assumes: reading and writing streams, and the normalization of the weights, are elementwise.

    Source: Zhu et al. 2024 section 2.2.

    >>> hyper_connection_flops(1, 4096, 4)
    917504*flop
    """
    return 2 * tokens * num_streams * num_streams * hidden_size * (3 + num_streams) * flop


@formula(
    glyph="W_{hce}",
    dimension=FLOP,
    source=HYPER_CONNECTIONS,
    increasing="flop hidden_size num_streams tokens",
    curvature="affine",
)
def stream_head_flops(tokens: Any, hidden_size: Any, num_streams: Any) -> Any:
    """FLOPs of the weights that join the streams before the head: 2 T n n h.

    Assumes: the sum over streams is elementwise.

    Source: Zhu et al. 2024 section 2.2.

    >>> stream_head_flops(1, 4096, 4)
    131072*flop
    """
    return 2 * tokens * num_streams * num_streams * hidden_size * flop


def _moved(times: Any, tokens: Any, hidden_size: Any, activation_bytes: Any) -> Any:
    """Bytes of a kernel that reads or writes streams, mixtures and results so many times together."""
    return times * tokens * hidden_size * activation_bytes


@formula(
    glyph="Q_{hcr}",
    dimension=BYTE,
    source=HYPER_CONNECTIONS,
    increasing="activation_bytes hidden_size num_streams tokens",
    curvature="convex",
)
def stream_read_bytes(tokens: Any, hidden_size: Any, num_streams: Any, activation_bytes: Any) -> Any:
    """Bytes of the mixture that a part of a layer reads: (n + 1) T h w.

    Assumes: one kernel reads all streams and writes their weighted sum; the weights, n (n + 2) a token, are small.

    Source: Zhu et al. 2024 section 2.2.

    >>> from sympy import symbols
    >>> stream_read_bytes(*symbols("T h n w"))
    T*h*w*(n + 1)
    """
    return _moved(num_streams + 1, tokens, hidden_size, activation_bytes)


@formula(
    glyph="Q_{hcw}",
    dimension=BYTE,
    source=HYPER_CONNECTIONS,
    increasing="activation_bytes hidden_size num_streams tokens",
    curvature="convex",
)
def stream_write_bytes(tokens: Any, hidden_size: Any, num_streams: Any, activation_bytes: Any) -> Any:
    """Bytes of mixing the streams anew with what a part of a layer gave: (2 n + 1) T h w.

    Assumes: one kernel reads the streams and the result, and writes the streams.

    Source: Zhu et al. 2024 section 2.2.

    >>> from sympy import symbols
    >>> stream_write_bytes(*symbols("T h n w"))
    T*h*w*(2*n + 1)
    """
    return _moved(2 * num_streams + 1, tokens, hidden_size, activation_bytes)


@formula(
    glyph="Q_{hcr}^{b}",
    dimension=BYTE,
    source=HYPER_CONNECTIONS,
    increasing="activation_bytes hidden_size num_streams tokens",
    curvature="convex",
)
def stream_read_backward_bytes(tokens: Any, hidden_size: Any, num_streams: Any, activation_bytes: Any) -> Any:
    """Bytes of the gradients of the mixture that was read: (3 n + 1) T h w.

    Assumes: one kernel reads the mixture's gradient, the streams and their gradient so far, which it adds to.

    Source: derivation: the weights' gradients are products of streams and the mixture's gradient.

    >>> from sympy import symbols
    >>> stream_read_backward_bytes(*symbols("T h n w"))
    T*h*w*(3*n + 1)
    """
    return _moved(3 * num_streams + 1, tokens, hidden_size, activation_bytes)


@formula(
    glyph="Q_{hcw}^{b}",
    dimension=BYTE,
    source=HYPER_CONNECTIONS,
    increasing="activation_bytes hidden_size num_streams tokens",
    curvature="convex",
)
def stream_write_backward_bytes(tokens: Any, hidden_size: Any, num_streams: Any, activation_bytes: Any) -> Any:
    """Bytes of the gradients of mixing streams with a result: (3 n + 2) T h w.

    Assumes: one kernel reads the streams, the result and the gradients of the new streams, and writes those of the old
    ones and of the result.

    Source: derivation: gradients of the weights are products of the new streams' gradients with the old streams and the
    result.

    >>> from sympy import symbols
    >>> stream_write_backward_bytes(*symbols("T h n w"))
    T*h*w*(3*n + 2)
    """
    return _moved(3 * num_streams + 2, tokens, hidden_size, activation_bytes)
