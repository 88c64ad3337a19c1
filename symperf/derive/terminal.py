"""Derivations as text that fits a terminal."""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING

from ..formulas.language.symbols import SYMBOLS
from .conditions import readable
from .rows import unicode_formulas, unicode_rows
from .whole import shown_definitions, used_formulas
from .writing import branch_text, label, line_box, quantity_glyph, si, unicode_notation, unit_of

if TYPE_CHECKING:
    from ..book.unicode import Unicode
    from .conditions import Condition
    from .derivation import Derivation

SHOWN_CONDITIONS = 8
SIGNS = {"max": "≥", "min": "≤"}


def text(derivation: Derivation, width: int = 100, *, whole: bool = False) -> str:
    """The lines, what they hold under and the symbols in them; with `whole` also the closed form over named terms."""
    notation = unicode_notation(derivation.paths)
    lines = _lines(derivation, notation, width)
    if derivation.time is not None:
        lines += ["", *_lines(derivation.time, notation, width)]
    lines += _notes(derivation, notation, width)
    lines += _regime(derivation, notation, width)
    lines += _symbols(derivation, notation, width)
    if whole:
        shown = shown_definitions(derivation)
        rows = unicode_rows(shown, derivation.paths, derivation.of, derivation.term, width - 2)
        lines += ["", "Whole closed form", *(f"  {row}" for row in rows)]
        if formulas := used_formulas(shown):
            lines += ["", "Formulas used", *(f"  {row}" for row in unicode_formulas(formulas, width - 2))]
    return "\n".join(lines)


def _lines(derivation: Derivation, notation: Unicode, width: int) -> list[str]:
    left = notation.glyph(quantity_glyph(derivation.of, derivation.term, latex=False)).text
    title = f"{left} = {si(derivation.value, derivation.unit)}"
    if derivation.of not in ("time", left) or derivation.term:
        title += f"   {derivation.of}{f' of {derivation.term}' if derivation.term else ''}"
    if derivation.free:
        title += f"   in {', '.join(derivation.free)}"
    found = textwrap.wrap(title, width) or [title]
    for k, line in enumerate(derivation.kept):
        sign = "=" if k == 0 else "+"
        body = f"{100 * line.share:5.1f} %  {sign} {line_box(line, notation).text}"
        found += _beside(body, _what(line.resource, label(line.terms)), width)
    if derivation.dropped:
        count = len(derivation.dropped)
        body = f"{100 * derivation.dropped_share:5.1f} %  + {si(derivation.dropped_value, derivation.unit)}"
        found += _beside(body, f"{count} line{'s' * (count > 1)} below {100 * derivation.below:.3g} %", width)
    return found


def _what(resource: str | None, where: str) -> str:
    return ", ".join(part for part in (resource, where) if part)


def _beside(body: str, note: str, width: int) -> list[str]:
    """A line with a note at its right, or below it where both do not fit; a wide body goes on below itself."""
    at = min(width - 30, 64) if width >= 70 else 0
    if not note:
        return _wrap(body, width, 11)
    if len(body) + 2 <= at and at + len(note) <= width:
        return [f"{body:{at}}{note}"]
    if len(body) + 2 + len(note) <= width:
        return [f"{body}  {note}"]
    return [*_wrap(body, width, 11), *_wrap(f"{'':11}{note}", width, 11)]


def _wrap(body: str, width: int, indent: int) -> list[str]:
    if len(body) <= width:
        return [body]
    return textwrap.wrap(
        body, width, subsequent_indent=" " * indent, break_long_words=True, drop_whitespace=True, break_on_hyphens=False
    )


def _notes(derivation: Derivation, notation: Unicode, width: int) -> list[str]:
    found = []
    relations = [f"{notation.box(s).text} = {notation.box(e).text}" for s, e in derivation.relations.items()]
    if relations:
        found.append(f"Put in, exact for this model: {', '.join(relations)}")
    shown = derivation.kept + (derivation.time.kept if derivation.time is not None else ())
    if any(abs(line.rounding - 1) > 1e-9 for line in shown):
        found.append("A factor before a coefficient: what rounding up adds (tiles, waves, shares that do not divide)")
    if derivation.folded and not derivation.free:
        bound = derivation.run.bound
        used = [n for n in derivation.folded if n in derivation.run.compiled.program.inputs]
        numbers = [f"{notation.box(SYMBOLS[n].symbol).text} = {si(bound[n][0], unit_of(n))}" for n in used]
        found.append(f"In the coefficients: {', '.join(numbers)}")
    return ["", *(row for note in found for row in _wrap(note, width, 2))] if found else []


def _regime(derivation: Derivation, notation: Unicode, width: int) -> list[str]:
    conditions = derivation.conditions or (derivation.time.conditions if derivation.time is not None else ())
    shown = readable(conditions)
    if not shown:
        return []
    found = ["", "Holds while (the nearest to a change first)"]
    for condition in shown[:SHOWN_CONDITIONS]:
        found += _condition(condition, notation, width)
    more = len(shown) - SHOWN_CONDITIONS
    return [*found, f"  and {more} more"] if more > 0 else found


def _condition(condition: Condition, notation: Unicode, width: int) -> list[str]:
    where = label(condition.terms)
    active = branch_text(condition.active, notation)
    if condition.kind == "present":
        return _beside(f"  {active} {'> 1' if condition.holds else '= 1'}", where, width)
    sign = SIGNS.get(condition.kind, "≤")
    names = [active, *(branch_text(other, notation) for other in condition.others)]
    margin = f" ({condition.margin:.3g} x)" if math.isfinite(condition.margin) else ""
    resources = [branch.resource for branch in (condition.active, *condition.others)]
    if len(names) == 2 and None not in resources and resources[0] != resources[1]:
        where = f"{resources[0]} {sign} {resources[1]}, {where}"
    return _beside(f"  {f' {sign} '.join(names[:2])}", f"{where}{margin}", width) + [
        row for other in names[2:] for row in _wrap(f"    and {sign} {other}", width, 8)
    ]


def _symbols(derivation: Derivation, notation: Unicode, width: int) -> list[str]:
    shown = derivation.kept + (derivation.time.kept if derivation.time is not None else ())
    used = {symbol.name for line in shown for symbol in line.monomial.free_symbols}
    rows = []
    for name, entry in SYMBOLS.items():
        if name in used and name in derivation.run.bound:
            value = si(derivation.run.bound[name][0], unit_of(name))
            value = f"{value} (free)" if name in derivation.free else value
            rows.append((notation.box(entry.symbol).text, name, value, entry.sentence))
    if not rows:
        return []
    sizes = [max(len(row[k]) for row in rows) for k in range(3)]
    found = ["", "Symbols"]
    for glyph, name, value, sentence in rows:
        start = f"  {glyph:{sizes[0]}}  {name:{sizes[1]}}  {value:{sizes[2]}}"
        found.append(f"{start}  {sentence}" if len(start) + 2 + len(sentence) <= width else start.rstrip()[:width])
    return found
