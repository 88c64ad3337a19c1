"""A block with a gated linear recurrent unit in an inference (RecurrentGemma): one state for each channel.

Channels and the blocks of the gates are dealt to the devices: the projection in is split by columns, the one out by
rows, and nothing between them is summed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..formulas.generation import recurrent_decode as step
from ..formulas.kernels import elementwise as ew
from ..formulas.kernels import gated_lru as lru
from ..formulas.language import symbols as sym
from ..formulas.language.symbols import activation_bytes, hidden_size, state_bytes, tp
from ..operations.shapes import FLOPS_PER_ELEMENT
from .recurrent import Recurrent

if TYPE_CHECKING:
    from ..operations.schedule import Op
    from .layer import Layer


class GatedLru(Recurrent):
    """A branch with a convolution and the unit, times a branch with an activation."""

    def __init__(self, layer: Layer, name: str | None = None) -> None:
        super().__init__(layer, name)
        self.inner = self.channels = self.state = sym.lru_width / tp
        self.scratch = 6 * self.inner

    def projections(self) -> list[Op | None]:
        """Both branches in one product."""
        return [self.layer.linear(self.name("in"), hidden_size, 2 * self.inner)]

    def output(self) -> list[Op | None]:
        """The product with the other branch, and the projection of the results."""
        n = self.layer.tokens * self.inner
        traffic, work = ew.gated_activation_bytes(n, activation_bytes), FLOPS_PER_ELEMENT["activation"]
        return [
            self.kernels.stream(self.path("gate"), traffic, n, work),
            self.layer.linear(self.name("out"), self.inner, hidden_size),
        ]

    def gates(self, tokens: Any, end: str) -> Op:
        """The block-diagonal products of both gates."""
        block = sym.lru_width / sym.num_attention_heads
        return self.kernels.matmul(
            self.path(f"gates{end}"), tokens, block, block, 2 * sym.num_attention_heads / tp, left=activation_bytes
        )

    def scan_flops(self, sequences: Any, length: Any) -> Any:
        """No products: the unit runs on the vector units, its gates are among the projections."""
        return 0 * sequences * length

    def scan(self, sequences: Any, length: Any) -> list[Op | None]:
        """Convolution, gates and the scan."""
        tokens = sequences * length
        traffic = lru.gated_lru_bytes(tokens, self.inner, activation_bytes) + self.kept(sequences)
        work = FLOPS_PER_ELEMENT["gated unit"]
        return [
            self.convolve(sequences, length),
            self.gates(tokens, ""),
            self.kernels.stream(self.path("scan"), traffic, tokens * self.inner, work),
        ]

    def step(self, sequences: Any, new_tokens: Any) -> list[Op | None]:
        """Convolution, gates and the update of the states."""
        tokens = sequences * new_tokens
        traffic = step.gated_lru_step_bytes(sequences, new_tokens, self.inner, activation_bytes, state_bytes)
        work = tokens * self.inner * FLOPS_PER_ELEMENT["gated unit"]
        return [
            self.convolve_step(sequences, new_tokens),
            self.gates(tokens, "_update"),
            self.kernels.stream(self.path("state_update"), traffic, work, 1),
        ]
