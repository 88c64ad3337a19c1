"""Sharded state: what ZeRO and FSDP keep on a device, what they move, and what of that hides beside the passes.

N parameters are those of a device before sharding (after tensor and pipeline parallelism). d_z devices share the
state: all replicas, or those of one scale-up domain where sharding is hybrid (HSDP), whose domains then reduce among
themselves. Unit: parameters that are gathered and released at once, usually a layer.
"""

from __future__ import annotations

from typing import Any

from ..collectives import all_reduce_time, scale_up_all_gather_time, scale_up_reduce_scatter_time
from ..collectives.tiers import SCALE_OUT
from ..language.atoms import Max, Min, above_one, complement, less_one, ring_share
from ..language.dimension import BYTE, ONE, SECOND
from ..language.formula import formula
from ..language.symbols import (
    gradient_bytes,
    launch_latency,
    memory_bandwidth,
    memory_efficiency,
    optimizer_bytes,
    owned_tensors,
    weight_bytes,
)
from ..sources import FSDP, RAJBHANDARI


@formula(
    glyph="M_{z0}",
    dimension=BYTE,
    source=RAJBHANDARI,
    increasing="gradient_bytes optimizer_bytes parameters weight_bytes",
    curvature="convex",
)
def replicated_state_memory(parameters: Any) -> Any:
    """Bytes of weights, gradients and optimizer state without sharding: N (w_w + w_g + w_o).

    Assumes: every replica holds all of them.

    Source: Rajbhandari et al. 2020 section 3.1: (2 + 2 + K) Psi, with K = 12 for Adam.

    >>> from sympy import symbols
    >>> replicated_state_memory(symbols("N")).subs({weight_bytes: 2, gradient_bytes: 2, optimizer_bytes: 12})
    16*N
    """
    return parameters * (weight_bytes + gradient_bytes + optimizer_bytes)


@formula(
    glyph="M_{z1}",
    dimension=BYTE,
    source=RAJBHANDARI,
    increasing="gradient_bytes optimizer_bytes parameters weight_bytes",
    decreasing="shards",
    curvature="convex",
)
def zero_1_memory(parameters: Any, shards: Any) -> Any:
    """Bytes of the state under ZeRO-1, the optimizer's sharded: N (w_w + w_g + w_o / q_z).

    Assumes: even shards.

    Source: Rajbhandari et al. 2020 section 5.1: 4 Psi + K Psi / N_d.

    >>> zero_1_memory(64, 64).subs({weight_bytes: 2, gradient_bytes: 2, optimizer_bytes: 12})
    268
    """
    return parameters * (weight_bytes + gradient_bytes + optimizer_bytes / shards)


@formula(
    glyph="N_{bc}",
    dimension=ONE,
    source=RAJBHANDARI,
    increasing="num_layers owned_tensors ranks",
    curvature="concave",
)
def owners(ranks: Any, num_layers: Any) -> Any:
    """Replicas that own tensors of L layers and broadcast them one after the other: min(d_z, N_bcast L).

    ZeRO-1 may deal tensors as they are, each to the replica that has least so far (InternEvo's HybridZeroOptimizer);
    then gradients are summed on every replica, by all-reduces, and each owner broadcasts what it updated. A broadcast
    down a chain of q ranks is priced as an all-gather of as many bytes around a ring (`ring_broadcast_time`,
    `ring_all_gather_time`: both have q - 1 hops), and the time to fill the chain.

    Assumes: tensors outside of layers have owners who own others too; owners' parts are equal; replicas are many, since
    a link carries all bytes of a broadcast and (q - 1)/q of those of an all-gather.

    Source: derivation, for InternEvo, internlm/solver/optimizer/hybrid_zero_optim.py: _partition_param_list,
    broadcast_params; the stage is that of Rajbhandari et al. 2020 section 5.1.

    >>> from sympy import symbols
    >>> owners(*symbols("q L"))
    Min(q, L*owned_tensors)
    """
    return Min(ranks, owned_tensors * num_layers)


@formula(
    glyph="T_{pc}",
    dimension=SECOND,
    source=RAJBHANDARI,
    increasing="launch_latency message_bytes ranks",
    decreasing="memory_bandwidth memory_efficiency",
)
def piece_copies_time(message_bytes: Any, ranks: Any) -> Any:
    """Seconds of copying q pieces of a gathered tensor to their places: [q > 1] (q lambda + 2 n / (eta_mem BW_mem)).

    A gather into a list of tensors, and a reduction out of one, pass a buffer from or to which each rank's piece is
    copied by a kernel of its own.

    Assumes: the host runs ahead of these kernels, also where it waits for the device before each gather
    (`torch.cuda.synchronize`): it launches them while the bytes of the gather are on their way, which takes longer; a
    piece is read once and written once.

    Source: derivation, for PyTorch's ProcessGroupNCCL (allgather and reduce_scatter of lists copy in a loop over ranks)
    and DeepSpeed of 2021, deepspeed/runtime/zero/partition_parameters.py: _allgather_param, _reduce_scatter_gradient;
    the stage is that of Rajbhandari et al. 2020 section 5.3.

    >>> from sympy import symbols
    >>> piece_copies_time(*symbols("n q"))
    (launch_latency*q + 2*n/(memory_bandwidth*memory_efficiency))*above_one(q)
    """
    moved = 2 * message_bytes / (memory_bandwidth * memory_efficiency)
    return above_one(ranks) * (ranks * launch_latency + moved)


@formula(
    glyph="M_{z2}",
    dimension=BYTE,
    source=RAJBHANDARI,
    increasing="gradient_bytes optimizer_bytes parameters weight_bytes",
    decreasing="shards",
    curvature="convex",
)
def zero_2_memory(parameters: Any, shards: Any) -> Any:
    """Bytes of the state under ZeRO-2, gradients sharded too: N (w_w + (w_g + w_o) / q_z).

    Assumes: even shards; gradients are reduced to their shard as they come, buckets aside.

    Source: Rajbhandari et al. 2020 section 5.2: 2 Psi + (K + 2) Psi / N_d.

    >>> zero_2_memory(64, 64).subs({weight_bytes: 2, gradient_bytes: 2, optimizer_bytes: 12})
    142
    """
    return parameters * (weight_bytes + (gradient_bytes + optimizer_bytes) / shards)


@formula(
    glyph="M_{z3}",
    dimension=BYTE,
    source=RAJBHANDARI,
    increasing="gradient_bytes optimizer_bytes parameters weight_bytes",
    decreasing="shards",
    curvature="convex",
)
def zero_3_memory(parameters: Any, shards: Any) -> Any:
    """Bytes of the state under ZeRO-3 and FSDP, all sharded: N (w_w + w_g + w_o) / q_z.

    Assumes: even shards; without the units that are gathered (`gathered_units_memory`).

    Source: Rajbhandari et al. 2020 section 5.3: (4 + K) Psi / N_d.

    >>> zero_3_memory(64, 64).subs({weight_bytes: 2, gradient_bytes: 2, optimizer_bytes: 12})
    16
    """
    return replicated_state_memory(parameters) / shards


@formula(
    glyph="M_{U}",
    dimension=BYTE,
    source=FSDP,
    increasing="gathered_units gradient_bytes unit_parameters weight_bytes",
    curvature="convex",
)
def gathered_units_memory(unit_parameters: Any, gathered_units: Any) -> Any:
    """Bytes of the units that a device has gathered, weights, and one unit's gradients before they are scattered.

    The equation: N_U (U_g w_w + w_g).

    Assumes: U_g is 1 and those that are fetched ahead; units of equal size.

    Source: Zhao et al. 2023 section 3.2.1: O(sum of shards / F + max of a unit); backward prefetch holds two.

    Reference only: the paper's unit; a prediction holds two layers and the gradients of both.

    >>> from sympy import symbols
    >>> gathered_units_memory(symbols("N"), 2).subs({weight_bytes: 2, gradient_bytes: 4})
    8*N
    """
    return unit_parameters * (gathered_units * weight_bytes + gradient_bytes)


@formula(
    glyph="n_{z2}",
    dimension=BYTE,
    source=RAJBHANDARI,
    increasing="gradient_bytes parameters shards weight_bytes",
)
def zero_2_traffic_bytes(parameters: Any, shards: Any) -> Any:
    """Bytes that a device sends in a step under ZeRO-1 and ZeRO-2: (q_z-1)/q_z N (w_w + w_g).

    Assumes: one reduce-scatter of gradients and one all-gather of updated weights, as many bytes as an all-reduce
    where both formats are equal. ZeRO-2 reduces for every micro-batch if it accumulates into shards.

    Source: Rajbhandari et al. 2020 section 7.2.1: 2 Psi.

    >>> zero_2_traffic_bytes(8, 4).subs({weight_bytes: 2, gradient_bytes: 2})
    24
    """
    return ring_share(shards) * parameters * (weight_bytes + gradient_bytes)


@formula(
    glyph="n_{z3}",
    dimension=BYTE,
    source=RAJBHANDARI,
    increasing="gradient_bytes parameters shards weight_bytes",
)
def zero_3_traffic_bytes(parameters: Any, shards: Any) -> Any:
    """Bytes that a device sends for a micro-batch under ZeRO-3 and FSDP: (q_z-1)/q_z N (2 w_w + w_g).

    Assumes: weights are gathered in the forward and again in the backward pass, gradients reduced once.

    Source: Rajbhandari et al. 2020 section 7.2.2: 3 Psi, half as many again as data parallelism.

    >>> zero_3_traffic_bytes(8, 4).subs({weight_bytes: 2, gradient_bytes: 2})
    36
    """
    return ring_share(shards) * parameters * (2 * weight_bytes + gradient_bytes)


@formula(
    glyph="n_{hs}^{o}",
    dimension=BYTE,
    source=FSDP,
    increasing="gradient_bytes outer_ranks parameters",
    decreasing="inner_ranks",
    curvature="concave",
)
def hybrid_between_bytes(parameters: Any, inner_ranks: Any, outer_ranks: Any) -> Any:
    """Bytes that a device sends between domains under hybrid sharding: 2 (q_o-1)/q_o N w_g / q_u.

    Assumes: q_u devices of one domain share the state; each sums its shard of the gradients over q_o domains.

    Source: Zhao et al. 2023 section 3.2.2: an all-reduce of 1/F of the gradients over W / F replicas.

    >>> hybrid_between_bytes(32, 8, 4).subs({gradient_bytes: 2})
    12
    """
    return 2 * ring_share(outer_ranks) * parameters * gradient_bytes / inner_ranks


@formula(
    glyph="T_{hs}",
    dimension=SECOND,
    source=FSDP,
    increasing="message_bytes outer_ranks scale_out_half_bytes scale_out_latency scale_up_half_bytes scale_up_latency",
    decreasing="scale_out_bandwidth scale_out_efficiency scale_up_bandwidth scale_up_efficiency",
)
def hybrid_reduction_time(message_bytes: Any, inner_ranks: Any, outer_ranks: Any) -> Any:
    """Time to reduce n bytes of gradients under hybrid sharding: T_rs(n, q_u) inside, T_ar(n / q_u, q_o) between.

    Assumes: one after the other; every device has its own share of the adapters. Full sharding reduces by
    `hierarchical_reduce_scatter_time`.

    Source: Zhao et al. 2023 section 3.2.2: a reduce-scatter in the sharding group, an all-reduce among replicas.

    >>> from sympy import symbols
    >>> hybrid_reduction_time(symbols("n"), 1, 1)
    0
    >>> hybrid_reduction_time(symbols("n"), 8, 1) == scale_up_reduce_scatter_time(symbols("n"), 8)
    True
    """
    between = all_reduce_time(message_bytes / inner_ranks, outer_ranks, *SCALE_OUT)
    return scale_up_reduce_scatter_time(message_bytes, inner_ranks) + between


@formula(
    glyph="T_{hg}",
    dimension=SECOND,
    source=FSDP,
    increasing="inner_ranks message_bytes scale_up_half_bytes scale_up_latency",
    decreasing="scale_up_bandwidth scale_up_efficiency",
)
def hybrid_gather_time(message_bytes: Any, inner_ranks: Any) -> Any:
    """Time to gather n bytes of weights under hybrid sharding: T_ag(n, q_u), all inside a domain.

    Assumes: every domain holds all of the state. Full sharding gathers by `hierarchical_all_gather_time`.

    Source: Zhao et al. 2023 section 3.2.2.

    >>> from sympy import symbols
    >>> hybrid_gather_time(symbols("n"), 1)
    0
    """
    return scale_up_all_gather_time(message_bytes, inner_ranks)


@formula(
    glyph="T_{sf}",
    dimension=SECOND,
    source=FSDP,
    increasing="gather_time units work_time",
)
def sharded_forward_time(work_time: Any, gather_time: Any, units: Any) -> Any:
    """Time of a forward pass over U units, each gathered while the one before works.

    The equation: T_gat + (U - 1) max(T_comp, T_gat) + T_comp.

    Assumes: equal units; one is fetched ahead; a gather does not slow the work beside it.

    Source: Zhao et al. 2023 section 3.3.1: communication overlaps with the computation of other units; the first
    gather and the last work have nothing beside them.

    Reference only: unit by unit; a prediction has the limit of many units, `overlapped_time`.

    >>> from sympy import symbols
    >>> sharded_forward_time(*symbols("c g"), 1), sharded_forward_time(*symbols("c g"), 4)
    (c + g, c + g + 3*Max(c, g))
    """
    return gather_time + less_one(units) * Max(work_time, gather_time) + work_time


@formula(
    glyph="T_{sb}",
    dimension=SECOND,
    source=FSDP,
    increasing="gather_time scatter_time work_time",
)
def sharded_backward_time(work_time: Any, gather_time: Any, scatter_time: Any, units: Any) -> Any:
    """Time of a backward pass over U units: while one works, the next is gathered and gradients before it are reduced.

    T_gat + max(T_comp, T_gat) + (U-2) max(T_comp, T_gat + T_sca) + max(T_comp, T_sca) + T_sca; one unit:
    T_gat + T_comp + T_sca.

    Assumes: equal units; one is fetched ahead; gathers and reductions take turns on one stream, in this order; neither
    slows the work beside it.

    Source: Zhao et al. 2023 section 3.3.2, backward prefetching: the next gather is issued before the current
    reduce-scatter, and both share NCCL's stream.

    Reference only: unit by unit; a prediction has the limit of many units, `overlapped_time`.

    >>> from sympy import symbols
    >>> sharded_backward_time(*symbols("c g r"), 1)
    c + g + r
    >>> sharded_backward_time(2, 1, 1, 4), sharded_backward_time(1, 1, 1, 4)
    (10, 8)
    """
    alone = complement(above_one(units)) * work_time
    ends = above_one(units) * (Max(work_time, gather_time) + Max(work_time, scatter_time))
    middle = less_one(Max(1, less_one(units))) * Max(work_time, gather_time + scatter_time)
    return gather_time + alone + ends + middle + scatter_time
