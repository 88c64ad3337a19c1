"""Lightning attention of a layer as operations (MiniMax-01): linear attention with fixed decays, in chunks.

Heads are dealt to the devices; the norm over all of them adds its sums of squares over the group, in both passes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...formulas.kernels import elementwise as ew
from ...formulas.kernels import lightning_attention as lightning
from ...formulas.language.symbols import (
    activation_bytes,
    hidden_size,
    linear_num_value_heads,
    linear_value_head_dim,
    micro_batch,
    ssm_chunk_size,
    state_bytes,
    statistic_bytes,
    tp,
)
from ...operations.shapes import FLOPS_PER_ELEMENT
from .recurrent import Recurrent

if TYPE_CHECKING:
    from ...operations.schedule import Op
    from .attention_core import Operations
    from .transformer import Decoder


class LightningAttention(Recurrent):
    """Queries, keys and values with an activation, the scan, a norm over all heads, and a gate.

    Forward four kernels: scores inside chunks, states, their passing on, results of states; as many backward
    (lightning-attention, lightning_attn2_parallel.py).
    """

    launches = 4, 4
    name = "lightning_attention"

    def __init__(self, layer: Decoder) -> None:
        super().__init__(layer)
        self.shape = linear_num_value_heads / tp, linear_value_head_dim
        self.output_width = self.shape[0] * self.shape[1]
        self.size = micro_batch, self.length, ssm_chunk_size
        self.elements = self.tokens * self.output_width

    def forward(self, phase: str) -> Operations:
        """From the normalised stream to what the projection out reads."""
        layer, width = self.layer, self.output_width
        return [
            layer.linear(self.path("in"), phase, hidden_size, 3 * width),
            self.activation(phase, ew.activation_function_bytes(3 * self.elements, activation_bytes)),
            self.scan(phase),
            self.sum_of_squares(phase),
            layer.norm_of(self.path(f"inner_norm/{phase}"), self.elements),
            layer.linear(self.path("gate_in"), phase, hidden_size, width),
            layer.gated(self.path(f"gate/{phase}"), self.elements),
        ]

    def backward(self) -> Operations:
        """Its gradients; both projections in read one stream, whose gradient is summed over the group once."""
        layer, width = self.layer, self.output_width
        return [
            layer.gated_backward(self.path("gate/backward"), self.elements),
            layer.column_backward(self.path("gate_in"), hidden_size, width, shared=True),
            self.sum_of_squares("backward"),
            layer.norm_gradient_of(self.path("inner_norm/backward"), self.elements),
            self.scan_backward(),
            self.activation("backward", ew.activation_function_backward_bytes(3 * self.elements, activation_bytes)),
            layer.column_backward(self.path("in"), hidden_size, 3 * width),
        ]

    def activation(self, phase: str, traffic: object) -> Op:
        """The activation of queries, keys and values, or its gradient."""
        work = FLOPS_PER_ELEMENT["activation backward" if phase == "backward" else "activation"]
        return self.kernels.stream(self.path(f"activation/{phase}"), traffic, 3 * self.elements, work)

    def sum_of_squares(self, phase: str) -> Op | None:
        """The sum over the devices' heads that the norm of a token needs, or its gradient."""
        message = self.tokens * statistic_bytes
        return self.kernels.all_reduce(self.path(f"inner_norm/reduce/{phase}"), message, self.layer.group)

    def scan(self, phase: str) -> Op:
        """The products of the chunks and of their states."""
        work = lightning.lightning_flops(*self.size, *self.shape)
        traffic = lightning.lightning_bytes(*self.size, *self.shape, activation_bytes, state_bytes)
        return self.chunked(f"scan/{phase}", work, traffic)

    def scan_backward(self) -> Op:
        """Their gradients, with the scores once more."""
        work = lightning.lightning_backward_flops(*self.size, *self.shape)
        traffic = lightning.lightning_backward_bytes(*self.size, *self.shape, activation_bytes, state_bytes)
        return self.chunked("scan/backward", work, traffic, backward=True)
