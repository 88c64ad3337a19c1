"""An event-by-event simulator of continuous batching with chunked prefill, which knows a policy and no closed form.

Requests arrive at random moments (Poisson) and wait for a place in the cache. At the start of an iteration, one chunk
of the first prompt that is not done, or as many whole prompts as a chunk holds, join the sequences that decode; at
its end each of these has one token more, and prompts that are done have their first one.
"""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from symperf.serve.engine import Engine


@dataclass(frozen=True)
class Measured:
    """Means over the requests after the first part of the run."""

    first_token: float
    per_token: float
    throughput: float
    decoding: float
    waiting_at_end: int
    first_tokens: list[float]


def simulate(
    engine: Engine, load: float, requests: int = 20000, seed: int = 1, skip: float = 0.2, encoder: float = 0.0
) -> Measured:
    """Run an engine at a load.

    Args:
        engine: of one group (no pipeline), in which each step yields one token.
        load: requests that arrive in a second.
        requests: that are measured or skipped.
        seed: of the arrivals.
        skip: part of the requests before the measurement starts.
        encoder: seconds that the images of a prompt take before its first chunk, beside the engine's times.
    """
    assert engine.groups == 1
    arrivals = random.Random(seed)
    clock, due, iteration = 0.0, arrivals.expovariate(load), 0
    came: list[float] = []
    firsts: dict[int, float] = {}
    ended: list[tuple[int, float]] = []
    waiting: deque[int] = deque()
    prompts: deque[list[int]] = deque()
    decoding: deque[tuple[int, int]] = deque()
    piece = engine.prompt / engine.chunks
    area = 0.0
    while len(ended) < requests:
        while due <= clock:
            waiting.append(len(came))
            came.append(due)
            due += arrivals.expovariate(load)
        while waiting and len(prompts) + len(decoding) < engine.limit:
            prompts.append([waiting.popleft(), engine.chunks])
        served = [prompts[i] for i in range(min(engine.chunk_prompts, len(prompts)))]
        if not served and not decoding:
            clock = due
            continue
        count, tokens = len(decoding), piece * len(served)
        if not served:
            taken = engine.times.decode(count)
        else:
            taken = engine.times.mixed(count, tokens) if count else engine.times.prefill(tokens)
        taken += encoder * sum(left == engine.chunks for _, left in served)
        area += count * taken
        clock += taken
        iteration += 1
        while decoding and decoding[0][1] <= iteration:
            ended.append((decoding.popleft()[0], clock))
        for prompt in served:
            prompt[1] -= 1
            if not prompt[1]:
                prompts.popleft()
                firsts[prompt[0]] = clock
                if engine.generate == 1:
                    ended.append((prompt[0], clock))
                else:
                    decoding.append((prompt[0], iteration + engine.generate - 1))
    kept = ended[int(skip * len(ended)) :]
    waits = [firsts[who] - came[who] for who, _ in kept]
    each = [(end - firsts[who]) / max(engine.generate - 1, 1) for who, end in kept]
    span = kept[-1][1] - kept[0][1]
    return Measured(
        sum(waits) / len(kept),
        sum(each) / len(kept),
        (len(kept) - 1) / span,
        area / clock,
        len(waiting) + len(prompts),
        waits,
    )
