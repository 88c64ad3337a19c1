"""What holds whatever the values are: conditions that other conditions imply."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..formulas.language.atoms import Max, Min, bubble, ceil_div, complement, less_one, log2, ring_share
from ..formulas.language.symbols import COUNT, FRACTION, SYMBOLS
from . import monomials as mono

if TYPE_CHECKING:
    from collections.abc import Container

    from .regime import Choice, RegimeRewriter

ROUND_OFF = 1e-15
"""What two equal coefficients may differ by, of either, where they are not exact."""


class Proofs:
    """What other conditions of a regime imply.

    Args:
        regime: in which choices were made.
        known: those that are conditions.
    """

    def __init__(self, regime: RegimeRewriter, known: Container[Choice]) -> None:
        self.regime, self.known = regime, known
        self._done: dict[Any, bool] = {}

    def rests(self, expr: Any) -> bool:
        """Whether an expression is its sum of monomials wherever the known choices hold."""
        return self.regime.rests_within(expr, self.known, self._done)

    def wins_always(self, choice: Choice, other: Any) -> bool:
        """Whether the active branch of a maximum or minimum is better than another wherever the known choices hold.

        Either the closed forms themselves say so, as they do of a count and 1; or all that turns both branches into
        sums of monomials is known, and of these sums one is the other and more.
        """
        best, least = (choice.active, other) if choice.kind == "max" else (other, choice.active)
        if least.is_Number:
            return bool(least <= 0 and not_negative(best)) or bool(least <= 1 and at_least_one(best))
        if best.is_Number or not _covers(self.regime.sum_of(best), self.regime.sum_of(least)):
            return False
        return self.rests(best) and self.rests(least)

    def is_settled(self, choice: Choice) -> bool:
        """Whether what decides a switch, a zero or a quotient is the same wherever the known choices hold."""
        parts = choice.node.args
        return all(self.regime.sum_of(each).keys() <= {mono.ONE} and self.rests(each) for each in parts)


def is_whole(choice: Choice) -> bool:
    """Whether a quotient is whole by its kind: a count over 1."""
    amount, size = choice.others
    return bool(size == 1 and amount.is_Symbol and at_least_one(amount))


def _covers(best: mono.Sum, least: mono.Sum) -> bool:
    """Whether a sum is another and more: all that it lacks is below round-off, and nothing in it can be negative."""
    for monomial in best.keys() | least.keys():
        more, less = (float(each.get(monomial, (0, 0))[0]) for each in (best, least))
        if more < less - ROUND_OFF * abs(less):
            return False
        if more > less and not all(not_negative(each) for each, _ in monomial):
            return False
    return True


def not_negative(expr: Any) -> bool:
    """Whether an expression cannot be negative for any values of its symbols, as far as its parts tell.

    >>> from symperf.formulas.language.symbols import pp, sequence
    >>> not_negative(sequence * less_one(pp)), not_negative(sequence - pp)
    (True, False)
    """
    if expr.is_Number:
        return bool(expr >= 0)
    if expr.is_Symbol:
        return bool(expr.is_nonnegative)
    if expr.is_Pow:
        return not_negative(expr.base)
    if expr.is_Add or expr.is_Mul or isinstance(expr, Min):
        return all(map(not_negative, expr.args))
    if isinstance(expr, Max):
        return any(map(not_negative, expr.args))
    if isinstance(expr, less_one | log2 | ring_share | bubble):
        return at_least_one(expr.args[0]) and all(map(not_negative, expr.args))
    if isinstance(expr, ceil_div):
        return all(map(not_negative, expr.args))
    return expr.func.__name__ == "above_one" or (isinstance(expr, complement) and _at_most_one(expr.args[0]))


def at_least_one(expr: Any) -> bool:
    """Whether an expression is at least 1 for any values of its symbols, as far as its parts tell."""
    if expr.is_Number:
        return bool(expr >= 1)
    if expr.is_Symbol:
        return expr.name in SYMBOLS and SYMBOLS[expr.name].domain == COUNT
    if expr.is_Mul or isinstance(expr, Min):
        return all(map(at_least_one, expr.args))
    if expr.is_Add:
        return any(map(at_least_one, expr.args)) and all(map(not_negative, expr.args))
    if isinstance(expr, Max):
        return any(map(at_least_one, expr.args))
    return isinstance(expr, ceil_div) and all(_is_positive(each) for each in expr.args)


def _is_positive(expr: Any) -> bool:
    if expr.is_Number or expr.is_Symbol:
        return bool(expr.is_positive)
    if expr.is_Pow:
        return _is_positive(expr.base)
    return bool(expr.is_Mul and all(map(_is_positive, expr.args))) or at_least_one(expr)


def _at_most_one(expr: Any) -> bool:
    if expr.is_Symbol:
        return expr.name in SYMBOLS and SYMBOLS[expr.name].domain == FRACTION
    if isinstance(expr, Min):
        return any(each.is_Number and each <= 1 for each in expr.args)
    return bool(expr.func.__name__ == "above_one")
