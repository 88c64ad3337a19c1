"""Where one registered formula passes another along a symbol, at given values of the others."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..codegen.interpret import arrays, floats, run
from ..codegen.lower import lower
from ..common.errors import InputError, nearest, quote
from ..common.numbers import is_finite, numeral
from ..formulas.language.symbols import SYMBOLS, strip_units
from ..formulas.registry import load
from ..systems import units
from .answers import Answer, AnswerTable, Equation
from .closed import powers, sides_at, zero
from .cross_real import order_along
from .forms import FormError
from .measures import KINDS, spell
from .subject import Subject

if TYPE_CHECKING:
    from ..formulas.language.formula import Formula
    from .line import Pieces

WIDE = 1e3
"""Times the first and the last crossing, where a picture begins and ends."""


@dataclass(frozen=True)
class FormulaCurve:
    """A formula along one symbol.

    Attributes:
        name: of the formula.
        subject: its program, at the values of the other symbols.
        symbol: that varies.
    """

    name: str
    subject: Subject
    symbol: str
    faithful: bool = True

    def pieces(self, low: float, high: float) -> Pieces:
        """Exact pieces between two values of the symbol."""
        line = self.subject.line(self.symbol, low, high)
        return line.values[self.subject.position]

    def values(self, xs: Any) -> Any:
        """The formula at many values of the symbol."""
        with np.errstate(all="ignore"):
            found = run(self.subject.program, self.subject.values | {self.symbol: xs}, arrays())
        return np.broadcast_to(found[self.subject.position], np.shape(xs))

    def value(self, x: float) -> float:
        """The formula at one value of the symbol."""
        return float(run(self.subject.program, self.subject.values | {self.symbol: x}, floats())[self.subject.position])


@dataclass(frozen=True)
class FormulaCross(Answer):
    """Which of two formulas is the smaller, along a symbol.

    Attributes:
        over: the symbol.
        low: where the comparison begins.
        high: where it ends; may be infinite.
        crossings: where the order changes.
        smaller: the smaller one between them; nothing where both are equal.
        exact: whether no change can have been missed.
        a: one of the two.
        b: the other.
    """

    over: str
    low: float
    high: float
    crossings: tuple[float, ...]
    smaller: tuple[str | None, ...]
    exact: bool
    a: FormulaCurve
    b: FormulaCurve

    @property
    def sentence(self) -> str:
        """Which is the smaller where."""
        if not self.crossings:
            least = self.smaller[0]
            if least is None:
                return f"{self.a.name} and {self.b.name} are equal at every {self.over}."
            other = self.b.name if least == self.a.name else self.a.name
            return f"{least} is less than {other} at every {self.over}."
        parts = []
        for least, cut in zip(self.smaller, self.crossings, strict=False):
            parts.append(f"{least or 'neither'} up to {self.over} = {said(self.over, cut)}")
        parts.append(f"{self.smaller[-1] or 'neither'} beyond")
        return f"The smaller is {', '.join(parts)}."

    @cached_property
    def closed_forms(self) -> list[Any]:
        """Each crossing as an expression in the other symbols; nothing where it has no short one."""
        return [self._closed_form(at) for at in self.crossings]

    def _closed_form(self, at: float) -> Any:
        try:
            totals = []
            for curve in (self.a, self.b):
                subject = curve.subject
                values = run(subject.program, subject.values | {self.over: at}, floats())
                totals.append(powers(subject, self.over, sides_at(subject, values))[subject.position])
        except FormError:
            return None
        apart = dict(totals[0])
        for exponent, coefficient in totals[1].items():
            apart[exponent] = apart.get(exponent, 0) - coefficient
        return zero({e: c for e, c in apart.items() if c != 0}, self.a.subject.values | self.b.subject.values, at)

    def equations(self) -> list[Equation]:
        """The closed forms of the crossings."""
        return [Equation(self.over, form, "where they cross") for form in self.closed_forms if form is not None]

    def tables(self) -> list[AnswerTable]:
        """Both formulas at each crossing, and at half and twice of it."""
        points = sorted({x for at in self.crossings for x in (at / 2, at, at * 2)}) or [max(self.low, 1.0)]
        rows = tuple(
            (said(self.over, x), *(_spelled(curve, curve.value(x)) for curve in (self.a, self.b))) for x in points
        )
        return [AnswerTable("", (self.over, self.a.name, self.b.name), rows)]

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        edges = zip(self.crossings, self.smaller, self.smaller[1:], self.closed_forms, strict=False)
        return {
            "a": self.a.name,
            "b": self.b.name,
            "over": self.over,
            "crossings": [
                {"at": at, "first": first, "then": then, "closed_form": None if form is None else str(form)}
                for at, first, then, form in edges
            ],
            "always": None if self.crossings else self.smaller[0],
            "exact": self.exact,
        }

    def draw(self, axes: Any) -> None:
        """Both formulas over the symbol, with the crossings marked."""
        low = max(self.low, min(self.crossings, default=1.0) / WIDE)
        xs = np.geomspace(low, min(self.high, max(self.crossings, default=1.0) * WIDE), 400)
        for curve in (self.a, self.b):
            axes.plot(xs, curve.values(xs), label=curve.name)
        axes.plot(list(self.crossings), [self.a.value(at) for at in self.crossings], "ko", label="crossing")
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel(self.over)
        axes.set_title(self.sentence)
        axes.legend()


def cross_formulas(
    a: str,
    b: str,
    over: str,
    low: float | str | None = None,
    high: float | str | None = None,
    **values: float | str,
) -> FormulaCross:
    """Where one registered formula passes another along a symbol, exactly.

    Args:
        a: name of a formula (`symperf list formulas`).
        b: name of another.
        over: the symbol that varies.
        low: where the comparison begins; by default at 0.
        high: where it ends; by default nowhere.
        values: of all other symbols of both, in SI units or with their unit: "100 GB/s".

    Raises:
        InputError: an unknown formula or symbol, with the nearest, a symbol without a value, or a reversed range.
    """
    known = load()
    for name in (a, b):
        if name not in known:
            raise InputError(f"cross: unknown formula {quote(name)}{nearest(name, known)}")
    if a == b:
        raise InputError(f"cross: a and b are both {quote(a)}, expected two formulas")
    ends = (0.0 if low is None else _number(over, low), math.inf if high is None else _number(over, high))
    if not 0 <= ends[0] < ends[1]:
        raise InputError(f"cross: the range from {ends[0]:g} to {ends[1]:g}, expected low below high, none below 0")
    numbers = {name: _number(name, value) for name, value in values.items()}
    first, second = (_curve(known[name], over, numbers) for name in (a, b))
    used = first.subject.program.inputs.keys() | second.subject.program.inputs.keys()
    if over not in used:
        raise InputError(f"cross: over: neither formula has the symbol {quote(over)}{nearest(over, used)}")
    for name in values:
        if name not in used or name == over:
            raise InputError(f"cross: {quote(name)} is no other symbol of them{nearest(name, used - {over})}")
    found = order_along(first, second, *ends)
    smaller = tuple({1: second.name, -1: first.name, 0: None}[sign] for sign in found.signs)
    return FormulaCross(over, *ends, found.cuts, smaller, found.exact, first, second)


def _curve(formula: Formula, over: str, values: dict[str, float]) -> FormulaCurve:
    program = lower([], {"value": strip_units(formula.expression)})
    missing = [each for each in program.inputs if each != over and each not in values]
    if missing:
        told = ", ".join(f"{each} ({SYMBOLS[each].sentence.rstrip('.')})" for each in sorted(missing))
        raise InputError(f"cross: {formula.name} needs a value of {told}")
    inputs = {each: 1.0 if each == over else values[each] for each in program.inputs}
    return FormulaCurve(formula.name, Subject(program, "value", inputs, {}), over)


def _number(name: str, value: object) -> float:
    """A value of a symbol: a number, or a text with or without its unit."""
    if isinstance(value, str):
        plain = numeral(value, float)
        kind = KINDS.get(str(SYMBOLS[name].dimension), units.FRACTION) if name in SYMBOLS else units.FRACTION
        try:
            value = units.parse(value, kind) if plain is None else plain
        except InputError as error:
            raise InputError(f"cross: {name}: {error}") from None
    if not is_finite(value):
        raise InputError(f"cross: {name} is {quote(value)}, expected a finite number")
    return float(value)  # type: ignore[arg-type]


def said(name: str, value: float) -> str:
    """A value of a symbol in the unit that suits its size; symbols of formulas alone too."""
    kind = KINDS.get(str(SYMBOLS[name].dimension))
    return f"{value:.6g}" if kind is None else units.spell(value, kind)


def _spelled(curve: FormulaCurve, value: float) -> str:
    seconds = str(load()[curve.name].dimension) == "s"
    return spell("time", value) if seconds else f"{value:.6g}"
