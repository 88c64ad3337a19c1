"""Docstrings' prose in the markups of the book: words, names between backticks, and the mathematics between them."""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING

from .fragments import expression, pieces

if TYPE_CHECKING:
    from collections.abc import Callable

    from .fragments import Piece
    from .letters import Letters

SECTION = re.compile(r"(Assumes|Source|Reference only|Args|Returns|Raises|Attributes|Yields):(\s|$)")
_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\(<\)",
    ">": r"\(>\)",
    "|": r"\(|\)",
    '"': "''",
    "×": r"\(\times\)",
    "·": r"\(\cdot\)",
    "≤": r"\(\le\)",
    "≥": r"\(\ge\)",
    "−": r"\(-\)",
    "–": "--",
    "—": "---",
    "²": r"\(^2\)",
    "µ": r"\(\mu\)",
    **{character: f"\\{character}" for character in "#$%&"},
    "_": r"\_",
    "/": r"/\allowbreak{}",
}


def paragraphs(doc: str) -> list[str]:
    """The paragraphs of a docstring, each on one line, up to its first section or example."""
    found = []
    for block in doc.split("\n\n"):
        text = " ".join(block.split())
        if SECTION.match(text) or text.startswith(">>>"):
            break
        found.append(text)
    return found


def parts(text: str, letters: Letters) -> list[Piece]:
    """A docstring's sentence in its pieces; a name between backticks that is a quantity of its formula is mathematics.

    >>> from ..formulas.registry import load
    >>> from .letters import Letters
    >>> [(piece.kind, piece.text) for piece in parts("`work_flops` at a rate", Letters(load()["work_time"]))]
    [('math', 'W_f'), ('text', ' at a rate')]
    """
    from .fragments import Piece

    found = []
    for piece in pieces(text, letters):
        if piece.kind == "code" and piece.text in letters.names:
            found.append(Piece("math", letters.latex(piece.text)))
        elif piece.kind == "code" and not re.fullmatch(r"[\w.]+", piece.text):
            latex = expression(piece.text, letters)
            found.append(Piece("math", latex) if latex else piece)
        else:
            found.append(piece)
    return found


def latex_text(text: str) -> str:
    r"""Plain text in LaTeX, with all that has a meaning there escaped; characters that pdflatex lacks by their code.

    >>> print(latex_text("50% of a_b, Löf\n漢"))
    50\% of a\_b, Löf [U+6F22]
    >>> print(latex_text("see --json"))  # two dashes, not the ligature of them
    see -{}-json
    """
    found = "".join(_LATEX.get(character) or _latex_character(character) for character in text)
    return re.sub(r"(?<!\S)--(?=\w)", "-{}-", found)


def _latex_character(character: str) -> str:
    if character.isspace():
        return " "
    latin = "\xa1" <= character <= "\u017e" or character in "‘’“”„‚‹›†‡•…€™"
    return character if (character.isascii() and character.isprintable()) or latin else f"[U+{ord(character):04X}]"


def latex_name(name: str) -> str:
    """A name in LaTeX, which may be broken after an underscore."""
    return latex_text(name).replace(r"\_", r"\_\allowbreak{}")


def breakable(latex: str) -> str:
    r"""Mathematics of a line of LaTeX that may be broken between its factors, outside of all braces.

    >>> print(breakable(r"2\, m\, x^{a\, b}"))
    2\,\allowbreak m\,\allowbreak x^{a\, b}
    """
    depth, found = 0, []
    for piece in re.split(r"(\\, |[{}])", latex):
        depth += {"{": 1, "}": -1}.get(piece, 0)
        found.append(r"\,\allowbreak " if piece == r"\, " and not depth else piece)
    return "".join(found)


def markdown_text(text: str) -> str:
    """Plain text in Markdown, with all that has a meaning there escaped."""
    return re.sub(r"([\\`*_\[\]|#$~])", r"\\\1", html.escape(text, quote=False))


def join(found: list[Piece], write: dict[str, Callable[[str], str]]) -> str:
    """Pieces written, each by the function of its kind."""
    return "".join(write[piece.kind](piece.text) for piece in found)
