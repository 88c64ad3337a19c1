"""A program at the end of a symbol's range: which way everything goes as x goes to zero or to infinity.

Sums of powers are ordered by what they become in the limit, so a program runs on them as it runs on numbers; every
maximum takes the branch that wins in the end.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..codegen.interpret import Arithmetic, run
from .forms import ONE, FormError, PowerQuotient, constant, plain
from .line import COMPUTED
from .roots import sign_at

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .leading import Monomial
    from .subject import Subject


@dataclass(frozen=True)
class Limit:
    """How a quantity behaves as a symbol goes to an end.

    Attributes:
        exponent: the limit of d ln T / d ln x.
        logs: the power of log2(x) in the leading term.
        coefficient: the leading term is `coefficient * x ** exponent * log2(x) ** logs`.
        limit: what the quantity goes to; nothing where that is infinite.
        bound: the resource that sets the leading term; nothing where the quantity is no time.
        subject: what has the limit.
        symbol: that goes to the end; empty where several do.
        end: 0 or infinity.
        traced: the form of every instruction of the subject near the end, where it is known.
    """

    exponent: Fraction
    logs: int
    coefficient: float
    limit: float | None
    bound: str | None
    subject: Subject = field(repr=False, compare=False)
    symbol: str = ""
    end: float = math.inf
    traced: list[PowerQuotient] | None = field(default=None, repr=False, compare=False)

    @cached_property
    def monomials(self) -> list[Monomial] | None:
        """The leading term in symbols, without its power of the symbol: a sum, the largest part first.

        Nothing where there is no short closed form.
        """
        from .leading import monomials

        traced = self.traced or trace(self.subject, self.subject.forms(symbol=self.symbol), self.end)
        key = (self.exponent, self.logs)
        return monomials(self.subject, self.symbol, math.isinf(self.end), traced, key, self.coefficient)

    def closed_form(self) -> Any:
        """The leading term as an expression in the symbols, or nothing."""
        import sympy

        from ..formulas.language.atoms import log2
        from .closed import symbol_of

        if self.monomials is None:
            return None
        x = symbol_of(self.symbol)
        power = x ** sympy.Rational(self.exponent.numerator, self.exponent.denominator) * log2(x) ** self.logs
        return sympy.Add(*(_rounded(each.rounding) * each.expr * power for each in self.monomials))

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "exponent": float(self.exponent),
            "logs": self.logs,
            "coefficient": self.coefficient,
            "limit": self.limit,
            "bound": self.bound,
        }

    def leading(self, symbol: str) -> str:
        """The leading term as text."""
        power = f"{symbol}^{self.exponent}" if self.exponent.denominator == 1 else f"{symbol}^({self.exponent})"
        parts = [f"{self.coefficient:.6g}"]
        parts += [symbol if self.exponent == 1 else power] if self.exponent else []
        parts += [f"log2({symbol})" + (f"^{self.logs}" if self.logs != 1 else "")] if self.logs else []
        return " ".join(parts)


def towards(subject: Subject, forms: Mapping[str, PowerQuotient], end: float) -> PowerQuotient:
    """The form that the output has near an end, 0 or infinity."""
    return trace(subject, forms, end)[subject.position]


def trace(subject: Subject, forms: Mapping[str, PowerQuotient], end: float) -> list[PowerQuotient]:
    """The form that every instruction has near an end; a maximum is the very form of the operand that it takes."""

    def above(a: PowerQuotient, b: PowerQuotient) -> int:
        difference = a - b
        under = 1 if difference.under is None else sign_at(plain(difference.under), end)
        return under * sign_at(plain(difference.over), end)

    arithmetic = Arithmetic(
        lambda value: value if isinstance(value, PowerQuotient) else constant(value),
        {
            **COMPUTED,
            "ceil_div": lambda a, b: round_up(a / b, end),
            "let": lambda a: a,
            "stop_gradient": lambda a: a,
            "power": lambda a, b: raise_to(a, b, end),
            "max": lambda a, b: a if above(a, b) >= 0 else b,
            "min": lambda a, b: a if above(a, b) <= 0 else b,
            "above_one": lambda a: constant(int(above(a, constant(1)) > 0)),
            "at_least": lambda a, b: constant(int(above(a, b) >= 0)),
        },
        lambda condition, yes, no: yes if condition else no,
    )
    result: list[PowerQuotient] = run(subject.program, forms, arithmetic)
    return result


def raise_to(base: PowerQuotient, exponent: PowerQuotient, end: float) -> PowerQuotient:
    """A fraction to a power near an end: to first order, what is less by more than any power left out.

    Raises:
        FormError: neither is a number, or the result grows faster than any power.
    """
    fixed, number = base.number(), exponent.number()
    if number is not None:
        try:
            return base.power(number)
        except FormError:
            return _power_near(base, number, end)
    if fixed is None:
        raise FormError("neither the base of a power nor its exponent is a number")
    if fixed in (0, 1):
        return constant(fixed)
    limit = _finite_limit(exponent, end)
    if limit is not None:
        at_limit, slope = float(fixed) ** float(limit), math.log(fixed)
        return constant(at_limit) + (exponent - constant(limit)) * constant(at_limit * slope)
    if fixed < 1 and leading(exponent, end)[2] > 0:
        return constant(0)
    raise FormError("a power that grows faster than any of the symbol")


def _power_near(base: PowerQuotient, number: Fraction, end: float) -> PowerQuotient:
    """A sum to a power, to first order about its limit."""
    limit = _finite_limit(base, end)
    if limit:
        at_limit = float(limit) ** float(number)
        return constant(at_limit) + (base - constant(limit)) * constant(float(number) * at_limit / float(limit))
    exponent, logs, coefficient = leading(base, end)
    return PowerQuotient({(exponent, logs, ()): coefficient} if coefficient else {}).power(number)


def _finite_limit(form: PowerQuotient, end: float) -> Fraction | None:
    """What a form goes to at an end; nothing where it grows without bound."""
    exponent, logs, coefficient = leading(form, end)
    rising = exponent if math.isinf(end) else -exponent
    if coefficient and (rising > 0 or (rising == 0 and logs > 0)):
        return None
    return coefficient if rising == 0 and logs == 0 else Fraction(0)


def round_up(form: PowerQuotient, end: float) -> PowerQuotient:
    """A form rounded up, near an end: a whole number where it has a limit, else itself, to leading order."""
    limit = _finite_limit(form, end)
    if limit is None:
        return form
    rest = form - constant(limit)
    under = 1 if rest.under is None else sign_at(plain(rest.under), end)
    above = sign_at(plain(rest.over), end) * under if rest.over else 0
    return constant(math.floor(limit) + 1 if above > 0 and limit.denominator == 1 else math.ceil(limit))


def _rounded(factor: float) -> Any:
    return 1 if math.isclose(factor, 1.0, rel_tol=1e-12) else factor


def limit_along(subject: Subject, symbol: str, end: float) -> Limit:
    """What the output goes to at an end of a symbol, 0 or infinity."""
    traced = trace(subject, subject.forms(symbol=symbol), end)
    return replace(limit_of(subject, traced[subject.position], end), symbol=symbol, traced=traced)


def limit_of(subject: Subject, form: PowerQuotient, end: float) -> Limit:
    """What a form goes to at an end, 0 or infinity."""
    exponent, logs, coefficient = leading(form, end)
    rising = exponent if math.isfinite(end) else -exponent
    if coefficient and (rising < 0 or (rising == 0 and logs > 0)):
        limit = None
    else:
        limit = float(coefficient) if rising == 0 and logs == 0 else 0.0
    scaled = float(coefficient) * math.log(2.0) ** logs
    return Limit(Fraction(exponent), logs, scaled, limit, _find_bound(subject, form, end), subject, "", end)


def leading(form: PowerQuotient, end: float) -> tuple[Fraction, int, Fraction]:
    """Exponent of x, power of ln x and coefficient of the term that a form goes to at an end."""
    found = (Fraction(0), 0, Fraction(0))
    parts = []
    for total in (form.over, form.under):
        terms = plain(ONE if total is None else total)
        if not terms:
            return found
        e = max(e for e, _ in terms) if math.isinf(end) else min(e for e, _ in terms)
        k = max(k for f, k in terms if f == e)
        parts.append((Fraction(e), k, terms[e, k]))
    (e, k, c), (f, n, d) = parts
    return e - f, k - n, c / d


def _find_bound(subject: Subject, form: PowerQuotient, end: float) -> str | None:
    parts = form.parts(len(subject.names)) if form.over and subject.names else None
    if not parts:
        return None
    best = 0
    for k in range(1, len(parts)):
        if sign_at(plain((parts[k] - parts[best]).over), end) > 0:
            best = k
    return subject.names[best]
