"""Answers in LaTeX and in Unicode, in the glyphs of the vocabulary."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from ..book.latex import Latex
from ..book.prose import latex_text
from ..book.unicode import LETTERS, RAISED, Unicode
from ..formulas.language.symbols import SYMBOLS, strip_units

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..book.notation import Notation
    from .answers import Answer, AnswerTable, Equation

HEAD = r"""\documentclass{article}
\usepackage{amsmath}
\setlength{\textwidth}{170mm}
\setlength{\oddsidemargin}{-5mm}
\setlength{\parindent}{0pt}
\setlength{\parskip}{4pt}
\raggedright
\sloppy
\begin{document}
"""
SUMMED = ("+", "−")
"""Signs with which a sum goes on."""
RELATIONS = {"∼": r"\sim", "−": "-"}
"""Signs between the sides of an equation in LaTeX."""
LONGEST = 48
"""Characters of the cells of the last column above which it is set in lines."""
LINE = "p{78mm}"
EQUATION_ROOM, LETTER = 38.0, 0.5
"""Em beside the left side of an equation, and of a letter of the note at its right."""
ROOM = 92
"""Characters that a table may be wide; a wider one is set smaller."""
GAP, IN_LINES = 2.5, 45
"""Characters that the gap after a column takes, and a column that is set in lines."""
TABLE_ROWS = 30
"""Rows of one table; a `tabular` cannot break across pages."""


def display(answer: Answer) -> str:
    """The closed forms of an answer for a notebook."""
    rows = " \\\\\n".join(_latex_rows(answer.equations()))
    return f"$\\begin{{aligned}}\n{rows}\n\\end{{aligned}}$"


def document(answer: Answer) -> str:
    """A whole document."""
    parts = [HEAD, _sentence(answer.sentence)]
    if forms := answer.equations():
        rows = " \\\\\n".join(_latex_rows(forms))
        parts += [f"\\begin{{align*}}\n{rows}\n\\end{{align*}}"]
    for table in answer.tables():
        parts += _tabulars(table)
    parts += [latex_text(note) for note in answer.notes()]
    used = {s.name for form in answer.equations() for s in form.expr.free_symbols if s.name in SYMBOLS}
    parts += _symbol_tables(used | {form.symbol for form in answer.equations() if form.symbol in SYMBOLS})
    return "\n\n".join([*parts, r"\end{document}"]) + "\n"


def unicode_text(form: Equation) -> str:
    """A closed form on one line of a terminal."""
    notation = Unicode(_glyphs(), [])
    left = _left(form, notation)
    if form.sign in SUMMED:
        left = " " * len(left)
    text = f"{left} {form.sign} {notation.box(strip_units(form.expr)).text}"
    return f"{text}   ({form.note})" if form.note else text


def _sentence(text: str) -> str:
    r"""A sentence in LaTeX; the glyphs in it are mathematics.

    >>> print(_sentence("it grows as η_β, 5 % of s_p²"))
    it grows as $\eta_{\beta}$, 5 \% of $s_{p}^{2}$
    """
    found, at = [], 0
    for match in _GLYPH.finditer(text):
        if not match[0].isascii():
            found += [latex_text(text[at : match.start()]), _glyph(match)]
            at = match.end()
    return "".join(found) + latex_text(text[at:])


_GREEK = {letter: rf"\{name}" for name, letter in LETTERS.items()}
_RAISED = {raised: plain for plain, raised in RAISED.items()}
_GLYPH = re.compile(r"(?P<sign>[·−⌈⌉])|(?P<base>[^\W\d_])(?:_(?P<index>\w+?))?(?P<prime>′?)(?P<power>[⁰¹²³⁴-⁹]*)(?!\w)")
_SIGNS = {"·": r"\cdot", "−": "-", "⌈": r"\lceil", "⌉": r"\rceil"}


def _glyph(match: re.Match[str]) -> str:
    if match["sign"]:
        return f"${_SIGNS[match['sign']]}$"
    letters = [_GREEK.get(letter, letter) for letter in (match["base"], *(match["index"] or ""))]
    index = f"_{{{''.join(letters[1:])}}}" if match["index"] else ""
    prime = "'" if match["prime"] else ""
    power = "".join(chr(_RAISED[ord(each)]) for each in match["power"])
    return f"${letters[0]}{prime}{index}{f'^{{{power}}}' if power else ''}$"


def glyphs_of(expr: Any) -> str:
    """An expression on one line of a terminal."""
    return Unicode(_glyphs(), []).box(strip_units(expr)).text


def _latex_rows(forms: Iterable[Equation]) -> list[str]:
    notation = Latex(_glyphs(), [])
    rows = []
    for form in forms:
        for symbol in form.expr.free_symbols - notation.glyphs.keys():
            notation.name(symbol, notation.word(symbol.name).text)
        body = notation.box(strip_units(form.expr))
        note = rf"\text{{({latex_text(form.note)})}}" if form.note else ""
        beside = body.width + LETTER * len(form.note) < EQUATION_ROOM
        left = "" if form.sign in SUMMED else _left(form, notation)
        sign = RELATIONS.get(form.sign, form.sign)
        rows.append(f"{left} &{sign} {body.text}{rf' && {note}' if note and beside else ''}")
        rows += [rf"& \quad {note}"] if note and not beside else []
    return rows


def _left(form: Equation, notation: Notation) -> str:
    if form.symbol in SYMBOLS:
        return notation.box(SYMBOLS[form.symbol].symbol).text
    return notation.word(form.symbol).text


def _glyphs() -> dict[Any, str]:
    return {entry.symbol: entry.glyph for entry in SYMBOLS.every().values()}


def _tabulars(table: AnswerTable) -> list[str]:
    columns = "".join(_column(table, k) for k in range(len(table.columns)))
    ragged = r"\raggedright " if LINE in columns else ""
    head = " & ".join(latex_text(column) for column in table.columns) + r" \\ \hline"
    rows = [
        " & ".join([*(latex_text(cell) for cell in row[:-1]), ragged + latex_text(row[-1])]) + r" \tabularnewline"
        for row in table.rows
    ]
    found = [latex_text(table.title)] if table.title else []
    small = _size(table)
    most = TABLE_ROWS // 3 if LINE in columns else TABLE_ROWS
    for k in range(0, max(len(rows), 1), most):
        body = "\n".join(rows[k : k + most])
        tabular = f"\\begin{{tabular}}{{{columns}}}\n{head}\n{body}\n\\end{{tabular}}"
        found.append(f"{{{small}\n{tabular}}}" if small else tabular)
    return found


def _size(table: AnswerTable) -> str:
    """The size of letters in which a table fits the page; nothing for the usual one."""
    lines = [_column(table, k) == LINE for k in range(len(table.columns))]
    cells = zip(*(table.columns, *table.rows), strict=True)
    widths = [IN_LINES if line else max(map(len, each)) for line, each in zip(lines, cells, strict=True)]
    wide = sum(widths) + GAP * len(widths)
    return "" if wide <= ROOM else r"\footnotesize" if wide <= ROOM / 0.8 else r"\scriptsize"


def _column(table: AnswerTable, k: int) -> str:
    """How a column is set: long text in lines of its own."""
    if k and k not in table.left:
        return "r"
    long = k == len(table.columns) - 1 and any(len(row[k]) > LONGEST for row in table.rows)
    return LINE if long else "l"


def _symbol_tables(used: set[str]) -> list[str]:
    notation = Latex(_glyphs(), [])
    rows = [
        rf"${notation.box(entry.symbol).text}$ & \texttt{{{latex_text(name)}}} & {latex_text(entry.sentence)} \\"
        for name, entry in SYMBOLS.every().items()
        if name in used
    ]
    return [
        "\\begin{tabular}{llp{84mm}}\nsymbol & name & meaning \\\\ \\hline\n"
        + "\n".join(rows[k : k + TABLE_ROWS])
        + "\n\\end{tabular}"
        for k in range(0, len(rows), TABLE_ROWS)
    ]
