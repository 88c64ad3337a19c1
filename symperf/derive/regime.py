"""What is active at one point: the winner of every maximum, and every switch, zero and rounding as the point has it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import sympy

from ..formulas.language.atoms import Max, Min, above_one, bubble, ceil_div, complement, less_one, ring_share
from ..formulas.language.symbols import SYMBOLS
from . import monomials as mono
from .numeric import definition, fold, parts_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Container, Iterable, Mapping

    from .numeric import Values

EXTREMA = (Max, Min)
MINUS = Fraction(-1)
RATES = frozenset(entry.symbol for entry in SYMBOLS.values() if entry.resource is not None)
"""Rates and latencies, of which no count is made."""
Step = tuple[bool, Any]
"""A node, and whether it was made tidy or else a sum."""


@dataclass(frozen=True)
class Choice:
    """One condition of the regime: a part of the closed form that was replaced by what it is equal to at the point.

    It holds at other values where the two are equal there, whatever the kind.

    Attributes:
        kind: "max" or "min" (the active branch wins), "present" (a count is above 1, or is 1), "vanishes" (a part is
            0, or a fraction takes nothing away), "fits" (one bin holds the amount), "divides" (the size divides the
            amount), "rounding" (rounding up adds this factor, or gives this number) or "equals" (a symbol is a number,
            or one of others).
        node: the part of the closed form that is replaced.
        active: what replaces it, with nothing else replaced inside.
        others: the branches of a maximum or minimum that lose; amount and size of a quotient; the count or fraction
            that decides.
    """

    kind: str
    node: Any
    active: Any
    others: tuple[Any, ...]


class RegimeRewriter:
    """Rewrites closed forms as they are at one point, and notes every choice on which a result rests.

    Args:
        values: the value of every symbol at the point, and of every part.
        free: symbols that vary: what depends on them is not made a number.
        numbers: symbols that are replaced by their values.
        relations: symbols that are a rational number times a product of powers of others, as single monomials.
        expand: counts of which one fewer is multiplied out, by what they are; none by default.
    """

    def __init__(
        self,
        values: Values,
        free: Collection[Any] = (),
        numbers: Collection[Any] = (),
        relations: Mapping[Any, mono.Sum] | None = None,
        *,
        expand: Callable[[Any], bool] = lambda _: False,
    ) -> None:
        self.values = values
        self.free, self.numbers = frozenset(free), frozenset(numbers)
        self.relations = dict(relations or {})
        self.expand = expand
        self._active: dict[Any, Any] = {}
        self._made: dict[Step, Any] = {}
        self._uses: dict[Step, tuple[Any, ...]] = {}
        self._notes: list[dict[Any, None]] = []
        self._parts: dict[Any, frozenset[Any]] = {}
        self._free_symbols: dict[Any, frozenset[Any]] = {}
        self._over_symbols: dict[Any, frozenset[Any]] = {}

    def define(self, symbol: Any, form: Any, value: float) -> None:
        """Let a symbol stand for a part: its closed form, and its value at the point."""
        self._parts[symbol] = self._symbols(form)
        self.values.define(symbol, value)

    def expanding(self, expand: Callable[[Any], bool] = lambda _: True) -> RegimeRewriter:
        """The same at the same point, which multiplies out what is one fewer than a count."""
        found = RegimeRewriter(self.values, self.free, self.numbers, self.relations, expand=expand)
        found._parts, found._free_symbols = self._parts, self._free_symbols
        return found

    def _free(self, expr: Any) -> frozenset[Any]:
        """The symbols of an expression, of each part once."""
        found: frozenset[Any] = fold(
            expr,
            self._free_symbols,
            lambda node: node.args,
            lambda node, parts: frozenset((node,)) if node.is_Symbol else frozenset().union(*parts),
        )
        return found

    def _symbols(self, form: Any) -> frozenset[Any]:
        """The symbols of an expression and of the parts in it."""
        if form not in self._over_symbols:
            found = self._free(form)
            parts = found & self._parts.keys()
            self._over_symbols[form] = frozenset().union(found - parts, *(self._parts[each] for each in parts))
        return self._over_symbols[form]

    # --- branches

    def winner(self, node: Any) -> Any:
        """The branch of a maximum or minimum that sets it; of equals the one with the fewest symbols."""
        best = self.values(node)
        equal = [arg for arg in node.args if self.values(arg) == best]
        return min(equal, key=lambda arg: (len(self._free(arg)), len(arg.args)))

    def active(self, expr: Any) -> Any:
        """The expression with every maximum and minimum replaced by its winner, all else as it is."""

        def parts(node: Any) -> Iterable[Any]:
            return (self.winner(node),) if isinstance(node, EXTREMA) else parts_of(node)

        def active(node: Any, made: list[Any]) -> Any:
            if isinstance(node, EXTREMA) or definition(node) is not None:
                return made[0]
            return node.func(*made) if made else node

        return fold(expr, self._active, parts, active)

    # --- choices

    def choices(self, expr: Any, about: Collection[Any] | None = None) -> list[Choice]:
        """The choices on which `sum_of` rests, each once.

        Args:
            expr: the expression.
            about: symbols in which it is linear: only what their coefficients rest on.
        """
        self.sum_of(expr)
        found: dict[Choice, None] = {}
        numbers: set[Any] = set()
        wanted = None if about is None else frozenset(about)
        seen: set[tuple[Step, bool]] = set()
        stack = [((False, expr), wanted is not None)]
        while stack:
            (step, narrow) = stack.pop()
            if (step, narrow) in seen:
                continue
            seen.add((step, narrow))
            _, node = step
            for use in reversed(self._uses[step]):
                if isinstance(use, Choice):
                    if self._is_numeric(use):
                        numbers |= self._symbols(use.node)
                    else:
                        found[use] = None
                elif not narrow:
                    stack.append((use, False))
                elif wanted is not None and self._free(use[1]) & wanted:
                    stack.append((use, True))
                elif not node.is_Add:  # a factor of what is asked about
                    stack.append((use, False))
        return [*found, *(self._number(symbol) for symbol in sorted(numbers, key=str))]

    def _is_numeric(self, choice: Choice) -> bool:
        """Whether a choice is of numbers alone, and so one with theirs."""
        return self._symbols(choice.node) <= self.numbers

    def rests_within(self, expr: Any, known: Container[Choice], done: dict[Step, bool]) -> bool:
        """Whether all `choices` of an expression are among those that are known.

        Args:
            expr: the expression.
            known: choices.
            done: what was found before with the same known choices; more is added.
        """
        self.sum_of(expr)
        return self._rests((False, expr), known, done)

    def _rests(self, step: Step, known: Container[Choice], done: dict[Step, bool]) -> bool:
        if step not in done:
            done[step] = all(
                self._rests(use, known, done)
                if not isinstance(use, Choice)
                else use in known
                or (self._is_numeric(use) and all(self._number(each) in known for each in self._symbols(use.node)))
                for use in self._uses[step]
            )
        return done[step]

    def _step(self, step: Step, make: Callable[[Any], Any]) -> Any:
        """What a node becomes, once, with the choices and the other steps that it rests on."""
        if step not in self._made:
            self._notes.append({})
            made = make(step[1])
            self._uses[step] = tuple(self._notes.pop())
            self._made[step] = made
        if self._notes:
            self._notes[-1][step] = None
        return self._made[step]

    def _note(self, choice: Choice) -> None:
        self._notes[-1][choice] = None

    def _number(self, symbol: Any) -> Choice:
        """That a symbol is the number that replaces it."""
        number = mono.exact_number(mono.number(self.values(symbol)))
        return Choice("equals", symbol, number, (number,))

    # --- sums of monomials

    def sum_of(self, expr: Any) -> mono.Sum:
        """The expression in the regime, as a sum of monomials."""
        found: mono.Sum = self._step((False, expr), self._sum)
        return found

    def _sum(self, node: Any) -> mono.Sum:
        if node.is_Number:
            return mono.constant(mono.number(node))
        if node.is_Symbol:
            return self._symbol(node)
        if node.is_Add:
            return mono.add(*map(self.sum_of, node.args))
        if node.is_Mul:
            return self._product(node)
        if node.is_Pow and node.exp.is_Number:
            return self._power(node.base, mono.number(node.exp))
        if isinstance(node, EXTREMA):
            return self.sum_of(self._won(node))
        return self._atom(node)

    def _won(self, node: Any) -> Any:
        winner = self.winner(node)
        others = tuple(arg for arg in node.args if arg is not winner)
        self._note(Choice("max" if isinstance(node, Max) else "min", node, winner, others))
        return winner

    def _symbol(self, symbol: Any) -> mono.Sum:
        if symbol in self.numbers:
            self._note(self._number(symbol))
            return mono.constant(mono.number(self.values(symbol)))
        related: mono.Sum | None = self.relations.get(symbol)
        if related is None:
            return mono.generator(symbol)
        whole = mono.expression(related)
        self._note(Choice("equals", symbol, whole, (whole,)))
        return related

    def _product(self, node: Any) -> mono.Sum:
        found = mono.constant(Fraction(1))
        for arg in node.args:
            factor = self.sum_of(arg)
            if not factor:  # the product rests on this factor alone
                self._notes[-1] = {(False, arg): None}
                return factor
            found = mono.multiply(found, factor)
        return found

    def _power(self, base: Any, exponent: mono.Number) -> mono.Sum:
        assert isinstance(exponent, Fraction) or exponent * 2 == int(exponent * 2)
        before = dict(self._notes[-1])
        power = mono.whole(Fraction(exponent))
        raised = mono.power(self.sum_of(base), power)
        if raised is not None:
            return raised
        self._notes[-1] = before  # what the sum rests on is not what stands here
        return mono.generator(self.tidy(base), power)

    def _over(self, over: mono.Sum, under: Any) -> mono.Sum:
        return mono.multiply(over, self._power(under, MINUS)) if over else over

    def _atom(self, node: Any) -> mono.Sum:
        if isinstance(node, above_one):
            return mono.constant(mono.number(self._switch(node)))
        opened = definition(node)
        if opened is not None:
            return self.sum_of(opened)
        if self._free(node) <= self.numbers:
            for symbol in sorted(self._free(node), key=str):
                self._note(self._number(symbol))
            return mono.constant(mono.number(self.values(node)))
        varies = bool(self._free(node) & self.free)
        expanded = isinstance(node, less_one) and self.expand(node.args[0])
        if not varies and not expanded and self.values(node) == 0:
            self._note(Choice("vanishes", node, sympy.S.Zero, node.args))
            return {}
        if isinstance(node, ceil_div):
            return self._rounded(node, varies)
        if isinstance(node, ring_share):
            return self._over(self.sum_of(less_one(node.args[0])), node.args[0])
        if isinstance(node, bubble):
            return self._over(self.sum_of(less_one(node.args[0])), node.args[1])
        if expanded:
            return mono.add(self.sum_of(node.args[0]), mono.constant(MINUS))
        if isinstance(node, complement) and not varies and self.values(node) == 1:
            self._note(Choice("vanishes", node, sympy.S.One, node.args))
            return mono.constant(Fraction(1))
        tidy = node.func(*map(self.tidy, node.args))
        return mono.constant(mono.number(tidy)) if tidy.is_Number else mono.generator(tidy)

    def _switch(self, node: Any) -> int:
        on = int(self.values(node))
        self._note(Choice("present", node, sympy.Integer(on), node.args))
        return on

    def _rounded(self, node: Any, varies: bool) -> mono.Sum:
        amount, size = node.args
        settled = self._settled(node, varies)
        if settled is not None:
            return self.sum_of(settled)
        if varies:
            return mono.generator(ceil_div(self.tidy(amount), self.tidy(size)))
        whole, part = self.values(node), (self.values(amount), self.values(size))
        if self._free(node) & RATES:  # such as the step at which two times cross
            self._note(Choice("rounding", node, sympy.Integer(int(whole)), node.args))
            return mono.constant(mono.number(whole))
        over = self._over(self.sum_of(amount), size)
        ratio = mono.number(whole) * mono.number(part[1]) / mono.number(part[0])
        self._note(Choice("rounding", node, mono.exact_number(ratio) * amount / size, node.args))
        return {monomial: (exact * ratio, smooth) for monomial, (exact, smooth) in over.items()}

    def _settled(self, node: Any, varies: bool) -> Any:
        """What a rounding is without rounding: the exact quotient, or 1 where one bin holds an amount that varies."""
        amount, size = node.args
        if varies and self.values(node) == 1:
            self._note(Choice("fits", node, sympy.S.One, node.args))
            return sympy.S.One
        if (self.values(amount) / self.values(size)).is_integer():
            self._note(Choice("divides", node, amount / size, node.args))
            return amount / size
        return None

    def tidy(self, expr: Any) -> Any:
        """An expression inside an atom that stays: winners, switches, exact quotients and numbers put in."""
        return self._step((True, expr), self._tidy)

    def _tidy(self, expr: Any) -> Any:
        if isinstance(expr, EXTREMA):
            return self.tidy(self._won(expr))
        if isinstance(expr, above_one):
            return sympy.Integer(self._switch(expr))
        if expr.is_Symbol:
            if expr not in self.numbers:
                return expr
            self._note(self._number(expr))
            return mono.exact_number(mono.number(self.values(expr)))
        if not expr.args:
            return expr
        opened = definition(expr)
        if opened is not None:
            return self.tidy(opened)
        if isinstance(expr, ceil_div):
            settled = self._settled(expr, bool(self._free(expr) & self.free))
            if settled is not None:
                return self.tidy(settled)
        return expr.func(*map(self.tidy, expr.args))
