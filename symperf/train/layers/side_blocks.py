"""The blocks beside mixer and MLP in a training step, with sequence parallelism over a part of the tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...formulas.kernels import embedding as emb
from ...formulas.language.symbols import activation_bytes, gradient_bytes, index_bytes
from ...operations.side_blocks import LookUp, Norm, Product, Step

if TYPE_CHECKING:
    from ...operations.schedule import Op
    from .blocks import Blocks


def forward(blocks: Blocks, root: str, phase: str, steps: list[Step]) -> list[Op]:
    """The steps as kernels.

    Args:
        blocks: that they stand beside.
        root: the first part of every path.
        phase: "forward" or "recompute".
        steps: of the side blocks.
    """
    return [_forward(blocks, f"{root}/side/{step.name}/{phase}", step) for step in steps]


def backward(blocks: Blocks, root: str, steps: list[Step]) -> list[Op]:
    """Their gradients, the last step first."""
    return [op for step in reversed(steps) for op in _backward(blocks, f"{root}/side/{step.name}", step)]


def _forward(blocks: Blocks, path: str, step: Step) -> Op:
    kernels, tokens = blocks.kernels, blocks.shapes.stream_tokens
    match step:
        case Product():
            return kernels.matmul(path, tokens, step.columns, step.inner)
        case Norm():
            return blocks.norm_of(path, tokens * step.features)
        case LookUp():
            moved = emb.embedding_bytes(tokens, step.features, activation_bytes, index_bytes)
            return kernels.stream(path, moved, tokens * step.features, 0)
    moved = tokens * (step.read + step.written) * activation_bytes
    return kernels.stream(path, moved, tokens * step.written, step.work)


def _backward(blocks: Blocks, path: str, step: Step) -> list[Op]:
    kernels, tokens = blocks.kernels, blocks.shapes.stream_tokens
    match step:
        case Product():
            return [
                kernels.matmul(f"{path}/backward_input", tokens, step.inner, step.columns),
                kernels.weight_gradient(f"{path}/backward_weight", tokens, step.inner, step.columns),
            ]
        case Norm():
            return [blocks.norm_gradient_of(f"{path}/backward", tokens * step.features)]
        case LookUp():
            moved = emb.embedding_backward_bytes(tokens, step.features, activation_bytes, gradient_bytes)
            return [kernels.stream(f"{path}/backward", moved, tokens * step.features, 1)]
    # What it read and the gradients of what it wrote, and those of what it read: two products where there was one.
    moved = tokens * (2 * step.read + step.written) * activation_bytes
    return [kernels.stream(f"{path}/backward", moved, tokens * step.read, 2 * step.work)]
