"""One entry of the vocabulary, and how it is added."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
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


BY_FORMAT = frozenset(
    (
        *("matrix_rate", "matrix_efficiency", "operand_bytes", "weight_bytes"),
        *("inner_latency", "format_latency", "cast_latency", "cast_passes", "absorb_latency", "module_latency"),
        *("expert_latency", "grouped_efficiency", "expert_memory_efficiency", "expert_passes", "choice_latency"),
        "expert_map_latency",
    )
)
"""What the formats of one checkpoint differ in, beside the sizes of models all that has numbered symbols."""


class Vocabulary(dict[str, Entry]):
    """The entries by name. Beside them some have numbered ones, which come into being when asked for.

    They are the sizes of a model, and what the formats of a checkpoint differ in: `intermediate_size_2` is the second
    inner width of a model whose layers are not all alike, `matrix_rate_2` the rate of products in the second format.
    Numbered ones are found by name and are not listed.
    """

    numbered: dict[str, Entry]

    def __init__(self) -> None:
        super().__init__()
        self.numbered = {}

    def __missing__(self, name: str) -> Entry:
        found = self.numbered.get(name) or _numbered(name, self)
        if found is None:
            raise KeyError(name)
        return self.numbered.setdefault(name, found)

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or name in self.numbered

    def every(self) -> dict[str, Entry]:
        """All entries, with the numbered ones that have come into being behind those that are listed."""
        return {**self, **self.numbered}

    def find(self, name: str) -> Entry | None:
        """The entry of a name, numbered or not; None where there is none."""
        try:
            return self[name]
        except KeyError:
            return None


def _numbered(name: str, entries: dict[str, Entry]) -> Entry | None:
    """The entry of a size, or of what a checkpoint's formats differ in, with a number from 2 to 9999 behind it."""
    parts = re.fullmatch(r"(.+)_([2-9]|[1-9][0-9]{1,3})", name)
    base = entries.get(parts[1]) if parts else None
    if parts is None or base is None or not (base.group == "model" or base.name in BY_FORMAT):
        return None
    symbol = sympy.Symbol(name, **base.symbol._assumptions_orig)
    place = number_word(int(parts[2]))
    where = f"layers that have the {place} such size" if base.group == "model" else f"{place} format of the checkpoint"
    sentence = f"{base.sentence.removesuffix('.')}, in the {where}."
    return replace(base, symbol=symbol, glyph=numbered_glyph(base.glyph, parts[2]), sentence=sentence)


def number_word(number: int) -> str:
    """A number as a place in an order.

    >>> number_word(2), number_word(11), number_word(23)
    ('2nd', '11th', '23rd')
    """
    teens = number % 100 in (11, 12, 13)
    return f"{number}{'th' if teens else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"


def numbered_glyph(glyph: str, number: str) -> str:
    """A glyph with a number in its subscript.

    >>> numbered_glyph("f", "2"), numbered_glyph("a_{kv}", "3"), numbered_glyph("L_m", "2")
    ('f_{2}', 'a_{kv,3}', 'L_{m,2}')
    """
    head, _, below = glyph.partition("_")
    below = below.removeprefix("{").removesuffix("}")
    return f"{head}_{{{below},{number}}}" if below else f"{head}_{{{number}}}"


SYMBOLS = Vocabulary()

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
