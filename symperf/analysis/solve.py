"""The inverse question: which value of a symbol brings a quantity to a target."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..codegen.interpret import floats, run
from ..common.errors import InputError, quote
from ..common.numbers import is_finite
from .answers import Unreachable
from .forms import FormError, PowerQuotient, constant, plain
from .roots import sign_at, sign_changes, value_at
from .subject import subject_of
from .symbols import Domain, domain_of, lead_dependents, require_symbol

if TYPE_CHECKING:
    from ..evaluation.base_run import BaseRun
    from .line import PiecewiseProgram
    from .subject import Subject


@dataclass(frozen=True)
class Solution:
    """A value of a symbol at which a quantity reaches a target.

    Attributes:
        symbol: what was solved for.
        value: the answer; of several, the nearest to the value now.
        of: the quantity.
        target: its target.
        reached: its value at the answer.
        values: every answer, in order; of a whole number, the one.
        whole: whether the symbol is a whole number: then the quantity is at its target or on the good side of it.
        meets: of a whole number, "<=" or ">=": the side of the target that is good.
    """

    symbol: str
    value: float
    of: str
    target: float
    reached: float
    values: tuple[float, ...]
    whole: bool = False
    meets: str | None = None
    subject: Subject | None = field(default=None, repr=False, compare=False)

    def closed_form(self) -> Any:
        """`value` as a SymPy expression in the other symbols and in the quantity, where its regime has one."""
        from .inverse import inverse

        return inverse(self)

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "symbol": self.symbol,
            "value": self.value,
            "of": self.of,
            "target": self.target,
            "reached": self.reached,
            "values": list(self.values),
            "whole": self.whole,
            "meets": self.meets,
        }

    def __str__(self) -> str:
        number = f"{self.value:.0f}" if self.whole else f"{self.value:.10g}"
        return f"{self.symbol} = {number}: {self.of} = {self.reached:.6g}, target {self.target:.6g}"


def solve(
    of_run: BaseRun, symbol: str, *, low: float | None = None, high: float | None = None, **target: float
) -> Solution:
    """The value of a symbol at which a quantity reaches a target.

    A real symbol is solved for exactly, over all regimes. Of a whole number the answer meets the target: times
    and bytes are to stay at or below it, rates and utilisations at or above. It is the largest
    whole number that does where more is worse, the smallest where more is better, and one that the run accepts. Where
    no direction is proved, what is worse is told by the first and the last of the first 65,536 numbers.

    Args:
        of_run: bound in every symbol.
        symbol: what to solve for.
        low: the smallest value to consider; by default the smallest that a run accepts.
        high: the largest.
        target: one quantity by name, and its target: `time=0.02`, `memory=80e9`, `mfu=0.5`.

    Raises:
        InputError: an unknown symbol or quantity, one that the quantity does not depend on, or a target that is no
            positive number.
        Unreachable: no value reaches the target; it says what the limit is.
    """
    if len(target) != 1:
        raise InputError(f"solve: found {len(target)} targets, expected one, such as time = 0.02")
    ((of, wanted),) = target.items()
    if not is_finite(wanted) or wanted <= 0:
        raise InputError(f"solve: {of} is {quote(wanted)}, expected a finite number above 0")
    subject = subject_of(of_run, of, "solve")
    subject = lead_dependents(of_run, subject, require_symbol(of_run, subject, symbol, "solve"))
    domain = _limit_domain(symbol, domain_of(symbol), low, high)
    if domain.whole:
        from .integers import solve_whole

        return solve_whole(of_run, subject, symbol, domain, float(wanted))
    return solve_real(subject, symbol, domain, float(wanted))


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
    value = min(allowed, key=lambda x: abs(math.log(x / now)) if x > 0 and now > 0 else abs(x - now))
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
    number = f"{at:.0f}" if domain.whole else f"{at:.6g}"
    where = f"at {symbol} = {number}"
    if math.isinf(at):
        where = f"as {symbol} grows without bound"
    elif at == domain.high:
        where += ", the largest considered"
    elif at == domain.low:
        where += ", the smallest considered"
    found = "none" if limit is None else f"{limit:.6g}"
    return Unreachable(f"{of} = {target:.6g} is unreachable, the limit is {found} {where}", limit, at)
