"""One formula on the terminal, and all of them as a list."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..common.table import Table, common_sizes, fold
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
    from rich.text import Text

    formula = entry.formula
    out.print(
        Text.assemble((formula.name, "bold"), f"  {plain(formula.glyph)}", f" in {entry.unit}" * bool(entry.unit))
    )
    mark = f"Reference only: {formula.reference_only}" if formula.reference_only else ""
    for paragraph in filter(None, (entry.sentence, *entry.details, mark)):
        for line in fold(_words(paragraph), out.width, " " * INDENT):
            out.print(line, soft_wrap=True)
    out.print()
    for line in unicode_lines(formula, out.width - INDENT):
        out.print(" " * INDENT + line, soft_wrap=True)
    out.print()
    table = Table(("", "", "", ""), left=(0, 1, 2, 3), wraps=(3,))
    for row in entry.symbols:
        table.add_row(plain(row.glyph), row.name, row.unit, row.meaning)
    _print(table, out)
    facts = Table(("", ""), left=(0, 1), wraps=(1,))
    facts.add_row("assumes", _words(formula.assumes))
    facts.add_row("source", f"{_words(formula.derivation)} [{formula.source}]")
    facts.add_row("", reference(formula.source).text)
    for verb, text in claim_lines(entry.claims, unicode_notation(formula), str, "↑", "↓"):
        facts.add_row(f"{verb.lower()} with", text)
    if entry.undecided:
        facts.add_row("not decided", ", ".join(plain(r.glyph) for r in entry.symbols if r.name in entry.undecided))
    if entry.curvature:
        facts.add_row("curvature", entry.curvature)
    out.print()
    _print(facts, out)


def _print(table: Table, out: Console, sizes: list[list[int]] | None = None) -> None:
    from rich.text import Text

    for line in table.styled(out.width - INDENT, sizes):
        out.print(Text.assemble(" " * INDENT, line), soft_wrap=True)


def show_all(out: Console) -> None:
    """Print every formula's name, glyph and sentence, by page."""
    from rich.text import Text

    tables = {}
    for page in pages():
        tables[page.title] = Table(("", "", ""), left=(0, 1, 2), wraps=(2,))
        for formula in page.formulas:
            tables[page.title].add_row(formula.name, plain(formula.glyph), _words(formula.sentence))
    sizes = common_sizes(list(tables.values()))
    for title, table in tables.items():
        out.print(Text(title, "bold"))
        _print(table, out, sizes)


def _words(text: str) -> str:
    return text.replace("`", "")
