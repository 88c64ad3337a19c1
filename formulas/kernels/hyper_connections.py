"""Hyper-connections: n_hc residual streams, which every part of a layer reads as a mixture and mixes anew."""

from __future__ import annotations

from typing import Any

from ..language.dimension import FLOP, ONE
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
