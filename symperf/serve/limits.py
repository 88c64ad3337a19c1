"""The largest load within targets, and what limits it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .state import State
    from .steady import Steady

NEARLY = 1e-6


@dataclass(frozen=True)
class Targets:
    """Longest mean time to the first token, and longest mean time of each later one, in seconds; None: any."""

    ttft: float | None = None
    tpot: float | None = None

    def missed(self, state: State, steps_per_token: float) -> str | None:
        """The target that a state misses."""
        if self.ttft is not None and state.first_token > self.ttft:
            return "ttft"
        if self.tpot is not None and state.iteration * steps_per_token > self.tpot:
            return "tpot"
        return None


@dataclass(frozen=True)
class Largest:
    """The largest load of a replica, requests in a second.

    Attributes:
        load: None where even a request alone misses a target.
        limit: "ttft" or "tpot", the target that more would miss; "chunk", "kv_cache" or "max_num_seqs", where the
            load is the capacity, at which waits have no bound.
        state: at that load; None at the capacity.
    """

    load: float | None
    limit: str
    state: State | None


def largest_load(steady: Steady, targets: Targets, steps_per_token: float) -> Largest:
    """The largest load that meets the targets.

    Both times never fall with the load, so that the loads that meet them are an interval from 0.
    """
    capacity = steady.capacity

    def missed(state: State) -> str | None:
        return targets.missed(state, steps_per_token)

    if (limit := missed(steady.at_arrivals(0.0))) is not None:
        return Largest(None, limit, None)
    if targets.ttft is None and _misses_never(steady, targets, steps_per_token):
        return Largest(capacity.load, capacity.limit, None)
    low, high = 0.0, steady.most_arrivals
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if missed(steady.at_arrivals(middle)) else (middle, high)
    found = min(steady.at_arrivals(low).load, capacity.load * (1 - NEARLY))
    above = min(found * (1 + NEARLY), capacity.load * (1 - NEARLY / 2))
    good, bad = found, above
    if _find_missed(steady, found, missed):
        good, bad = 0.0, found
    elif not _find_missed(steady, above, missed):
        good, bad = above, capacity.load
    else:
        return _at(steady, found, _find_missed(steady, above, missed))
    for _ in range(50):
        middle = (good + bad) / 2
        good, bad = (good, middle) if _find_missed(steady, middle, missed) else (middle, bad)
    return _at(steady, good, _find_missed(steady, bad, missed))


def _misses_never(steady: Steady, targets: Targets, steps_per_token: float) -> bool:
    last = steady.at_load(steady.capacity.load * (1 - NEARLY))
    return targets.tpot is None or (last is not None and last.iteration * steps_per_token <= targets.tpot)


def _find_missed(steady: Steady, load: float, missed: object) -> str | None:
    state = steady.at_load(load)
    if state is None:
        return steady.capacity.limit
    return missed(state)  # type: ignore[operator,no-any-return]


def _at(steady: Steady, load: float, limit: str | None) -> Largest:
    return Largest(load, limit or steady.capacity.limit, steady.at_load(load))
