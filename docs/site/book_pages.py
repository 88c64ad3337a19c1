"""The formula book in the site: its chapters as `symperf formulas --site` prints them, inside the site's own frame.

The hook `on_page_content` puts a chapter in the place of its page, which holds nothing but its title, and gives the
page the headings of the chapter as its contents.
"""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.toc import get_toc
from stage import SiteError

FOLDER = "book"
FIRST = "index.html"
MAIN = re.compile(r"<main>(.*)</main>", re.DOTALL)
AROUND = re.compile(r'<p class="around">.*?</p>', re.DOTALL)
HEADING = re.compile(r'<h([1-4]) id="([^"]+)">(.*?)</h\1>', re.DOTALL)
LISTS = ("symbols", "sources")
LOW = "---\nsearch:\n  boost: 0.2\n---\n\n"
"""Before the title of a page that names everything: a search has it last."""
TAG = re.compile(r"<[^>]+>")
UNSEARCHED = (
    ('<div class="equation"', '<div data-search-exclude class="equation"'),
    ('<div class="scroll"', '<div data-search-exclude class="scroll"'),
)
"""Tables of symbols and equations, which say nothing as text: a search finds formulas by title, name and sentence."""


def chapters() -> dict[str, tuple[str, str]]:
    """Title and content of each page of the book by its name in the site, in reading order.

    Raises:
        SiteError: the book has a form that is not known here.
    """
    from symperf.book import site

    found = {}
    for file, text in site().items():
        if not file.endswith(".html"):
            continue
        main = MAIN.search(text)
        title = re.search(r"<title>(.*?): formulas of symperf</title>", text)
        if main is None or title is None:
            raise SiteError(f"the book: {file} has no title or no content, expected <title> and <main>")
        content = AROUND.sub("", main[1])
        for plain, marked in UNSEARCHED:
            content = content.replace(plain, marked)
        found[f"{FOLDER}/{file.removesuffix('.html')}.md"] = (html.unescape(title[1]), content)
    return found


def write(folder: Path) -> list[Any]:
    """Write the pages, and their contents beside them; the part of the navigation that names them.

    Args:
        folder: of the pages.
    """
    (folder / FOLDER).mkdir(parents=True)
    nav = []
    for page, (title, content) in chapters().items():
        weight = LOW if Path(page).stem in LISTS else ""
        (folder / page).write_text(f"{weight}# {title}\n", encoding="utf-8")
        (folder / page).with_suffix(".part").write_text(content, encoding="utf-8")
        nav.append({title: page})
    return nav


def contents(content: str) -> list[dict[str, Any]]:
    """The headings of a chapter as MkDocs' tree of contents.

    >>> [each["name"] for each in contents('<h1 id="a">A</h1><h2 id="b"><a href="#b">1</a> B</h2>')[0]["children"]]
    ['1 B']
    """
    roots: list[dict[str, Any]] = []
    open_: list[dict[str, Any]] = []
    for level, anchor, text in HEADING.findall(content):
        name = html.unescape(" ".join(TAG.sub("", text).split()))
        node = {
            "level": int(level),
            "id": anchor,
            "name": name,
            "html": html.escape(name),
            "data-toc-label": "",
            "children": [],
        }
        while open_ and open_[-1]["level"] >= node["level"]:
            open_.pop()
        (open_[-1]["children"] if open_ else roots).append(node)
        open_.append(node)
    return roots


def on_page_content(content: str, page: Any, config: Any, files: Any) -> str:
    """The content of a page: of one of the book, its chapter."""
    del config, files
    part = Path(page.file.abs_src_path).with_suffix(".part")
    if not part.exists():
        return content
    chapter = part.read_text(encoding="utf-8")
    page.toc = get_toc(contents(chapter))
    return f'<div class="book">{chapter}</div>'
