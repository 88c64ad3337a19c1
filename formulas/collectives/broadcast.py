"""Broadcast: one rank's bytes reach all the others, cut into pieces that follow each other."""

from __future__ import annotations

from typing import Any

from ..language.atoms import Max, Min, above_one, less_one, log2
from ..language.dimension import SECOND
from ..language.formula import formula
from ..sources import HU, JEAUGEY, PATARASUK, SANDERS
from .protocols import better, low_latency, simple
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

    >>> from sympy import symbols
    >>> tree_broadcast_time(*symbols("n q BW alpha half"))
    alpha*log2(q) + (half + n)*above_one(q)/BW
    """
    return above_one(ranks) * (message_bytes + half_bytes) / link_bandwidth + log2(ranks) * link_latency


@formula(
    glyph="T_{bc}^{S}",
    dimension=SECOND,
    source=SANDERS,
    increasing="half_bytes link_latency message_bytes ranks",
    decreasing="link_bandwidth",
)
def simple_broadcast_time(
    message_bytes: Any, ranks: Any, link_bandwidth: Any, link_latency: Any, half_bytes: Any
) -> Any:
    """Time to broadcast n bytes to q ranks by the plain protocol, down two trees.

    [q > 1] n / BW + max([q > 1] half / BW, log2(q) alpha).

    Assumes: as `tree_broadcast_time`, but that the first piece passes its hops while buffers fill.

    Source: Sanders, Speck and Traff 2009, broadcast; the start-up beside the hops as in `simple_all_gather_time`.

    >>> from sympy import symbols
    >>> simple_broadcast_time(*symbols("n q BW alpha half"))
    Max((half + n)*above_one(q)/BW, alpha*log2(q) + n*above_one(q)/BW)
    """
    share = above_one(ranks) / link_bandwidth
    return simple(share * (message_bytes + half_bytes), share * message_bytes, log2(ranks) * link_latency)


@formula(
    glyph="T_{bc}^{LL}",
    dimension=SECOND,
    source=JEAUGEY,
    increasing="link_latency message_bytes ranks",
    decreasing="link_bandwidth",
)
def low_latency_broadcast_time(message_bytes: Any, ranks: Any, link_bandwidth: Any, link_latency: Any) -> Any:
    """Time to broadcast n bytes to q ranks by the low-latency protocol: 2 [q > 1] n / BW + log2(q) alpha.

    Assumes: a flag with every word of its size; the trees of `tree_broadcast_time`.

    Source: Jeaugey 2020, LL: 4 bytes of data and 4 of flag in one store; trees of Sanders, Speck and Traff 2009.

    >>> from sympy import symbols
    >>> low_latency_broadcast_time(*symbols("n q BW alpha"))
    alpha*log2(q) + 2*n*above_one(q)/BW
    """
    return low_latency(above_one(ranks) * message_bytes / link_bandwidth, log2(ranks) * link_latency)


@formula(
    glyph="T_{bc}",
    dimension=SECOND,
    source=HU,
    increasing="half_bytes link_latency message_bytes ranks",
    decreasing="link_bandwidth",
)
def broadcast_time(message_bytes: Any, ranks: Any, link_bandwidth: Any, link_latency: Any, half_bytes: Any) -> Any:
    """Time to broadcast n bytes to q ranks by two trees, which no chain outruns, and the better protocol.

    Assumes: as `tree_broadcast_time`; the library knows which protocol is better.

    Source: Hu et al. 2025: NCCL chooses the protocol by size.

    >>> from sympy import symbols
    >>> broadcast_time(*symbols("n q BW alpha half"))  # doctest: +NORMALIZE_WHITESPACE
    Min(alpha*log2(q) + 2*n*above_one(q)/BW, Max((half + n)*above_one(q)/BW, alpha*log2(q) + n*above_one(q)/BW))
    """
    return Min(
        simple_broadcast_time(message_bytes, ranks, link_bandwidth, link_latency, half_bytes),
        low_latency_broadcast_time(message_bytes, ranks, link_bandwidth, link_latency),
    )


@formula(
    glyph="T_{bc}^{u}",
    dimension=SECOND,
    source=HU,
    increasing="message_bytes ranks scale_up_half_bytes scale_up_latency",
    decreasing="scale_up_bandwidth scale_up_efficiency",
)
def scale_up_broadcast_time(message_bytes: Any, ranks: Any) -> Any:
    """Time of a broadcast of n bytes to q ranks of one scale-up domain.

    Assumes: as `broadcast_time`.

    Source: Hu et al. 2025, the better protocol, with the figures of the scale-up tier.

    >>> from sympy import symbols
    >>> scale_up_broadcast_time(*symbols("n q"))  # doctest: +NORMALIZE_WHITESPACE
    Min(2*n*above_one(q)/(scale_up_bandwidth*scale_up_efficiency) + scale_up_latency*log2(q), Max((n +
    scale_up_half_bytes)*above_one(q)/(scale_up_bandwidth*scale_up_efficiency),
    n*above_one(q)/(scale_up_bandwidth*scale_up_efficiency) + scale_up_latency*log2(q)))
    """
    return broadcast_time(message_bytes, ranks, *SCALE_UP)


def _streamed(up_bytes: Any, out_bytes: Any, inner_ranks: Any, outer_ranks: Any) -> Any:
    """Time of the slower tier, when both stream at once."""
    inside = above_one(inner_ranks) * up_bytes / SCALE_UP[0]
    return Max(inside, above_one(outer_ranks) * out_bytes / SCALE_OUT[0])


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
    """Time of a broadcast of n bytes to q_o domains of q_u ranks, by the better protocol.

    The root deals the pieces to its domain, q_u parts; every device passes its n / q_u bytes to its peers in the
    other domains; every domain shares its parts inside. Pieces stream, so the slower tier binds:
    S(x, y) = max([q_u > 1] (n + x) / BW_u, [q_o > 1] (n / q_u + y) / BW_o) and H = log2(q_u) alpha_u + log2(q_o)
    alpha_o make min(max(S(half_u, half_o), S(0, 0) + H), 2 S(0, 0) + H).

    Assumes: every device has its own share of the adapters; small pieces; the first leave by the root's own adapter.

    Source: derivation: in every domain a scale-up link carries at most n bytes, an adapter n / q_u; trees of
    Sanders, Speck and Traff 2009 in both tiers; protocols as in `broadcast_time`.

    >>> from sympy import symbols
    >>> hierarchical_broadcast_time(*symbols("n q_u q_o"))  # doctest: +NORMALIZE_WHITESPACE
    Min(scale_out_latency*log2(q_o) + scale_up_latency*log2(q_u) +
    2*Max(n*above_one(q_u)/(scale_up_bandwidth*scale_up_efficiency),
    n*above_one(q_o)/(q_u*scale_out_bandwidth*scale_out_efficiency)), Max((n/q_u +
    scale_out_half_bytes)*above_one(q_o)/(scale_out_bandwidth*scale_out_efficiency), (n +
    scale_up_half_bytes)*above_one(q_u)/(scale_up_bandwidth*scale_up_efficiency), scale_out_latency*log2(q_o) +
    scale_up_latency*log2(q_u) + Max(n*above_one(q_u)/(scale_up_bandwidth*scale_up_efficiency),
    n*above_one(q_o)/(q_u*scale_out_bandwidth*scale_out_efficiency))))
    """
    (_, up_latency, up_half), (_, out_latency, out_half) = SCALE_UP, SCALE_OUT
    part = message_bytes / inner_ranks
    return better(
        _streamed(message_bytes + up_half, part + out_half, inner_ranks, outer_ranks),
        _streamed(message_bytes, part, inner_ranks, outer_ranks),
        log2(inner_ranks) * up_latency + log2(outer_ranks) * out_latency,
    )
