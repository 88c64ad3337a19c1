"""What a parsed expression becomes in a program: its instructions.

A condition becomes a number, its slack, which is not negative exactly where the condition holds. A comparison that
excludes equality is `ceil(x) - 1`: at least 0 for every x above 0, at most -1 for every other.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Protocol

from .grammar import fold

if TYPE_CHECKING:
    from .grammar import Node


class Emitter(Protocol):
    """What appends instructions to a program."""

    def constant(self, value: float) -> int:
        """The position of a constant."""

    def emit(self, operation: str, *operands: int) -> int:
        """The position of an operation's result."""

    def named(self, name: str) -> int:
        """The position of the value of a name."""


def emit(node: Node, to: Emitter) -> int:
    """Append the instructions of an expression.

    Returns:
        The position of its value; of a condition, of its slack.
    """
    zero, one = to.constant(0), to.constant(1)

    def less(a: int, b: int) -> int:
        return to.emit("subtract", a, b)

    def ceil_div(a: int, b: int) -> int:
        return to.emit("ceil_div", a, b)

    def floor(a: int, b: int = one) -> int:
        return less(zero, ceil_div(less(zero, a), b))

    def positive(a: int) -> int:
        return less(ceil_div(a, one), one)

    def power(base: int, exponent: float) -> int:
        if exponent < 0:
            return to.emit("divide", one, power(base, -exponent))
        if exponent == 0.5:
            return to.emit("sqrt", base)
        if exponent % 1 or not 1 <= exponent <= 8:
            return to.emit("power", base, to.constant(float(exponent)))
        return reduce(lambda found, factor: to.emit("multiply", found, factor), [base] * int(exponent))

    found: int = fold(
        node,
        {
            "number": to.constant,
            "name": to.named,
            **{name: lambda *parts, name=name: to.emit(name, *parts) for name in ("add", "multiply", "divide")},
            **{
                name: lambda *parts, name=name: reduce(lambda a, b: to.emit(name, a, b), parts)
                for name in ("min", "max")
            },
            "subtract": less,
            "floor_divide": floor,
            "remainder": lambda a, b: less(a, to.emit("multiply", floor(a, b), b)),
            "power": power,
            "negate": lambda a: less(zero, a),
            "ceil": lambda a: ceil_div(a, one),
            "floor": floor,
            "<=": lambda a, b: less(b, a),
            ">=": less,
            "==": lambda a, b: to.emit("min", less(a, b), less(b, a)),
            "!=": lambda a, b: positive(to.emit("max", less(a, b), less(b, a))),
            "<": lambda a, b: positive(less(b, a)),
            ">": lambda a, b: positive(less(a, b)),
            "not": lambda a: positive(less(zero, a)),
            "and": lambda parts: to.emit("min", *parts),
            "or": lambda parts: to.emit("max", *parts),
        },
    )
    return found
