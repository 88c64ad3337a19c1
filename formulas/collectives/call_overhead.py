"""What a collective costs beside its hops and bytes: the start of its kernel, or a whole call of a library."""

from __future__ import annotations

from typing import Any

from ..language.atoms import Max, above_one
from ..language.dimension import SECOND
from ..language.formula import formula
from ..language.symbols import collective_latency
from ..sources import HU
from ..sources.serving import VIDUR


@formula(
    glyph="T_{comm}",
    dimension=SECOND,
    source=HU,
    increasing="collective_time ranks start_time",
)
def started_collective_time(collective_time: Any, ranks: Any, start_time: Any) -> Any:
    """Time of a collective with the start of its kernel: T + T_0, and nothing in a group of one.

    Assumes: one kernel a call, that starts as any other does; latencies of links are fitted with it.

    Source: Hu et al. 2025: NCCL runs each collective as one kernel, and its tuning adds a base latency that does not
    depend on the ranks to those of the hops (src/graph/tuning.cc of v2.28.7-1: 6.6 us and 0.6 us a step of a ring
    in an NVLink node). `collectives.py` of benchmarks/calibration compares the form with times of 2, 4 and 8 ranks.

    >>> from sympy import symbols
    >>> started_collective_time(*symbols("T q", positive=True), symbols("T_0", positive=True))
    T + T_0*above_one(q)
    >>> started_collective_time(0, 1, 5)
    0
    """
    return collective_time + above_one(ranks) * start_time


@formula(
    glyph="T_{call}",
    dimension=SECOND,
    source=VIDUR,
    increasing="collective_latency collective_time ranks",
)
def called_collective_time(collective_time: Any, ranks: Any) -> Any:
    """Time of a collective that a library runs: max(T, lambda_c), and nothing in a group of one.

    Assumes: the least time of a call depends neither on the message nor on the group. Latencies of links are fitted to
    the fastest calls of a message; the median call of a library may take longer.

    Source: Agrawal et al. 2024 (Vidur), whose profiles of all-reduces are flat up to 1 MB; `collectives.py` of
    benchmarks/calibration prints them.

    >>> from sympy import symbols
    >>> called_collective_time(symbols("T", positive=True), 4)
    Max(T, collective_latency)
    >>> called_collective_time(0, 1)
    0
    """
    return Max(collective_time, above_one(ranks) * collective_latency)
