"""What a replica does under a load, and the largest load that it has."""

from __future__ import annotations

from dataclasses import dataclass

from .program import form


@dataclass(frozen=True)
class State:
    """A replica under a load; times are seconds and means.

    Attributes:
        load: requests in a second.
        decoding: sequences that decode.
        prefilling: requests that are prefilled, their waits apart.
        chunk_share: part of the iterations that prefill, where sequences decode.
        chunk_tokens: prompt tokens of such an iteration.
        decode: an iteration that only decodes, as a decoding request sees it.
        mixed: one that prefills too.
        iteration: the mean of both.
        boundary: wait for the next iteration.
        queue: wait behind other prompts.
        cache: wait for memory of the cache.
        prefill: all iterations of a prompt.
        service: the same with full chunks.
        spare: load that prefill could serve besides.
        request: of a request outside the iterations.
    """

    load: float
    decoding: float
    prefilling: float
    chunk_share: float
    chunk_tokens: float
    decode: float
    mixed: float
    iteration: float
    boundary: float
    queue: float
    cache: float
    prefill: float
    service: float
    spare: float
    request: float = 0.0

    def population(self, steps: float) -> float:
        """Requests in flight, of so many decode steps each, by Little's law."""
        return self.load * (self.first_token + steps * self.iteration)

    @property
    def first_token(self) -> float:
        """Time to the first token (TTFT)."""
        return form(
            "mean_first_token_time",
            boundary_time=self.boundary + self.request,
            queue_time=self.queue,
            cache_time=self.cache,
            prefill_time=self.prefill,
        )


@dataclass(frozen=True)
class Capacity:
    """The largest load that has a steady state.

    Attributes:
        load: requests in a second, which must stay below it.
        limit: "chunk" where every iteration holds a full chunk, "kv_cache" where memory holds no more sequences,
            "max_num_seqs" where the software runs no more.
        arrivals: x at it.
        decoding: sequences that decode at it.
        cache_load: requests in a second that the cache alone would let through.
        prefill_load: requests in a second that prefill alone would let through.
    """

    load: float
    limit: str
    arrivals: float
    decoding: float
    cache_load: float
    prefill_load: float
