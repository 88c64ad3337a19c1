"""Equations on the terminal: Unicode on one line, with their width in columns."""

from __future__ import annotations

import math
import re
import unicodedata

from ..common.table import columns as columns
from .notation import FUNCTION, PRODUCT, SUM, WHOLE, Box, Notation

WORDS = (
    *("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa", "lamda", "mu"),
    *("nu", "xi", "pi", "rho", "sigma", "tau", "upsilon", "phi", "chi", "psi", "omega"),
)
"""Greek letters by their names in Unicode."""
LETTERS = {
    name: unicodedata.lookup(f"GREEK {kind} LETTER {word}")
    for word in WORDS
    for kind, name in (("SMALL", word.replace("lamda", "lambda")), ("CAPITAL", word.replace("lamda", "lambda").title()))
}
RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
SIGNS = ("+", "−", "=", "≥", "≤", ">")
COMMANDS = {**LETTERS, "mathrm": "", "ell": "ℓ"}
"""LaTeX commands as text; any other is written as its name, so that no index is lost."""
ACCENTS = {"underline": "\N{COMBINING LOW LINE}", "bar": "\N{COMBINING OVERLINE}"}
"""Commands that mark the letter after them."""


def plain(glyph: str) -> str:
    r"""A LaTeX glyph as Unicode text.

    >>> print(plain(r"T_{ar}^{ring}"), plain(r"\beta_u"), plain("a'_{kv}"), plain("n^{*}"))
    T_ar^ring β_u a′_kv n*
    >>> print(plain(r"\underline{T}_{ar}"), plain(r"\bar m_e"), plain(r"\eta_{\wedge}"))
    T̲_ar m̅_e η_wedge
    """
    text = re.sub(r"\\(underline|bar)\s*\{?(\w)\}?", lambda match: match[2] + ACCENTS[match[1]], glyph)
    text = re.sub(r"\\([A-Za-z]+)\s*", lambda match: COMMANDS.get(match[1], match[1]), text)
    text = re.sub(r"\^\{?([*'])\}?", r"\1", text)
    return text.replace("{", "").replace("}", "").replace("'", "′")


def broken(text: str, width: int, indent: int) -> list[str]:
    """An equation as lines of at most `width` columns, broken where it is read best: before a sign outside of brackets.

    Args:
        text: on one line.
        width: columns of a line.
        indent: of all lines but the first.

    >>> broken("T = a b / (c + d) + e / f", 20, 2)
    ['T = a b / (c + d)', '  + e / f']
    """
    found: list[str] = []
    while columns(text) > width:
        place = _break(text, width, indent if found else 0)
        found.append(text[:place].rstrip())
        text = " " * indent + text[place:].lstrip()
    return [*found, text]


def _break(text: str, width: int, begin: int) -> int:
    """Where a line ends: at a blank outside of most brackets, before a sign if there is one, as far right as can be."""
    best, found, depth, taken = (math.inf, 0, 0), width, 0, 0
    for place, each in enumerate(text):
        taken += columns(each)
        if each == " " and place > begin and text[:place].strip() and taken <= width + 1:
            after = text[place + 1 : place + 2]
            kind = 0 if after in SIGNS else 1 if after == "/" else 2
            early = taken < begin + (width - begin) / 3
            best, found = min((best, found), ((3 * depth + kind + 9 * early, -place, 0), place))
        if taken > width:
            return place if best[0] == math.inf else found
        depth += (each in "([⌈") - (each in ")]⌉")
    return len(text)


def _make_box(text: str, level: int) -> Box:
    return Box(text, columns(text), level)


class Unicode(Notation):
    """Writes one line of Unicode."""

    def glyph(self, latex: str) -> Box:
        return _make_box(plain(latex), WHOLE)

    def word(self, text: str) -> Box:
        return _make_box(text, WHOLE)

    def number(self, value: int) -> Box:
        return _make_box(str(value), WHOLE)

    def sum(self, parts: list[tuple[int, Box]]) -> Box:
        text = "".join((" + " if sign > 0 else " − ") + box.text for sign, box in parts)
        return _make_box(text.removeprefix(" + ") if parts[0][0] > 0 else "−" + text.removeprefix(" − "), SUM)

    def product(self, boxes: list[Box]) -> Box:
        return _make_box(" ".join(box.text for box in boxes), PRODUCT)

    def scaled(self, digits: Box, ten: Box) -> Box:
        return _make_box(f"{digits.text}·{ten.text}", PRODUCT)

    def fraction(self, over: Box, under: Box) -> Box:
        below = self.grouped(under, FUNCTION)
        return _make_box(f"{self.grouped(over, PRODUCT).text} / {below.text}", PRODUCT)

    def power(self, base: Box, exponent: Box) -> Box:
        whole = self.brackets(base) if "^" in base.text else base
        if exponent.text.isdigit():
            return _make_box(whole.text + exponent.text.translate(RAISED), FUNCTION)
        return _make_box(f"{whole.text}^({exponent.text.replace(' ', '')})", FUNCTION)

    def root(self, box: Box) -> Box:
        return _make_box(f"√{self.grouped(box, WHOLE).text}", WHOLE)

    def brackets(self, box: Box) -> Box:
        return _make_box(f"({box.text})", WHOLE)

    def ceiling(self, box: Box) -> Box:
        return _make_box(f"⌈{box.text}⌉", WHOLE)

    def logarithm(self, box: Box) -> Box:
        inside = box.text if box.text.startswith("(") else f"({box.text})"
        return _make_box(f"log₂{inside}", WHOLE)

    def condition(self, box: Box) -> Box:
        return _make_box(f"[{box.text} > 1]", WHOLE)

    def extremum(self, operation: str, boxes: list[Box]) -> Box:
        return _make_box(f"{operation}({', '.join(box.text for box in boxes)})", WHOLE)

    def series(self, index: Box, first: Box, last: Box, term: Box) -> Box:
        return _make_box(f"Σ({term.text}, {index.text} = {first.text} ... {last.text})", WHOLE)

    def call(self, function: Box, arguments: list[Box]) -> Box:
        return _make_box(f"{function.text}({', '.join(box.text for box in arguments)})", WHOLE)
