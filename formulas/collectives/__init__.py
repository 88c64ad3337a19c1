"""Collectives in the alpha-beta model: one tier of links, then a scale-up tier inside a scale-out tier.

A transfer of n bytes takes `(n + half) / BW + alpha`: the attainable bandwidth is reached by halves at n = `half`
(Hockney 1994). A collective has its forms of the literature (`ring_`, `tree_`, `pairwise_`), the two protocols that
measured curves call for (`simple_`, `low_latency_`, see `protocols`) and the better of these, which has no prefix and
is what costs use. Bandwidths are per device and direction, and both directions work at once. Every collective of one
rank costs exactly nothing. Sizes are bytes, bandwidths bytes per second, latencies and results seconds.

The room may import `language` and `sources`.

Imports `language`, `sources`.
"""

from ..language import sympy_cache as sympy_cache
from .all_reduce import (
    all_reduce_lower_bound_time,
    all_reduce_time,
    flat_ring_all_reduce_time,
    flat_tree_all_reduce_time,
    group_all_reduce_time,
    hierarchical_all_reduce_time,
    low_latency_all_reduce_time,
    pipelined_all_reduce_time,
    ring_all_reduce_time,
    ring_tree_crossover_bytes,
    scale_up_all_reduce_time,
    simple_all_reduce_time,
    tree_all_reduce_time,
)
from .all_to_all import (
    all_to_all_time,
    hierarchical_all_to_all_time,
    low_latency_all_to_all_time,
    pairwise_all_to_all_time,
    scale_up_all_to_all_time,
    simple_all_to_all_time,
)
from .broadcast import (
    broadcast_fill_time,
    ring_broadcast_time,
    tree_broadcast_time,
)
from .call_overhead import called_collective_time, started_collective_time
from .domain import (
    crowded_transfer_time,
    cut_message_time,
    domain_collective_time,
    domain_send_time,
    domain_transfer_time,
    group_collective_time,
)
from .gather import (
    all_gather_time,
    hierarchical_all_gather_time,
    hierarchical_reduce_scatter_time,
    low_latency_all_gather_time,
    reduce_scatter_time,
    ring_all_gather_time,
    ring_reduce_scatter_time,
    scale_up_all_gather_time,
    scale_up_reduce_scatter_time,
    simple_all_gather_time,
)
from .in_network import (
    all_reduce_bus_bandwidth,
    in_network_all_gather_time,
    in_network_all_reduce_time,
    in_network_reduce_scatter_time,
    multimem_all_reduce_time,
    scale_up_multimem_all_reduce_time,
)
from .mesh import mesh_share, mesh_time
from .one_shot_two_shot import (
    one_shot_all_reduce_time,
    own_all_reduce_time,
    peer_all_reduce_time,
    two_shot_all_reduce_time,
)
from .pipelined import (
    group_all_gather_time,
    group_reduce_scatter_time,
    pipelined_all_gather_time,
    pipelined_reduce_scatter_time,
)
from .send import group_send_time, scale_up_send_time, send_time
from .switched import group_switched_all_reduce_time, scale_up_switched_all_reduce_time
from .tiers import inner_ranks_of, outer_ranks_of

__all__ = [
    "all_gather_time",
    "all_reduce_bus_bandwidth",
    "all_reduce_lower_bound_time",
    "all_reduce_time",
    "all_to_all_time",
    "broadcast_fill_time",
    "called_collective_time",
    "crowded_transfer_time",
    "cut_message_time",
    "domain_collective_time",
    "domain_send_time",
    "domain_transfer_time",
    "flat_ring_all_reduce_time",
    "flat_tree_all_reduce_time",
    "group_all_gather_time",
    "group_all_reduce_time",
    "group_collective_time",
    "group_reduce_scatter_time",
    "group_send_time",
    "group_switched_all_reduce_time",
    "hierarchical_all_gather_time",
    "hierarchical_all_reduce_time",
    "hierarchical_all_to_all_time",
    "hierarchical_reduce_scatter_time",
    "in_network_all_gather_time",
    "in_network_all_reduce_time",
    "in_network_reduce_scatter_time",
    "inner_ranks_of",
    "low_latency_all_gather_time",
    "low_latency_all_reduce_time",
    "low_latency_all_to_all_time",
    "mesh_share",
    "mesh_time",
    "multimem_all_reduce_time",
    "one_shot_all_reduce_time",
    "outer_ranks_of",
    "own_all_reduce_time",
    "pairwise_all_to_all_time",
    "peer_all_reduce_time",
    "pipelined_all_gather_time",
    "pipelined_all_reduce_time",
    "pipelined_reduce_scatter_time",
    "reduce_scatter_time",
    "ring_all_gather_time",
    "ring_all_reduce_time",
    "ring_broadcast_time",
    "ring_reduce_scatter_time",
    "ring_tree_crossover_bytes",
    "scale_up_all_gather_time",
    "scale_up_all_reduce_time",
    "scale_up_all_to_all_time",
    "scale_up_multimem_all_reduce_time",
    "scale_up_reduce_scatter_time",
    "scale_up_send_time",
    "scale_up_switched_all_reduce_time",
    "send_time",
    "simple_all_gather_time",
    "simple_all_reduce_time",
    "simple_all_to_all_time",
    "started_collective_time",
    "tree_all_reduce_time",
    "tree_broadcast_time",
    "two_shot_all_reduce_time",
]
