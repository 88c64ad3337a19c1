"""An event-by-event simulator of replicas in lock step, which knows a policy and no closed form.

As `serving_simulator`, for several ranks: a request goes to the rank that has fewest, every iteration ends with the
slowest rank, and a rank without requests runs along.
"""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from symperf.serve.engine import Engine


@dataclass
class Rank:
    """The requests of a rank: prompts with what chunks are left of them, and sequences with their last iteration."""

    prompts: deque[list[int]] = field(default_factory=deque)
    decoding: deque[tuple[int, int]] = field(default_factory=deque)

    @property
    def present(self) -> int:
        """Requests that it has."""
        return len(self.prompts) + len(self.decoding)


def simulate(engine: Engine, load: float, requests: int = 6000, seed: int = 1) -> tuple[float, float]:
    """Mean times to the first and of each later token, under a load of each rank."""
    draws = random.Random(seed)
    ranks = [Rank() for _ in range(engine.ranks)]
    clock, iteration, due = 0.0, 0, draws.expovariate(load * engine.ranks)
    came: list[float] = []
    firsts: dict[int, float] = {}
    ended: list[tuple[int, float]] = []
    piece = engine.prompt / engine.chunks
    while len(ended) < requests:
        if not any(rank.present for rank in ranks):
            clock = max(clock, due)
        while due <= clock:
            fewest = min(rank.present for rank in ranks)
            chosen = draws.choice([rank for rank in ranks if rank.present == fewest])
            chosen.prompts.append([len(came), engine.chunks])
            came.append(due)
            due += draws.expovariate(load * engine.ranks)
        served = [[rank.prompts[i] for i in range(min(engine.chunk_prompts, len(rank.prompts)))] for rank in ranks]
        share = sum(map(bool, served)) / engine.ranks
        both = list(zip(ranks, served, strict=True))
        clock += max(time_of(engine, len(rank.decoding), piece * len(own), share) for rank, own in both)
        iteration += 1
        for rank, own in both:
            while rank.decoding and rank.decoding[0][1] <= iteration:
                ended.append((rank.decoding.popleft()[0], clock))
            for prompt in own:
                prompt[1] -= 1
                if not prompt[1]:
                    rank.prompts.popleft()
                    firsts[prompt[0]] = clock
                    rank.decoding.append((prompt[0], iteration + engine.generate - 1))
    kept = ended[len(ended) // 5 :]
    waits = sum(firsts[who] - came[who] for who, _ in kept) / len(kept)
    each = sum((end - firsts[who]) / (engine.generate - 1) for who, end in kept) / len(kept)
    return waits, each


def time_of(engine: Engine, decoding: int, tokens: float, share: float) -> float:
    """Seconds of a rank's own part of an iteration."""
    if not tokens:
        return engine.times.decode(decoding)
    return engine.times.mixed(decoding, tokens, share) if decoding else engine.times.prefill(tokens, share)
