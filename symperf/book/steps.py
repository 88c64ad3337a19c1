"""The proofs of a formula's claims as short lines, in any notation."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ..formulas.language.symbols import SYMBOLS

WORDS = {"max_sum": "a sum of the larger of two lines", "least_sum": "a sum of the smaller of two such maxima"}
"""What an atom is, in words."""

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .notation import Notation
    from .proof import Claim


def claim_lines(
    claims: Sequence[Claim],
    notation: Notation,
    inline: Callable[[str], str],
    up: str,
    down: str,
    widest: float = math.inf,
) -> list[tuple[str, str]]:
    """Pairs of "Rises" or "Falls" and what with and why; symbols that enter directly, or by reciprocals, share a line.

    Args:
        claims: the claims of a formula.
        notation: writes the steps.
        inline: makes mathematics inside a line of what the notation wrote.
        up: the arrow of a part that rises, in the notation.
        down: likewise, falls.
        widest: part that is written out, in the notation's unit; of a wider one words say what it is.
    """
    lines = []
    for rises in (True, False):
        of_one_way = [claim for claim in claims if claim.rises is rises]
        verb = "Rises" if rises else "Falls"
        for steps, why in ((_none, "directly"), (_inverse, "by reciprocals")):
            if alike := [claim for claim in of_one_way if steps(claim)]:
                lines.append((verb, f"{', '.join(inline(_glyph(claim, notation)) for claim in alike)}: {why}."))
        for claim in of_one_way:
            if claim.steps and not claim.inverse:
                parts = []
                for part, direction in claim.steps:
                    box, arrow = notation.box(part), up if direction > 0 else down
                    narrow = box.width <= widest
                    parts.append(inline(f"{box.text} {arrow}") if narrow else f"{_words(part)} {inline(arrow)}")
                lines.append((verb, f"{inline(_glyph(claim, notation))}: {', '.join(parts)}."))
    return lines


def _words(part: Any) -> str:
    """What a part is that is too wide to be written out."""
    return WORDS.get(getattr(part, "operation", ""), "a part of it")


def _none(claim: Claim) -> bool:
    return not claim.steps


def _inverse(claim: Claim) -> bool:
    return claim.inverse


def _glyph(claim: Claim, notation: Notation) -> str:
    return notation.box(SYMBOLS[claim.symbol].symbol).text
