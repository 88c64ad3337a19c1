"""What layers and the ends of a model are built from: norms, collectives of the residual stream, overlaps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .formulas import elementwise as ew
from .formulas.symbols import activation_bytes, hidden_size, overlap_tp
from .groups import Group, tensor_group
from .kernels import Kernels
from .schedule import Node, Op, Overlap
from .shapes import FLOPS_PER_ELEMENT, Shapes

if TYPE_CHECKING:
    from .structure import Structure


class Blocks:
    """Building blocks of one structure, for one micro-batch on one device."""

    def __init__(self, structure: Structure) -> None:
        self.structure = structure
        self.architecture = structure.architecture
        self.kernels = Kernels(structure)
        self.shapes = Shapes.of(structure)
        self.group: Group = tensor_group()
        self.stream_message = self.shapes.tokens * hidden_size * activation_bytes

    # --- tensor-parallel collectives

    def gather(self, path: str) -> Op | None:
        """With sequence parallelism, the residual stream gathered along the sequence."""
        if not self.structure.sequence_parallel:
            return None
        return self.kernels.all_gather(path, self.stream_message, self.group)

    def reduce(self, path: str) -> Op | None:
        """The sum of the shares of a row-split product, or of a column-split layer's input gradient."""
        if self.structure.sequence_parallel:
            return self.kernels.reduce_scatter(path, self.stream_message, self.group)
        return self.kernels.all_reduce(path, self.stream_message, self.group)

    def beside(self, work: Op, transfer: Op | None) -> Node:
        """Work with a transfer that may hide behind it."""
        return work if transfer is None else Overlap(work, transfer, overlap_tp)

    # --- element-wise kernels

    @property
    def stream_elements(self) -> Any:
        """Elements of the residual stream on the device."""
        return self.shapes.stream_tokens * hidden_size

    def norm(self, path: str, phase: str) -> Op:
        """A norm over the residual stream."""
        n = self.stream_elements
        return self.kernels.stream(f"{path}/{phase}", ew.norm_bytes(n, activation_bytes), n, FLOPS_PER_ELEMENT["norm"])

    def norm_backward(self, path: str) -> Op:
        """Its gradients."""
        n, work = self.stream_elements, FLOPS_PER_ELEMENT["norm backward"]
        return self.kernels.stream(f"{path}/backward", ew.norm_backward_bytes(n, activation_bytes), n, work)
