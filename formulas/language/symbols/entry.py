"""One entry of the vocabulary, and how it is added."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sympy

from ..dimension import ONE, Dimension


@dataclass(frozen=True)
class Entry:
    """One symbol of the vocabulary."""

    symbol: Any
    glyph: str
    dimension: Dimension
    domain: str
    sentence: str
    group: str
    resource: str | None

    @property
    def name(self) -> str:
        """The symbol's name, the same everywhere."""
        return str(self.symbol)


SYMBOLS: dict[str, Entry] = {}

COUNT = "integer >= 1"
FRACTION = "0 to 1"
POSITIVE = "> 0"
ZERO_UP = ">= 0"


def add(
    group: str,
    name: str,
    glyph: str,
    sentence: str,
    dimension: Dimension = ONE,
    domain: str = COUNT,
    resource: str | None = None,
) -> Any:
    """Add a symbol to the vocabulary.

    Raises:
        LookupError: there is one of that name.
    """
    if name in SYMBOLS:
        raise LookupError(f"symbol {name} is defined twice")
    positive = domain in (COUNT, POSITIVE)
    symbol = sympy.Symbol(name, **({"positive": True} if positive else {"nonnegative": True}))
    SYMBOLS[name] = Entry(symbol, glyph, dimension, domain, sentence, group, resource)
    return symbol
