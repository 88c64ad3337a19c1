"""The three markups of the book: how each writes prose, mathematics, links and units."""

from __future__ import annotations

import functools
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
        text: plain words.
        strong: words that begin a paragraph.
        emphasis: a word that is set apart.
        code: a name in Python.
        cite: the key of a source, and where it stands.
        link: a target, what is shown for it, and what it is, which hypertext tells under the pointer.
        unit: such as "B/s".
        inline: LaTeX mathematics inside a line.
        display: LaTeX mathematics on lines of its own, as the template takes it.
        bibtex: an entry.
    """

    text: Callable[[str], str]
    strong: Callable[[str], str]
    emphasis: Callable[[str], str]
    code: Callable[[str], str]
    cite: Callable[[str, str], str]
    link: Callable[[str, str, str], str]
    unit: Callable[[str], str]
    inline: Callable[[str], str]
    display: Callable[[str], str]
    bibtex: Callable[[str], str]


WIDE = 80
"""Characters of LaTeX from which on mathematics in a sentence may be wider than a telephone, and can be scrolled."""
SHORT = 12
"""Characters of a name that is never broken."""
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
_IN_MATHML = (
    ("<mtable>", '<mtable displaystyle="true">'),
    ("<mo>&#x0002F;</mo>", '<mo lspace="0" rspace="0">/</mo>'),
)
"""What browsers show better when it is said in another way."""


def mathml(text: str, display: str = "inline") -> str:
    """LaTeX mathematics as a MathML element.

    Raises:
        InputError: latex2mathml is not installed.
    """
    import_extra("latex2mathml.converter", "book", "formulas: --html")
    return _convert(text, display)


@functools.lru_cache(maxsize=4096)
def _convert(text: str, display: str) -> str:
    from latex2mathml import converter

    for latex, known in _FOR_MATHML:
        text = text.replace(latex, known)
    found = str(converter.convert(text, display=display))
    for written, better in _IN_MATHML:
        found = found.replace(written, better)
    return found


def _latex_unit(text: str) -> str:
    return rf"\(\mathrm{{{text.replace('$', chr(92) + '$').replace('*', chr(92) + ', ')}}}\)" if text else ""


def _html_code(name: str) -> str:
    if len(name) <= SHORT:
        return f'<code class="short">{html.escape(name)}</code>'
    return f"<code>{html.escape(name).replace('_', '_<wbr/>')}</code>"


LATEX = Markup(
    text=prose.latex_text,
    strong=lambda text: rf"\textbf{{{text}}}",
    emphasis=lambda text: rf"\emph{{{prose.latex_text(text)}}}",
    cite=lambda key, _: rf"\cite{{{key}}}",
    code=lambda name: rf"\texttt{{{prose.latex_name(name)}}}",
    link=lambda target, shown, _: rf"\hyperlink{{{target.removeprefix('#')}}}{{{shown}}}",
    unit=_latex_unit,
    inline=lambda text: rf"\({prose.breakable(text)}\)",
    display=str,
    bibtex=str,
)
MARKDOWN = Markup(
    text=prose.markdown_text,
    strong=lambda text: f"**{text}**",
    emphasis=lambda text: f"*{prose.markdown_text(text)}*",
    cite=lambda key, target: f"[{key}]({target})",
    code=lambda name: f"`{name}`",
    link=lambda target, shown, _: f"[{shown}]({target})",
    unit=prose.markdown_text,
    inline=lambda text: f"${text}$",
    display=str,
    bibtex=str,
)
HTML = Markup(
    text=html.escape,
    strong=lambda text: f"<strong>{text}</strong>",
    emphasis=lambda text: f"<em>{html.escape(text)}</em>",
    cite=lambda key, target: f'<a class="cite" href="{html.escape(target)}">[{key}]</a>',
    code=_html_code,
    link=lambda target, shown, what: f'<a href="{html.escape(target)}" title="{html.escape(what)}">{shown}</a>',
    unit=html.escape,
    inline=lambda text: f'<span class="wide">{mathml(text)}</span>' if len(text) > WIDE else mathml(text),
    display=lambda text: mathml(text, "block"),
    bibtex=html.escape,
)
