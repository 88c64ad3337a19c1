"""Sizes of a layer on one device, and the vector work of its kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..formulas.language.atoms import ceil_div
from ..formulas.language.symbols import (
    encoder_sequence,
    head_dim,
    intermediate_size,
    micro_batch,
    num_attention_heads,
    num_key_value_heads,
    sequence,
    tp,
    vocab_size,
)
from .groups import parts

if TYPE_CHECKING:
    from ..models.architecture import Architecture, LayerKind
    from ..plans.structure import Structure

FLOPS_PER_ELEMENT = {
    "norm": 8,  # mean 1, variance 3, normalisation 2, gain and bias 2
    "norm backward": 14,  # two reductions 6, input gradient 5, gain and bias gradients 3
    "softmax": 6,  # scale, mask, maximum and subtraction, exponential, sum, division
    "softmax backward": 4,  # product, sum, subtraction, product
    "dropout": 2,  # comparison, scaling
    "residual": 1,
    "activation": 8,  # tanh-approximated GELU, a multiply-add counted as two
    "activation backward": 12,
    "rotary": 3,  # two products and a sum a feature
    "bias gradient": 1,
    "embedding": 0,
    "loss": 6,
    "loss backward": 2,
    "gated norm": 16,  # a norm, and the product with an activated gate
    "gated norm backward": 26,
    "shift": 3,  # of each mixture: the difference to the token before, its product and a sum
    "mixture": 7,  # of each source: square and sum 2, product with scale and query 3, weighted sum 2
    "mixture backward": 16,  # of scores and weights again 5; gradients of weights 2, sources 6, scale and query 3
    "scan": 7,  # per state: decay's product and exponential 2, input 1, state 2, result 2
    "gated unit": 15,  # two sigmoids 6, decay 2, its square and the root 3, input 2, state 2
    "gated unit backward": 28,  # gates and decay again 11; gradients of state 2, decay 1, root 4, input 3, gates 7
    "scan backward": 19,  # states again 5; gradients of state 3, decay 1, time step 2, A 2, B 2, C 2, input 2
}
"""Operations of a vector kernel per element, counted from its definition."""


def length_of(architecture: Architecture, kind: LayerKind | None) -> Any:
    """Tokens of a sequence in layers of a kind: the encoder's where there is a decoder too."""
    own = kind is not None and kind.encoder and architecture.stacks == 2
    return encoder_sequence if own else sequence


@dataclass(frozen=True)
class Shapes:
    """Sizes on one device, as expressions."""

    tokens: Any
    stream_tokens: Any
    heads: Any
    key_value_heads: Any
    inner: Any
    vocabulary: Any
    head_dim: Any = head_dim
    length: Any = sequence

    @classmethod
    def of(cls, structure: Structure, kind: LayerKind | None = None) -> Shapes:
        """Under tensor and context parallelism; sequence parallelism also shards the residual stream.

        Args:
            structure: the structure.
            kind: of the layer, for heads and the length of a sequence; by default those of the decoder at large.
        """
        length = length_of(structure.architecture, kind)
        tokens = micro_batch * length / parts(structure)
        return cls(
            tokens=tokens,
            stream_tokens=tokens / tp if structure.sequence_parallel else tokens,
            heads=num_attention_heads / tp,
            key_value_heads=ceil_div(num_key_value_heads, tp),
            inner=intermediate_size / tp,
            vocabulary=ceil_div(vocab_size, tp),
            length=length,
        )

    @property
    def attention_width(self) -> Any:
        """Features of the attention output."""
        return self.heads * self.head_dim
