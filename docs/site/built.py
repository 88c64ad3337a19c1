"""What a built site must be: every link leads to a place that is there, and nothing is loaded from elsewhere."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import TYPE_CHECKING
from urllib.parse import unquote

if TYPE_CHECKING:
    from pathlib import Path

LOADS = {"script": "src", "img": "src", "iframe": "src", "source": "src"}
ELSEWHERE = re.compile(r"(?:https?:)?//")
STYLES = re.compile(r"url\((?!['\"]?(?:data:|#))['\"]?(?P<target>[^)'\"]+)")


class _Page(HTMLParser):
    """The places of a page, where its links lead and what it loads."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.places: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take what a tag says of places and links."""
        given = dict(attrs)
        for name in ("id", "name"):
            if given.get(name) and (name == "id" or tag == "a"):
                self.places.add(str(given[name]))
        if tag == "a" and given.get("href"):
            self.links.append(str(given["href"]))
        if tag in LOADS and given.get(LOADS[tag]):
            self.loads.append(str(given[LOADS[tag]]))
        if tag == "link" and given.get("href") and given.get("rel") in ("stylesheet", "icon", "preload"):
            self.loads.append(str(given["href"]))


def faults(folder: Path) -> list[str]:
    """What is wrong with a site, a line each: the page, what it links to or loads, why that cannot be."""
    pages = {}
    for path in sorted(folder.rglob("*.html")):
        page = _Page()
        page.feed(path.read_text(encoding="utf-8"))
        pages[path.resolve()] = page
    found = []
    for path, page in pages.items():
        name = path.relative_to(folder.resolve()).as_posix()
        for target in page.loads:
            if ELSEWHERE.match(target):
                found.append(f"{name}: loads {target} from elsewhere")
            elif not target.startswith("data:") and not (path.parent / unquote(target.partition("?")[0])).exists():
                found.append(f"{name}: loads {target}, which is not there")
        for target in sorted(set(page.links)):
            if re.match(r"[a-z]+:", target):
                continue
            file, _, place = target.partition("#")
            other = (path.parent / unquote(file)).resolve() if file else path
            if not other.exists():
                found.append(f"{name}: a link leads to {target}, which is not there")
            elif place and other in pages and unquote(place) not in pages[other].places:
                found.append(f"{name}: a link leads to {target}, and there is no such place on that page")
    for path in sorted(folder.rglob("*.css")):
        targets = [match["target"] for match in STYLES.finditer(path.read_text(encoding="utf-8"))]
        found += [f"{path.name}: loads {each} from elsewhere" for each in targets if ELSEWHERE.match(each)]
    return found
