"""Attention of an inference to a window and to compressed entries, whose one key is the value too (DeepSeek-V4).

The narrow projections of queries and of the key, compressors and indexers are whole on every device of a
tensor-parallel group, as the cache is; heads and groups of the output are dealt. Kernels are those of vLLM
(models/deepseek_v4/attention.py, compressor.py): values and gates of tokens are kept until they are pooled, an indexer
scores every entry and the best are chosen, and one kernel attends to the window and to entries.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import sympy

from ..formulas.kernels import attention as att
from ..formulas.kernels import attention_blocks as blocked
from ..formulas.kernels import compressed_attention as comp
from ..formulas.kernels import elementwise as ew
from ..formulas.kernels import selected_attention as sel
from ..formulas.kernels import thin_matmul as thin
from ..formulas.kernels.roofline import traffic_time, work_time
from ..formulas.language.atoms import Max, Min, ceil_div
from ..formulas.language.symbols import (
    SYMBOLS,
    activation_bytes,
    attention_rate,
    compress_ratio,
    entry_choice_latency,
    gather_efficiency,
    head_dim,
    hidden_size,
    index_head_dim,
    index_key_bytes,
    index_top_keys,
    kv_bytes,
    memory_bandwidth,
    micro_batch,
    num_attention_heads,
    output_groups,
    output_lora_rank,
    q_lora_rank,
    selected_efficiency,
    selected_latency,
    sliding_window,
    statistic_bytes,
    table_bytes,
    tp,
)
from ..formulas.mathematics.series import excess
from ..models import sparse_counts
from ..operations.schedule import Demand, Op
from ..operations.shapes import FLOPS_PER_ELEMENT
from ..systems.kernel_constants import FAMILIES
from .attention import CachedAttention
from .cache_read import BlockRead, CacheRead
from .indexer import CAST_FLOPS, Indexer

if TYPE_CHECKING:
    from ..models.architecture import LayerKind
    from .layer import Layer


EACH = head_dim, kv_bytes
"""Features of a key or entry that is cached, and bytes of each."""
OF_ENTRIES = {
    SYMBOLS[name].symbol: SYMBOLS[f"entry_{name}"].symbol
    for family in ("selection", "selected")
    for name in FAMILIES[family]
}
"""What stands for the constants of kernels that select keys one by one where they select entries."""


def of_entries(op: Op) -> Op:
    """An operation with the constants of kernels for entries."""
    return replace(op, time=op.time.xreplace(OF_ENTRIES))


class CompressedAttention(CachedAttention):
    """The compressed attention of one kind of layer, in one phase."""

    families = ("entries", "entries")

    def __init__(self, layer: Layer) -> None:
        super().__init__(layer)
        self.heads, self.units = num_attention_heads / tp, sympy.S.One
        self.value_width = head_dim
        self.width = self.heads * head_dim
        self.series = sparse_counts.compressor_series(layer.kind)
        self.indexer = EntryIndexer(layer) if "selected_entries" in layer.kind.traits else None

    def name(self, name: str) -> str:
        """The path of an operation of the attention block, without its phase."""
        return f"{self.layer.root}/{self.folder}/{name}"

    # --- what does not depend on the context

    def projections(self) -> list[Op | None]:
        """Queries and the key with their norms and positions, entries of compressors, and queries of the indexer."""
        layer = self.layer
        return [
            layer.linear(self.name("query_key_down"), hidden_size, q_lora_rank + head_dim),
            self.stream("narrow_norm", layer.tokens * (q_lora_rank + head_dim), "norm"),
            layer.linear(self.name("query_up"), q_lora_rank, self.width),
            # One kernel normalises heads, turns positions and writes the key into the cache.
            self.stream("head_norm", layer.tokens * (self.width + head_dim), "norm"),
            *(compressor(self, "compress", self.series, head_dim, kv_bytes) if self.series else ()),
            *(self.indexer.projections() if self.indexer else ()),
        ]

    def output(self) -> list[Op | None]:
        """Positions taken out of the results, each group of heads to its rank, and all of these to the stream."""
        layer, groups = self.layer, output_groups / tp
        kernels = layer.kernels
        return [
            self.stream("derotate", layer.tokens * self.width, "rotary"),
            kernels.matmul(self.path("group_output"), layer.tokens, output_lora_rank, self.width / groups, groups),
            layer.linear(self.name("output"), groups * output_lora_rank, hidden_size),
        ]

    def stream(self, name: str, elements: Any, work: str) -> Op:
        """A kernel that reads and writes some elements."""
        traffic = ew.norm_bytes(elements, activation_bytes)
        return self.layer.kernels.stream(self.path(name), traffic, elements, FLOPS_PER_ELEMENT[work])

    # --- over new tokens

    def prefill(self, length: Any) -> list[Op | None]:
        """Attention of whole prompts among themselves."""
        return self.extend(micro_batch, length)

    def extend(self, sequences: Any, new_tokens: Any, before: Any = None) -> list[Op | None]:
        """Attention of new tokens after some that are there, exact in the pairs of queries and keys that they make.

        Args:
            sequences: on the device.
            new_tokens: of each.
            before: tokens of each that are there already; none unless they are given.
        """
        if before is None:
            pairs, scored = self.pairs(new_tokens), self.scored(new_tokens)
            return self.over_new(sequences, new_tokens, new_tokens, (pairs, scored))
        length = before + new_tokens
        made = (excess(form(length), form(before)) for form in (self.pairs, self.scored))
        return self.over_new(sequences, new_tokens, length, tuple(made))

    def chunks(self, sequences: Any, new_tokens: Any, prompt: Any, context: Any) -> list[Op | None]:
        """Attention of chunks, the mean over a prompt's, which see so many tokens, the mean."""
        each = new_tokens / prompt
        return self.over_new(
            sequences, new_tokens, context, (self.pairs(prompt) * each, self.scored(prompt) * each), "chunk_"
        )

    def over_new(
        self, sequences: Any, new_tokens: Any, length: Any, pairs: tuple[Any, Any], prefix: str = ""
    ) -> list[Op | None]:
        """Attention of the new tokens of sequences of so many: pairs that it computes, and that the indexer scores."""
        seen, scored = pairs
        held = Min(length, new_tokens + sliding_window) + self.entries(length)
        core = self.core(sequences, new_tokens, seen / new_tokens, held, prefix)
        if self.indexer is None:
            return [core]
        # Its keys stand for several tokens each, in which it counts.
        return [self.indexer.select(sequences, scored * compress_ratio, length, prefix), core]

    def core(self, sequences: Any, new_tokens: Any, keys: Any, held: Any, prefix: str) -> Op:
        """The kernel of attention of new tokens that see so many keys, the mean, of those that are there.

        Chosen entries are gathered for each token; kernels whose constants are known gather the others too.
        """
        read, known = self.demand(sequences, new_tokens), self.families_known[0]
        path = self.path(f"{prefix}flash")
        if not known:
            gathers = self.indexer is not None
            moved = comp.shared_key_bytes(sequences * (new_tokens if gathers else 1), keys if gathers else held, *EACH)
            return self.layer.kernels.fused_products(path, keys * read.work, read.own + moved, 1)
        computed = self.computed(keys)
        work = computed * read.work * self.rows
        traffic = read.own * self.rows + comp.shared_key_bytes(sequences * new_tokens, computed, *EACH)
        return of_entries(Op(path, sel.selected_attention_time(work, traffic), Demand(work, traffic)))

    def computed(self, keys: Any) -> Any:
        """Keys that a kernel computes of those that a query sees: some of its empty places too where it chooses."""
        if self.indexer is None:
            return keys
        return sel.computed_keys(keys, sliding_window + index_top_keys).xreplace(OF_ENTRIES)

    # --- over a cache

    def decode(self, contexts: tuple[Any, Any]) -> list[Op | None]:
        """The steps of a generation: their number, and the tokens that the first one sees."""
        return self.steps(contexts, micro_batch)

    def steps(self, contexts: tuple[Any, Any], sequences: Any, new_tokens: Any = 1) -> list[Op | None]:
        """All steps together: the core as many times as a step with the mean number of keys takes.

        What a step computes and moves is a line in its keys, so that the mean's time is the mean time as long as no
        bound changes from one step to another; where one does, the mean's time is a little less.
        """
        count, first = contexts
        last = first + count - 1
        keys = excess(self.pairs(last), self.pairs(first - 1)) / Max(1, count)
        core = self.step(sequences, new_tokens, keys)
        chosen = self.indexer.growing(contexts, sequences, new_tokens) if self.indexer else None
        return [chosen, replace(core, time=count * core.time, summed=True)]

    def after(self, context: Any) -> list[Op | None]:
        """One new token of every sequence, after a context of a given length that it belongs to."""
        chosen = self.indexer.over(context) if self.indexer else None
        return [chosen, self.step(micro_batch, 1, sparse_counts.visible_keys(self.layer.kind, context))]

    def step(self, sequences: Any, new_tokens: Any, keys: Any) -> Op:
        """The core of one step that sees so many keys, the mean."""
        computed = self.computed(keys) if self.families_known[1] else keys
        return of_entries(self.layer.kernels.cached(self.path("flash"), computed, self.read(sequences, new_tokens)))

    def demand(self, sequences: Any, new_tokens: Any = 1) -> CacheRead:
        """Queries in, results out; each key once for all heads, chosen entries once for every new token."""
        work = att.attention_flops(sequences, new_tokens, 1, self.heads, head_dim)
        own = 2 * sequences * new_tokens * self.width * activation_bytes
        readers = sequences * new_tokens if self.indexer else sequences
        return CacheRead(work, own, comp.shared_key_bytes(readers, 1, *EACH))

    def blocks(self, found: CacheRead, sequences: Any, new_tokens: Any) -> BlockRead:  # noqa: ARG002
        """By the kernel of selected keys, which this is with constants of its own; queries and results are padded."""
        bandwidth = memory_bandwidth * gather_efficiency
        work, own = found.work * self.rows, found.own * self.rows
        products, key = work_time(work, attention_rate * selected_efficiency), traffic_time(found.each, bandwidth)
        start = thin.gap_time() + selected_latency
        return BlockRead(work, own, found.each, products, traffic_time(own, bandwidth), key, start)

    @property
    def rows(self) -> Any:
        """Rows of queries that are multiplied, over those that there are: heads of a token in blocks of 64."""
        return ceil_div(self.heads, blocked.BLOCK) * blocked.BLOCK / self.heads

    # --- what is seen

    def pairs(self, length: Any) -> Any:
        """Pairs of a query and a key or entry of the first tokens of a sequence."""
        return sparse_counts.prefill_pairs(self.layer.kind, length)

    def entries(self, length: Any) -> Any:
        """Entries that the first tokens of a sequence make."""
        return comp.compressed_entries(length, compress_ratio) if self.series else 0

    def scored(self, length: Any) -> Any:
        """Pairs of a query and an entry that the indexer scores, if there is one."""
        return comp.entry_pairs(length, compress_ratio) if self.indexer else 0

    # --- what is held

    def sequence_bytes(self) -> Any:
        """Bytes of a sequence's values and gates that are pooled next."""
        widths = (head_dim, index_head_dim) if self.indexer else (head_dim,)
        if not self.series:
            return 0
        return sum(
            comp.compressor_state_bytes(1, compress_ratio, width, self.series * width, statistic_bytes)
            for width in widths
        )

    @property
    def scratch(self) -> Any:
        """Features of a token that are alive at once: queries and results, narrow projections, values and gates."""
        pooled = 2 * self.series * (head_dim + (index_head_dim if self.indexer else 0))
        return 2 * self.width + q_lora_rank + head_dim + pooled * statistic_bytes / activation_bytes


class EntryIndexer(Indexer):
    """An indexer whose keys are entries of a compressor of its own."""

    families = ("entry_selection", "entry_selection")

    def __init__(self, layer: Layer) -> None:
        super().__init__(layer, compress_ratio)

    def select(self, sequences: Any, pairs: Any, keys: Any, prefix: str = "") -> Op:
        """Scores of new tokens, and the entries that they select, if the last of them has a choice."""
        return self.choosing(super().select(sequences, pairs, keys, prefix), Min(1, self.choices(keys)))

    def growing(self, contexts: tuple[Any, Any], sequences: Any = micro_batch, new_tokens: Any = 1) -> Op:
        """Selection of every step of a growing context; later ones have a choice."""
        count, first = contexts
        choices = excess(self.choices(first + count - 1), self.choices(first - 1))
        return self.choosing(super().growing(contexts, sequences, new_tokens), choices)

    def over(self, context: Any, passes: Any = None) -> Op:
        """Selection of one new token of every sequence."""
        return self.choosing(super().over(context, passes), Min(1, self.choices(context)))

    def choosing(self, op: Op, times: Any) -> Op:
        """An operation with the constants of kernels for entries, of which so many steps have a choice."""
        made = of_entries(op)
        known = self.families_known[0]
        return replace(made, time=made.time + times * entry_choice_latency) if known else made

    def choices(self, tokens: Any) -> Any:
        """Tokens of a sequence that have a choice."""
        return comp.choosing_tokens(tokens, compress_ratio, index_top_keys)

    def projections(self) -> list[Op | None]:
        """Its entries; queries from the compressed ones of attention, in their format; and the weights of its heads."""
        kernels, root, tokens = self.layer.kernels, f"{self.layer.root}/{self.folder}", self.layer.tokens
        columns, series = self.heads * index_head_dim, sparse_counts.compressor_series(self.layer.kind)
        kinds = {"left": activation_bytes, "right": table_bytes}
        n = tokens * columns
        return [
            *compressor(self, "index_compress", series, index_head_dim, index_key_bytes),
            self.layer.linear(f"{root}/index_query", q_lora_rank, columns),
            kernels.stream(self.path("index_cast"), n * (activation_bytes + index_key_bytes), n, CAST_FLOPS),
            kernels.matmul(self.path("index_weights"), tokens, self.heads, hidden_size, **kinds),
        ]


def compressor(part: CachedAttention, name: str, series: int, width: Any, entry_bytes: Any) -> list[Op | None]:
    """Values and gates in 16 bits whatever the other products are in, kept in FP32 until they are pooled."""
    kernels, tokens, columns = part.layer.kernels, part.layer.tokens, series * width
    kinds = {"left": activation_bytes, "right": table_bytes, "result": statistic_bytes}
    kept = comp.kept_state_bytes(tokens, columns, statistic_bytes)
    pooled = comp.pooling_bytes(tokens, columns, width, compress_ratio, entry_bytes, statistic_bytes)
    return [
        kernels.matmul(part.path(name), tokens, 2 * columns, hidden_size, **kinds),
        kernels.stream(part.path(f"{name}_state"), kept, 2 * tokens * columns, 1),
        kernels.stream(part.path(f"{name}_pool"), pooled, tokens * columns, FLOPS_PER_ELEMENT["softmax"]),
    ]


def compressed_cache_bytes(kind: LayerKind, tokens: Any) -> Any:
    """Bytes of a sequence's window and entries, with those of the indexer, whole on every device."""
    held = comp.shared_key_bytes(1, Min(tokens, sliding_window), head_dim, kv_bytes)
    if (series := sparse_counts.compressor_series(kind)) == 0:
        return held
    entry = head_dim * kv_bytes + (index_head_dim * index_key_bytes if series == 2 else 0)
    return held + comp.compressed_entries(tokens, compress_ratio) * entry
