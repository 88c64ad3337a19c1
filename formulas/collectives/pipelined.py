"""All-gather and reduce-scatter over two tiers, with both tiers at work at once."""

from __future__ import annotations

from typing import Any

from ..language.atoms import Min, log2
from ..language.dimension import SECOND
from ..language.formula import formula
from ..sources import THAKUR
from .gather import hierarchical_all_gather_time, hierarchical_reduce_scatter_time
from .protocols import better_protocol_time
from .tiers import SCALE_OUT, SCALE_UP, streaming_time


@formula(
    glyph="T_{ag}^{pipe}",
    dimension=SECOND,
    source=THAKUR,
    increasing="message_bytes outer_ranks scale_out_half_bytes scale_out_latency scale_up_half_bytes scale_up_latency",
    decreasing="scale_out_bandwidth scale_out_efficiency scale_up_bandwidth scale_up_efficiency",
)
def pipelined_all_gather_time(message_bytes: Any, inner_ranks: Any, outer_ranks: Any) -> Any:
    """Time to gather n bytes over q_o domains of q_u ranks in pieces, both tiers at work at once.

    S(x, y) = max((q_u-1)/q_u (n + x) / BW_u, (q_o-1)/q_o (n / q_u + y) / BW_o) and H = log2(q_u) alpha_u + log2(q_o)
    alpha_o make min(max(S(half_u, half_o), S(0, 0) + H), 2 S(0, 0) + H).

    Assumes: the steps of `hierarchical_all_gather_time`, each on a piece while the next follows; small pieces; every
    device has its own share of the adapters; one protocol in both tiers.

    Source: derivation: half of `pipelined_all_reduce_time`, of which it is the second part.

    >>> from sympy import symbols
    >>> pipelined_all_gather_time(symbols("n"), 1, 1)
    0
    """
    (_, up_latency, up_half), (_, out_latency, out_half) = SCALE_UP, SCALE_OUT
    part = message_bytes / inner_ranks
    return better_protocol_time(
        streaming_time(message_bytes + up_half, part + out_half, inner_ranks, outer_ranks),
        streaming_time(message_bytes, part, inner_ranks, outer_ranks),
        log2(inner_ranks) * up_latency + log2(outer_ranks) * out_latency,
    )


@formula(
    glyph="T_{rs}^{pipe}",
    dimension=SECOND,
    source=THAKUR,
    increasing="message_bytes outer_ranks scale_out_half_bytes scale_out_latency scale_up_half_bytes scale_up_latency",
    decreasing="scale_out_bandwidth scale_out_efficiency scale_up_bandwidth scale_up_efficiency",
)
def pipelined_reduce_scatter_time(message_bytes: Any, inner_ranks: Any, outer_ranks: Any) -> Any:
    """Time to sum n bytes over q_o domains of q_u ranks, each keeping its share, both tiers at work at once.

    Assumes: as `pipelined_all_gather_time`; adding is hidden behind the transfer.

    Source: derivation: the all-gather run backwards; the first part of `pipelined_all_reduce_time`.

    >>> from sympy import symbols
    >>> pipelined_reduce_scatter_time(symbols("n"), 1, 1)
    0
    """
    return pipelined_all_gather_time(message_bytes, inner_ranks, outer_ranks)


@formula(
    glyph="T_{ag}^{uo}",
    dimension=SECOND,
    source=THAKUR,
    increasing="message_bytes outer_ranks scale_out_half_bytes scale_out_latency scale_up_half_bytes scale_up_latency",
    decreasing="scale_out_bandwidth scale_out_efficiency scale_up_bandwidth scale_up_efficiency",
)
def group_all_gather_time(message_bytes: Any, inner_ranks: Any, outer_ranks: Any) -> Any:
    """Time to gather n bytes over q_o domains of q_u ranks by the better of one tier after the other and both at once.

    Assumes: the library knows which is better.

    Source: Thakur et al. 2005: the algorithm is chosen by size.

    >>> from sympy import symbols
    >>> group_all_gather_time(symbols("n"), 1, 1)
    0
    """
    return Min(
        hierarchical_all_gather_time(message_bytes, inner_ranks, outer_ranks),
        pipelined_all_gather_time(message_bytes, inner_ranks, outer_ranks),
    )


@formula(
    glyph="T_{rs}^{uo}",
    dimension=SECOND,
    source=THAKUR,
    increasing="message_bytes outer_ranks scale_out_half_bytes scale_out_latency scale_up_half_bytes scale_up_latency",
    decreasing="scale_out_bandwidth scale_out_efficiency scale_up_bandwidth scale_up_efficiency",
)
def group_reduce_scatter_time(message_bytes: Any, inner_ranks: Any, outer_ranks: Any) -> Any:
    """Time to sum and scatter n bytes over q_o domains of q_u ranks, one tier after the other or both at once.

    Assumes: the library knows which is better; adding is hidden behind the transfer.

    Source: Thakur et al. 2005: the algorithm is chosen by size.

    >>> from sympy import symbols
    >>> group_reduce_scatter_time(symbols("n"), 1, 1)
    0
    """
    return Min(
        hierarchical_reduce_scatter_time(message_bytes, inner_ranks, outer_ranks),
        pipelined_reduce_scatter_time(message_bytes, inner_ranks, outer_ranks),
    )
