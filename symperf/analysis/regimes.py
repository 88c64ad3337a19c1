"""Regimes of a run along one symbol: between which values what binds, and where it changes."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..common.errors import InputError, quote
from .subject import subject_of
from .symbols import check_range, domain_of, lead_dependents, require_symbol

if TYPE_CHECKING:
    from ..evaluation.base_run import BaseRun
    from .cells import Branch, RegimeCell
    from .subject import Subject

MOST_WHOLE = 4096
"""Whole numbers that are tried one by one unless asked otherwise."""
LIMIT_WHOLE = 200_000
"""The most that are tried if asked."""
VIEWS = ("whole", "smooth")


@dataclass(frozen=True)
class Regime:
    """A stretch of the symbol on which the bounding resource and every active branch stay.

    Attributes:
        low: where it begins; of a whole number, the first.
        high: where it ends; of a whole number, the last.
        at: a point inside.
        value: of the quantity there.
        bound: the resource with the largest share; nothing where the quantity is no time.
        shares: of every resource, at the point.
    """

    low: float
    high: float
    at: float
    value: float
    bound: str | None
    shares: dict[str, float]
    cell: RegimeCell = field(repr=False, compare=False)
    last: RegimeCell = field(repr=False, compare=False)

    @property
    def branches(self) -> tuple[Branch, ...]:
        """What every maximum and minimum takes that the quantity depends on here."""
        return self.cell.branches

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "low": self.low,
            "high": self.high,
            "at": self.at,
            "value": self.value,
            "bound": self.bound,
            "shares": self.shares,
        }


FEW = 3
"""Resources that the side of a change is named by, at most; else it is written out."""


@dataclass(frozen=True)
class Change:
    """A maximum or minimum that takes another branch, or a step."""

    before: Branch
    after: Branch

    def __str__(self) -> str:
        where = self.before.terms[0] if self.before.terms else "between terms"
        if len(self.before.terms) > 1:
            where += f" and {len(self.before.terms) - 1} more"
        names = [branch.resource or branch.text for branch in (self.before, self.after)]
        if names[0] == names[1]:
            bearers = [branch.bearers for branch in (self.before, self.after)]
            apart = bearers[0] != bearers[1] and max(map(len, bearers)) <= FEW
            names = [" and ".join(each) for each in bearers] if apart else [self.before.text, self.after.text]
        return f"{where}: {names[0]} -> {names[1]}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "operation": self.before.operation,
            "terms": list(self.before.terms),
            "before": {"resource": self.before.resource, "text": self.before.text},
            "after": {"resource": self.after.resource, "text": self.after.text},
        }


@dataclass(frozen=True)
class Crossover:
    """Where one regime ends and the next begins.

    Attributes:
        x: the value of the symbol; of a whole number, the first of the new regime.
        changes: what switches.
        bound: the bounding resource before and after, where it changes.
        step: whether something jumps here.
    """

    x: float
    changes: tuple[Change, ...]
    bound: tuple[str | None, str | None] | None
    step: bool
    symbol: str
    cell: RegimeCell = field(repr=False, compare=False)

    def closed_form(self) -> Any:
        """`x` as a SymPy expression in the symbols, where branches or shares cross in a low degree; else nothing."""
        from .closed import crossing

        return crossing(self)

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "x": self.x,
            "bound": list(self.bound) if self.bound else None,
            "step": self.step,
            "changes": [change.to_dict() for change in self.changes],
        }


@dataclass(frozen=True)
class Regimes:
    """The regimes of one quantity along one symbol, in order.

    Attributes:
        view: "exact" of a real symbol; of a whole number "whole" (each was evaluated) or "smooth" (no roundings);
            "sampled" where a rounding depends on a real symbol, so that a grid had to be tried.
    """

    symbol: str
    low: float
    high: float
    of: str
    view: str
    intervals: tuple[Regime, ...]
    crossovers: tuple[Crossover, ...]

    def bounds(self) -> list[tuple[float, float, str | None]]:
        """The intervals of the bounding resource alone."""
        found: list[tuple[float, float, str | None]] = []
        for regime in self.intervals:
            if found and found[-1][2] == regime.bound:
                found[-1] = (found[-1][0], regime.high, regime.bound)
            else:
                found.append((regime.low, regime.high, regime.bound))
        return found

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "symbol": self.symbol,
            "low": self.low,
            "high": self.high,
            "of": self.of,
            "view": self.view,
            "intervals": [regime.to_dict() for regime in self.intervals],
            "crossovers": [crossover.to_dict() for crossover in self.crossovers],
        }

    def __str__(self) -> str:
        lines = [f"{self.of} along {self.symbol} from {self.low:.6g} to {self.high:.6g} ({self.view})"]
        for regime, crossover in zip(self.intervals, [None, *self.crossovers], strict=True):
            if crossover is not None:
                lines += [f"    {change}" for change in crossover.changes]
            lines.append(f"  {regime.low:.6g} to {regime.high:.6g}: {regime.bound or '-'}")
        return "\n".join(lines)


def regimes(run: BaseRun, symbol: str, low: float, high: float, of: str = "time", view: str | None = None) -> Regimes:
    """The regimes of a run along one symbol.

    Args:
        run: bound in every symbol.
        symbol: the symbol that varies.
        low: one end of the range, above 0.
        high: the other, above `low`.
        of: the quantity: an output or a term.
        view: of a whole number, "whole" or "smooth"; by default the first up to `MOST_WHOLE` numbers.

    Raises:
        InputError: an unknown symbol or quantity, or a range that is empty or reversed.
    """
    subject = subject_of(run, of, "regimes")
    subject = lead_dependents(run, subject, require_symbol(run, subject, symbol, "regimes"))
    domain = domain_of(symbol)
    ends = check_range(symbol, low, high, domain, "regimes")
    if view is not None and (not domain.whole or view not in VIEWS):
        expected = " or ".join(VIEWS) if domain.whole else f"none: {symbol} is no whole number"
        raise InputError(f"regimes: view is {quote(view)}, expected {expected}")
    return regimes_of(subject, symbol, *ends, whole=domain.whole, view=view)


def regimes_of(
    subject: Subject, symbol: str, low: float, high: float, *, whole: bool = False, view: str | None = None
) -> Regimes:
    """The regimes of a subject along one of its inputs; arguments as of `regimes`.

    Raises:
        InputError: more whole numbers than can be tried.
    """
    count = high - low + 1
    if whole and (view == "whole" or (view is None and count <= MOST_WHOLE)):
        if count > LIMIT_WHOLE:
            raise InputError(f"regimes: {count:.0f} whole numbers, expected at most {LIMIT_WHOLE}, or view = smooth")
        from .whole import stretches

        name, cells = "whole", stretches(subject, symbol, int(low), int(high))
    else:
        name = "smooth" if whole else "exact"
        smooth = subject.smooth(symbol) if whole else subject
        exact = _exact(smooth, symbol, low, high)
        if exact is None:
            from .sampled import stretches as sampled

            name, exact = "sampled", sampled(smooth, symbol, low, high)
        cells = exact
    intervals = [_regime(*stretch) for stretch in cells]
    for regime in intervals:
        if not math.isfinite(regime.value):
            raise InputError(
                f"regimes: {subject.output} is no finite number at {symbol} = {regime.at:g}, expected a narrower range"
            )
    found = []
    for before, after in itertools.pairwise(intervals):
        found.append(_crossover(symbol, before, after))
    return Regimes(symbol, low, high, subject.output, name, tuple(intervals), tuple(found))


def _exact(subject: Subject, symbol: str, low: float, high: float) -> list[Any] | None:
    """The stretches from exact pieces, or nothing where there are none."""
    from .crossings import crossings
    from .forms import FormError

    try:
        return crossings(subject, symbol, low, high)
    except FormError:
        return None


def _regime(cell: RegimeCell, last: RegimeCell, low: float, high: float, at: float) -> Regime:
    numbers = cell.numbers
    value = numbers.at(numbers.subject.position, cell.point)
    shares = numbers.shares(cell.point)
    bound = max(shares, key=lambda name: shares[name]) if shares else None
    return Regime(low, high, at, value, bound, shares, cell, last)


def _crossover(symbol: str, before: Regime, after: Regime) -> Crossover:
    first, second = before.last, after.cell
    instructions = first.numbers.subject.program.instructions
    changed = [at for at in sorted(first.active | second.active) if first.differs(second, at)]
    changes = tuple(Change(first.branch(at), second.branch(at)) for at in changed)
    step = any(instructions[at][0] not in ("max", "min") for at in changed)
    bound = (before.bound, after.bound) if before.bound != after.bound else None
    return Crossover(after.low, changes, bound, step, symbol, first)
