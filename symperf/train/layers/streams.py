"""Hyper-connections as operations: what a part of a layer reads of several residual streams, and how it joins them.

Each part has a product for the weights of a token's streams, a weighted sum that it reads, and a kernel that mixes the
streams anew with its result, each with its gradients. With sequence parallelism every device has its tokens of all
streams.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...formulas.kernels import hyper_connections as hyper
from ...formulas.language.symbols import activation_bytes, hidden_size, num_streams, statistic_bytes

if TYPE_CHECKING:
    from ...operations.schedule import Op
    from .attention_core import Operations
    from .blocks import Blocks

MIXING = (2 + num_streams) * num_streams
"""Weights of a token at one part: to read, to write and to mix its streams."""
MIX_FLOPS = 2 * num_streams * (num_streams + 1)
"""Vector work of an element of the mixed streams together."""


def enter(blocks: Blocks, path: str, phase: str) -> Operations:
    """The weights of all streams, and the mixture that a part reads."""
    return _mixture(blocks, path, phase, MIXING)


def enter_backward(blocks: Blocks, path: str) -> Operations:
    """Gradients of the mixture and of the weights, into those of the streams."""
    return _mixture_backward(blocks, path, MIXING)


def join(blocks: Blocks, path: str, phase: str) -> Operations:
    """One stream of all, before the head."""
    return _mixture(blocks, path, phase, num_streams)


def join_backward(blocks: Blocks, path: str) -> Operations:
    """Its gradients."""
    return _mixture_backward(blocks, path, num_streams)


def leave(blocks: Blocks, path: str, phase: str) -> Op:
    """The streams, mixed with what a part gave."""
    return _moved(blocks, f"{path}/{phase}", hyper.stream_write_bytes, MIX_FLOPS)


def leave_backward(blocks: Blocks, path: str) -> Op:
    """Gradients of the old streams and of the result."""
    return _moved(blocks, f"{path}/backward", hyper.stream_write_backward_bytes, 2 * MIX_FLOPS)


def fork(blocks: Blocks, path: str) -> Op:
    """As many copies of the embeddings as there are streams; or the sum of their gradients."""
    return _moved(blocks, path, hyper.stream_read_bytes, num_streams)


def _mixture(blocks: Blocks, path: str, phase: str, columns: Any) -> Operations:
    rows, inner = blocks.shapes.stream_tokens, num_streams * hidden_size
    kinds = {"right": statistic_bytes, "result": statistic_bytes}
    return [
        blocks.kernels.matmul(f"{path}/streams/{phase}", rows, columns, inner, **kinds),
        _moved(blocks, f"{path}/mixture/{phase}", hyper.stream_read_bytes, 2 * num_streams),
    ]


def _mixture_backward(blocks: Blocks, path: str, columns: Any) -> Operations:
    rows, inner = blocks.shapes.stream_tokens, num_streams * hidden_size
    return [
        _moved(blocks, f"{path}/mixture/backward", hyper.stream_read_backward_bytes, 4 * num_streams),
        blocks.kernels.matmul(f"{path}/streams/backward_input", rows, inner, columns, right=statistic_bytes),
        blocks.kernels.weight_gradient(f"{path}/streams/backward_weight", rows, columns, inner, right=statistic_bytes),
    ]


def _moved(blocks: Blocks, path: str, count: Any, work: Any) -> Op:
    """A kernel over the streams of all tokens on the device."""
    tokens = blocks.shapes.stream_tokens
    traffic = count(tokens, hidden_size, num_streams, activation_bytes)
    return blocks.kernels.stream(path, traffic, tokens * hidden_size, work)
