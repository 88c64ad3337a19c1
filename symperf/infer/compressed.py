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
from ..formulas.kernels import compressed_attention as comp
from ..formulas.kernels import elementwise as ew
from ..formulas.kernels import sparse_selection as sparse
from ..formulas.language.atoms import Max, Min
from ..formulas.language.symbols import (
    activation_bytes,
    attention_rate,
    compress_ratio,
    head_dim,
    hidden_size,
    index_bytes,
    index_head_dim,
    index_num_heads,
    index_top_keys,
    kv_bytes,
    micro_batch,
    num_attention_heads,
    output_groups,
    output_lora_rank,
    q_lora_rank,
    score_rate,
    sliding_window,
    statistic_bytes,
    table_bytes,
    tp,
)
from ..formulas.mathematics.series import excess
from ..models import sparse_counts
from ..operations.shapes import FLOPS_PER_ELEMENT
from .attention import CachedAttention
from .cache_read import CacheRead

if TYPE_CHECKING:
    from ..models.architecture import LayerKind
    from ..operations.schedule import Op
    from .layer import Layer


class CompressedAttention(CachedAttention):
    """The compressed attention of one kind of layer, in one phase."""

    families = ("compressed", "compressed")

    def __init__(self, layer: Layer) -> None:
        super().__init__(layer)
        self.heads, self.units = num_attention_heads / tp, sympy.S.One
        self.value_width = head_dim
        self.width = self.heads * head_dim
        self.selects = "selected_entries" in layer.kind.traits
        self.series = sparse_counts.compressor_series(layer.kind)

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
            *(self.compressor("compress", head_dim) if self.series else ()),
            *(self.indexer() if self.selects else ()),
        ]

    def compressor(self, name: str, width: Any) -> list[Op | None]:
        """Values and gates in 16 bits whatever the other products are in, kept in FP32 until they are pooled."""
        kernels, tokens, columns = self.layer.kernels, self.layer.tokens, self.series * width
        kinds = {"left": activation_bytes, "right": table_bytes, "result": statistic_bytes}
        kept = comp.kept_state_bytes(tokens, columns, statistic_bytes)
        pooled = comp.pooling_bytes(tokens, columns, width, compress_ratio, kv_bytes, statistic_bytes)
        return [
            kernels.matmul(self.path(name), tokens, 2 * columns, hidden_size, **kinds),
            kernels.stream(self.path(f"{name}_state"), kept, 2 * tokens * columns, 1),
            kernels.stream(self.path(f"{name}_pool"), pooled, tokens * columns, FLOPS_PER_ELEMENT["softmax"]),
        ]

    def indexer(self) -> list[Op | None]:
        """Entries of the indexer, and its queries and the weights of its heads."""
        kernels, tokens = self.layer.kernels, self.layer.tokens
        columns = index_num_heads * index_head_dim
        kinds = {"left": activation_bytes, "right": table_bytes}
        return [
            *self.compressor("index_compress", index_head_dim),
            self.layer.linear(self.name("index_query"), q_lora_rank, columns),
            self.stream("index_rotary", tokens * columns, "rotary"),
            kernels.matmul(self.path("index_weights"), tokens, index_num_heads, hidden_size, **kinds),
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
        return self.extend(micro_batch, length, 0)

    def extend(self, sequences: Any, new_tokens: Any, before: Any, name: str = "flash") -> list[Op | None]:
        """Attention of new tokens after some that are there, exact in the pairs of queries and keys that they make.

        Args:
            sequences: on the device.
            new_tokens: of each.
            before: tokens of each that are there.
            name: of the kernel in paths.
        """
        length = before + new_tokens
        keys = excess(self.pairs(length), self.pairs(before) if before != 0 else 0) / new_tokens
        scored = 0
        if self.selects:
            scored = excess(self.scored(length), self.scored(before) if before != 0 else 0) / new_tokens
        return self.over_new(sequences, new_tokens, length, keys, scored, name)

    def chunks(self, sequences: Any, new_tokens: Any, prompt: Any, context: Any) -> list[Op | None]:
        """Attention of chunks, the mean over a prompt's, which see so many tokens, the mean."""
        scored = self.scored(prompt) / prompt if self.selects else 0
        return self.over_new(sequences, new_tokens, context, self.pairs(prompt) / prompt, scored, "chunk")

    def over_new(
        self, sequences: Any, new_tokens: Any, length: Any, keys: Any, scored: Any, name: str
    ) -> list[Op | None]:
        """Attention of the new tokens of sequences of so many, which see and score so many keys and entries each."""
        entries, window = self.entries(length), Min(length, new_tokens + sliding_window)
        if not self.selects:
            return [self.attend(sequences, new_tokens, keys, window + entries, name)]
        read = Min(entries, new_tokens * index_top_keys)
        core = self.attend(sequences, new_tokens, keys, window + read, name)
        return [*self.select(sequences, new_tokens, scored, entries), core]

    def attend(self, sequences: Any, new_tokens: Any, keys: Any, held: Any, name: str) -> Op:
        """The kernel of attention of new tokens that see so many keys, the mean, of those that are there."""
        work = att.attention_flops(sequences, new_tokens, keys, self.heads, head_dim)
        own = 2 * sequences * new_tokens * self.width * activation_bytes
        read = comp.shared_key_bytes(sequences, held, head_dim, kv_bytes)
        return self.layer.kernels.flash(self.path(name), work, own + read)

    def select(self, sequences: Any, new_tokens: Any, scored: Any, entries: Any) -> list[Op | None]:
        """Scores of the entries that new tokens see, the mean, of those that are there; and the best of them."""
        kernels, tokens = self.layer.kernels, sequences * new_tokens
        shape = sequences, new_tokens, scored, index_num_heads
        work = sparse.index_score_flops(*shape, index_head_dim) + sparse.index_sum_flops(*shape)
        read = comp.shared_key_bytes(sequences, entries, index_head_dim, kv_bytes)
        moved = tokens * (index_num_heads * index_head_dim * kv_bytes + scored * statistic_bytes)
        scores = kernels.flash(self.path("index_scores"), work, read + moved)
        chosen = tokens * (scored * statistic_bytes + index_top_keys * index_bytes)
        return [
            replace(scores, time=scores.time.xreplace({attention_rate: score_rate})),
            kernels.stream(self.path("index_choice"), chosen, tokens * scored, 1),
        ]

    # --- over a cache

    def decode(self, contexts: tuple[Any, Any]) -> list[Op | None]:
        """The steps of a generation: their number, and the tokens that the first one sees."""
        return self.steps(contexts, micro_batch)

    def steps(self, contexts: tuple[Any, Any], sequences: Any, new_tokens: Any = 1) -> list[Op | None]:
        """Operations of all steps together: as many times as a step with the mean number of keys takes.

        What a step computes and moves is a line in its keys, so that the mean's time is the mean time as long as no
        bound changes from one step to another; where one does, the mean's time is a little less.
        """
        count, first = contexts
        last, number = first + count - 1, Max(1, count)
        keys = excess(self.pairs(last), self.pairs(first - 1)) / number
        scored = excess(self.scored(last), self.scored(first - 1)) / number if self.selects else 0
        ops = self.step(sequences, new_tokens, keys, scored)
        return [replace(op, time=count * op.time, summed=True) for op in ops if op is not None]

    def over_context(self, context: Any) -> list[Op | None]:
        """One step of every sequence over a context of a given length."""
        scored = self.entries(context) if self.selects else 0
        return self.step(micro_batch, 1, self.visible(context), scored)

    def step(self, sequences: Any, new_tokens: Any, keys: Any, scored: Any) -> list[Op | None]:
        """One step that sees so many keys and scores so many entries, the mean."""
        kernels = self.layer.kernels
        core = kernels.cached(self.path("flash"), keys, self.read(sequences, new_tokens))
        if not self.selects:
            return [core]
        return [*self.score_cached(sequences, new_tokens, scored), core]

    def score_cached(self, sequences: Any, new_tokens: Any, scored: Any) -> list[Op | None]:
        """Scores of the entries in the cache, and the best of them."""
        kernels, tokens = self.layer.kernels, sequences * new_tokens
        shape = sequences, new_tokens, 1, index_num_heads
        work = sparse.index_score_flops(*shape, index_head_dim) + sparse.index_sum_flops(*shape)
        each = comp.shared_key_bytes(sequences, 1, index_head_dim, kv_bytes) + tokens * statistic_bytes
        own = tokens * index_num_heads * index_head_dim * kv_bytes
        chosen = tokens * (scored * statistic_bytes + index_top_keys * index_bytes)
        return [
            kernels.cached(self.path("index_scores"), scored, CacheRead(work, own, each)),
            kernels.stream(self.path("index_choice"), chosen, tokens * scored, 1),
        ]

    def demand(self, sequences: Any, new_tokens: Any = 1) -> CacheRead:
        """Queries in, results out; each key once for all heads, chosen entries once for every new token."""
        work = att.attention_flops(sequences, new_tokens, 1, self.heads, head_dim)
        own = 2 * sequences * new_tokens * self.width * activation_bytes
        readers = sequences * new_tokens if self.selects else sequences
        return CacheRead(work, own, comp.shared_key_bytes(readers, 1, head_dim, kv_bytes))

    # --- what is seen

    def pairs(self, length: Any) -> Any:
        """Pairs of a query and a key or entry of the first tokens of a sequence."""
        return sparse_counts.prefill_pairs(self.layer.kind, length)

    def visible(self, context: Any) -> Any:
        """Keys and entries that the last token of a context sees."""
        return sparse_counts.visible_keys(self.layer.kind, context)

    def entries(self, length: Any) -> Any:
        """Entries that the first tokens of a sequence make."""
        return comp.compressed_entries(length, compress_ratio) if self.series else 0

    def scored(self, length: Any) -> Any:
        """Pairs of a query and an entry that the indexer scores."""
        return comp.entry_pairs(length, compress_ratio)

    # --- what is held

    def sequence_bytes(self) -> Any:
        """Bytes of a sequence's values and gates that are pooled next."""
        widths = (head_dim, index_head_dim) if self.selects else (head_dim,)
        if not self.series:
            return 0
        return sum(
            comp.compressor_state_bytes(1, compress_ratio, width, self.series * width, statistic_bytes)
            for width in widths
        )

    @property
    def scratch(self) -> Any:
        """Features of a token that are alive at once: queries and results, narrow projections, values and gates."""
        wide = 2 * self.width + q_lora_rank + head_dim
        return (
            wide
            + 2
            * self.series
            * (head_dim + (index_head_dim if self.selects else 0))
            * statistic_bytes
            / activation_bytes
        )


def compressed_cache_bytes(kind: LayerKind, tokens: Any) -> Any:
    """Bytes of a sequence's window and entries, with those of the indexer, whole on every device."""
    held = comp.shared_key_bytes(1, Min(tokens, sliding_window), head_dim, kv_bytes)
    if (elements := sparse_counts.entry_elements(kind)) == 0:
        return held
    return held + comp.compressed_entries(tokens, compress_ratio) * elements * kv_bytes
