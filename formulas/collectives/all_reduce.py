"""All-reduce: every rank ends with the sum of all ranks' bytes."""

from __future__ import annotations

from typing import Any

from ..language.atoms import Max, Min, above_one, less_one, log2, ring_share
from ..language.dimension import BYTE, SECOND
from ..language.formula import formula
from ..sources import HU, JEAUGEY, PATARASUK, SANDERS, THAKUR
from .gather import all_gather_time, reduce_scatter_time
from .protocols import better_protocol_time, low_latency_time, simple_time
from .tiers import SCALE_OUT, SCALE_UP, streaming_time


@formula(
    glyph="T_{ar}^{ring}",
    dimension=SECOND,
    source=PATARASUK,
    increasing="half_bytes link_latency message_bytes ranks",
    decreasing="link_bandwidth",
)
def ring_all_reduce_time(
    message_bytes: Any, ranks: Any, link_bandwidth: Any, link_latency: Any, half_bytes: Any
) -> Any:
    """Time to sum n bytes over a ring of q ranks: 2 (q-1)/q (n + half) / BW + 2 (q-1) alpha.

    Assumes: q equal parts; each rank sends and receives at once; adding is hidden behind the transfer.

    Source: Patarasuk and Yuan 2009: a reduce-scatter and an all-gather, each q - 1 steps of n / q bytes.

    Reference only: the literature's form, which no prediction needs: `all_reduce_time` moves the same bytes in no more
    hops.

    >>> from sympy import symbols
    >>> ring_all_reduce_time(*symbols("n q BW alpha half"))
    2*alpha*less_one(q) + 2*(half + n)*ring_share(q)/BW
    """
    return 2 * ring_share(ranks) * (message_bytes + half_bytes) / link_bandwidth + 2 * less_one(ranks) * link_latency


@formula(
    glyph="T_{ar}^{tree}",
    dimension=SECOND,
    source=SANDERS,
    increasing="half_bytes link_latency message_bytes ranks",
    decreasing="link_bandwidth",
)
def tree_all_reduce_time(
    message_bytes: Any, ranks: Any, link_bandwidth: Any, link_latency: Any, half_bytes: Any
) -> Any:
    """Time to sum n bytes up two binary trees of q ranks and send it down: 2 [q > 1] (n + half) / BW + 2 log2(q) alpha.

    Assumes: half the bytes in each tree, inner ranks of one being leaves of the other; small pieces.

    Source: Sanders, Speck and Traff 2009, reduction and broadcast, in the limit of small pieces that stream, where each
    hop delays the first piece once.

    Reference only: the literature's form, which no prediction needs: `all_reduce_time` makes the same hops with no more
    bytes.

    >>> from sympy import symbols
    >>> tree_all_reduce_time(*symbols("n q BW alpha half"))
    2*alpha*log2(q) + 2*(half + n)*above_one(q)/BW
    """
    return 2 * above_one(ranks) * (message_bytes + half_bytes) / link_bandwidth + 2 * log2(ranks) * link_latency


@formula(
    glyph="T_{ar}^{S}",
    dimension=SECOND,
    source=THAKUR,
    increasing="half_bytes link_latency message_bytes ranks",
    decreasing="link_bandwidth",
)
def simple_all_reduce_time(
    message_bytes: Any, ranks: Any, link_bandwidth: Any, link_latency: Any, half_bytes: Any
) -> Any:
    """Time to sum n bytes over q ranks by the plain protocol, in the bytes of a ring and the hops of a tree.

    2 (q-1)/q n / BW + max(2 (q-1)/q half / BW, 2 log2(q) alpha).

    Assumes: adding is hidden behind the transfer; hops pass while buffers fill.

    Source: Thakur et al. 2005, Rabenseifner's halving and doubling, 2 (q-1)/q n / BW + 2 log2(q) alpha, which neither
    `ring_all_reduce_time` nor `tree_all_reduce_time` outruns; the start-up beside the hops, not after them, as in
    `simple_all_gather_time`.

    >>> from sympy import symbols
    >>> simple_all_reduce_time(*symbols("n q BW alpha half"))
    Max(2*(half + n)*ring_share(q)/BW, 2*alpha*log2(q) + 2*n*ring_share(q)/BW)
    """
    share = 2 * ring_share(ranks) / link_bandwidth
    return simple_time(share * (message_bytes + half_bytes), share * message_bytes, 2 * log2(ranks) * link_latency)


@formula(
    glyph="T_{ar}^{LL}",
    dimension=SECOND,
    source=JEAUGEY,
    increasing="link_latency message_bytes ranks",
    decreasing="link_bandwidth",
)
def low_latency_all_reduce_time(message_bytes: Any, ranks: Any, link_bandwidth: Any, link_latency: Any) -> Any:
    """Time to sum n bytes over q ranks by the low-latency protocol: 4 (q-1)/q n / BW + 2 log2(q) alpha.

    Assumes: a flag with every word of its size; the bytes of a ring and the hops of a tree.

    Source: Jeaugey 2020, LL: 4 bytes of data and 4 of flag in one store, which need no fence; Thakur et al. 2005,
    Rabenseifner's halving and doubling.

    >>> from sympy import symbols
    >>> low_latency_all_reduce_time(*symbols("n q BW alpha"))
    2*alpha*log2(q) + 4*n*ring_share(q)/BW
    """
    return low_latency_time(2 * ring_share(ranks) * message_bytes / link_bandwidth, 2 * log2(ranks) * link_latency)


@formula(
    glyph="T_{ar}",
    dimension=SECOND,
    source=HU,
    increasing="half_bytes link_latency message_bytes ranks",
    decreasing="link_bandwidth",
)
def all_reduce_time(message_bytes: Any, ranks: Any, link_bandwidth: Any, link_latency: Any, half_bytes: Any) -> Any:
    """Time to sum n bytes over q ranks by the better protocol.

    Assumes: the library knows which is better, as NCCL tries to. At half = 0 the plain one always is.

    Source: Hu et al. 2025: NCCL chooses algorithm and protocol of each call by its size. It is
    `reduce_scatter_time` and `all_gather_time` together.

    >>> from sympy import symbols
    >>> all_reduce_time(*symbols("n q BW alpha half"))  # doctest: +NORMALIZE_WHITESPACE
    Min(2*alpha*log2(q) + 4*n*ring_share(q)/BW,
    Max(2*(half + n)*ring_share(q)/BW, 2*alpha*log2(q) + 2*n*ring_share(q)/BW))
    """
    return Min(
        simple_all_reduce_time(message_bytes, ranks, link_bandwidth, link_latency, half_bytes),
        low_latency_all_reduce_time(message_bytes, ranks, link_bandwidth, link_latency),
    )


@formula(
    glyph="n^{*}",
    dimension=BYTE,
    source=THAKUR,
)
def ring_tree_crossover_bytes(ranks: Any, link_bandwidth: Any, link_latency: Any) -> Any:
    """Size at which ring and tree all-reduce cost the same: n + half = q (q - 1 - log2(q)) alpha BW.

    Assumes: `half_bytes` is included: the message itself is smaller by it. Smaller messages go by tree. At one and
    two ranks the result is 0: the ring takes as many hops and sends no more.

    Source: derivation: the tree sends 2 (n + half) / q more bytes, the ring makes 2 (q - 1 - log2(q)) more hops.

    Reference only: for comparing the literature's forms; a prediction takes the better protocol, `all_reduce_time`.

    >>> from sympy import symbols
    >>> ring_tree_crossover_bytes(*symbols("q BW alpha"))
    BW*alpha*q*(less_one(q) - log2(q))
    """
    return ranks * (less_one(ranks) - log2(ranks)) * link_latency * link_bandwidth


@formula(
    glyph=r"\underline{T}_{ar}",
    dimension=SECOND,
    source=PATARASUK,
    increasing="message_bytes ranks",
    decreasing="link_bandwidth",
    curvature="concave",
)
def all_reduce_lower_bound_time(message_bytes: Any, ranks: Any, link_bandwidth: Any) -> Any:
    """Time below which no all-reduce among end points can go: 2 (q-1)/q n / BW.

    Assumes: nothing adds inside the network; one link of `link_bandwidth` a rank and direction.

    Source: Patarasuk and Yuan 2009, lower bound: some rank must send 2 (q-1)/q n bytes.

    Reference only: a bound, to which tests hold every form of an all-reduce.

    >>> from sympy import symbols
    >>> all_reduce_lower_bound_time(*symbols("n q BW"))
    2*n*ring_share(q)/BW
    """
    return 2 * ring_share(ranks) * message_bytes / link_bandwidth


@formula(
    glyph="T_{ar}^{u}",
    dimension=SECOND,
    source=HU,
    increasing="message_bytes ranks scale_up_half_bytes scale_up_latency",
    decreasing="scale_up_bandwidth scale_up_efficiency",
)
def scale_up_all_reduce_time(message_bytes: Any, ranks: Any) -> Any:
    """Time to sum n bytes over q ranks of one scale-up domain, by the better protocol.

    Assumes: as `all_reduce_time`; no reduction in the switch.

    Source: Hu et al. 2025, the better protocol, with the figures of the scale-up tier.

    >>> from sympy import symbols
    >>> scale_up_all_reduce_time(*symbols("n q"))  # doctest: +NORMALIZE_WHITESPACE
    Min(4*n*ring_share(q)/(scale_up_bandwidth*scale_up_efficiency) + 2*scale_up_latency*log2(q), Max(2*(n +
    scale_up_half_bytes)*ring_share(q)/(scale_up_bandwidth*scale_up_efficiency),
    2*n*ring_share(q)/(scale_up_bandwidth*scale_up_efficiency) + 2*scale_up_latency*log2(q)))
    """
    return all_reduce_time(message_bytes, ranks, *SCALE_UP)


@formula(
    glyph="T_{ar}^{hier}",
    dimension=SECOND,
    source=THAKUR,
    increasing=(
        "message_bytes outer_ranks scale_out_half_bytes scale_out_latency scale_up_half_bytes scale_up_latency"
    ),
    decreasing="scale_out_bandwidth scale_out_efficiency scale_up_bandwidth scale_up_efficiency",
)
def hierarchical_all_reduce_time(message_bytes: Any, inner_ranks: Any, outer_ranks: Any) -> Any:
    """Time to sum n bytes over q_o domains of q_u ranks, one tier after the other.

    Reduce-scatter inside, all-reduce of the n / q_u bytes of each device between domains, all-gather inside, each by
    its better protocol: T_rs,up(n, q_u) + T_ar,out(n / q_u, q_o) + T_ag,up(n, q_u).

    Assumes: every device has its own share of the adapters, so that q_u all-reduces run side by side.

    Source: derivation: the all-reduce by reduce-scatter and all-gather of Thakur et al. 2005, split between tiers.

    >>> from sympy import symbols
    >>> n, q_u, q_o = symbols("n q_u q_o")
    >>> inside = reduce_scatter_time(n, q_u, *SCALE_UP) + all_gather_time(n, q_u, *SCALE_UP)
    >>> hierarchical_all_reduce_time(n, q_u, q_o) == inside + all_reduce_time(n / q_u, q_o, *SCALE_OUT)
    True
    """
    inside = reduce_scatter_time(message_bytes, inner_ranks, *SCALE_UP)
    between = all_reduce_time(message_bytes / inner_ranks, outer_ranks, *SCALE_OUT)
    return inside + between + all_gather_time(message_bytes, inner_ranks, *SCALE_UP)


@formula(
    glyph="T_{ar}^{flat}",
    dimension=SECOND,
    source=PATARASUK,
    increasing=(
        "message_bytes outer_ranks scale_out_half_bytes scale_out_latency scale_up_half_bytes scale_up_latency"
    ),
    decreasing="scale_out_bandwidth scale_out_efficiency scale_up_bandwidth scale_up_efficiency",
)
def flat_ring_all_reduce_time(message_bytes: Any, inner_ranks: Any, outer_ranks: Any) -> Any:
    """Time to sum n bytes over all q = q_u q_o ranks by q_u parallel rings, whose slowest link binds.

    2 (q-1)/q max([q_u > 1] (n + half) / BW_u, [q_o > 1] (n / q_u + half) / BW_o)
    + 2 q_o (q_u-1) alpha_u + 2 (q_o - 1 + [q_u > 1] [q_o > 1]) alpha_o.

    Assumes: ring i of n / q_u bytes enters every domain by the adapter of device i and leaves by its neighbour's, so
    that each adapter carries one ring; scale-up links are charged with all q_u rings, one too many if the group spans
    domains. The slowest part goes round twice, but for two hops inside a domain, which are charged as well.

    Source: derivation: a ring sends 2 (q-1)/q of its bytes over every link (Patarasuk and Yuan 2009).

    Reference only: rings that ignore the tiers, for comparison; a prediction takes `group_all_reduce_time`, never
    slower.

    >>> from sympy import symbols
    >>> flat_ring_all_reduce_time(*symbols("n q_u q_o"))  # doctest: +NORMALIZE_WHITESPACE
    2*q_o*scale_up_latency*less_one(q_u) + 2*scale_out_latency*(above_one(q_o)*above_one(q_u) + less_one(q_o)) +
    2*ring_share(q_o*q_u)*Max((n/q_u +
    scale_out_half_bytes)*above_one(q_o)/(scale_out_bandwidth*scale_out_efficiency), (n +
    scale_up_half_bytes)*above_one(q_u)/(scale_up_bandwidth*scale_up_efficiency))
    """
    (up, up_latency, up_half), (out, out_latency, out_half) = SCALE_UP, SCALE_OUT
    inside = above_one(inner_ranks) * (message_bytes + up_half) / up
    between = above_one(outer_ranks) * (message_bytes / inner_ranks + out_half) / out
    crossings = less_one(outer_ranks) + above_one(inner_ranks) * above_one(outer_ranks)
    hops = outer_ranks * less_one(inner_ranks) * up_latency + crossings * out_latency
    return 2 * ring_share(inner_ranks * outer_ranks) * Max(inside, between) + 2 * hops


@formula(
    glyph="T_{ar}^{trees}",
    dimension=SECOND,
    source=SANDERS,
    increasing=(
        "message_bytes outer_ranks scale_out_half_bytes scale_out_latency scale_up_half_bytes scale_up_latency"
    ),
    decreasing="scale_out_bandwidth scale_out_efficiency scale_up_bandwidth scale_up_efficiency",
)
def flat_tree_all_reduce_time(message_bytes: Any, inner_ranks: Any, outer_ranks: Any) -> Any:
    """Time to sum n bytes over q_o domains of q_u ranks by q_u parallel double trees, whose slowest link binds.

    2 max([q_u > 1] (n + half) / BW_u, [q_o > 1] (n / q_u + half) / BW_o) + 2 log2(q_u) alpha_u + 2 log2(q_o) alpha_o.

    Assumes: tree i of n / q_u bytes leaves every domain by the adapter of device i, its trunk, with a tree inside;
    small pieces, which keep both tiers busy at once.

    Source: derivation: a double tree sends its bytes up and down every link once (Sanders, Speck and Traff 2009).

    Reference only: trees that ignore the tiers, for comparison; a prediction takes `group_all_reduce_time`, never
    slower.

    >>> from sympy import symbols
    >>> flat_tree_all_reduce_time(*symbols("n q_u q_o"))  # doctest: +NORMALIZE_WHITESPACE
    2*scale_out_latency*log2(q_o) + 2*scale_up_latency*log2(q_u) + 2*Max((n/q_u +
    scale_out_half_bytes)*above_one(q_o)/(scale_out_bandwidth*scale_out_efficiency), (n +
    scale_up_half_bytes)*above_one(q_u)/(scale_up_bandwidth*scale_up_efficiency))
    """
    (up, up_latency, up_half), (out, out_latency, out_half) = SCALE_UP, SCALE_OUT
    inside = above_one(inner_ranks) * (message_bytes + up_half) / up
    between = above_one(outer_ranks) * (message_bytes / inner_ranks + out_half) / out
    return 2 * (Max(inside, between) + log2(inner_ranks) * up_latency + log2(outer_ranks) * out_latency)


@formula(
    glyph="T_{ar}^{pipe}",
    dimension=SECOND,
    source=THAKUR,
    increasing=(
        "message_bytes outer_ranks scale_out_half_bytes scale_out_latency scale_up_half_bytes scale_up_latency"
    ),
    decreasing="scale_out_bandwidth scale_out_efficiency scale_up_bandwidth scale_up_efficiency",
)
def pipelined_all_reduce_time(message_bytes: Any, inner_ranks: Any, outer_ranks: Any) -> Any:
    """Time to sum n bytes over q_o domains of q_u ranks in pieces, both tiers at work at once, by the better protocol.

    S(x, y) = 2 max((q_u-1)/q_u (n + x) / BW_u, (q_o-1)/q_o (n / q_u + y) / BW_o) and H = 2 log2(q_u) alpha_u +
    2 log2(q_o) alpha_o make min(max(S(half_u, half_o), S(0, 0) + H), 2 S(0, 0) + H).

    Assumes: the steps of `hierarchical_all_reduce_time`, each on a piece while the next follows; small pieces; every
    device has its own share of the adapters; one protocol in both tiers.

    Source: derivation: each tier carries the bytes of Thakur et al. 2005, and the slower one binds; protocols as in
    `all_reduce_time`. Two and four nodes reach it when measured (benchmarks/calibration). Neither flat rings nor flat
    trees outrun it.

    >>> from sympy import symbols
    >>> pipelined_all_reduce_time(*symbols("n q_u q_o"))  # doctest: +NORMALIZE_WHITESPACE
    Min(2*scale_out_latency*log2(q_o) + 2*scale_up_latency*log2(q_u) +
    4*Max(n*ring_share(q_u)/(scale_up_bandwidth*scale_up_efficiency),
    n*ring_share(q_o)/(q_u*scale_out_bandwidth*scale_out_efficiency)), Max(2*scale_out_latency*log2(q_o) +
    2*scale_up_latency*log2(q_u) + 2*Max(n*ring_share(q_u)/(scale_up_bandwidth*scale_up_efficiency),
    n*ring_share(q_o)/(q_u*scale_out_bandwidth*scale_out_efficiency)), 2*Max((n/q_u +
    scale_out_half_bytes)*ring_share(q_o)/(scale_out_bandwidth*scale_out_efficiency), (n +
    scale_up_half_bytes)*ring_share(q_u)/(scale_up_bandwidth*scale_up_efficiency))))
    """
    (_, up_latency, up_half), (_, out_latency, out_half) = SCALE_UP, SCALE_OUT
    part = message_bytes / inner_ranks
    return better_protocol_time(
        2 * streaming_time(message_bytes + up_half, part + out_half, inner_ranks, outer_ranks),
        2 * streaming_time(message_bytes, part, inner_ranks, outer_ranks),
        2 * (log2(inner_ranks) * up_latency + log2(outer_ranks) * out_latency),
    )


@formula(
    glyph="T_{ar}^{uo}",
    dimension=SECOND,
    source=THAKUR,
    increasing=(
        "message_bytes outer_ranks scale_out_half_bytes scale_out_latency scale_up_half_bytes scale_up_latency"
    ),
    decreasing="scale_out_bandwidth scale_out_efficiency scale_up_bandwidth scale_up_efficiency",
)
def group_all_reduce_time(message_bytes: Any, inner_ranks: Any, outer_ranks: Any) -> Any:
    """Time to sum n bytes over q_o domains of q_u ranks by the better of one tier after the other and both at once.

    Assumes: the library knows which is better.

    Source: Thakur et al. 2005, all-reduce: the algorithm is chosen by size. Flat rings and flat trees are left out,
    as `pipelined_all_reduce_time` is never slower. Inside one domain it is `scale_up_all_reduce_time`.

    >>> from sympy import symbols
    >>> n, q_u, q_o = symbols("n q_u q_o")
    >>> each = (hierarchical_all_reduce_time, pipelined_all_reduce_time)
    >>> group_all_reduce_time(n, q_u, q_o) == Min(*(time(n, q_u, q_o) for time in each))
    True
    >>> group_all_reduce_time(n, 1, 1)
    0
    """
    return Min(
        hierarchical_all_reduce_time(message_bytes, inner_ranks, outer_ranks),
        pipelined_all_reduce_time(message_bytes, inner_ranks, outer_ranks),
    )
