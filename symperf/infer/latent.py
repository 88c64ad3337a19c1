"""Latent attention (MLA) of an inference: expanded in prefill, absorbed in decoding.

The cache holds one latent and one rotary key a token, which every device of a tensor-parallel group keeps whole. In a
decode step the projections up to the heads move to the queries and to the results (DeepSeek-AI 2024, V2, section
2.1.2), so that the cache is read as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..formulas.kernels import elementwise as ew
from ..formulas.kernels import latent_attention as mla
from ..formulas.language.symbols import (
    activation_bytes,
    hidden_size,
    kv_bytes,
    kv_lora_rank,
    micro_batch,
    num_attention_heads,
    q_lora_rank,
    qk_nope_head_dim,
    qk_rope_head_dim,
    tp,
    v_head_dim,
)
from ..operations.shapes import FLOPS_PER_ELEMENT
from .attention import CachedAttention
from .kernels import CacheRead

if TYPE_CHECKING:
    from ..operations.schedule import Op
    from .layer import Layer


class LatentAttention(CachedAttention):
    """The latent attention of one kind of layer, in one phase; a unit takes one head of one sequence."""

    def __init__(self, layer: Layer) -> None:
        super().__init__(layer)
        self.heads = self.units = num_attention_heads / tp
        self.value_width = kv_lora_rank
        self.query_width = self.heads * (qk_nope_head_dim + qk_rope_head_dim)

    def name(self, name: str) -> str:
        """The path of an operation of the attention block, without its phase."""
        return f"{self.layer.root}/{self.folder}/{name}"

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
            self.append(),
        ]

    def output(self) -> list[Op | None]:
        """The projection of the results."""
        return [self.layer.linear(self.name("output"), self.heads * v_head_dim, hidden_size)]

    def append(self) -> Op | None:
        """The kernel that writes new latents and rotary keys into the cache."""
        return self.append_of(self.layer.tokens * mla.latent_cache_elements(kv_lora_rank, qk_rope_head_dim))

    def norm(self, name: str, width: Any) -> Op:
        """The norm of a narrow projection."""
        n = self.layer.tokens * width
        return self.layer.kernels.stream(
            self.path(name), ew.norm_bytes(n, activation_bytes), n, FLOPS_PER_ELEMENT["norm"]
        )

    def rotary(self) -> Op | None:
        """Rotary positions, where they are a kernel of their own."""
        if self.layer.fusion.rotary_cache:
            return None
        n = self.layer.tokens * qk_rope_head_dim * (self.heads + 1)
        return self.layer.kernels.stream(
            self.path("rotary"), ew.rotary_bytes(n, activation_bytes), n, FLOPS_PER_ELEMENT["rotary"]
        )

    def prefill(self, length: Any) -> list[Op | None]:
        """Keys and values of all heads, and causal attention among the prompt's tokens."""
        layer = self.layer
        widths = qk_nope_head_dim, qk_rope_head_dim, v_head_dim
        work = mla.expanded_attention_flops(micro_batch, length, length + 1, self.heads, *widths) / 2
        traffic = mla.expanded_attention_bytes(micro_batch, length, length, self.heads, *widths, activation_bytes)
        expanded = self.heads * (qk_nope_head_dim + v_head_dim)
        return [
            layer.linear(self.name("latent_up"), kv_lora_rank, expanded),
            layer.kernels.flash(self.path("flash"), work, traffic),
        ]

    def decode(self, contexts: tuple[Any, Any]) -> list[Op | None]:
        """The steps of a generation: their number, and the keys that the first one reads."""
        return self.absorbed(self.layer.tokens, self.growing(contexts))

    def absorbed(self, rows: Any, core: Op) -> list[Op | None]:
        """Queries carried into the latent's width, attention over the cache, results carried out of it."""
        product = self.layer.kernels.matmul
        return [
            product(self.path("absorb_key"), rows, kv_lora_rank, qk_nope_head_dim, self.heads),
            core,
            product(self.path("absorb_value"), rows, v_head_dim, kv_lora_rank, self.heads),
        ]

    def demand(self, sequences: Any, new_tokens: Any = 1) -> CacheRead:
        """Queries in, results out; latents and rotary keys once for all heads."""
        work = mla.absorbed_attention_flops(sequences, new_tokens, 1, self.heads, kv_lora_rank, qk_rope_head_dim)
        own = sequences * new_tokens * self.heads * (2 * kv_lora_rank + qk_rope_head_dim) * activation_bytes
        return CacheRead(work, own, sequences * mla.latent_cache_elements(kv_lora_rank, qk_rope_head_dim) * kv_bytes)
