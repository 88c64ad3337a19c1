"""Breaks an equation into lines that fit: sums, maxima and arguments go on below, indented as they are nested.

Nothing is named here: what deserves a name is a formula of its own, and stands in the equation as a call.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import sympy

from ..formulas.language.atoms import Max, Min
from .notation import FUNCTION, INDEX, PRODUCT, SUM, WHOLE, split_fraction

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from .notation import Box, Notation


ENCLOSED = ("max", "min", "formula", "ceil_div", "log2", "above_one")
"""What is between brackets of its own, also over several rows."""
SERIES = ("max_sum", "least_sum")
OPENED = ("chosen_load", "place_in_chunk", "exceeding")
"""Atoms that are shown as what they are defined by."""


@dataclass(frozen=True)
class Row:
    """One line of an equation: how many steps it is indented, its text and its width."""

    depth: int
    text: str
    width: float


@dataclass(frozen=True)
class Spacing:
    """Widths in the notation's unit.

    Attributes:
        line: the whole line.
        step: one step of indentation.
    """

    line: float
    step: float


@dataclass(frozen=True)
class Marks:
    """How a markup writes what stands at the ends of the lines of a broken equation.

    Attributes:
        equals, plus, minus, times, over, comma: between parts.
        pairs: what opens and closes a part that goes over several lines: "round", "call", "ceiling", "max",
            "min", "log", "switch".
        limits: a sum's sign with its index, first and last place; None where these are too wide for it.
        places: of such a sum, what stands before and behind its term, before its first and last place, and at its end.
        raised: the exponent of what is in brackets.
    """

    equals: Box
    plus: Box
    minus: Box
    times: Box
    over: Box
    comma: Box
    pairs: Mapping[str, tuple[Box, Box]]
    limits: Callable[[Box, Box, Box], Box | None]
    places: Callable[[Box], tuple[Box, Box, Box, Box, Box]]
    raised: Callable[[Box], Box]


@dataclass(frozen=True)
class _Piece:
    """What stands before a part on its first line, the part, and what stands behind it on its last one.

    It needs brackets where it binds less tightly than `level`; an argument of a call is written as those are.
    """

    before: tuple[Box, ...]
    expr: Any
    behind: tuple[Box, ...] = ()
    level: int = SUM
    argument: bool = False


def lay_out(expr: Any, left: Box, notation: Notation, spacing: Spacing, marks: Marks) -> list[Row]:
    """The rows of `left = expr`.

    Args:
        expr: the right side.
        left: the left side.
        notation: writes what fits a line.
        spacing: what fits.
        marks: what stands at the ends of lines.
    """
    breaker = _Breaker(notation, spacing, marks)
    beside = _Piece((left, marks.equals), expr)
    if left.width <= spacing.line / 3 or breaker.fits(beside, 0):
        return breaker.rows(beside, 0)
    return [Row(0, left.text, left.width), *breaker.rows(_Piece((marks.equals,), expr), 1)]


class _Breaker:
    def __init__(self, notation: Notation, spacing: Spacing, marks: Marks) -> None:
        self.notation, self.spacing, self.marks = notation, spacing, marks

    def box(self, expr: Any, level: int = SUM) -> Box:
        return self.notation.grouped(self.notation.box(expr), level)

    def boxes(self, piece: _Piece) -> tuple[Box, ...]:
        box = self.box(piece.expr, piece.level)
        return (*piece.before, self.notation.argument(box) if piece.argument else box, *piece.behind)

    def fits(self, piece: _Piece, depth: int) -> bool:
        return sum(box.width for box in self.boxes(piece)) <= self.room(depth)

    def row(self, depth: int, boxes: Sequence[Box]) -> Row:
        return Row(depth, "".join(box.text for box in boxes), sum(box.width for box in boxes))

    def room(self, depth: int) -> float:
        return self.spacing.line - depth * self.spacing.step

    def rows(self, piece: _Piece, depth: int) -> list[Row]:
        """A piece on as many rows as it takes, the first at `depth`, the others below it."""
        if self.fits(piece, depth):
            return [self.row(depth, self.boxes(piece))]
        if piece.level > self.broken_level(piece.expr):
            return self.within("round", _Piece(piece.before, piece.expr, piece.behind), depth)
        broken = self.broken(piece, depth)
        return [self.row(depth, self.boxes(piece))] if broken is None else broken

    def broken(self, piece: _Piece, depth: int) -> list[Row] | None:
        """A piece over several rows, or None where nothing in it can be broken."""
        expr, operation = piece.expr, getattr(piece.expr, "operation", "")
        if operation in OPENED:
            return self.rows(_Piece(piece.before, expr.definition(), piece.behind, piece.level), depth)
        if (terms := self.terms(expr)) is not None:
            return self.enclosed(self.joined(terms, piece), depth)
        if operation in ("max", "min"):
            return self.group(operation, piece, self.listed(expr.args), depth)
        if operation == "formula":
            return self.call(piece, depth)
        if operation == "ceil_div":
            over, under = expr.args
            parts = [_Piece((), over, (), PRODUCT), _Piece((self.marks.over,), under, (), FUNCTION)]
            return self.group("ceiling", piece, parts, depth)
        if operation in SERIES:
            return self.series(piece, depth)
        if operation == "log2":
            return self.group("log", piece, [_Piece((), expr.args[0])], depth)
        if operation == "above_one":
            return self.group("switch", piece, [_Piece((), expr.args[0])], depth)
        if expr.is_Mul or expr.is_Pow or operation in ("ring_share", "bubble"):
            return self.product(piece, depth)
        return None

    def terms(self, expr: Any) -> list[tuple[int, Any]] | None:
        """The signed terms of what is written as a sum, or None."""
        operation = getattr(expr, "operation", "")
        if operation == "less_one":
            return [(1, expr.args[0]), (-1, sympy.S.One)]
        if operation == "complement":
            return [(1, sympy.S.One), (-1, expr.args[0])]
        if expr.is_Add:
            negative = [(term, term.as_coeff_Mul()[0].is_negative) for term in self.notation.terms(expr)]
            return [(-1, -term) if minus else (1, term) for term, minus in negative]
        return None

    # --- pieces

    def joined(self, terms: list[tuple[int, Any]], piece: _Piece) -> list[_Piece]:
        """Signed terms as pieces; what stands before and behind the sum goes to its first and last."""
        found = []
        for k, (sign, term) in enumerate(terms):
            mark = () if k == 0 and sign > 0 else (self.marks.plus if sign > 0 else self.marks.minus,)
            before = (*piece.before, *mark) if k == 0 else mark
            behind = piece.behind if k == len(terms) - 1 else ()
            found.append(_Piece(before, term, behind, PRODUCT if sign < 0 else SUM))
        return found

    def listed(self, args: Sequence[Any]) -> list[_Piece]:
        """Arguments as pieces, a comma behind each but the last."""
        return [_Piece((), arg, () if k == len(args) - 1 else (self.marks.comma,)) for k, arg in enumerate(args)]

    # --- rows of pieces

    def enclosed(self, pieces: list[_Piece], depth: int) -> list[Row]:
        """Pieces one after another, as many on a row as it holds; all but the first row are indented."""
        found: list[Row] = []
        for piece in pieces:
            rows = self.rows(piece, depth if self.fits(piece, depth) and not found else depth + 1)
            if not found:
                rows[0] = Row(depth, rows[0].text, rows[0].width)
            last = found[-1] if found else None
            if last is not None and len(rows) == 1 and last.width + rows[0].width <= self.room(last.depth):
                found[-1] = Row(last.depth, last.text + rows[0].text, last.width + rows[0].width)
            else:
                found += rows
        return found

    def group(self, pair: str, piece: _Piece, inner: list[_Piece], depth: int) -> list[Row]:
        """Pieces between what opens and closes them."""
        opening, closing = self.marks.pairs[pair]
        return self.opened((*piece.before, opening), inner, (closing, *piece.behind), depth)

    def opened(self, opening: tuple[Box, ...], inner: list[_Piece], closing: tuple[Box, ...], depth: int) -> list[Row]:
        """Pieces behind what opens them, one step below it but for the first row, if that fits beside it."""
        inner = [*inner[:-1], replace(inner[-1], behind=(*inner[-1].behind, *closing))]
        first, (second, *rest) = self.row(depth, opening), self.side_by_side(inner, depth + 1)
        if first.width + second.width <= self.room(depth):
            return [Row(depth, first.text + second.text, first.width + second.width), *rest]
        return [first, second, *rest]

    def side_by_side(self, pieces: list[_Piece], depth: int) -> list[Row]:
        """Pieces at one depth, as many on a row as it holds."""
        found: list[Row] = []
        for piece in pieces:
            rows = self.rows(piece, depth)
            last = found[-1] if found else None
            fits = last is not None and len(rows) == 1 and last.depth == depth
            if last is not None and fits and last.width + rows[0].width <= self.room(depth):
                found[-1] = Row(depth, last.text + rows[0].text, last.width + rows[0].width)
            else:
                found += rows
        return found

    def within(self, pair: str, piece: _Piece, depth: int) -> list[Row]:
        """A sum, maximum or product between brackets."""
        terms = self.terms(piece.expr)
        inner = self.joined(terms, _Piece((), piece.expr)) if terms is not None else [_Piece((), piece.expr)]
        return self.group(pair, piece, inner, depth)

    def call(self, piece: _Piece, depth: int) -> list[Row] | None:
        call = piece.expr
        shown = self.notation.shown_arguments(call)
        if not shown:
            return None
        head = _Piece((*piece.before, self.notation.glyph(call.formula.glyph)), None, piece.behind)
        replaced = call.replaced
        pieces = self.listed([*shown, *replaced.values()])
        names = [()] * len(shown) + [(self.notation.box(symbol), self.marks.equals) for symbol in replaced]
        pieces = [_Piece(before, one.expr, one.behind, SUM, True) for before, one in zip(names, pieces, strict=True)]
        return self.group("call", head, pieces, depth)

    def series(self, piece: _Piece, depth: int) -> list[Row]:
        count, start, *lines = piece.expr.args
        ends = [line + slope * INDEX for line, slope in zip(lines[::2], lines[1::2], strict=True)]
        if piece.expr.operation == "max_sum":
            ends = [lines[0] + lines[1] * INDEX, lines[2] + lines[3] * INDEX]
            inner = Max(*ends)
        else:
            inner = Min(Max(*ends[:2]), Max(*ends[2:]))
        index, first, last = map(self.box, (INDEX, start, start + count - 1))
        sign = self.marks.limits(index, first, last)
        if sign is not None:
            return self.rows(_Piece((*piece.before, sign), inner, piece.behind, PRODUCT), depth)
        opening, behind_term, before_first, before_last, closing = self.marks.places(index)
        pieces = [
            _Piece((), inner, (behind_term,)),
            _Piece((before_first,), start),
            _Piece((before_last,), start + count - 1),
        ]
        return self.opened((*piece.before, opening), pieces, (closing, *piece.behind), depth)

    # --- products

    def product(self, piece: _Piece, depth: int) -> list[Row] | None:
        """A product whose widest factor goes over several rows: the others before it, as one fraction if there is one.

        A wide sum in the denominator stands behind a slash.
        """
        over, under = split_fraction(piece.expr)
        if piece.expr.is_Pow and not under:
            return self.power(piece, depth)
        wide = max((*over, *under), key=lambda factor: self._rank(factor))
        if not self._can_break(wide):
            return self.flat_product(piece, over, under, depth)
        if wide in under:
            top = _rest(over, ()) / _rest(under, (wide,))
            if self.is_too_wide(top, piece, depth):
                parts = [_Piece(piece.before, top, (), PRODUCT)]
                return self.enclosed([*parts, _Piece((self.marks.over,), wide, piece.behind, FUNCTION)], depth)
            before = (*piece.before, self.box(top, PRODUCT), self.marks.over)
            return self.rows(_Piece(before, wide, piece.behind, FUNCTION), depth)
        rest = _rest(over, (wide,)) / _rest(under, ())
        if self.is_too_wide(rest, piece, depth):
            parts = [_Piece(piece.before, rest, (), FUNCTION)]
            return self.enclosed([*parts, _Piece((self.marks.times,), wide, piece.behind, FUNCTION)], depth)
        before = piece.before if rest == 1 else (*piece.before, self.box(rest, FUNCTION), self.marks.times)
        return self.rows(_Piece(before, wide, piece.behind, FUNCTION), depth)

    def is_too_wide(self, head: Any, piece: _Piece, depth: int) -> bool:
        """Whether what stands before the bracket of a broken factor leaves no room for it."""
        behind = (self.marks.over, self.marks.pairs["max"][0])
        return not self.fits(_Piece(piece.before, head, behind, FUNCTION), depth)

    def power(self, piece: _Piece, depth: int) -> list[Row] | None:
        base, exponent = piece.expr.as_base_exp()
        if not self._can_break(base):
            return None
        raised = self.marks.raised(self.box(exponent))
        opening, closing = self.marks.pairs["round"]
        inner = self.joined(self.terms(base) or [(1, base)], _Piece((), base))
        return self.opened((*piece.before, opening), inner, (closing, raised, *piece.behind), depth)

    def flat_product(self, piece: _Piece, over: list[Any], under: list[Any], depth: int) -> list[Row] | None:
        """A product of many narrow factors, broken between them."""
        if len(over) + len(under) < 3:
            return None
        factors = [*over, 1 / _rest(under, ())] if under else list(over)
        if under and len(over) > 1:
            factors = [over[0] / _rest(under, ()), *over[1:]]
        if len(factors) < 2:
            return None
        pieces = [
            _Piece((self.marks.times,) if k else piece.before, one, (), FUNCTION) for k, one in enumerate(factors)
        ]
        pieces[-1] = replace(pieces[-1], behind=piece.behind)
        return self.enclosed(pieces, depth)

    def _rank(self, factor: Any) -> tuple[bool, float, str]:
        box = self.notation.box(factor)
        return (self._can_break(factor), box.width, box.text)

    def _can_break(self, expr: Any) -> bool:
        operation = getattr(expr, "operation", "")
        if operation == "formula":
            return bool(self.notation.shown_arguments(expr))
        if expr.is_Pow:
            return self._can_break(expr.base)
        if expr.is_Mul or operation in ("ring_share", "bubble"):
            return True
        return self.terms(expr) is not None or operation in (*ENCLOSED, *SERIES, *OPENED)

    def broken_level(self, expr: Any) -> int:
        """How tightly an expression binds that goes over several rows: a quotient no longer as a fraction does."""
        operation = getattr(expr, "operation", "")
        if operation in ENCLOSED:
            return WHOLE
        if expr.is_Pow and not split_fraction(expr)[1]:
            return FUNCTION
        quotient = expr.is_Mul or expr.is_Pow or operation in ("ring_share", "bubble")
        return min(self.notation.box(expr).level, PRODUCT if quotient else WHOLE)


def _rest(factors: list[Any], without: tuple[Any, ...]) -> Any:
    return sympy.Mul(*(factor for factor in factors if factor not in without))
