"""Broadcast: one rank's bytes reach all the others, cut into pieces that follow each other."""

from __future__ import annotations

from typing import Any

from ..atoms import Max, less_one, log2, present
from ..dimension import SECOND
from ..formula import formula
from ..sources import PATARASUK, SANDERS
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

    >>> from sympy import symbols
    >>> ring_broadcast_time(*symbols("n q BW alpha half"))
    alpha*less_one(q) + (half + n)*present(q)/BW
    """
    return present(ranks) * (message_bytes + half_bytes) / link_bandwidth + less_one(ranks) * link_latency


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

    >>> from sympy import symbols
    >>> tree_broadcast_time(*symbols("n q BW alpha half"))
    alpha*log2(q) + (half + n)*present(q)/BW
    """
    return present(ranks) * (message_bytes + half_bytes) / link_bandwidth + log2(ranks) * link_latency


@formula(
    glyph="T_{bc}^{u}",
    dimension=SECOND,
    source=SANDERS,
    increasing="message_bytes ranks scale_up_half_bytes scale_up_latency",
    decreasing="scale_up_bandwidth scale_up_efficiency",
)
def scale_up_broadcast_time(message_bytes: Any, ranks: Any) -> Any:
    """Time of a broadcast of n bytes to q ranks of one scale-up domain, by two trees, which no chain outruns.

    Assumes: as `tree_broadcast_time`.

    Source: Sanders, Speck and Traff 2009, broadcast, with the figures of the scale-up tier.

    >>> from sympy import symbols
    >>> scale_up_broadcast_time(*symbols("n q"))
    scale_up_latency*log2(q) + (n + scale_up_half_bytes)*present(q)/(scale_up_bandwidth*scale_up_efficiency)
    """
    return tree_broadcast_time(message_bytes, ranks, *SCALE_UP)


@formula(
    glyph="T_{bc}^{uo}",
    dimension=SECOND,
    source=SANDERS,
    increasing=(
        "message_bytes outer_ranks scale_out_half_bytes scale_out_latency scale_up_half_bytes scale_up_latency"
    ),
    decreasing="scale_out_bandwidth scale_out_efficiency scale_up_bandwidth scale_up_efficiency",
)
def hierarchical_broadcast_time(message_bytes: Any, inner_ranks: Any, outer_ranks: Any) -> Any:
    """Time of a broadcast of n bytes to q_o domains of q_u ranks.

    The root deals the pieces to its domain, q_u parts; every device passes its n / q_u bytes to its peers in the
    other domains; every domain shares its parts inside. Pieces stream, so the slower tier binds:
    max([q_u > 1] (n + half) / BW_u, [q_o > 1] (n / q_u + half) / BW_o) + log2(q_u) alpha_u + log2(q_o) alpha_o.

    Assumes: every device has its own share of the adapters; small pieces; the first leave by the root's own adapter.

    Source: derivation: in every domain a scale-up link carries at most n bytes, an adapter n / q_u; trees of
    Sanders, Speck and Traff 2009 in both tiers.

    >>> from sympy import symbols
    >>> hierarchical_broadcast_time(*symbols("n q_u q_o"))  # doctest: +NORMALIZE_WHITESPACE
    scale_out_latency*log2(q_o) + scale_up_latency*log2(q_u) + Max((n/q_u +
    scale_out_half_bytes)*present(q_o)/(scale_out_bandwidth*scale_out_efficiency), (n +
    scale_up_half_bytes)*present(q_u)/(scale_up_bandwidth*scale_up_efficiency))
    """
    (up, up_latency, up_half), (out, out_latency, out_half) = SCALE_UP, SCALE_OUT
    inside = present(inner_ranks) * (message_bytes + up_half) / up
    between = present(outer_ranks) * (message_bytes / inner_ranks + out_half) / out
    return Max(inside, between) + log2(inner_ranks) * up_latency + log2(outer_ranks) * out_latency
