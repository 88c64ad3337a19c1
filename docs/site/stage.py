"""The pages of the site from the Markdown of the tree: links that lead inside, blocks in words that MkDocs reads.

On disk a page may link to any file of the tree. A link to another page leads to it; one to a table or a figure of
`docs/` takes that file along; one to a file elsewhere becomes its path. Anything else is an error that names page and
link.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
TOP = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md", "SECURITY.md": "security.md"}
"""Pages at the top of the tree, with their names in the site."""
HOME = "README.md"
"""What a link to it leads to is the start page, which says the same in other words."""
PLAIN = {".csv", ".svg", ".png", ".py", ".toml"}
"""Files of `docs/` that a page may take along."""
LINK = re.compile(r"(?<!`)\[(?P<text>(?:[^\[\]]|\[[^\]]*\]|!\[[^\]]*\]\([^)]*\))*)\]\((?P<target>[^()\s]+)\)")
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
EXAMPLE = re.compile(r"^>>> .*?(?=\n\n|\Z)", re.MULTILINE | re.DOTALL)
MORE = "More"
"""The section of pages that the navigation does not name."""


class SiteError(Exception):
    """What of the site cannot be: the page, what was found, what was expected."""


def sources() -> dict[str, Path]:
    """The Markdown of the site: its files by the names of the pages."""
    found = {path.relative_to(DOCS).as_posix(): path for path in sorted(DOCS.rglob("*.md"))}
    return found | {page: ROOT / name for name, page in TOP.items() if (ROOT / name).exists()}


def stage(folder: Path, made: set[str]) -> None:
    """Write the pages, and what they take along, into a folder.

    Args:
        folder: of the pages.
        made: names of pages that are made otherwise; links may lead there.

    Raises:
        SiteError: a link leads nowhere.
    """
    pages = sources()
    homes = {path: page for page, path in pages.items()} | {ROOT / HOME: "index.md"}
    for page, path in pages.items():
        text, taken = staged(path, page, homes, made)
        (folder / page).parent.mkdir(parents=True, exist_ok=True)
        (folder / page).write_text(text, encoding="utf-8")
        for file in taken:
            target = folder / file.relative_to(DOCS)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)


def staged(path: Path, page: str, homes: dict[Path, str], made: set[str]) -> tuple[str, list[Path]]:
    """A page as the site has it, and the files that it takes along.

    Args:
        path: of its Markdown.
        page: its name in the site.
        homes: names of all pages by the paths of their files.
        made: names of pages that are made otherwise.

    Raises:
        SiteError: a link leads nowhere.
    """
    taken: list[Path] = []

    def linked(match: re.Match[str]) -> str:
        text, target = LINK.sub(linked, match["text"]), match["target"]
        if re.match(r"[a-z]+:|#", target):
            return f"[{text}]({target})"
        file, mark, place = target.partition("#")
        found = (path.parent / file).resolve()
        here = PurePosixPath(page).parent
        inside = os.path.normpath(here / file).replace(os.sep, "/")
        if found in homes:
            way = os.path.relpath(homes[found], here).replace(os.sep, "/")
            return f"[{text}]({way}{mark}{place})"
        if inside in made or inside.removesuffix(".ipynb") + ".md" in made:
            return f"[{text}]({target.replace('.ipynb', '.md')})"
        if not found.exists():
            raise SiteError(f"{path.relative_to(ROOT)}: a link leads to {target}, which is not there")
        if found.is_relative_to(DOCS) and found.suffix in PLAIN:
            taken.append(found)
            return f"[{text}]({os.path.relpath(found, DOCS / here).replace(os.sep, '/')})"
        shown = found.relative_to(ROOT).as_posix()
        return f"`{shown}`" if text.strip("`") == shown else f"{text} (`{shown}`)"

    source = path.read_text(encoding="utf-8")
    parts = []
    end = 0
    for fence in FENCE.finditer(source):
        parts += [_prose(source[end : fence.start()], linked), _block(fence[0])]
        end = fence.end()
    return "".join([*parts, _prose(source[end:], linked)]), taken


def _prose(text: str, linked: Callable[[re.Match[str]], str]) -> str:
    """What stands between fenced blocks: examples without a fence get one, links lead inside the site."""
    parts, end = [], 0
    for example in EXAMPLE.finditer(text):
        parts += [LINK.sub(linked, text[end : example.start()]), f"```pycon\n{example[0].rstrip()}\n```"]
        end = example.end()
    return "".join([*parts, LINK.sub(linked, text[end:])])


def _block(fence: str) -> str:
    """A fenced block under the name by which it is coloured."""
    head, _, body = fence.partition("\n")
    if head == "```python" and body.startswith(">>>"):
        head = "```pycon"
    return f"{head.split()[0]}\n{body}"


def named(nav: list[Any]) -> set[str]:
    """The pages that a navigation names.

    >>> sorted(named(["index.md", {"Guides": ["a.md", {"B": "b.md"}]}]))
    ['a.md', 'b.md', 'index.md']
    """
    found: set[str] = set()
    for entry in nav:
        for value in entry.values() if isinstance(entry, dict) else [entry]:
            found |= named(value) if isinstance(value, list) else {value}
    return found


def completed(nav: list[Any], pages: set[str]) -> list[Any]:
    """A navigation with all pages: those that it does not name stand in a section at its end.

    >>> completed(["a.md"], {"a.md", "b.md"})
    ['a.md', {'More': ['b.md']}]
    """
    rest = sorted(pages - named(nav))
    return [*nav, {MORE: rest}] if rest else list(nav)
