"""Regimes of a run along one symbol: between which values what binds, and where it changes."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..common.errors import InputError, quote
from ..common.numbers import is_finite
from .changes import Change, Crossover, Regime
from .followers import followers
from .legal import LegalGroup, LegalValues, legal_values
from .numbers import numbers
from .regimes_answer import Regimes as Regimes
from .regimes_answer import Told
from .spans import BAND, Profile, octaves, spans_of
from .subject import subject_of
from .symbols import argument_of, check_range, default_range, domain_of, lead_dependents, require_symbol, value_now
from .terms import largest_terms

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..evaluation.base_run import BaseRun
    from .cells import RegimeCell
    from .crossings import Stretch
    from .numbers import Numbers
    from .spans import Span
    from .subject import Subject

MOST_WHOLE = 4096
"""Whole numbers that are tried one by one unless asked otherwise."""
LIMIT_WHOLE = 200_000
"""The most that are tried if asked."""
VIEWS = ("whole", "smooth")
SAMPLES = 32
"""Points inside each stretch of a real symbol at which shares are told."""
WHERE = "regimes"


def regimes(
    run: BaseRun,
    symbol: str,
    low: float | None = None,
    high: float | None = None,
    of: str = "time",
    view: str | None = None,
    band: float = BAND,
) -> Regimes:
    """The regimes of a run along one symbol, and what the run sets from it.

    Args:
        run: bound in every symbol.
        symbol: the symbol that varies.
        low: one end of the range, above 0; by default a sixteenth of the value now.
        high: the other, above `low`; by default 16 times the value now.
        of: the quantity: an output, a term or a folder of terms, as of `subject.subject_of`.
        view: of a whole number, "whole" (those that the run accepts, one by one) or "smooth" (no roundings); by default
            the first up to `MOST_WHOLE` numbers.
        band: changes of what binds that matter less are told as flicker: a share of the quantity over a doubling of the
            symbol; 0 tells every change.

    Raises:
        InputError: an unknown symbol or quantity, a range that is empty or reversed, or a value that the run refuses.
        Unreachable: the run accepts no whole number of the range.
    """
    subject = subject_of(run, of, WHERE)
    asked = [value for value in (low, high) if value is not None and is_finite(value) and value > 0]
    require_symbol(run, subject, symbol, WHERE, asked)
    domain = domain_of(symbol)
    if low is None or high is None:
        first, last = default_range(symbol, value_now(run, subject, symbol), WHERE)
        low, high = first if low is None else low, last if high is None else high
    ends = check_range(symbol, low, high, domain, WHERE)
    if view is not None and (not domain.whole or view not in VIEWS):
        expected = " or ".join(VIEWS) if domain.whole else f"none: {symbol} is no whole number"
        raise InputError(f"{WHERE}: view is {quote(view)}, expected {expected}")
    if not is_finite(band) or not 0 <= band < 1:
        raise InputError(f"{WHERE}: band is {quote(band)}, expected a share from 0 to below 1")
    count = ends[1] - ends[0] + 1
    if domain.whole and (view == "whole" or (view is None and count <= MOST_WHOLE)):
        if count > LIMIT_WHOLE:
            raise InputError(f"{WHERE}: {count:.0f} whole numbers, expected at most {LIMIT_WHOLE}, or view = smooth")
        return _whole(run, subject, symbol, (int(ends[0]), int(ends[1])), band)
    if not domain.whole:
        check_accepted(run, symbol, ends, WHERE)
    led = lead_dependents(run, subject, symbol, values={symbol: _inside(ends)})
    return regimes_of(led, symbol, *ends, smooth=domain.whole, band=band)


def _inside(ends: tuple[float, float]) -> tuple[float, ...]:
    return (*ends, math.sqrt(ends[0]) * math.sqrt(ends[1]))


def check_accepted(run: BaseRun, symbol: str, ends: tuple[float, float], where: str) -> None:
    """Check that a run takes both ends of a range of a real symbol, if it takes any value of it.

    Raises:
        InputError: it refuses one.
    """
    refusals = []
    for value in ends:
        try:
            run.bind(**{argument_of(symbol): value})
        except InputError as error:
            refusals.append(str(error))
    if refusals and followers(run, symbol) is not None:
        raise InputError(f"{where}: {symbol} from {ends[0]:g} to {ends[1]:g}: {refusals[0]}")


def regimes_of(
    subject: Subject, symbol: str, low: float, high: float, *, smooth: bool = False, band: float = BAND
) -> Regimes:
    """The regimes of a subject along one of its inputs, a real number.

    Args:
        subject: in which everything that moves with the symbol does.
        symbol: the input.
        low: above 0.
        high: above `low`, finite.
        smooth: leave out roundings that depend on the symbol, for one that is a whole number.
        band: as of `regimes`.

    Raises:
        InputError: the quantity is no finite number somewhere.
    """
    name = "smooth" if smooth else "exact"
    plain = subject.smooth(symbol) if smooth else subject
    cells = _exact(plain, symbol, low, high)
    if cells is None:
        from .sampled import stretches as sampled

        name, cells = "sampled", sampled(plain, symbol, low, high)
    intervals, crossovers = _intervals(symbol, cells)
    profile = _profile(plain, symbol, intervals)
    spans = spans_of(profile, band)
    told = _told(spans, numbers(plain, {symbol: np.array([span.at for span in spans])}))
    return Regimes(symbol, low, high, subject.output, name, intervals, crossovers, told, profile, band)


def _told(spans: Sequence[Span], at: Numbers) -> tuple[Told, ...]:
    """Stretches with their values and terms, given the program at a point of each."""
    terms = largest_terms(at, [span.bound for span in spans])
    return tuple(Told(span, at.at(at.subject.position, k), terms[k]) for k, span in enumerate(spans))


def _whole(run: BaseRun, subject: Subject, symbol: str, ends: tuple[int, int], band: float) -> Regimes:
    """The regimes of a whole number: of those that the run accepts, each evaluated as the run binds it."""
    values = range(ends[0], ends[1] + 1)
    if followers(run, symbol, _inside(ends)) is None:  # it follows others itself: all else stays
        legal = LegalValues(symbol, (LegalGroup(run, np.array(values, dtype=float), {}),))
    else:
        legal = legal_values(run, symbol, values, WHERE)
    from .whole import stretches

    cells: list[Stretch] = []
    samples = []
    points: dict[float, tuple[Subject, dict[str, float]]] = {}
    for group, part in legal.parts():
        own = subject if group.run is run else subject_of(group.run, subject.output, WHERE)
        at = {symbol: group.values[part], **{name: moved[part] for name, moved in group.moved.items()}}
        at = {name: xs for name, xs in at.items() if name == symbol or name in own.program.inputs}
        found, (xs, _, shares) = stretches(own, symbol, at)
        cells += found
        samples.append((own.names, xs, shares))
        points |= {x: (own, {name: moved[k] for name, moved in at.items()}) for k, x in enumerate(xs.tolist())}
    intervals, crossovers = _intervals(symbol, cells)
    profile = _profile_of_numbers(samples)
    spans = spans_of(profile, band)
    told: list[Told] = []
    for span in spans:
        own, at_point = points[span.at]
        told += _told([span], numbers(own, {name: np.array([value]) for name, value in at_point.items()}))

    def smooth() -> Regimes | None:
        try:
            led = lead_dependents(run, subject, symbol, values={symbol: _inside(ends)})
            return regimes_of(led, symbol, float(ends[0]), float(ends[1]), smooth=True, band=band)
        except InputError:
            return None

    low, high = (float(end) for end in ends)
    return Regimes(
        symbol, low, high, subject.output, "whole", intervals, crossovers, tuple(told), profile, band, legal, smooth
    )


def _exact(subject: Subject, symbol: str, low: float, high: float) -> list[Stretch] | None:
    """The stretches from exact pieces, or nothing where there are none."""
    from .crossings import crossings
    from .forms import FormError

    try:
        return crossings(subject, symbol, low, high)
    except FormError:
        return None


def _intervals(symbol: str, cells: list[Stretch]) -> tuple[tuple[Regime, ...], tuple[Crossover, ...]]:
    intervals = tuple(_regime(*stretch) for stretch in cells)
    for regime in intervals:
        if not math.isfinite(regime.value):
            of = regime.cell.numbers.subject.output
            raise InputError(
                f"{WHERE}: {of} is no finite number at {symbol} = {regime.at:g}, expected a narrower range"
            )
    return intervals, tuple(_crossover(symbol, *pair) for pair in itertools.pairwise(intervals))


def _regime(cell: RegimeCell, last: RegimeCell, low: float, high: float, at: float) -> Regime:
    found = cell.numbers
    value = found.at(found.subject.position, cell.point)
    shares = found.shares(cell.point)
    bound = max(shares, key=lambda name: shares[name]) if shares else None
    return Regime(low, high, at, value, bound, shares, cell, last)


def _crossover(symbol: str, before: Regime, after: Regime) -> Crossover:
    first, second = before.last, after.cell
    bound = (before.bound, after.bound) if before.bound != after.bound else None
    if first.numbers.subject.program is not second.numbers.subject.program:  # another structure begins
        return Crossover(after.low, (), bound, True, symbol, first)
    instructions = first.numbers.subject.program.instructions
    changed = [at for at in sorted(first.active | second.active) if first.differs(second, at)]
    changes = tuple(Change(first.branch(at), second.branch(at)) for at in changed)
    step = any(instructions[at][0] not in ("max", "min") for at in changed)
    return Crossover(after.low, changes, bound, step, symbol, first)


def _profile(subject: Subject, symbol: str, intervals: tuple[Regime, ...]) -> Profile:
    """Shares at points inside each stretch of one bounding resource."""
    edges: list[tuple[float, float]] = []
    for _, group in itertools.groupby(intervals, key=lambda regime: regime.bound):
        inside = list(group)
        edges.append((inside[0].low, inside[-1].high))
    steps = (np.arange(SAMPLES) + 0.5) / SAMPLES
    points = np.concatenate([low * (high / low) ** steps for low, high in edges])
    weights = np.repeat([math.log2(high / low) / SAMPLES for low, high in edges], SAMPLES)
    shares = numbers(subject, {symbol: points}).all_shares()
    runs = np.repeat(np.arange(len(edges)), SAMPLES)
    return Profile(points, subject.names, shares, weights, runs, tuple(edges), open=True)


def _profile_of_numbers(samples: list[tuple[tuple[str, ...], Any, Any]]) -> Profile:
    """Shares at every whole number; structures may depend on different resources."""
    names = tuple(dict.fromkeys(name for own, _, _ in samples for name in own))
    points = np.concatenate([xs for _, xs, _ in samples])
    shares = np.zeros((len(names), len(points)))
    start = 0
    for own, xs, found in samples:
        for name, row in zip(own, found, strict=True):
            shares[names.index(name), start : start + len(xs)] = row
        start += len(xs)
    largest = (
        np.where(shares.max(axis=0, initial=0.0) > 0, shares.argmax(axis=0), -1) if names else -np.ones(len(points))
    )
    runs = np.concatenate([[0], np.cumsum(np.diff(largest) != 0)])
    firsts = np.searchsorted(runs, np.arange(runs[-1] + 1))
    lasts = np.append(firsts[1:] - 1, len(points) - 1)
    edges = tuple((float(points[a]), float(points[b])) for a, b in zip(firsts, lasts, strict=True))
    return Profile(points, names, shares, octaves(points), runs, edges)
