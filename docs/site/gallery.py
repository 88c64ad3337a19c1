"""The figures of the gallery: each block of Python on its page is run, and followed by the pictures that it wrote."""

from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING

from stage import SiteError

if TYPE_CHECKING:
    from pathlib import Path

BLOCK = re.compile(r"^(?P<code>```python\n(?P<body>.*?)^```\n)", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^## (.+)$", re.MULTILINE)
FOLDER = "figures"


def draw(page: Path) -> None:
    """Run the blocks of a staged page, and put their pictures below them.

    Args:
        page: is written anew; the pictures lie in a folder beside it.

    Raises:
        SiteError: a block fails, or writes no picture.
    """
    folder = page.parent / FOLDER
    folder.mkdir()
    text = page.read_text(encoding="utf-8")

    def drawn(match: re.Match[str]) -> str:
        title = HEADING.findall(text[: match.start()])[-1]
        before = set(folder.iterdir())
        with contextlib.chdir(folder):
            try:
                exec(compile(match["body"], f"{page.name}: {title}", "exec"), {"__name__": "gallery"})
            except Exception as error:
                raise SiteError(
                    f"{page.name}: the code under '{title}' fails: {type(error).__name__}: {error}"
                ) from error
        fresh = sorted(path.name for path in set(folder.iterdir()) - before)
        if not fresh:
            raise SiteError(f"{page.name}: the code under '{title}' writes no picture")
        return match["code"] + "".join(f"\n![{title}]({FOLDER}/{name})\n" for name in fresh)

    page.write_text(BLOCK.sub(drawn, text), encoding="utf-8")
