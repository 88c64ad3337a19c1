"""Regimes as an engineer tells them: what binds from where to where, without flicker inside of a stated band.

Tiles and waves make the largest resource change from one number to the next and back. A stretch is told by itself where
the resource that is told around it falls short by at least the band's share of the quantity over a doubling of the
symbol, or by as much in sum (twice as much over half a doubling). Of all ways to tell the stretches, the one with the
least sum of shortfalls, and of half a band for each change, is chosen; so with a band of zero every change is told.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

Array = np.ndarray[Any, Any]
BAND = 0.1
"""Share of the quantity, over a doubling of the symbol, below which a change is flicker."""


@dataclass(frozen=True)
class Profile:
    """What each resource is responsible for at points along a symbol.

    Attributes:
        points: of shape (points,), ascending.
        names: of the resources.
        shares: of the quantity, of shape (resources, points); all zero where it is due to no resource.
        weights: octaves of the symbol that each point stands for.
        runs: for each point the number of its stretch, ascending: within one the largest resource stays.
        edges: the ends of each stretch.
        open: the first and the last stretch are told however short they are: where nothing is rounded, they go on
            beyond the range.
    """

    points: Array
    names: tuple[str, ...]
    shares: Array
    weights: Array
    runs: Array
    edges: tuple[tuple[float, float], ...]
    open: bool = False


@dataclass(frozen=True)
class Flicker:
    """A part of a span in which other resources lead here and there.

    Attributes:
        low: where the first of them begins to lead.
        high: where the last of them ends.
        bounds: the resources.
        part: of the octaves between the two, the part in which they lead.
    """

    low: float
    high: float
    bounds: tuple[str, ...]
    part: float


@dataclass(frozen=True)
class Span:
    """A stretch that is told as one.

    Attributes:
        low: where it begins; of a whole number, the first.
        high: where it ends; of a whole number, the last.
        bound: the resource that binds; nothing where the quantity is due to none.
        shares: the least and the largest share of the resource.
        flicker: where others lead, within the band.
        at: a point in the middle.
    """

    low: float
    high: float
    bound: str | None
    shares: tuple[float, float]
    flicker: Flicker | None
    at: float


def spans_of(profile: Profile, band: float) -> tuple[Span, ...]:
    """The stretches of a profile, merged where they differ by less than the band."""
    count = len(profile.edges)
    starts = np.searchsorted(profile.runs, np.arange(count))
    own = [_largest(profile, int(start)) for start in starts]
    merged = band > 0 and all(name >= 0 for name in own)
    told = own
    if merged:
        regret = _regret(profile, starts)
        if profile.open:
            for run in (0, -1):
                regret[np.arange(len(regret)) != own[run], run] = np.inf
        told = _least_wrong(regret, band)
    spans = []
    for name, group in itertools.groupby(range(count), key=lambda run: told[run]):
        spans.append(_span(profile, list(group), own, name))
    return tuple(spans)


def _largest(profile: Profile, point: int) -> int:
    column = profile.shares[:, point] if len(profile.names) else np.zeros(1)
    return int(column.argmax()) if column.max() > 0 else -1


def _regret(profile: Profile, starts: Any) -> Array:
    """By how much each resource falls short of the largest, summed over the octaves of each stretch."""
    lead = (profile.shares.max(axis=0) - profile.shares) * profile.weights
    return np.add.reduceat(lead, starts, axis=1)


def _least_wrong(regret: Array, band: float) -> list[int]:
    """The resource told of each stretch: the least sum of regrets and of half a band for each change (Viterbi)."""
    costs, steps, change = regret[:, 0].copy(), [], band / 2
    for run in range(1, regret.shape[1]):
        best = int(costs.argmin())
        stays = costs <= costs[best] + change
        steps.append(np.where(stays, np.arange(len(costs)), best))
        costs = np.where(stays, costs, costs[best] + change) + regret[:, run]
    told = [int(costs.argmin())]
    for step in reversed(steps):
        told.append(int(step[told[-1]]))
    return told[::-1]


def _span(profile: Profile, runs: list[int], own: list[int], name: int) -> Span:
    inside = (profile.runs >= runs[0]) & (profile.runs <= runs[-1])
    low, high = profile.edges[runs[0]][0], profile.edges[runs[-1]][1]
    points = profile.points[inside]
    at = float(points[np.abs(np.log(points) - (math.log(low) + math.log(high)) / 2).argmin()])
    if name < 0:
        return Span(low, high, None, (0.0, 0.0), None, at)
    shares = profile.shares[:, inside]
    others = [run for run in runs if own[run] != name]
    flicker = None
    if others:
        names = dict.fromkeys(profile.names[own[run]] for run in others)
        hull = (profile.runs >= others[0]) & (profile.runs <= others[-1])
        part = profile.weights[np.isin(profile.runs, others)].sum() / profile.weights[hull].sum()
        flicker = Flicker(profile.edges[others[0]][0], profile.edges[others[-1]][1], tuple(names), float(part))
    return Span(low, high, profile.names[name], (float(shares[name].min()), float(shares[name].max())), flicker, at)


def octaves(values: Sequence[float] | Array) -> Array:
    """The octaves that each of several whole numbers stands for: to the next one, of the last as of the one before."""
    xs = np.asarray(values, dtype=float)
    if len(xs) < 2:
        return np.ones(len(xs))
    steps = np.diff(np.log2(xs))
    return np.append(steps, steps[-1])
