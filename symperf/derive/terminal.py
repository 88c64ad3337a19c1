"""Derivations as text that fits a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..book.unicode import broken
from ..common.table import Table, columns, fold, pack
from ..formulas.language.symbols import SYMBOLS
from .condition_text import FURTHER, SHOWN, regime_rows, zero_terms
from .conditions import LEADING, readable
from .forms import TIMES
from .rows import unicode_formulas, unicode_rows
from .whole import shown_definitions, used_formulas
from .writing import label, line_box, quantity_glyph, si, unicode_notation, unit_of

if TYPE_CHECKING:
    from ..book.unicode import Unicode
    from .derivation import Derivation

TIME_IS = ("A part of the time of the run.", "The time of the run.")
INDENT = 11
"""Of what goes on below a line: its share and its sign stand before."""
BESIDE = 64
"""Columns after which a line has no note at its right."""


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
    if whole:
        lines += _whole(derivation, notation, width)
    lines += _symbols(derivation, notation, width)
    return "\n".join(lines)


def _lines(derivation: Derivation, notation: Unicode, width: int) -> list[str]:
    left = notation.glyph(quantity_glyph(derivation.of, derivation.term, latex=False)).text
    title = f"{left} = {si(derivation.value, derivation.unit)}"
    if derivation.of.casefold() != left.casefold():
        title += f"   {derivation.of}{f' of {derivation.term}' if derivation.term else ''}"
    if derivation.free:
        title += f"   in {', '.join(derivation.free)}"
    rows = []
    for k, line in enumerate(derivation.kept):
        sign = "=" if k == 0 else "+"
        body = f"{100 * line.share:5.1f} %  {sign} {line_box(line, notation).text}"
        rows.append(([body], _what(line.resource, label(line.terms))))
    if derivation.dropped:
        count = len(derivation.dropped)
        body = f"{100 * derivation.dropped_share:5.1f} %  + {si(derivation.dropped_value, derivation.unit)}"
        rows.append(([body], f"{count} line{'s' * (count > 1)} below {100 * derivation.below:.3g} %"))
    return [*broken(title, width, 4), *_beside(rows, width)]


def _what(resource: str | None, where: str) -> str:
    return ", ".join(part for part in (resource, where) if part)


def _beside(rows: list[tuple[list[str], str]], width: int) -> list[str]:
    """Bodies of one line or more with a note at the right of the first, or below the last where it does not fit.

    All notes at the right begin at one column, and a wide body goes on below itself.
    """
    sizes = [columns(body) + 2 for (body, *_), note in rows if note]
    at = max((size for size in sizes if size <= min(width - 30, BESIDE)), default=0)
    found = []
    for bodies, note in rows:
        first, *more = bodies
        beside = note and columns(first) + 2 <= at and at + columns(note) <= width
        found += [first + " " * (at - columns(first)) + note] if beside else broken(first, width, INDENT)
        found += [line for body in more for line in broken(body, width, INDENT)]
        found += fold(note, width, " " * INDENT) if note and not beside else []
    return found


def _notes(derivation: Derivation, notation: Unicode, width: int) -> list[str]:
    zeros = zero_terms(derivation, notation)
    found = fold(f"Zero here: {'; '.join(zeros)}", width, hang="  ") if zeros else []
    relations = [f"{notation.box(s).text} = {notation.box(e).text}" for s, e in derivation.relations.items()]
    if relations:
        found += pack(relations, width, "Put in, exact for this model: ", "  ")
    shown = derivation.kept + (derivation.time.kept if derivation.time is not None else ())
    if any(abs(line.rounding - 1) > 1e-9 for line in shown):
        note = "A factor before a coefficient: what rounding up adds (tiles, waves, shares that do not divide)"
        found += fold(note, width, hang="  ")
    if derivation.folded and not derivation.free:
        bound = derivation.values
        used = [n for n in derivation.folded if n in derivation.run.compiled.program.inputs]
        numbers = [f"{notation.box(SYMBOLS[n].symbol).text} = {si(bound[n], unit_of(n))}" for n in used]
        found += pack(numbers, width, "In the coefficients: ", "  ")
    return ["", *found] if found else []


def _regime(derivation: Derivation, notation: Unicode, width: int, *, every: bool) -> list[str]:
    rows = regime_rows(derivation, notation, every=every)
    if not rows:
        return []
    shown = derivation.conditions if every else readable(derivation.conditions)[:SHOWN]
    cut = any(side.more for each in shown for side in (each.active, *each.others))
    left_out = f"; …: parts below {100 * LEADING:.3g} % of a side" if cut else ""
    found = ["", *fold(f"Holds while (the nearest to a change first{left_out})", width, hang="  ")]
    bodies: list[tuple[list[str], str]] = []
    for body, where in rows:
        if body.startswith(FURTHER):  # what the condition is of stands once, after its last branch
            bodies[-1][0].append(f"  {body}")
        else:
            bodies.append(([f"  {body}"], where))
    return found + _beside(bodies, width)


def _whole(derivation: Derivation, notation: Unicode, width: int) -> list[str]:
    """The whole closed form and the formulas that it calls; its symbols are marked as written."""
    steps = shown_definitions(derivation)
    for symbol in {symbol for _, form in steps for symbol in form.free_symbols} & notation.glyphs.keys():
        notation.box(symbol)
    rows = unicode_rows(steps, derivation.paths, derivation.of, derivation.term, width - 2)
    found = ["", "Whole closed form", *(line for row in rows for line in broken(f"  {row}", width, INDENT))]
    if formulas := used_formulas(steps):
        rows = unicode_formulas(formulas, width - 2)
        found += ["", "Formulas used", *(line for row in rows for line in broken(f"  {row}", width, INDENT))]
    return found


def _symbols(derivation: Derivation, notation: Unicode, width: int) -> list[str]:
    """A row for every symbol that is written anywhere above: glyph, name, value, sentence."""
    table = Table(("", "", "", ""), left=range(4), wraps=(3,))
    written = set(notation.written)
    for symbol, term in TIMES.items():
        if symbol in written:
            run = derivation.run
            table.add_row(
                notation.box(symbol).text, symbol.name, si(run.value(symbol.name), "s"), TIME_IS[term is None]
            )
    if written - TIMES.keys() - {entry.symbol for entry in SYMBOLS.every().values()}:
        table.add_row("τ[path]", "", "", "A term of the whole closed form by its path, each time that it runs.")
    for name, entry in SYMBOLS.every().items():
        if entry.symbol in written:
            known = name in derivation.values  # a parameter of a formula that is called has no value of its own
            value = si(derivation.values[name], unit_of(name)) if known else ""
            value = f"{value} (free)" if name in derivation.free else value
            table.add_row(notation.box(entry.symbol).text, name, value, entry.sentence)
    lines = [line for line, _ in table.lines(width - 2)]
    return ["", "Symbols", *(f"  {line}" for line in lines)] if lines else []
