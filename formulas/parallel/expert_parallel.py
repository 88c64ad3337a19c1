"""Expert parallelism: experts dealt to e devices, tokens sent to them and their results sent back.

T tokens of width h on each device, each of which passes k_e experts. Imbalance is the tokens of the device with most
over the mean: everybody waits for that device. A message is what a device holds for all e, its own part included, as
`collectives.all_to_all` has it. The router's work is in `moe`.
"""

from __future__ import annotations

from typing import Any

from ..collectives import hierarchical_all_to_all_time
from ..collectives.protocols import better_protocol_time
from ..collectives.tiers import SCALE_OUT, SCALE_UP, streaming_time
from ..language.atoms import Max, Min, ceil_div, less_one, ring_share
from ..language.dimension import BYTE, FLOP, ONE, SECOND
from ..language.formula import formula
from ..language.symbols import flop
from ..sources import DEEPSEEK3, FOLDING, LEPIKHIN, MEGABLOCKS, SHAZEER


def experts_divide(num_experts: int, ep: int) -> bool:
    """Whether experts can be dealt to e devices: e divides E.

    >>> experts_divide(256, 64), experts_divide(8, 16)
    (True, False)
    """
    return num_experts % ep == 0


@formula(
    glyph="T_e",
    dimension=ONE,
    source=LEPIKHIN,
    increasing="device_imbalance num_experts_per_token tokens",
    curvature="affine",
)
def arriving_tokens(tokens: Any, num_experts_per_token: Any, device_imbalance: Any) -> Any:
    """Rows of the device with most, after the dispatch: chi_e T k_e, whatever e.

    Assumes: every device has T tokens; a row for each expert that a token passes.

    Source: Lepikhin et al. 2020 section 3.2: the dispatch's volume does not depend on the devices; counted:
    e T k_e rows over e devices.

    >>> from sympy import symbols
    >>> arriving_tokens(*symbols("T k chi"))
    T*chi*k
    """
    return device_imbalance * tokens * num_experts_per_token


@formula(
    glyph="n_{dis}",
    dimension=BYTE,
    source=LEPIKHIN,
    increasing="device_imbalance element_bytes hidden_size num_experts_per_token tokens",
    curvature="affine",
)
def dispatch_bytes(
    tokens: Any, num_experts_per_token: Any, hidden_size: Any, element_bytes: Any, device_imbalance: Any
) -> Any:
    """Bytes of the dispatch's all-to-all, as of the device with most: chi_e T k_e h w; so is the combination's.

    Assumes: a copy of a token for each of its experts; w with a scale's part, 1 + 4/128 in FP8 by blocks of 128
    (`expert_formats`).

    Source: Lepikhin et al. 2020 section 3.2.

    >>> from sympy import symbols
    >>> dispatch_bytes(*symbols("T k h w chi"))
    T*chi*h*k*w
    """
    return arriving_tokens(tokens, num_experts_per_token, device_imbalance) * hidden_size * element_bytes


@formula(
    glyph="n_{e}",
    dimension=BYTE,
    source=LEPIKHIN,
    increasing="ep message_bytes",
    curvature="concave",
)
def expert_traffic_bytes(message_bytes: Any, ep: Any) -> Any:
    """Bytes that a device sends in one all-to-all of experts: (e-1)/e n; nothing at e = 1.

    Assumes: a token's experts are as likely on any device.

    Source: Lepikhin et al. 2020 section 3.2.

    Reference only: the bytes by themselves; a prediction has the time of the all-to-all.

    >>> from sympy import symbols
    >>> expert_traffic_bytes(symbols("n"), 1), expert_traffic_bytes(*symbols("n e"))
    (0, n*ring_share(e))
    """
    return ring_share(ep) * message_bytes


@formula(
    glyph="n'_{dom}",
    dimension=ONE,
    source=DEEPSEEK3,
    increasing="node_limit num_experts_per_token outer_ranks",
    curvature="concave",
)
def domains_per_token(num_experts_per_token: Any, node_limit: Any, outer_ranks: Any) -> Any:
    """Scale-up domains to which a copy of a token goes: min(k_e, n_dom, q_o).

    Assumes: a token crosses once to each domain and is handed on inside; as many domains as the limit allows.

    Source: DeepSeek-V3 report section 2.1.2: at most M nodes (M = 4), and section 3.2.2: over InfiniBand to the device
    of the same index, then over NVLink.

    >>> domains_per_token(8, 4, 8), domains_per_token(2, 4, 8)
    (4, 2)
    """
    return Min(num_experts_per_token, node_limit, outer_ranks)


@formula(
    glyph="n_{gd}",
    dimension=ONE,
    source=DEEPSEEK3,
    increasing="expert_groups_per_token outer_ranks",
    decreasing="num_expert_groups",
    curvature="convex",
)
def grouped_domains(expert_groups_per_token: Any, num_expert_groups: Any, outer_ranks: Any) -> Any:
    """Scale-up domains in which the experts of a token may lie if it chooses from k_grp of n_grp groups of experts.

    k_grp max(1, q_o / n_grp): a domain holds one group or several whole ones, or a group lies in q_o / n_grp domains.

    Assumes: experts lie in order of their numbers; the groups chosen lie in domains of their own where they can.

    Source: DeepSeek-V3 report section 2.1.2: 4 of 8 groups over 8 nodes send a token to 4 nodes at most.

    >>> grouped_domains(4, 8, 8), grouped_domains(4, 8, 16)
    (4, 8)
    """
    return expert_groups_per_token * Max(1, outer_ranks / num_expert_groups)


@formula(
    glyph="n_{M}",
    dimension=BYTE,
    source=DEEPSEEK3,
    increasing="device_imbalance element_bytes hidden_size node_limit num_experts_per_token outer_ranks tokens",
    curvature="concave",
)
def node_limited_bytes(
    tokens: Any,
    num_experts_per_token: Any,
    hidden_size: Any,
    element_bytes: Any,
    device_imbalance: Any,
    node_limit: Any,
    outer_ranks: Any,
) -> Any:
    """Bytes of a dispatch that may pass between domains, of the device with most: chi_e T min(k_e, n_dom, q_o) h w.

    Assumes: as `domains_per_token`; of these (q_o-1)/q_o leave the device's domain.

    Source: DeepSeek-V3 report sections 2.1.2 and 3.2.2.

    >>> node_limited_bytes(1, 8, 7168, 1, 1, 4, 8)
    28672
    """
    copies = domains_per_token(num_experts_per_token, node_limit, outer_ranks)
    return device_imbalance * tokens * copies * hidden_size * element_bytes


@formula(
    glyph="T_{aa}^{e}",
    dimension=SECOND,
    source=LEPIKHIN,
    increasing="device_imbalance element_bytes hidden_size inner_ranks num_experts_per_token outer_ranks "
    "scale_out_half_bytes scale_out_latency scale_up_half_bytes scale_up_latency tokens",
    decreasing="scale_out_bandwidth scale_out_efficiency scale_up_bandwidth scale_up_efficiency",
)
def dispatch_time(
    tokens: Any,
    num_experts_per_token: Any,
    hidden_size: Any,
    element_bytes: Any,
    device_imbalance: Any,
    inner_ranks: Any,
    outer_ranks: Any,
) -> Any:
    """Time of a dispatch or a combination by a plain all-to-all of `dispatch_bytes` over q_o domains of q_u devices.

    Assumes: a copy of a token for each of its experts crosses; as `hierarchical_all_to_all_time`.

    Source: Lepikhin et al. 2020 section 3.2.

    >>> from sympy import symbols
    >>> dispatch_time(*symbols("T k h w chi"), 1, 1)
    0
    """
    message = dispatch_bytes(tokens, num_experts_per_token, hidden_size, element_bytes, device_imbalance)
    return hierarchical_all_to_all_time(message, inner_ranks, outer_ranks)


@formula(
    glyph="T_{aa}^{M}",
    dimension=SECOND,
    source=DEEPSEEK3,
    increasing="device_imbalance element_bytes hidden_size inner_ranks node_limit num_experts_per_token "
    "outer_ranks scale_out_half_bytes scale_out_latency scale_up_half_bytes scale_up_latency tokens",
    decreasing="scale_out_bandwidth scale_out_efficiency scale_up_bandwidth scale_up_efficiency",
)
def node_limited_dispatch_time(
    tokens: Any,
    num_experts_per_token: Any,
    hidden_size: Any,
    element_bytes: Any,
    device_imbalance: Any,
    node_limit: Any,
    inner_ranks: Any,
    outer_ranks: Any,
) -> Any:
    """Time of a dispatch or a combination under node-limited routing, both tiers at work at once.

    S(x, y) = max((q_u-1)/q_u (n + x) / BW_u, (q_o-1)/q_o (n_M + y) / BW_o), where n is `dispatch_bytes` and n_M
    `node_limited_bytes`, and H = (q_u-1) alpha_u + (q_o-1) alpha_o make min(max(S(half_u, half_o), S(0, 0) + H),
    2 S(0, 0) + H).

    Assumes: tokens are forwarded inside a domain as they arrive; every device has its own share of the adapters.

    Source: DeepSeek-V3 report section 3.2.2: transfers over InfiniBand and NVLink are fully overlapped; protocols as
    in `all_to_all_time`.

    >>> from sympy import symbols
    >>> node_limited_dispatch_time(*symbols("T k h w chi M"), 1, 1)
    0
    """
    message = dispatch_bytes(tokens, num_experts_per_token, hidden_size, element_bytes, device_imbalance)
    crossing = node_limited_bytes(
        tokens, num_experts_per_token, hidden_size, element_bytes, device_imbalance, node_limit, outer_ranks
    )
    (_, up_latency, up_half), (_, out_latency, out_half) = SCALE_UP, SCALE_OUT
    return better_protocol_time(
        streaming_time(message + up_half, crossing + out_half, inner_ranks, outer_ranks),
        streaming_time(message, crossing, inner_ranks, outer_ranks),
        less_one(inner_ranks) * up_latency + less_one(outer_ranks) * out_latency,
    )


@formula(
    glyph="E_e",
    dimension=ONE,
    source=LEPIKHIN,
    increasing="num_experts",
    decreasing="ep",
    curvature="affine",
)
def device_experts(num_experts: Any, ep: Any) -> Any:
    """Experts whose weights a device holds: E / e.

    Assumes: e divides E (`experts_divide`).

    Source: Lepikhin et al. 2020 section 3.2.

    >>> device_experts(256, 64)
    4
    """
    return num_experts / ep


@formula(
    glyph="W_{e}",
    dimension=FLOP,
    source=SHAZEER,
    increasing="device_imbalance expert_intermediate_size flop hidden_size num_experts_per_token tokens",
    curvature="affine",
)
def device_expert_flops(
    tokens: Any,
    num_experts_per_token: Any,
    hidden_size: Any,
    expert_intermediate_size: Any,
    device_imbalance: Any,
) -> Any:
    """FLOPs of gated experts on the device with most tokens: 6 chi_e T k_e h f_e.

    Assumes: no token is dropped. Expert tensor parallelism gathers the tokens of t_e devices, each of which has 1/t_e
    of the width, so the figure holds with T the tokens of one of them.

    Source: Shazeer 2020 section 2, three products, over `arriving_tokens`.

    >>> device_expert_flops(1, 1, 2, 3, 1)
    36*flop
    """
    rows = arriving_tokens(tokens, num_experts_per_token, device_imbalance)
    return 6 * rows * hidden_size * expert_intermediate_size * flop


@formula(
    glyph="m_{pad}",
    dimension=ONE,
    source=MEGABLOCKS,
    increasing="rows",
)
def padded_group_rows(rows: Any, groups: Any, tile_rows: Any) -> Any:
    """Rows that a grouped product pays for, g groups of equal size padded to whole tiles: g T_m ceil(m / (g T_m)).

    Assumes: m rows in g equal groups; unequal ones pad as much on average, or more.

    Source: Gale et al. 2022 section 5.1.2: rows of an expert are padded to blocks.

    Reference only: padding by itself; products of a prediction pad every group in `tiled_matmul_time`.

    >>> padded_group_rows(1000, 4, 128), padded_group_rows(1024, 4, 128)
    (1024, 1024)
    """
    return groups * tile_rows * ceil_div(rows, groups * tile_rows)


@formula(
    glyph="n_{t_e}",
    dimension=BYTE,
    source=FOLDING,
    increasing="expert_tp message_bytes",
    curvature="affine",
)
def expert_tensor_bytes(message_bytes: Any, expert_tp: Any) -> Any:
    """Bytes of the all-gather of arrived tokens over the t_e devices of an expert, and of its reduce-scatter: t_e n.

    Assumes: each of the t_e devices got n bytes by its own dispatch; the collective's total, of which a device sends
    (t_e-1)/t_e.

    Source: Liu et al. 2025 section 3: tokens are gathered in the expert-tensor-parallel group before the experts and
    reduced and scattered after them.

    >>> from sympy import symbols
    >>> expert_tensor_bytes(*symbols("n t"))
    n*t
    """
    return message_bytes * expert_tp


@formula(
    glyph="N_{e}",
    dimension=ONE,
    source=FOLDING,
    increasing="expert_intermediate_size hidden_size num_experts",
    decreasing="ep expert_tp",
    curvature="affine",
)
def device_expert_parameters(
    num_experts: Any, hidden_size: Any, expert_intermediate_size: Any, ep: Any, expert_tp: Any
) -> Any:
    """Parameters of a layer's gated routed experts on one device: 3 E h f_e / (e t_e).

    Assumes: e divides E and t_e divides f_e.

    Source: Liu et al. 2025 section 3; three matrices of Shazeer 2020.

    >>> device_expert_parameters(256, 7168, 2048, 64, 1)
    176160768
    """
    return 3 * num_experts * hidden_size * expert_intermediate_size / (ep * expert_tp)
