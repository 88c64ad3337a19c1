"""What a quantity is near a value of a symbol: a short sum of powers with numbers as coefficients."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .forms import FormError, plain

if TYPE_CHECKING:
    from .cross_sides import Side
    from .forms import Exponent

MOST = 4
"""Powers of a law that is told."""
NOTHING = 1e-6
"""Part of the whole below which a power is left out."""
NEAR = 1e-3


def law(side: Side, at: float) -> str | None:
    """A side near a value of its symbol, such as "11.42 + 5.604e+12 / x"; nothing where that is no short sum of powers.

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
    kept = sorted((e, float(c)) for (e, _), c in over.items() if abs(sizes[e]) > NOTHING * whole)
    if len(kept) > MOST or not any(e for e, _ in kept):
        return None
    text = ""
    for exponent, coefficient in kept[::-1]:
        sign = " - " if coefficient < 0 else " + "
        text += sign + _term(abs(coefficient), exponent, side.symbol or "")
    return text.removeprefix(" + ")


def _term(coefficient: float, exponent: Exponent, symbol: str) -> str:
    if exponent == 0:
        return f"{coefficient:.4g}"
    size = abs(float(exponent))
    power = symbol if size == 1 else f"{symbol}^{size:g}"
    return f"{coefficient:.4g} / {power}" if exponent < 0 else f"{coefficient:.4g} {power}"
