"""Solving for a whole number: the last or the first one that meets the target and that the run accepts."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..codegen.interpret import arrays, floats, run
from ..common.errors import InputError
from .answers import Unreachable
from .direction import direction
from .symbols import LARGEST

if TYPE_CHECKING:
    from ..evaluation.base_run import BaseRun
    from .solve import Solution
    from .subject import Subject
    from .symbols import Domain

HIGHER_IS_BETTER = ("mfu", "hfu", "mbu", "_per_s")
"""Parts of the names of quantities that are to be at least their target."""
SCANNED = 1 << 16
"""Whole numbers tried one by one where no direction is proved."""
TRIES = 20_000
"""Whole numbers offered to the run, beginning with the best, before giving up."""
DIVISORS = ("tp", "pp", "dp", "vpp", "ep", "expert_tp", "micro_batch", "num_key_value_heads")
"""Symbols that a run accepts only where they divide one of its sizes, so that only divisors are offered to it."""


def is_higher_better(quantity: str) -> bool:
    """Whether a quantity is to be at least its target, and of two the higher one is better."""
    return any(part in quantity for part in HIGHER_IS_BETTER)


def solve_whole(of_run: BaseRun, subject: Subject, symbol: str, domain: Domain, target: float) -> Solution:
    """The whole number that meets a target, nearest to where the target is just met.

    Raises:
        Unreachable: none does, or none that the run accepts.
        InputError: the quantity does not depend on the symbol.
    """
    from .solve import Solution, unreachable

    sign = -1 if is_higher_better(subject.output) else 1
    low, high = int(domain.low), int(domain.high)
    way = direction(subject, symbol, domain.low, domain.high)
    if way == 0:
        raise InputError(f"solve: {subject.output} does not depend on {symbol}")

    def met(n: int) -> bool:
        return sign * (_at(subject, symbol, n) - target) <= 0

    if way is None:
        high = min(high, low + SCANNED - 1)
        candidates, best = _scan(subject, symbol, (low, high), sign, target)
    else:
        best = high if way * sign < 0 else low
        candidates = _walk(low, high, met, rising=way * sign > 0) if met(best) else ()
    meets_somewhere = bool(candidates)
    if symbol in DIVISORS:
        allowed = divisors_of(of_run)
        down = isinstance(candidates, range) and candidates.step < 0
        if isinstance(candidates, range):
            candidates = [n for n in sorted(allowed, reverse=down) if n in candidates]
        else:
            candidates = [n for n in candidates if n in allowed]
    tried = 0
    for n in candidates:
        tried += 1
        accepted = _try_value(of_run, symbol, n, subject.output)
        if accepted is not None and sign * (accepted - target) <= 0:
            meets = ">=" if sign < 0 else "<="
            return Solution(
                symbol,
                float(n),
                subject.output,
                target,
                accepted,
                (float(n),),
                whole=True,
                meets=meets,
                subject=subject,
            )
        if tried >= TRIES:
            break
    if meets_somewhere:
        which = f"none of the {TRIES} nearest values of" if tried >= TRIES else "no"
        text = f"{subject.output} = {target:.6g} is unreachable: the run accepts {which} {symbol} that would reach it"
        raise Unreachable(text, None, float(best))
    raise unreachable(subject.output, symbol, target, _at(subject, symbol, best), float(best), domain)


def divisors_of(of_run: BaseRun) -> set[int]:
    """Every divisor of a whole number that the run is bound to."""
    found: set[int] = set()
    for size in {int(value) for value, _ in of_run.bound.values() if value % 1 == 0 and 1 <= value <= LARGEST}:
        tried = np.arange(1, math.isqrt(size) + 1)
        small = tried[size % tried == 0]
        found.update(small.tolist(), (size // small).tolist())
    return found


def _walk(low: int, high: int, met: Any, *, rising: bool) -> Any:
    """The numbers that meet a target, the last first where the quantity worsens, the first first where it betters."""
    if rising:
        last = _last(low, high, met)
        return range(last, low - 1, -1)
    first = -_last(-high, -low, lambda n: met(-n))
    return range(first, high + 1)


def _last(low: int, high: int, met: Any) -> int:
    """The last number of a range that meets, given that `low` does and that none does after one that does not."""
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if met(middle) else (low, middle - 1)
    return low


def _scan(subject: Subject, symbol: str, ends: tuple[int, int], sign: int, target: float) -> tuple[Any, int]:
    """The numbers that meet the target, and the one that comes nearest to it.

    The last come first where the quantity is worse at the end of the range than at its beginning.
    """
    xs = np.arange(ends[0], ends[1] + 1, dtype=float)
    found = np.concatenate([_many(subject, symbol, xs[k : k + 8192]) for k in range(0, len(xs), 8192)])
    good = np.flatnonzero(sign * (found - target) <= 0)
    if sign * (found[-1] - found[0]) > 0:
        good = good[::-1]
    return [int(xs[k]) for k in good], int(xs[np.nanargmin(sign * found)])


def _many(subject: Subject, symbol: str, xs: Any) -> Any:
    with np.errstate(all="ignore"):
        values = run(subject.program, subject.values | {symbol: xs}, arrays())
    return np.broadcast_to(values[subject.position], xs.shape)


def _at(subject: Subject, symbol: str, n: int) -> float:
    return float(run(subject.program, subject.values | {symbol: float(n)}, floats())[subject.position])


def _try_value(of_run: BaseRun, symbol: str, n: int, of: str) -> float | None:
    """The quantity with the symbol bound to a number, or nothing where the run refuses it."""
    try:
        value = of_run.bind(**{symbol: n}).value(of)
    except InputError:
        return None
    return value if math.isfinite(value) else None
