"""The book as LaTeX, Markdown and one file of HTML."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import markup
from .book import Writer

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .markup import Markup

TEMPLATES = Path(__file__).parent / "templates"
ANCHORS = {"formula": "formula-", "symbol": "symbol-", "source": "ref-", "chapter": "chapter-", "page": "page-"}
"""What the anchors of things begin with, by their kind."""


def tex(names: Iterable[str] | None = None) -> str:
    """The book as a LaTeX document that needs the packages amsmath and hyperref; of all formulas, or of some.

    Raises:
        InputError: an unknown formula, with the nearest.
    """
    return _one("book.tex.j2", markup.LATEX, names)


def markdown(names: Iterable[str] | None = None) -> str:
    """The book as Markdown with LaTeX mathematics between dollar signs; of all formulas, or of some.

    Raises:
        InputError: an unknown formula, with the nearest.
    """
    return _one("book.md.j2", markup.MARKDOWN, names)


def html(names: Iterable[str] | None = None) -> str:
    """The book as one HTML file with MathML, which loads nothing; of all formulas, or of some.

    Raises:
        InputError: an unknown formula, with the nearest, or latex2mathml is not installed.
    """
    return _one("book.html.j2", markup.HTML, names)


def entry_markdown(name: str) -> str:
    """What the book says of one formula, in Markdown.

    Raises:
        InputError: an unknown formula, with the nearest.
    """
    writer = Writer(markup.MARKDOWN, [name], _inside)
    module: Any = environment().get_template("entry.md.j2").module
    return str(module.show(writer.entry(writer.entries[name])))


def _one(template: str, form: Markup, names: Iterable[str] | None) -> str:
    return str(environment().get_template(template).render(**Writer(form, names, _inside).book()))


def _inside(kind: str, name: str) -> str:
    """Where a thing stands in one file."""
    return f"#{ANCHORS[kind]}{name}"


@functools.cache
def environment() -> Any:
    """The templates, which write between << and >> and decide between <% and %>."""
    import jinja2

    return jinja2.Environment(  # each escaped as itself  # nosec B701
        loader=jinja2.FileSystemLoader(TEMPLATES),
        undefined=jinja2.StrictUndefined,
        autoescape=False,  # every value is written by the markup, which escapes it
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        block_start_string="<%",
        block_end_string="%>",
        variable_start_string="<<",
        variable_end_string=">>",
        comment_start_string="<#",
        comment_end_string="#>",
    )
