"""What a parsed expression becomes: instructions of a program, or SymPy.

A condition becomes a number, its slack, which is not negative exactly where the condition holds. A comparison that
excludes equality is `ceil(x) - 1`: at least 0 for every x above 0, at most -1 for every other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

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
    operation, parts = node.operation, node.parts
    if operation == "number":
        return to.constant(int(parts[0]) if parts[0].isdigit() else float(parts[0]))
    if operation == "name":
        return to.named(parts[0])
    if operation == "power":
        return _power(emit(parts[0], to), _value(parts[1]), to)
    return _combine(operation, [emit(part, to) for part in parts], to)


def _combine(operation: str, parts: list[int], to: Emitter) -> int:
    zero, one = to.constant(0), to.constant(1)

    def floor(a: int, b: int) -> int:
        return to.emit("subtract", zero, to.emit("ceil_div", to.emit("subtract", zero, a), b))

    def positive(a: int) -> int:
        return to.emit("subtract", to.emit("ceil_div", a, one), one)

    match operation:
        case "add" | "subtract" | "multiply" | "divide":
            return to.emit(operation, *parts)
        case "negate":
            return to.emit("subtract", zero, parts[0])
        case "floor_divide":
            return floor(*parts)
        case "remainder":
            return to.emit("subtract", parts[0], to.emit("multiply", floor(*parts), parts[1]))
        case "ceil":
            return to.emit("ceil_div", parts[0], one)
        case "floor":
            return floor(parts[0], one)
        case "min" | "max":
            found = parts[0]
            for part in parts[1:]:
                found = to.emit(operation, found, part)
            return found
        case "and":
            return to.emit("min", *parts)
        case "or":
            return to.emit("max", *parts)
        case "not":
            return positive(to.emit("subtract", zero, parts[0]))
        case ">=" | ">":
            slack = to.emit("subtract", *parts)
            return slack if operation == ">=" else positive(slack)
        case "<=" | "<":
            slack = to.emit("subtract", parts[1], parts[0])
            return slack if operation == "<=" else positive(slack)
    up, down = to.emit("subtract", *parts), to.emit("subtract", parts[1], parts[0])
    return to.emit("min", up, down) if operation == "==" else positive(to.emit("max", up, down))


def _power(base: int, exponent: float, to: Emitter) -> int:
    if exponent < 0:
        return to.emit("divide", to.constant(1), _power(base, -exponent, to))
    if exponent == 0.5:
        return to.emit("sqrt", base)
    if exponent % 1 or not 1 <= exponent <= 8:
        return to.emit("power", base, to.constant(exponent))
    found = base
    for _ in range(int(exponent) - 1):
        found = to.emit("multiply", found, base)
    return found


def _value(node: Node) -> float:
    from .grammar import evaluate

    return float(evaluate(node, {}))


def to_sympy(node: Node, symbols: Mapping[str, Any]) -> Any:
    """The expression over the cost language's atoms; a condition as a SymPy relation.

    Args:
        node: the tree.
        symbols: what each name stands for.
    """
    import sympy

    from ..formulas.language.atoms import Max, Min, ceil_div

    def floor(a: Any, b: Any) -> Any:
        return -ceil_div(-a, b)

    table: dict[str, Any] = {
        "add": lambda a, b: a + b,
        "subtract": lambda a, b: a - b,
        "multiply": lambda a, b: a * b,
        "divide": lambda a, b: a / b,
        "floor_divide": floor,
        "remainder": lambda a, b: a - floor(a, b) * b,
        "power": lambda a, b: a**b,
        "negate": lambda a: -a,
        "min": Min,
        "max": Max,
        "ceil": lambda a: ceil_div(a, sympy.S.One),
        "floor": lambda a: floor(a, sympy.S.One),
        "<=": sympy.Le,
        ">=": sympy.Ge,
        "<": sympy.Lt,
        ">": sympy.Gt,
        "==": sympy.Eq,
        "!=": sympy.Ne,
        "and": sympy.And,
        "or": sympy.Or,
        "not": sympy.Not,
    }
    if node.operation == "number":
        return sympy.Rational(node.parts[0])
    if node.operation == "name":
        return symbols[node.parts[0]]
    return table[node.operation](*(to_sympy(part, symbols) for part in node.parts))
