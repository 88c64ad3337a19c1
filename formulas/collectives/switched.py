"""All-reduces where the switch of a scale-up domain can add: the faster of rings, trees and switch."""

from __future__ import annotations

from typing import Any

from ..language.atoms import Min, above_one
from ..language.dimension import SECOND
from ..language.formula import formula
from ..language.symbols import switch_efficiency
from ..sources import KLENK
from .all_reduce import group_all_reduce_time, scale_up_all_reduce_time
from .in_network import scale_up_multimem_all_reduce_time


@formula(
    glyph="T_{ar}^{us}",
    dimension=SECOND,
    source=KLENK,
    increasing="message_bytes scale_up_half_bytes scale_up_latency",
    decreasing="scale_up_bandwidth scale_up_efficiency switch_efficiency",
)
def scale_up_switched_all_reduce_time(message_bytes: Any, ranks: Any) -> Any:
    """Time to sum n bytes over q ranks of one domain whose switch adds: the faster of end points and switch.

    Assumes: the library knows which is faster. Small messages go by words with flags, which a switch does not add.

    Source: derivation: the algorithm is chosen by size (Thakur et al. 2005), the switch as by Klenk et al. 2020.

    >>> from sympy import symbols
    >>> n, q = symbols("n q")
    >>> each = scale_up_all_reduce_time(n, q), scale_up_multimem_all_reduce_time(n, q, switch_efficiency)
    >>> scale_up_switched_all_reduce_time(n, q) == Min(*each)
    True
    """
    return Min(
        scale_up_all_reduce_time(message_bytes, ranks),
        scale_up_multimem_all_reduce_time(message_bytes, ranks, switch_efficiency),
    )


@formula(
    glyph="T_{ar}^{uso}",
    dimension=SECOND,
    source=KLENK,
    increasing="message_bytes outer_ranks scale_out_half_bytes scale_out_latency scale_up_half_bytes scale_up_latency",
    decreasing="scale_out_bandwidth scale_out_efficiency scale_up_bandwidth scale_up_efficiency switch_efficiency",
)
def group_switched_all_reduce_time(message_bytes: Any, inner_ranks: Any, outer_ranks: Any) -> Any:
    """Time to sum n bytes over q_o domains of q_u ranks, where the switch of a domain adds.

    min(T_group, T_switch + [q_o > 1] T_group): a group of one domain may use its switch.

    Assumes: a group of several domains goes as without: its time is mostly that of the adapters, which the switch of a
    domain does not relieve. The reduction of each domain by its switch, which NCCL can do then too, is left out.

    Source: derivation: as `scale_up_switched_all_reduce_time` inside one domain, `group_all_reduce_time` else.

    >>> from sympy import symbols
    >>> n, q = symbols("n q")
    >>> switch = scale_up_multimem_all_reduce_time(n, q, switch_efficiency)
    >>> group_switched_all_reduce_time(n, q, 1) == Min(group_all_reduce_time(n, q, 1), switch)
    True
    """
    group = group_all_reduce_time(message_bytes, inner_ranks, outer_ranks)
    switch = scale_up_multimem_all_reduce_time(message_bytes, inner_ranks, switch_efficiency)
    return Min(group, switch + above_one(outer_ranks) * group)
