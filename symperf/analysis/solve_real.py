"""Solving for a real symbol: exact pieces set equal to a target, and where several targets are met at once."""

from __future__ import annotations

import dataclasses
import itertools
import math
from typing import TYPE_CHECKING

import numpy as np

from ..codegen.interpret import floats, run
from ..common.errors import InputError
from .answers import Unreachable
from .cross_real import Level, order_along
from .forms import FormError, PowerQuotient, constant, plain
from .measures import spell
from .roots import sign_at, sign_changes, value_at
from .solution import Solution

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .line import PiecewiseProgram
    from .solution import Target
    from .subject import Subject
    from .symbols import Domain

POINTS, LARGE = 4097, 1e18
"""Of the grid on which the limit of a share is looked for, and how far it goes where a symbol has no limit."""
Spans = list[tuple[float, float]]
"""Disjoint intervals in order, ends included."""


def solve_one(target: Target, symbol: str, domain: Domain) -> Solution:
    """The solution of one target, which is reached.

    Raises:
        Unreachable: there is none.
    """
    found = solve_real(target.side.subject, symbol, domain, target.wanted)
    return dataclasses.replace(
        found, of=target.of, binding=target.of, reached_all={target.of: found.reached}, targets=(target,)
    )


def solve_together(targets: Sequence[Target], symbol: str, domain: Domain) -> Solution:
    """Where several targets are met: the intersection of what each admits, and of its ends the one nearest to now.

    Raises:
        Unreachable: one is met nowhere, or never with the others.
    """
    low = 0.0 if domain.zero else domain.low
    admitted = [_admitted(target, low, domain.high) for target in targets]
    for target, spans in zip(targets, admitted, strict=True):
        if not spans:
            raise _met_nowhere(target, symbol, domain)
    together = admitted[0]
    for target, spans in zip(targets[1:], admitted[1:], strict=True):
        before, together = together, _both(together, spans)
        if not together:
            raise _conflict(targets, target, before, symbol)
    ends = [x for x in dict.fromkeys(itertools.chain(*together)) if low < x < domain.high]
    now = targets[0].side.now or 0.0
    inside = any(first <= now <= last for first, last in together)
    value = min(ends, key=lambda x: _distance(x, now)) if ends else now if inside else together[0][0]
    reached = {target.of: float(target.side.values([value])[0]) for target in targets}
    if ends and not all(target.met(reached[target.of]) or target.near(reached[target.of]) for target in targets):
        value = _inside(value, together)
        reached = {target.of: float(target.side.values([value])[0]) for target in targets}
    binding = min(targets, key=lambda target: abs(reached[target.of] / target.wanted - 1)) if ends else None
    of = binding or targets[0]
    return Solution(
        symbol,
        value,
        of.of,
        of.wanted,
        reached[of.of],
        tuple(ends),
        meets=of.meets,
        binding=None if binding is None else binding.of,
        reached_all=reached,
        targets=tuple(targets),
        admissible=tuple(together),
        subject=of.side.subject,
    )


def _inside(end: float, spans: Spans) -> float:
    """The number next to the end of an interval at which a quantity jumps, on the side where the targets are met."""
    toward = next(last if end == first else first for first, last in spans if end in (first, last))
    return math.nextafter(end, toward)


def _met_nowhere(target: Target, symbol: str, domain: Domain) -> Unreachable:
    """The error of a target that no value meets: how near it gets."""
    if target.side.faithful and not target.side.resource:
        try:
            solve_real(target.side.subject, symbol, domain, target.wanted)
        except Unreachable as error:
            return error
    xs = np.geomspace(domain.low, min(domain.high, max(domain.low, 1.0) * LARGE), POINTS)
    heights = target.side.values(xs) if target.side.faithful else np.array([target.side.value(x) for x in xs[::64]])
    best = int(np.nanargmin(target.sign * heights))
    at = float((xs if len(heights) == len(xs) else xs[::64])[best])
    return unreachable(target.of, symbol, target.wanted, float(heights[best]), at, domain)


def _admitted(target: Target, low: float, high: float) -> Spans:
    """Where a target is met."""
    order = order_along(target.side, Level(target.wanted), low, high)
    found: Spans = []
    for (first, last), sign in zip(itertools.pairwise([low, *order.cuts, high]), order.signs, strict=True):
        if sign * target.sign <= 0:
            if found and found[-1][1] == first:
                first = found.pop()[0]
            found.append((first, last))
    return found


def _both(a: Spans, b: Spans) -> Spans:
    """Where two sets of intervals overlap."""
    found = [(max(f, g), min(e, d)) for f, e in a for g, d in b]
    return [(first, last) for first, last in found if first <= last]


def _conflict(targets: Sequence[Target], missed: Target, before: Spans, symbol: str) -> Unreachable:
    """The error of targets that are met each, but not together, given where those before the missed one are met."""
    ends = [x for x in itertools.chain(*before) if 0 < x < math.inf]
    best = min(ends, key=lambda x: missed.sign * float(missed.side.values([x])[0]))
    return conflict(targets, missed, float(missed.side.values([best])[0]), symbol, best)


def conflict(targets: Sequence[Target], missed: Target, limit: float, symbol: str, at: float) -> Unreachable:
    """The error of a target that is not met together with those before it.

    Args:
        targets: all of them.
        missed: the one that is not.
        limit: how near it gets.
        symbol: what is solved for.
        at: where it gets so near.
    """
    others = " and ".join(str(target) for target in itertools.takewhile(lambda each: each is not missed, targets))
    found, where = spell(missed.of, limit), f"{symbol} = {spell(symbol, at)}"
    return Unreachable(f"{missed} is unreachable with {others}, the limit is {found} at {where}", limit, at)


def _distance(x: float, now: float) -> float:
    return abs(math.log(x / now)) if x > 0 and now > 0 else abs(x - now)


def solve_real(subject: Subject, symbol: str, domain: Domain, target: float) -> Solution:
    """The solutions along a real symbol; arguments as of `solve`.

    Raises:
        Unreachable: there is none.
    """
    low = 0.0 if domain.zero else domain.low
    try:
        line = subject.line(symbol, low, domain.high)
    except FormError:
        return _solve_sampled(subject, symbol, domain, target)
    parts = line.values[subject.position].parts
    if len(parts) == 1 and parts[0].under is None and set(plain(parts[0].over)) <= {(0, 0)}:
        raise InputError(f"solve: {subject.output} does not depend on {symbol} at these values")
    found = solutions(line, subject.position, target)
    allowed = [x for x in found if x >= domain.low or (x == 0 and domain.zero)]
    if not allowed:
        raise _out_of_reach(line, subject, symbol, domain, target)
    return _nearest(subject, symbol, target, allowed)


def _nearest(subject: Subject, symbol: str, target: float, allowed: list[float]) -> Solution:
    now = subject.values[symbol]
    value = min(allowed, key=lambda x: _distance(x, now))
    values = run(subject.program, subject.values | {symbol: value}, floats())
    reached = float(values[subject.position])
    return Solution(symbol, value, subject.output, target, reached, tuple(allowed), subject=subject)


def _solve_sampled(subject: Subject, symbol: str, domain: Domain, target: float) -> Solution:
    """The solutions where a rounding depends on the symbol, from a dense grid and halving."""
    from .sampled import crossings_of

    low = 0.0 if domain.zero else domain.low
    found, (xs, values) = crossings_of(subject, symbol, low, domain.high, target)
    allowed = [x for x in found if x >= domain.low or (x == 0 and domain.zero)]
    if allowed:
        return _nearest(subject, symbol, target, allowed)
    if values.min() == values.max():
        raise InputError(f"solve: {subject.output} does not depend on {symbol} at these values")
    gaps = abs(values - target)
    gaps[~(gaps < math.inf)] = math.inf
    at = int(gaps.argmin())
    raise unreachable(subject.output, symbol, target, float(values[at]), float(xs[at]), domain)


def solutions(line: PiecewiseProgram, position: int, target: float) -> list[float]:
    """Every x of a line, ends included, at which an instruction has a value; of a plateau, its first."""
    pieces = line.values[position]
    edges = (line.low, *pieces.cuts, line.high)
    level = constant(target)
    found: set[float] = set()
    for k, form in enumerate(pieces.parts):
        low, high = edges[k], edges[k + 1]
        difference = form - level
        over = plain(difference.over)
        if not over:
            found.add(low)
            continue
        found |= set(sign_changes(over, low, high))
        for end in (low, high):
            if math.isfinite(end) and _meets(difference, target, end):
                found.add(end)
        if k and _sign(pieces.parts[k - 1] - level, low) * _sign(difference, low) < 0:
            found.add(low)
    return _distinct(sorted(found))


def _meets(difference: PowerQuotient, target: float, x: float) -> bool:
    if x == 0:
        over = plain(difference.over)
        return min(e for e, _ in over) > 0
    return abs(_value(difference, x)) <= 4e-16 * target


def _sign(form: PowerQuotient, x: float) -> int:
    return sign_at(plain(form.over), x) * (1 if form.under is None else sign_at(plain(form.under), x))


def _value(form: PowerQuotient, x: float) -> float:
    if x == 0:
        return float(plain(form.over).get((0, 0), 0)) if form.under is None else math.nan
    under = 1.0 if form.under is None else value_at(plain(form.under), x)
    over = plain(form.over)
    return value_at(over, x) / under if over else 0.0


def _distinct(found: list[float]) -> list[float]:
    kept: list[float] = []
    for x in found:
        if not kept or not math.isclose(x, kept[-1], rel_tol=1e-14):
            kept.append(x)
    return kept


def _out_of_reach(line: PiecewiseProgram, subject: Subject, symbol: str, domain: Domain, target: float) -> Unreachable:
    """The error that tells how near to its target the quantity gets, and where."""
    nearest, at, gap = None, math.nan, math.inf
    pieces = line.values[subject.position]
    edges = (line.low, *pieces.cuts, line.high)
    for k, form in enumerate(pieces.parts):
        for x in (edges[k], edges[k + 1], *_flat(form, edges[k], edges[k + 1])):
            value = end_value(form, x)
            if value is not None and abs(value - target) < gap:
                nearest, at, gap = value, x, abs(value - target)
    return unreachable(subject.output, symbol, target, nearest, at, domain)


def _flat(form: PowerQuotient, low: float, high: float) -> list[float]:
    """Where a form turns, strictly between two points."""
    if form.under is not None:
        return []
    over = plain(form.over)
    slope = {(e, k): c * e for (e, k), c in over.items() if e}
    return sign_changes(slope, low, high) if slope and not any(k for _, k in over) else []


def end_value(form: PowerQuotient, x: float) -> float | None:
    """The value of a form at x, or its limit at 0 or infinity; nothing where that is infinite."""
    if 0 < x < math.inf:
        return _value(form, x)
    from .limits import leading

    exponent, logs, coefficient = leading(form, x)
    rising = exponent if math.isinf(x) else -exponent
    if coefficient and (rising > 0 or (rising == 0 and logs > 0)):
        return None
    return float(coefficient) if rising == 0 and logs == 0 else 0.0


def unreachable(of: str, symbol: str, target: float, limit: float | None, at: float, domain: Domain) -> Unreachable:
    """The error of a target out of reach."""
    where = f"at {symbol} = {spell(symbol, at)}"
    if math.isinf(at):
        where = f"as {symbol} grows without bound"
    elif at == domain.high:
        where += ", the largest considered"
    elif at == domain.low:
        where += ", the smallest considered"
    found = "none" if limit is None else spell(of, limit)
    return Unreachable(f"{of} = {spell(of, target)} is unreachable, the limit is {found} {where}", limit, at)
