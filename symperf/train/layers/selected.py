"""Attention to selected keys in training: of latents, absorbed, or of blocks of keys and values, with their indexer.

A query attends to keys of its own, so that latents are attended to as they are: keys and values of every head would be
expanded for each query (DeepSeek-AI 2025, V3.2, section 2.1; the fused kernels of Megatron-Core are absorbed too).
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from ...formulas.kernels import attention as att
from ...formulas.kernels import latent_attention as mla
from ...formulas.kernels import selected_attention as sel
from ...formulas.kernels import sparse_selection as sparse
from ...formulas.kernels import windows
from ...formulas.language.symbols import (
    activation_bytes,
    index_block_size,
    index_top_blocks,
    index_top_keys,
    kv_lora_rank,
    micro_batch,
    qk_nope_head_dim,
    qk_rope_head_dim,
    sequence,
    statistic_bytes,
    v_head_dim,
)
from ...operations.groups import parts
from ...operations.schedule import sequence as in_sequence
from .attention_core import AttentionCore, Operations
from .indexer import Indexer
from .latent import LatentAttention
from .softmax_attention import SoftmaxAttention

if TYPE_CHECKING:
    from ...operations.schedule import Op, Sequence


class SelectedKeys(AttentionCore):
    """What attention to selected keys has in common, whatever its keys are."""

    @cached_property
    def indexer(self) -> Indexer | None:
        """The layer's indexer; None where it reuses the selection of an earlier one."""
        return None if "reused_index" in self.kind.traits else Indexer(self)

    @property
    def whole_pairs(self) -> Any:
        """Pairs that selection leaves of one sequence."""
        raise NotImplementedError

    @property
    def selected(self) -> Any:
        """Pairs of a query of the device and a key that it selects."""
        return micro_batch * self.whole_pairs / parts(self.structure)

    @property
    def score_work(self) -> Any:
        """FLOPs of the first of the core's products, for the device's queries."""
        raise NotImplementedError

    @property
    def gathered_keys(self) -> Any:
        """Bytes of the keys that the device's queries gather; latents are keys and values in one."""
        return sel.gathered_bytes(self.selected, 1, self.cached, activation_bytes)

    @property
    def cached(self) -> Any:
        """Elements of a token that a query gathers."""
        raise NotImplementedError

    def traffic(self, queries: Any, keys: Any, heads: Any, key_value_heads: Any) -> Any:  # noqa: ARG002
        """Bytes of the forward kernel: queries in, results out, and what they gather."""
        each = heads * (self.key_width + self.value_width) * activation_bytes + heads * statistic_bytes
        pairs = micro_batch * self.whole_pairs * queries / sequence
        return micro_batch * queries * each + sel.gathered_bytes(pairs, 1, self.cached, activation_bytes)


class SelectedLatents(SelectedKeys, LatentAttention):
    """Latent attention to selected keys."""

    @property
    def key_width(self) -> Any:
        """Width of a query that was carried into the latents'."""
        return kv_lora_rank + qk_rope_head_dim

    @property
    def value_width(self) -> Any:
        """Width of a result before it is carried out of the latents'."""
        return kv_lora_rank

    @property
    def cached(self) -> Any:
        """Elements of a latent with its rotary key."""
        return mla.latent_cache_elements(kv_lora_rank, qk_rope_head_dim)

    @property
    def whole_pairs(self) -> Any:
        """Pairs that selection leaves of one sequence."""
        return windows.window_pairs(sequence, index_top_keys)

    @property
    def work(self) -> Any:
        """FLOPs of the forward kernel over whole sequences."""
        return mla.absorbed_attention_flops(
            micro_batch, self.whole_pairs, 1, self.shapes.heads, kv_lora_rank, qk_rope_head_dim
        )

    @property
    def score_work(self) -> Any:
        """FLOPs of the scores of the device's queries."""
        every = mla.absorbed_attention_flops(self.selected, 1, 1, self.shapes.heads, kv_lora_rank, qk_rope_head_dim)
        return every * (kv_lora_rank + qk_rope_head_dim) / (2 * kv_lora_rank + qk_rope_head_dim)

    def projections(self, phase: str) -> Operations:
        """Queries and latents, as latent attention has them, and queries carried into the latents' width."""
        *made, _, rotary = super().projections(phase)
        return [*made, rotary, self.absorb("absorb_key", phase, kv_lora_rank, qk_nope_head_dim)]

    def forward(self, phase: str) -> Operations:
        """Projections, the indexer, the core, and results carried out of the latents' width."""
        return [
            *self.projections(phase),
            *(self.indexer.forward(phase) if self.indexer else ()),
            self.core_forward(phase),
            self.absorb("absorb_value", phase, v_head_dim, kv_lora_rank),
        ]

    def backward(self) -> Operations:
        """Gradients of the core between the products that absorb, of the indexer, and of the projections."""
        return [
            self.absorb_backward("absorb_value", v_head_dim, kv_lora_rank),
            self.recomputed(),
            self.core_backward(),
            *(self.indexer.backward() if self.indexer else ()),
            self.absorb_backward("absorb_key", kv_lora_rank, qk_nope_head_dim),
            *self.projections_backward(),
        ]

    def projections_backward(self) -> Operations:
        """Their gradients, without those of expanded heads."""
        made = super().projections_backward()
        # The third from the end is the projection up, in whose place are the products that absorb.
        return [*made[:-3], *made[-2:]]

    def absorb(self, name: str, phase: str, columns: Any, inner: Any) -> Op:
        """A product for each head, of its queries or of its results, with its part of an expansion."""
        return self.kernels.matmul(
            self.path(f"core/{name}/{phase}"), self.shapes.tokens, columns, inner, self.shapes.heads
        )

    def absorb_backward(self, name: str, columns: Any, inner: Any) -> Sequence:
        """Gradients of such a product's input and weights."""
        tokens, heads = self.shapes.tokens, self.shapes.heads
        path = self.path(f"core/{name}")
        return in_sequence(
            self.kernels.matmul(f"{path}/backward_input", tokens, inner, columns, heads),
            self.kernels.weight_gradient(f"{path}/backward_weight", tokens, inner, columns, heads),
        )


class SelectedBlocks(SelectedKeys, SoftmaxAttention):
    """Attention of grouped heads to selected blocks; a group has blocks of its own."""

    @property
    def cached(self) -> Any:
        """Elements of a token's keys and values, of all groups."""
        return 2 * self.shapes.key_value_heads * self.shapes.head_dim

    @property
    def whole_pairs(self) -> Any:
        """Pairs that selection leaves of one sequence."""
        return sparse.block_pairs(sequence, index_top_blocks, index_block_size)

    @property
    def work(self) -> Any:
        """FLOPs of the forward kernel over whole sequences."""
        return windows.masked_attention_flops(micro_batch, self.whole_pairs, self.shapes.heads, self.shapes.head_dim)

    @property
    def gathered_keys(self) -> Any:
        """Bytes of the keys that the device's queries gather: half of what is cached."""
        return super().gathered_keys / 2

    @property
    def score_work(self) -> Any:
        """FLOPs of the scores of the device's queries: one of the two products."""
        return att.attention_flops(self.selected, 1, 1, self.shapes.heads, self.shapes.head_dim) / 2

    def forward(self, phase: str) -> Operations:
        """The indexer, then attention as of grouped heads."""
        assert self.indexer is not None
        return [*self.indexer.forward(phase), *super().forward(phase)]

    def backward(self) -> Operations:
        """Gradients of attention, and of the indexer."""
        assert self.indexer is not None
        return [*self.indexer.backward(), *super().backward()]
