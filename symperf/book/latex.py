r"""Equations in LaTeX of the package amsmath, with their width in em.

Widths are of Computer Modern at its text size, rounded up; nothing is taken off for what a fraction or an index sets
smaller, so that a line that fits here fits on paper.
"""

from __future__ import annotations

import itertools
import re

from .notation import FUNCTION, PRODUCT, SUM, WHOLE, Box, Notation

LETTER, NARROW, SMALL = 0.62, 0.45, 0.72
"""Width of a letter and of a delimiter in em; what an index is smaller by."""
RUN = re.compile(r"(?<![\\A-Za-z0-9])(\d*[A-Za-z][A-Za-z0-9]*[A-Za-z0-9]|\d+[A-Za-z]+)")


def upright(glyph: str) -> str:
    r"""A glyph with its words upright, as indices that are no products of letters must be.

    >>> print(upright("T_{ar}^{ring}"), upright(r"\beta_u"), upright("MFU"), upright("M_{o,1}"))
    T_{\mathrm{ar}}^{\mathrm{ring}} \beta_u \mathrm{MFU} M_{o,1}
    """
    return RUN.sub(r"\\mathrm{\1}", glyph)


def glyph_width(glyph: str) -> float:
    """The width of a glyph in em."""
    plain = re.sub(r"\\(mathrm|underline|text|overline|hat|tilde|bar)\b", "", glyph)
    plain = re.sub(r"\\[A-Za-z]+", "x", plain)
    width, small, depth, below = 0.0, False, 0, 0
    for character in plain:
        if character in "_^":
            small, below = True, depth
        elif character == "{":
            depth += 1
        elif character == "}":
            depth -= 1
            small = small and depth > below
        elif not character.isspace():
            width += (0.9 if character in "MWmw" else LETTER) * (SMALL if small else 1)
            small = small and depth > below
    return width


class Latex(Notation):
    """Writes LaTeX."""

    def glyph(self, latex: str) -> Box:
        text = upright(latex)
        return Box(text, glyph_width(text), WHOLE)

    def word(self, text: str) -> Box:
        shown = text.replace("_", r"\_")
        return Box(rf"\operatorname{{{shown}}}", LETTER * len(text), WHOLE)

    def number(self, value: int) -> Box:
        return Box(str(value), 0.55 * len(str(value)), WHOLE)

    def sum(self, parts: list[tuple[int, Box]]) -> Box:
        text = "".join((" + " if sign > 0 else " - ") + box.text for sign, box in parts)
        text = text.removeprefix(" + ") if parts[0][0] > 0 else "-" + text.removeprefix(" - ")
        return Box(text, sum(1.25 + box.width for _, box in parts) - 0.4, SUM)

    def product(self, boxes: list[Box]) -> Box:
        text = boxes[0].text
        for before, box in itertools.pairwise(boxes):
            digits = before.text[-1].isdigit() and box.text[0].isdigit()
            text += (r" \cdot " if digits else " ") + box.text
        return Box(text, sum(box.width + 0.2 for box in boxes), PRODUCT)

    def scaled(self, digits: Box, ten: Box) -> Box:
        return Box(rf"{digits.text} \cdot {ten.text}", digits.width + ten.width + 1, PRODUCT)

    def fraction(self, over: Box, under: Box) -> Box:
        return Box(rf"\frac{{{over.text}}}{{{under.text}}}", max(over.width, under.width) + 0.3, FUNCTION)

    def is_tall(self, box: Box) -> bool:
        return r"\left" in box.text

    def power(self, base: Box, exponent: Box) -> Box:
        simple = re.fullmatch(r"\\?[A-Za-z]+(_\w|_\{[^{}]*\})?|(\\left)?\(.*\)", base.text, re.DOTALL)
        exponent_text = re.sub(r"\\frac\{(\d+)\}\{(\d+)\}", r"\1/\2", exponent.text)
        text = base.text if simple else f"{{{base.text}}}"
        return Box(rf"{text}^{{{exponent_text}}}", base.width + LETTER * len(exponent_text), FUNCTION)

    def root(self, box: Box) -> Box:
        return Box(rf"\sqrt{{{box.text}}}", box.width + 1.0, WHOLE)

    def brackets(self, box: Box) -> Box:
        return self._between("(", box, ")")

    def ceiling(self, box: Box) -> Box:
        return self._between(r"\lceil ", box, r"\rceil ")

    def logarithm(self, box: Box) -> Box:
        return Box(rf"\log_{{2}} {box.text}", box.width + 2.1, FUNCTION)

    def condition(self, box: Box) -> Box:
        return self._between("[", Box(f"{box.text} > 1", box.width + 1.9, SUM), "]")

    def extremum(self, operation: str, boxes: list[Box]) -> Box:
        inside = self._between("(", Box(", ".join(b.text for b in boxes), sum(b.width + 0.5 for b in boxes), SUM), ")")
        return Box(rf"\{operation}{inside.text}", inside.width + 2.1, WHOLE)

    def series(self, index: Box, first: Box, last: Box, term: Box) -> Box:
        below, above = f"{index.text}={first.text}", last.text
        width = SMALL * max(index.width + first.width + 1.0, last.width) + term.width + 0.4
        return Box(rf"\sum_{{{below}}}^{{{above}}} {term.text}", width, PRODUCT)

    def call(self, function: Box, arguments: list[Box]) -> Box:
        inside = ", ".join(box.text for box in arguments)
        return Box(f"{function.text}({inside})", function.width + sum(b.width + 0.5 for b in arguments) + 0.8, WHOLE)

    def _between(self, opening: str, box: Box, closing: str) -> Box:
        tall = re.search(r"\\(frac|sqrt|left)", box.text)
        left, right = (rf"\left{opening}", rf"\right{closing}") if tall else (opening, closing)
        return Box(f"{left}{box.text}{right.rstrip()}", box.width + (4 if tall else 2) * NARROW, WHOLE)
