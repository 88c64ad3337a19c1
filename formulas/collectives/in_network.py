"""Collectives in which switches add and multicast, so that a rank's link carries its bytes once and not twice.

SHARP sums on the way up a tree of switches and multicasts the sum down. With NVLink SHARP each rank loads the sum of
its part from the switch, which reads all ranks' copies, and stores the result once, which the switch multicasts. The
bus bandwidth that tools report is defined by the bytes of a ring: here it may exceed the link's own rate.
"""

from __future__ import annotations

from typing import Any

from ..language.atoms import above_one, ring_share
from ..language.dimension import BANDWIDTH, SECOND
from ..language.formula import formula
from ..sources import KLENK, NCCL_TESTS, SHARP
from .tiers import SCALE_UP


@formula(
    glyph="T_{ar}^{sw}",
    dimension=SECOND,
    source=SHARP,
    increasing="half_bytes link_latency message_bytes ranks",
    decreasing="link_bandwidth switch_efficiency",
)
def in_network_all_reduce_time(
    message_bytes: Any,
    ranks: Any,
    link_bandwidth: Any,
    link_latency: Any,
    half_bytes: Any,
    switch_efficiency: Any,
) -> Any:
    """Time to sum n bytes in a tree of switches: [q > 1] ((n + half) / (eta_s BW) + 2 alpha).

    Assumes: small pieces, which go up and come down at once; switches add at eta_s of the links' rate; one latency up
    and one down, whatever q.

    Source: Graham et al. 2016 section 3: a rank sends its n bytes once and receives n. The bus bandwidth of large
    messages is 2 (q-1)/q eta_s BW, up to twice the link's rate.

    Reference only: reductions of switches beyond a scale-up domain, which no system of the catalogue describes.

    >>> from sympy import symbols
    >>> in_network_all_reduce_time(*symbols("n q BW alpha half eta"))
    (2*alpha + (half + n)/(BW*eta))*above_one(q)
    """
    moved = (message_bytes + half_bytes) / (switch_efficiency * link_bandwidth)
    return above_one(ranks) * (moved + 2 * link_latency)


@formula(
    glyph="T_{ar}^{nvls}",
    dimension=SECOND,
    source=KLENK,
    increasing="half_bytes link_latency message_bytes",
    decreasing="link_bandwidth switch_efficiency",
)
def multimem_all_reduce_time(
    message_bytes: Any,
    ranks: Any,
    link_bandwidth: Any,
    link_latency: Any,
    half_bytes: Any,
    switch_efficiency: Any,
) -> Any:
    """Time to sum n bytes by loads that a switch reduces and stores that it multicasts (NVLink SHARP).

    [q > 1] ((n + n / q + half) / (eta_s BW) + 2 alpha).

    Assumes: each rank reduces 1/q of the bytes; loads and stores of pieces pass at once; the switch reads a rank's own
    copy as it reads the others'.

    Source: derivation after Klenk et al. 2020 section 3. A rank's link sends its n bytes to be added and n / q of
    results, and receives n / q of sums and n of results. The bus bandwidth of large messages is 2 (q-1)/(q+1) eta_s BW,
    above the link's rate from q = 4 on where eta_s is 1.

    >>> from sympy import symbols
    >>> multimem_all_reduce_time(symbols("n"), 8, symbols("BW"), 0, 0, 1)
    9*n/(8*BW)
    """
    moved = (message_bytes + message_bytes / ranks + half_bytes) / (switch_efficiency * link_bandwidth)
    return above_one(ranks) * (moved + 2 * link_latency)


@formula(
    glyph="T_{ar}^{nvls,u}",
    dimension=SECOND,
    source=KLENK,
    increasing="message_bytes scale_up_half_bytes scale_up_latency",
    decreasing="scale_up_bandwidth scale_up_efficiency switch_efficiency",
)
def scale_up_multimem_all_reduce_time(message_bytes: Any, ranks: Any, switch_efficiency: Any) -> Any:
    """Time to sum n bytes over q ranks of one scale-up domain whose switches reduce.

    Assumes: as `multimem_all_reduce_time`.

    Source: Klenk et al. 2020, with the figures of the scale-up tier.

    >>> from sympy import symbols
    >>> scale_up_multimem_all_reduce_time(symbols("n"), 1, symbols("eta"))
    0
    """
    return multimem_all_reduce_time(message_bytes, ranks, *SCALE_UP, switch_efficiency)


@formula(
    glyph="T_{rs}^{sw}",
    dimension=SECOND,
    source=KLENK,
    increasing="half_bytes link_latency message_bytes ranks",
    decreasing="link_bandwidth switch_efficiency",
)
def in_network_reduce_scatter_time(
    message_bytes: Any,
    ranks: Any,
    link_bandwidth: Any,
    link_latency: Any,
    half_bytes: Any,
    switch_efficiency: Any,
) -> Any:
    """Time of a reduce-scatter of n bytes whose sums a switch makes: [q > 1] ((n + half) / (eta_s BW) + alpha).

    Assumes: as `multimem_all_reduce_time`. It moves no fewer bytes than a ring, but in one hop.

    Source: derivation after Klenk et al. 2020 section 3: the first half of `multimem_all_reduce_time`: a link sends n
    and receives n / q.

    Reference only: a half of `multimem_all_reduce_time`; a prediction has sums in switches for all-reduces alone.

    >>> from sympy import symbols
    >>> in_network_reduce_scatter_time(*symbols("n q BW alpha half eta"))
    (alpha + (half + n)/(BW*eta))*above_one(q)
    """
    moved = (message_bytes + half_bytes) / (switch_efficiency * link_bandwidth)
    return above_one(ranks) * (moved + link_latency)


@formula(
    glyph="T_{ag}^{sw}",
    dimension=SECOND,
    source=KLENK,
    increasing="half_bytes link_latency message_bytes ranks",
    decreasing="link_bandwidth switch_efficiency",
)
def in_network_all_gather_time(
    message_bytes: Any,
    ranks: Any,
    link_bandwidth: Any,
    link_latency: Any,
    half_bytes: Any,
    switch_efficiency: Any,
) -> Any:
    """Time of an all-gather of n bytes in total that a switch multicasts: [q > 1] ((n + half) / (eta_s BW) + alpha).

    Assumes: as `multimem_all_reduce_time`; a rank's own part comes back to it too.

    Source: derivation after Klenk et al. 2020 section 3: the second half of `multimem_all_reduce_time`: a link sends
    n / q and receives n.

    Reference only: a half of `multimem_all_reduce_time`; a prediction has sums in switches for all-reduces alone.

    >>> from sympy import symbols
    >>> in_network_all_gather_time(symbols("n"), 1, *symbols("BW alpha half eta"))
    0
    """
    return in_network_reduce_scatter_time(
        message_bytes, ranks, link_bandwidth, link_latency, half_bytes, switch_efficiency
    )


@formula(
    glyph="B_{bus}",
    dimension=BANDWIDTH,
    source=NCCL_TESTS,
    increasing="message_bytes ranks",
    decreasing="collective_time",
    curvature="concave",
)
def all_reduce_bus_bandwidth(message_bytes: Any, ranks: Any, collective_time: Any) -> Any:
    """Bus bandwidth of an all-reduce of n bytes that took T_coll: 2 (q-1)/q n / T_coll.

    Assumes: the definition of NCCL's tests: what a ring's links would carry. It is at most the link's rate if ranks
    add; with switches that add it may exceed that.

    Source: NCCL tests, performance, all-reduce.

    Reference only: the figure that benchmarks of collectives report, for comparing it with a time.

    >>> all_reduce_bus_bandwidth(8, 8, 1)
    14
    """
    return 2 * ring_share(ranks) * message_bytes / collective_time
