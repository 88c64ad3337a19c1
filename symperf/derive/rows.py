"""Definitions laid out on lines that fit, in LaTeX and on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..book.layout import Spacing, _Layout
from .forms import stand_in
from .writing import latex_notation, path_index, quantity_glyph, unicode_notation

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..book.layout import DefinitionLine
    from ..book.notation import Notation

PART = "X"
"""Glyph of what has no better name."""


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
    spacing = Spacing(line=line, equals=1.9, indent=2.0, stack=4.5)
    found: list[str] = []
    for each in _lay_out(list(definitions), latex_notation(paths), spacing, of, term, latex=True):
        found += _latex(each, line)
    return found


def unicode_rows(
    definitions: Iterable[tuple[str, Any]], paths: Iterable[str], of: str, term: str | None, width: int
) -> list[str]:
    """Lines of a terminal of at most `width` columns, where that is possible (from about 40 on)."""
    spacing = Spacing(line=float(width), equals=3.0, indent=2.0, stack=6.0)
    found: list[str] = []
    for each in _lay_out(list(definitions), unicode_notation(paths), spacing, of, term, latex=False):
        found += _unicode(each, width)
    return found


def _lay_out(
    definitions: list[tuple[str, Any]], notation: Notation, spacing: Spacing, of: str, term: str | None, *, latex: bool
) -> list[DefinitionLine]:
    layout = _Layout(notation, spacing, PART)
    glyphs = {"": quantity_glyph(of, term, latex=latex), "time": "T", "prefill": "T_{prefill}", "decode": "T_{decode}"}
    for name, _ in definitions:
        symbol = stand_in(name)
        if name not in glyphs and symbol not in notation.glyphs:
            notation.name(symbol, f"T_{{{path_index(name) if latex else name}}}")
    for name, form in definitions:
        left = notation.glyph(glyphs[name]) if name in glyphs else notation.box(stand_in(name))
        layout.waiting.append((left, form))
    found = []
    while layout.waiting:
        found.append(layout.line(*layout.waiting.pop(0)))
    return found


def _pack(line: DefinitionLine, limit: float, gap: float, indent: float, first: float) -> list[list[tuple[int, str]]]:
    """The parts of a line on as few rows as hold them."""
    rows: list[list[tuple[int, str]]] = [[]]
    room = limit - first
    for sign, box in line.parts:
        if rows[-1] and box.width + gap > room:
            rows.append([])
            room = limit - indent
        rows[-1].append((sign, box.text))
        room -= box.width + gap
    return rows


def _latex(line: DefinitionLine, limit: float) -> list[str]:
    head = rf"& {line.left.text}"
    equals = [head, r"& \quad {} = "] if line.below else [f"{head} = "]
    if line.kind == "plain":
        return [*equals[:-1], equals[-1] + line.parts[0][1].text]
    first = 4.0 if line.below else line.left.width + 1.9
    rows = _pack(line, limit, 1.3 if line.kind == "sum" else 0.7, 4.0, first + (0.0 if line.kind == "sum" else 3.0))
    if line.kind == "sum":
        texts = ["".join(f"{{}} {'+' if sign > 0 else '-'} {text} " for sign, text in row).strip() for row in rows]
        texts[0] = texts[0].removeprefix("{} + ")
        return [*equals[:-1], equals[-1] + texts[0], *(rf"& \qquad {text}" for text in texts[1:])]
    texts = [", ".join(text for _, text in row) for row in rows]
    texts = [rf"\{line.kind} \bigl\lbrace {texts[0]}", *texts[1:]]
    texts = [*(f"{text}," for text in texts[:-1]), rf"{texts[-1]} \bigr\rbrace"]
    return [*equals[:-1], equals[-1] + texts[0], *(rf"& \qquad \qquad {text}" for text in texts[1:])]


def _unicode(line: DefinitionLine, limit: float) -> list[str]:
    head = line.left.text
    equals = [head, "    = "] if line.below else [f"{head} = "]
    if line.kind == "plain":
        return [*equals[:-1], equals[-1] + line.parts[0][1].text]
    first = float(len(equals[-1]))
    rows = _pack(line, limit, 3.0 if line.kind == "sum" else 2.0, 8.0, first + (0.0 if line.kind == "sum" else 5.0))
    if line.kind == "sum":
        texts = ["".join(f" {'+' if sign > 0 else '−'} {text}" for sign, text in row).strip() for row in rows]
        texts[0] = texts[0].removeprefix("+ ")
        return [*equals[:-1], equals[-1] + texts[0], *(f"      {text}" for text in texts[1:])]
    texts = [", ".join(text for _, text in row) for row in rows]
    texts = [f"{line.kind}({texts[0]}", *texts[1:]]
    texts = [*(f"{text}," for text in texts[:-1]), f"{texts[-1]})"]
    return [*equals[:-1], equals[-1] + texts[0], *(f"        {text}" for text in texts[1:])]
