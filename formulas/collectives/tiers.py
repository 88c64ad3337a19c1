"""The two tiers of a cluster, and how a group of ranks lies across them."""

from __future__ import annotations

from typing import Any

from ..atoms import Max, Min
from ..dimension import ONE
from ..formula import formula
from ..sources import NARAYANAN
from ..symbols import (
    scale_out_bandwidth,
    scale_out_efficiency,
    scale_out_half_bytes,
    scale_out_latency,
    scale_up_bandwidth,
    scale_up_efficiency,
    scale_up_half_bytes,
    scale_up_latency,
    scale_up_size,
)

SCALE_UP = (scale_up_bandwidth * scale_up_efficiency, scale_up_latency, scale_up_half_bytes)
"""Attainable bandwidth, latency and half-bandwidth size inside a scale-up domain."""

SCALE_OUT = (scale_out_bandwidth * scale_out_efficiency, scale_out_latency, scale_out_half_bytes)
"""The same between domains, as seen by one device: its share of the domain's adapters."""


@formula(
    glyph="q_u",
    dimension=ONE,
    source=NARAYANAN,
    increasing="ranks scale_up_size",
    decreasing="stride",
)
def inner_ranks_of(ranks: Any, stride: Any) -> Any:
    """Ranks of a group that share one scale-up domain: max(1, min(q, n_u / r)).

    Assumes: devices fill domains in rank order; a group takes every r-th of them; q r and n_u divide one another.

    Source: Narayanan et al. 2021: the innermost group stays inside a server; n_u / r is how many
    multiples of r a domain holds.

    >>> from sympy import symbols
    >>> inner_ranks_of(*symbols("q r"))
    Max(1, Min(q, scale_up_size/r))
    """
    return Max(1, Min(ranks, scale_up_size / stride))


@formula(
    glyph="q_o",
    dimension=ONE,
    source=NARAYANAN,
    increasing="ranks stride",
    decreasing="scale_up_size",
)
def outer_ranks_of(ranks: Any, stride: Any) -> Any:
    """Scale-up domains that a group spans: q / q_u, written min(q, max(1, q r / n_u)).

    Assumes: as `inner_ranks_of`, whose product with this is q.

    Source: q / max(1, min(q, n_u / r)); the reciprocal turns the maximum into a minimum and back, after which the
    directions are proved.

    >>> from sympy import symbols
    >>> outer_ranks_of(*symbols("q r"))
    Min(q, Max(1, q*r/scale_up_size))
    """
    return Min(ranks, Max(1, ranks * stride / scale_up_size))
