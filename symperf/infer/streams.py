"""Hyper-connections of an inference: what a part of a layer reads of several residual streams, and how it joins them.

Three kernels surround a part: the product that gives the weights of a token's streams, the weighted sum that the part
reads, and the streams mixed anew with its result (vLLM, model_executor/layers/mhc.py). The streams are whole on every
device of a tensor-parallel group.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..formulas.kernels import hyper_connections as hyper
from ..formulas.language.symbols import activation_bytes, hidden_size, num_streams, statistic_bytes

if TYPE_CHECKING:
    from ..operations.schedule import Op
    from .layer import Block

MIXING = (2 + num_streams) * num_streams
"""Weights of a token at one part: to read, to write and to mix its streams."""


def enter(block: Block, name: str) -> list[Op | None]:
    """The weights of all streams, and the mixture that a part reads."""
    return [weights(block, f"{name}/weights", MIXING), read(block, f"{name}/read")]


def leave(block: Block, name: str) -> Op:
    """The streams, mixed with what a part gave."""
    n = block.tokens * hidden_size
    traffic = hyper.stream_write_bytes(block.tokens, hidden_size, num_streams, activation_bytes)
    return block.kernels.stream(block.path(name), traffic, n, 2 * num_streams * (num_streams + 1))


def join(block: Block, name: str) -> list[Op | None]:
    """One stream of all, before the head."""
    return [weights(block, f"{name}/weights", num_streams), read(block, f"{name}/read")]


def fork(block: Block, name: str) -> Op:
    """As many copies of the embeddings as there are streams."""
    traffic = hyper.stream_read_bytes(block.tokens, hidden_size, num_streams, activation_bytes)
    return block.kernels.stream(block.path(name), traffic, block.tokens * hidden_size, 0)


def weights(block: Block, name: str, columns: Any) -> Op:
    """The product of a token's streams, in 16 bits, with weights and results in FP32."""
    kinds = {"left": activation_bytes, "right": statistic_bytes, "result": statistic_bytes}
    return block.kernels.matmul(block.path(name), block.tokens, columns, num_streams * hidden_size, **kinds)


def read(block: Block, name: str) -> Op:
    """The weighted sum of a token's streams."""
    n = block.tokens * hidden_size
    traffic = hyper.stream_read_bytes(block.tokens, hidden_size, num_streams, activation_bytes)
    return block.kernels.stream(block.path(name), traffic, n, 2 * num_streams)
