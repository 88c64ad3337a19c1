"""The book as LaTeX, Markdown and HTML."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..common.version import VERSION
from . import markup
from .entry import Page, entry, pages, title, vocabulary
from .equation import PAGE, called_formulas, head, latex_blocks, latex_notation
from .latex import upright
from .markup import Markup, anchor
from .references import reference
from .steps import claim_lines

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .entry import BookEntry, SymbolRow

TEMPLATES = Path(__file__).parent / "templates"


def tex(names: Iterable[str] | None = None) -> str:
    """The book as a LaTeX document that needs no package but amsmath; of all formulas, or of some.

    Raises:
        InputError: an unknown formula, with the nearest.
    """
    return _render("book.tex.j2", markup.LATEX, names, inline=False)


def markdown(names: Iterable[str] | None = None) -> str:
    """The book as Markdown with LaTeX mathematics between dollar signs; of all formulas, or of some.

    Raises:
        InputError: an unknown formula, with the nearest.
    """
    return _render("book.md.j2", markup.MARKDOWN, names, inline=False)


def html(names: Iterable[str] | None = None) -> str:
    """The book as one HTML file with MathML, which loads nothing; of all formulas, or of some.

    Raises:
        InputError: an unknown formula, with the nearest, or latex2mathml is not installed.
    """
    return _render("book.html.j2", markup.HTML, names, inline=True)


def _render(template: str, form: Markup, names: Iterable[str] | None, inline: bool) -> str:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        undefined=jinja2.StrictUndefined,
        autoescape=False,  # every value below is written by the markup, which escapes it
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
    found = pages(names)
    formulas = [formula for page in found for formula in page.formulas]
    writer = _Writer(form, {formula.name for formula in formulas}, inline)
    keys = sorted({formula.source for formula in formulas})
    return environment.get_template(template).render(
        version=VERSION,
        condition=form.inline("[q > 1]"),
        pages=[writer.page(page) for page in found],
        symbols=[writer.symbol(row) for row in vocabulary(formulas)],
        references=[writer.reference(key) for key in keys],
    )


class _Writer:
    """Writes what the templates take.

    Args:
        form: the markup.
        known: names of the formulas of the book.
        inline: whether glyphs are wrapped here; else the template does so.
    """

    def __init__(self, form: Markup, known: set[str], inline: bool) -> None:
        self.form, self.known, self.inline = form, known, inline

    def link(self, name: str) -> str | None:
        return f"#{anchor(name)}" if name in self.known else None

    def prose(self, text: str) -> str:
        return self.form.prose(text, self.link)

    def glyph(self, latex: str) -> str:
        return self.form.inline(upright(latex)) if self.inline else upright(latex)

    def page(self, page: Page) -> dict[str, Any]:
        return {
            "title": self.prose(page.title),
            "anchor": f"page-{page.name.rsplit('.', 1)[-1]}",
            "introduction": [self.prose(text) for text in page.introduction],
            "entries": [self.entry(entry(formula.name)) for formula in page.formulas],
        }

    def entry(self, one: BookEntry) -> dict[str, Any]:
        formula, form = one.formula, self.form
        return {
            "name": form.name(formula.name),
            "anchor": anchor(formula.name),
            "glyph": self.glyph(formula.glyph),
            "unit": form.unit(one.unit),
            "sentence": self.prose(one.sentence),
            "details": [self.prose(text) for text in one.details],
            "blocks": [form.display(block) for block in latex_blocks(formula)],
            "calls": [
                {
                    "head": form.inline(head(called, latex_notation(formula)).text),
                    "text": self.prose(f"`{called.name}`, {title(called.page)}"),
                }
                for called in called_formulas(formula)
            ],
            "symbols": [self.symbol(row) for row in one.symbols],
            "assumes": self.prose(formula.assumes),
            "derivation": self.prose(formula.derivation),
            "source": formula.source,
            "reference_only": self.prose(formula.reference_only),
            "claims": [
                {"verb": verb, "text": text}
                for verb, text in claim_lines(
                    one.claims, latex_notation(formula), form.inline, r"\uparrow", r"\downarrow", PAGE.line
                )
            ],
            "undecided": ", ".join(form.inline(upright(row.glyph)) for row in one.symbols if row.name in one.undecided),
            "curvature": self.prose(one.curvature),
        }

    def symbol(self, row: SymbolRow) -> dict[str, str]:
        return {
            "glyph": self.glyph(row.glyph),
            "name": self.form.name(row.name),
            "meaning": self.prose(row.meaning),
            "unit": self.form.unit(row.unit),
            "domain": self.prose(row.domain),
        }

    def reference(self, key: str) -> dict[str, str]:
        found = reference(key)
        return {"key": key, "text": self.prose(found.text), "bibtex": self.form.bibtex(found.bibtex)}
