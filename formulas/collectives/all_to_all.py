"""All-to-all: every rank has something else for every other."""

from __future__ import annotations

from typing import Any

from ..language.atoms import Min, less_one, ring_share
from ..language.dimension import SECOND
from ..language.formula import formula
from ..sources import HU, JEAUGEY, THAKUR
from .protocols import low_latency_time, simple_time
from .tiers import SCALE_OUT, SCALE_UP


@formula(
    glyph="T_{aa}^{pair}",
    dimension=SECOND,
    source=THAKUR,
    increasing="half_bytes link_latency message_bytes ranks",
    decreasing="link_bandwidth",
)
def pairwise_all_to_all_time(
    message_bytes: Any, ranks: Any, link_bandwidth: Any, link_latency: Any, half_bytes: Any
) -> Any:
    """Time of an all-to-all in which each of q ranks holds n bytes: (q-1)/q (n + half) / BW + (q-1) alpha.

    Assumes: `message_bytes` is what one rank holds, in q equal parts, of which its own stays; links through a switch
    that does not block.

    Source: Thakur et al. 2005, all-to-all by pairwise exchange, q - 1 steps of n / q bytes.

    Reference only: the literature's form; a prediction takes `all_to_all_time`, never slower.

    >>> from sympy import symbols
    >>> pairwise_all_to_all_time(*symbols("n q BW alpha half"))
    alpha*less_one(q) + (half + n)*ring_share(q)/BW
    """
    return ring_share(ranks) * (message_bytes + half_bytes) / link_bandwidth + less_one(ranks) * link_latency


@formula(
    glyph="T_{aa}^{S}",
    dimension=SECOND,
    source=THAKUR,
    increasing="half_bytes link_latency message_bytes ranks",
    decreasing="link_bandwidth",
)
def simple_all_to_all_time(
    message_bytes: Any, ranks: Any, link_bandwidth: Any, link_latency: Any, half_bytes: Any
) -> Any:
    """Time of an all-to-all by the plain protocol: (q-1)/q n / BW + max((q-1)/q half / BW, (q-1) alpha).

    Assumes: as `pairwise_all_to_all_time`, but that exchanges start while buffers fill.

    Source: Thakur et al. 2005, all-to-all by pairwise exchange; the start-up beside the hops as in
    `simple_all_gather_time`.

    >>> from sympy import symbols
    >>> simple_all_to_all_time(*symbols("n q BW alpha half"))
    Max((half + n)*ring_share(q)/BW, alpha*less_one(q) + n*ring_share(q)/BW)
    """
    share = ring_share(ranks) / link_bandwidth
    return simple_time(share * (message_bytes + half_bytes), share * message_bytes, less_one(ranks) * link_latency)


@formula(
    glyph="T_{aa}^{LL}",
    dimension=SECOND,
    source=JEAUGEY,
    increasing="link_latency message_bytes ranks",
    decreasing="link_bandwidth",
)
def low_latency_all_to_all_time(message_bytes: Any, ranks: Any, link_bandwidth: Any, link_latency: Any) -> Any:
    """Time of an all-to-all by the low-latency protocol: 2 (q-1)/q n / BW + (q-1) alpha.

    Assumes: a flag with every word of its size.

    Source: Jeaugey 2020, LL: 4 bytes of data and 4 of flag in one store; the pairwise exchange of Thakur et al. 2005.

    >>> from sympy import symbols
    >>> low_latency_all_to_all_time(*symbols("n q BW alpha"))
    alpha*less_one(q) + 2*n*ring_share(q)/BW
    """
    return low_latency_time(ring_share(ranks) * message_bytes / link_bandwidth, less_one(ranks) * link_latency)


@formula(
    glyph="T_{aa}",
    dimension=SECOND,
    source=HU,
    increasing="half_bytes link_latency message_bytes ranks",
    decreasing="link_bandwidth",
)
def all_to_all_time(message_bytes: Any, ranks: Any, link_bandwidth: Any, link_latency: Any, half_bytes: Any) -> Any:
    """Time of an all-to-all in which each of q ranks holds n bytes, by the better protocol.

    Assumes: `message_bytes` is what one rank holds, in q equal parts, of which its own stays; links through a switch
    that does not block; the library knows which protocol is better.

    Source: Hu et al. 2025: NCCL chooses the protocol by size.

    >>> from sympy import symbols
    >>> all_to_all_time(*symbols("n q BW alpha half"))  # doctest: +NORMALIZE_WHITESPACE
    Min(alpha*less_one(q) + 2*n*ring_share(q)/BW,
    Max((half + n)*ring_share(q)/BW, alpha*less_one(q) + n*ring_share(q)/BW))
    """
    return Min(
        simple_all_to_all_time(message_bytes, ranks, link_bandwidth, link_latency, half_bytes),
        low_latency_all_to_all_time(message_bytes, ranks, link_bandwidth, link_latency),
    )


@formula(
    glyph="T_{aa}^{u}",
    dimension=SECOND,
    source=HU,
    increasing="message_bytes ranks scale_up_half_bytes scale_up_latency",
    decreasing="scale_up_bandwidth scale_up_efficiency",
)
def scale_up_all_to_all_time(message_bytes: Any, ranks: Any) -> Any:
    """Time of an all-to-all of n bytes a rank among q ranks of one scale-up domain.

    Assumes: as `all_to_all_time`.

    Source: Hu et al. 2025, the better protocol, with the figures of the scale-up tier.

    >>> from sympy import symbols
    >>> scale_up_all_to_all_time(*symbols("n q"))  # doctest: +NORMALIZE_WHITESPACE
    Min(2*n*ring_share(q)/(scale_up_bandwidth*scale_up_efficiency) + scale_up_latency*less_one(q), Max((n +
    scale_up_half_bytes)*ring_share(q)/(scale_up_bandwidth*scale_up_efficiency),
    n*ring_share(q)/(scale_up_bandwidth*scale_up_efficiency) + scale_up_latency*less_one(q)))
    """
    return all_to_all_time(message_bytes, ranks, *SCALE_UP)


@formula(
    glyph="T_{aa}^{uo}",
    dimension=SECOND,
    source=THAKUR,
    increasing=(
        "inner_ranks message_bytes outer_ranks scale_out_half_bytes scale_out_latency scale_up_half_bytes "
        "scale_up_latency"
    ),
    decreasing="scale_out_bandwidth scale_out_efficiency scale_up_bandwidth scale_up_efficiency",
)
def hierarchical_all_to_all_time(message_bytes: Any, inner_ranks: Any, outer_ranks: Any) -> Any:
    """Time of an all-to-all of n bytes a rank over q_o domains of q_u ranks.

    Inside each domain every device hands on what its peers' counterparts are to have, n bytes in q_u parts; then
    counterparts exchange n bytes in q_o parts, each tier by its better protocol: T_up(n, q_u) + T_out(n, q_o).

    Assumes: every device has its own share of the adapters; one step follows the other. The bytes that cross
    domains, (q_o-1)/q_o n a device, are the fewest possible, in q_o - 1 messages instead of q - q_u.

    Source: derivation: two rounds of the pairwise exchange of Thakur et al. 2005.

    >>> from sympy import symbols
    >>> n, q_u, q_o = symbols("n q_u q_o")
    >>> between = all_to_all_time(n, q_o, *SCALE_OUT)
    >>> hierarchical_all_to_all_time(n, q_u, q_o) == scale_up_all_to_all_time(n, q_u) + between
    True
    """
    inside = all_to_all_time(message_bytes, inner_ranks, *SCALE_UP)
    return inside + all_to_all_time(message_bytes, outer_ranks, *SCALE_OUT)
