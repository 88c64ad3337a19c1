"""A derivation as JSON and as terminal text."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ..formulas.language.symbols import SYMBOLS
from .condition_text import condition_text, zero_terms
from .monomials import exact_number
from .terminal import text
from .whole import definitions
from .writing import unicode_notation, unit_of

if TYPE_CHECKING:
    from ..book.unicode import Unicode
    from .conditions import Condition, ConditionSide
    from .derivation import Derivation, Line


def as_text(derivation: Derivation, width: int, *, whole: bool = False, every: bool = False) -> str:
    """What the command prints."""
    return text(derivation, width, whole=whole, every=every)


def as_json(derivation: Derivation) -> dict[str, Any]:
    """The `derive` object: every key is there, null where it does not apply; expressions use the symbols' names."""
    notation = unicode_notation(derivation.paths)
    return {
        "model": derivation.run.model.name,
        "system": derivation.run.system.name,
        "of": derivation.of,
        "term": derivation.term,
        "unit": derivation.unit,
        "value": derivation.value,
        "free": list(derivation.free),
        "folded": list(derivation.folded),
        "below": derivation.below,
        "lines": [_line(line) for line in derivation.kept],
        "dropped": {
            "lines": len(derivation.dropped),
            "value": derivation.dropped_value,
            "share": derivation.dropped_share,
        },
        "relations": {str(symbol): str(expr) for symbol, expr in derivation.relations.items()},
        "zero": zero_terms(derivation, notation),
        "conditions": [_condition(condition, notation) for condition in derivation.conditions],
        "definitions": {name or derivation.of: str(form) for name, form in definitions(derivation)},
        "symbols": _symbols(derivation),
        "time": None if derivation.time is None else as_json(derivation.time),
    }


def _line(line: Line) -> dict[str, Any]:
    return {
        "expression": str(line.expr),
        "coefficient": float(line.coefficient),
        "rounding": line.rounding,
        "monomial": str(line.monomial),
        "value": line.value,
        "share": line.share,
        "resource": line.resource,
        "terms": line.terms,
    }


def _condition(condition: Condition, notation: Unicode) -> dict[str, Any]:
    return {
        "kind": condition.kind,
        "text": condition_text(condition, notation),
        "holds": condition.holds,
        "active": _branch(condition.active),
        "others": [_branch(other) for other in condition.others],
        "factor": condition.factor,
        "margin": condition.margin if math.isfinite(condition.margin) else None,
        "terms": list(condition.terms),
    }


def _branch(branch: ConditionSide) -> dict[str, Any]:
    parts = [exact_number(coefficient) * rounding * monomial for coefficient, rounding, monomial in branch.leading]
    leading = " + ".join(map(str, parts)) or "0"
    return {
        "expression": str(branch.expr),
        "leading": leading,
        "value": branch.value if math.isfinite(branch.value) else None,
        "resource": branch.resource,
    }


def _symbols(derivation: Derivation) -> list[dict[str, Any]]:
    inputs = {**derivation.run.compiled.program.inputs, **derivation.own}
    notation = unicode_notation()
    return [
        {
            "name": name,
            "glyph": entry.glyph,
            "unicode": notation.box(entry.symbol).text,
            "value": derivation.values[name],
            "unit": unit_of(name),
            "sentence": entry.sentence,
            "free": name in derivation.free,
        }
        for name, entry in SYMBOLS.every().items()
        if name in inputs
    ]
