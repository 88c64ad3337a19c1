"""Where one thing passes another along a symbol: terms, resources, quantities, or whole choices of a run."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ..common.errors import InputError, quote
from ..common.numbers import is_finite
from .answers import Answer, AnswerTable, Equation
from .cross_real import order_along
from .cross_sides import domain_along, sides_of
from .cross_whole import turns, values_along
from .measures import spell
from .solution import is_higher_better

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..evaluation.base_run import BaseRun
    from .cross_sides import Side
    from .cross_whole import Values
    from .symbols import Domain

BAND = 0.01
"""Changes of the lead between which the two differ by less than this part are told as one."""
SPREAD = 16
"""A picture and the default range of a whole number go to this many times the value now."""
LEAST_RANGE = 4096
"""The default range of a whole number goes at least so far."""
LONGEST = 600
"""Instructions of a program whose closed forms are looked for unasked."""
LONGEST_HEAD = 24
"""Characters of a label that is the head of a column."""
SHOWN = 6
"""Crossings, intervals and reasons that a text tells one by one."""


@dataclass(frozen=True)
class Crossing:
    """Where the lead changes.

    Attributes:
        at: the value of the symbol; of a whole number, the first legal one of the new order.
        first: who leads before; None where both are equal.
        then: who leads from there on; None where both are equal.
        before: of a whole number, the last legal one of the old order; else `at`.
        low: where several changes lie within the band, the first of them; else `at`.
        changes: how many they are.
    """

    at: float
    first: str | None
    then: str | None
    before: float
    low: float
    changes: int = 1

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        flicker = None if self.changes == 1 else {"low": self.low, "high": self.at, "changes": self.changes}
        return {"at": self.at, "first": self.first, "then": self.then, "before": self.before, "flicker": flicker}


@dataclass(frozen=True)
class Cross(Answer):
    """Where one of two things passes the other along a symbol.

    Of two choices the better one leads: the lower time, memory, cost or energy, the higher rate or utilisation. Of two
    terms, resources or quantities the larger one leads.

    Attributes:
        over: the symbol.
        low: where the comparison begins.
        high: where it ends; may be infinite.
        of: the quantity that choices are compared in; None of other things.
        view: "exact" of a real symbol; "whole", or "sampled" where a grid had to be tried.
        crossings: every change of the lead, in order.
        leads: who leads between them; None where both are equal.
        skipped: whole numbers that a run refuses, and why.
        flickers: where the lead changes back and forth within the band, and is in the end what it was.
    """

    over: str
    low: float
    high: float
    of: str | None
    view: str
    crossings: tuple[Crossing, ...]
    leads: tuple[str | None, ...]
    skipped: dict[int, str]
    a: Side = field(repr=False, compare=False)
    b: Side = field(repr=False, compare=False)
    found: Values | None = field(default=None, repr=False, compare=False)
    flickers: tuple[Crossing, ...] = ()

    @property
    def always(self) -> str | None:
        """Who leads everywhere; None where the lead changes, or both are equal."""
        return self.leads[0] if len(set(self.leads)) == 1 else None

    @property
    def whole(self) -> bool:
        """Whether the symbol is a whole number."""
        return self.found is not None

    def intervals(self, leader: str | None) -> list[tuple[float, float]]:
        """Where one of the two leads; of a whole number, the first and the last legal one."""
        edges = [self.low, *(crossing.at for crossing in self.crossings), self.high]
        ends = [*(crossing.before for crossing in self.crossings), self.high]
        return [(edges[k], ends[k]) for k, lead in enumerate(self.leads) if lead == leader]

    def closed_form(self, crossing: int = 0) -> Any:
        """A crossing along a real symbol as a SymPy expression in the other symbols; nothing where it has none.

        A symbol with another value on each side is written `a.NAME` and `b.NAME`.
        """
        if self.whole or crossing >= len(self.crossings):
            return None
        from .cross_closed import closed_crossing

        return closed_crossing(self.a, self.b, self.crossings[crossing].at)

    # --- as an answer

    @property
    def sentence(self) -> str:
        """The answer as an engineer would say it."""
        does, by = ("beats", f" in {self.of}") if self.of else ("exceeds", "")
        name, last = self.over, "" if math.isinf(self.high) else f" to {spell(self.over, self.high)}"
        if len(self.leads) == 1:
            where = f"for every {name} from {spell(name, self.low)}{last or ' on'}"
            if self.always is None:
                return f"{self.a.label} and {self.b.label} are equal{by} {where}."
            other = self.b.label if self.always == self.a.label else self.a.label
            return f"{self.always} {does} {other}{by} {where}."
        leader = self.a.label if self.a.label in self.leads else self.b.label
        other = self.b.label if leader == self.a.label else self.a.label
        spans = [self._span(*ends) for ends in self.intervals(leader)]
        rest = f" and {len(spans) - SHOWN} more intervals" if len(spans) > SHOWN else ""
        tied = ", and they are equal elsewhere" if other not in self.leads else ""
        return f"{leader} {does} {other}{by} while {' or '.join(spans[:SHOWN])}{rest}{tied}."

    def _span(self, low: float, high: float) -> str:
        name, more, less = self.over, *((">=", "<=") if self.whole else (">", "<"))
        first, last = low <= self.low, high >= self.high
        if first and not last:
            return f"{name} {less} {spell(name, high)}"
        if last and not first:
            return f"{name} {more} {spell(name, low)}"
        if low == high:
            return f"{name} = {spell(name, low)}"
        return f"{spell(name, low)} {less} {name} {less} {spell(name, high)}"

    def tables(self) -> list[AnswerTable]:
        """Both sides at the ends and beside each crossing."""
        short = all(len(side.label) <= LONGEST_HEAD for side in (self.a, self.b))
        heads = {side.label: side.label if short else letter for side, letter in ((self.a, "A"), (self.b, "B"))}
        title = "on both sides" + (" of each crossing" if self.crossings else "") + (f": {self.of}" if self.of else "")
        if not short:
            title += f" (A is {self.a.label}, B is {self.b.label})"
        rows = []
        for x, (first, second) in self.near():
            ratio = f"{first / second:.4f}" if second else "-"
            lead = self._lead_of(first, second)
            told = heads[lead] if lead else "equal"
            rows.append((spell(self.over, x), spell(self.a.of, first), spell(self.b.of, second), ratio, told))
        columns = (self.over, *heads.values(), "ratio", "better" if self.of else "larger")
        return [AnswerTable(title, columns, tuple(rows), frozenset({4}))]

    def equations(self) -> list[Equation]:
        """Closed forms of crossings along a real symbol, or what each side is near the first."""
        if not self._readable:
            return []
        from .cross_closed import equations

        return equations(self)

    @property
    def _readable(self) -> bool:
        """Whether closed forms of crossings are looked for unasked: those of long programs nobody reads."""
        if not self.crossings or self.whole:  # tried number by number, a side may have no one program along the symbol
            return False
        return all(len(side.subject.program) <= LONGEST for side in (self.a, self.b))

    def notes(self) -> list[str]:
        """Changes taken together, what each side is near a crossing, sides that do not fit, and skipped numbers."""
        from .cross_notes import notes

        return notes(self)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, the object of `--json`."""
        form = self.closed_form() if self._readable else None
        return {
            "a": self.a.label,
            "b": self.b.label,
            "over": self.over,
            "of": self.of,
            "low": self.low,
            "high": None if math.isinf(self.high) else self.high,
            "view": self.view,
            "crossings": [crossing.to_dict() for crossing in self.crossings],
            "always": self.always,
            "flickers": [{"low": each.low, "high": each.at, "changes": each.changes} for each in self.flickers],
            "leads": list(self.leads),
            "closed_form": None if form is None else str(form),
            "values": [{"value": x, "a": _plain(first), "b": _plain(second)} for x, (first, second) in self.near()],
            "skipped": [{"value": n, "reason": reason} for n, reason in self.skipped.items()],
        }

    def draw(self, axes: Any) -> None:
        """Both sides along the symbol, and where the lead changes."""
        from .cross_picture import draw

        draw(self, axes)

    # --- values

    def _lead_of(self, first: float, second: float) -> str | None:
        return _leader(int(np.sign(first - second)) if not math.isclose(first, second, rel_tol=1e-12) else 0, self)

    def near(self) -> list[tuple[float, tuple[float, float]]]:
        """Values of both sides at the ends and beside each crossing."""
        wanted = {self.low, self.high}
        if self.found is not None:
            wanted = {float(self.found.xs[0]), float(self.found.xs[-1])} if len(self.found.xs) else set()
            for crossing in self.crossings[:SHOWN]:
                wanted |= {crossing.before, crossing.at}
            places = [int(np.searchsorted(self.found.xs, x)) for x in sorted(wanted)]
            return [(float(self.found.xs[k]), (float(self.found.a[k]), float(self.found.b[k]))) for k in places]
        for crossing in self.crossings[:SHOWN]:
            wanted |= {crossing.at * 0.9, crossing.at, crossing.at * 1.1}
        wanted |= {side.now for side in (self.a, self.b) if side.now and not side.supposed}
        runs = {}
        for x in sorted(x for x in wanted if self.low <= x <= self.high and math.isfinite(x)):
            try:
                runs[x] = (self.a.bind(x), self.b.bind(x))
            except InputError:
                continue
        values = (side.of_runs([pair[k] for pair in runs.values()]) for k, side in enumerate((self.a, self.b)))
        return [(x, (float(first), float(second))) for x, first, second in zip(runs, *values, strict=True)]


def cross(
    run: BaseRun,
    a: str,
    b: str,
    over: str,
    low: float | None = None,
    high: float | None = None,
    *,
    of: str = "time",
) -> Cross:
    """Where one of two things passes the other along a symbol.

    Args:
        run: bound in every symbol.
        a: a term, a folder of terms, a resource or a quantity; or a choice, such as "plan: tp=8 pp=8",
            "system: b200-sxm", "precision=fp8", several with commas, or "base" for the run as it is.
        b: another of the same kind.
        over: the symbol; `a.NAME` or `b.NAME` where it varies on one side alone.
        low: where to begin; by default the smallest value that a run accepts, of a whole number 1.
        high: where to end; by default the largest; of a whole number 16 times its value now, and at least 4096.
        of: the quantity in which two choices are compared.

    Raises:
        InputError: what cannot be compared, an unknown name, a choice that the rules refuse, a range that is empty or
            reversed, or no legal value in it.
    """
    first, second = sides_of(run, a, b, over, of)
    name = first.symbol or second.symbol or ""
    domain = domain_along(next(side.run for side in (first, second) if side.symbol), name)
    ends = _range(name, domain, low, high, [side.now for side in (first, second) if side.now])
    quantity = of if first.choice is not None else None
    if domain.whole:
        return _along_whole_numbers(first, second, name, (int(ends[0]), int(ends[1])), quantity)
    if first.constant and second.constant:
        raise InputError(f"cross: neither {first.label} nor {second.label} depends on {name}")
    order = order_along(first, second, *ends)
    sides = _Names(quantity, first, second)
    leads = tuple(_leader(sign, sides) for sign in order.signs)
    crossings = tuple(
        Crossing(at, before, after, at, at)
        for at, (before, after) in zip(order.cuts, itertools.pairwise(leads), strict=True)
    )
    view = "exact" if order.exact else "sampled"
    return Cross(name, *ends, quantity, view, crossings, leads, {}, first, second)


def _along_whole_numbers(a: Side, b: Side, name: str, ends: tuple[int, int], of: str | None) -> Cross:
    found = values_along(a, b, *ends)
    if not len(found.xs):
        reason = next(iter(found.skipped.values()), "none was tried")
        raise InputError(f"cross: no {name} from {ends[0]} to {ends[1]} is legal on both sides: {reason}")
    if np.ptp(found.a) == 0 == np.ptp(found.b) and len(found.xs) > 1:
        raise InputError(f"cross: neither {a.label} nor {b.label} depends on {name}")
    sides = _Names(of, a, b)
    crossings = [
        Crossing(
            turn.at, _leader(turn.signs[0], sides), _leader(turn.signs[1], sides), turn.before, turn.low, turn.changes
        )
        for turn in turns(found, BAND)
    ]
    first = _leader(int(found.signs[0]), sides)
    real = tuple(crossing for crossing in crossings if crossing.first != crossing.then)
    back = tuple(crossing for crossing in crossings if crossing.first == crossing.then)
    leads = (first, *(crossing.then for crossing in real))
    low, high = float(found.xs[0]), float(found.xs[-1])
    return Cross(name, low, high, of, "whole", real, leads, found.skipped, a, b, found, back)


@dataclass(frozen=True)
class _Names:
    """What tells who leads."""

    of: str | None
    a: Side
    b: Side


def _leader(sign: int, sides: _Names | Cross) -> str | None:
    """Who leads where the difference has a sign."""
    if sides.of is not None and not is_higher_better(sides.of):
        sign = -sign
    return {1: sides.a.label, -1: sides.b.label}.get(sign)


def _range(
    name: str, domain: Domain, low: float | None, high: float | None, now: Iterable[float]
) -> tuple[float, float]:
    """The ends of the comparison.

    Raises:
        InputError: an end that is no number or out of the domain, or a range that is empty or reversed.
    """
    for what, value in (("low", low), ("high", high)):
        if value is None:
            continue
        if not is_finite(value) or value < 0:
            raise InputError(f"cross: {what} is {quote(value)}, expected a finite number of at least 0")
        if domain.whole and value % 1:
            raise InputError(f"cross: {what} is {value:g}, but {name} is a whole number")
    first = (0.0 if domain.zero else domain.low) if low is None else float(low)
    last = domain.high if high is None else float(high)
    if domain.whole and high is None:
        last = min(domain.high, max(SPREAD * max(now, default=1.0), LEAST_RANGE, 2 * first))
    if first >= last:
        what = "is empty" if first == last else "is reversed"
        raise InputError(f"cross: the range from {first:g} to {last:g} {what}, expected low below high")
    if (first < domain.low and not domain.zero) or last > domain.high:
        least, most = spell(name, domain.low), spell(name, domain.high)
        raise InputError(
            f"cross: from {spell(name, first)} to {spell(name, last)}, but {name} goes from {least} to {most}"
        )
    return first, last


def _plain(value: float) -> float | None:
    return value if math.isfinite(value) else None
