"""Two pools with a number of requests in flight: a closed loop through one that prefills and one that decodes.

The load is the one at which as many requests are in the pools as are in flight, N = load (TTFT + (G - 1) TPOT), by
Little's law. Near the limit of the pool that prefills its wait takes up the rest; where the other pool is full,
requests wait for a place there, behind their first token.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .apart import NEARLY
from .bursts import Burst
from .closed import ClosedLoop
from .program import form

if TYPE_CHECKING:
    from .apart import Apart, PoolPoint

HALVINGS = 60


@dataclass(frozen=True)
class PoolLoop:
    """Means over requests; times in seconds.

    Attributes:
        load: requests a second.
        first_token: time to the first token.
        token: that of each later one, waits for a place among those that decode included.
        place: such a wait, of a request.
    """

    load: float
    first_token: float
    token: float
    place: float


def pools_in_flight(pools: Apart, concurrency: float, requests: float | None = None) -> PoolLoop | None:
    """The loop of two pools; None where not one request fits them.

    Args:
        pools: both of them.
        concurrency: requests in flight.
        requests: of a run that begins with as many at once as are in flight; None where it goes on for ever.
    """
    if not pools.fits:
        return None
    # Just below NEARLY of the least limit, from which on a point has no answers.
    low, high = 0.0, min(pools.limits.values()) * NEARLY * NEARLY
    if _present(_point(pools, high)) > concurrency:
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if _present(_point(pools, middle)) <= concurrency else (low, middle)
    found = _point(pools, high)
    place = max(0.0, concurrency / high - found.e2e_s) if found.load else 0.0
    first = found.ttft_s
    if requests is not None and requests > concurrency:
        burst = Burst(ClosedLoop(pools.first, max(1.0, concurrency / pools.prefill.plan.dp))).alone().first_token
        share = concurrency / requests
        first = form("finite_run_time", burst_time=burst, first_token_time=first, burst_share=share)
    return PoolLoop(found.load, first, found.tpot_s + place / (pools.asked.generate - 1), place)


def _present(point: PoolPoint) -> float:
    return point.load * point.e2e_s


def _point(pools: Apart, load: float) -> PoolPoint:
    found = pools.point(load)
    assert found is not None
    return found
