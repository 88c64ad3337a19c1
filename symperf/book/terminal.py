"""One formula on the terminal, and all of them as a list."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .entry import pages
from .equation import unicode_lines, unicode_notation
from .references import reference
from .steps import claim_lines
from .unicode import plain

if TYPE_CHECKING:
    from rich.console import Console

    from .entry import BookEntry

INDENT = 2


def show(entry: BookEntry, out: Console) -> None:
    """Print all that the book says of a formula."""
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    formula = entry.formula
    out.print(
        Text.assemble((formula.name, "bold"), f"  {plain(formula.glyph)}", f" in {entry.unit}" * bool(entry.unit))
    )
    mark = f"Reference only: {formula.reference_only}" if formula.reference_only else ""
    for paragraph in filter(None, (entry.sentence, *entry.details, mark)):
        out.print(Padding(Text(_words(paragraph)), (0, 0, 0, INDENT)))
    out.print()
    for line in unicode_lines(formula, out.width - INDENT):
        out.print(" " * INDENT + line, soft_wrap=True)
    out.print()
    table = Table.grid(padding=(0, 2))
    for row in entry.symbols:
        table.add_row("", plain(row.glyph), row.name, row.meaning, row.unit)
    out.print(table)
    facts = Table.grid(padding=(0, 2))
    facts.add_column()
    facts.add_column(no_wrap=True)
    facts.add_column(overflow="fold")
    facts.add_row("", "assumes", _words(formula.assumes))
    facts.add_row("", "source", f"{_words(formula.derivation)} [{formula.source}]")
    facts.add_row("", "", reference(formula.source).text)
    for verb, text in claim_lines(entry.claims, unicode_notation(formula), str, "↑", "↓"):
        facts.add_row("", f"{verb.lower()} with", text)
    if entry.undecided:
        facts.add_row("", "not decided", ", ".join(plain(r.glyph) for r in entry.symbols if r.name in entry.undecided))
    if entry.curvature:
        facts.add_row("", "curvature", entry.curvature)
    out.print()
    out.print(facts)


def show_all(out: Console) -> None:
    """Print every formula's name, glyph and sentence, by page."""
    from rich.table import Table
    from rich.text import Text

    found = pages()
    widest = max(len(formula.name) for page in found for formula in page.formulas)
    for page in found:
        table = Table.grid(padding=(0, 2))
        table.add_column()
        table.add_column(no_wrap=True, min_width=min(widest, out.width // 2))
        table.add_column(no_wrap=True, min_width=10)
        table.add_column()
        for formula in page.formulas:
            table.add_row("", formula.name, plain(formula.glyph), _words(formula.sentence))
        out.print(Text(page.title, "bold"))
        out.print(table)


def _words(text: str) -> str:
    return text.replace("`", "")
