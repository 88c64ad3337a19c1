"""A block with a gated linear recurrent unit as operations (Griffin, RecurrentGemma).

Channels and the blocks of the gates are dealt to the devices: the projection in is split by columns, the one out by
rows, and nothing between them is summed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...formulas.kernels import gated_lru as lru
from ...formulas.language.symbols import (
    activation_bytes,
    hidden_size,
    lru_width,
    num_attention_heads,
    tp,
)
from ...operations.shapes import FLOPS_PER_ELEMENT
from .recurrent import Recurrent

if TYPE_CHECKING:
    from ...operations.schedule import Op
    from .attention_core import Operations
    from .transformer import Decoder


class GatedLru(Recurrent):
    """Two branches from one product: convolution, block-diagonal gates and the unit; and an activation."""

    name = "gated_lru"

    def __init__(self, layer: Decoder) -> None:
        super().__init__(layer)
        self.output_width = self.channels = lru_width / tp
        self.projected = 2 * self.channels
        self.elements = self.tokens * self.channels
        self.block, self.blocks = lru_width / num_attention_heads, 2 * num_attention_heads / tp

    def forward(self, phase: str) -> Operations:
        """From the normalised stream to what the projection out reads."""
        return [
            self.layer.linear(self.path("in"), phase, hidden_size, self.projected),
            self.convolution(phase),
            self.gates(phase),
            self.scan(phase),
            self.layer.gated(self.path(f"gate/{phase}"), self.elements),
        ]

    def backward(self) -> Operations:
        """Its gradients: those of the gates' products read the gradient of the gates."""
        path, block = self.path("gates/backward_weight"), self.block
        return [
            self.layer.gated_backward(self.path("gate/backward"), self.elements),
            self.scan_backward(),
            self.gates("backward_input"),
            self.kernels.weight_gradient(path, self.tokens, block, block, self.blocks),
            self.convolution_backward(),
            self.layer.column_backward(self.path("in"), hidden_size, self.projected),
        ]

    def gates(self, phase: str) -> Op:
        """The products of both gates, or of their gradients, block by block."""
        return self.kernels.matmul(self.path(f"gates/{phase}"), self.tokens, self.block, self.block, self.blocks)

    def scan(self, phase: str) -> Op:
        """Gates to decays and inputs, and the scan."""
        traffic = lru.gated_lru_bytes(self.tokens, self.channels, activation_bytes)
        return self.unit(f"scan/{phase}", traffic, "gated unit")

    def scan_backward(self) -> Op:
        """Their gradients."""
        traffic = lru.gated_lru_backward_bytes(self.tokens, self.channels, activation_bytes)
        return self.unit("scan/backward", traffic, "gated unit backward")

    def unit(self, name: str, traffic: Any, work: str) -> Op:
        """The unit on the vector units."""
        return self.kernels.stream(self.path(name), traffic, self.elements, FLOPS_PER_ELEMENT[work])
