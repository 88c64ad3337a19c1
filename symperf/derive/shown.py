"""Derivations in a notebook: a table of the lines, and their shares as a picture."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any

from ..pictures.style import BLUE, EDGE
from .writing import label, line_box, quantity_glyph, si, unicode_notation

if TYPE_CHECKING:
    from .derivation import Derivation


def rows_of(derivation: Derivation) -> list[tuple[float, str, str]]:
    """Share, mathematics and place of each line that is shown, and of the others together."""
    notation = unicode_notation(derivation.paths)
    rows = [
        (line.share, line_box(line, notation).text, ", ".join(filter(None, (line.resource, label(line.terms)))))
        for line in derivation.kept
    ]
    if derivation.dropped:
        rows.append((derivation.dropped_share, f"{len(derivation.dropped)} more", f"each below {derivation.below:.3g}"))
    return rows


def as_html(derivation: Derivation) -> str:
    """The value and a table of the lines."""
    left = quantity_glyph(derivation.of, derivation.term, latex=False)
    head = f"<p>{html.escape(f'{left} = {si(derivation.value, derivation.unit)}')}</p>"
    cells = "".join(
        f"<tr><td>{share:.1%}</td><td>{html.escape(text)}</td><td>{html.escape(where)}</td></tr>"
        for share, text, where in rows_of(derivation)
    )
    return f"{head}\n<table><tr><th>share</th><th>line</th><th>of</th></tr>{cells}</table>"


def draw(derivation: Derivation, axes: Any) -> None:
    """Bars of the lines' shares, the largest on top."""
    rows = rows_of(derivation)[::-1]
    axes.barh(range(len(rows)), [100 * share for share, _, _ in rows], color=BLUE, **EDGE)
    axes.set_yticks(range(len(rows)), [f"{text}\n{where}" for _, text, where in rows], fontsize=7)
    left = quantity_glyph(derivation.of, derivation.term, latex=False)
    axes.grid(visible=False, axis="y")
    axes.set_xlabel(f"share of {left} = {si(derivation.value, derivation.unit)}, %")
