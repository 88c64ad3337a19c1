"""Latent attention (MLA) of a layer as operations, expanded as training and prefill run it.

Queries, and keys with values, pass through narrow projections, which every device of a tensor-parallel group computes
whole; the projections up to the heads are split by heads (DeepSeek-AI 2024, V2, section 2.1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .formulas import elementwise as ew
from .formulas import latent_attention as mla
from .formulas.symbols import (
    activation_bytes,
    hidden_size,
    kv_lora_rank,
    micro_batch,
    q_lora_rank,
    qk_nope_head_dim,
    qk_rope_head_dim,
    sequence,
    v_head_dim,
)
from .shapes import FLOPS_PER_ELEMENT

if TYPE_CHECKING:
    from .schedule import Op, Sequence
    from .transformer import Decoder


class LatentAttention:
    """The latent attention of one kind of layer."""

    def __init__(self, layer: Decoder) -> None:
        self.layer, self.shapes = layer, layer.shapes
        self.query_width = layer.shapes.heads * (qk_nope_head_dim + qk_rope_head_dim)
        self.value_width = layer.shapes.heads * v_head_dim
        self.expanded_width = layer.shapes.heads * (qk_nope_head_dim + v_head_dim)
        self.latent_width = kv_lora_rank + qk_rope_head_dim

    def path(self, name: str) -> str:
        """The path of an operation of the attention block."""
        return f"{self.layer.root}/attention/{name}"

    def projections(self, phase: str) -> list[Op | Sequence | None]:
        """Queries; latents; keys and values of all heads; rotary positions."""
        layer = self.layer
        queries: list[Op | Sequence | None] = [layer.linear(self.path("query"), phase, hidden_size, self.query_width)]
        if layer.architecture.query_compression:
            queries = [
                layer.linear(self.path("query_down"), phase, hidden_size, q_lora_rank),
                self.norm("query_norm", phase, q_lora_rank),
                layer.linear(self.path("query_up"), phase, q_lora_rank, self.query_width),
            ]
        return [
            *queries,
            layer.linear(self.path("latent_down"), phase, hidden_size, self.latent_width),
            self.norm("latent_norm", phase, kv_lora_rank),
            layer.linear(self.path("latent_up"), phase, kv_lora_rank, self.expanded_width),
            self.rotary(phase),
        ]

    def projections_backward(self) -> list[Op | Sequence | None]:
        """Their gradients; the input is gathered, and its gradient summed, once."""
        layer = self.layer
        queries: list[Op | Sequence | None] = [
            layer.column_backward(self.path("query"), hidden_size, self.query_width, shared=True)
        ]
        if layer.architecture.query_compression:
            queries = [
                layer.column_backward(self.path("query_up"), q_lora_rank, self.query_width, shared=True),
                self.norm_backward("query_norm", q_lora_rank),
                layer.column_backward(self.path("query_down"), hidden_size, q_lora_rank, shared=True),
            ]
        return [
            self.rotary("backward"),
            *queries,
            layer.column_backward(self.path("latent_up"), kv_lora_rank, self.expanded_width, shared=True),
            self.norm_backward("latent_norm", kv_lora_rank),
            layer.column_backward(self.path("latent_down"), hidden_size, self.latent_width),
        ]

    def norm(self, name: str, phase: str, width: Any) -> Op:
        """The norm of a narrow projection."""
        n = self.shapes.tokens * width
        traffic, work = ew.norm_bytes(n, activation_bytes), FLOPS_PER_ELEMENT["norm"]
        return self.layer.kernels.stream(f"{self.path(name)}/{phase}", traffic, n, work)

    def norm_backward(self, name: str, width: Any) -> Op:
        """Its gradients."""
        n = self.shapes.tokens * width
        traffic, work = ew.norm_backward_bytes(n, activation_bytes), FLOPS_PER_ELEMENT["norm backward"]
        return self.layer.kernels.stream(f"{self.path(name)}/backward", traffic, n, work)

    def rotary(self, phase: str) -> Op:
        """Rotary positions of the rotary part of queries and of the shared key."""
        n = self.shapes.tokens * qk_rope_head_dim * (self.shapes.heads + 1)
        traffic, work = ew.rotary_bytes(n, activation_bytes), FLOPS_PER_ELEMENT["rotary"]
        return self.layer.kernels.stream(self.path(f"rotary/{phase}"), traffic, n, work)

    @property
    def flash_demand(self) -> tuple[Any, Any]:
        """Work and traffic of the forward flash kernel: causal, with unequal widths of keys and values."""
        widths = qk_nope_head_dim, qk_rope_head_dim, v_head_dim
        whole = mla.expanded_attention_flops(micro_batch, sequence, sequence + 1, self.shapes.heads, *widths)
        traffic = mla.expanded_attention_bytes(
            micro_batch, sequence, sequence, self.shapes.heads, *widths, activation_bytes
        )
        return whole / 2, traffic
