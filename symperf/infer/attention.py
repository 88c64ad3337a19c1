"""Softmax attention of an inference: whole prompts among themselves, and new tokens over a cache.

A kernel over a cache takes one unit for each sequence and key-value head. Where these do not fill the device, software
may split contexts over more units, at the price of partial results and a second kernel; the faster way is taken. Where
the constants of a software's kernels are known on a system, attention is computed by their forms, which have the kernel
that writes the cache in them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..formulas.generation import block_decode as block
from ..formulas.generation import cache_reads
from ..formulas.generation import decode as dec
from ..formulas.generation import split_decode as split
from ..formulas.kernels import attention as att
from ..formulas.kernels import attention_blocks as blocked
from ..formulas.kernels import elementwise as ew
from ..formulas.kernels import windows
from ..formulas.kernels.roofline import traffic_time, work_time
from ..formulas.language.atoms import Min, ceil_div
from ..formulas.language.symbols import (
    activation_bytes,
    attention_efficiency,
    attention_rate,
    cache_casts,
    cache_efficiency,
    conv_kernel,
    distance_extent,
    distance_profiles,
    head_dim,
    hidden_size,
    kv_bytes,
    memory_bandwidth,
    micro_batch,
    num_attention_heads,
    num_key_value_heads,
    relative_rows,
    sliding_window,
    statistic_bytes,
    tp,
)
from ..models import attention_widths as widths
from ..models.shared_blocks import read_width
from ..operations.shapes import FLOPS_PER_ELEMENT
from . import split_context
from .cache_read import BlockRead, CacheRead
from .kernels import PromptBlocks

if TYPE_CHECKING:
    from ..operations.schedule import Op
    from .layer import Layer


class CachedAttention:
    """What attention over keys and values has in common with attention over latents."""

    folder, kernel = "attention", "flash"
    families = ("prompts", "decoding")
    """What the constants of its kernels are called, over new tokens and over a cache."""
    heads: Any
    units: Any
    value_width: Any

    def __init__(self, layer: Layer) -> None:
        self.layer = layer

    def path(self, name: str) -> str:
        """The path of an operation of the block."""
        return self.layer.path(f"{self.layer.root}/{self.folder}/{name}")

    def demand(self, sequences: Any, new_tokens: Any = 1) -> CacheRead:
        """FLOPs and bytes of attention of so many new tokens of each sequence to its cache."""
        raise NotImplementedError

    @property
    def families_known(self) -> tuple[bool, bool]:
        """Whether the constants of its kernels are known: over new tokens, over a cache."""
        prompts, decoding = (family in self.layer.structure.families for family in self.families)
        return prompts, decoding

    def blocks(self, found: CacheRead, sequences: Any, new_tokens: Any) -> BlockRead:
        """How long a demand takes kernels whose constants are known."""
        raise NotImplementedError

    def read(self, sequences: Any, new_tokens: Any = 1, passes: Any = None) -> CacheRead | BlockRead:
        """The same, with what splitting contexts brings and costs; a device of unknown units is taken to be filled.

        Args:
            sequences: on the device.
            new_tokens: of each.
            passes: times that the query heads of a group read its keys, where kernels are known and it is not the
                structure that says so.
        """
        found, known = self.demand(sequences, new_tokens), self.families_known[1]
        if known:
            read = found if passes is None else replace(found, passes=passes)
            return self.blocks(read, sequences, new_tokens)
        if not self.layer.structure.quantised:
            return found
        found = replace(found, splits=split.context_parts(sequences, self.units))
        if not self.layer.fusion.split_context:
            return found
        parts = dec.partial_bytes(sequences, self.heads, self.units, self.value_width) * new_tokens
        elements = sequences * new_tokens * self.heads * self.value_width
        moved, work = parts + elements * activation_bytes, ew.elementwise_flops(elements, 2)
        return replace(found, parts=parts, combine=self.layer.kernels.stream_time(moved, work))

    def growing(self, contexts: tuple[Any, Any], sequences: Any = micro_batch, new_tokens: Any = 1) -> Op:
        """Attention of the new tokens of every sequence over a cache that grows by one token a step."""
        return self.layer.kernels.generation(
            self.path(self.kernel),
            contexts,
            split_context.part_of(self, sequences, new_tokens),
            window=self.window,
            chunked=self.layer.architecture.chunked_attention,
        )

    def over(self, context: Any, passes: Any = None) -> Op:
        """Attention of one new token of every sequence over a cache of a given length."""
        return self.layer.kernels.cached(
            self.path(self.kernel), context, split_context.part_of(self, micro_batch, 1, passes)
        )

    @property
    def window(self) -> Any:
        """Keys that a token attends to at most, the last ones or selected ones; None where it sees all."""
        return sliding_window if self.windowed else None

    @property
    def windowed(self) -> bool:
        """Whether the layer attends to a window only."""
        return self.layer.kind.mixer == "local_attention"

    def append_of(self, elements: Any) -> Op | None:
        """The kernel that writes new elements into the cache, where that of attention has it not in it."""
        prompts, decoding = self.families_known
        if self.layer.fusion.rotary_cache or (decoding if self.layer.phase == "decode" else prompts):
            return None
        return self.layer.kernels.stream(self.path("append"), elements * (activation_bytes + kv_bytes), elements, 0)


class SoftmaxAttention(CachedAttention):
    """The attention of one kind of layer over keys and values, in one phase."""

    def __init__(self, layer: Layer) -> None:
        super().__init__(layer)
        kind = layer.kind
        self.key_width, self.value_width = head_dim, widths.core_value_width(kind)
        self.core_width, self.stored_width = widths.core_width(kind), widths.stored_width(kind)
        self.heads, self.units = num_attention_heads / tp, ceil_div(num_key_value_heads, tp)
        self.width = self.heads * widths.value_width(kind)
        self.rotated = head_dim * (self.heads + widths.made_heads(kind, self.units))

    @property
    def beside(self) -> Any:
        """Features of the joint projection that are no query's, key's or value's of attention."""
        return 0

    @property
    def turned(self) -> Any:
        """Features of a token that norms of queries and keys and rotary positions see."""
        return self.rotated + self.beside

    def projections(self) -> list[Op | None]:
        """What makes queries, keys and values of the new tokens; a gate is as wide as the queries."""
        layer, architecture = self.layer, self.layer.architecture
        columns = widths.projected(layer.kind, self.heads, self.units)
        if architecture.shared_key_value and layer.kind.mixer == "attention":
            columns -= self.units * self.value_width
        if architecture.attention_gate:
            columns += self.width
        if architecture.head_gate:
            columns += self.heads
        return [
            layer.linear(f"{layer.root}/{self.folder}/qkv", read_width(layer.kind), columns + self.beside),
            self.convolution(),
            self.query_key_norm(),
            self.positions(),
            self.distances(),
            None if layer.kind.encoder or self.reuses else self.append(),
        ]

    def convolution(self) -> Op | None:
        """The causal convolution of keys and values; a step reads and writes its window."""
        if "convolved" not in self.layer.kind.traits:
            return None
        n = self.layer.tokens * 2 * self.units * head_dim
        moved = ew.activation_function_bytes(n, activation_bytes) * (1 + self.layer.convolution_window)
        return self.layer.kernels.stream(self.path("convolution"), moved, n, 2 * conv_kernel)

    def distances(self) -> Op | None:
        """The biases of every head of a token for each distance, from the bank of profiles."""
        if "distance_bias" not in self.layer.kind.traits:
            return None
        rows = self.layer.tokens * self.heads
        return self.layer.kernels.matmul(self.path("distances"), rows, distance_extent, distance_profiles)

    @property
    def reuses(self) -> bool:
        """Whether keys and values are those in the cache of an earlier layer."""
        return "reused_keys" in self.layer.kind.traits

    def output(self) -> list[Op | None]:
        """The gate, if there is one, and the projection of the results."""
        layer = self.layer
        n, work = layer.tokens * self.width, FLOPS_PER_ELEMENT
        gate = difference = None
        if "differential" in layer.kind.traits:
            traffic = ew.gated_activation_bytes(n, activation_bytes)  # the results of both maps in, their norm out
            difference = layer.kernels.stream(self.path("difference"), traffic, n, work["gated norm"])
        if layer.architecture.attention_gate:
            traffic = ew.gated_activation_bytes(n, activation_bytes)
            gate = layer.kernels.stream(self.path("gate"), traffic, n, work["activation"])
        if layer.architecture.head_gate:
            n += layer.tokens * self.heads
            traffic = ew.activation_function_bytes(n, activation_bytes)
            gate = layer.kernels.stream(self.path("gate"), traffic, n, work["residual"])
        return [difference, gate, layer.linear(f"{layer.root}/{self.folder}/output", self.width, hidden_size)]

    def query_key_norm(self) -> Op | None:
        """The norm of queries and keys."""
        if self.layer.architecture.query_key_norm == "none":
            return None
        n = self.layer.tokens * self.turned
        return self.layer.kernels.stream(
            self.path("qk_norm"), ew.norm_bytes(n, activation_bytes), n, FLOPS_PER_ELEMENT["norm"]
        )

    def positions(self) -> Op | None:
        """Rotary positions of queries and keys."""
        if self.layer.architecture.positions != "rotary" or self.layer.fusion.rotary_cache:
            return None
        n = self.layer.tokens * self.turned
        return self.layer.kernels.stream(
            self.path("rotary"), ew.rotary_bytes(n, activation_bytes), n, FLOPS_PER_ELEMENT["rotary"]
        )

    # --- over a cache

    def decode(self, contexts: tuple[Any, Any]) -> list[Op | None]:
        """The steps of a generation: their number, and the keys that the first one reads."""
        return split_context.joined(self, self.layer.tokens, self.growing(contexts))

    def append(self) -> Op | None:
        """The kernel that writes new keys and values into the cache."""
        return self.append_of(2 * self.layer.tokens * self.units * self.stored_width)

    def demand(self, sequences: Any, new_tokens: Any = 1) -> CacheRead:
        """Queries in, results out; keys and values once; a bias for each key and head where positions are relative."""
        work = att.attention_flops(sequences, new_tokens, 1, self.heads, self.core_width)
        own = 2 * sequences * new_tokens * self.heads * self.core_width * activation_bytes
        own += widths.distance_bytes(self.layer.kind, sequences * new_tokens * self.heads)
        each = dec.cache_read_bytes(sequences, 1, self.units, self.stored_width, kv_bytes)
        if self.biased:
            each += sequences * self.heads * activation_bytes
        return CacheRead(work, own, each, passes=self.passes)

    def blocks(self, found: CacheRead, sequences: Any, new_tokens: Any) -> BlockRead:
        """A block for each sequence and key-value head, or for each part of a group that reads keys of its own."""
        passes = 1 if found.passes is None else found.passes
        start = block.cache_start_time(sequences * new_tokens * self.units * passes)
        if "cache_casts" in self.layer.structure.families:
            start += blocked.cache_cast_time()
        work = work_time(found.work, attention_rate * attention_efficiency)
        own = traffic_time(found.own, memory_bandwidth * cache_efficiency)
        return BlockRead(found.work, found.own, found.each, work, own, block.cache_key_time(found.each, passes), start)

    @property
    def passes(self) -> Any:
        """Times that the query heads of a group read its keys; None where all of them share one pass."""
        together = dict(self.layer.structure.read_apart).get(self.layer.kind.count)
        return together and cache_reads.group_passes(self.heads, self.units, together)

    # --- whole prompts

    @property
    def biased(self) -> bool:
        """Whether a bias for each pair of positions is added to the scores (T5)."""
        return self.layer.architecture.positions == "relative"

    def prefill(self, length: Any) -> list[Op | None]:
        """Attention of whole prompts among themselves: causal in a decoder, of all pairs in an encoder."""
        layer = self.layer
        if self.disentangled:
            return self.relative_scores(length)
        if not layer.fusion.fused_prefill:
            return list(self.stored_scores(length))
        if layer.structure.context != "none":
            return split_context.prompts_part(self, length)
        traffic = att.flash_bytes(
            micro_batch, length, self.heads, self.units, self.core_width, activation_bytes, statistic_bytes
        )
        traffic += self.bias_bytes(length) + widths.distance_bytes(layer.kind, micro_batch * length * self.heads)
        encoder = layer.kind.encoder
        longest = length
        if self.windowed:
            two_sided = encoder and not layer.architecture.chunked_attention
            longest = Min(length, sliding_window + (1 if two_sided else 0))
        mean = length if encoder else (length + 1) / 2
        if self.windowed:
            mean = self.visible_pairs(length) / length
        blocks = self.new_blocks(micro_batch, length, mean, longest, written=not (encoder or self.reuses))
        return [layer.kernels.flash(self.path("flash"), self.prefill_flops(length), traffic, blocks)]

    @property
    def disentangled(self) -> bool:
        """Whether contents and relative positions are scored with each other (DeBERTa), which no flash kernel does."""
        return self.layer.architecture.positions == "disentangled"

    def relative_scores(self, length: Any) -> list[Op | None]:
        """Stored scores, to which those of positions are gathered and added, of queries and of keys."""
        kernels, path, groups = self.layer.kernels, self.path("relative"), micro_batch * self.heads
        scores = att.score_elements(micro_batch, length, self.heads)
        kinds = {"left": activation_bytes, "right": activation_bytes}
        found: list[Op | None] = [kernels.matmul(f"{path}/projections", relative_rows, 2 * self.width, hidden_size)]
        for name in ("content_to_position", "position_to_content"):
            found += [
                kernels.matmul(f"{path}/{name}", length, relative_rows, self.value_width, groups, **kinds),
                kernels.stream(f"{path}/{name}/gather", ew.residual_bytes(scores, activation_bytes), scores, 1),
            ]
        first, *others = self.stored_scores(length)
        return [first, *found, *others]

    def new_blocks(
        self, sequences: Any, new_tokens: Any, mean_keys: Any, longest_keys: Any, *, written: bool = True
    ) -> PromptBlocks:
        """Attention of new tokens as blocks of queries: of a chunk or of whole prompts, written into a cache or not."""
        moved: Any = 0
        if written:
            tokens = sequences * new_tokens * self.stored_width
            moved = blocked.cache_write_bytes(2 * tokens * self.units, activation_bytes, kv_bytes)
            moved += cache_casts * blocked.cache_write_bytes(tokens * self.heads, activation_bytes, kv_bytes)
        pair = att.attention_flops(1, 1, 1, 1, self.core_width)
        return PromptBlocks(
            sequences * self.heads, new_tokens, mean_keys, longest_keys, pair, written=moved, casts=written
        )

    def prefill_flops(self, length: Any) -> Any:
        """FLOPs of the pairs that the mask leaves."""
        shape = self.heads, self.core_width
        if self.windowed:
            return windows.masked_attention_flops(micro_batch, self.visible_pairs(length), *shape)
        if self.layer.kind.encoder:
            return att.attention_flops(micro_batch, length, length, *shape)
        return att.flash_flops(micro_batch, length, *shape)

    def visible_pairs(self, length: Any) -> Any:
        """Pairs of a windowed layer, or of one whose windows are chunks; an encoder's windows have two sides."""
        chunked = self.layer.architecture.chunked_attention
        if self.layer.kind.encoder:
            return length * Min(length, sliding_window) if chunked else windows.two_sided_pairs(length, sliding_window)
        return (windows.chunk_pairs if chunked else windows.window_pairs)(length, sliding_window)

    def bias_bytes(self, length: Any) -> Any:
        """Bytes of the biases that a pass over whole prompts reads."""
        return micro_batch * self.heads * length**2 * activation_bytes if self.biased else 0

    def stored_scores(self, length: Any) -> list[Op]:
        """Two products with a softmax between them; scores are stored, masked or not."""
        kernels, groups, path = self.layer.kernels, micro_batch * self.heads, self.path("core")
        scores = att.score_elements(micro_batch, length, self.heads)
        traffic = att.softmax_bytes(scores, activation_bytes) + self.bias_bytes(length)
        kinds = {"left": activation_bytes, "right": activation_bytes}
        return [
            kernels.matmul(f"{path}/scores", length, length, self.key_width, groups, **kinds),
            kernels.stream(f"{path}/softmax", traffic, scores, FLOPS_PER_ELEMENT["softmax"]),
            kernels.matmul(f"{path}/context", length, self.value_width, length, groups, **kinds),
        ]
