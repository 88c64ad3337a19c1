"""What attention of new tokens to a cache reads and computes, and how long that takes over one context or many."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..formulas.generation import block_decode as block
from ..formulas.generation import cache_reads
from ..formulas.generation import decode as dec
from ..formulas.generation import split_decode as split
from ..formulas.language.atoms import Min


@dataclass(frozen=True)
class CacheRead:
    """Attention of new tokens to a cache, by kernels whose own constants are not known.

    Attributes:
        work: FLOPs for each cached key.
        own: bytes that do not depend on the context.
        each: bytes for each key.
        splits: parts of a context that would fill the device.
        parts: bytes of the partial results of split contexts; None where contexts are never split.
        combine: seconds of the kernel that adds them.
        passes: times that a key is read, by parts of a group of query heads; None where one pass serves all of them.
    """

    work: Any
    own: Any
    each: Any
    splits: Any = 1
    parts: Any = None
    combine: Any = None
    passes: Any = None

    def key_time(self, splits: Any = 1) -> Any:
        """Seconds of the bytes of a key, with one of `splits` units at work."""
        if self.passes is None:
            return cache_reads.shared_read_time(splits * self.each)
        return cache_reads.repeated_read_time(self.each, self.passes, splits)

    @property
    def demand(self) -> tuple[Any, ...]:
        """What the formulas need: of whole contexts on a part of the units, or of contexts that may be split."""
        if self.parts is None:
            return self.splits * self.work, self.splits * self.own, self.key_time(self.splits)
        whole = self.key_time(self.splits)
        return self.work, self.own, self.key_time(), whole, self.splits, self.parts, self.combine

    def over(self, context: Any) -> Any:
        """Seconds of a step over so many keys."""
        formula = dec.decode_attention_time if self.parts is None else split.split_attention_time
        return formula(context, *self.demand)

    def growing(self, count: Any, first: Any, window: Any, *, chunked: bool) -> tuple[Any, Any]:
        """Seconds of so many steps over growing contexts, and the mean keys of a step."""
        whole, mean = self.parts is None, mean_keys(count, first, window, chunked=chunked)
        formula: Any
        if window is None:
            formula = dec.generation_attention_time if whole else split.split_generation_time
            return formula(count, first, *self.demand), mean
        if chunked:
            formula = dec.chunked_generation_time if whole else split.chunked_split_generation_time
        else:
            formula = dec.windowed_generation_time if whole else split.windowed_split_generation_time
        return formula(count, first, window, *self.demand), mean


@dataclass(frozen=True)
class BlockRead:
    """Attention of new tokens to a cache, by kernels whose constants are known.

    Attributes:
        work: FLOPs for each cached key.
        own: bytes that do not depend on the context.
        each: bytes for each key.
        work_time: seconds of a key's products.
        own_time: seconds of the bytes that do not depend on the context.
        key_time: seconds of a key's bytes.
        start: seconds beside these.
    """

    work: Any
    own: Any
    each: Any
    work_time: Any
    own_time: Any
    key_time: Any
    start: Any

    @property
    def lines(self) -> tuple[Any, ...]:
        """What the formulas need."""
        return self.work_time, self.own_time, self.key_time, self.start

    def over(self, context: Any) -> Any:
        """Seconds of a step over so many keys."""
        return block.cached_attention_time(context, *self.lines)

    def growing(self, count: Any, first: Any, window: Any, *, chunked: bool) -> tuple[Any, Any]:
        """Seconds of so many steps over growing contexts, and the mean keys of a step."""
        mean = mean_keys(count, first, window, chunked=chunked)
        if window is None:
            return block.growing_attention_time(count, first, *self.lines), mean
        formula = block.chunked_growing_time if chunked else block.windowed_growing_time
        return formula(count, first, window, *self.lines), mean


def mean_keys(count: Any, first: Any, window: Any, *, chunked: bool) -> Any:
    """Keys of a step, the mean; of a window an upper bound."""
    mean = first + (count - 1) / 2
    if window is None:
        return mean
    return dec.mean_chunk_context(count, first, window) if chunked else Min(mean, window)
