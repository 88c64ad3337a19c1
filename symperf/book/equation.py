"""The equation of a formula as LaTeX displays and as lines for a terminal, over the formulas that it calls.

An equation is shown as it is written: a formula that is called stays a call, and has an equation of its own. A call
whose arguments are the called formula's own parameters is written as its glyph alone.
"""

from __future__ import annotations

import functools
import textwrap
from typing import TYPE_CHECKING, Any

from ..formulas.language.named_calls import calls_in
from ..formulas.language.symbols import SYMBOLS, strip_units
from .latex import MARKS as LATEX_MARKS
from .latex import Latex, aligned
from .layout import Marks, Row, Spacing, lay_out
from .notation import WHOLE, Box
from .simplify import simplified
from .unicode import Unicode
from .unicode import columns as width_of

if TYPE_CHECKING:
    from ..formulas.language.formula import Formula
    from .notation import Notation

PAGE = Spacing(line=42.0, step=1.0)
"""In em: what the book's text width of 160 mm holds at 10 points, less a margin for what widths leave out."""
ROW_END = " \\\\[4pt]\n"
"""Ends a row of an equation that goes over several."""
STEP = 4
"""Columns of a step of indentation on the terminal."""
NARROWEST = 8
"""Columns that a line takes at least, however narrow the terminal is."""


def _mark(text: str) -> Box:
    return Box(text, width_of(text), WHOLE)


UNICODE_MARKS = Marks(
    equals=_mark(" = "),
    plus=_mark(" + "),
    minus=_mark(" − "),
    times=_mark(" · "),
    over=_mark(" / "),
    comma=_mark(", "),
    pairs={
        "round": (_mark("("), _mark(")")),
        "call": (_mark("("), _mark(")")),
        "ceiling": (_mark("⌈"), _mark("⌉")),
        "max": (_mark("max("), _mark(")")),
        "min": (_mark("min("), _mark(")")),
        "log": (_mark("log₂("), _mark(")")),
        "switch": (_mark("["), _mark(" > 1]")),
    },
    limits=lambda *_: None,
    places=lambda index: (_mark("Σ("), _mark(", "), _mark(f"{index.text} = "), _mark(" ... "), _mark(")")),
    raised=lambda exponent: _mark(f"^({exponent.text})"),
)


@functools.cache
def latex_notation(formula: Formula) -> Latex:
    """LaTeX in the vocabulary's glyphs, factors in the order of the formula's parameters."""
    return Latex(_glyphs(), _order(formula))


@functools.cache
def unicode_notation(formula: Formula) -> Unicode:
    """Unicode, likewise."""
    return Unicode(_glyphs(), _order(formula))


@functools.cache
def shown_body(formula: Formula) -> Any:
    """The right side of a formula's equation: as it is written, over the formulas that it calls, and simplified."""
    return simplified(strip_units(formula.body))


def called_formulas(formula: Formula) -> list[Formula]:
    """The formulas that a formula's equation calls, in the order of reading."""
    notation = latex_notation(formula)
    text = notation.box(shown_body(formula)).text
    called = {call.formula for call in calls_in(shown_body(formula))}
    return sorted(called, key=lambda one: (text.find(notation.glyph(one.glyph).text), one.name))


def head(formula: Formula, notation: Notation) -> Box:
    """A formula's glyph with its parameters, if it has any."""
    if not formula.parameters:
        return notation.glyph(formula.glyph)
    return notation.head(formula.glyph, [SYMBOLS[name].glyph for name in formula.parameters])


def equation_rows(formula: Formula, notation: Notation, spacing: Spacing, marks: Marks) -> list[Row]:
    """The equation on rows that fit; where not even the parameters fit a line, without them."""
    whole = head(formula, notation)
    left = whole if whole.width + marks.equals.width <= spacing.line else notation.glyph(formula.glyph)
    return lay_out(shown_body(formula), left, notation, spacing, marks)


def latex_equation(formula: Formula, spacing: Spacing = PAGE) -> list[Row]:
    """The equation on rows of LaTeX."""
    return equation_rows(formula, latex_notation(formula), spacing, LATEX_MARKS)


def latex_blocks(formula: Formula, spacing: Spacing = PAGE) -> list[str]:
    """The equation, as the inside of one LaTeX display."""
    rows = latex_equation(formula, spacing)
    if len(rows) == 1:
        return [rows[0].text]
    return ["\\begin{aligned}\n" + ROW_END.join(aligned(rows)) + "\n\\end{aligned}"]


def latex_line(formula: Formula) -> str:
    """The whole equation on one line, however wide."""
    notation = latex_notation(formula)
    return f"{head(formula, notation).text} = {notation.box(shown_body(formula)).text}"


def unicode_lines(formula: Formula, columns: int) -> list[str]:
    """The equation as lines of at most `columns`, and below it what the formulas that it calls are called."""
    notation = unicode_notation(formula)
    spacing = Spacing(line=float(columns), step=float(STEP))
    rows = equation_rows(formula, notation, spacing, UNICODE_MARKS)
    lines = [f"{' ' * STEP * row.depth}{row.text.strip()}" for row in rows]
    for k, called in enumerate(called_formulas(formula)):
        lines.append(f"{'where' if k == 0 else '     '} {head(called, notation).text}: {called.name}")
    return [piece for line in lines for piece in _wrap(line, columns)]


@functools.cache
def _glyphs() -> dict[object, str]:
    return {entry.symbol: entry.glyph for entry in SYMBOLS.values()}


def _order(formula: Formula) -> list[object]:
    return [SYMBOLS[name].symbol for name in formula.parameters]


def _wrap(line: str, columns: int) -> list[str]:
    """The line, or as many as it takes, broken at spaces; never narrower than `NARROWEST`."""
    columns = max(columns, NARROWEST)
    if width_of(line) <= columns:
        return [line]
    indent = " " * (len(line) - len(line.lstrip()))
    return textwrap.wrap(
        line, columns, subsequent_indent=f"{indent}    ", initial_indent=indent, break_on_hyphens=False
    )
