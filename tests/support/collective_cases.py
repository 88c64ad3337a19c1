"""The collectives by how many tiers they use, and the system on which tests value them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from support.oracle import evaluate, sample
from symperf.common.frozen import Frozen
from symperf.formulas import collectives as c
from symperf.formulas.language.symbols import SYMBOLS
from symperf.systems.kernel_constants import FAMILIES
from symperf.systems.system import System

if TYPE_CHECKING:
    from collections.abc import Callable

SYSTEM = {
    "scale_up_size": 8,
    "scale_up_bandwidth": 300e9,
    "scale_up_efficiency": 0.8,
    "scale_up_latency": 4e-6,
    "scale_up_half_bytes": 0.0,
    "scale_out_bandwidth": 25e9,
    "scale_out_efficiency": 0.9,
    "scale_out_latency": 11e-6,
    "scale_out_half_bytes": 0.0,
}
UP, OUT = (240e9, 4e-6), (22.5e9, 11e-6)
"""Attainable bandwidth and latency of the two tiers of SYSTEM."""

ONE_TIER = (
    c.ring_all_reduce_time,
    c.tree_all_reduce_time,
    c.simple_all_reduce_time,
    c.all_reduce_time,
    c.ring_all_gather_time,
    c.ring_reduce_scatter_time,
    c.simple_all_gather_time,
    c.all_gather_time,
    c.reduce_scatter_time,
    c.tree_broadcast_time,
    c.ring_broadcast_time,
    c.pairwise_all_to_all_time,
    c.simple_all_to_all_time,
    c.all_to_all_time,
)
LOW_LATENCY = (
    c.low_latency_all_reduce_time,
    c.low_latency_all_gather_time,
    c.low_latency_all_to_all_time,
)
"""Those of one tier that no `half_bytes` delays."""

SCALE_UP = (
    c.scale_up_all_reduce_time,
    c.scale_up_all_gather_time,
    c.scale_up_reduce_scatter_time,
    c.scale_up_all_to_all_time,
)
TWO_TIERS = (
    c.hierarchical_all_reduce_time,
    c.hierarchical_all_gather_time,
    c.hierarchical_reduce_scatter_time,
    c.hierarchical_all_to_all_time,
    c.flat_ring_all_reduce_time,
    c.flat_tree_all_reduce_time,
    c.pipelined_all_reduce_time,
    c.group_all_reduce_time,
    c.group_switched_all_reduce_time,
)

IN_NETWORK = (
    c.in_network_all_reduce_time,
    c.multimem_all_reduce_time,
    c.in_network_reduce_scatter_time,
    c.in_network_all_gather_time,
)
"""Those of one tier whose switches add and multicast; the last argument is how well."""


def name(function: Callable[..., Any]) -> str:
    return function.__name__


def value(expr: Any, **other: float) -> float:
    """An expression's value on SYSTEM."""
    points = {SYMBOLS[key].symbol: number for key, number in {**SYSTEM, **other}.items()}
    return float(evaluate(expr, points))


def tiers(seed: int) -> tuple[list[Any], dict[Any, Any]]:
    names = ("message_bytes", "inner_ranks", "outer_ranks", *SYSTEM)
    points = sample([SYMBOLS[each].symbol for each in names], seed)
    return [SYMBOLS[each].symbol for each in names[:3]], points


def literature(name: str) -> System:
    """A system of the catalogue without what was measured of its library's collectives."""
    system = System.load(name)
    measured = {*FAMILIES["domain"], *FAMILIES["crowding"]}
    return replace(system, quantities=Frozen({k: v for k, v in system.quantities.items() if k not in measured}))
