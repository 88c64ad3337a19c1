"""What the book says of one formula and of one symbol, in no markup yet; and the formulas by page."""

from __future__ import annotations

import functools
import importlib
import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..common.errors import InputError, nearest, quote
from ..formulas.language.symbols import SYMBOLS
from ..formulas.registry import load
from .chapters import CHAPTERS, TITLES, Chapter, chapter_of
from .letters import symbols_of
from .proof import Claim, claims, undecided_symbols
from .prose import paragraphs
from .titles import title_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..formulas.language.dimension import Dimension
    from ..formulas.language.formula import Formula

CURVATURES = {
    "affine": "affine in logarithms (a monomial)",
    "convex": "convex in logarithms (a posynomial, or a maximum of such)",
    "concave": "concave in logarithms",
}


@dataclass(frozen=True)
class SymbolRow:
    """One symbol: its name in Python and files, its LaTeX glyph, meaning, unit and domain."""

    name: str
    glyph: str
    meaning: str
    unit: str
    domain: str


@dataclass(frozen=True)
class BookEntry:
    """One formula as the book shows it.

    Attributes:
        formula: of the registry.
        title: for people.
        number: of its place in the book of all formulas, "3.12": chapter and place in it.
        sentence: what it gives.
        details: more paragraphs of its docstring.
        symbols: every symbol of its equation, its parameters first.
        claims: proved directions.
        undecided: names of symbols without a proved direction.
        curvature: in words, or nothing.
        unit: of the result.
    """

    formula: Formula
    title: str
    number: str
    sentence: str
    details: tuple[str, ...]
    symbols: tuple[SymbolRow, ...]
    claims: tuple[Claim, ...]
    undecided: tuple[str, ...]
    curvature: str
    unit: str


@dataclass(frozen=True)
class Page:
    """The formulas of one module, introduced by its docstring."""

    name: str
    title: str
    introduction: tuple[str, ...]
    formulas: tuple[Formula, ...]

    @property
    def short(self) -> str:
        """The module's name without its packages."""
        return self.name.rsplit(".", 1)[-1]


@dataclass(frozen=True)
class Part:
    """A chapter with those of its pages that are shown, and its number; the notation is the first."""

    chapter: Chapter
    number: int
    pages: tuple[Page, ...]


def entry(name: str) -> BookEntry:
    """The entry of a formula.

    Raises:
        InputError: there is none of that name; the nearest are told.
    """
    formula = find(name)
    first, *details = paragraphs(formula.doc)
    return BookEntry(
        formula=formula,
        title=title_of(formula),
        number=numbers()[name],
        sentence=first,
        details=tuple(details),
        symbols=tuple(symbol_row(symbol) for symbol in symbols_of(formula)),
        claims=tuple(claims(formula)),
        undecided=tuple(undecided_symbols(formula)),
        curvature=CURVATURES.get(formula.curvature or "", ""),
        unit=unit(formula.dimension),
    )


def find(name: str) -> Formula:
    """The formula of a name.

    Raises:
        InputError: there is none; the nearest are told.
    """
    known = load()
    if name not in known:
        hint = nearest(name, known) or ", expected one that `symperf formulas` shows"
        raise InputError(f"formulas: unknown formula {quote(name)}{hint}")
    return known[name]


def symbol_row(name: str) -> SymbolRow:
    """What the vocabulary says of a symbol."""
    symbol = SYMBOLS[name]
    return SymbolRow(name, symbol.glyph, symbol.sentence, unit(symbol.dimension), symbol.domain)


def unit(dimension: Dimension) -> str:
    """A dimension as readers know it; of counts and fractions, nothing.

    >>> from ..formulas.language.dimension import BANDWIDTH, ONE
    >>> unit(BANDWIDTH), unit(ONE)
    ('B/s', '')
    """
    text = str(dimension)
    return "" if text == "1" else text


def pages(names: Iterable[str] | None = None) -> list[Page]:
    """The formulas by page, in reading order; all of them, or those of some names."""
    chosen = [find(name) for name in names] if names is not None else list(load().values())
    by_module: dict[str, list[Formula]] = {}
    for formula in chosen:
        by_module.setdefault(formula.module, []).append(formula)
    return [
        Page(module, title(formulas[0].page), tuple(_introduction(module)), tuple(formulas))
        for module, formulas in sorted(by_module.items(), key=lambda item: _place(item[0]))
    ]


def parts(names: Iterable[str] | None = None) -> list[Part]:
    """The chapters with their pages, of all formulas or of some."""
    found = pages(names)
    grouped = [
        Part(chapter, number, tuple(page for page in found if chapter_of(page.name) == chapter))
        for number, chapter in enumerate(CHAPTERS, 2)
    ]
    return [part for part in grouped if part.pages]


@functools.cache
def numbers() -> dict[str, str]:
    """The number of every formula in the book of all."""
    return {
        formula.name: f"{part.number}.{place}"
        for part in parts()
        for place, formula in enumerate((formula for page in part.pages for formula in page.formulas), 1)
    }


def title(page: str) -> str:
    """The title of a page.

    >>> title("matmul"), title("some_new_page")
    ('Matrix products', 'Some new page')
    """
    return TITLES.get(page) or page.replace("_", " ").capitalize()


def vocabulary(formulas: Iterable[Formula]) -> list[SymbolRow]:
    """Every symbol of these formulas, in the vocabulary's order."""
    used = {name for formula in formulas for name in symbols_of(formula)}
    return [symbol_row(name) for name in SYMBOLS if name in used]


def _introduction(module: str) -> list[str]:
    return paragraphs(inspect.getdoc(importlib.import_module(module)) or "")


def _place(module: str) -> tuple[int, int, str]:
    page = module.rsplit(".", 1)[-1]
    pages = list(TITLES)
    return (CHAPTERS.index(chapter_of(module)), pages.index(page) if page in TITLES else len(pages), module)
