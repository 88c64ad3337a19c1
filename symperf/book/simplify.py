"""Simpler forms of what is displayed: every rule keeps the value wherever the symbols are in their domains.

Compositions leave what nobody would write: `max(1, p)` of a count, `[[p > 1] + 1 > 1]`, a count rounded up to a
multiple of one. What is computed stays as it is composed; this is for the eye.
"""

from __future__ import annotations

from typing import Any

import sympy

from ..formulas.language.atoms import Atom, Max, Min, above_one, ceil_div, complement, less_one, ring_share
from ..formulas.language.symbols import COUNT, FRACTION, POSITIVE, SYMBOLS

ONE = sympy.S.One
COUNTED = ("ceil_div", "above_one", "floor_div")
"""Atoms whose value is a whole number."""


def simplified(expr: Any, known: dict[Any, Any] | None = None) -> Any:
    """The expression with every part as simple as the rules below make it.

    Args:
        expr: over the vocabulary; any other symbol is only known to be non-negative.
        known: what was simplified before, to which this adds.

    >>> from ..formulas.language.symbols import pp, tp
    >>> simplified(above_one(1 + above_one(pp)))
    above_one(pp)
    >>> simplified(Max(1, tp) * ceil_div(tp, 1)), simplified(less_one(pp) + 1)
    (tp**2, pp)
    """
    known = {} if known is None else known
    if not expr.args:
        return expr
    if expr not in known:
        parts = [simplified(arg, known) for arg in expr.args]
        known[expr] = _simpler(expr if list(expr.args) == parts else expr.func(*parts))
    return known[expr]


def _simpler(expr: Any) -> Any:
    if isinstance(expr, above_one):
        return _switch(expr)
    if isinstance(expr, Max | Min):
        return _extremum(expr)
    if isinstance(expr, ceil_div):
        bins = expr.args[0] / expr.args[1]
        return bins if is_whole(bins) else ONE if _fits(*expr.args) else expr
    if isinstance(expr, less_one) and expr.args[0].is_Add and ONE in expr.args[0].args:
        return expr.args[0] - 1
    if isinstance(expr, complement) and isinstance(expr.args[0], complement):
        return expr.args[0].args[0]
    if expr.is_Pow and isinstance(expr.base, above_one) and expr.exp.is_positive:
        return expr.base
    if expr.is_Mul:
        return _excess(expr)
    return _sum(expr) if expr.is_Add else expr


def _excess(expr: Any) -> Any:
    """C (1 - min(1, d / c)) is max(0, c - d)."""
    for factor in expr.args:
        least = factor.args[0] if isinstance(factor, complement) else None
        if not isinstance(least, Min) or len(least.args) != 2 or ONE not in least.args:
            continue
        (share,) = (arg for arg in least.args if arg != 1)
        for count in expr.args:
            limit = share * count
            if is_positive(count) and is_non_negative(limit) and _is_free_of_quotient(limit, count):
                return expr / factor / count * Max(0, count - limit)
    return expr


def _is_free_of_quotient(limit: Any, count: Any) -> bool:
    return not any(factor.is_Pow and factor.base == count for factor in sympy.Mul.make_args(limit))


def _switch(expr: Any) -> Any:
    """[c [x > 1] + 1 > 1] and [max(1, x) > 1] are [x > 1]."""
    (count,) = expr.args
    if count.is_Add and len(count.args) == 2 and ONE in count.args:
        factor, switch = (count - 1).as_coeff_Mul()
        return switch if factor.is_positive and isinstance(switch, above_one) else expr
    if isinstance(count, Max) and ONE in count.args:
        return above_one(Max(*(arg for arg in count.args if arg != 1)))
    return expr


def _extremum(expr: Any) -> Any:
    """Without operands that another one always covers."""
    kept = list(expr.args)
    for arg in expr.args:
        others = [other for other in kept if other is not arg]
        covered = (is_at_most(arg, other) if isinstance(expr, Max) else is_at_most(other, arg) for other in others)
        if any(covered):
            kept = others
    return expr if len(kept) == len(expr.args) else expr.func(*kept)


def _sum(expr: Any) -> Any:
    """One fewer than a count, and one, is the count."""
    number, rest = expr.as_coeff_Add()
    for term in expr.args:
        factor, count = term.as_coeff_Mul()
        if isinstance(count, less_one) and 0 < factor <= number:
            return _sum_again(rest - term + factor * count.args[0] + (number - factor))
    return expr


def _sum_again(expr: Any) -> Any:
    return _sum(expr) if expr.is_Add else expr


def _fits(amount: Any, size: Any) -> bool:
    """Whether one bin holds an amount that is not nothing."""
    return is_positive(amount) and is_at_most(amount, size)


def is_at_most(low: Any, high: Any) -> bool:
    """Whether an expression provably never exceeds another.

    >>> from ..formulas.language.symbols import batch, tp
    >>> is_at_most(tp, batch * tp), is_at_most(batch, tp)
    (True, False)
    """
    if low.is_Number and high.is_Number:
        return bool(low <= high)
    if low.is_Number and low <= 1 and is_at_least_one(high):
        return True
    if not is_non_negative(low):
        return False
    if high.is_Add and low in high.args:
        return is_non_negative(high - low)
    if low == 0:
        return is_non_negative(high)
    if low.is_Mul and high in low.args:
        return _is_at_most_one(low / high)
    return is_at_least_one(high / low) if high.is_Mul and low in high.args else False


def _is_at_most_one(expr: Any) -> bool:
    """Of a product of shares and switches."""
    return all(
        isinstance(factor, above_one | complement | ring_share)
        or (factor.is_Number and 0 <= factor <= 1)
        or _domain(factor) == FRACTION
        for factor in sympy.Mul.make_args(expr)
    )


def _domain(expr: Any) -> str:
    entry = SYMBOLS.find(expr.name) if expr.is_Symbol else None
    return entry.domain if entry is not None and entry.symbol == expr else ""


def is_whole(expr: Any) -> bool:
    """Whether an expression provably is a whole number.

    >>> from ..formulas.language.symbols import batch, tp
    >>> is_whole(ceil_div(batch, tp) * tp), is_whole(batch / tp)
    (True, False)
    """
    if expr.is_Number:
        return bool(expr.is_Integer)
    if expr.is_Symbol:
        return _domain(expr) == COUNT
    if expr.is_Add or expr.is_Mul or isinstance(expr, Max | Min | less_one):
        return all(map(is_whole, expr.args))
    if expr.is_Pow:
        return bool(expr.exp.is_Integer and expr.exp > 0 and is_whole(expr.base))
    return getattr(expr, "operation", "") in COUNTED


def is_at_least_one(expr: Any) -> bool:
    """Whether an expression provably is one or more.

    >>> from ..formulas.language.symbols import batch, tp
    >>> is_at_least_one(batch + tp), is_at_least_one(batch / tp)
    (True, False)
    """
    if expr.is_Number:
        return bool(expr >= 1)
    if expr.is_Symbol:
        return _domain(expr) == COUNT
    if expr.is_Mul or isinstance(expr, Min):
        return all(map(is_at_least_one, expr.args))
    if expr.is_Add:
        return any(map(is_at_least_one, expr.args)) and all(map(is_non_negative, expr.args))
    if expr.is_Pow:
        return bool(expr.exp.is_positive and is_at_least_one(expr.base))
    if isinstance(expr, ceil_div):
        return is_positive(expr.args[0])
    return isinstance(expr, Max) and any(map(is_at_least_one, expr.args))


def is_positive(expr: Any) -> bool:
    """Whether an expression provably is more than zero."""
    if expr.is_Number:
        return bool(expr > 0)
    if expr.is_Symbol:
        return _domain(expr) in (COUNT, POSITIVE)
    if expr.is_Mul or isinstance(expr, Min):
        return all(map(is_positive, expr.args))
    if expr.is_Add:
        return any(map(is_positive, expr.args)) and all(map(is_non_negative, expr.args))
    if expr.is_Pow:
        return is_positive(expr.base)
    return is_at_least_one(expr) or (isinstance(expr, Max) and any(map(is_positive, expr.args)))


def is_non_negative(expr: Any) -> bool:
    """Whether an expression provably is zero or more, as all symbols and atoms are."""
    if expr.is_Number:
        return bool(expr >= 0)
    if expr.is_Add or expr.is_Mul or isinstance(expr, Min):
        return all(map(is_non_negative, expr.args))
    if expr.is_Pow:
        return is_non_negative(expr.base)
    if isinstance(expr, Max):
        return any(map(is_non_negative, expr.args))
    return bool(expr.is_Symbol or isinstance(expr, Atom))
