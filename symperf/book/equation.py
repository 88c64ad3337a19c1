"""The equation of a formula as LaTeX displays and as lines for a terminal, broken so that no line overflows."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from ..formulas.language.symbols import SYMBOLS, strip_units
from .latex import Latex
from .layout import DefinitionLine, Spacing, lay_out
from .unicode import Unicode
from .unicode import columns as width_of

if TYPE_CHECKING:
    from ..formulas.language.formula import Formula
    from .notation import Notation

PAGE = Spacing(line=42.0, equals=1.9, indent=2.0, stack=4.5)
"""In em: what the book's text width of 160 mm holds at 10 points, less a margin for what widths leave out."""
ROW_END = " \\\\[4pt]\n"
"""Ends a row of a stack."""
NARROWEST = 8
"""Columns that a line takes at least, however narrow the terminal is."""
GLYPH = "X"
"""Of the parts of an equation that get a name."""


def latex_notation(formula: Formula) -> Latex:
    """LaTeX in the vocabulary's glyphs, factors in the order of the formula's parameters."""
    return Latex(_glyphs(), _order(formula))


def unicode_notation(formula: Formula) -> Unicode:
    """Unicode, likewise."""
    return Unicode(_glyphs(), _order(formula))


def latex_blocks(formula: Formula, spacing: Spacing = PAGE) -> list[str]:
    """The equation, then each part that has a name; each the inside of one LaTeX display."""
    return [_display(line) for line in _lines(formula, latex_notation(formula), spacing)]


def latex_line(formula: Formula) -> str:
    """The whole equation on one line, however wide."""
    notation = latex_notation(formula)
    left = notation.head(formula.glyph, [SYMBOLS[name].glyph for name in formula.parameters])
    return f"{left.text} = {notation.box(strip_units(formula.expression)).text}"


def unicode_lines(formula: Formula, columns: int) -> list[str]:
    """The equation and its named parts as lines of at most `columns`; a part that cannot fit goes on below."""
    spacing = Spacing(line=float(columns), equals=3.0, indent=2.0, stack=6.0)
    first, *rest = _lines(formula, unicode_notation(formula), spacing)
    lines = _terminal(first)
    if rest:
        lines += ["with", *(text for line in rest for text in _terminal(line))]
    return [piece for line in lines for piece in _wrap(line, columns)]


def _lines(formula: Formula, notation: Notation, spacing: Spacing) -> list[DefinitionLine]:
    left = notation.head(formula.glyph, [SYMBOLS[name].glyph for name in formula.parameters])
    if left.width + spacing.equals > spacing.line:
        left = notation.glyph(formula.glyph)
    return lay_out(strip_units(formula.expression), left, notation, spacing, GLYPH)


def _glyphs() -> dict[object, str]:
    return {entry.symbol: entry.glyph for entry in SYMBOLS.values()}


def _order(formula: Formula) -> list[object]:
    return [SYMBOLS[name].symbol for name in formula.parameters]


def _display(line: DefinitionLine) -> str:
    if line.below:
        return f"\\begin{{aligned}}\n&{line.left.text} \\\\\n&\\quad = {_right(line)}\n\\end{{aligned}}"
    return f"{line.left.text} = {_right(line)}"


def _right(line: DefinitionLine) -> str:
    if line.kind == "plain":
        return line.parts[0][1].text
    if line.kind == "sum":
        signs = ["" if sign > 0 else "-" for sign, _ in line.parts[:1]] + [
            r"{}+ " if sign > 0 else r"{}- " for sign, _ in line.parts[1:]
        ]
        rows = [f"&{sign}{box.text}" for sign, (_, box) in zip(signs, line.parts, strict=True)]
        return "\\begin{aligned}[t]\n" + ROW_END.join(rows) + "\n\\end{aligned}"
    rows = [f"&{box.text}" for _, box in line.parts]
    inside = "\\begin{aligned}\n" + f",{ROW_END}".join(rows) + "\n\\end{aligned}"
    return rf"\{line.kind} \left\lbrace {inside} \right\rbrace"


def _wrap(line: str, columns: int) -> list[str]:
    """The line, or as many as it takes, broken at spaces; never narrower than `NARROWEST`."""
    columns = max(columns, NARROWEST)
    if width_of(line) <= columns:
        return [line]
    indent = " " * (len(line) - len(line.lstrip()))
    return textwrap.wrap(
        line, columns, subsequent_indent=f"{indent}    ", initial_indent=indent, break_on_hyphens=False
    )


def _terminal(line: DefinitionLine) -> list[str]:
    if line.kind == "plain":
        body = line.parts[0][1].text
        return [f"{line.left.text} =", f"  {body}"] if line.below else [f"{line.left.text} = {body}"]
    if line.kind == "sum":
        first, *rest = line.parts
        begin = f"{line.left.text} = {'' if first[0] > 0 else '−'}{first[1].text}"
        indent = " " * 4
        if line.below:
            begin = f"{line.left.text} =\n{indent}  {'' if first[0] > 0 else '−'}{first[1].text}"
        return [*begin.split("\n"), *(f"{indent}{'+' if sign > 0 else '−'} {box.text}" for sign, box in rest)]
    inside = [f"    {box.text}," for _, box in line.parts]
    return [f"{line.left.text} = {line.kind}(", *inside[:-1], inside[-1].removesuffix(","), "  )"]
