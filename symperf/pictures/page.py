"""A picture as a page: the drawing itself, its numbers as tables, and the command; nothing is fetched or run."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

from .style import plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .charts import Numbers

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
"""No script, no image and no font from anywhere; styles and images those inside the page."""
STYLES = """\
body { font: 15px/1.45 system-ui, sans-serif; margin: 1.5rem auto; max-width: 64rem; padding: 0 1rem; color: #1a1a1a;
  background: #ffffff; }
figure { margin: 0; }
svg { max-width: 100%; height: auto; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; background: #f6f6f4; padding: .6rem; }
table { border-collapse: collapse; margin: 1rem 0; }
caption { text-align: left; font-weight: 600; }
th, td { text-align: right; padding: .15rem .8rem .15rem 0; border-bottom: 1px solid #d4d4d4; }
th:first-child, td:first-child { text-align: left; overflow-wrap: anywhere; }"""


def page(title: str, command: str, drawing: str, tables: Sequence[Numbers], words: str) -> bytes:
    """The page.

    Args:
        title: of the picture.
        command: that gives it.
        drawing: the picture as SVG.
        tables: its numbers.
        words: what else is told of it.
    """
    name = html.escape(plain(title).replace("\n", " "))
    inside = drawing[drawing.index("<svg") :].replace("<svg ", f'<svg role="img" aria-label="{name}" ', 1)
    parts = [
        "<!doctype html>",
        '<html lang="en">',
        '<head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{name}</title>",
        f"<style>\n{STYLES}\n</style></head>",
        f"<body><main><figure>{inside}</figure>",
        *([f"<pre>{html.escape(plain(command))}</pre>"] if command else []),
        *([f"<pre>{html.escape(words)}</pre>"] if words else []),
        *(["<details><summary>The numbers</summary>", *map(_table, tables), "</details>"] if tables else []),
        "</main></body></html>",
    ]
    return ("\n".join(parts) + "\n").encode("utf-8", "backslashreplace")


def _table(numbers: Numbers) -> str:
    head = "".join(f'<th scope="col">{html.escape(plain(name))}</th>' for name in numbers.columns)
    lines = ("".join(f"<td>{html.escape(plain(_cell(value)))}</td>" for value in row) for row in numbers.rows)
    body = "\n".join(f"<tr>{line}</tr>" for line in lines)
    return f"<table><caption>{html.escape(plain(numbers.title))}</caption>\n<tr>{head}</tr>\n{body}</table>"


def _cell(value: object) -> str:
    return "" if value is None else repr(value) if isinstance(value, float) else str(value)
