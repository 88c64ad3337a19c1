"""The inverse question: which value of a symbol brings quantities to their targets."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

from ..common.errors import InputError, nearest, quote
from ..common.numbers import is_finite
from ..evaluation.folders import folder_parts
from .beyond import also_binds
from .cross_sides import Side, domain_along, is_known, resources_of
from .solution import SHARE, Solution, Target
from .subject import subject_of
from .symbols import Domain, require_symbol

if TYPE_CHECKING:
    from ..evaluation.base_run import BaseRun


def solve(
    of_run: BaseRun, symbol: str, *, low: float | None = None, high: float | None = None, **targets: float
) -> Solution:
    """The value of a symbol at which quantities are at their targets.

    A real symbol is solved for exactly, over all regimes: one target is reached; of several, all are met, and the
    answer is where the one that binds is just met. Of a whole number the answer meets every target. Times, bytes,
    joules and dollars are met at or below, rates and utilisations at or above. The answer is the largest whole number
    that does where more is worse for the first target, the smallest where more is better, and one that the run
    accepts. Where no direction is proved, what is worse is told by the first and the last of the first 65,536 numbers.

    Args:
        of_run: bound in every symbol.
        symbol: what to solve for.
        low: the smallest value to consider; by default the smallest that a run accepts.
        high: the largest.
        targets: quantities by name, and their targets: `time=0.02`, `memory=80e9`, `mfu=0.5`.

    Raises:
        InputError: an unknown symbol or quantity, one that does not depend on the symbol, or a target that is no
            positive number.
        Unreachable: no value meets the targets; it says what the limit is.
    """
    if not targets:
        raise InputError("solve: found no target, expected one such as time = 0.02")
    for of, wanted in targets.items():
        if not is_finite(wanted) or wanted <= 0:
            raise InputError(f"solve: {of} is {quote(wanted)}, expected a finite number above 0")
    made = [Target(of, float(wanted), _side_of(of_run, of, symbol)) for of, wanted in targets.items()]
    asked = isinstance(symbol, str) and symbol in of_run.question and is_known(of_run, symbol)
    if not isinstance(symbol, str) or not (asked or any(not target.side.constant for target in made)):
        require_symbol(of_run, subject_of(of_run, made[0].of, "solve"), symbol, "solve")
    domain = _limit_domain(symbol, domain_along(of_run, symbol), low, high)
    if domain.whole:
        from .integers import solve_whole

        return solve_whole(of_run, made, symbol, domain)
    from .solve_real import solve_one, solve_together

    alone = len(made) == 1 and made[0].side.faithful and not made[0].side.resource
    found = solve_one(made[0], symbol, domain) if alone else solve_together(made, symbol, domain)
    there = made[0].side.bind(found.value)
    ends = (0.0 if domain.zero else domain.low, domain.high)
    return dataclasses.replace(found, considered=ends, also=also_binds(of_run, there, found.reached_all))


def _side_of(run: BaseRun, of: str, symbol: str) -> Side:
    """A quantity along a symbol; "share of compute" is the part of the time that a resource is responsible for."""
    if not of.startswith(SHARE):
        return Side(of, run, of, symbol, "solve")
    resource = of.removeprefix(SHARE).strip()
    if folder_parts(run.compiled, f"{resource}+"):
        return Side(of, run, of, symbol, "solve")
    if resource not in resources_of(run):
        known = resources_of(run)
        raise InputError(
            f"solve: {quote(of)}, expected the share of {' or '.join(sorted(known))}{nearest(resource, known)}"
        )
    return Side(of, run, "time", symbol, "solve", resource=resource, share=True)


def _limit_domain(symbol: str, domain: Domain, low: float | None, high: float | None) -> Domain:
    for what, value in (("low", low), ("high", high)):
        if value is not None and not (is_finite(value) and value >= 0):
            raise InputError(f"solve: {what} is {quote(value)}, expected a finite number of at least 0")
    first = domain.low if low is None else max(low, domain.low)
    last = domain.high if high is None else min(high, domain.high)
    if domain.whole:
        first, last = float(math.ceil(first)), float(math.floor(last))
    if first > last or (first == last and not domain.whole):
        raise InputError(f"solve: no value of {symbol} from {first:g} to {last:g}, expected low below high")
    return Domain(domain.whole, first, last, domain.zero and not low)
