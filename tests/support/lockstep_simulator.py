"""An event-by-event simulator of replicas in lock step, which knows a policy and no closed form.

As `serving_simulator`, for several ranks: a request goes to the rank that has fewest, every iteration ends with the
slowest rank, and a rank without requests runs along.
"""

from __future__ import annotations

import heapq
import math
import random
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from symperf.serve.engine import Engine


@dataclass
class Rank:
    """The requests of a rank: prompts with what chunks are left of them, and sequences, by their last iteration."""

    prompts: deque[list[int]] = field(default_factory=deque)
    decoding: list[tuple[int, int]] = field(default_factory=list)

    @property
    def present(self) -> int:
        """Requests that it has."""
        return len(self.prompts) + len(self.decoding)


def simulate(
    engine: Engine, load: float, requests: int = 6000, seed: int = 1, flying: int = 0
) -> tuple[float, float, float]:
    """Mean times to the first and of each later token, and requests a second of a rank, under a load of each rank.

    Where some are flying, so many in the mean rank, no other arrives: the next one is sent as one ends.
    """
    draws = random.Random(seed)
    ranks = [Rank() for _ in range(engine.ranks)]
    clock, iteration = 0.0, 0
    due = math.inf if flying else draws.expovariate(load * engine.ranks)
    sent = deque([0.0] * flying * engine.ranks)
    came: list[float] = []
    lengths: list[int] = []
    firsts: dict[int, float] = {}
    ended: list[tuple[int, float]] = []
    piece = engine.prompt / engine.chunks
    while len(ended) < requests:
        idle = not any(rank.present for rank in ranks)
        if idle and not flying:
            clock = max(clock, due)
        while due <= clock:
            sent.append(due)
            due += draws.expovariate(load * engine.ranks)
        # What is sent at the end of an iteration misses the one that begins then.
        while sent and (sent[0] < clock or idle):
            fewest = min(rank.present for rank in ranks)
            chosen = draws.choice([rank for rank in ranks if rank.present == fewest])
            chosen.prompts.append([len(came), engine.chunks])
            came.append(sent.popleft())
            lengths.append(engine.generates.draw(draws) if engine.generate_ratio else engine.generate)
        served = [[rank.prompts[i] for i in range(min(engine.chunk_prompts, len(rank.prompts)))] for rank in ranks]
        share = sum(map(bool, served)) / engine.ranks
        both = list(zip(ranks, served, strict=True))
        clock += max(time_of(engine, len(rank.decoding), piece * len(own), share) for rank, own in both)
        iteration += 1
        for rank, own in both:
            while rank.decoding and rank.decoding[0][0] <= iteration:
                ended.append((heapq.heappop(rank.decoding)[1], clock))
                if flying:
                    sent.append(clock)
            for prompt in own:
                prompt[1] -= 1
                if not prompt[1]:
                    rank.prompts.popleft()
                    firsts[prompt[0]] = clock
                    heapq.heappush(rank.decoding, (iteration + lengths[prompt[0]] - 1, prompt[0]))
    kept = ended[len(ended) // 5 :]
    rate = len(kept) / (kept[-1][1] - ended[len(ended) // 5 - 1][1]) / engine.ranks
    waits = sum(firsts[who] - came[who] for who, _ in kept) / len(kept)
    each = sum((end - firsts[who]) / (lengths[who] - 1) for who, end in kept) / len(kept)
    return waits, each, rate


def time_of(engine: Engine, decoding: int, tokens: float, share: float) -> float:
    """Seconds of a rank's own part of an iteration."""
    if not tokens:
        return engine.times.decode(decoding)
    return engine.times.mixed(decoding, tokens, share) if decoding else engine.times.prefill(tokens, share)
