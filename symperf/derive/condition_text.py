"""Conditions as text: each by itself, and all of a derivation as a reader is told them."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

import sympy

from ..book.latex import Latex
from ..book.prose import latex_text
from .conditions import readable
from .writing import branch_text, decimal, label, si, unit_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..book.notation import Notation
    from .conditions import Condition
    from .derivation import Derivation

SHOWN, LISTED = 8, 6
"""Conditions that are written out unless all are asked for, and those that share a row."""
SIGNS = {"max": "≥", "min": "≤"}
FURTHER = "  and "
"""What a row begins with that tells a further branch of the condition before."""
OTHER_BRANCH = {"max": "shorter than what runs beside it", "min": "longer than what stands instead"}
"""Why a part is zero that is in no active branch."""
Row = tuple[str, str]
"""What holds, and where."""


def condition_text(condition: Condition, notation: Notation) -> str:
    """A condition in one line, whole but for the small parts of sums."""
    active = branch_text(condition.active, notation)
    others = [branch_text(other, notation) for other in condition.others]
    math = _mathematics(notation)
    match condition.kind:
        case "present":
            return math(f"{active} {'> 1' if condition.holds else '= 1'}")
        case "vanishes":
            return math(_vanishing(condition, notation))
        case "divides":
            return f"{math(others[0])} divides {math(active)}"
        case "rounding":
            quotient = f"{_factor(active)} / {_factor(others[0])}"
            made = condition.choices[0].active
            return f"⌈{quotient}⌉ = {made if made.is_Number else f'{decimal(condition.factor)} · {quotient}'}"
        case "equals":
            symbol, number = condition.active.expr, condition.others[0].expr
            value = si(float(number), unit_of(symbol.name)) if number.is_Number else others[0]
            return f"{notation.box(symbol).text} = {value}"
    sign = SIGNS.get(condition.kind, "≤")
    return f"{active} {sign} {f', {sign} '.join(others)}"


def _mathematics(notation: Notation) -> Callable[[str], str]:
    """How mathematics stands in a sentence."""
    return (lambda text: f"${text}$") if isinstance(notation, Latex) else (lambda text: text)


def _words(notation: Notation) -> Callable[[str], str]:
    """How a path stands in a sentence."""
    return latex_text if isinstance(notation, Latex) else (lambda text: text)


def _factor(text: str) -> str:
    """A side of a quotient, in brackets where it is more than one symbol."""
    return f"({text})" if " " in text else text


def _vanishing(condition: Condition, notation: Notation) -> str:
    """A count or a fraction and its number; of a quotient of 1 both sides."""
    number = condition.others[0].value
    if len(condition.active.leading) == 1 and not condition.active.more and number == 1:
        coefficient, rounding, monomial = condition.active.leading[0]
        over, under = sympy.fraction(monomial)
        if coefficient == 1 and rounding == 1 and under != 1:
            return f"{notation.box(over).text} = {notation.box(under).text}"
    return f"{branch_text(condition.active, notation)} = {number:.4g}"


def zero_terms(derivation: Derivation, notation: Notation) -> list[str]:
    """What is 0 at the point, with what makes it so, a reason each: terms by their folders, then parts of others."""
    time = derivation if derivation.time is None else derivation.time
    of_choice = {choice: each for each in derivation.conditions for choice in each.choices}
    reasons: dict[tuple[str, ...], list[str]] = {}
    for path, choices in time.zeros.items():
        found = [of_choice[each] for each in choices if each in of_choice]
        off = [each for each in found if each.kind == "vanishes" or not each.holds]
        reasons.setdefault(_reasons(off, notation) or _other_branch(found), []).append(path)
    words = _words(notation)
    rows = [
        words(", ".join(_folders(paths))) + (f" ({', '.join(listed)})" if listed else "")
        for listed, paths in reasons.items()
    ]
    told = {choice for choices in time.zeros.values() for choice in choices}
    rest = [each for each in derivation.conditions if each.kind == "vanishes" and not told & set(each.choices)]
    new = [each for each in _reasons(rest, notation) if each not in {one for listed in reasons for one in listed}]
    return [*rows, *([f"parts of others ({', '.join(new)})"] if new else [])]


def _other_branch(conditions: list[Condition]) -> tuple[str, ...]:
    """Why a part is zero that no symbol makes so: another branch of a maximum or a minimum is the active one."""
    kinds = {condition.kind for condition in conditions}
    return tuple(text for kind, text in OTHER_BRANCH.items() if kind in kinds)[:1]


def _reasons(conditions: list[Condition], notation: Notation) -> tuple[str, ...]:
    """What makes a part zero: the symbols that do, or else the first of what they make."""
    plain = [each for each in conditions if each.active.expr.is_Symbol]
    return tuple(dict.fromkeys(condition_text(each, notation) for each in plain or conditions[:1]))


def _folders(paths: list[str]) -> list[str]:
    """Paths, those of one folder by its name and their number where they are more than two."""
    found: dict[str, list[str]] = {}
    for path in paths:
        found.setdefault(path.rpartition("/")[0] or path, []).append(path)
    return [
        path
        for folder, each in found.items()
        for path in (each if len(each) <= 2 else [f"{folder} ({len(each)} terms)"])
    ]


def regime_rows(derivation: Derivation, notation: Notation, *, every: bool) -> list[Row]:
    """What the lines hold under, the nearest to a change first: the first branches, then one row a kind.

    Args:
        derivation: the closed form in its regime.
        notation: of symbols.
        every: write out every condition.
    """
    conditions = derivation.conditions
    if every:
        return [row for each in conditions for row in _rows(each, notation)]
    shown = readable(conditions)
    rows = [row for each in shown[:SHOWN] for row in _rows(each, notation)]
    written = min(len(shown), SHOWN)
    rows += [(each, "") for each in kind_sentences(derivation, notation)]
    written += sum(each.kind in ROWS for each in conditions)
    numbers = sum(each.kind == "equals" for each in conditions)
    if derivation.free and numbers:
        rows.append((f"all else keeps its value: {numbers} symbols are numbers here", ""))
    written += numbers
    more = len(conditions) - written
    return [*rows, (f"and {more} more (--conditions all)", "")] if more > 0 else rows


def kind_sentences(derivation: Derivation, notation: Notation) -> list[str]:
    """What stays as it is at the point: zero parts, whole quotients and roundings, the first of each kind."""
    found = []
    for kind, tell in ROWS.items():
        own = (each for each in derivation.conditions if each.kind == kind)
        texts: list[str] = []
        for each in own:
            written = dict(notation.written)
            text = tell(each, notation)
            if text in texts or len(texts) >= LISTED:  # what is not told is not written
                notation.written = written
            texts += [] if text in texts else [text]
        if texts:
            more = f", and {len(texts) - LISTED} more" if len(texts) > LISTED else ""
            found.append(f"{HEADS[kind]}: {', '.join(texts[:LISTED])}{more}")
    return found


def _rows(condition: Condition, notation: Notation) -> list[Row]:
    """A condition, each branch beyond two in a row of its own."""
    if condition.kind not in ("max", "min"):
        return [(condition_text(condition, notation), _where(condition))]
    first = dataclasses.replace(condition, others=condition.others[:1])
    more = (branch_text(other, notation) for other in condition.others[1:])
    return [
        (condition_text(first, notation), _where(condition)),
        *((f"{FURTHER}{SIGNS[condition.kind]} {other}", "") for other in more),
    ]


def _where(condition: Condition) -> str:
    margin = f" ({condition.margin:.3g} x)" if math.isfinite(condition.margin) else ""
    sides = (condition.active, *condition.others)
    resources = [side.resource for side in sides]
    where = label(condition.terms)
    if len(sides) == 2 and None not in resources and resources[0] != resources[1]:
        where = f"{resources[0]} {SIGNS.get(condition.kind, '≤')} {resources[1]}, {where}"
    return f"{where}{margin}"


def _rounding(condition: Condition, notation: Notation) -> str:
    made = condition.choices[0].active
    what = f"to {made}" if made.is_Number else decimal(condition.factor)
    return f"{what} ({_words(notation)(label(condition.terms))})"


HEADS = {
    "vanishes": "zero parts stay zero",
    "divides": "quotients stay whole",
    "rounding": "roundings stay as they are here",
}
ROWS: dict[str, Callable[[Condition, Notation], str]] = {
    "vanishes": condition_text,
    "divides": condition_text,
    "rounding": _rounding,
}
