"""How a quantity goes on to the ends of a symbol: its leading term in symbols, its exponent, and its bounds."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..codegen.interpret import adjoints, arrays, floats, run
from ..common.errors import InputError
from .answers import Answer, AnswerTable, Equation
from .bounds import bounds_of
from .extremes import Extremes, extremes
from .forms import FormError
from .limits import Limit, limit_along
from .measures import si_axis, spell
from .solution import is_higher_better
from .subject import Subject, subject_of
from .symbols import domain_of, lead_dependents, require_symbol, value_now
from .wording import measure, sentence_case, words

if TYPE_CHECKING:
    from ..evaluation.base_run import BaseRun

KEPT, LEAST_SHARE = 6, 0.01
"""Parts of a leading term that are written at most, and the share below which one is not."""
MOST = 0.75
"""Of the leading term, what a folder that is named holds at least."""
DEPTH = 3
"""Parts of the paths of terms that are named together."""
FAR = 1e9
"""Times the value now, where it is looked up which terms a leading term is."""
DRAWN = 400


@dataclass(frozen=True)
class Asymptotics(Answer):
    """Both ends of a symbol.

    Attributes:
        symbol: that goes to its ends.
        of: the quantity.
        at_zero: as it goes to zero; nothing for a whole number.
        at_infinity: as it grows without bound; nothing for a fraction.
        now: the value of the symbol.
        value: of the quantity now.
        at_one: of the quantity with a fraction at 1; nothing for others.
        last: of the quantity at the largest legal value of a whole number that the run limits; nothing for others.
        lower: a bound of the quantity now from below: everything at once, or the lowest over all legal values.
        upper: a bound from above: one thing after another, or the highest over all legal values.
        serial: whether the bounds are those of everything at once and one after another.
        extremes: over all legal values of the symbol.
        name: how a sentence names the quantity.
        place: terms that make up most of the leading term; empty where the quantity is no time.
        subject: the quantity, along the symbol.
    """

    symbol: str
    of: str
    at_zero: Limit | None
    at_infinity: Limit | None
    now: float
    value: float
    at_one: float | None
    last: float | None
    lower: float | None
    upper: float | None
    serial: bool
    extremes: Extremes
    name: str
    place: str
    subject: Subject = field(repr=False, compare=False)

    @property
    def main(self) -> Limit:
        """The end that the answer is about: infinity, or zero of a fraction."""
        found = self.at_infinity or self.at_zero
        assert found is not None
        return found

    # --- as sentences

    @property
    def sentence(self) -> str:
        """Where the quantity goes, by what, and what binds there."""
        if self.extremes.lowest.value == self.extremes.highest.value:
            return f"{sentence_case(self.name)} is {spell(self.of, self.value)} at every {self.symbol}."
        if self.last is not None:
            return (
                f"{self.symbol} ends at {self.extremes.high:.0f}: there {self.name} is {spell(self.of, self.last)}, "
                f"now {spell(self.of, self.value)}."
            )
        parts = []
        if self.at_one is not None:
            parts.append(f"At {words(self.symbol)} 1 {self.name} is {spell(self.of, self.at_one)}")
        else:
            more = "the" if self.main.exponent or self.main.logs else "ever more"
            parts.append(self._going(self.main, f"With {more} {words(self.symbol)} {self.name}"))
        if self.at_zero is not None:
            parts.append(self._going(self.at_zero, "towards none of it, it"))
        return f"{'; '.join(parts)}."

    def _going(self, limit: Limit, begin: str) -> str:
        due = f" ({limit.bound})" if limit.bound else ""
        if not limit.exponent and not limit.logs:
            return f"{begin} goes to {spell(self.of, limit.limit or 0.0)}{due}"
        grows = "falls" if limit.limit == 0.0 else "grows"
        text = f"{begin} {grows} as {self._power(limit)}"
        best = limit.monomials[0] if limit is self.main and limit.monomials else None
        if best is None:
            return text + due
        from .typeset import glyphs_of

        place = f"{self.place}, " if self.place else ""
        largest = _factor_text(best.rounding) + glyphs_of(best.expr * self._factor(limit))
        resource = f", {limit.bound}" if limit.bound else ""
        return f"{text}: {place}{largest}{resource}"

    def _power(self, limit: Limit) -> str:
        from .typeset import glyphs_of

        return glyphs_of(self._factor(limit))

    def _factor(self, limit: Limit) -> Any:
        import sympy

        from ..formulas.language.atoms import log2
        from .closed import symbol_of

        x = symbol_of(self.symbol)
        power = x ** sympy.Rational(limit.exponent.numerator, limit.exponent.denominator)
        return power * log2(x) ** limit.logs if limit.logs else power

    def equations(self) -> list[Equation]:
        """The leading term at each end, its largest parts on a line each."""
        return [each for end in (self.at_infinity, self.at_zero) if end is not None for each in self._equations(end)]

    def _equations(self, limit: Limit) -> list[Equation]:
        parts = limit.monomials or []
        kept = [each for each in parts if abs(each.share) >= LEAST_SHARE][:KEPT]
        if not kept or (not limit.exponent and not limit.logs and len(kept) < len(parts) and kept[0].share < 0.1):
            return []
        factor = self._factor(limit)
        left = len(parts) - len(kept)
        found = []
        for k, each in enumerate(kept):
            resource = (_joules_of(each.expr) if self.of == "energy" else each.resource) or limit.bound
            told = [f"{100 * each.share:.1f} %", *([resource] if resource else [])]
            if text := _factor_text(each.rounding):
                told.insert(0, f"times {text.removesuffix(' · ')}")
            if not k:
                told.append(f"as {self.symbol} goes to {'infinity' if math.isinf(limit.end) else 'zero'}")
            if left and k == len(kept) - 1:
                told.append(f"and {left} smaller part{'s' if left > 1 else ''}")
            falls = k > 0 and each.expr.could_extract_minus_sign()
            sign = ("−" if falls else "+") if k else "∼"
            found.append(Equation(self.of, (-each.expr if falls else each.expr) * factor, ", ".join(told), sign))
        return found

    def tables(self) -> list[AnswerTable]:
        """The bounds, and the ends of the range."""
        if self.serial:
            names = ("everything at once", "one after another")
            names = names[::-1] if is_higher_better(self.of) else names
        else:
            names = ("the lowest of all legal values", "the highest of all legal values")
        rows = [("lower bound", self._spelled(self.lower), names[0])]
        rows.append(("now", spell(self.of, self.value), f"{self.symbol} = {spell(self.symbol, self.now)}"))
        rows.append(("upper bound", self._spelled(self.upper), names[1]))
        for what, extreme in (("lowest", self.extremes.lowest), ("highest", self.extremes.highest)):
            where = "in the limit" if extreme.at is None else f"{self.symbol} = {spell(self.symbol, extreme.at)}"
            rows.append((f"{what} of all", self._spelled(extreme.value), where))
        return [AnswerTable("", ("", self.of, "where"), tuple(rows), frozenset({0, 2}))]

    def _spelled(self, value: float | None) -> str:
        return "no bound" if value is None else spell(self.of, value)

    def notes(self) -> list[str]:
        """Why a whole number ends, and what the leading term would be without that."""
        found = []
        if any(each.rounding > 1.0005 for each in self.main.monomials or ()):
            found.append(
                "A factor before a coefficient is what rounding up adds: tiles, waves, shares that do not divide."
            )
        if self.last is None:
            return found
        found += [f"{self.symbol} ends at {self.extremes.high:.0f}: {self.extremes.limiting}."]
        if self.at_infinity is not None:
            found.append(f"Were there no end: {self.of} ~ {self.at_infinity.leading(self.symbol)}.")
        return found

    # --- as plain values and as a picture

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        form = self.main.closed_form()
        return {
            "symbol": self.symbol,
            "of": self.of,
            "value": self.value,
            "leading_term": self.main.leading(self.symbol) if form is None else str(form),
            "exponent": float(self.main.exponent),
            "logs": self.main.logs,
            "coefficient": self.main.coefficient,
            "lower": self.lower,
            "upper": self.upper,
            "at_zero": self.at_zero.to_dict() if self.at_zero else None,
            "at_infinity": self.at_infinity.to_dict() if self.at_infinity else None,
            "at_one": self.at_one,
            "lowest": self.extremes.lowest.value,
            "lowest_at": self.extremes.lowest.at,
            "highest": self.extremes.highest.value,
            "highest_at": self.extremes.highest.at,
            "largest_legal": None if math.isinf(self.extremes.high) else self.extremes.high,
            "limiting": self.extremes.limiting or None,
        }

    def draw(self, axes: Any) -> None:
        """The quantity over the symbol, both logarithmic, with what it goes to at the ends."""
        low, high = self._range()
        xs = np.geomspace(low, high, DRAWN)
        if domain_of(self.symbol).whole:
            xs = np.unique(np.round(xs))
        with np.errstate(all="ignore"):
            found = run(self.subject.program, self.subject.values | {self.symbol: xs}, arrays())
            values = np.broadcast_to(found[self.subject.position], xs.shape)
            axes.plot(xs, values, label=self.of)
            for limit, what in ((self.at_zero, "zero"), (self.at_infinity, "infinity")):
                if limit is not None:
                    ys = limit.coefficient * xs ** float(limit.exponent) * np.log2(xs) ** limit.logs
                    axes.plot(xs, ys, "--", linewidth=1, label=f"towards {what}")
        axes.plot([self.now], [self.value], "ko", label="now")
        axes.set_xscale("log")
        axes.set_yscale("log")
        shown = values[np.isfinite(values) & (values > 0)]
        if len(shown):
            axes.set_ylim(shown.min() / 3, shown.max() * 3)
        axes.set_xlabel(si_axis(self.symbol))
        axes.set_ylabel(si_axis(self.of))
        axes.set_title(self.sentence)
        axes.legend()

    def _range(self) -> tuple[float, float]:
        domain = domain_of(self.symbol)
        low = max(self.now / 1000 if self.now else 1e-3, domain.low, self.extremes.low if domain.whole else 0.0)
        return low, min(max(self.now, low) * 1000, domain.high, self.extremes.high)


def asymptotics(of_run: BaseRun, symbol: str, of: str = "time") -> Asymptotics:
    """How a quantity scales with a symbol in the end, and between which bounds it lies.

    Args:
        of_run: bound in every symbol.
        symbol: that goes to zero and to infinity; a whole number only to infinity, a fraction to 1.
        of: the quantity.

    Raises:
        InputError: an unknown symbol or quantity, one that the quantity does not depend on, or one along which it has
            no leading power.
    """
    subject = subject_of(of_run, of, "limits")
    now = value_now(of_run, subject, require_symbol(of_run, subject, symbol, "limits"))
    subject = lead_dependents(of_run, subject, symbol)
    subject = replace(subject, values={**subject.values, symbol: now or subject.values[symbol]})
    domain = domain_of(symbol)
    fraction = domain.high == 1.0 and not domain.whole
    try:
        low = None if domain.whole else limit_along(subject, symbol, 0.0)
        high = None if fraction else limit_along(subject, symbol, math.inf)
    except FormError as error:
        raise InputError(
            f"limits: {of} has no leading power along {symbol} ({error}), expected another symbol"
        ) from None
    value = _at(subject, symbol, subject.values[symbol])
    found = extremes(of_run, subject, symbol, high, low)
    bounds = bounds_of(subject)
    ended = domain.whole and math.isfinite(found.high)
    end = high or low
    assert end is not None
    return Asymptotics(
        symbol,
        subject.output,
        low,
        high,
        subject.values[symbol],
        value,
        _at(subject, symbol, 1.0) if fraction else None,
        _at(subject, symbol, found.high) if ended else None,
        found.lowest.value if bounds is None else bounds[0],
        found.highest.value if bounds is None else bounds[1],
        bounds is not None,
        found,
        measure(of_run, subject.output),
        _place(of_run, subject, symbol, end),
        subject,
    )


def _joules_of(expr: Any) -> str | None:
    """What the joules of a summand of an energy go to: the resource whose energy it holds, or the static power."""
    names = {symbol.name for symbol in expr.free_symbols}
    if "static_power" in names:
        return "static"
    return next((name.removesuffix("_energy") for name in sorted(names) if name.endswith("_energy")), None)


def _factor_text(rounding: float) -> str:
    """What rounding up adds, as the factor before a coefficient."""
    return "" if abs(rounding - 1.0) < 5e-4 else f"{rounding:.4g} · "


def _at(subject: Subject, symbol: str, x: float) -> float:
    return float(run(subject.program, subject.values | {symbol: x}, floats())[subject.position])


def _place(of_run: BaseRun, subject: Subject, symbol: str, limit: Limit) -> str:
    """The deepest folder of terms that is responsible for most of a time far out."""
    lets = subject.program.lets
    if limit.bound is None or "time" not in lets.keys() | {subject.output}:
        return ""
    now = subject.values[symbol] or 1.0
    x = now * FAR if math.isinf(limit.end) else now / FAR
    values = run(subject.program, subject.values | {symbol: x}, floats())
    terms = [term for term in of_run.compiled.terms if term.path in lets]
    idle = {lets[term.path] for term in terms if term.idle}
    slopes = adjoints(subject.program, values, subject.position, floats(), stop=idle)
    sums: dict[str, float] = {}
    for term in terms:
        at, parts = lets[term.path], term.path.split("/")
        for depth in range(1, min(DEPTH, len(parts) - 1) + 1):
            folder = "/".join(parts[:depth])
            sums[folder] = sums.get(folder, 0.0) + slopes.get(at, 0.0) * values[at]
    large = [folder for folder, seconds in sums.items() if seconds >= MOST * values[subject.position]]
    return max(large, key=lambda folder: folder.count("/"), default="")
