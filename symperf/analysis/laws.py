"""What a quantity is near a value of a symbol: a short sum of powers with numbers as coefficients."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import sympy

from .closed import symbol_of
from .forms import FormError, plain

if TYPE_CHECKING:
    from .cross_sides import Side

MOST = 4
"""Powers of a law that is told."""
NOTHING = 1e-6
"""Part of the whole below which a power is left out."""
DIGITS = 5
NEAR = 1e-3


def law(side: Side, at: float) -> Any:
    """A side near a value of its symbol, such as 11.73 + 3.62e12 / x; nothing where that is no short sum of powers.

    Args:
        side: the quantity.
        at: where, above 0.
    """
    try:
        form = side.pieces(at * (1 - NEAR), at * (1 + NEAR)).at(at)
    except FormError:
        return None
    over = plain(form.over)
    if form.under is not None or any(logs for _, logs in over):
        return None
    sizes = {exponent: float(c) * at ** float(exponent) for (exponent, _), c in over.items()}
    whole = sum(map(abs, sizes.values()))
    kept = {e: c for (e, _), c in over.items() if abs(sizes[e]) > NOTHING * whole}
    if not kept or len(kept) > MOST:
        return None
    x = symbol_of(side.symbol or "")
    return sympy.Add(*(_rounded(c) * x ** sympy.Rational(Fraction(e)) for e, c in kept.items()))


def _rounded(number: Fraction) -> Any:
    value = float(f"{float(number):.{DIGITS}g}")
    return sympy.Integer(int(value)) if value % 1 == 0 and abs(value) < 10**DIGITS else sympy.Float(value)
