"""A closed loop of requests that are all alike, where software prefills what waits before it decodes again.

All N prompts are prefilled, pack by pack, before the first of them decodes; so all of them decode together, end
together, and are followed together: the burst with which they began comes back as a wave, for ever.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from .program import form
from .state import State

if TYPE_CHECKING:
    from .steady import Steady


def waves(steady: Steady, present: float) -> State:
    """The state of waves of so many requests.

    A pack waits for those before it, and its sequences for those behind it, which their tokens share.
    """
    engine = steady.engine
    places = engine.chunk_prompts * engine.groups
    packs = max(1.0, present / places)
    tokens = min(engine.whole_chunk, engine.prompt / engine.chunks * present / engine.groups)
    whole = steady.with_tokens(0.0, tokens)
    mean = form("burst_first_token_time", chunks=engine.chunks, packs=packs, mixed_time=whole)
    prefill = engine.chunks * whole
    queue = max(0.0, mean - prefill)
    steps = max(engine.steps, 1.0)
    decode = engine.times.decode(max(present, 1.0)) if engine.steps else whole
    iteration = decode + queue / steps
    rate = present / (queue + prefill + engine.steps * iteration)
    share = min(1.0, packs * engine.chunks / steps)
    return State(
        *(rate, rate * engine.steps * iteration, rate * prefill, share, tokens, decode, decode + whole, iteration),
        *(0.0, queue, 0.0, prefill, prefill, math.inf, engine.way_time(present)),
    )
