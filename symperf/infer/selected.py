"""Attention of an inference to the keys that an indexer selects: of latents, or of blocks of keys and values.

Latents are attended to as they are, absorbed, in prefill as in decoding: a query's keys are its own, and expanding them
for each query would cost more (DeepSeek-AI 2025, V3.2, section 2.1: attention in the mode of one key for all heads).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..formulas.kernels import attention as att
from ..formulas.kernels import attention_blocks as blocked
from ..formulas.kernels import latent_attention as mla
from ..formulas.kernels import selected_attention as sel
from ..formulas.kernels import sparse_selection as sparse
from ..formulas.kernels import thin_matmul as thin
from ..formulas.kernels import windows
from ..formulas.kernels.roofline import traffic_time, work_time
from ..formulas.language.atoms import Max, Min, ceil_div, complement
from ..formulas.language.symbols import (
    activation_bytes,
    attention_rate,
    gather_efficiency,
    group_rows,
    index_block_size,
    index_top_blocks,
    index_top_keys,
    kv_bytes,
    kv_lora_rank,
    memory_bandwidth,
    micro_batch,
    qk_rope_head_dim,
    selected_efficiency,
    selected_latency,
    slot_share,
)
from ..formulas.mathematics.series import excess
from ..operations.schedule import Demand, Op
from .attention import CachedAttention, SoftmaxAttention
from .cache_read import BlockRead, CacheRead
from .indexer import BlockIndexer, Indexer, of_blocks
from .latent import LatentAttention

if TYPE_CHECKING:
    from .layer import Layer


class SelectedKeys(CachedAttention):
    """What attention to selected keys has in common, whatever its keys are."""

    families = ("selected", "selected")
    indexer: Indexer | None

    @property
    def rows(self) -> Any:
        """Rows of queries that are multiplied, over those that there are."""
        return 1

    def attended(
        self, sequences: Any, new_tokens: Any, pairs: tuple[Any, Any], keys: Any, prefix: str = ""
    ) -> list[Op | None]:
        """Selection and attention of new tokens.

        Args:
            sequences: on the device.
            new_tokens: of each.
            pairs: of a query and a token that it may see, of one sequence, and those that selection leaves.
            keys: tokens of a sequence when the last of them is there.
            prefix: of the names of the operations.
        """
        rows, (every, left) = sequences * new_tokens, pairs
        chosen = self.indexer.select(sequences, every, keys, prefix) if self.indexer else None
        return [chosen, *self.around(rows, self.core(rows, left / new_tokens, prefix), prefix)]

    def around(self, rows: Any, core: Op, prefix: str = "") -> list[Op | None]:  # noqa: ARG002
        """The core between what belongs to it."""
        return [core]

    def core(self, queries: Any, seen: Any, prefix: str) -> Op:
        """Attention of so many queries to the keys that each has selected, their mean."""
        read, path = self.demand(queries), self.path(prefix + self.kernel)
        work, traffic = seen * read.work, read.own + seen * read.each
        if not self.families_known[0]:
            return self.layer.kernels.fused_products(path, work, traffic, 1)
        keys = sel.computed_keys(seen, self.window)
        time = sel.selected_attention_time(keys * read.work * self.rows, read.own + keys * read.each)
        return Op(path, time, Demand(work, traffic))

    def prefill(self, length: Any) -> list[Op | None]:
        """Selection and attention of whole prompts."""
        return self.attended(micro_batch, length, self.pairs(length), length)

    def pairs(self, length: Any, before: Any = None) -> tuple[Any, Any]:
        """Pairs that the causal mask leaves to tokens of one sequence, and those that selection leaves.

        Args:
            length: tokens.
            before: tokens that were there already; none unless they are given.
        """
        if before is None:
            return windows.causal_pairs(length), self.selected_pairs(length)
        forms = windows.causal_pairs, self.selected_pairs
        every, left = (excess(form(before + length), form(before)) for form in forms)
        return every, left

    def selected_pairs(self, length: Any) -> Any:
        """Pairs that selection leaves of a whole prompt."""
        return windows.window_pairs(length, self.window)

    def decode(self, contexts: tuple[Any, Any]) -> list[Op | None]:
        """The steps of a generation: their number, and the keys that the first one may see."""
        chosen = self.indexer.growing(contexts) if self.indexer else None
        return [chosen, *self.around(self.layer.tokens, self.growing(contexts))]

    def after(self, context: Any) -> list[Op | None]:
        """One new token of every sequence, after a context of a given length that it belongs to."""
        chosen = self.indexer.over(context) if self.indexer else None
        return [chosen, *self.around(self.layer.tokens, self.over(Min(context, self.window)))]

    def blocks(self, found: CacheRead, sequences: Any, new_tokens: Any) -> BlockRead:  # noqa: ARG002
        """Keys are gathered for each token; empty places are computed in part, as full ones are."""
        products = work_time(found.work * self.rows, attention_rate * selected_efficiency)
        key = traffic_time(found.each, memory_bandwidth * gather_efficiency)
        own = traffic_time(found.own, memory_bandwidth * gather_efficiency)
        filled = complement(slot_share)
        start = thin.gap_time() + selected_latency + slot_share * self.window * Max(products, key)
        return BlockRead(found.work, found.own, found.each, filled * products, own, filled * key, start)


class SelectedLatents(SelectedKeys, LatentAttention):
    """Latent attention to selected keys, by an indexer of its own or of an earlier layer."""

    def __init__(self, layer: Layer) -> None:
        super().__init__(layer)
        self.indexer = Indexer(layer) if "indexer" in layer.kind.traits else None

    @property
    def window(self) -> Any:
        """Keys that a query selects."""
        return index_top_keys

    @property
    def rows(self) -> Any:
        """Blocks of 64 rows: the heads of one token, of which there may be fewer."""
        return ceil_div(self.heads, blocked.BLOCK) * blocked.BLOCK / self.heads

    def projections(self) -> list[Op | None]:
        """Those of latent attention, and of the indexer."""
        return [*super().projections(), *(self.indexer.projections() if self.indexer else ())]

    def around(self, rows: Any, core: Op, prefix: str = "") -> list[Op | None]:
        """The core between the products that absorb projections."""
        return self.absorbed(rows, core, prefix)

    def demand(self, sequences: Any, new_tokens: Any = 1) -> CacheRead:
        """Queries in, results out; latents and rotary keys once for all heads of a token."""
        found = super().demand(sequences, new_tokens)
        elements = mla.latent_cache_elements(kv_lora_rank, qk_rope_head_dim)
        return CacheRead(found.work, found.own, sel.gathered_bytes(sequences * new_tokens, 1, elements, kv_bytes))


class SelectedBlocks(SelectedKeys, SoftmaxAttention):
    """Attention of grouped heads to selected blocks; a group has blocks of its own."""

    families = ("selected_blocks", "selected_blocks")
    indexer: BlockIndexer

    def __init__(self, layer: Layer) -> None:
        super().__init__(layer)
        self.indexer = BlockIndexer(layer)

    @property
    def rows(self) -> Any:
        """Rows that a kernel multiplies for a group of query heads, of which there may be fewer."""
        group = self.heads / self.units
        return Max(group, group_rows) / group

    @property
    def beside(self) -> Any:
        """Features of the joint projection that are the indexer's."""
        return self.indexer.width

    @property
    def window(self) -> Any:
        """Keys of the blocks that a query selects; kernels read blocks whole."""
        return index_top_blocks * index_block_size

    def selected_pairs(self, length: Any) -> Any:
        """Pairs that selection leaves of a whole prompt."""
        return sparse.block_pairs(length, index_top_blocks, index_block_size)

    def demand(self, sequences: Any, new_tokens: Any = 1) -> CacheRead:
        """Queries in, results out; keys and values of a group once for each token."""
        tokens = sequences * new_tokens
        work = att.attention_flops(tokens, 1, 1, self.heads, self.value_width)
        own = 2 * tokens * self.width * activation_bytes
        return CacheRead(work, own, sel.gathered_bytes(tokens, 1, 2 * self.units * self.value_width, kv_bytes))

    def core(self, queries: Any, seen: Any, prefix: str) -> Op:
        """Attention of so many queries to the keys of the blocks that each has selected."""
        return of_blocks(super().core(queries, seen, prefix))

    def growing(self, contexts: tuple[Any, Any], sequences: Any = micro_batch, new_tokens: Any = 1) -> Op:
        """Attention of the steps of a growing context."""
        return of_blocks(super().growing(contexts, sequences, new_tokens))

    def over(self, context: Any, passes: Any = None) -> Op:
        """Attention of one new token of every sequence."""
        return of_blocks(super().over(context, passes))
