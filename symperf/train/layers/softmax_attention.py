"""Softmax attention of a layer as operations: to its own tokens, and to the output of an encoder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...formulas.kernels import elementwise as ew
from ...formulas.language.symbols import (
    activation_bytes,
    conv_kernel,
    distance_extent,
    distance_profiles,
    encoder_sequence,
    hidden_size,
    micro_batch,
    tp,
)
from ...models import attention_widths as widths
from ...operations.schedule import Op, Sequence, sequence
from ...operations.shapes import FLOPS_PER_ELEMENT
from .attention_core import AttentionCore, Operations

if TYPE_CHECKING:
    from .transformer import Decoder


class SoftmaxAttention(AttentionCore):
    """Attention with a joint projection of queries, keys and values."""

    def forward(self, phase: str) -> Operations:
        """Projections, positions, the core and its gate."""
        return [
            self.layer.linear(self.path("qkv"), phase, self.layer.read_width, self.projected),
            self.convolution(phase),
            self.positions(phase),
            self.distances(phase),
            self.core_forward(phase),
            self.difference(phase),
            self.gate(phase),
        ]

    def backward(self) -> Operations:
        """Gradients of the projections and of the attention core between them."""
        return [
            self.gate("backward"),
            self.difference("backward"),
            self.recomputed(),
            self.core_backward(),
            *self.distance_gradients(),
            self.positions("backward"),
            self.convolution("backward"),
            self.layer.column_backward(
                self.path("qkv"), self.layer.read_width, self.projected, message=self.layer.read_message
            ),
        ]

    @property
    def projected(self) -> Any:
        """Features of the joint projection: with a gate as wide as the queries, and keys for values where shared."""
        shapes = self.shapes
        width = widths.projected(self.kind, shapes.heads, shapes.key_value_heads)
        if self.architecture.shared_key_value and self.kind.mixer == "attention":
            width = shapes.head_dim * (shapes.heads + shapes.key_value_heads)
        width += shapes.heads if self.architecture.head_gate else 0
        return width + self.output_width if self.architecture.attention_gate else width

    @property
    def results(self) -> Any:
        """Elements that the output projection reads, which a gate weighs."""
        return self.shapes.tokens * self.output_width

    def convolution(self, phase: str) -> Op | None:
        """The causal convolution of keys and values, or its gradients."""
        if "convolved" not in self.kind.traits:
            return None
        n, backward = self.shapes.tokens * 2 * self.shapes.key_value_heads * self.shapes.head_dim, phase == "backward"
        traffic = (ew.activation_function_backward_bytes if backward else ew.activation_function_bytes)(
            n, activation_bytes
        )
        work = (2 if backward else 1) * 2 * conv_kernel
        return self.kernels.stream(self.path(f"convolution/{phase}"), traffic, n, work)

    def distances(self, phase: str) -> Op | None:
        """The biases of every head of a token for each distance, from the bank of profiles."""
        if "distance_bias" not in self.kind.traits:
            return None
        rows = self.shapes.tokens * self.shapes.heads
        return self.kernels.matmul(self.path(f"distances/{phase}"), rows, distance_extent, distance_profiles)

    def distance_gradients(self) -> Operations:
        """Gradients of the profiles' weights and of the bank."""
        if "distance_bias" not in self.kind.traits:
            return []
        rows, path = self.shapes.tokens * self.shapes.heads, self.path("distances")
        return [
            self.kernels.matmul(f"{path}/backward_input", rows, distance_profiles, distance_extent),
            self.kernels.weight_gradient(f"{path}/backward_weight", rows, distance_profiles, distance_extent),
        ]

    def gate(self, phase: str) -> Op | None:
        """The product of the results with their gates: one for each element, or for each head."""
        backward, path = phase == "backward", self.path(f"gate/{phase}")
        if self.architecture.attention_gate:
            return (self.layer.gated_backward if backward else self.layer.gated)(path, self.results)
        if not self.architecture.head_gate:
            return None
        n = self.results + self.shapes.tokens * self.shapes.heads
        # Results and gates in, results out; their gradients, results and gates in, two gradients out.
        traffic = (ew.gated_activation_bytes if backward else ew.activation_function_bytes)(n, activation_bytes)
        return self.kernels.stream(path, traffic, n, FLOPS_PER_ELEMENT["residual"])

    def difference(self, phase: str) -> Op | None:
        """One map's results less another's, and the norm of each head; two tensors of that size in, one out."""
        if "differential" not in self.kind.traits:
            return None
        backward, path = phase == "backward", self.path(f"difference/{phase}")
        of = self.layer.gated_backward if backward else self.layer.gated
        return of(path, self.results, "gated norm")

    def positions(self, phase: str) -> Sequence:
        """Norms of queries and keys, and rotary positions; ALiBi is part of the softmax kernel."""
        shapes, backward = self.shapes, phase == "backward"
        made = widths.made_heads(self.kind, shapes.key_value_heads)
        n = shapes.tokens * shapes.head_dim * (shapes.heads + made)
        norm = None
        if self.architecture.query_key_norm != "none":
            of = self.layer.norm_gradient_of if backward else self.layer.norm_of
            norm = of(self.path(f"query_key_norm/{phase}"), n)
        rotary = None
        if self.architecture.positions == "rotary" and not (norm and self.structure.compiled):
            rotary = self.layer.rotary_of(self.path(f"rotary/{phase}"), n)
        return sequence(rotary, norm) if backward else sequence(norm, rotary)


class CrossAttention(AttentionCore):
    """Attention of a decoder's tokens to the output of the encoder, which all layers read."""

    name = "cross"

    def __init__(self, layer: Decoder) -> None:
        super().__init__(layer)
        self.keys = encoder_sequence
        self.encoder_tokens = micro_batch * encoder_sequence
        self.message = self.encoder_tokens * hidden_size * activation_bytes
        self.key_value_width = 2 * self.shapes.key_value_heads * self.shapes.head_dim

    @property
    def masked(self) -> bool:
        """Every token sees the whole encoder."""
        return False

    @property
    def windowed(self) -> bool:
        """No, whatever the tokens of the decoder see of each other."""
        return False

    def forward(self, phase: str) -> Operations:
        """Queries of the decoder's tokens, keys and values of the encoder's, and the core."""
        layer = self.layer
        return [
            layer.linear(self.path("query"), phase, hidden_size, self.output_width),
            layer.gather(self.path(f"key_value/gather/{phase}"), self.message),
            layer.linear(self.path("key_value"), phase, hidden_size, self.key_value_width, self.encoder_tokens),
            self.core_forward(phase),
        ]

    def backward(self) -> Operations:
        """Their gradients; that of the encoder's output is summed over the layers."""
        layer = self.layer
        elements = self.encoder_tokens * hidden_size / (tp if self.structure.sequence_parallel else 1)
        traffic, work = ew.residual_bytes(elements, activation_bytes), FLOPS_PER_ELEMENT["residual"]
        return [
            self.recomputed(),
            self.core_backward(),
            layer.column_backward(
                self.path("key_value"),
                hidden_size,
                self.key_value_width,
                tokens=self.encoder_tokens,
                message=self.message,
            ),
            self.kernels.stream(self.path("key_value/sum/backward"), traffic, elements, work),
            layer.column_backward(self.path("query"), hidden_size, self.output_width),
        ]
