"""A small, safe language for derived symbols and constraints: `devices / (tp * pp)`, `tp * pp <= 64 and fits`.

It is a part of Python's: numbers, names, `or`, `and`, `not`, comparisons (which may be chained), `+ - * / // %`,
unary `-`, `**` with a constant exponent, `min(...)`, `max(...)`, `ceil(x)`, `floor(x)` and parentheses. Python's own
parser reads the text, and what is not in these tables is refused; nothing of it is ever evaluated as code. What an
expression means is a table of operations, which `fold` applies: to numbers (`evaluate`), or to the instructions of a
program (`emit`).
"""

from __future__ import annotations

import ast
import math
import operator
import re
from dataclasses import dataclass
from functools import reduce
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NoReturn

from ..common.errors import InputError, nearest, quote

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

LONGEST = 2000
"""Characters of an expression."""
DEEPEST = 100
"""Levels of a tree."""
INNERMOST = 50
"""Levels of parentheses."""
LARGEST_EXPONENT = 64
LARGEST_POWER = 1e300

COMPARISONS = ("<=", ">=", "==", "!=", "<", ">")
FUNCTIONS = {"min": (2, 99), "max": (2, 99), "ceil": (1, 1), "floor": (1, 1)}
EXPECTED = f"numbers, names, + - * / // % **, comparisons, and, or, not, {', '.join(FUNCTIONS)}"
_WORDS = ("and", "or", "not")
_OPERATIONS: dict[type[ast.AST], str] = {
    ast.Add: "add",
    ast.Sub: "subtract",
    ast.Mult: "multiply",
    ast.Div: "divide",
    ast.FloorDiv: "floor_divide",
    ast.Mod: "remainder",
    ast.Pow: "power",
    ast.USub: "negate",
    ast.And: "and",
    ast.Or: "or",
    ast.Not: "not",
    ast.LtE: "<=",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.Gt: ">",
}
_WRITTEN = re.compile(
    r"(?:\s*(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?![\w.])|[A-Za-z_]\w*|[<>=!]=|[-+*/%()<>,]))*\s*",
    re.ASCII,
)
"""Numbers, names and signs of the language, as far as a text consists of them."""
_WORD = re.compile(r"\w[\w.]*|[<>=!]=|\*\*|//|[^ ]")


@dataclass(frozen=True)
class Node:
    """One operation of an expression.

    Attributes:
        operation: "number", "name", an arithmetic operation, a function, a comparison, "and", "or" or "not".
        parts: the operands; of "number" its value, of "name" the name, of "power" a base and a plain number.
        depth: levels below and with this one.
    """

    operation: str
    parts: tuple[Any, ...]
    depth: int = 1

    @property
    def predicate(self) -> bool:
        """Whether it is true or false, and not a number."""
        return self.operation in COMPARISONS or self.operation in _WORDS

    def names(self) -> set[str]:
        """The names that it reads."""
        if self.operation == "name":
            return {self.parts[0]}
        return set().union(*(part.names() for part in self.parts if isinstance(part, Node)))


def number(text: str, known: Collection[str], where: str) -> Node:
    """The tree of an expression whose value is a number.

    Args:
        text: the expression.
        known: names that it may use.
        where: begins the error line.

    Raises:
        InputError: it is no such expression: what was found, where, and what was expected.
    """
    node = _Reader(text, known, {}, where).whole()
    if node.predicate:
        raise InputError(f"{where}: found {quote(text)}, which is true or false, expected a number")
    return node


def predicate(text: str, known: Collection[str], where: str, named: Mapping[str, Node] | None = None) -> Node:
    """The tree of a condition; `named` are conditions that have a name of their own, such as `fits`.

    Raises:
        InputError: it is no condition: what was found, where, and what was expected.
    """
    node = _Reader(text, known, named or {}, where).whole()
    if not node.predicate:
        raise InputError(f"{where}: found {quote(text)}, which is a number, expected a condition such as tp <= 8")
    return node


class _Reader:
    """Reads one text; `text` has plain spaces only, so that the columns of Python's parser are its own."""

    def __init__(self, text: object, known: Collection[str], named: Mapping[str, Node], where: str) -> None:
        self.where, self.known, self.named = where, known, named
        if not isinstance(text, str):
            raise InputError(f"{where}: found {quote(text)}, expected an expression as text")
        if len(text) > LONGEST:
            raise InputError(f"{where}: an expression of {len(text)} characters, expected at most {LONGEST}")
        self.told, self.text = quote(text), re.sub(r"\s", " ", text, flags=re.ASCII).rstrip(" ")

    def whole(self) -> Node:
        """The tree of the text: refused before it is parsed where a parser might take long or stumble."""
        plain = _WRITTEN.match(self.text)
        if plain is None or plain.end() < len(self.text):
            self.refuse(plain.end() if plain else 0)
        levels = list(accumulate(((sign == "(") - (sign == ")") for sign in self.text), initial=0))
        if max(levels) > INNERMOST:
            raise InputError(f"{self.where}: {self.told} is nested deeper than {INNERMOST} levels")
        if min(levels) < 0:
            self.refuse(levels.index(-1) - 1)
        if levels[-1]:
            self.refuse(len(self.text), expected="')'")
        try:  # in parentheses, so that blanks before it are no indentation, and columns count from 1
            return self.node(ast.parse(f"({self.text})", mode="eval").body)
        except SyntaxError as error:
            self.refuse((error.offset or 2) - 2, (error.end_offset or 2) - 2)
        except (RecursionError, MemoryError):
            raise InputError(f"{self.where}: {self.told} is nested deeper than {DEEPEST} levels") from None

    def refuse(self, start: int, end: int = 0, expected: str = EXPECTED) -> NoReturn:
        """Say what was found from a position to `end`, or else the word there."""
        word = _WORD.search(self.text, max(start, 0))
        place = "the end"
        if word:
            found = self.text[word.start() : max(end, word.end())]
            place = f"{quote(found.rstrip() or found)} at column {word.start() + 1}"
        raise InputError(f"{self.where}: found {place} of {self.told}, expected {expected}")

    def node(self, part: ast.expr) -> Node:
        """The tree of a part of Python's, if the language has it."""
        match part:
            case ast.Constant(value=int() | float()) if not isinstance(part.value, bool):
                return self.literal(part)
            case ast.Name(id=name):
                return self.name(name)
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return self.node(operand)
            case ast.UnaryOp(op=op, operand=operand) if type(op) in _OPERATIONS:
                return self.make(_OPERATIONS[type(op)], self.node(operand))
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATIONS:
                return self.make(_OPERATIONS[type(op)], self.node(left), self.node(right))
            case ast.BoolOp(op=op, values=values):
                return self.joined(_OPERATIONS[type(op)], [self.node(value) for value in values])
            case ast.Compare(left=left, ops=ops, comparators=others) if all(type(op) in _OPERATIONS for op in ops):
                sides = [self.node(left), *map(self.node, others)]
                pairs = zip(ops, sides, sides[1:], strict=False)
                return self.joined("and", [self.make(_OPERATIONS[type(op)], a, b) for op, a, b in pairs])
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
                return self.call(part, name, arguments)
        return self.refuse(*_span(part))

    def joined(self, operation: str, parts: list[Node]) -> Node:
        return reduce(lambda left, right: self.make(operation, left, right), parts)

    def literal(self, part: ast.Constant) -> Node:
        start, end = _span(part)
        digits = self.text[start:end].lower().partition("e")[0].strip("0.")
        value: int | float = part.value  # type: ignore[assignment]
        if value >= LARGEST_POWER or (digits and not value):
            self.refuse(start, end, f"a number below {LARGEST_POWER:.0e} that is not lost as a float")
        return Node("number", (value,))

    def name(self, name: str) -> Node:
        if name in self.named:
            return self.named[name]
        if name not in self.known:
            hint = nearest(name, [*self.known, *self.named])
            raise InputError(f"{self.where}: unknown name {quote(name)} in {self.told}{hint}")
        return Node("name", (name,))

    def call(self, part: ast.Call, name: str, arguments: list[ast.expr]) -> Node:
        if name not in FUNCTIONS:
            self.refuse(_span(part)[0], expected=f"one of the functions {', '.join(FUNCTIONS)}")
        least, most = FUNCTIONS[name]
        if not least <= len(arguments) <= most:
            many = "1 argument" if most == 1 else f"{least} arguments or more"
            raise InputError(f"{self.where}: {name} of {len(arguments)} in {self.told}, expected {many}")
        return self.make(name, *map(self.node, arguments))

    def make(self, operation: str, *parts: Node) -> Node:
        depth = 1 + max(part.depth for part in parts)
        if depth > DEEPEST:
            raise RecursionError
        wants = operation in _WORDS
        if any(part.predicate is not wants for part in parts):
            kind = ("a condition", "a number") if wants else ("a number", "a condition")
            raise InputError(f"{self.where}: {operation} in {self.told} needs {kind[0]}, found {kind[1]}")
        return Node(operation, (parts[0], self.exponent(*parts)) if operation == "power" else parts, depth)

    def exponent(self, base: Node, exponent: Node) -> float:
        """The number that an exponent is, if the power is one that a float holds."""
        if exponent.names():
            raise InputError(f"{self.where}: an exponent in {self.told} holds a name, expected a number")
        power = _constant(exponent)
        if not abs(power) <= LARGEST_EXPONENT:
            raise InputError(f"{self.where}: an exponent in {self.told} is beyond {LARGEST_EXPONENT}")
        if base.names():
            return power
        value = float(_constant(base))
        if value == 0 or not (abs(value) == 1 or abs(power * math.log10(abs(value))) <= math.log10(LARGEST_POWER)):
            raise InputError(f"{self.where}: a power in {self.told} is beyond {LARGEST_POWER:.0e}")
        if value < 0 and power % 1:
            raise InputError(f"{self.where}: a root of a negative number in {self.told}")
        return power


def _span(part: ast.expr) -> tuple[int, int]:
    """Where a part begins and ends in a text that was parsed in parentheses."""
    return part.col_offset - 1, (part.end_col_offset or 0) - 1


def _constant(node: Node) -> float:
    """The value of an expression without names; not a number where it has none that a float holds."""
    try:
        value: float = evaluate(node, {})
        return value if math.isfinite(float(value)) else math.nan
    except (OverflowError, ZeroDivisionError, ValueError):
        return math.nan


def fold(node: Node, table: Mapping[str, Any]) -> Any:
    """What an expression is under a table of operations.

    Args:
        node: the tree.
        table: a function for every operation that may occur, of its operands; those of "and" and "or" take one
            iterable of them, and what they do not ask for is not worked out.
    """
    parts = (fold(part, table) if isinstance(part, Node) else part for part in node.parts)
    operation = table[node.operation]
    return operation(parts) if node.operation in ("and", "or") else operation(*parts)


def evaluate(node: Node, values: Mapping[str, Any]) -> Any:
    """The value at numbers: exact for whole ones, except quotients; a bool for a condition.

    Raises:
        KeyError: a name without a value.
        ZeroDivisionError: a divisor is zero.
    """
    return function_of(node)(values)


def function_of(node: Node) -> Callable[[Mapping[str, Any]], Any]:
    """An expression as a function of its names' values, for one that is evaluated often; see `evaluate`."""
    if node.operation == "name":
        return operator.itemgetter(node.parts[0])
    inner = [function_of(part) if isinstance(part, Node) else _constantly(part) for part in node.parts]
    if node.operation == "number":
        return inner[0]
    if node.operation in ("and", "or"):
        return _joined(inner, stop=node.operation == "or")
    operation = _SCALAR[node.operation]
    if len(inner) == 1:
        (only,) = inner
        return lambda values: operation(only(values))
    if len(inner) == 2:
        first, second = inner
        return lambda values: operation(first(values), second(values))
    return lambda values: operation(*(part(values) for part in inner))


def _constantly(value: Any) -> Callable[[Mapping[str, Any]], Any]:
    return lambda _: value


def _joined(parts: Sequence[Callable[[Mapping[str, Any]], Any]], *, stop: bool) -> Callable[[Mapping[str, Any]], bool]:
    """A function that asks its parts in order until one is what stops it."""

    def found(values: Mapping[str, Any]) -> bool:
        for part in parts:  # a loop: a generator costs more than most parts
            if bool(part(values)) is stop:
                return stop
        return not stop

    return found


_SCALAR: dict[str, Any] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "floor_divide": operator.floordiv,
    "remainder": operator.mod,
    "power": operator.pow,
    "negate": operator.neg,
    "min": min,
    "max": max,
    "ceil": math.ceil,
    "floor": math.floor,
    "<=": operator.le,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
    "not": operator.not_,
}
