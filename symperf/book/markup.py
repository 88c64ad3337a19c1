"""The three markups of the book: how each writes prose, mathematics and units."""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..common.extras import import_extra
from . import prose

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True)
class Markup:
    """One markup, as functions from text to text.

    Attributes:
        prose: a docstring's words, whose names link to formulas if the second argument knows them.
        name: a name in Python.
        unit: such as "B/s".
        inline: LaTeX mathematics inside a line.
        display: LaTeX mathematics on lines of its own, as the template takes it.
        bibtex: an entry.
    """

    prose: Callable[[str, Callable[[str], str | None]], str]
    name: Callable[[str], str]
    unit: Callable[[str], str]
    inline: Callable[[str], str]
    display: Callable[[str], str]
    bibtex: Callable[[str], str]


_FOR_MATHML = (
    (r"\begin{aligned}[t]", r"\begin{array}{l}"),
    (r"\begin{aligned}", r"\begin{array}{l}"),
    (r"\end{aligned}", r"\end{array}"),
    (r"\\[4pt]", r"\\"),
    ("\n&", "\n"),
    (r"\mathrm{", r"\text{"),
    (r"\log_{2} ", r"\, \log_{2} \, "),
)
"""What the converter sets better, or knows at all, when it is said in another way; rows begin with an ampersand."""


def anchor(name: str) -> str:
    """Where a formula stands in a document."""
    return f"formula-{name}"


def mathml(text: str, display: str = "inline") -> str:
    """LaTeX mathematics as a MathML element.

    Raises:
        InputError: latex2mathml is not installed.
    """
    converter = import_extra("latex2mathml.converter", "book", "formulas: --html")
    for latex, known in _FOR_MATHML:
        text = text.replace(latex, known)
    return str(converter.convert(text, display=display)).replace("<mtable>", '<mtable displaystyle="true">')


def _latex_unit(text: str) -> str:
    return rf"\(\mathrm{{{text.replace('$', chr(92) + '$').replace('*', chr(92) + ', ')}}}\)" if text else ""


LATEX = Markup(
    prose=prose.latex,
    name=prose.latex_name,
    unit=_latex_unit,
    inline=lambda text: rf"\({text}\)",
    display=str,
    bibtex=str,
)
MARKDOWN = Markup(
    prose=prose.markdown,
    name=str,
    unit=prose.markdown_text,
    inline=lambda text: f"${text}$",
    display=str,
    bibtex=str,
)
HTML = Markup(
    prose=prose.hypertext,
    name=html.escape,
    unit=html.escape,
    inline=mathml,
    display=lambda text: mathml(text, "block"),
    bibtex=html.escape,
)
