"""Exchanges of tokens by kernels made for experts: direct ones of many small messages, and bulk ones of many tokens.

T tokens of width h on each of e devices, over q_o scale-up domains; each token passes k_e experts. A direct exchange
(DeepEP's low-latency kernels) writes every copy of a token into the memory of its expert's device, by whichever link
leads there. A bulk one (DeepEP's normal kernels, all-to-all kernels of NVL72) sends a token once to each device that
has one of its experts, and between domains once to each domain, where it is handed on. Nothing here is a collective of
a library.
"""

from __future__ import annotations

from typing import Any

from ..language.atoms import Max, Min, above_one, complement, log2, ring_share
from ..language.dimension import BYTE, ONE, SECOND
from ..language.formula import formula
from ..language.symbols import (
    bulk_exchange_latency,
    bulk_hop_latency,
    exchange_efficiency,
    exchange_hop_latency,
    exchange_latency,
    exchange_out_efficiency,
    exchange_unit_efficiency,
    exchange_units,
    scale_out_bandwidth,
    scale_up_bandwidth,
)
from ..mathematics.fractions import fraction_power
from ..sources import DEEPEP, DEEPSEEK3
from .expert_parallel import dispatch_bytes


@formula(
    glyph=r"\bar n_k",
    dimension=ONE,
    source=DEEPSEEK3,
    increasing="num_experts_per_token",
)
def places_per_token(num_experts_per_token: Any, places: Any) -> Any:
    """Distinct ones of n places, devices or domains, that have an expert of a token, on average: n (1 - (1 - 1/n)^k_e).

    Assumes: an expert is as likely on any of them, independently of the token's others; at least one place.

    Source: derivation, as `expected_experts`: a place is left out by all k_e choices with chance (1 - 1/n)^k_e.

    >>> places_per_token(8, 1), places_per_token(1, 4), places_per_token(2, 4)
    (1, 1, 7/4)
    """
    return places * complement(fraction_power(ring_share(places), num_experts_per_token))


@formula(
    glyph="T_{x}",
    dimension=SECOND,
    source=DEEPEP,
    increasing="device_imbalance element_bytes exchange_hop_latency exchange_latency hidden_size num_experts_per_token "
    "ranks tokens",
    decreasing="exchange_efficiency exchange_out_efficiency scale_out_bandwidth scale_up_bandwidth",
)
def direct_exchange_time(
    tokens: Any,
    num_experts_per_token: Any,
    hidden_size: Any,
    element_bytes: Any,
    device_imbalance: Any,
    ranks: Any,
    outer_ranks: Any,
) -> Any:
    """Seconds of a direct exchange: lambda_x + [q_o > 1] lambda_xo + max(n / (q_o BW_u eta_x), s n / (BW_o eta_xo)).

    n = chi T k_e h w are the bytes of all copies, of which 1 / q_o stay in the domain and s = (q_o-1)/q_o cross.

    Assumes: copies go over both kinds of links at once; an expert is as likely in any domain; nothing where e = 1.

    Source: DeepEP, low-latency kernels: one message for each token and expert, over NVLink where it leads there and by
    the adapter else. Evidence: benchmarks/calibration/README.md.

    >>> from sympy import symbols
    >>> direct_exchange_time(*symbols("T k h w chi"), 1, 1)
    0
    >>> direct_exchange_time(*symbols("T k h w chi", positive=True), 8, 1)
    exchange_latency + Max(0, T*chi*h*k*w/(exchange_efficiency*scale_up_bandwidth))
    """
    message = dispatch_bytes(tokens, num_experts_per_token, hidden_size, element_bytes, device_imbalance)
    crossing = ring_share(outer_ranks)
    inside = complement(crossing) * message / (scale_up_bandwidth * exchange_efficiency)
    between = crossing * message / (scale_out_bandwidth * exchange_out_efficiency)
    start = exchange_latency + above_one(outer_ranks) * exchange_hop_latency
    return above_one(ranks) * (start + Max(inside, between))


@formula(
    glyph="T_{b}",
    dimension=SECOND,
    source=DEEPEP,
    increasing="bulk_exchange_latency bulk_hop_latency device_imbalance element_bytes hidden_size "
    "num_experts_per_token tokens",
    decreasing="exchange_out_efficiency exchange_unit_efficiency exchange_units scale_out_bandwidth scale_up_bandwidth",
)
def bulk_exchange_time(
    tokens: Any,
    num_experts_per_token: Any,
    hidden_size: Any,
    element_bytes: Any,
    device_imbalance: Any,
    ranks: Any,
    outer_ranks: Any,
    chosen_domains: Any,
) -> Any:
    """Seconds of a bulk exchange: lambda_b + lambda_bo log2(q_o) + max(n_u / BW', n_o / (BW_o eta_xo)).

    BW' = BW_u min(1, s_x eta_x1) is what s_x multiprocessors carry. n_u = (e-1)/e chi T h w d are the bytes over links
    of the domain, for the d devices of a token of `places_per_token`; n_o = (q_o-1)/q_o chi T h w d_o those over
    adapters, for its d_o domains.

    Assumes: `chosen_domains` of the q_o domains have a token's experts, all unless routing is limited; both kinds of
    links at once, a token that has crossed being handed on as it arrives; nothing where e = 1.

    Source: DeepSeek-V3 report section 3.2.2 (a token crosses InfiniBand once and is forwarded over NVLink, 20
    multiprocessors), DeepEP, normal kernels. Evidence: benchmarks/calibration/README.md.

    >>> from sympy import symbols
    >>> bulk_exchange_time(*symbols("T k h w chi"), 1, 1, 1)
    0
    >>> bulk_exchange_time(symbols("T", positive=True), 1, *symbols("h w", positive=True), 1, 2, 1, 1)
    bulk_exchange_latency + Max(0, T*h*w/(2*scale_up_bandwidth*Min(1, exchange_unit_efficiency*exchange_units)))
    """
    token = device_imbalance * tokens * hidden_size * element_bytes
    devices = places_per_token(num_experts_per_token, Max(1, ranks / outer_ranks * chosen_domains))
    domains = places_per_token(num_experts_per_token, chosen_domains)
    carried = scale_up_bandwidth * Min(1, exchange_units * exchange_unit_efficiency)
    inside = ring_share(ranks) * token * devices / carried
    between = ring_share(outer_ranks) * token * domains / (scale_out_bandwidth * exchange_out_efficiency)
    start = bulk_exchange_latency + log2(outer_ranks) * bulk_hop_latency
    return above_one(ranks) * (start + Max(inside, between))


@formula(
    glyph="Q_x",
    dimension=BYTE,
    source=DEEPEP,
    increasing="element_bytes hidden_size num_experts tokens",
    curvature="affine",
)
def direct_exchange_buffer_bytes(tokens: Any, num_experts: Any, hidden_size: Any, element_bytes: Any) -> Any:
    """Bytes that a device keeps for direct exchanges: 4 E T h w, there and back, each for two exchanges in turn.

    A copy of any token may come to any expert, and a place is kept for each, whatever is sent.

    Assumes: T is the most tokens of a device that may ever be exchanged; w is that of the wider way, the results';
    headers, scales and flags, 2 % of it, are left out.

    Source: DeepEP, csrc/config.hpp, LowLatencyLayout: two send and two receive buffers of num_experts x
    num_max_dispatch_tokens_per_rank messages.

    >>> direct_exchange_buffer_bytes(128, 256, 7168, 2)
    1879048192
    """
    return 4 * num_experts * tokens * hidden_size * element_bytes
