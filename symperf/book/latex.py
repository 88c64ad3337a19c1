r"""Equations in LaTeX of the package amsmath, with their width in em.

Widths are of Computer Modern at its text size, rounded up; nothing is taken off for what a fraction or an index sets
smaller, so that a line that fits here fits on paper.
"""

from __future__ import annotations

import itertools
import re

from .layout import Marks, Row
from .notation import FUNCTION, PRODUCT, SUM, WHOLE, Box, Notation

LETTER, NARROW, SMALL = 0.62, 0.45, 0.72
"""Width of a letter and of a delimiter in em; what an index is smaller by."""
SPACED = re.compile(r"\\(frac|left|log|max|min|sum)(?![A-Za-z])")
"""Begins what TeX itself sets apart from a factor before it."""
WORD = "\0"
"""Marks a letter of an upright word."""
UPRIGHT = {
    letter: width
    for letters, width in (("fijlI", 0.36), ("rst", 0.47), ("ce", 0.53), ("agovxyz0123456789", 0.6), ("bdhknpqu", 0.65))
    for letter in letters
}
"""Width of its letters in em of Computer Modern Roman at seven points; others are as wide as the widest."""
ITALIC = {
    letter: width
    for letters, width in (
        ("ijlt", 0.42),
        ("bceoqrsz/+", 0.52),
        ("IJLS'", 0.7),
        ("w", 0.75),
        ("ABCEFGOPQRTUVYZ", 0.83),
        ("m", 0.9),
        ("DHKNX", 0.95),
        ("MW", 1.1),
    )
    for letter in letters
}
"""The same of letters of mathematics."""
QUAD = r"\quad "
"""One step of indentation, an em."""
WIDEST_LIMIT = 9.0
"""Em of the places of a sum that stand above and below its sign."""
RUN = re.compile(r"(?<![\\A-Za-z0-9])(\d*[A-Za-z][A-Za-z0-9]*[A-Za-z0-9]|\d+[A-Za-z]+)")


def upright(glyph: str) -> str:
    r"""A glyph with its words upright, as indices that are no products of letters must be.

    >>> print(upright("T_{ar}^{ring}"), upright(r"\beta_u"), upright("MFU"), upright("M_{o,1}"))
    T_{\mathrm{ar}}^{\mathrm{ring}} \beta_u \mathrm{MFU} M_{o,1}
    """
    return RUN.sub(r"\\mathrm{\1}", glyph)


def glyph_width(glyph: str) -> float:
    """The width of a glyph in em."""
    plain = re.sub(r"\\mathrm\{([^{}]*)\}", lambda match: "{" + WORD.join(("", *match[1])) + "}", glyph)
    plain = re.sub(r"\\(underline|text|overline|hat|tilde|bar)\b", "", plain)
    plain = re.sub(r"\\[A-Za-z]+", "x", plain)
    width, small, depth, below, word = 0.0, False, 0, 0, False
    for character in plain:
        if character in "_^":
            small, below = True, depth
        elif character == "{":
            depth += 1
        elif character == "}":
            depth -= 1
            small = small and depth > below
        elif character == WORD:
            word = True
        elif not character.isspace():
            letter = UPRIGHT.get(character, 0.85) if word else ITALIC.get(character, LETTER)
            width += letter * (SMALL if small else 1)
            word, small = False, small and depth > below
    return width


def _gap(before: str, after: str) -> str:
    """What stands between two factors: a dot, or a thin space where TeX sets none: `bs` is no name."""
    if before[-1].isdigit() and after[0].isdigit():
        return r" \cdot "
    return " " if SPACED.match(after) or before.startswith(r"\frac") or r"\right" in before[-8:] else r" \, "


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
            text += _gap(before.text, box.text) + box.text
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

    def argument(self, box: Box) -> Box:
        small = (
            box.text.startswith(r"\frac") and box.width < WIDEST_LIMIT
        )  # wider ones hold indices, which stay as they are
        return Box(box.text.replace(r"\frac", r"\tfrac"), box.width * (SMALL if small else 1), box.level)

    def call(self, function: Box, arguments: list[Box]) -> Box:
        boxes = [self.argument(box) for box in arguments]
        inside = ", ".join(box.text for box in boxes)
        return Box(f"{function.text}({inside})", function.width + sum(b.width + 0.5 for b in boxes) + 0.8, WHOLE)

    def _between(self, opening: str, box: Box, closing: str) -> Box:
        tall = re.search(r"\\(frac|sqrt|left)", box.text)
        left, right = (rf"\left{opening}", rf"\right{closing}") if tall else (opening, closing)
        return Box(f"{left}{box.text}{right.rstrip()}", box.width + (4 if tall else 2) * NARROW, WHOLE)


def _mark(text: str, width: float) -> Box:
    return Box(text, width, WHOLE)


def _limits(index: Box, first: Box, last: Box) -> Box | None:
    width = max(index.width + first.width + 1.0, last.width)
    if width > WIDEST_LIMIT:
        return None
    return _mark(rf"\sum_{{{index.text}={first.text}}}^{{{last.text}}} ", SMALL * width + 0.4)


def _places(index: Box) -> tuple[Box, Box, Box, Box, Box]:
    opening = _mark(rf"\sum_{{{index.text}}} \bigl( ", 2.5)
    return opening, _mark(r",\ ", 0.8), _mark(f"{index.text} = ", 2.5), _mark(r", \dots, ", 2.5), ROUND[1]


ROUND = (_mark(r"\bigl( ", NARROW), _mark(r" \bigr)", NARROW))
MARKS = Marks(
    equals=_mark(" = ", 1.9),
    plus=_mark(" + ", 1.25),
    minus=_mark(" - ", 1.25),
    times=_mark(r" \cdot ", 1.0),
    over=_mark(r" \big/ ", 0.8),
    comma=_mark(", ", 0.5),
    pairs={
        "round": ROUND,
        "call": ROUND,
        "ceiling": (_mark(r"\bigl\lceil ", NARROW), _mark(r" \bigr\rceil", NARROW)),
        "max": (_mark(r"\max \bigl( ", 2.5), ROUND[1]),
        "min": (_mark(r"\min \bigl( ", 2.5), ROUND[1]),
        "log": (_mark(r"\log_{2} \bigl( ", 2.5), ROUND[1]),
        "switch": (_mark(r"\bigl[ ", NARROW), _mark(r" > 1 \bigr]", NARROW + 2.4)),
    },
    limits=_limits,
    places=_places,
    raised=lambda exponent: _mark(f"^{{{exponent.text}}}", SMALL * exponent.width),
)
"""Brackets of one size, as those that LaTeX fits to what is inside cannot go over several lines."""


def aligned(rows: list[Row]) -> list[str]:
    r"""Rows of an environment that aligns them at the left.

    >>> print(*aligned([Row(0, "T = a", 5), Row(1, " + b", 3)]))
    & T = a & \quad {} + b
    """
    texts = [row.text.strip() for row in rows]
    return [
        f"& {row.depth * QUAD}{'{} ' if text[:1] in ('+', '-') else ''}{text}"
        for row, text in zip(rows, texts, strict=True)
    ]
