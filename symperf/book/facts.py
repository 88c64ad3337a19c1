"""A formula as plain data, for JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from .chapters import chapter_of
from .equation import called_formulas, latex_line, shown_body, unicode_notation
from .references import reference
from .titles import title_of
from .unicode import plain

if TYPE_CHECKING:
    from ..formulas.language.formula import Formula
    from .entry import BookEntry


def brief(formula: Formula) -> dict[str, Any]:
    """A formula's line of the list."""
    return {
        "name": formula.name,
        "title": title_of(formula),
        "page": formula.page,
        "glyph": plain(formula.glyph),
        "latex_glyph": formula.glyph,
        "unit": str(formula.dimension),
        "sentence": formula.sentence,
        "source": formula.source,
    }


def full(entry: BookEntry) -> dict[str, Any]:
    """All that the book says of a formula; each claim with the proof of every node."""
    formula = entry.formula
    found = reference(formula.source)
    return {
        **brief(formula),
        "number": entry.number,
        "chapter": chapter_of(formula.module).title,
        "details": list(entry.details),
        "equation": unicode_notation(formula).box(shown_body(formula)).text,
        "latex": latex_line(formula),
        "calls": [called.name for called in called_formulas(formula)],
        "symbols": [asdict(row) for row in entry.symbols],
        "assumes": formula.assumes,
        "derivation": formula.derivation,
        "reference_only": formula.reference_only or None,
        "reference": found.text,
        "bibtex": found.bibtex,
        "claims": [
            {
                "symbol": claim.symbol,
                "direction": "rises" if claim.rises else "falls",
                "proof": formula.proof(claim.symbol),
            }
            for claim in entry.claims
        ],
        "undecided": list(entry.undecided),
        "curvature": formula.curvature,
    }
