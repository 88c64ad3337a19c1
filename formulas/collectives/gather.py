"""All-gather and reduce-scatter: each is the other run backwards, and together they are an all-reduce."""

from __future__ import annotations

from typing import Any

from ..language.atoms import Min, less_one, log2, ring_share
from ..language.dimension import SECOND
from ..language.formula import formula
from ..sources import HU, JEAUGEY, PATARASUK, THAKUR
from .protocols import low_latency_time, simple_time
from .tiers import SCALE_OUT, SCALE_UP


@formula(
    glyph="T_{ag}^{ring}",
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

    Reference only: the literature's form; a prediction takes `all_gather_time`, never slower.

    >>> from sympy import symbols
    >>> ring_all_gather_time(*symbols("n q BW alpha half"))
    alpha*less_one(q) + (half + n)*ring_share(q)/BW
    """
    return ring_share(ranks) * (message_bytes + half_bytes) / link_bandwidth + less_one(ranks) * link_latency


@formula(
    glyph="T_{rs}^{ring}",
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

    Reference only: the literature's form; a prediction takes `reduce_scatter_time`, never slower.

    >>> from sympy import symbols
    >>> ring_reduce_scatter_time(*symbols("n q BW alpha half"))
    alpha*less_one(q) + (half + n)*ring_share(q)/BW
    """
    return ring_all_gather_time(message_bytes, ranks, link_bandwidth, link_latency, half_bytes)


@formula(
    glyph="T_{ag}^{S}",
    dimension=SECOND,
    source=THAKUR,
    increasing="half_bytes link_latency message_bytes ranks",
    decreasing="link_bandwidth",
)
def simple_all_gather_time(
    message_bytes: Any, ranks: Any, link_bandwidth: Any, link_latency: Any, half_bytes: Any
) -> Any:
    """Time to gather n bytes on q ranks by the plain protocol: (q-1)/q n / BW + max((q-1)/q half / BW, log2(q) alpha).

    Assumes: as many bytes as in a ring, as many hops as in a tree, and hops that pass while buffers fill.

    Source: Thakur et al. 2005, all-gather by recursive doubling, (q-1)/q n / BW + log2(q) alpha; the start-up beside
    the hops, not after them, as measured curves are nearer to a start-up that grows with (q-1)/q than to one that
    grows with q - 1 (benchmarks/calibration).

    >>> from sympy import symbols
    >>> simple_all_gather_time(*symbols("n q BW alpha half"))
    Max((half + n)*ring_share(q)/BW, alpha*log2(q) + n*ring_share(q)/BW)
    """
    share = ring_share(ranks) / link_bandwidth
    return simple_time(share * (message_bytes + half_bytes), share * message_bytes, log2(ranks) * link_latency)


@formula(
    glyph="T_{ag}^{LL}",
    dimension=SECOND,
    source=JEAUGEY,
    increasing="link_latency message_bytes ranks",
    decreasing="link_bandwidth",
)
def low_latency_all_gather_time(message_bytes: Any, ranks: Any, link_bandwidth: Any, link_latency: Any) -> Any:
    """Time to gather n bytes on q ranks by the low-latency protocol: 2 (q-1)/q n / BW + log2(q) alpha.

    Assumes: a flag with every word of its size; as many bytes as in a ring, as many hops as in a tree.

    Source: Jeaugey 2020, LL: 4 bytes of data and 4 of flag in one store; the hops of recursive doubling in Thakur
    et al. 2005.

    >>> from sympy import symbols
    >>> low_latency_all_gather_time(*symbols("n q BW alpha"))
    alpha*log2(q) + 2*n*ring_share(q)/BW
    """
    return low_latency_time(ring_share(ranks) * message_bytes / link_bandwidth, log2(ranks) * link_latency)


@formula(
    glyph="T_{ag}",
    dimension=SECOND,
    source=HU,
    increasing="half_bytes link_latency message_bytes ranks",
    decreasing="link_bandwidth",
)
def all_gather_time(message_bytes: Any, ranks: Any, link_bandwidth: Any, link_latency: Any, half_bytes: Any) -> Any:
    """Time until each of q ranks holds all n bytes, of which each had n / q, by the better protocol.

    Assumes: `message_bytes` is the gathered size; equal parts; the library knows which protocol is better.

    Source: Hu et al. 2025: NCCL chooses the protocol of each call by its size; no literature form is faster than
    `simple_all_gather_time`.

    >>> from sympy import symbols
    >>> all_gather_time(*symbols("n q BW alpha half"))  # doctest: +NORMALIZE_WHITESPACE
    Min(alpha*log2(q) + 2*n*ring_share(q)/BW, Max((half + n)*ring_share(q)/BW, alpha*log2(q) + n*ring_share(q)/BW))
    """
    return Min(
        simple_all_gather_time(message_bytes, ranks, link_bandwidth, link_latency, half_bytes),
        low_latency_all_gather_time(message_bytes, ranks, link_bandwidth, link_latency),
    )


@formula(
    glyph="T_{rs}",
    dimension=SECOND,
    source=HU,
    increasing="half_bytes link_latency message_bytes ranks",
    decreasing="link_bandwidth",
)
def reduce_scatter_time(message_bytes: Any, ranks: Any, link_bandwidth: Any, link_latency: Any, half_bytes: Any) -> Any:
    """Time until each of q ranks holds its n / q bytes of a sum of n bytes, by the better protocol.

    Assumes: `message_bytes` is the size before scattering; adding is hidden behind the transfer.

    Source: derivation: `all_gather_time` run backwards: recursive halving in Thakur et al. 2005.

    >>> from sympy import symbols
    >>> reduce_scatter_time(*symbols("n q BW alpha half"))  # doctest: +NORMALIZE_WHITESPACE
    Min(alpha*log2(q) + 2*n*ring_share(q)/BW, Max((half + n)*ring_share(q)/BW, alpha*log2(q) + n*ring_share(q)/BW))
    """
    return all_gather_time(message_bytes, ranks, link_bandwidth, link_latency, half_bytes)


@formula(
    glyph="T_{ag}^{u}",
    dimension=SECOND,
    source=HU,
    increasing="message_bytes ranks scale_up_half_bytes scale_up_latency",
    decreasing="scale_up_bandwidth scale_up_efficiency",
)
def scale_up_all_gather_time(message_bytes: Any, ranks: Any) -> Any:
    """Time of an all-gather of n bytes in total among q ranks of one scale-up domain.

    Assumes: as `all_gather_time`.

    Source: Hu et al. 2025, the better protocol, with the figures of the scale-up tier.

    >>> from sympy import symbols
    >>> scale_up_all_gather_time(*symbols("n q"))  # doctest: +NORMALIZE_WHITESPACE
    Min(2*n*ring_share(q)/(scale_up_bandwidth*scale_up_efficiency) + scale_up_latency*log2(q), Max((n +
    scale_up_half_bytes)*ring_share(q)/(scale_up_bandwidth*scale_up_efficiency),
    n*ring_share(q)/(scale_up_bandwidth*scale_up_efficiency) + scale_up_latency*log2(q)))
    """
    return all_gather_time(message_bytes, ranks, *SCALE_UP)


@formula(
    glyph="T_{rs}^{u}",
    dimension=SECOND,
    source=HU,
    increasing="message_bytes ranks scale_up_half_bytes scale_up_latency",
    decreasing="scale_up_bandwidth scale_up_efficiency",
)
def scale_up_reduce_scatter_time(message_bytes: Any, ranks: Any) -> Any:
    """Time of a reduce-scatter of n bytes among q ranks of one scale-up domain.

    Assumes: as `reduce_scatter_time`.

    Source: Hu et al. 2025, the better protocol, with the figures of the scale-up tier.

    >>> from sympy import symbols
    >>> scale_up_reduce_scatter_time(*symbols("n q")) == scale_up_all_gather_time(*symbols("n q"))
    True
    """
    return reduce_scatter_time(message_bytes, ranks, *SCALE_UP)


@formula(
    glyph="T_{ag}^{hier}",
    dimension=SECOND,
    source=THAKUR,
    increasing=(
        "message_bytes outer_ranks scale_out_half_bytes scale_out_latency scale_up_half_bytes scale_up_latency"
    ),
    decreasing="scale_out_bandwidth scale_out_efficiency scale_up_bandwidth scale_up_efficiency",
)
def hierarchical_all_gather_time(message_bytes: Any, inner_ranks: Any, outer_ranks: Any) -> Any:
    """Time of an all-gather of n bytes in total over q_o domains of q_u ranks.

    Each device first gathers its n / q_u bytes from its peers in the other domains, then all n inside, each tier by
    its better protocol: T_out(n / q_u, q_o) + T_up(n, q_u).

    Assumes: every device has its own share of the adapters; one step follows the other.

    Source: derivation: the all-gather of Thakur et al. 2005 in either tier.

    >>> from sympy import symbols
    >>> n, q_u, q_o = symbols("n q_u q_o")
    >>> outside = all_gather_time(n / q_u, q_o, *SCALE_OUT)
    >>> hierarchical_all_gather_time(n, q_u, q_o) == outside + scale_up_all_gather_time(n, q_u)
    True
    """
    outside = all_gather_time(message_bytes / inner_ranks, outer_ranks, *SCALE_OUT)
    return outside + all_gather_time(message_bytes, inner_ranks, *SCALE_UP)


@formula(
    glyph="T_{rs}^{hier}",
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
    >>> n, q_u, q_o = symbols("n q_u q_o")
    >>> hierarchical_reduce_scatter_time(n, q_u, q_o) == hierarchical_all_gather_time(n, q_u, q_o)
    True
    """
    inside = reduce_scatter_time(message_bytes, inner_ranks, *SCALE_UP)
    return inside + reduce_scatter_time(message_bytes / inner_ranks, outer_ranks, *SCALE_OUT)
