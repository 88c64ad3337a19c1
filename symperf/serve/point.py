"""One point of the throughput-latency curve: every metric at a load, with its definition."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from .program import form

if TYPE_CHECKING:
    from .serving import Serving
    from .state import State

TAILS: Final = {"p90": 0.1, "p99": 0.01}
NEGLIGIBLE: Final = 0.01
"""Part of the time to the first token below which a wait for memory is left out of its bounds."""


@dataclass(frozen=True)
class LoadPoint:
    """Answers at a load; loads and rates a second, all replicas together, times in seconds.

    Everything but load, utilisation and saturated is None where the load has no steady state, and what concerns
    later tokens where there are none.
    """

    load: float
    load_per_replica: float
    utilisation: float
    saturated: bool
    state: State | None = None
    ttft_s: float | None = None
    tpot_s: float | None = None
    itl_s: float | None = None
    itl_with_prefill_s: float | None = None
    prefill_share: float | None = None
    e2e_s: float | None = None
    output_tokens_per_s: float | None = None
    output_tokens_per_s_per_device: float | None = None
    tokens_per_s: float | None = None
    tokens_per_s_per_device: float | None = None
    requests_per_s: float | None = None
    concurrency: float | None = None
    decoding: float | None = None
    kv_use: float | None = None
    iteration_s: float | None = None
    boundary_wait_s: float | None = None
    queue_wait_s: float | None = None
    cache_wait_s: float | None = None
    prefill_s: float | None = None
    ttft_bound_s: dict[str, float | None] | None = None

    def meets(self, ttft: float | None, tpot: float | None) -> bool:
        """Whether the load has a steady state within the targets."""
        late = ttft is not None and self.ttft_s is not None and self.ttft_s > ttft
        slow = tpot is not None and self.tpot_s is not None and self.tpot_s > tpot
        return not (self.saturated or late or slow)


def point(serving: Serving, load: float) -> LoadPoint:
    """All answers of a system that fits, at a load of requests that arrive at random."""
    steady, replicas = serving.steady, serving.plan.dp
    assert steady is not None
    each = load / replicas
    state = steady.at_load(each)
    if state is None:
        return LoadPoint(load, each, each / steady.capacity.load, saturated=True)
    found = describe(serving, load, state, replicas)
    one_by_one = steady.engine.chunk_prompts == steady.engine.groups == 1 and serving.requests.alike
    return dataclasses.replace(found, ttft_bound_s=_bounds(state, one_by_one=one_by_one))


def describe(serving: Serving, load: float, state: State, replicas: int) -> LoadPoint:
    """All answers but bounds in a steady state of each replica.

    Args:
        serving: a system that fits.
        load: requests in a second at all replicas.
        state: of each.
        replicas: that take part.
    """
    steady, asked = serving.steady, serving.asked
    assert steady is not None
    engine, each = steady.engine, load / replicas
    later = asked.generate > 1
    tpot = state.iteration * engine.steps / (asked.generate - 1) if later else None
    first = state.first_token
    whole = form("request_time", first_token_time=first, generate=asked.generate, iteration_time=tpot or 0.0)
    room = serving.cache_bytes("sequence") * engine.limit
    used = state.decoding * serving.cache_bytes("mean") + state.prefilling * serving.cache_bytes("prompt")
    return LoadPoint(
        load,
        each,
        each / steady.capacity.load,
        saturated=False,
        state=state,
        ttft_s=first,
        tpot_s=tpot,
        itl_s=tpot,
        itl_with_prefill_s=state.mixed if later else None,
        prefill_share=state.chunk_share if later else None,
        e2e_s=whole,
        output_tokens_per_s=load * asked.generate,
        output_tokens_per_s_per_device=load * asked.generate / serving.plan.devices,
        tokens_per_s=load * (serving.requests.sent + asked.generate),
        tokens_per_s_per_device=load * (serving.requests.sent + asked.generate) / serving.plan.devices,
        requests_per_s=load,
        concurrency=replicas * (state.decoding + state.prefilling),
        decoding=replicas * state.decoding,
        kv_use=used / room,
        iteration_s=state.iteration,
        boundary_wait_s=state.boundary,
        queue_wait_s=state.queue,
        cache_wait_s=state.cache,
        prefill_s=state.prefill,
    )


def _bounds(state: State, *, one_by_one: bool) -> dict[str, float | None]:
    """Bounds of high percentiles, where prompts are prefilled one by one and memory is no limit."""
    if not one_by_one or state.cache > NEGLIGIBLE * state.first_token:
        return dict.fromkeys(TAILS)
    spread = form(
        "wait_spread",
        queue_time=state.queue,
        service_time=state.service,
        load=state.load,
        spare_load=state.spare,
        decode_time=state.decode,
    )
    return {
        name: form("first_token_bound", first_token_time=state.first_token, wait_deviation=spread, tail=tail)
        for name, tail in TAILS.items()
    }
