"""How a reference is kept, as BibTeX."""

from __future__ import annotations

SOURCES: dict[str, str] = {}


def add(key: str, kind: str, title: str, author: str, year: int, **more: str) -> str:
    """Keep a reference under its key, which is returned."""
    lines = [f"  title = {{{title}}}", f"  author = {{{author}}}", f"  year = {{{year}}}"]
    lines += [f"  {name} = {{{value}}}" for name, value in more.items()]
    SOURCES[key] = f"@{kind}{{{key},\n" + ",\n".join(lines) + "\n}"
    return key


def arxiv(key: str, number: str, title: str, author: str, year: int) -> str:
    """Keep a reference to arXiv."""
    return add(key, "misc", title, author, year, eprint=number, archiveprefix="arXiv")
