"""The proofs of a formula's claims as short lines, in any notation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..formulas.symbols import SYMBOLS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .notation import Notation
    from .proof import Claim


def claim_lines(
    claims: Sequence[Claim], notation: Notation, inline: Callable[[str], str], up: str, down: str
) -> list[tuple[str, str]]:
    """Pairs of "Rises" or "Falls" and what with and why; symbols that enter directly, or by reciprocals, share a line.

    Args:
        claims: the claims of a formula.
        notation: writes the steps.
        inline: makes mathematics inside a line of what the notation wrote.
        up: the arrow of a part that rises, in the notation.
        down: likewise, falls.
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
                parts = [
                    inline(f"{notation.box(part).text} {up if direction > 0 else down}")
                    for part, direction in claim.steps
                ]
                lines.append((verb, f"{inline(_glyph(claim, notation))}: {', '.join(parts)}."))
    return lines


def _none(claim: Claim) -> bool:
    return not claim.steps


def _inverse(claim: Claim) -> bool:
    return claim.inverse


def _glyph(claim: Claim, notation: Notation) -> str:
    return notation.box(SYMBOLS[claim.symbol].symbol).text
