"""Attention of an inference from the tokens of a decoder to the output of an encoder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..formulas.language.symbols import hidden_size, micro_batch
from .attention import SoftmaxAttention

if TYPE_CHECKING:
    from ..operations.schedule import Op
    from .layer import Layer


class CrossAttention(SoftmaxAttention):
    """The attention of decoder tokens to an encoder's output, whose keys and values are cached once."""

    folder = "cross_attention"

    def __init__(self, layer: Layer) -> None:
        super().__init__(layer)
        self.keys_columns = 2 * self.units * self.value_width

    @property
    def biased(self) -> bool:
        """No: positions of the two sequences are not compared."""
        return False

    def block(self, encoder_tokens: Any, *, first: bool) -> list[Op | None]:
        """The whole block around its attention.

        Args:
            encoder_tokens: tokens of each sequence's encoder.
            first: keys and values are made, of all tokens of the encoder.
        """
        layer, root = self.layer, f"{self.layer.root}/{self.folder}"
        made: list[Op | None] = []
        if first:
            rows = micro_batch * encoder_tokens
            made = [
                layer.kernels.matmul(self.path("key_value"), rows, self.keys_columns, hidden_size),
                self.append_of(rows * self.keys_columns),
            ]
        return [
            layer.norm(f"{root}/norm", after_residual=True),
            *made,
            layer.linear(f"{root}/query", hidden_size, self.width),
            self.over(encoder_tokens),
            *self.output(),
            layer.reduce(f"{root}/reduce"),
            layer.post_norm(root),
            layer.residual(f"{root}/residual"),
        ]
