"""The book as LaTeX, Markdown, one file of HTML, and the pages of a site."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import markup
from .book import Writer
from .unicode import plain

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
    module: Any = _environment().get_template("entry.md.j2").module
    return str(module.show(writer.entry(writer.entries[name])))


def site(names: Iterable[str] | None = None) -> dict[str, str]:
    """The files of the book as a site that needs no network and no server: text by file name; of all formulas, or of some.

    Raises:
        InputError: an unknown formula, with the nearest, or latex2mathml is not installed.
    """
    writer = Writer(markup.HTML, names, functools.partial(_on_site, {}))
    homes = {
        **{name: f"{part.chapter.name}.html" for part in writer.parts for name in _names_of(part)},
        **{part.chapter.name: f"{part.chapter.name}.html" for part in writer.parts},
    }
    writer.target = functools.partial(_on_site, homes)
    book = writer.book()
    pages = [
        {"file": "index.html", "title": "Contents"},
        {"file": "notation.html", "title": book["notation"]["title"]},
        *(
            {"file": f"{chapter['name']}.html", "title": chapter["title"], "chapter": chapter}
            for chapter in book["chapters"]
        ),
        {"file": "symbols.html", "title": "Index of symbols"},
        {"file": "sources.html", "title": "References"},
    ]
    template = _environment().get_template("site.html.j2")
    found = {}
    for place, page in enumerate(pages):
        around = {"before": pages[place - 1] if place else None, "after": (pages[place + 1 :] or [None])[0]}
        found[page["file"]] = template.render(**book, page=page | around, count=len(writer.formulas))
    index = json.dumps(_search_index(writer), ensure_ascii=False, separators=(",", ":"))
    found["index.js"] = f"const BOOK = {index};\n".replace("</", "<\\/")
    for name in ("site.css", "search.js"):
        found[name] = (TEMPLATES / name).read_text(encoding="utf-8")
    return found


def _one(template: str, form: Markup, names: Iterable[str] | None) -> str:
    return _environment().get_template(template).render(**Writer(form, names, _inside).book())


def _inside(kind: str, name: str) -> str:
    """Where a thing stands in one file."""
    return f"#{ANCHORS[kind]}{name}"


def _on_site(homes: dict[str, str], kind: str, name: str) -> str:
    """Where a thing stands on the site; a chapter is a file."""
    if kind == "chapter":
        return homes[name]
    file = {"symbol": "notation.html", "source": "sources.html"}.get(kind) or homes.get(f"{kind} {name}", "index.html")
    return f"{file}#{ANCHORS[kind]}{name}"


def _names_of(part: Any) -> list[str]:
    pages = [f"page {page.name.rsplit('.', 1)[-1]}" for page in part.pages]
    return pages + [f"formula {formula.name}" for page in part.pages for formula in page.formulas]


def _search_index(writer: Writer) -> list[dict[str, str]]:
    """What the search box looks through: title, name, further words, kind and place of each thing."""
    found = []
    for part in writer.parts:
        place = writer.target("chapter", part.chapter.name)
        found.append({"title": part.chapter.title, "name": "", "more": "", "kind": "chapter", "place": place})
        for page in part.pages:
            name = page.name.rsplit(".", 1)[-1]
            more = " ".join(page.introduction)
            found.append(
                {
                    "title": page.title,
                    "name": name,
                    "more": more,
                    "kind": "section",
                    "place": writer.target("page", name),
                }
            )
            for formula in page.formulas:
                one = writer.entries[formula.name]
                more = f"{plain(formula.glyph)} {one.sentence} {formula.source} {page.title}"
                place = writer.target("formula", formula.name)
                found.append(
                    {"title": one.title, "name": formula.name, "more": more, "kind": one.number, "place": place}
                )
    for group in writer.notation()["groups"]:
        for row in group["rows"]:
            entry = writer.symbols[row["key"]]
            found.append(
                {
                    "title": f"{plain(entry.glyph)}: {entry.meaning}",
                    "name": entry.name,
                    "more": group["title"],
                    "kind": "symbol",
                    "place": row["target"],
                }
            )
    for source in writer.sources():
        found.append(
            {
                "title": source.title,
                "name": source.key,
                "more": f"{source.authors} {source.year}",
                "kind": "source",
                "place": writer.target("source", source.key),
            }
        )
    return found


@functools.cache
def _environment() -> Any:
    import jinja2

    return jinja2.Environment(
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
