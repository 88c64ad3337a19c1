"""The gated short convolution of a layer as operations (LFM2): a convolution over a few tokens between two gates.

Tensor parallelism deals channels to the devices: the projection in is split by columns and the one out by rows. Gates
and convolution stay on the device.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...formulas.kernels import elementwise as ew
from ...formulas.language.symbols import activation_bytes, hidden_size, tp
from .recurrent import Recurrent

if TYPE_CHECKING:
    from ...operations.schedule import Op
    from .attention_core import Operations
    from .transformer import Decoder


class ShortConvolution(Recurrent):
    """Two gates and a value from one projection, the convolution of the gated value, and its product with a gate."""

    name = "short_convolution"

    def __init__(self, layer: Decoder) -> None:
        super().__init__(layer)
        self.output_width = self.channels = hidden_size / tp
        self.projected = 3 * self.channels

    def forward(self, phase: str) -> Operations:
        """From the normalised stream to what the projection out reads."""
        return [
            self.layer.linear(self.path("in"), phase, hidden_size, self.projected),
            self.product(f"gate_in/{phase}"),
            self.convolution(phase),
            self.product(f"gate_out/{phase}"),
        ]

    def backward(self) -> Operations:
        """Its gradients: of each product, those of both factors."""
        return [
            self.product_backward("gate_out/backward"),
            self.convolution_backward(),
            self.product_backward("gate_in/backward"),
            self.layer.column_backward(self.path("in"), hidden_size, self.projected),
        ]

    def product(self, name: str) -> Op:
        """The product of two tensors of the channels' width."""
        elements = self.tokens * self.channels
        return self.kernels.stream(self.path(name), ew.gated_activation_bytes(elements, activation_bytes), elements, 1)

    def product_backward(self, name: str) -> Op:
        """Its gradients."""
        elements = self.tokens * self.channels
        return self.kernels.stream(
            self.path(name), ew.gated_activation_backward_bytes(elements, activation_bytes), elements, 2
        )
