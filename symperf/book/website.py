"""The book as a site: a page for each chapter, with navigation, and a search box over an index of everything."""

from __future__ import annotations

import functools
import json
from typing import TYPE_CHECKING

from . import markup
from .book import Writer
from .render import ANCHORS, TEMPLATES, environment
from .unicode import plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

FIRST = {"index.html": "Contents", "notation.html": "Notation"}
LAST = {"symbols.html": "Index of symbols", "sources.html": "References"}
"""Pages before and after the chapters, with their titles."""
HOMES = {"symbol": "notation.html", "source": "sources.html"}
"""Where things stand that are not of a chapter, by their kind."""


def site(names: Iterable[str] | None = None) -> dict[str, str]:
    """The files of the book as a site that needs neither a network nor a server: text by file name.

    Args:
        names: of the formulas of the book; all by default.

    Raises:
        InputError: an unknown formula, with the nearest, or latex2mathml is not installed.
    """
    homes: dict[tuple[str, str], str] = {}
    writer = Writer(markup.HTML, names, functools.partial(_target, homes))
    for part in writer.parts:
        file = f"{part.chapter.name}.html"
        homes[("chapter", part.chapter.name)] = file
        for page in part.pages:
            homes[("page", page.short)] = file
            homes.update({("formula", formula.name): file for formula in page.formulas})
    book = writer.book()
    chapters = {f"{chapter['name']}.html": chapter for chapter in book["chapters"]}
    titles = {**FIRST, **{file: chapter["title"] for file, chapter in chapters.items()}, **LAST}
    pages = [{"file": file, "title": title, "chapter": chapters.get(file)} for file, title in titles.items()]
    template = environment().get_template("site.html.j2")
    found = {}
    for before, shown, after in zip([None, *pages], pages, [*pages[1:], None], strict=False):
        around = {"before": before, "after": after}
        found[str(shown["file"])] = str(template.render(**book, page=shown | around, count=len(writer.formulas)))
    index = json.dumps(list(_entries(writer)), ensure_ascii=False, separators=(",", ":"))
    found["index.js"] = f"const BOOK = {index};\n".replace("</", "<\\/")
    for name in ("site.css", "search.js"):
        found[name] = (TEMPLATES / name).read_text(encoding="utf-8")
    return found


def _target(homes: Mapping[tuple[str, str], str], kind: str, name: str) -> str:
    """Where a thing stands; a chapter is a file."""
    file = HOMES.get(kind) or homes.get((kind, name), "index.html")
    return file if kind == "chapter" else f"{file}#{ANCHORS[kind]}{name}"


def _entries(writer: Writer) -> Iterator[dict[str, str]]:
    """What the search box looks through: title, name, further words, kind and place of each thing."""

    def made(kind: str, name: str, title: str, shown: str, more: str) -> dict[str, str]:
        return {"title": title, "name": name, "more": more, "kind": shown, "place": writer.target(kind, name)}

    for part in writer.parts:
        yield made("chapter", part.chapter.name, part.chapter.title, "chapter", "")
        for page in part.pages:
            yield made("page", page.short, page.title, "section", " ".join(page.introduction))
            for formula in page.formulas:
                one = writer.entries[formula.name]
                more = f"{plain(formula.glyph)} {one.sentence} {formula.source} {page.title}"
                yield made("formula", formula.name, one.title, one.number, more)
    for group in writer.groups:
        for row in group.rows:
            yield made("symbol", row.name, f"{plain(row.glyph)}: {row.meaning}", "symbol", group.title)
    for found in writer.sources():
        yield made("source", found.key, found.title, "source", f"{found.authors} {found.year}")
