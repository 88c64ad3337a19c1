"""Docstrings' prose in the markups of the book: plain words, and names between backticks."""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

SECTION = re.compile(r"(Assumes|Source|Reference only|Args|Returns|Raises|Attributes|Yields):(\s|$)")
CODE = re.compile(r"`([^`]+)`")
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


def latex(text: str, link: Callable[[str], str | None] = lambda _: None) -> str:  # noqa: ARG001
    r"""Prose in LaTeX; long names may be broken after an underscore.

    >>> print(latex("a_b is 50% of `c_d`"))
    a\_b is 50\% of \texttt{c\_\allowbreak{}d}
    """
    return _with_code(text, latex_text, lambda name: rf"\texttt{{{latex_name(name)}}}")


def latex_text(text: str) -> str:
    r"""Plain text in LaTeX, with all that has a meaning there escaped; characters that pdflatex lacks by their code.

    >>> print(latex_text("50% of a_b, Löf\n漢"))
    50\% of a\_b, Löf [U+6F22]
    """
    return "".join(_LATEX.get(character) or _latex_character(character) for character in text)


def _latex_character(character: str) -> str:
    if character.isspace():
        return " "
    latin = "\xa1" <= character <= "\u017e" or character in "‘’“”„‚‹›†‡•…€™"
    return character if (character.isascii() and character.isprintable()) or latin else f"[U+{ord(character):04X}]"


def latex_name(name: str) -> str:
    """A name in LaTeX, which may be broken after an underscore."""
    return latex_text(name).replace(r"\_", r"\_\allowbreak{}")


def markdown(text: str, link: Callable[[str], str | None] = lambda _: None) -> str:
    r"""Prose in Markdown.

    >>> print(markdown("a_b [q > 1] is `c_d`", lambda name: "#" + name))
    a\_b \[q &gt; 1\] is [`c_d`](#c_d)
    """

    def code(name: str) -> str:
        target = link(name)
        return f"[`{name}`]({target})" if target else f"`{name}`"

    return _with_code(text, markdown_text, code)


def markdown_text(text: str) -> str:
    """Plain text in Markdown, with all that has a meaning there escaped."""
    return re.sub(r"([\\`*_\[\]|#$~])", r"\\\1", html.escape(text, quote=False))


def hypertext(text: str, link: Callable[[str], str | None] = lambda _: None) -> str:
    """Prose in HTML.

    >>> print(hypertext("a < b, see `c_d`", lambda name: "#" + name))
    a &lt; b, see <a href="#c_d"><code>c_d</code></a>
    """

    def code(name: str) -> str:
        target, shown = link(name), f"<code>{html.escape(name)}</code>"
        return f'<a href="{html.escape(target)}">{shown}</a>' if target else shown

    return _with_code(text, html.escape, code)


def _with_code(text: str, plain: Callable[[str], str], code: Callable[[str], str]) -> str:
    pieces = CODE.split(text)
    return "".join(code(piece) if index % 2 else plain(piece) for index, piece in enumerate(pieces))
