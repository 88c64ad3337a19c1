"""The book as plain data in one markup, which the templates print: notation, chapters, indexes and sources."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from ..common.version import VERSION
from . import chapters
from .entry import entry, find, parts, vocabulary
from .equation import PAGE, called_formulas, head, latex_blocks, latex_notation
from .fragments import expression
from .glossary import groups, module_of
from .latex import upright
from .letters import Letters
from .measured import EXAMPLES, SCORES, measured
from .prose import join
from .prose import parts as parts_of_prose
from .references import reference
from .steps import claim_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ..formulas.language.formula import Formula
    from .entry import BookEntry, Page, Part, SymbolRow
    from .markup import Markup
    from .references import Reference

ASIDE = re.compile(r"(\*\*.+?\*\*|\$[^$]+\$|\[@[\w-]+\]|`[^`]+`)")
"""What is no plain text in an introduction: strong words, mathematics, a source, a name."""
MEASURED = (
    "Kernels that others measured, of shapes that no constant was fitted to: |predicted / measured - 1| by device, in "
    "the median and the mean, and its mean with the sign; all formats and software together. Then a few of them."
)
DOMAINS = {"integer >= 1": "whole ≥ 1", ">= 0": "≥ 0"}
"""Domains as they fit a narrow column, where the vocabulary's words are longer."""


class Writer:
    """Writes the parts of a book in a markup.

    Args:
        form: the markup.
        names: of the formulas of the book, or nothing for all.
        target: where a thing stands, from its kind (formula, symbol, source, chapter, page) and its name.
    """

    def __init__(self, form: Markup, names: Iterable[str] | None, target: Callable[[str, str], str]) -> None:
        self.form, self.target, self.whole = form, target, names is None
        self.parts = parts(names)
        self.formulas = [formula for part in self.parts for page in part.pages for formula in page.formulas]
        self.pages = {page.short: page for part in self.parts for page in part.pages}
        self.groups = groups(None if self.whole else [row.name for row in vocabulary(self.formulas)])
        self.entries = {formula.name: entry(formula.name) for formula in self.formulas}

    def book(self) -> dict[str, Any]:
        """All of it, as the templates take it."""
        return {
            "version": VERSION,
            "whole": self.whole,
            "condition": self.form.inline("[q > 1]"),
            "notation": self.notation(),
            "chapters": [self.chapter(part) for part in self.parts],
            "index": self.index(),
            "references": [self.source(found) for found in self.sources()],
        }

    # Prose

    def prose(self, text: str, letters: Letters | None = None) -> str:
        """A docstring's sentence."""
        write = {
            "text": self.form.text,
            "math": self.form.inline,
            "emphasis": self.form.emphasis,
            "code": self.reference,
        }
        return join(parts_of_prose(text, letters or Letters()), write)

    def code(self, name: str) -> str:
        """A name between backticks: a link to a formula of the book, or as it is."""
        shown = self.form.code(name)
        return self.link(name, shown) if name in self.entries else shown

    def reference(self, name: str) -> str:
        """A name of a docstring: of a page too, as `zero_bubble` or `collectives.all_to_all`."""
        page = self.pages.get(name.removesuffix(".py").rsplit(".", 1)[-1])
        if page is None or name in self.entries:
            return self.code(name)
        return self.form.link(self.target("page", page.short), self.form.code(name), page.title)

    def link(self, name: str, shown: str) -> str:
        """A link to a formula of the book."""
        return self.form.link(self.target("formula", name), shown, self.entries[name].title)

    def words(self, text: str) -> str:
        """A paragraph of an introduction.

        Raises:
            ValueError: what stands between dollar signs is no expression.
        """
        return "".join(
            self._aside(piece) if ASIDE.fullmatch(piece) else self.form.text(piece) for piece in ASIDE.split(text)
        )

    def _aside(self, piece: str) -> str:
        if piece.startswith("**"):
            return self.form.strong(self.words(piece[2:-2]))
        if piece.startswith("$"):
            latex = expression(piece[1:-1], Letters(by_name=True))
            if latex is None:
                raise ValueError(f"no expression: {piece}")
            return self.form.inline(latex)
        if piece.startswith("[@"):
            return self.form.cite(piece[2:-1], self.target("source", piece[2:-1]))
        return self.code(piece[1:-1])

    def glyph(self, latex: str) -> str:
        """A glyph inside a line."""
        return self.form.inline(upright(latex))

    # Chapters

    def notation(self) -> dict[str, Any]:
        """The first chapter: conventions, and the vocabulary by groups."""
        return {
            "title": "Notation",
            "anchor": "chapter-notation",
            "sections": self.sections(chapters.NOTATION) if self.whole else [],
            "groups": [
                {
                    "anchor": f"symbols-{group.name}",
                    "title": self.form.text(group.title),
                    "text": self.words(group.text),
                    "rows": [self.symbol(row) for row in group.rows],
                }
                for group in self.groups
            ],
        }

    def sections(self, name: str) -> list[dict[str, Any]]:
        """The introduction of a chapter: headings, and under each words and equations."""
        return [
            {"heading": self.form.text(section.heading), "blocks": [self.block(text) for text in section.paragraphs]}
            for section in chapters.introduction(name)
        ]

    def block(self, text: str) -> dict[str, Any]:
        """A paragraph, or an equation of the registry with its title."""
        if not text.startswith("= "):
            return {"text": self.words(text)}
        formula = find(text.removeprefix("= "))
        shown = self.entries[formula.name]
        label = self.link(formula.name, self.form.text(shown.title))
        return {"text": "", "label": label, "number": shown.number, "displays": self.displays(formula)}

    def displays(self, formula: Formula) -> list[str]:
        """The equation of a formula, and its named parts."""
        return [self.form.display(block) for block in latex_blocks(formula)]

    def chapter(self, part: Part) -> dict[str, Any]:
        """A chapter with its pages."""
        name = part.chapter.name
        return {
            "name": name,
            "number": part.number,
            "title": self.form.text(part.chapter.title),
            "anchor": f"chapter-{name}",
            "target": self.target("chapter", name),
            "sections": self.sections(name) if self.whole else [],
            "pages": [self.page(page) for page in part.pages],
        }

    def page(self, page: Page) -> dict[str, Any]:
        """A page with its formulas."""
        return {
            "title": self.form.text(page.title),
            "anchor": f"page-{page.short}",
            "target": self.target("page", page.short),
            "introduction": [self.prose(text) for text in page.introduction],
            "entries": [self.entry(self.entries[formula.name]) for formula in page.formulas],
            "measured": self.measured(page),
        }

    def measured(self, page: Page) -> dict[str, Any]:
        """What the kernels of a page were measured at, beside what is predicted; empty tables where nothing was."""
        found = measured(page.short) if self.whole else measured("")
        return {
            "words": self.words(MEASURED),
            "heads": [self.form.text(head) for head in SCORES],
            "scores": [[self.form.text(cell) for cell in row] for row in found.scores],
            "example_heads": [self.form.text(head) for head in EXAMPLES],
            "examples": [[self.form.text(cell) for cell in row] for row in found.examples],
        }

    def entry(self, one: BookEntry) -> dict[str, Any]:
        """A formula."""
        formula, form, letters = one.formula, self.form, Letters(one.formula)
        return {
            "key": formula.name,
            "name": form.code(formula.name),
            "number": one.number,
            "title": form.text(one.title),
            "anchor": f"formula-{formula.name}",
            "target": self.target("formula", formula.name),
            "glyph": self.glyph(formula.glyph),
            "unit": form.unit(one.unit),
            "sentence": self.prose(one.sentence, letters),
            "details": [self.prose(text, letters) for text in one.details],
            "blocks": self.displays(formula),
            "calls": [
                {
                    "head": form.inline(head(called, latex_notation(formula)).text),
                    "text": self.prose(f"`{called.name}`", letters),
                }
                for called in called_formulas(formula)
            ],
            "symbols": [self.symbol(row) for row in one.symbols],
            "assumes": self.prose(formula.assumes, letters),
            "derivation": self.prose(formula.derivation, letters),
            "source": form.cite(formula.source, self.target("source", formula.source)),
            "reference_only": self.prose(formula.reference_only, letters),
            "claims": [
                {"verb": verb, "text": text}
                for verb, text in claim_lines(
                    one.claims, latex_notation(formula), form.inline, r"\uparrow", r"\downarrow", PAGE.line
                )
            ],
            "undecided": ", ".join(form.inline(upright(row.glyph)) for row in one.symbols if row.name in one.undecided),
            "curvature": form.text(one.curvature),
        }

    def symbol(self, row: SymbolRow) -> dict[str, str]:
        """A symbol's row of a table."""
        return {
            "key": row.name,
            "glyph": self.glyph(row.glyph),
            "name": self.form.code(row.name),
            "target": self.target("symbol", row.name),
            "meaning": self.prose(row.meaning),
            "unit": self.form.unit(row.unit),
            "domain": self.form.text(DOMAINS.get(row.domain, row.domain)),
            "module": module_of(row.name),
        }

    # Indexes

    def index(self) -> list[dict[str, Any]]:
        """Every symbol with the formulas that it stands in."""
        users: dict[str, list[str]] = {}
        for name, one in self.entries.items():
            for row in one.symbols:
                users.setdefault(row.name, []).append(name)
        return [self.symbol(row) | {"formulas": self.mentions(users[row.name])} for row in vocabulary(self.formulas)]

    def sources(self) -> list[Reference]:
        """The references that formulas cite, and introductions if these are shown."""
        keys = {formula.source for formula in self.formulas}
        if self.whole:
            keys |= {key for name in chapters.names() for key in chapters.cited(name)}
        return [reference(key) for key in sorted(keys)]

    def source(self, found: Reference) -> dict[str, Any]:
        """A reference with the formulas that cite it."""
        return {
            "key": found.key,
            "anchor": f"ref-{found.key}",
            "text": self.form.text(found.text),
            "bibtex": self.form.bibtex(found.bibtex),
            "formulas": self.mentions(formula.name for formula in self.formulas if formula.source == found.key),
        }

    def mentions(self, names: Iterable[str]) -> list[str]:
        """The numbers of formulas, each a link."""
        return [self.link(name, self.entries[name].number) for name in names]
