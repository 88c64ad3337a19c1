"""Closed forms of crossings: a regime's sums of powers on both sides, set equal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sympy

from ..codegen.interpret import floats, run
from .answers import Equation
from .closed import powers, sides_at, zero
from .forms import FormError

if TYPE_CHECKING:
    from .closed import Powers
    from .cross import Cross
    from .cross_sides import Side

SHORT = 60
"""Operations of a closed form that is shown."""
SHOWN = 3
"""Closed forms that are shown."""


def closed_crossing(a: Side, b: Side, at: float) -> Any:
    """The value of the symbol at which two sides are equal, in the other symbols; nothing where it has no short form.

    A symbol with another value on each side is written `a.NAME` and `b.NAME`.
    """
    try:
        totals = [_powers(side, at) for side in (a, b)]
    except FormError:
        return None
    apart = _apart(a, b)
    inputs: dict[str, float] = {}
    for letter, side, total in zip("ab", (a, b), totals, strict=True):
        values = side.subject.values
        for exponent, coefficient in total.items():
            names = {symbol: f"{letter}.{symbol.name}" for symbol in coefficient.free_symbols if symbol.name in apart}
            total[exponent] = coefficient.xreplace({s: sympy.Symbol(n, positive=True) for s, n in names.items()})
        inputs |= {f"{letter}.{name}" if name in apart else name: value for name, value in values.items()}
    difference = dict(totals[0])
    for exponent, coefficient in totals[1].items():
        difference[exponent] = difference.get(exponent, sympy.S.Zero) - coefficient
    return zero({e: c for e, c in difference.items() if c != 0}, inputs, at)


def _apart(a: Side, b: Side) -> set[str]:
    """The names of symbols that are not the same on both sides."""
    first, second = a.subject.values, b.subject.values
    found = {name for name in first.keys() & second.keys() if first[name] != second[name]}
    name = a.symbol or b.symbol or ""
    if (a.symbol is None) != (b.symbol is None):
        found.add(name)
    return found


def _powers(side: Side, at: float) -> Powers:
    """A side near a crossing as a sum of powers of the symbol.

    Raises:
        FormError: it is none.
    """
    subject = side.subject
    symbol = "" if side.constant else str(side.symbol)
    values = run(subject.program, subject.values | ({symbol: at} if symbol else {}), floats())
    return dict(powers(subject, symbol, sides_at(subject, values))[subject.position])


def equations(cross: Cross) -> list[Equation]:
    """The closed forms of the first crossings, where they are short."""
    found = []
    for k, crossing in enumerate(cross.crossings[:SHOWN]):
        form = cross.closed_form(k)
        if form is not None and form.free_symbols and form.count_ops() <= SHORT:
            note = f"where {crossing.then or 'neither'} takes the lead"
            found.append(Equation(cross.over, form, note))
    return found
