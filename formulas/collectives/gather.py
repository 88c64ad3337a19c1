"""All-gather and reduce-scatter: each is the other run backwards, and together they are an all-reduce."""

from __future__ import annotations

from typing import Any

from ..atoms import less_one, ring_share
from ..dimension import SECOND
from ..formula import formula
from ..sources import PATARASUK, THAKUR
from .tiers import SCALE_OUT, SCALE_UP


@formula(
    glyph="T_{ag}",
    dimension=SECOND,
    source=THAKUR,
    increasing="half_bytes link_latency message_bytes ranks",
    decreasing="link_bandwidth",
)
def ring_all_gather_time(
    message_bytes: Any, ranks: Any, link_bandwidth: Any, link_latency: Any, half_bytes: Any
) -> Any:
    """Time until each of q ranks holds all n bytes, of which each had n / q: (q-1)/q (n + half) / BW + (q-1) alpha.

    Assumes: `message_bytes` is the gathered size; equal parts; one ring, each rank sending and receiving at once.

    Source: Thakur et al. 2005, all-gather by a ring: q - 1 steps of n / q bytes.

    >>> from sympy import symbols
    >>> ring_all_gather_time(*symbols("n q BW alpha half"))
    alpha*less_one(q) + (half + n)*ring_share(q)/BW
    """
    return ring_share(ranks) * (message_bytes + half_bytes) / link_bandwidth + less_one(ranks) * link_latency


@formula(
    glyph="T_{rs}",
    dimension=SECOND,
    source=PATARASUK,
    increasing="half_bytes link_latency message_bytes ranks",
    decreasing="link_bandwidth",
)
def ring_reduce_scatter_time(
    message_bytes: Any, ranks: Any, link_bandwidth: Any, link_latency: Any, half_bytes: Any
) -> Any:
    """Time until each of q ranks holds its n / q bytes of a sum of n bytes: (q-1)/q (n + half) / BW + (q-1) alpha.

    Assumes: `message_bytes` is the size before scattering; equal parts; adding is hidden behind the transfer.

    Source: Patarasuk and Yuan 2009: the first half of the ring all-reduce.

    >>> from sympy import symbols
    >>> ring_reduce_scatter_time(*symbols("n q BW alpha half"))
    alpha*less_one(q) + (half + n)*ring_share(q)/BW
    """
    return ring_all_gather_time(message_bytes, ranks, link_bandwidth, link_latency, half_bytes)


@formula(
    glyph="T_{ag}^{u}",
    dimension=SECOND,
    source=THAKUR,
    increasing="message_bytes ranks scale_up_half_bytes scale_up_latency",
    decreasing="scale_up_bandwidth scale_up_efficiency",
)
def scale_up_all_gather_time(message_bytes: Any, ranks: Any) -> Any:
    """Time of an all-gather of n bytes in total among q ranks of one scale-up domain.

    Assumes: as `ring_all_gather_time`.

    Source: Thakur et al. 2005, all-gather by a ring, with the figures of the scale-up tier.

    >>> from sympy import symbols
    >>> scale_up_all_gather_time(*symbols("n q"))
    scale_up_latency*less_one(q) + (n + scale_up_half_bytes)*ring_share(q)/(scale_up_bandwidth*scale_up_efficiency)
    """
    return ring_all_gather_time(message_bytes, ranks, *SCALE_UP)


@formula(
    glyph="T_{rs}^{u}",
    dimension=SECOND,
    source=PATARASUK,
    increasing="message_bytes ranks scale_up_half_bytes scale_up_latency",
    decreasing="scale_up_bandwidth scale_up_efficiency",
)
def scale_up_reduce_scatter_time(message_bytes: Any, ranks: Any) -> Any:
    """Time of a reduce-scatter of n bytes among q ranks of one scale-up domain.

    Assumes: as `ring_reduce_scatter_time`.

    Source: Patarasuk and Yuan 2009, with the figures of the scale-up tier.

    >>> from sympy import symbols
    >>> scale_up_reduce_scatter_time(*symbols("n q"))
    scale_up_latency*less_one(q) + (n + scale_up_half_bytes)*ring_share(q)/(scale_up_bandwidth*scale_up_efficiency)
    """
    return ring_reduce_scatter_time(message_bytes, ranks, *SCALE_UP)


@formula(
    glyph="T_{ag}^{uo}",
    dimension=SECOND,
    source=THAKUR,
    increasing=(
        "message_bytes outer_ranks scale_out_half_bytes scale_out_latency scale_up_half_bytes scale_up_latency"
    ),
    decreasing="scale_out_bandwidth scale_out_efficiency scale_up_bandwidth scale_up_efficiency",
)
def hierarchical_all_gather_time(message_bytes: Any, inner_ranks: Any, outer_ranks: Any) -> Any:
    """Time of an all-gather of n bytes in total over q_o domains of q_u ranks.

    Each device first gathers its n / q_u bytes from its peers in the other domains, then all n inside:
    T_out(n / q_u, q_o) + T_up(n, q_u).

    Assumes: every device has its own share of the adapters; one step follows the other.

    Source: derivation: the ring all-gather of Thakur et al. 2005 in either tier.

    >>> from sympy import symbols
    >>> hierarchical_all_gather_time(*symbols("n q_u q_o"))  # doctest: +NORMALIZE_WHITESPACE
    scale_out_latency*less_one(q_o) + scale_up_latency*less_one(q_u) + (n +
    scale_up_half_bytes)*ring_share(q_u)/(scale_up_bandwidth*scale_up_efficiency) + (n/q_u +
    scale_out_half_bytes)*ring_share(q_o)/(scale_out_bandwidth*scale_out_efficiency)
    """
    outside = ring_all_gather_time(message_bytes / inner_ranks, outer_ranks, *SCALE_OUT)
    return outside + ring_all_gather_time(message_bytes, inner_ranks, *SCALE_UP)


@formula(
    glyph="T_{rs}^{uo}",
    dimension=SECOND,
    source=THAKUR,
    increasing=(
        "message_bytes outer_ranks scale_out_half_bytes scale_out_latency scale_up_half_bytes scale_up_latency"
    ),
    decreasing="scale_out_bandwidth scale_out_efficiency scale_up_bandwidth scale_up_efficiency",
)
def hierarchical_reduce_scatter_time(message_bytes: Any, inner_ranks: Any, outer_ranks: Any) -> Any:
    """Time of a reduce-scatter of n bytes over q_o domains of q_u ranks.

    Inside the domain first, of n bytes, then of the n / q_u bytes that each device keeps, between domains:
    T_up(n, q_u) + T_out(n / q_u, q_o).

    Assumes: every device has its own share of the adapters; one step follows the other.

    Source: derivation: `hierarchical_all_gather_time` run backwards.

    >>> from sympy import symbols
    >>> hierarchical_reduce_scatter_time(*symbols("n q_u q_o"))  # doctest: +NORMALIZE_WHITESPACE
    scale_out_latency*less_one(q_o) + scale_up_latency*less_one(q_u) + (n +
    scale_up_half_bytes)*ring_share(q_u)/(scale_up_bandwidth*scale_up_efficiency) + (n/q_u +
    scale_out_half_bytes)*ring_share(q_o)/(scale_out_bandwidth*scale_out_efficiency)
    """
    inside = ring_reduce_scatter_time(message_bytes, inner_ranks, *SCALE_UP)
    return inside + ring_reduce_scatter_time(message_bytes / inner_ranks, outer_ranks, *SCALE_OUT)
