"""What replicas in lock step do to an iteration: they all wait for the one with most prompts and most sequences."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .program import form

if TYPE_CHECKING:
    from .engine import Engine

NEGLIGIBLE = 1e-12


@dataclass(frozen=True)
class Together:
    """The iterations of several ranks together.

    Attributes:
        share: part of them in which some rank prefills.
        tokens: prompt tokens of the rank that has most, in those.
        prefilling: prompt tokens of the mean rank over these.
        seen: sequences that the fullest rank decodes.
        spread: standard deviation of their number.
    """

    share: float
    tokens: float
    prefilling: float
    seen: float
    spread: float


def meet(engine: Engine, arrivals: float, own: tuple[float, float], seen: float, spread: float) -> Together:
    """What the ranks of an engine's replica make of its own iterations; a replica alone leaves them as they are.

    Args:
        engine: of a rank.
        arrivals: prompts that arrive at a rank during an iteration.
        own: share of the rank's iterations that prefill, and their prompt tokens.
        seen: sequences that the mean rank decodes.
        spread: standard deviation of their number.
    """
    share, tokens = own
    ranks = engine.ranks
    if ranks == 1:
        return Together(share, tokens, 1.0, seen, spread)
    some = form("lockstep_share", chunk_share=share, ranks=ranks)
    if some and engine.chunk_prompts > 1:
        most = fullest_prompts(arrivals, math.ceil(engine.chunk_prompts), ranks) * engine.prompt / some
        tokens = min(max(tokens, most), engine.whole_chunk)
    # The sum of all ranks is steadier than one: requests go to the emptiest.
    fullest = form("fullest_rank_sequences", decoding=seen, ranks=ranks)
    mean = min(1.0, arrivals * engine.prompt / (some * tokens)) if some else 1.0
    return Together(some, tokens, mean, fullest, spread / math.sqrt(ranks))


def fullest_prompts(arrivals: float, most: int, ranks: int) -> float:
    """Prompts that the rank with most begins in an iteration, the mean over all: sum_k 1 - (1 - P(N >= k))^d, k to J.

    As many arrive at a rank during an iteration as Poisson's law says, independently of the others; J are begun.

    >>> round(fullest_prompts(0.5, 1, 1), 6), round(fullest_prompts(0.5, 8, 1), 6), fullest_prompts(0.5, 8, 8) < 8
    (0.393469, 0.5, True)
    """
    chance = below = math.exp(-arrivals)
    total = 0.0
    for count in range(1, most + 1):
        total += (part := 1 - below**ranks)
        if part < NEGLIGIBLE:
            break
        chance *= arrivals / count
        below = min(1.0, below + chance)
    return total


def prefilling_beside(engine: Engine, arrivals: float) -> float:
    """The part of the ranks that prefill where a given one does."""
    if engine.ranks == 1:
        return 1.0
    return form("prefilling_ranks_seen", chunk_share=own_share(engine, arrivals), ranks=engine.ranks)


def boundary(engine: Engine, arrivals: float, share: float, times: tuple[float, float]) -> float:
    """The mean wait for iterations in which ranks prefill, beside that for the own rank's.

    Of prompts that are prefilled together the steady state of a rank has the own ones. A prompt that is cut goes to the
    rank that has fewest, not behind the one that is served, but waits for its iteration to end.

    Args:
        engine: of a rank.
        arrivals: prompts that arrive at a rank during an iteration.
        share: part of the iterations in which some rank prefills.
        times: of an iteration with prefill, and of the mean one.
    """
    if engine.ranks == 1:
        return 0.0
    mixed, mean = times
    own = own_share(engine, arrivals) if engine.chunk_prompts > 1 else 0.0
    others = max(0.0, share - own) * mixed / mean
    return form("boundary_wait", decode_share=0.0, decode_time=mixed, mixed_share=others, mixed_time=mixed)


def own_share(engine: Engine, arrivals: float) -> float:
    """The part of its iterations in which a rank prefills."""
    share = form("prefilling_share", arrivals=arrivals, chunks=engine.chunks, chunk_prompts=engine.chunk_prompts)
    return min(1.0, share)
