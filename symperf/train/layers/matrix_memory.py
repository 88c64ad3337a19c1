"""The matrix memory of a layer as operations (xLSTM): a matrix a head with a forget and an input gate, in chunks.

Tensor parallelism deals heads to the devices, as a gated delta rule's. There is no convolution.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...formulas.kernels import matrix_memory as memory
from ...formulas.language.symbols import (
    activation_bytes,
    hidden_size,
    linear_key_head_dim,
    linear_num_value_heads,
    linear_value_head_dim,
    micro_batch,
    ssm_chunk_size,
    statistic_bytes,
    tp,
)
from .recurrent import Recurrent

if TYPE_CHECKING:
    from ...operations.schedule import Op
    from .attention_core import Operations
    from .transformer import Decoder


class MatrixMemory(Recurrent):
    """Queries, keys, values, gates and the output's gate from one projection; a chunked scan, and a gated norm.

    Forward two kernels, states and results, after two of PyTorch for the gates' logarithms and sums. Backward states
    again, their gradients, and those of queries, keys and values, and six of PyTorch for the gates' (mlstm_kernels).
    """

    launches = 4, 11
    name = "matrix_memory"

    def __init__(self, layer: Decoder) -> None:
        super().__init__(layer)
        self.heads = linear_num_value_heads / tp
        self.output_width = self.heads * linear_value_head_dim
        self.projected = 2 * self.heads * linear_key_head_dim + 2 * self.output_width + 2 * self.heads
        self.shape = micro_batch, self.length, ssm_chunk_size, self.heads, linear_key_head_dim, linear_value_head_dim

    def forward(self, phase: str) -> Operations:
        """From the normalised stream to what the projection out reads."""
        return [
            self.layer.linear(self.path("in"), phase, hidden_size, self.projected),
            self.scan(phase),
            self.layer.gated(self.path(f"norm_gate/{phase}"), self.tokens * self.output_width, "gated norm"),
        ]

    def backward(self) -> Operations:
        """Its gradients; the scan's kernels compute states and scores again."""
        elements = self.tokens * self.output_width
        return [
            self.layer.gated_backward(self.path("norm_gate/backward"), elements, "gated norm"),
            self.scan_backward(),
            self.layer.column_backward(self.path("in"), hidden_size, self.projected),
        ]

    def scan(self, phase: str) -> Op:
        """The chunked recurrence."""
        traffic = memory.matrix_memory_bytes(*self.shape, activation_bytes, statistic_bytes)
        return self.chunked(f"scan/{phase}", memory.matrix_memory_flops(*self.shape), traffic)

    def scan_backward(self) -> Op:
        """Its gradients."""
        work = memory.matrix_memory_backward_flops(*self.shape)
        traffic = memory.matrix_memory_backward_bytes(*self.shape, activation_bytes, statistic_bytes)
        return self.chunked("scan/backward", work, traffic, backward=True)
