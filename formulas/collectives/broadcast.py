"""Broadcast: one rank's bytes reach all the others, cut into pieces that follow each other."""

from __future__ import annotations

from typing import Any

from ..language.atoms import Min, above_one, less_one, log2
from ..language.dimension import SECOND
from ..language.formula import formula
from ..language.symbols import broadcast_piece_bytes
from ..sources import HU, PATARASUK, SANDERS
from .tiers import SCALE_OUT, SCALE_UP


@formula(
    glyph="T_{bc}^{ring}",
    dimension=SECOND,
    source=PATARASUK,
    increasing="half_bytes link_latency message_bytes ranks",
    decreasing="link_bandwidth",
)
def ring_broadcast_time(message_bytes: Any, ranks: Any, link_bandwidth: Any, link_latency: Any, half_bytes: Any) -> Any:
    """Time to pass n bytes down a chain of q ranks in pieces: [q > 1] (n + half) / BW + (q-1) alpha.

    Assumes: pieces so small that the time to fill the chain is its hops' latencies.

    Source: derivation: each link carries all n bytes once; the last rank starts q - 1 hops late.

    Reference only: the literature's form; a step takes an all-gather's time for a broadcast (`owners`).

    >>> from sympy import symbols
    >>> ring_broadcast_time(*symbols("n q BW alpha half"))
    alpha*less_one(q) + (half + n)*above_one(q)/BW
    """
    return above_one(ranks) * (message_bytes + half_bytes) / link_bandwidth + less_one(ranks) * link_latency


@formula(
    glyph="T_{bc}^{tree}",
    dimension=SECOND,
    source=SANDERS,
    increasing="half_bytes link_latency message_bytes ranks",
    decreasing="link_bandwidth",
)
def tree_broadcast_time(message_bytes: Any, ranks: Any, link_bandwidth: Any, link_latency: Any, half_bytes: Any) -> Any:
    """Time to pass n bytes down two binary trees of q ranks, half each: [q > 1] (n + half) / BW + log2(q) alpha.

    Assumes: a rank that is inside one tree is a leaf of the other, so that all links are busy; small pieces.

    Source: Sanders, Speck and Traff 2009, broadcast, in the limit of small pieces that stream, where each hop delays
    the first piece once.

    Reference only: the literature's form; a step takes an all-gather's time for a broadcast (`owners`).

    >>> from sympy import symbols
    >>> tree_broadcast_time(*symbols("n q BW alpha half"))
    alpha*log2(q) + (half + n)*above_one(q)/BW
    """
    return above_one(ranks) * (message_bytes + half_bytes) / link_bandwidth + log2(ranks) * link_latency


@formula(
    glyph="T_{bc}^{fill}",
    dimension=SECOND,
    source=HU,
    increasing="broadcast_piece_bytes message_bytes outer_ranks",
    decreasing="scale_out_bandwidth scale_out_efficiency scale_up_bandwidth scale_up_efficiency",
)
def broadcast_fill_time(message_bytes: Any, inner_ranks: Any, outer_ranks: Any) -> Any:
    """Time to fill a chain of q_o domains of q_u ranks: p (q_o (q_u - 1) / BW_u + (q_o - 1) / (q_u BW_o)).

    Until a first piece is down all of it: a rank passes a piece of p bytes on when all of it is there. Between domains
    the chain has the adapters of all q_u ranks; p is at most the message.

    Assumes: one piece of every channel is under way at a hop; the next broadcast begins when this one is done.

    Source: derivation, for NCCL (Hu et al. 2025): a broadcast runs down a ring in pieces of one step, 1/8 of a buffer
    of 4 MiB, on each channel (BROADCAST_CHUNKSTEPS is 1, src/include/collectives.h).

    >>> from sympy import symbols
    >>> broadcast_fill_time(symbols("n"), 1, 1)
    0
    """
    piece = Min(broadcast_piece_bytes, message_bytes)
    inside = outer_ranks * less_one(inner_ranks) / SCALE_UP[0]
    return piece * (inside + less_one(outer_ranks) / (inner_ranks * SCALE_OUT[0]))
