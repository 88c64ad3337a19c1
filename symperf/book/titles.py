"""Titles of formulas, such as people read them: "All-reduce over a ring" and not `ring_all_reduce_time`."""

from __future__ import annotations

import functools
import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..formulas.language.formula import Formula

TABLE = Path(__file__).parent / "titles.toml"
LONGEST = 64
"""Characters of a title, at most."""


def title_of(formula: Formula) -> str:
    """The title of a formula: the table's, or else the first clause of its docstring.

    >>> from ..formulas.registry import load
    >>> title_of(load()["ring_all_reduce_time"]), title_of(load()["adam_bytes"])
    ('All-reduce over a ring', 'Bytes of a fused Adam step')
    """
    return titles().get(formula.name) or first_clause(formula.sentence)


def first_clause(sentence: str) -> str:
    """A sentence up to its first colon, semicolon or comma.

    >>> first_clause("Weights of a plain MLP: 2 h f.")
    'Weights of a plain MLP'
    """
    return re.split(r"[:;,] |\.$", sentence, maxsplit=1)[0]


@functools.cache
def titles() -> dict[str, str]:
    """The table, by name of formula."""
    pages = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    return {name: title for page in pages.values() for name, title in page.items()}
