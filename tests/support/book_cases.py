"""A notation whose text is Python, to compute with what a layout of an equation says."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from support.oracle import MEANING, evaluate
from symperf.book.layout import Marks
from symperf.book.notation import FUNCTION, PRODUCT, SUM, WHOLE, Box, Notation
from symperf.formulas.language.symbols import SYMBOLS, strip_units

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from symperf.book.layout import Row
    from symperf.formulas.language.named_calls import NamedCall

Value = Any
CALLED = {"v_{law}": "law_voltage", "s_{law}": "law_speed"}
"""Functions that equations call by a letter."""


class Source(Notation):
    """Writes an expression as Python, six columns wide a leaf; its glyphs are names that `environment` knows."""

    def __init__(self, glyphs: Mapping[Any, str], order: Sequence[Any] = ()) -> None:
        super().__init__(glyphs, order)
        self.names: dict[str, str] = {}

    def glyph(self, latex: str) -> Box:
        if latex.removeprefix("-")[:1].isdigit():
            return _box(latex)
        name = self.names.setdefault(latex, f"glyph_{len(self.names)}")
        return _box(name)

    def word(self, text: str) -> Box:
        return _box(str(float(text)))

    def number(self, value: int) -> Box:
        return Box(str(value), 3, WHOLE)

    def sum(self, parts: list[tuple[int, Box]]) -> Box:
        assert all(box.level >= PRODUCT for sign, box in parts if sign < 0)
        text = "".join(f" {'+' if sign > 0 else '-'} {box.text}" for sign, box in parts)
        return _made(text.strip(), [box for _, box in parts], SUM)

    def product(self, boxes: list[Box]) -> Box:
        assert all(box.level >= FUNCTION for box in boxes)
        return _made(" * ".join(box.text for box in boxes), boxes, PRODUCT)

    def fraction(self, over: Box, under: Box) -> Box:
        return _made(f"(({over.text}) / ({under.text}))", [over, under], FUNCTION)

    def power(self, base: Box, exponent: Box) -> Box:
        assert base.level == WHOLE
        return _made(f"({base.text} ** ({exponent.text}))", [base, exponent], FUNCTION)

    def root(self, box: Box) -> Box:
        return _made(f"sqrt({box.text})", [box], WHOLE)

    def brackets(self, box: Box) -> Box:
        return Box(f"({box.text})", box.width, WHOLE)

    def ceiling(self, box: Box) -> Box:
        return _made(f"ceil({box.text})", [box], WHOLE)

    def logarithm(self, box: Box) -> Box:
        return _made(f"log2({box.text})", [box], FUNCTION)

    def condition(self, box: Box) -> Box:
        return _made(f"condition({box.text})", [box], WHOLE)

    def extremum(self, operation: str, boxes: list[Box]) -> Box:
        return _made(f"{operation}({', '.join(box.text for box in boxes)})", boxes, WHOLE)

    def series(self, index: Box, first: Box, last: Box, term: Box) -> Box:
        return _made(
            f"series(lambda {index.text}: {term.text}, {first.text}, {last.text})", [index, first, last, term], PRODUCT
        )

    def call(self, function: Box, arguments: list[Box]) -> Box:
        return _made(f"{function.text}({', '.join(box.text for box in arguments)})", [function, *arguments], WHOLE)


def _box(text: str) -> Box:
    return Box(text, 6, WHOLE)


def _made(text: str, boxes: list[Box], level: int) -> Box:
    return Box(text, sum(box.width for box in boxes), level)


def _mark(text: str) -> Box:
    return Box(text, 3, WHOLE)


PAIRS = {
    **dict.fromkeys(("round", "call"), ""),
    "ceiling": "ceil",
    "max": "max",
    "min": "min",
    "log": "log2",
    "switch": "condition",
}
MARKS = Marks(
    equals=_mark(" = "),
    plus=_mark(" + "),
    minus=_mark(" - "),
    times=_mark(" * "),
    over=_mark(" / "),
    comma=_mark(", "),
    pairs={kind: (_mark(f"{name}("), _mark(")")) for kind, name in PAIRS.items()},
    limits=lambda *_: None,
    places=lambda index: (_mark(f"series(lambda {index.text}: ("), _mark("), "), _mark(""), _mark(", "), _mark(")")),
    raised=lambda exponent: _mark(f" ** ({exponent.text})"),
)


def value(rows: list[Row], notation: Source, values: dict[str, Value], calls: Sequence[NamedCall] = ()) -> Value:
    """The value of what rows say, `left = right`, whose text is only what `Source` and `MARKS` write.

    Args:
        rows: of a layout.
        notation: that wrote them.
        values: of glyphs.
        calls: the formulas that are called in it.
    """
    _, _, right = " ".join(row.text for row in rows).partition("=")
    known: dict[str, Any] = {
        "max": lambda *args: _fold(np.maximum, args),
        "min": lambda *args: _fold(np.minimum, args),
        "ceil": np.ceil,
        "sqrt": np.sqrt,
        "log2": np.log2,
        "condition": lambda count: np.where(np.asarray(count) > 1, 1.0, 0.0),
        "series": _series,
    }
    for glyph, name in notation.names.items():
        if glyph in values:
            known[name] = values[glyph]
        elif glyph == "e":
            known[name] = np.exp(np.longdouble(1))
        elif glyph in CALLED:
            known[name] = MEANING[CALLED[glyph]]
    symbols = {name: glyph for glyph, name in notation.names.items()}
    for call in calls:
        function = _Called(call, values, symbols)
        bare = not notation.shown_arguments(call) and not call.replaced
        known[notation.names[call.formula.glyph]] = (
            function(*map(values.get, call.formula.parameters)) if bare else function
        )
    assert re.fullmatch(r"[\w\s()+\-*/.,:=]*", right), right
    return eval(f"({right.strip()})", {"__builtins__": {}} | known)


class _Called:
    """A formula as a function of its arguments; the other symbols are those of the point."""

    def __init__(self, call: NamedCall, values: dict[str, Value], symbols: dict[str, str]) -> None:
        self.call, self.values, self.symbols = call, values, symbols

    def __call__(self, *args: Value, **replaced: Value) -> Value:
        formula = self.call.formula
        point = {
            symbol: self.values[str(symbol)] for symbol in formula.expression.free_symbols if str(symbol) in self.values
        }
        point |= {SYMBOLS[self.symbols[name]].symbol: value for name, value in replaced.items()}
        point |= {SYMBOLS[name].symbol: value for name, value in zip(formula.parameters, args, strict=True)}
        return evaluate(strip_units(formula.expression), point)


def _series(term: Any, first: Value, last: Value) -> Value:
    count = last - first + 1
    total = np.zeros(np.shape(count))
    for k in range(int(np.max(count))):
        total = total + np.where(k < count, term(first + k), 0.0)
    return total


def _fold(function: Any, args: tuple[Value, ...]) -> Value:
    return function.reduce(np.broadcast_arrays(*args))
