"""Replicas in lock step: ranks with requests of their own that pass the same experts, and so every layer together.

d ranks begin an iteration together and end it with the last of them; a rank without requests runs along. So a decoding
sequence waits for the prefill of any rank, and for the rank that decodes most.
"""

from __future__ import annotations

from typing import Any

from ..language.atoms import complement, less_one
from ..language.dimension import ONE
from ..language.formula import formula
from ..mathematics.fractions import fraction_power
from ..sources import VLLM_DATA_PARALLEL


@formula(
    glyph=r"\phi_{any}",
    dimension=ONE,
    source=VLLM_DATA_PARALLEL,
    increasing="chunk_share ranks",
)
def lockstep_share(chunk_share: Any, ranks: Any) -> Any:
    """Part of the iterations in which at least one of d ranks prefills: 1 - (1 - phi_mix)^d.

    Assumes: ranks prefill independently of each other, each in phi_mix of the iterations.

    Source: derivation; vLLM, Data Parallel Deployment: forward passes are aligned, as layers of experts of all ranks
    synchronise in every one of them.

    >>> from sympy import Rational
    >>> lockstep_share(Rational(1, 2), 1), lockstep_share(Rational(1, 2), 3)
    (1/2, 7/8)
    """
    return complement(fraction_power(complement(chunk_share), ranks))


@formula(
    glyph="b_{d}^{max}",
    dimension=ONE,
    source=VLLM_DATA_PARALLEL,
    increasing="decoding ranks",
)
def fullest_rank_sequences(decoding: Any, ranks: Any) -> Any:
    """Sequences that the fullest of d ranks decodes: b_d + (d - 1) / (2 d), where b_d is the mean rank's.

    N sequences over d ranks that differ by one at most are ceil(N / d) on the fullest, which is (d - 1) / (2 d) above
    N / d in the mean over N.

    Assumes: a request goes to the rank that has fewest, and all are of one length. Dealt at random, ranks would differ
    by several square roots of b_d.

    Source: derivation; vLLM, Data Parallel Deployment: balancing is by the running and waiting queues of each.

    >>> fullest_rank_sequences(10, 1), fullest_rank_sequences(10, 4)
    (10, 83/8)
    """
    return decoding + complement(1 / ranks) / 2


@formula(
    glyph=r"\phi_{pr}^{own}",
    dimension=ONE,
    source=VLLM_DATA_PARALLEL,
    increasing="chunk_share",
)
def prefilling_ranks_seen(chunk_share: Any, ranks: Any) -> Any:
    """Part of d ranks that prefill in an iteration in which a given one does: (1 + (d - 1) phi_mix) / d.

    Assumes: as `lockstep_share`.

    Source: derivation: the given rank, and each of the others with chance phi_mix.

    >>> prefilling_ranks_seen(1, 8), prefilling_ranks_seen(0, 8)
    (1, 1/8)
    """
    return (1 + less_one(ranks) * chunk_share) / ranks
