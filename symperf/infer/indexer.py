"""The indexer of a layer of an inference: it scores every key cheaply, and selects those that attention sees.

Beside latent attention it is whole on every device of a tensor-parallel group (vLLM and SGLang replicate its linear
layers); beside grouped heads, which select blocks for their own key-value head, it is dealt as these are.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..formulas.kernels import selected_attention as sel
from ..formulas.kernels import sparse_selection as sparse
from ..formulas.kernels import thin_matmul as thin
from ..formulas.kernels.roofline import traffic_time, work_time
from ..formulas.language.atoms import ceil_div
from ..formulas.language.symbols import (
    SYMBOLS,
    activation_bytes,
    hidden_size,
    index_block_size,
    index_efficiency,
    index_head_dim,
    index_key_bytes,
    index_latency,
    index_num_heads,
    index_rate,
    memory_bandwidth,
    memory_efficiency,
    micro_batch,
    q_lora_rank,
    select_passes,
    statistic_bytes,
    tp,
)
from ..operations.schedule import Demand, Op
from ..systems.kernel_constants import FAMILIES
from .attention import CachedAttention
from .cache_read import BlockRead, CacheRead

if TYPE_CHECKING:
    from .layer import Layer

CAST_FLOPS = 4
"""Of an element that is normalised, turned, scaled and rounded in one kernel; nearly all are the queries'."""


class Indexer(CachedAttention):
    """An indexer with heads of its own and one key a token, in one phase.

    Args:
        layer: that it belongs to.
        ratio: tokens of a key: 1, or those of a compressed entry.
    """

    kernel = "index_scores"
    families = ("selection", "selection")

    def __init__(self, layer: Layer, ratio: Any = 1) -> None:
        super().__init__(layer)
        self.ratio, self.value_width = ratio, index_head_dim
        self.heads = self.units = index_num_heads
        self.kept_scores = 1 / ratio

    def projections(self) -> list[Op | None]:
        """Queries from the compressed ones of attention, the key with the heads' weights, and both in their format."""
        layer, root = self.layer, f"{self.layer.root}/{self.folder}"
        n = layer.tokens * index_head_dim * (self.heads + 1)
        return [
            layer.linear(f"{root}/index_query", q_lora_rank, self.heads * index_head_dim),
            layer.linear(f"{root}/index_key", hidden_size, index_head_dim + self.heads),
            layer.kernels.stream(self.path("index_cast"), n * (activation_bytes + index_key_bytes), n, CAST_FLOPS),
        ]

    def pair_work(self, pairs: Any) -> Any:
        """FLOPs of so many pairs of a query and a key; the weighted sum over heads is no product of its own."""
        return sparse.index_score_flops(1, 1, pairs / self.ratio, self.heads, index_head_dim)

    def select(self, sequences: Any, pairs: Any, keys: Any, prefix: str = "") -> Op:
        """Scores of new tokens, and the keys that they select.

        Args:
            sequences: on the device.
            pairs: of a query and a token that it may see, of one sequence.
            keys: tokens of a sequence when the last of them is there.
            prefix: of the operation's name.
        """
        path = self.path(prefix + self.kernel)
        work = self.pair_work(sequences * pairs)
        read = sel.index_read_bytes(sequences, keys / self.ratio, index_head_dim, index_key_bytes)
        scores = sel.score_traffic_bytes(sequences * pairs * self.kept_scores, statistic_bytes)
        if self.families_known[0]:
            return Op(path, sel.index_time(work, read, scores), Demand(work, read + scores))
        return self.layer.kernels.fused_products(path, work, read + scores, 2)

    def demand(self, sequences: Any, new_tokens: Any = 1) -> CacheRead:
        """Scores of each key; keys once, scores twice."""
        each = sel.index_read_bytes(sequences, 1 / self.ratio, index_head_dim, index_key_bytes)
        each += sel.score_traffic_bytes(sequences * new_tokens * self.kept_scores, statistic_bytes)
        own = sequences * new_tokens * self.heads * index_head_dim * index_key_bytes
        return CacheRead(self.pair_work(sequences * new_tokens), own, each)

    def read(self, sequences: Any, new_tokens: Any = 1, passes: Any = None) -> CacheRead | BlockRead:  # noqa: ARG002
        """The same, as the kernels take it; contexts are dealt to all units."""
        found = self.demand(sequences, new_tokens)
        return self.blocks(found, sequences, new_tokens) if self.families_known[1] else found

    def blocks(self, found: CacheRead, sequences: Any, new_tokens: Any) -> BlockRead:
        """Scores, then the selection among them."""
        bandwidth = memory_bandwidth * memory_efficiency
        scores = sel.score_traffic_bytes(sequences * new_tokens * self.kept_scores, statistic_bytes)
        after = select_passes * traffic_time(scores, bandwidth)
        products = work_time(found.work, index_rate * index_efficiency) + after
        keys = traffic_time(found.each - scores, bandwidth) + after
        own, start = traffic_time(found.own, bandwidth), thin.gap_time() + index_latency
        return BlockRead(found.work, found.own, found.each, products, own, keys, start)


OF_BLOCKS = {
    SYMBOLS[name].symbol: SYMBOLS[f"block_{name}"].symbol
    for family in ("selection", "selected")
    for name in FAMILIES[family]
}
"""What stands for the constants of kernels that select keys one by one where they select blocks."""


def of_blocks(op: Op) -> Op:
    """An operation with the constants of kernels for blocks."""
    return replace(op, time=op.time.xreplace(OF_BLOCKS))


class BlockIndexer(Indexer):
    """An indexer that selects blocks for each key-value head; its projections are part of attention's."""

    families = ("block_selection", "block_selection")

    def __init__(self, layer: Layer) -> None:
        super().__init__(layer)
        self.heads = self.units = ceil_div(index_num_heads, tp)
        self.kept_scores = self.heads / index_block_size

    @property
    def width(self) -> Any:
        """Features of its queries and of its key."""
        return index_head_dim * (self.heads + 1)

    def projections(self) -> list[Op | None]:
        """None of its own."""
        return []

    def select(self, sequences: Any, pairs: Any, keys: Any, prefix: str = "") -> Op:
        """Scores of new tokens, and the blocks that they select."""
        return of_blocks(super().select(sequences, pairs, keys, prefix))

    def growing(self, contexts: tuple[Any, Any], sequences: Any = micro_batch, new_tokens: Any = 1) -> Op:
        """Selection of every step of a growing context."""
        return of_blocks(super().growing(contexts, sequences, new_tokens))

    def over(self, context: Any, passes: Any = None) -> Op:
        """Selection of one new token of every sequence."""
        return of_blocks(super().over(context, passes))
