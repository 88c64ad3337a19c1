"""The value of every part of an expression at one point, each part once."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ..formulas.language.atoms import Atom, Max, Min

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping


class Values:
    """Evaluates parts of expressions in floating point.

    Args:
        symbols: the value of every symbol.
    """

    def __init__(self, symbols: Mapping[Any, float]) -> None:
        self._known: dict[Any, float] = dict(symbols)

    def define(self, symbol: Any, value: float) -> None:
        """Give one more symbol a value."""
        self._known[symbol] = value

    def __call__(self, expr: Any) -> float:
        """The value of an expression.

        Raises:
            KeyError: a symbol without a value.
        """

        def value(node: Any, parts: list[float]) -> float:
            if node.is_Symbol:
                raise KeyError(str(node))
            return parts[0] if definition(node) is not None else _apply(node, parts)

        found: float = fold(expr, self._known, parts_of, value)
        return found


def fold(
    expr: Any, known: dict[Any, Any], parts_of: Callable[[Any], Iterable[Any]], make: Callable[[Any, list[Any]], Any]
) -> Any:
    """What an expression becomes, its parts first, each once; without recursion, since expressions are deep.

    Args:
        expr: the expression.
        known: what parts have become; more are added.
        parts_of: what has to be known before a node.
        make: what a node becomes, from its parts.
    """
    stack = [expr]
    while stack:
        node = stack[-1]
        if node in known:
            stack.pop()
            continue
        parts = tuple(parts_of(node))
        needs = [part for part in parts if part not in known]
        if needs:
            stack.extend(needs)
            continue
        stack.pop()
        known[node] = make(node, [known[part] for part in parts])
    return known[expr]


def replaced(expr: Any, known: dict[Any, Any]) -> Any:
    """An expression with parts replaced, each part once for all expressions with the same `known`; more is added."""

    def make(node: Any, parts: list[Any]) -> Any:
        same = all(part is arg for part, arg in zip(parts, node.args, strict=True))
        return node if same else node.func(*parts)

    return fold(expr, known, lambda node: node.args, make)


def parts_of(node: Any) -> Iterable[Any]:
    """The arguments of a node, or the definition of an atom that has one."""
    opened = definition(node)
    return node.args if opened is None else (opened,)


def definition(node: Any) -> Any:
    """What an atom that has no way of its own here is made of, or None."""
    if isinstance(node, Atom) and node.func.__name__ not in _ATOMS:
        return node.definition()
    return None


def _apply(node: Any, parts: list[float]) -> float:
    if node.is_Number:
        return float(node)
    if node.is_Add:
        return math.fsum(parts)
    if node.is_Mul:
        return math.prod(parts)
    if node.is_Pow:
        return math.inf if parts[0] == 0 and parts[1] < 0 else float(parts[0] ** parts[1])
    if isinstance(node, Max):
        return max(parts)
    if isinstance(node, Min):
        return min(parts)
    return float(_ATOMS[node.func.__name__](*parts))


_ATOMS: dict[str, Any] = {
    "ceil_div": lambda amount, size: float(math.ceil(amount / size)),
    "log2": math.log2,
    "ring_share": lambda ranks: (ranks - 1) / ranks,
    "bubble": lambda stages, virtual: (stages - 1) / virtual,
    "less_one": lambda count: count - 1,
    "complement": lambda fraction: 1 - fraction,
    "above_one": lambda count: 1.0 if count > 1 else 0.0,
    "fraction_power": lambda fraction, exponent: fraction**exponent,
}
"""How atoms are computed, beside `Max` and `Min`; any other by its definition."""
