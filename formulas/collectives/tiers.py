"""The two tiers of a cluster, and how a group of ranks lies across them."""

from __future__ import annotations

from typing import Any

from ..language.atoms import Max, Min, ceil_div, ring_share
from ..language.dimension import ONE
from ..language.formula import formula
from ..language.symbols import (
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
from ..sources import NARAYANAN

SCALE_UP = (scale_up_bandwidth * scale_up_efficiency, scale_up_latency, scale_up_half_bytes)
"""Attainable bandwidth, latency and half-bandwidth size inside a scale-up domain."""

SCALE_OUT = (scale_out_bandwidth * scale_out_efficiency, scale_out_latency, scale_out_half_bytes)
"""The same between domains, as seen by one device: its share of the domain's adapters."""


def streaming_time(up_bytes: Any, out_bytes: Any, inner_ranks: Any, outer_ranks: Any) -> Any:
    """Time of the slower tier, when the pieces of an all-gather or reduce-scatter stream through both, one way."""
    inside, between = ring_share(inner_ranks) * up_bytes, ring_share(outer_ranks) * out_bytes
    return Max(inside / SCALE_UP[0], between / SCALE_OUT[0])


@formula(
    glyph="q_u",
    dimension=ONE,
    source=NARAYANAN,
    increasing="ranks scale_up_size",
    decreasing="stride",
)
def inner_ranks_of(ranks: Any, stride: Any) -> Any:
    """Ranks of a group that share one scale-up domain: min(q, ceil(n_u / r)).

    Assumes: devices fill domains in rank order; a group takes every r-th of them, from the first device of a domain.

    Source: Narayanan et al. 2021: the innermost group stays inside a server; a domain of n_u devices holds the
    multiples of r below n_u.

    >>> from sympy import symbols
    >>> inner_ranks_of(*symbols("q r"))
    Min(q, ceil_div(scale_up_size, r))
    """
    return Min(ranks, ceil_div(scale_up_size, stride))


@formula(
    glyph="q_o",
    dimension=ONE,
    source=NARAYANAN,
    increasing="ranks stride",
    decreasing="scale_up_size",
)
def outer_ranks_of(ranks: Any, stride: Any) -> Any:
    """Scale-up domains that a group spans: ceil(q / ceil(n_u / r)), which is ceil(q / q_u).

    Assumes: as `inner_ranks_of`; where q_u does not divide q, the last domain holds fewer ranks and paces no step.

    Source: q / min(q, x) is q / x or 1, whichever is greater, and rounds up to ceil(q / x); in this form the
    directions are proved.

    >>> from sympy import symbols
    >>> outer_ranks_of(*symbols("q r"))
    ceil_div(q, ceil_div(scale_up_size, r))
    """
    return ceil_div(ranks, ceil_div(scale_up_size, stride))
