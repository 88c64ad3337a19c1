"""Solving for a whole number: the last or the first one that meets every target and that the run accepts."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..common.errors import InputError
from .answers import Unreachable
from .beyond import also_binds, next_legal
from .cross_sides import DIVISORS, divisors_of, value_now
from .direction import direction
from .measures import spell
from .solution import Solution
from .solve_real import conflict, unreachable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..evaluation.base_run import BaseRun
    from .solution import Target
    from .symbols import Domain

SCANNED = 1 << 16
"""Whole numbers tried one by one where no direction is proved."""
FAR = 513
"""Beyond them, numbers with equal ratios."""
TRIES = 20_000
"""Whole numbers offered to the run, beginning with the best, before giving up."""
PATIENCE = 64
"""Candidates that are offered in order before the first legal one is looked for by halving."""
BOUND = 1024
"""Whole numbers that are bound one by one where the form of the cost changes along the symbol."""


def solve_whole(of_run: BaseRun, targets: Sequence[Target], symbol: str, domain: Domain) -> Solution:
    """The whole number that meets the targets, nearest to where one is just met.

    Raises:
        Unreachable: none does, or none that the run accepts.
        InputError: no quantity depends on the symbol.
    """
    low, high = int(domain.low), int(domain.high)
    if symbol in DIVISORS:
        offered = sorted(n for n in divisors_of(of_run) if low <= n <= high)
        return _each(of_run, targets, symbol, offered, domain)
    ways = [
        None if target.side.resource else direction(target.side.subject, symbol, domain.low, domain.high)
        for target in targets
    ]
    if not any(ways[k] != 0 for k in range(len(targets))):
        raise InputError(f"solve: {targets[0].of} does not depend on {symbol}")
    if not all(target.side.faithful for target in targets):
        beside = {n for n in divisors_of(of_run) if low <= n <= high}
        return _each(of_run, targets, symbol, sorted({*range(low, min(high, low + BOUND) + 1), *beside}), domain)
    candidates: Sequence[int]
    if None in ways:
        numbers, rising = _scan(targets, symbol, low, high, domain)
        candidates = [int(n) for n in (numbers[::-1] if rising else numbers)]
    else:
        first, last = low, high
        for target, way in zip(targets, ways, strict=True):
            begins, ends = _span(target, symbol, low, high, way or 0, domain)
            if max(first, begins) > min(last, ends):
                raise _conflict(targets, target, symbol, (first, last))
            first, last = max(first, begins), min(last, ends)
        leading = next(target.sign * way for target, way in zip(targets, ways, strict=True) if way)
        rising = leading > 0
        candidates = range(last, first - 1, -1) if rising else range(first, last + 1)
    return _first_accepted(
        of_run, targets, symbol, candidates, 1 if rising else -1, (int(domain.low), int(domain.high))
    )


def _first_accepted(
    of_run: BaseRun,
    targets: Sequence[Target],
    symbol: str,
    candidates: Sequence[int],
    step: int,
    ends: tuple[int, int],
) -> Solution:
    """The first candidate that the run accepts and at which it meets every target."""
    reason = ""
    offered = list(candidates[:PATIENCE])
    offered += _legal_part(of_run, symbol, candidates[PATIENCE:])
    for n in offered:
        try:
            bound = of_run.bind(**{symbol: n})
        except InputError as error:
            reason = reason or str(error)
            continue
        reached = _reached(bound, targets)
        if all(target.met(reached[target.of]) for target in targets):
            other, why = next_legal(of_run, symbol, n, step, ends)
            beyond = None if other is None else _reached(other, targets)
            return _solution(of_run, bound, targets, symbol, n, step, reached, _binding(targets, beyond, why))
    which = f"none of the {TRIES} nearest values of" if len(offered) < len(candidates) else "no"
    told = " and ".join(f"{target.of} = {spell(target.of, target.wanted)}" for target in targets)
    because = f": {reason}" if reason else ""
    text = f"{told} is unreachable: the run accepts {which} {symbol} that would reach it{because}"
    raise Unreachable(text, None, float(candidates[0]))


def _legal_part(of_run: BaseRun, symbol: str, candidates: Sequence[int]) -> Sequence[int]:
    """The candidates from where the run begins to accept them; rules that a whole number breaks end somewhere.

    It is found from the value now in steps that halve, so that what divides now divides most of what is tried.
    """
    now = int(value_now(of_run, symbol) or 1)
    if not candidates or not min(candidates[0], candidates[-1]) <= now <= max(candidates[0], candidates[-1]):
        return candidates[:TRIES]

    def legal(n: int) -> bool:
        try:
            of_run.bind(**{symbol: n})
        except InputError:
            return False
        return True

    way, last = (1 if candidates[0] > now else -1), now
    step = 1 << abs(candidates[0] - now).bit_length()
    while step:
        other = last + way * step
        if abs(other - now) <= abs(candidates[0] - now) and legal(other):
            last = other
        else:
            step //= 2
    begin = abs(candidates[0] - last) - PATIENCE
    return candidates[max(begin, 0) :][:TRIES]


def _solution(
    of_run: BaseRun,
    bound: BaseRun,
    targets: Sequence[Target],
    symbol: str,
    n: int,
    step: int,
    reached: dict[str, float],
    binding: str | None,
) -> Solution:
    of = next((target for target in targets if target.of == binding), targets[0])
    return Solution(
        symbol,
        float(n),
        of.of,
        of.wanted,
        reached[of.of],
        (float(n),),
        whole=True,
        meets=of.meets,
        binding=binding,
        end="largest" if step > 0 else "smallest",
        reached_all=reached,
        targets=tuple(targets),
        also=also_binds(of_run, bound, reached),
    )


def _binding(targets: Sequence[Target], beyond: dict[str, float] | None, why: str) -> str | None:
    """What keeps a whole number from going further: the target that is missed beyond it, or the run's reason."""
    if beyond is None:
        return why or None
    missed = [target for target in targets if not target.met(beyond[target.of])]
    return max(missed, key=lambda target: abs(beyond[target.of] / target.wanted - 1)).of if missed else None


def _reached(bound: BaseRun, targets: Sequence[Target]) -> dict[str, float]:
    return {target.of: float(target.side.of_runs([bound])[0]) for target in targets}


# --- one by one


def _each(of_run: BaseRun, targets: Sequence[Target], symbol: str, offered: Iterable[int], domain: Domain) -> Solution:
    """The best of numbers each of which is bound."""
    runs: dict[int, BaseRun] = {}
    refused: dict[int, str] = {}
    for n in offered:
        try:
            runs[n] = of_run.bind(**{symbol: n})
        except InputError as error:
            refused[n] = str(error)
    if not runs:
        why = next(iter(refused.values()), "none was tried")
        raise Unreachable(f"the run accepts no {symbol} that was tried: {why}", None, domain.low)
    columns = {target.of: target.side.of_runs(list(runs.values())) for target in targets}
    if all(np.ptp(column) == 0 for column in columns.values()) and len(runs) > 1:
        raise InputError(f"solve: {targets[0].of} does not depend on {symbol}")
    numbers = list(runs)
    good = np.ones(len(numbers), dtype=bool)
    for target in targets:
        met = target.sign * (columns[target.of] - target.wanted) <= 0
        best = int(np.nanargmin(target.sign * columns[target.of]))
        if not met.any():
            raise unreachable(target.of, symbol, target.wanted, float(columns[target.of][best]), numbers[best], domain)
        if not (good & met).any():
            best = int(np.nanargmin(np.where(good, target.sign * columns[target.of], np.inf)))
            raise conflict(targets, target, float(columns[target.of][best]), symbol, float(numbers[best]))
        good &= met
    leading = next(target for target in targets if np.ptp(columns[target.of]) > 0 or len(runs) == 1)
    rise = _worsens(leading, symbol, domain, columns[leading.of])
    place = int(np.flatnonzero(good)[-1 if rise else 0])
    step, n = (1 if rise else -1), numbers[place]
    reached = {of: float(column[place]) for of, column in columns.items()}
    beside = place + step
    beyond = {of: float(column[beside]) for of, column in columns.items()} if 0 <= beside < len(numbers) else None
    why = next((refused[m] for m in sorted(refused, key=lambda m: abs(m - n)) if (m - n) * step > 0), "")
    return _solution(of_run, runs[n], targets, symbol, n, step, reached, _binding(targets, beyond, why))


def _worsens(target: Target, symbol: str, domain: Domain, column: Any) -> bool:
    """Whether a quantity is worse at larger numbers: by a proof, or by the first and the last that are tried.

    Args:
        target: the quantity.
        symbol: the whole number.
        domain: of it.
        column: the quantity at every legal number, in order.
    """
    ends = column[[0, -1]]
    if not target.side.resource and not target.side.constant:
        try:
            subject = target.side.subject
        except InputError:  # what the run moves with it follows no proportion: no one program holds along it
            return bool(target.sign * (ends[1] - ends[0]) > 0)
        way = direction(subject, symbol, domain.low, domain.high)
        if way is not None:
            return way * target.sign > 0
        far = target.side.values(np.array([domain.low, min(domain.high, domain.low + SCANNED - 1)]))
        ends = far if np.all(np.isfinite(far)) else ends
    return bool(target.sign * (ends[1] - ends[0]) > 0)


# --- by the program


def _span(target: Target, symbol: str, low: int, high: int, way: int, domain: Domain) -> tuple[int, int]:
    """The first and the last number that meet a target, whose quantity moves one way."""

    def met(n: int) -> bool:
        return target.met(_at(target, n))

    rising = way * target.sign
    best = high if rising < 0 else low
    _require_met(target, symbol, met(best), best, domain)
    if rising > 0:
        return low, _last(low, high, met)
    return (-_last(-high, -low, lambda n: met(-n)), high) if rising < 0 else (low, high)


def _require_met(target: Target, symbol: str, met: bool, best: int, domain: Domain) -> None:
    """Refuse a target that not even the best number meets.

    Raises:
        Unreachable: it does not.
    """
    if not met:
        raise unreachable(target.of, symbol, target.wanted, _at(target, best), float(best), domain)


def _conflict(targets: Sequence[Target], missed: Target, symbol: str, near: Iterable[int]) -> Unreachable:
    """The error of targets each of which is met somewhere, but never all.

    Args:
        targets: all of them.
        missed: the first that is not met with those before it.
        symbol: what is solved for.
        near: numbers at which those before it are met.
    """
    xs = np.array(sorted(near), dtype=float)
    heights = missed.side.values(xs)
    best = int(np.nanargmin(missed.sign * heights))
    return conflict(targets, missed, float(heights[best]), symbol, float(xs[best]))


def _last(low: int, high: int, met: Any) -> int:
    """The last number of a range that meets, given that `low` does and that none does after one that does not."""
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if met(middle) else (low, middle - 1)
    return low


def _scan(targets: Sequence[Target], symbol: str, low: int, high: int, domain: Domain) -> tuple[Any, bool]:
    """The numbers that meet every target, in order, and whether the first quantity is worse at the end.

    Beyond the numbers that are tried one by one it is followed in steps of a few per cent, to where it ceases to meet.
    """
    near = np.arange(low, min(high, low + SCANNED - 1) + 1, dtype=float)
    far = np.unique(np.floor(np.geomspace(near[-1], high, FAR))) if high > near[-1] else near[-1:]
    xs = np.concatenate([near, far[1:]])
    good = np.ones(len(xs), dtype=bool)
    rising = False
    for k, target in enumerate(targets):
        heights = np.concatenate([target.side.values(xs[j : j + 8192]) for j in range(0, len(xs), 8192)])
        met = target.sign * (heights - target.wanted) <= 0
        _require_met(target, symbol, bool(met.any()), int(xs[np.nanargmin(target.sign * heights)]), domain)
        if not (good & met).any():
            raise _conflict(targets, target, symbol, xs[good].astype(int))
        good &= met
        if k == 0:
            rising = bool(target.sign * (heights[-1] - heights[0]) > 0)
    last = int(np.flatnonzero(good)[-1]) if good.any() else 0
    if rising and len(near) <= last < len(xs) - 1:
        end = _last(int(xs[last]), int(xs[last + 1]) - 1, lambda n: all(t.met(_at(t, n)) for t in targets))
        return np.concatenate([xs[good], np.arange(max(end - TRIES, int(xs[last]) + 1), end + 1, dtype=float)]), rising
    return xs[good], rising


def _at(target: Target, n: int) -> float:
    found = float(target.side.values(np.array([float(n)]))[0])
    return found if not math.isnan(found) else math.inf
