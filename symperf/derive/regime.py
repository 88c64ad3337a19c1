"""What is active at one point: the winner of every maximum, and every switch and rounding as the point has it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import sympy

from ..formulas.language.atoms import Max, Min, above_one, bubble, ceil_div, complement, less_one, ring_share
from . import monomials as mono
from .numeric import definition, fold, parts_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from .numeric import Values

EXTREMA = (Max, Min)


@dataclass(frozen=True)
class Choice:
    """One condition of the regime.

    Attributes:
        kind: "max" or "min" (the active branch wins), "present" (a count is above 1, or is 1), "fits" (one bin holds
            the amount) or "divides" (the size divides the amount).
        node: the part of the closed form that is replaced.
        active: what replaces it.
        others: the branches of a maximum or minimum that lose; amount and size of the last two kinds.
    """

    kind: str
    node: Any
    active: Any
    others: tuple[Any, ...]


class RegimeRewriter:
    """Rewrites closed forms as they are at one point.

    Args:
        values: the value of every symbol at the point, and of every part.
        free: symbols that vary: what depends on them is not made a number.
        numbers: symbols that are replaced by their values.
        relations: symbols that are a rational number times a product of powers of others, as single monomials.
        expand: multiply out what is one fewer than a count, for counts that are not free of symbols.
    """

    def __init__(
        self,
        values: Values,
        free: Collection[Any] = (),
        numbers: Collection[Any] = (),
        relations: Mapping[Any, mono.Sum] | None = None,
        *,
        expand: bool = False,
    ) -> None:
        self.values = values
        self.free, self.numbers = frozenset(free), frozenset(numbers)
        self.relations = dict(relations or {})
        self.expand = expand
        self._sums: dict[Any, mono.Sum] = {}
        self._active: dict[Any, Any] = {}
        self._choices: dict[Any, Choice] = {}

    # --- branches

    def winner(self, node: Any) -> Any:
        """The branch of a maximum or minimum that sets it; of equals the one with the fewest symbols."""
        best = self.values(node)
        equal = [arg for arg in node.args if self.values(arg) == best]
        return min(equal, key=lambda arg: (len(arg.free_symbols), len(arg.args)))

    def active(self, expr: Any) -> Any:
        """The expression with every maximum and minimum replaced by its winner, all else as it is."""

        def parts(node: Any) -> Iterable[Any]:
            return (self.winner(node),) if isinstance(node, EXTREMA) else parts_of(node)

        def active(node: Any, made: list[Any]) -> Any:
            if isinstance(node, EXTREMA) or definition(node) is not None:
                return made[0]
            return node.func(*made) if made else node

        return fold(expr, self._active, parts, active)

    def choices(self, expr: Any) -> list[Choice]:
        """The conditions under which the rewritten expression equals the expression itself, each once."""
        found: dict[Any, Choice] = {}
        seen = set()
        stack = [expr]
        while stack:
            node = stack.pop()
            if node in seen:
                continue
            seen.add(node)
            if isinstance(node, EXTREMA):
                winner = self.winner(node)
                others = tuple(arg for arg in node.args if arg is not winner)
                found[node] = Choice("max" if isinstance(node, Max) else "min", node, winner, others)
                stack.append(winner)
                continue
            if node in self._choices:
                found[node] = self._choices[node]
            opened = definition(node)
            stack.extend(node.args if opened is None else (opened,))
        return list(found.values())

    # --- sums of monomials

    def sum_of(self, expr: Any) -> mono.Sum:
        """The expression in the regime, as a sum of monomials."""
        if expr not in self._sums:
            self._sums[expr] = self._sum(expr)
        return self._sums[expr]

    def _sum(self, node: Any) -> mono.Sum:
        if node.is_Number:
            return mono.constant(mono.number(node))
        if node.is_Symbol:
            return self._symbol(node)
        if node.is_Add:
            return mono.add(*map(self.sum_of, node.args))
        if node.is_Mul:
            found = mono.constant(Fraction(1))
            for arg in node.args:
                found = mono.multiply(found, self.sum_of(arg)) if found else found
            return found
        if node.is_Pow and node.exp.is_Number:
            return self._power(node.base, mono.number(node.exp))
        if isinstance(node, EXTREMA):
            return self.sum_of(self.winner(node))
        return self._atom(node)

    def _symbol(self, symbol: Any) -> mono.Sum:
        if symbol in self.numbers:
            return mono.constant(mono.number(self.values(symbol)))
        return self.relations.get(symbol) or mono.generator(symbol)

    def _power(self, base: Any, exponent: mono.Number) -> mono.Sum:
        assert isinstance(exponent, Fraction) or exponent * 2 == int(exponent * 2)
        raised = mono.power(self.sum_of(base), Fraction(exponent))
        return mono.generator(self.tidy(base), Fraction(exponent)) if raised is None else raised

    def _over(self, over: mono.Sum, under: Any) -> mono.Sum:
        return mono.multiply(over, self._power(under, Fraction(-1))) if over else over

    def _atom(self, node: Any) -> mono.Sum:
        if isinstance(node, above_one):
            return mono.constant(mono.number(self._switch(node)))
        opened = definition(node)
        if opened is not None:
            return self.sum_of(opened)
        varies = bool(node.free_symbols & self.free)
        if node.free_symbols <= self.numbers or (not varies and self.values(node) == 0):
            return mono.constant(mono.number(self.values(node)))
        if isinstance(node, ceil_div):
            return self._rounded(node, varies)
        if isinstance(node, ring_share):
            return self._over(self.sum_of(less_one(node.args[0])), node.args[0])
        if isinstance(node, bubble):
            return self._over(self.sum_of(less_one(node.args[0])), node.args[1])
        if isinstance(node, less_one) and self.expand:
            return mono.add(self.sum_of(node.args[0]), mono.constant(Fraction(-1)))
        if isinstance(node, complement) and not varies and self.values(node) == 1:
            return mono.constant(Fraction(1))
        tidy = node.func(*map(self.tidy, node.args))
        return mono.constant(mono.number(tidy)) if tidy.is_Number else mono.generator(tidy)

    def _switch(self, node: Any) -> int:
        on = int(self.values(node))
        self._choices[node] = Choice("present", node, sympy.Integer(on), node.args)
        return on

    def _rounded(self, node: Any, varies: bool) -> mono.Sum:
        amount, size = node.args
        settled = self._settled(node, varies)
        if settled is not None:
            return self.sum_of(settled)
        over = None if varies else self._over(self.sum_of(amount), size)
        if over is None:
            return mono.generator(ceil_div(self.tidy(amount), self.tidy(size)))
        whole, part = self.values(node), (self.values(amount), self.values(size))
        ratio = mono.number(whole) * mono.number(part[1]) / mono.number(part[0])
        return {monomial: (exact * ratio, smooth) for monomial, (exact, smooth) in over.items()}

    def _settled(self, node: Any, varies: bool) -> Any:
        """What a rounding is without rounding: the exact quotient, or 1 where one bin holds an amount that varies."""
        amount, size = node.args
        if varies and self.values(node) == 1:
            self._choices[node] = Choice("fits", node, sympy.S.One, node.args)
            return sympy.S.One
        if size == 1 or (self.values(amount) / self.values(size)).is_integer():
            if size != 1:
                self._choices[node] = Choice("divides", node, amount / size, node.args)
            return amount / size
        return None

    def tidy(self, expr: Any) -> Any:
        """An expression inside an atom that stays: winners, switches, exact quotients and numbers put in."""
        if isinstance(expr, EXTREMA):
            return self.tidy(self.winner(expr))
        if isinstance(expr, above_one):
            return sympy.Integer(self._switch(expr))
        if expr.is_Symbol:
            return mono.exact_number(mono.number(self.values(expr))) if expr in self.numbers else expr
        if not expr.args:
            return expr
        opened = definition(expr)
        if opened is not None:
            return self.tidy(opened)
        if isinstance(expr, ceil_div):
            settled = self._settled(expr, bool(expr.free_symbols & self.free))
            if settled is not None:
                return self.tidy(settled)
        return expr.func(*map(self.tidy, expr.args))
