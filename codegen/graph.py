"""Expressions as a graph of numbered nodes, each part once: between SymPy and a `Program`.

SymPy stores `a/b` as `a*b**-1` and `a - b` as `a + -1*b`. Here negative powers are divisors of a product, and negative
terms are subtracted, so that quotients of integers that divide exactly stay exact.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sympy

from .program import OPERATIONS

if TYPE_CHECKING:
    from collections.abc import Mapping

Node = tuple[Any, ...]
"""One of

    ("number", n)                     a number of SymPy
    ("symbol", s)
    ("negative", at)
    ("sum", terms)                    a term is 2 at, or 2 at + 1 where it is subtracted
    ("product", factors)              a factor is 2 at, or 2 at + 1 where it divides
    ("raised", at, exponent)          a rational exponent above zero
    (operation, at, ...)              an operation of `Program`

where `at` is the number of another node.
"""


class LoweringError(TypeError):
    """An expression holds a head that no back end knows."""


class Graph:
    """Nodes of expressions, by number; equal nodes are one.

    Args:
        stand_for: what stands for some parts of all expressions.

    >>> x, y = sympy.symbols("x y")
    >>> graph = Graph()
    >>> root = graph.add(x / y, "z")
    >>> for number, node in enumerate(graph.nodes):
    ...     print(number, *node)
    0 symbol x
    1 symbol y
    2 product (0, 3)
    """

    def __init__(self, stand_for: Mapping[Any, Any] | None = None) -> None:
        self.nodes: list[Node] = []
        self.stand_for = stand_for or {}
        self._known: dict[Node, int] = {}
        self._placed: dict[Any, int] = {}

    def add(self, expr: Any, where: str) -> int:
        """The number of an expression; its parts come first, by a stack, as trees are too deep for recursion.

        Raises:
            LoweringError: it holds an unknown function, naming it and `where`.
        """
        placed = self._placed
        stack = [expr]
        while stack:
            part = stack[-1]
            if part in placed:
                stack.pop()
                continue
            read = self._read(part, where)
            needs = [child for child in read if child not in placed]
            if needs:
                stack.extend(reversed(needs))
            else:
                stack.pop()
                placed[part] = self._place(part, [placed[child] for child in read])
        return placed[expr]

    def node(self, *key: Any) -> int:
        """The number of a node, new or known."""
        at = self._known.get(key)
        if at is None:
            at = self._known[key] = len(self.nodes)
            self.nodes.append(key)
        return at

    def is_one(self, at: int) -> bool:
        """Whether a node is the number 1."""
        return self.nodes[at] == ("number", sympy.S.One)

    def _read(self, part: Any, where: str) -> tuple[Any, ...]:
        """What must be placed before a part: of factors and powers with an exponent, the base."""
        if part in self.stand_for:
            return (sympy.sympify(self.stand_for[part], strict=True),)
        if part.is_Number or part.is_Symbol:
            return ()
        if part.is_Add:
            return tuple(part.args)
        if part.is_Mul:
            return tuple(f.base if _divides(f) else f for f in part.args if not f.is_Rational)
        if part.is_Pow:
            if not part.exp.is_Rational:
                raise LoweringError(f"{where}: exponent {part.exp} is not a rational number")
            return (part.base,)
        if getattr(part, "operation", None) in OPERATIONS:
            return tuple(part.args)
        if hasattr(part, "definition"):
            return (part.definition(),)
        raise LoweringError(f"{where}: no back end knows the function {part.func.__name__}")

    def _place(self, part: Any, read: list[int]) -> int:
        if part in self.stand_for:
            return read[0]
        if part.is_Number:
            return self._number(part)
        if part.is_Symbol:
            return self.node("symbol", part)
        if part.is_Add:
            return self._sum(read)
        if part.is_Mul:
            return self._product(part, read)
        if part.is_Pow:
            return self._power(read[0], part.exp)
        if getattr(part, "operation", None) in OPERATIONS:
            return self.node(part.operation, *read)
        return read[0]

    def _number(self, number: Any) -> int:
        return self.node("number", number)

    def _sum(self, read: list[int]) -> int:
        terms: list[int] = []
        for at in read:
            node = self.nodes[at]
            if node[0] == "sum":  # of what a unit multiplied
                terms += node[1]
            elif node[0] == "negative":
                terms.append(2 * node[1] + 1)
            elif node[0] == "number" and node[1] < 0:
                terms.append(2 * self._number(-node[1]) + 1)
            else:
                terms.append(2 * at)
        return self.node("sum", tuple(terms))

    def _product(self, part: Any, read: list[int]) -> int:
        factors: list[int] = []
        negative, bases = False, iter(read)
        for factor in part.args:
            if factor.is_Rational:
                negative = bool(factor < 0)
                factors += [
                    2 * self._number(sympy.Integer(abs(factor.p))),
                    2 * self._number(sympy.Integer(factor.q)) + 1,
                ]
            elif _divides(factor):
                factors.append(2 * self._power(next(bases), -factor.exp) + 1)
            else:
                factors.append(2 * next(bases))
        factors = [factor for factor in factors if not self.is_one(factor >> 1)]
        if not factors:
            at = self.node("number", sympy.S.One)
        else:
            at = factors[0] >> 1 if len(factors) == 1 and factors[0] % 2 == 0 else self.node("product", tuple(factors))
        return self.node("negative", at) if negative else at

    def _power(self, base: int, exponent: Any) -> int:
        if exponent < 0:
            return self.node("product", (2 * self._power(base, -exponent) + 1,))
        return base if exponent == 1 or self.is_one(base) else self.node("raised", base, exponent)


def parts_of(node: Node) -> list[int]:
    """The nodes that a node reads."""
    kind = node[0]
    if kind in ("number", "symbol"):
        return []
    if kind in ("sum", "product"):
        return [each >> 1 for each in node[1]]
    return [node[1]] if kind == "raised" else list(node[1:])


def _divides(factor: Any) -> bool:
    return bool(factor.is_Pow and factor.exp.is_Rational and factor.exp < 0)
