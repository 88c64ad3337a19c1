"""Writes expressions of the cost language as mathematicians do, in any markup that says how it sets the parts.

SymPy's printers know neither the vocabulary's glyphs nor the shapes of the atoms inside a product: here `n (q - 1) / q`
is one fraction, factors come in the order of the formula's parameters, and every part knows how wide it is, so that
`layout` can break what does not fit a line.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import sympy

from ..formulas.language.atoms import Max, Min, less_one
from ..formulas.language.symbols import SYMBOLS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

INDEX = sympy.Symbol("\0index", nonnegative=True)
"""Of sums over a range."""
SUM, PRODUCT, FUNCTION, WHOLE = range(4)
"""How tightly a text binds: a sum needs brackets in a product; a whole needs none anywhere."""
TECHNOLOGY: Final = {
    "floor_div": "",
    "clustered_part": "",
    "triangular_part": "",
    "law_voltage": "v_{law}",
    "law_speed": "s_{law}",
}
"""Atoms of chips, and the letter of those that are written as a function."""


@dataclass(frozen=True)
class Box:
    """A piece of an equation: its text, its width in the notation's own unit, and how tightly it binds."""

    text: str
    width: float
    level: int


class Notation(ABC):
    """Writes expressions in one markup.

    Args:
        glyphs: the LaTeX glyph of each symbol.
        order: symbols in the order in which they come in a product; all others follow.

    Attributes:
        written: the glyph of every symbol that was boxed, in the order of the first boxes.
    """

    def __init__(self, glyphs: Mapping[Any, str], order: Sequence[Any] = ()) -> None:
        self.glyphs = {**glyphs, INDEX: "x"}
        self.written: dict[Any, str] = {}
        places = list(dict.fromkeys([*order, *self.glyphs]))
        self._place = {symbol: place for place, symbol in enumerate(places)}
        self._memo: dict[Any, Box] = {}

    def name(self, symbol: Any, glyph: str) -> None:
        """Give a symbol a glyph, and a place after all that have one."""
        self.glyphs[symbol] = glyph
        self._place[symbol] = max(self._place.values(), default=0) + 1
        self._memo.clear()

    def box(self, expr: Any) -> Box:
        """The expression on one line."""
        if expr not in self._memo:
            self._memo[expr] = self._box(expr)
        return self._memo[expr]

    def head(self, glyph: str, arguments: Sequence[str]) -> Box:
        """The left side of an equation: a glyph and the glyphs of its arguments."""
        return self.call(self.glyph(glyph), [self.glyph(argument) for argument in arguments])

    def _box(self, expr: Any) -> Box:
        if expr.is_Symbol:
            self.written[expr] = self.glyphs.get(expr, str(expr))
            return self.glyph(self.written[expr])
        if expr.is_Add:
            return self._sum(expr)
        operation = getattr(expr, "operation", None)
        if operation in ("max", "min"):
            return self.extremum(operation, [self.box(arg) for arg in expr.args])
        if operation == "less_one":
            return self._sum_of([(1, self.box(expr.args[0])), (-1, self.number(1))])
        if operation == "complement":
            return self._sum_of([(1, self.number(1)), (-1, self.box(expr.args[0]))])
        if operation == "ceil_div":
            return self.ceiling(self.fraction(*map(self.box, expr.args)))
        if operation == "log2":
            return self.logarithm(self.grouped(self.box(expr.args[0]), WHOLE))
        if operation == "stop_gradient":
            return self.box(expr.args[0])
        if operation == "above_one":
            return self.condition(self.box(expr.args[0]))
        if expr.is_Pow and not _is_reciprocal(expr):
            return self._power(expr)
        if expr.is_Integer and expr >= 0:
            return self.number(int(expr))
        if expr.is_Mul or expr.is_Pow or expr.is_Rational or operation in ("ring_share", "bubble"):
            return self._product(expr)
        if operation == "power":
            return self.power(self.grouped(self.box(expr.args[0]), WHOLE), self.box(expr.args[1]))
        if operation == "geometric_sum":
            return self._geometric(*expr.args)
        if operation == "max_sum":
            count, start, *lines = expr.args
            first, second = (a + b * INDEX for a, b in (lines[:2], lines[2:]))
            return self.series(
                self.box(INDEX), self.box(start), self.box(start + count - 1), self.box(Max(first, second))
            )
        if operation == "least_sum":
            count, start, *lines = expr.args
            ends = [line + slope * INDEX for line, slope in zip(lines[::2], lines[1::2], strict=True)]
            summand = Min(Max(*ends[:2]), Max(*ends[2:]))
            return self.series(self.box(INDEX), self.box(start), self.box(start + count - 1), self.box(summand))
        if operation in ("chosen_load", "place_in_chunk", "exceeding"):
            return self.box(expr.definition())
        if operation == "formula":
            return self._named_call(expr)
        if operation in TECHNOLOGY:
            return self._technology(operation, [self.box(arg) for arg in expr.args])
        if expr.is_Float:
            return self._float(float(expr))
        return self.call(self.word(expr.func.__name__), [self.box(arg) for arg in expr.args])

    def shown_arguments(self, call: Any) -> list[Any]:
        """The arguments that a named call is written with: none where each is the formula's parameter itself."""
        own = all(SYMBOLS[name].symbol == argument for name, argument in call.arguments.items())
        bare = own and not call.replaced and call.formula.glyph not in self.glyphs.values()
        return [] if bare else list(call.arguments.values())

    def _named_call(self, call: Any) -> Box:
        """A formula's glyph with its arguments, and what stands for symbols that it reads itself, such as a rate."""
        replaced = [
            Box(f"{symbol.text} = {box.text}", symbol.width + box.width + 1.9, SUM)
            for symbol, box in ((self.box(symbol), self.box(by)) for symbol, by in call.replaced.items())
        ]
        shown = [*map(self.box, self.shown_arguments(call)), *replaced]
        glyph = self.glyph(call.formula.glyph)
        return self.call(glyph, shown) if shown else glyph

    def _float(self, value: float) -> Box:
        """A number that is no quotient of whole ones: its digits, and a power of ten where that is shorter."""
        short = f"{value:g}"
        digits, power, exponent = (short if float(short) == value else repr(value)).partition("e")
        if not power:
            return self.glyph(digits)
        ten = self.power(
            self.number(10), self.number(int(exponent)) if int(exponent) > 0 else self.glyph(str(int(exponent)))
        )
        return self.scaled(self.glyph(digits), ten)

    def _technology(self, operation: str, boxes: list[Box]) -> Box:
        """Atoms of chips: a quotient rounded down, laws of voltage and clock, parts of dies without a defect."""
        one = (1, self.number(1))
        if operation == "floor_div":
            return self.sum([(-1, self.ceiling(self.sum([(-1, self.fraction(*boxes))])))])
        if operation == "clustered_part":
            base = self._sum_of([one, (1, self.fraction(*boxes))])
            return self.power(self.grouped(base, WHOLE), self.sum([(-1, boxes[1])]))
        if operation == "triangular_part":
            survivors = self.power(self.glyph("e"), self.sum([(-1, self.grouped(boxes[0], PRODUCT))]))
            mean = self.fraction(self._sum_of([one, (-1, survivors)]), boxes[0])
            return self.power(self.grouped(mean, WHOLE), self.number(2))
        return self.call(self.glyph(TECHNOLOGY[operation]), boxes)

    def _geometric(self, ratio: Any, last: Any) -> Box:
        """The quotient of a geometric sum."""
        power = self.power(self.grouped(self.box(ratio), WHOLE), self.box(last + 1))
        return self.fraction(
            self._sum_of([(1, self.number(1)), (-1, power)]), self._sum_of([(1, self.number(1)), (-1, self.box(ratio))])
        )

    def _sum(self, expr: Any) -> Box:
        return self._sum_of([self.signed(term) for term in self.terms(expr)])

    def terms(self, expr: Any) -> list[Any]:
        """The terms of a sum: those that are added first, and the simplest of them first."""
        return sorted(expr.args, key=lambda term: (_is_negative(term), self._term_key(term)))

    def signed(self, term: Any) -> tuple[int, Box]:
        """The sign of a term and what it stands before."""
        return (-1, self.box(-term)) if _is_negative(term) else (1, self.box(term))

    def _sum_of(self, parts: list[tuple[int, Box]]) -> Box:
        grouped = [(sign, self.grouped(box, PRODUCT) if sign < 0 else box) for sign, box in parts]
        return self.sum(grouped)

    def _product(self, expr: Any) -> Box:
        if _is_negative(expr):
            return self._sum_of([(-1, self.box(-expr))])
        over, under = split_fraction(expr)
        return self._quotient(self._boxes(over), self._boxes(under))

    def _boxes(self, factors: list[Any]) -> list[Box]:
        return [self.box(factor) for factor in sorted(factors, key=self._factor_key)]

    def _quotient(self, over: list[Box], under: list[Box]) -> Box:
        if not under:
            return self.juxtaposed(over)
        beside = [box for box in over if self.is_tall(box)]
        top = self.juxtaposed([box for box in over if box not in beside])
        return self.juxtaposed([self.fraction(top, self.juxtaposed(under)), *beside])

    def juxtaposed(self, boxes: list[Box]) -> Box:
        """A product of boxes; the brackets that a sum needs in it are set here."""
        if not boxes:
            return self.number(1)
        return boxes[0] if len(boxes) == 1 else self.product([self.grouped(box, FUNCTION) for box in boxes])

    def is_tall(self, box: Box) -> bool:  # noqa: ARG002
        """Whether a factor stands better beside a fraction than in it."""
        return False

    def _power(self, expr: Any) -> Box:
        if expr.exp == sympy.Rational(1, 2):
            return self.root(self.box(expr.base))
        return self.power(self.grouped(self.box(expr.base), WHOLE), self.box(expr.exp))

    def grouped(self, box: Box, level: int) -> Box:
        """The box, in brackets if it binds less tightly than `level`."""
        return box if box.level >= level else self.brackets(box)

    def _factor_key(self, factor: Any) -> tuple[int, int, str]:
        """Numbers, symbols as ordered, sums, functions, brackets, logarithms."""
        base = factor.base if factor.is_Pow else factor
        if factor.is_Number:
            return (0, 0, "")
        if base.is_Symbol:
            return (1, self._place.get(base, len(self._place)), str(base))
        operation = getattr(base, "operation", "")
        rank = {"": 2, "less_one": 2, "complement": 2, "ceil_div": 4, "above_one": 5, "log2": 6}.get(operation, 3)
        return (rank, 0, str(factor))

    def _term_key(self, term: Any) -> tuple[int, list[int], str]:
        """Sums, maxima and the like after what they are simple beside; then by the symbols, in their order."""
        composite = sum(
            1 for node in sympy.preorder_traversal(term) if getattr(node, "operation", "") in ("max", "min")
        )
        places = sorted(self._place.get(symbol, len(self._place)) for symbol in term.free_symbols)
        return (composite, places or [len(self._place)], str(term))

    def argument(self, box: Box) -> Box:
        """A box as an argument of a call."""
        return box

    @abstractmethod
    def glyph(self, latex: str) -> Box:
        """A glyph that is given in LaTeX."""

    @abstractmethod
    def word(self, text: str) -> Box:
        """A name in words."""

    @abstractmethod
    def number(self, value: int) -> Box:
        """A whole number of at least zero."""

    @abstractmethod
    def sum(self, parts: list[tuple[int, Box]]) -> Box:
        """Signed terms one after the other."""

    @abstractmethod
    def product(self, boxes: list[Box]) -> Box:
        """Factors one after the other."""

    def scaled(self, digits: Box, ten: Box) -> Box:
        """A number and a power of ten."""
        return self.product([digits, ten])

    @abstractmethod
    def fraction(self, over: Box, under: Box) -> Box:
        """One box over, or before, another."""

    @abstractmethod
    def power(self, base: Box, exponent: Box) -> Box:
        """A base that binds tightly, raised."""

    @abstractmethod
    def root(self, box: Box) -> Box:
        """The square root."""

    @abstractmethod
    def brackets(self, box: Box) -> Box:
        """The box in round brackets."""

    @abstractmethod
    def ceiling(self, box: Box) -> Box:
        """The box rounded up."""

    @abstractmethod
    def logarithm(self, box: Box) -> Box:
        """The logarithm to base two."""

    @abstractmethod
    def condition(self, box: Box) -> Box:
        """One where the box exceeds one, else zero."""

    @abstractmethod
    def extremum(self, operation: str, boxes: list[Box]) -> Box:
        """The "max" or "min" of boxes."""

    @abstractmethod
    def series(self, index: Box, first: Box, last: Box, term: Box) -> Box:
        """The sum of a term over a range of whole numbers."""

    @abstractmethod
    def call(self, function: Box, arguments: list[Box]) -> Box:
        """A function of arguments."""


def _is_reciprocal(expr: Any) -> bool:
    return bool(expr.is_Pow and expr.exp.is_Rational and expr.exp < 0)


def _is_negative(expr: Any) -> bool:
    coefficient = expr.as_coeff_Mul()[0]
    return bool(coefficient.is_Number and coefficient < 0)


def split_fraction(expr: Any) -> tuple[list[Any], list[Any]]:
    """The factors over and under a product's fraction line; shares of a ring and bubbles are fractions themselves."""
    over: list[Any] = []
    under: list[Any] = []
    for factor in sympy.Mul.make_args(expr):
        operation = getattr(factor, "operation", None)
        if factor.is_Rational:
            over += [sympy.Integer(factor.numerator)] * (factor.numerator != 1)
            under += [sympy.Integer(factor.denominator)] * (factor.denominator != 1)
        elif _is_reciprocal(factor):
            under += sympy.Mul.make_args(1 / factor)
        elif operation == "ring_share":
            over.append(less_one(factor.args[0]))
            under += sympy.Mul.make_args(factor.args[0])
        elif operation == "bubble":
            over.append(less_one(factor.args[0]))
            under += [arg for arg in sympy.Mul.make_args(factor.args[1]) if arg != 1]
        else:
            over.append(factor)
    return over, under
