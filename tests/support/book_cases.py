"""A notation whose text is data, to compute with what a layout of an equation says."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from support.oracle import MEANING
from symperf.book.notation import FUNCTION, PRODUCT, SUM, WHOLE, Box, Notation

if TYPE_CHECKING:
    from symperf.book.layout import DefinitionLine

Value = Any
CALLED = {"v_{law}": "law_voltage", "s_{law}": "law_speed"}
"""Functions that equations call by a letter."""


class Data(Notation):
    """Writes an expression as nested JSON lists, six columns wide a leaf."""

    def glyph(self, latex: str) -> Box:
        return _box(["glyph", latex], 6, WHOLE)

    def word(self, text: str) -> Box:
        return _box(["number", float(text)], 6, WHOLE)

    def number(self, value: int) -> Box:
        return _box(["number", value], 3, WHOLE)

    def sum(self, parts: list[tuple[int, Box]]) -> Box:
        return _made("sum", [box for _, box in parts], SUM, [sign for sign, _ in parts])

    def product(self, boxes: list[Box]) -> Box:
        assert all(box.level >= FUNCTION for box in boxes)
        return _made("product", boxes, PRODUCT)

    def fraction(self, over: Box, under: Box) -> Box:
        return _made("fraction", [over, under], FUNCTION)

    def power(self, base: Box, exponent: Box) -> Box:
        assert base.level == WHOLE
        return _made("power", [base, exponent], FUNCTION)

    def root(self, box: Box) -> Box:
        return _made("root", [box], WHOLE)

    def brackets(self, box: Box) -> Box:
        return Box(box.text, box.width, WHOLE)

    def ceiling(self, box: Box) -> Box:
        return _made("ceiling", [box], WHOLE)

    def logarithm(self, box: Box) -> Box:
        return _made("logarithm", [box], FUNCTION)

    def condition(self, box: Box) -> Box:
        return _made("condition", [box], WHOLE)

    def extremum(self, operation: str, boxes: list[Box]) -> Box:
        return _made(operation, boxes, WHOLE)

    def series(self, index: Box, first: Box, last: Box, term: Box) -> Box:
        return _made("series", [index, first, last, term], WHOLE)

    def call(self, function: Box, arguments: list[Box]) -> Box:
        return _made("call", [function, *arguments], WHOLE)


def _box(data: list[Any], width: float, level: int) -> Box:
    return Box(json.dumps(data), width, level)


def _made(kind: str, boxes: list[Box], level: int, *more: Any) -> Box:
    return _box([kind, [json.loads(box.text) for box in boxes], *more], sum(box.width for box in boxes), level)


def value(lines: list[DefinitionLine], values: dict[str, Value]) -> Value:
    """The value of the first line's quantity, given those of glyphs; the other lines define more of them."""
    definitions = {json.loads(line.left.text)[1]: line for line in lines[1:]}
    known = dict(values)

    def of_glyph(glyph: str) -> Value:
        if glyph[:1].isdigit():
            return float(glyph)
        if glyph == "e" and glyph not in known:
            return np.exp(np.longdouble(1))
        if glyph not in known:
            known[glyph] = of_line(definitions[glyph])
        return known[glyph]

    def of_line(line: DefinitionLine) -> Value:
        parts = [sign * of(json.loads(box.text)) for sign, box in line.parts]
        return {"plain": sum, "sum": sum, "max": _largest, "min": _smallest}[line.kind](parts)

    def of(data: list[Any]) -> Value:
        kind, inner, *more = data
        if kind == "glyph":
            return of_glyph(inner)
        if kind == "number":
            return inner
        if kind == "series":
            return of_series(*inner)
        if kind == "call":
            (_, function), *arguments = inner
            return MEANING[CALLED[function]](*(of(one) for one in arguments))
        args = [of(one) for one in inner]
        if kind == "sum":
            return sum(sign * arg for sign, arg in zip(more[0], args, strict=True))
        return {
            "product": lambda: np.prod(np.broadcast_arrays(*args), axis=0),
            "fraction": lambda: args[0] / args[1],
            "power": lambda: args[0] ** args[1],
            "root": lambda: np.sqrt(args[0]),
            "ceiling": lambda: np.ceil(args[0]),
            "logarithm": lambda: np.log2(args[0]),
            "condition": lambda: np.where(np.asarray(args[0]) > 1, 1.0, 0.0),
            "max": lambda: _largest(args),
            "min": lambda: _smallest(args),
        }[kind]()

    def of_series(index: list[Any], first: list[Any], last: list[Any], term: list[Any]) -> Value:
        start, terms = of(first), of(last) - of(first) + 1
        total = np.zeros(np.shape(terms))
        for k in range(int(np.max(terms))):
            known[index[1]] = start + k
            total = total + np.where(k < terms, of(term), 0.0)
        return total

    return of_line(lines[0])


def _largest(args: list[Value]) -> Value:
    return np.maximum.reduce(np.broadcast_arrays(*args))


def _smallest(args: list[Value]) -> Value:
    return np.minimum.reduce(np.broadcast_arrays(*args))
