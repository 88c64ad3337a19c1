"""Collectives of a vendor's library inside one scale-up domain, with constants of measured calls of every size.

The forms of the literature say how many bytes and hops a collective needs; a library's calls cost more than these by
what they do to each piece of a message. One form with four constants holds for all-reduce, all-gather, reduce-scatter
and all-to-all, of 1 KB to 1 GB and of 2 to 8 ranks: they differ in their hops and in how often a link carries the
message.
"""

from __future__ import annotations

from typing import Any

from ..language.atoms import Max, Min, above_one, complement, less_one, log2, ring_share
from ..language.dimension import SECOND
from ..language.formula import formula
from ..language.symbols import (
    domain_efficiency,
    domain_hop_latency,
    domain_piece_latency,
    pair_crowding,
    scale_up_bandwidth,
)
from ..sources import HOCKNEY, HU, NCCL_TESTS
from .send import send_time
from .tiers import SCALE_OUT, outer_ranks_of


@formula(
    glyph="T_{dom}^{link}",
    dimension=SECOND,
    source=NCCL_TESTS,
    increasing="message_bytes",
    decreasing="domain_efficiency scale_up_bandwidth",
    curvature="affine",
)
def domain_transfer_time(message_bytes: Any) -> Any:
    """Time that a link of a scale-up domain needs for n bytes in a library's collective: n / (BW e).

    Assumes: a switch that does not block, or as many links to each peer as all of them need.

    Source: nccl-tests, PERFORMANCE.md: the bus bandwidth, which long messages reach whatever the number of ranks.

    >>> from sympy import symbols
    >>> domain_transfer_time(symbols("n"))
    n/(domain_efficiency*scale_up_bandwidth)
    """
    return message_bytes / (scale_up_bandwidth * domain_efficiency)


@formula(
    glyph="T_{dom}^{root}",
    dimension=SECOND,
    source=NCCL_TESTS,
    increasing="message_bytes ranks",
    decreasing="domain_efficiency scale_up_bandwidth",
)
def crowded_transfer_time(message_bytes: Any, ranks: Any) -> Any:
    """The same where no links but those of the host join the ranks: n / (BW e) (1 - x + x q (q - 1) / 2).

    Assumes: q (q - 1) / 2 pairs of ranks share one root complex, which takes part x of the time on a link; the rest is
    each rank's own. A pair alone is not crowded.

    Source: derivation; x is fitted. Two, four and eight L40S reach 20, 5 and 1.2 to 2 GB/s of bus bandwidth.

    >>> from sympy import symbols
    >>> crowded_transfer_time(symbols("n"), 2).subs(pair_crowding, 0)
    n/(domain_efficiency*scale_up_bandwidth)
    """
    crowd = complement(pair_crowding) + pair_crowding * ranks * less_one(ranks) / 2
    return crowd * domain_transfer_time(message_bytes)


@formula(
    glyph="T_{dom}^{cut}",
    dimension=SECOND,
    source=HU,
    increasing="domain_piece_latency transfer_time",
)
def cut_message_time(transfer_time: Any) -> Any:
    """Time that cutting a message into pieces adds to its transfer: min(2 T + c / 8, T / 2 + c / 2, T / 8 + 2 c).

    Assumes: three numbers of pieces to choose from, each four times the one before: few pieces, through which the last
    rank waits long, or many, of which each costs something.

    Source: derivation: k pieces that each cost a, and pass D stages before the next follows, add k a + D T / k; with
    k = D / 2, 2 D and 8 D and c = 4 a D. The best k of all would add sqrt(c T), of which these are tangents. NCCL
    chooses one of three protocols, and its chunks, by the size of each call (Hu et al. 2025).

    >>> from sympy import symbols
    >>> cut_message_time(symbols("T"))  # doctest: +NORMALIZE_WHITESPACE
    Min(T/8 + 2*domain_piece_latency, T/2 + domain_piece_latency/2, 2*T + domain_piece_latency/8)
    """
    c = domain_piece_latency
    return Min(2 * transfer_time + c / 8, transfer_time / 2 + c / 2, transfer_time / 8 + 2 * c)


@formula(
    glyph="T_{dom}",
    dimension=SECOND,
    source=HU,
    increasing="domain_hop_latency domain_piece_latency hops ranks rounds transfer_time",
)
def domain_collective_time(transfer_time: Any, ranks: Any, hops: Any, rounds: Any) -> Any:
    """Time of a library's collective over q ranks beside its start: [q > 1] T_cut + h hops + rounds (q - 1)/q T.

    T is the time that a link needs for the whole message. All-reduce goes round twice in 2 (q - 1) hops, all-gather and
    reduce-scatter once in q - 1, and an all-to-all once in two: every rank asks each peer, and each answers.

    Assumes: the library cuts a message as is best. The start is `domain_latency`, by `started_collective_time`.

    Source: derivation: `cut_message_time`; steps of a ring, and a base latency apart, as NCCL's own tuning counts them
    (Hu et al. 2025).

    >>> from sympy import symbols
    >>> T, q = symbols("T q")
    >>> domain_collective_time(T, q, *symbols("n_h r")).subs(cut_message_time(T), symbols("T_cut"))
    T*r*ring_share(q) + T_cut*above_one(q) + domain_hop_latency*n_h
    """
    moved = rounds * ring_share(ranks) * transfer_time
    return above_one(ranks) * cut_message_time(transfer_time) + hops * domain_hop_latency + moved


@formula(
    glyph="T_{dom}^{uo}",
    dimension=SECOND,
    source=HU,
    increasing="domain_hop_latency domain_piece_latency hops message_bytes outer_ranks rounds "
    "scale_out_half_bytes scale_out_latency transfer_time",
    decreasing="scale_out_bandwidth scale_out_efficiency",
)
def group_collective_time(
    transfer_time: Any, message_bytes: Any, inner_ranks: Any, outer_ranks: Any, hops: Any, rounds: Any
) -> Any:
    """Time of a library's collective over q_o domains of q_u ranks in pieces, both tiers at work at once.

    [q_u > 1] T_cut + h hops + min(max(S(half), S(0) + H), S(n / q_u) + H), with
    S(x) = rounds max((q_u - 1)/q_u T, (q_o - 1)/q_o (n / q_u + x) / BW_o) and H = rounds log2(q_o) alpha_o.

    Assumes: every device has its own share of the adapters; small pieces; between domains the better protocol. One tier
    after the other is never faster.

    Source: derivation: `domain_collective_time` inside the domains and `pipelined_all_reduce_time` between them. In one
    domain it is the former, between domains of one device the better protocol of the scale-out tier.

    >>> group_collective_time(4, 1, 4, 1, 6, 2) == domain_collective_time(4, 4, 6, 2)
    True
    """
    bandwidth, latency, half = SCALE_OUT
    inside, part = ring_share(inner_ranks) * transfer_time, message_bytes / inner_ranks
    wait = rounds * log2(outer_ranks) * latency

    def streamed(out_bytes: Any) -> Any:
        return rounds * Max(inside, ring_share(outer_ranks) * out_bytes / bandwidth)

    pieces = above_one(inner_ranks) * cut_message_time(transfer_time)
    simple = Max(streamed(part + half), streamed(part) + wait)
    return pieces + hops * domain_hop_latency + Min(simple, streamed(2 * part) + wait)


@formula(
    glyph="T_{send}^{dom}",
    dimension=SECOND,
    source=HOCKNEY,
    increasing="domain_hop_latency message_bytes ranks scale_out_latency stride",
    decreasing="domain_efficiency scale_out_bandwidth scale_out_efficiency scale_up_bandwidth scale_up_size",
)
def domain_send_time(message_bytes: Any, ranks: Any, stride: Any) -> Any:
    """Time of the slowest transfer between neighbours of a group, where a domain's collectives were measured.

    max([q > 1] (n / (BW e) + h), [q_o > 1] (n / BW_o + alpha_o)).

    Assumes: as `group_send_time`; a send is a step of a collective.

    Source: Hockney 1994, with the bandwidth and the hop of `domain_collective_time`.

    >>> from sympy import symbols
    >>> from ..language.symbols import scale_up_size
    >>> domain_send_time(symbols("n"), 4, 1).subs(scale_up_size, 4)
    Max(0, domain_hop_latency + n/(domain_efficiency*scale_up_bandwidth))
    """
    inside = domain_transfer_time(message_bytes) + domain_hop_latency
    between = send_time(message_bytes, *SCALE_OUT[:2], 0)
    return Max(above_one(ranks) * inside, above_one(outer_ranks_of(ranks, stride)) * between)
