"""Definitions, and the formulas that they call, laid out on lines that fit, in LaTeX and on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from ..book.equation import STEP, UNICODE_MARKS, equation_rows, latex_equation
from ..book.equation import unicode_notation as formula_notation
from ..book.latex import MARKS, aligned
from ..book.layout import Row, Spacing, lay_out
from ..book.prose import latex_name
from ..formulas.language.symbols import SYMBOLS
from .forms import stand_in
from .whole import part_symbol
from .writing import QUANTITIES, latex_notation, path_index, quantity_glyph, unicode_notation

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..book.layout import Marks
    from ..book.notation import Notation
    from ..formulas.language.formula import Formula

N = TypeVar("N", bound="Notation")


def latex_rows(
    definitions: Iterable[tuple[str, Any]], paths: Iterable[str], of: str, term: str | None, line: float
) -> list[str]:
    """Rows of an `align*`, all aligned at the left.

    Args:
        definitions: (name, form), the quantity first as "".
        paths: of all terms.
        of: the quantity.
        term: the part of it that is defined, or None.
        line: em that fit.
    """
    own, same = _split(definitions)
    notation = of_terms(latex_notation(paths), paths, of)
    spacing = Spacing(line=line, step=1.0)
    found = _lay_out(own, notation, spacing, MARKS, of, term, latex=True)
    return [text for rows in found for text in aligned(rows)] + aligned(_equal(same, notation, spacing, MARKS))


def unicode_rows(
    definitions: Iterable[tuple[str, Any]], paths: Iterable[str], of: str, term: str | None, width: int
) -> list[str]:
    """Lines of a terminal of at most `width` columns, where that is possible (from about 40 on)."""
    own, same = _split(definitions)
    notation = of_terms(unicode_notation(paths), paths, of)
    spacing = Spacing(line=float(width), step=float(STEP))
    found = _lay_out(own, notation, spacing, UNICODE_MARKS, of, term, latex=False)
    return [text for rows in [*found, _equal(same, notation, spacing, UNICODE_MARKS)] for text in _indented(rows)]


def of_terms(notation: N, paths: Iterable[str], of: str) -> N:
    """A notation in which the terms of the memory are not times."""
    if of == "memory":
        for symbol in map(stand_in, paths):
            notation.name(symbol, notation.glyphs[symbol].replace(r"\tau", QUANTITIES[of], 1))
    return notation


def _split(definitions: Iterable[tuple[str, Any]]) -> tuple[list[tuple[str, Any]], list[tuple[str, Any]]]:
    """Definitions with a form of their own, and those that are another term."""
    own: list[tuple[str, Any]] = []
    same: list[tuple[str, Any]] = []
    for name, form in definitions:
        (same if form.is_Symbol and name and str(form) not in SYMBOLS else own).append((name, form))
    return own, same


def _equal(same: list[tuple[str, Any]], notation: Notation, spacing: Spacing, marks: Marks) -> list[Row]:
    """Rows that say which terms are others: all that are one term in a chain of equalities."""
    chains: dict[Any, list[Any]] = {}
    for name, form in same:
        chains.setdefault(form, []).append(stand_in(name))
    found: list[Row] = []
    for form, (first, *others) in chains.items():
        found.append(Row(0, notation.box(first).text, notation.box(first).width))
        for symbol in (*others, form):
            box, last = notation.box(symbol), found[-1]
            width = marks.equals.width + box.width
            if last.depth * spacing.step + last.width + width <= spacing.line:
                found[-1] = Row(last.depth, f"{last.text}{marks.equals.text}{box.text}", last.width + width)
            else:
                found.append(Row(1, f"{marks.equals.text}{box.text}", width))
    return found


def _indented(rows: list[Row]) -> list[str]:
    return [f"{' ' * STEP * row.depth}{row.text.strip()}" for row in rows]


def _lay_out(
    definitions: list[tuple[str, Any]],
    notation: Notation,
    spacing: Spacing,
    marks: Marks,
    of: str,
    term: str | None,
    *,
    latex: bool,
) -> list[list[Row]]:
    glyphs = {"": quantity_glyph(of, term, latex=latex), "time": "T", "prefill": "T_{prefill}", "decode": "T_{decode}"}
    for name, _ in definitions:
        parameter, _, number = name.partition(" ")
        if number:
            notation.name(part_symbol(name), rf"{{{SYMBOLS[parameter].glyph}}}_{{{number}}}")
        elif name not in glyphs and part_symbol(name) not in notation.glyphs:
            notation.name(part_symbol(name), f"T_{{{path_index(name) if latex else name}}}")
    found = []
    for name, form in definitions:
        left = notation.glyph(glyphs[name]) if name in glyphs else notation.box(part_symbol(name))
        found.append(lay_out(form, left, notation, spacing, marks))
    return found


def latex_formulas(formulas: Iterable[Formula], line: float) -> list[str]:
    """Rows of an `align*` that define formulas, with the name of each at the right, on the row with most room."""
    found = []
    for formula in formulas:
        rows = latex_equation(formula, Spacing(line=line, step=1.0))
        texts = aligned(rows)
        _, place = max((line - row.depth - row.width, -k) for k, row in enumerate(rows))
        texts[-place] += rf" \tag*{{\footnotesize\texttt{{{latex_name(formula.name)}}}}}"
        found += texts
    return found


def unicode_formulas(formulas: Iterable[Formula], width: int) -> list[str]:
    """Lines of a terminal that define formulas, each with its name above."""
    spacing = Spacing(line=float(width), step=float(STEP))
    found = []
    for formula in formulas:
        found.append(f"{formula.name}:")
        rows = equation_rows(
            formula, formula_notation(formula), Spacing(spacing.line - STEP, spacing.step), UNICODE_MARKS
        )
        found += [f"{' ' * STEP}{text}" for text in _indented(rows)]
    return found
