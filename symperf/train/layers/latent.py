"""Latent attention (MLA) of a layer as operations, expanded as training and prefill run it.

Queries, and keys with values, pass through narrow projections, which every device of a tensor-parallel group computes
whole; the projections up to the heads are split by heads (DeepSeek-AI 2024, V2, section 2.1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...formulas.kernels import latent_attention as mla
from ...formulas.language.symbols import (
    activation_bytes,
    hidden_size,
    kv_lora_rank,
    micro_batch,
    q_lora_rank,
    qk_nope_head_dim,
    qk_rope_head_dim,
    v_head_dim,
)
from .attention_core import AttentionCore, Operations

if TYPE_CHECKING:
    from ...operations.schedule import Op
    from .transformer import Decoder


class LatentAttention(AttentionCore):
    """The latent attention of one kind of layer."""

    latent = True

    def __init__(self, layer: Decoder) -> None:
        super().__init__(layer)
        self.query_width = layer.shapes.heads * (qk_nope_head_dim + qk_rope_head_dim)
        self.expanded_width = layer.shapes.heads * (qk_nope_head_dim + v_head_dim)
        self.latent_width = kv_lora_rank + qk_rope_head_dim

    @property
    def key_width(self) -> Any:
        """Width of a key of an expanded head."""
        return qk_nope_head_dim + qk_rope_head_dim

    @property
    def value_width(self) -> Any:
        """Width of a value."""
        return v_head_dim

    @property
    def output_width(self) -> Any:
        """Features that the output projection reads."""
        return self.shapes.heads * v_head_dim

    def forward(self, phase: str) -> Operations:
        """Projections, the core and its gate."""
        gate = self.layer.gated(self.path(f"gate/{phase}"), self.gated) if self.architecture.attention_gate else None
        return [*self.projections(phase), self.core_forward(phase), gate]

    def backward(self) -> Operations:
        """Gradients of the projections into and out of the latent, and of the core between them."""
        gate = self.path("gate/backward")
        return [
            self.layer.gated_backward(gate, self.gated) if self.architecture.attention_gate else None,
            self.recomputed(),
            self.core_backward(),
            *self.projections_backward(),
        ]

    @property
    def gated(self) -> Any:
        """Elements that the gate weighs."""
        return self.shapes.tokens * self.output_width

    def projections(self, phase: str) -> Operations:
        """Queries; latents; keys and values of all heads; rotary positions."""
        layer = self.layer
        queries: Operations = [layer.linear(self.path("query"), phase, hidden_size, self.query_width)]
        if layer.architecture.query_compression:
            queries = [
                layer.linear(self.path("query_down"), phase, hidden_size, q_lora_rank),
                self.norm("query_norm", phase, q_lora_rank),
                layer.linear(self.path("query_up"), phase, q_lora_rank, self.query_width),
            ]
        gated = self.architecture.attention_gate
        return [
            *queries,
            layer.linear(self.path("gate_in"), phase, hidden_size, self.output_width) if gated else None,
            layer.linear(self.path("latent_down"), phase, hidden_size, self.latent_width),
            self.norm("latent_norm", phase, kv_lora_rank),
            layer.linear(self.path("latent_up"), phase, kv_lora_rank, self.expanded_width),
            self.rotary(phase),
        ]

    def projections_backward(self) -> Operations:
        """Their gradients; the input is gathered, and its gradient summed, once."""
        layer = self.layer
        queries: Operations = [layer.column_backward(self.path("query"), hidden_size, self.query_width, shared=True)]
        if layer.architecture.query_compression:
            queries = [
                layer.column_backward(self.path("query_up"), q_lora_rank, self.query_width, shared=True),
                self.norm_backward("query_norm", q_lora_rank),
                layer.column_backward(self.path("query_down"), hidden_size, q_lora_rank, shared=True),
            ]
        gated = self.architecture.attention_gate
        return [
            self.rotary("backward"),
            *queries,
            layer.column_backward(self.path("latent_up"), kv_lora_rank, self.expanded_width, shared=True),
            self.norm_backward("latent_norm", kv_lora_rank),
            layer.column_backward(self.path("gate_in"), hidden_size, self.output_width, shared=True) if gated else None,
            layer.column_backward(self.path("latent_down"), hidden_size, self.latent_width),
        ]

    def norm(self, name: str, phase: str, width: Any) -> Op:
        """The norm of a narrow projection."""
        return self.layer.norm_of(f"{self.path(name)}/{phase}", self.shapes.tokens * width)

    def norm_backward(self, name: str, width: Any) -> Op:
        """Gradients of the norms of the latents."""
        return self.layer.norm_gradient_of(f"{self.path(name)}/backward", self.shapes.tokens * width)

    def rotary(self, phase: str) -> Op | None:
        """Rotary positions of the rotary part of queries and of the shared key."""
        if self.architecture.positions != "rotary":
            return None
        n = self.shapes.tokens * qk_rope_head_dim * (self.shapes.heads + 1)
        return self.layer.rotary_of(self.path(f"rotary/{phase}"), n)

    @property
    def work(self) -> Any:
        """FLOPs of the forward flash kernel: causal, with unequal widths of keys and values."""
        widths = qk_nope_head_dim, qk_rope_head_dim, v_head_dim
        pairs = self.queries, self.seen + 1
        return mla.expanded_attention_flops(micro_batch, *pairs, self.shapes.heads, *widths) / 2

    def traffic(self, queries: Any, keys: Any, heads: Any, key_value_heads: Any) -> Any:  # noqa: ARG002
        """Bytes of the forward flash kernel; every head has keys and values of its own."""
        widths = qk_nope_head_dim, qk_rope_head_dim, v_head_dim
        return mla.expanded_attention_bytes(micro_batch, queries, keys, heads, *widths, activation_bytes)
