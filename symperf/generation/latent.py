"""Latent attention (MLA) of an inference: expanded in prefill, absorbed in decoding.

The cache holds one latent and one rotary key a token, which every device of a tensor-parallel group keeps whole. In a
decode step the projections up to the heads move to the queries and to the results (DeepSeek-AI 2024, V2, section
2.1.2), so that the cache is read as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..formulas import elementwise as ew
from ..formulas import latent_attention as mla
from ..formulas.symbols import (
    activation_bytes,
    hidden_size,
    kv_bytes,
    kv_lora_rank,
    micro_batch,
    q_lora_rank,
    qk_nope_head_dim,
    qk_rope_head_dim,
    v_head_dim,
)
from ..shapes import FLOPS_PER_ELEMENT

if TYPE_CHECKING:
    from ..schedule import Op
    from .layer import Layer


class LatentAttention:
    """The latent attention of one kind of layer, in one phase."""

    def __init__(self, layer: Layer) -> None:
        self.layer, self.heads = layer, layer.shapes.heads
        self.value_width = self.heads * v_head_dim
        self.query_width = self.heads * (qk_nope_head_dim + qk_rope_head_dim)

    def name(self, name: str) -> str:
        """The path of an operation of the attention block, without its phase."""
        return f"{self.layer.root}/attention/{name}"

    def projections(self) -> list[Op | None]:
        """Queries and latents with their norms, and rotary positions."""
        layer = self.layer
        if layer.architecture.query_compression:
            queries: list[Op | None] = [
                layer.linear(self.name("query_down"), hidden_size, q_lora_rank),
                self.norm("query_norm", q_lora_rank),
                layer.linear(self.name("query_up"), q_lora_rank, self.query_width),
            ]
        else:
            queries = [layer.linear(self.name("query"), hidden_size, self.query_width)]
        return [
            *queries,
            layer.linear(self.name("latent_down"), hidden_size, kv_lora_rank + qk_rope_head_dim),
            self.norm("latent_norm", kv_lora_rank),
            self.rotary(),
        ]

    def norm(self, name: str, width: Any) -> Op:
        """The norm of a narrow projection."""
        n = self.layer.tokens * width
        path, traffic = self.layer.path(self.name(name)), ew.norm_bytes(n, activation_bytes)
        return self.layer.kernels.stream(path, traffic, n, FLOPS_PER_ELEMENT["norm"])

    def rotary(self) -> Op | None:
        """Rotary positions, where they are a kernel of their own."""
        if self.layer.fusion.rotary_cache:
            return None
        n = self.layer.tokens * qk_rope_head_dim * (self.heads + 1)
        path, traffic = self.layer.path(self.name("rotary")), ew.rotary_bytes(n, activation_bytes)
        return self.layer.kernels.stream(path, traffic, n, FLOPS_PER_ELEMENT["rotary"])

    def prefill(self, length: Any) -> list[Op | None]:
        """Keys and values of all heads, and causal attention among the prompt's tokens."""
        layer = self.layer
        widths = qk_nope_head_dim, qk_rope_head_dim, v_head_dim
        work = mla.expanded_attention_flops(micro_batch, length, length + 1, self.heads, *widths) / 2
        traffic = mla.expanded_attention_bytes(micro_batch, length, length, self.heads, *widths, activation_bytes)
        expanded = self.heads * (qk_nope_head_dim + v_head_dim)
        return [
            layer.linear(self.name("latent_up"), kv_lora_rank, expanded),
            layer.kernels.flash(layer.path(self.name("flash")), work, traffic),
        ]

    def decode(self, contexts: tuple[Any, Any]) -> list[Op | None]:
        """Queries carried into the latent's width, attention over the cache, results carried out of it."""
        layer, kernels = self.layer, self.layer.kernels
        work, own, each = self.demand(micro_batch)
        return [
            kernels.matmul(
                layer.path(self.name("absorb_key")), layer.tokens, kv_lora_rank, qk_nope_head_dim, self.heads
            ),
            kernels.generation(layer.path(self.name("flash")), contexts, work, own, each),
            kernels.matmul(layer.path(self.name("absorb_value")), layer.tokens, v_head_dim, kv_lora_rank, self.heads),
        ]

    def demand(self, sequences: Any) -> tuple[Any, Any, Any]:
        """FLOPs for each cached key, bytes that do not depend on the context, bytes for each key."""
        work = mla.absorbed_attention_flops(sequences, 1, 1, self.heads, kv_lora_rank, qk_rope_head_dim)
        own = sequences * self.heads * (2 * kv_lora_rank + qk_rope_head_dim) * activation_bytes
        return work, own, sequences * mla.latent_cache_elements(kv_lora_rank, qk_rope_head_dim) * kv_bytes
