r"""What a letter of a docstring stands for: `eta` is \eta, and `w` in a formula of one element size is that size.

Docstrings name quantities as their equations do, in ASCII: `a'_kv`, `beta_u`, `T_ag`. Inside a formula a letter that is
no glyph of its symbols, but the beginning of exactly one, is that one: `n` of a message of n_b bytes; unless the
docstring writes that one as well, as `V` beside V_t.
"""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING

from ..formulas.language.symbols import SYMBOLS, strip_units
from ..formulas.registry import load
from .latex import upright
from .unicode import WORDS

if TYPE_CHECKING:
    from ..formulas.language.formula import Formula

GREEK = frozenset(word.replace("lamda", "lambda") for word in WORDS) | {
    word.replace("lamda", "lambda").title() for word in WORDS
}
"""Names of Greek letters, small and capital."""
NAMES = {"BW": "link_bandwidth", "half": "half_bytes"}
"""What pages on collectives call two symbols."""
SHAPE = re.compile(r"([A-Za-z]+)('*)((?:_[A-Za-z0-9,+]+)?)(\*?)('*)")
"""A letter, primes, an index, a star."""


class Letters:
    """Finds the LaTeX of what docstrings call a quantity.

    Args:
        formula: whose docstring it is; without one a letter is set as it is written.
        by_name: whether every name of the vocabulary is a quantity, also those that are words, such as `batch`, and
            every formula is its glyph.
    """

    def __init__(self, formula: Formula | None = None, by_name: bool = False) -> None:
        self.names, self.by_name = symbols_of(formula) if formula else [], by_name
        doc = formula.doc if formula else ""
        self._formulas = load() if by_name else {}
        self._glyphs = {ascii_glyph(SYMBOLS[name].glyph): SYMBOLS[name].glyph for name in self.names}
        self._meant = {
            text: glyph for text, glyph in self._glyphs.items() if not re.search(rf"{re.escape(text)}\b", doc)
        }

    def latex(self, written: str) -> str:
        r"""A letter with its marks, or a name of the vocabulary, in LaTeX.

        >>> letters = Letters()
        >>> print(letters.latex("a'_kv"), letters.latex("eta"), letters.latex("hidden_size"))
        a'_{\mathrm{kv}} \eta h
        """
        if written in SYMBOLS:
            return upright(SYMBOLS[written].glyph)
        if written in self._formulas:
            return upright(self._formulas[written].glyph)
        if NAMES.get(written) in self.names:
            return upright(SYMBOLS[NAMES[written]].glyph)
        if written in self._glyphs:
            return upright(self._glyphs[written])
        begun = [glyph for text, glyph in self._meant.items() if re.fullmatch(re.escape(written) + "['_^].*", text)]
        return upright(begun[0]) if len(begun) == 1 else by_shape(written)

    def is_meant(self, written: str) -> bool:
        """Whether a Greek letter's name is a quantity of the formula, and not the word: a delta rule."""
        return any(re.match(re.escape(written) + "(['_^]|$)", text) for text in self._glyphs)

    def knows(self, name: str) -> bool:
        """Whether a name of the vocabulary is meant as a quantity: one of more than one word, if not every one is."""
        return name in self._formulas or (name in SYMBOLS and (self.by_name or "_" in name))


def by_shape(written: str) -> str:
    r"""A letter with its index and primes as it is written.

    >>> print(by_shape("T_ag"), by_shape("beta'"), by_shape("BW"))
    T_{\mathrm{ag}} \beta' \mathrm{BW}
    """
    found = SHAPE.fullmatch(written)
    if not found:
        return rf"\mathrm{{{written}}}"
    letter, primes, index, star, more = found.groups()
    base = f"\\{letter}" if letter in GREEK else letter
    below = index[1:]
    below = f"\\{below}" if below in GREEK else below
    return upright(base + primes + (f"_{{{below}}}" if index else "") + ("^{*}" if star else "") + more)


@functools.cache
def ascii_glyph(glyph: str) -> str:
    r"""A LaTeX glyph as docstrings write it.

    >>> ascii_glyph(r"\beta_u"), ascii_glyph("a'_{kv}"), ascii_glyph("T_{ar}^{ring}")
    ('beta_u', "a'_kv", 'T_ar^ring')
    """
    return re.sub(r"[{}\\ ]", "", glyph.replace(r"\circ", "o"))


def symbols_of(formula: Formula) -> list[str]:
    """The names of a formula's symbols: its parameters, then what else its equation holds, in order."""
    used = {symbol.name for symbol in strip_units(formula.expression).free_symbols}
    return list(dict.fromkeys([*formula.parameters, *(name for name in SYMBOLS if name in used)]))
