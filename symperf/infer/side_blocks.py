"""The blocks beside mixer and MLP as operations of an inference, over all new tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..formulas.kernels import elementwise as ew
from ..formulas.kernels import embedding as emb
from ..formulas.language.symbols import activation_bytes, index_bytes
from ..operations.shapes import FLOPS_PER_ELEMENT
from ..operations.side_blocks import LookUp, Norm, Product, Step

if TYPE_CHECKING:
    from ..operations.schedule import Op
    from .layer import Block


def operations(block: Block, root: str, steps: list[Step]) -> list[Op]:
    """The steps as kernels.

    Args:
        block: that they stand beside.
        root: the first part of every path, after the phase.
        steps: of the side blocks.
    """
    return [_operation(block, f"{root}/side/{step.name}", step) for step in steps]


def _operation(block: Block, name: str, step: Step) -> Op:
    tokens, stream = block.tokens, block.kernels.stream
    match step:
        case Product():
            return block.linear(name, step.inner, step.columns)
        case Norm():
            n = tokens * step.features
            return stream(block.path(name), ew.norm_bytes(n, activation_bytes), n, FLOPS_PER_ELEMENT["norm"])
        case LookUp():
            moved = emb.embedding_bytes(tokens, step.features, activation_bytes, index_bytes)
            return stream(block.path(name), moved, tokens * step.features, 0)
    moved = tokens * (step.read + step.written) * activation_bytes
    return stream(block.path(name), moved, tokens * step.written, step.work)
