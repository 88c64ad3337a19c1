"""What a library of collectives adds: a call that takes its time, however small the message."""

from __future__ import annotations

from typing import Any

from ..atoms import Max, present
from ..dimension import SECOND
from ..formula import formula
from ..sources_of_serving import VIDUR
from ..symbols import collective_latency


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
    return Max(collective_time, present(ranks) * collective_latency)
