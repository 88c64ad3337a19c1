"""Texts of users in cells of tables that other programs open: nothing in them is a formula or a tag there."""

from __future__ import annotations

from typing import Any

from .numbers import numeral

FORMULAS = ("=", "+", "-", "@", "\t", "\r")
"""What a cell begins with that spreadsheets take for a formula."""


def csv_cell(value: Any) -> Any:
    """A cell of comma-separated values that no spreadsheet computes: behind an apostrophe, as they write such texts.

    >>> csv_cell("=HYPERLINK(1)"), csv_cell("-3.5"), csv_cell(-3.5), csv_cell("llama")
    ("'=HYPERLINK(1)", '-3.5', -3.5, 'llama')
    """
    if isinstance(value, str) and value.startswith(FORMULAS) and numeral(value, float) is None:
        return f"'{value}"
    return value


def markdown_cell(text: str) -> str:
    r"""A text that cannot end a cell of a table of Markdown, and holds no tag.

    >>> markdown_cell("a|b <script>")
    'a\\|b &lt;script>'
    """
    return text.replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")
