"""All-reduces of a serving software's own: one kernel that reads its peers' buffers through the scale-up links.

A library of collectives hands a message on from rank to rank. Where every device can read every other's memory, one
kernel can meet its peers at a barrier and read what they have: all of it at once (one shot), or its part, whose sum the
others then read (two shots). The latency no longer grows with the number of ranks.
"""

from __future__ import annotations

from typing import Any

from ..language.atoms import Min, above_one, ceil_div, less_one, ring_share
from ..language.dimension import SECOND
from ..language.formula import formula
from ..language.symbols import own_limit_bytes, peer_efficiency, peer_latency, scale_up_bandwidth
from ..sources.software import VLLM_ALL_REDUCE


@formula(
    glyph="T_{ar}^{1}",
    dimension=SECOND,
    source=VLLM_ALL_REDUCE,
    increasing="link_latency message_bytes ranks",
    decreasing="link_bandwidth",
)
def one_shot_all_reduce_time(message_bytes: Any, ranks: Any, link_bandwidth: Any, link_latency: Any) -> Any:
    """Time to sum n bytes over q ranks in one kernel that reads whole buffers: [q > 1] alpha + (q - 1) n / BW.

    Assumes: every rank reads q - 1 buffers of n bytes at BW; alpha is the start of the kernel and its barrier.

    Source: vLLM, csrc/custom_all_reduce.cuh: cross_device_reduce_1stage.

    >>> from sympy import symbols
    >>> one_shot_all_reduce_time(*symbols("n q BW alpha"))
    alpha*above_one(q) + n*less_one(q)/BW
    """
    return above_one(ranks) * link_latency + less_one(ranks) * message_bytes / link_bandwidth


@formula(
    glyph="T_{ar}^{2}",
    dimension=SECOND,
    source=VLLM_ALL_REDUCE,
    increasing="link_latency message_bytes ranks",
    decreasing="link_bandwidth",
)
def two_shot_all_reduce_time(message_bytes: Any, ranks: Any, link_bandwidth: Any, link_latency: Any) -> Any:
    """Time to sum n bytes over q ranks in one kernel, part by part: 2 [q > 1] alpha + 2 (q - 1)/q n / BW.

    Assumes: every rank sums its q-th part, meets the others again, and reads their parts; the second barrier takes as
    long as start and first one.

    Source: vLLM, csrc/custom_all_reduce.cuh: cross_device_reduce_2stage, a reduce-scatter and an all-gather.

    >>> from sympy import symbols
    >>> two_shot_all_reduce_time(*symbols("n q BW alpha"))
    2*alpha*above_one(q) + 2*n*ring_share(q)/BW
    """
    return 2 * (above_one(ranks) * link_latency + ring_share(ranks) * message_bytes / link_bandwidth)


@formula(
    glyph="T_{ar}^{p}",
    dimension=SECOND,
    source=VLLM_ALL_REDUCE,
    increasing="message_bytes peer_latency ranks",
    decreasing="peer_efficiency scale_up_bandwidth",
)
def peer_all_reduce_time(message_bytes: Any, ranks: Any) -> Any:
    """Time to sum n bytes over q ranks of one scale-up domain in one kernel: the better of one shot and two.

    Assumes: the software knows which is better; links join every pair.

    Source: vLLM, csrc/custom_all_reduce.cuh, chooses by size and ranks. Measured for 2, 4 and 8 ranks, 256 B to 4 MiB:
    benchmarks/calibration/peer.py.

    >>> from sympy import symbols
    >>> peer_all_reduce_time(*symbols("n q"))  # doctest: +NORMALIZE_WHITESPACE
    Min(n*less_one(q)/(peer_efficiency*scale_up_bandwidth) + peer_latency*above_one(q),
    2*n*ring_share(q)/(peer_efficiency*scale_up_bandwidth) + 2*peer_latency*above_one(q))
    """
    link = scale_up_bandwidth * peer_efficiency
    return Min(
        one_shot_all_reduce_time(message_bytes, ranks, link, peer_latency),
        two_shot_all_reduce_time(message_bytes, ranks, link, peer_latency),
    )


@formula(
    glyph="T_{ar}^{own}",
    dimension=SECOND,
    source=VLLM_ALL_REDUCE,
    increasing="collective_time inner_ranks message_bytes outer_ranks peer_latency",
    decreasing="own_limit_bytes peer_efficiency scale_up_bandwidth",
)
def own_all_reduce_time(collective_time: Any, message_bytes: Any, inner_ranks: Any, outer_ranks: Any) -> Any:
    """Time of an all-reduce of software that has a kernel for it: the faster of library and kernel.

    min(T, T_peer + ([q_o > 1] + [n > n_p]) T): a group of one domain may use the kernel, for messages of up to n_p
    bytes.

    Assumes: the software leaves to the library what the library does faster, every group that spans domains, and all
    messages over its limit, `own_limit_bytes`.

    Source: derivation: `peer_all_reduce_time` inside one domain, the library's time else.

    >>> from sympy import symbols
    >>> T = symbols("T", positive=True)
    >>> own_all_reduce_time(T, own_limit_bytes, 4, 1).subs(own_limit_bytes, 8) == Min(T, peer_all_reduce_time(8, 4))
    True
    """
    own = peer_all_reduce_time(message_bytes, inner_ranks)
    left = above_one(outer_ranks) + above_one(ceil_div(message_bytes, own_limit_bytes))
    return Min(collective_time, own + left * collective_time)
