"""Sizes of a decoder on one device, and the vector work of its kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .formulas import attention as att
from .formulas.atoms import ceil_div
from .formulas.symbols import (
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
    from .structure import Structure

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
}
"""Operations of a vector kernel per element, counted from its definition."""


@dataclass(frozen=True)
class Shapes:
    """Sizes on one device, as expressions."""

    tokens: Any
    stream_tokens: Any
    heads: Any
    key_value_heads: Any
    inner: Any
    vocabulary: Any

    @classmethod
    def of(cls, structure: Structure) -> Shapes:
        """Under tensor and context parallelism; sequence parallelism also shards the residual stream."""
        tokens = micro_batch * sequence / parts(structure)
        return cls(
            tokens=tokens,
            stream_tokens=tokens / tp if structure.sequence_parallel else tokens,
            heads=num_attention_heads / tp,
            key_value_heads=ceil_div(num_key_value_heads, tp),
            inner=intermediate_size / tp,
            vocabulary=ceil_div(vocab_size, tp),
        )

    @property
    def query_key_value(self) -> Any:
        """Features of the joint projection."""
        return att.query_key_value_width(self.heads, self.key_value_heads, head_dim)

    @property
    def attention_width(self) -> Any:
        """Features of the attention output."""
        return self.heads * head_dim
