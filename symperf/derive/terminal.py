"""Derivations as text that fits a terminal."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from ..formulas.language.symbols import SYMBOLS
from .condition_text import regime_rows, zero_terms
from .rows import unicode_rows
from .whole import definitions
from .writing import label, line_box, quantity_glyph, si, unicode_notation, unit_of

if TYPE_CHECKING:
    from ..book.unicode import Unicode
    from .derivation import Derivation


def text(derivation: Derivation, width: int = 100, *, whole: bool = False, every: bool = False) -> str:
    """The lines, what they hold under and the symbols in them.

    Args:
        derivation: the closed form in its regime.
        width: columns.
        whole: also the closed form over named terms.
        every: every condition, not the nearest alone.
    """
    notation = unicode_notation(derivation.paths)
    lines = _lines(derivation, notation, width)
    if derivation.time is not None:
        lines += ["", *_lines(derivation.time, notation, width)]
    lines += _notes(derivation, notation, width)
    lines += _regime(derivation, notation, width, every=every)
    lines += _symbols(derivation, notation, width)
    if whole:
        rows = unicode_rows(definitions(derivation), derivation.paths, derivation.of, derivation.term, width)
        lines += ["", "Whole closed form", *(f"  {row}" for row in rows)]
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
    zeros = zero_terms(derivation, notation)
    found = [f"Zero here: {'; '.join(zeros)}"] if zeros else []
    relations = [f"{notation.box(s).text} = {notation.box(e).text}" for s, e in derivation.relations.items()]
    if relations:
        found.append(f"Put in, exact for this model: {', '.join(relations)}")
    shown = derivation.kept + (derivation.time.kept if derivation.time is not None else ())
    if any(abs(line.rounding - 1) > 1e-9 for line in shown):
        found.append("A factor before a coefficient: what rounding up adds (tiles, waves, shares that do not divide)")
    if derivation.folded and not derivation.free:
        bound = derivation.values
        used = [n for n in derivation.folded if n in derivation.run.compiled.program.inputs]
        numbers = [f"{notation.box(SYMBOLS[n].symbol).text} = {si(bound[n], unit_of(n))}" for n in used]
        found.append(f"In the coefficients: {', '.join(numbers)}")
    return ["", *(row for note in found for row in _wrap(note, width, 2))] if found else []


def _regime(derivation: Derivation, notation: Unicode, width: int, *, every: bool) -> list[str]:
    rows = regime_rows(derivation, notation, every=every)
    if not rows:
        return []
    found = ["", "Holds while (the nearest to a change first)"]
    for body, where in rows:
        found += _beside(f"  {body}", where, width)
    return found


def _symbols(derivation: Derivation, notation: Unicode, width: int) -> list[str]:
    shown = derivation.kept + (derivation.time.kept if derivation.time is not None else ())
    used = {symbol.name for line in shown for symbol in line.monomial.free_symbols}
    rows = []
    for name, entry in SYMBOLS.items():
        if name in used and name in derivation.values:
            value = si(derivation.values[name], unit_of(name))
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
