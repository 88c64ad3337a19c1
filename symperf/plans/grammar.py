"""A small, safe language for derived symbols and constraints: `devices / (tp * pp)`, `tp * pp <= 64 and fits`.

A text is cut into tokens and parsed by precedence into a tree of `Node`; nothing of it is ever evaluated as code. What
a tree means is said by folds: numbers (`evaluate`), instructions of a program (`emit`), SymPy (`to_sympy`).

From loose to tight: `or`, `and`, `not`, comparisons (which may be chained), `+ -`, `* / // %`, unary `-`, `**` with a
constant exponent; `min(...)`, `max(...)`, `ceil(x)`, `floor(x)` and parentheses.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from ..common.errors import InputError, nearest, shown

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

LONGEST = 2000
"""Characters of an expression."""
DEEPEST = 100
"""Levels of a tree."""
INNERMOST = 50
"""Levels of parentheses, calls and powers."""
LARGEST_EXPONENT = 64
LARGEST_POWER = 1e300

COMPARISONS = ("<=", ">=", "==", "!=", "<", ">")
FUNCTIONS = {"min": (2, 99), "max": (2, 99), "ceil": (1, 1), "floor": (1, 1)}
_WORDS = ("and", "or", "not")
_BINARY = {
    "+": ("add", 4),
    "-": ("subtract", 4),
    "*": ("multiply", 5),
    "/": ("divide", 5),
    "//": ("floor_divide", 5),
    "%": ("remainder", 5),
    "**": ("power", 7),
}
_UNARY = 6
_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*)|(?P<sign>\*\*|//|<=|>=|==|!=|[-+*/%()<>,]))",
    re.ASCII,
)


@dataclass(frozen=True)
class Node:
    """One operation of an expression.

    Attributes:
        operation: "number", "name", an arithmetic operation, a function, a comparison, "and", "or" or "not".
        parts: the operands; of "number" its text, of "name" the name.
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
        return set().union(*(part.names() for part in self.parts)) if self.operation != "number" else set()


def number(text: str, known: Collection[str], where: str) -> Node:
    """The tree of an expression whose value is a number.

    Args:
        text: the expression.
        known: names that it may use.
        where: begins the error line.

    Raises:
        InputError: it is no such expression: what was found, where, and what was expected.
    """
    node = _Parser(text, known, {}, where).whole()
    if node.predicate:
        raise InputError(f"{where}: found {shown(text)}, which is true or false, expected a number")
    return node


def predicate(text: str, known: Collection[str], where: str, named: Mapping[str, Node] | None = None) -> Node:
    """The tree of a condition; `named` are conditions that have a name of their own, such as `fits`.

    Raises:
        InputError: it is no condition: what was found, where, and what was expected.
    """
    node = _Parser(text, known, named or {}, where).whole()
    if not node.predicate:
        raise InputError(f"{where}: found {shown(text)}, which is a number, expected a condition such as tp <= 8")
    return node


class _Parser:
    def __init__(self, text: object, known: Collection[str], named: Mapping[str, Node], where: str) -> None:
        self.where, self.known, self.named = where, known, named
        if not isinstance(text, str):
            raise InputError(f"{where}: found {shown(text)}, expected an expression as text")
        if len(text) > LONGEST:
            raise InputError(f"{where}: an expression of {len(text)} characters, expected at most {LONGEST}")
        self.text = text
        self.tokens = list(self.cut())
        self.at = 0
        self.level = 0

    def cut(self) -> Any:
        at = 0
        end = len(self.text.rstrip())
        while at < end:
            match = _TOKEN.match(self.text, at)
            if match is None:
                rest = self.text[at:].lstrip()
                column = len(self.text) - len(rest) + 1
                raise InputError(
                    f"{self.where}: found {shown(rest[0])} at column {column} of {shown(self.text)}, expected "
                    "numbers, names, + - * / // % **, comparisons, and, or, not, min, max, ceil, floor"
                )
            kind = str(match.lastgroup)
            word = match[kind]
            yield ("sign" if word in _WORDS else kind), word, match.start(kind) + 1
            at = match.end()
        yield "end", "the end", len(self.text) + 1

    @property
    def next(self) -> str:
        kind, word, _ = self.tokens[self.at]
        return word if kind == "sign" else ""

    def fail(self, expected: str) -> NoReturn:
        kind, word, column = self.tokens[self.at]
        found = "the end" if kind == "end" else f"{shown(word)} at column {column}"
        raise InputError(f"{self.where}: found {found} of {shown(self.text)}, expected {expected}")

    def take(self, word: str) -> None:
        if self.next != word:
            self.fail(shown(word))
        self.at += 1

    def whole(self) -> Node:
        node = self.disjunction()
        if self.tokens[self.at][0] != "end":
            self.fail("an operation or the end")
        return node

    def make(self, operation: str, *parts: Node) -> Node:
        depth = 1 + max(part.depth for part in parts)
        if depth > DEEPEST:
            raise InputError(f"{self.where}: {shown(self.text)} is nested deeper than {DEEPEST} levels")
        wants = operation in _WORDS
        for part in parts:
            if part.predicate is not wants:
                kind = ("a condition", "a number") if wants else ("a number", "a condition")
                raise InputError(f"{self.where}: {operation} in {shown(self.text)} needs {kind[0]}, found {kind[1]}")
        node = Node(operation, parts, depth)
        if operation == "power":
            self.check_power(node)
        return node

    def disjunction(self) -> Node:
        node = self.conjunction()
        while self.next == "or":
            self.at += 1
            node = self.make("or", node, self.conjunction())
        return node

    def conjunction(self) -> Node:
        node = self.negation()
        while self.next == "and":
            self.at += 1
            node = self.make("and", node, self.negation())
        return node

    def negation(self) -> Node:
        count = 0
        while self.next == "not":
            self.at += 1
            count += 1
        node = self.comparison()
        for _ in range(count):
            node = self.make("not", node)
        return node

    def comparison(self) -> Node:
        left = self.arithmetic(4)
        found: Node | None = None
        while self.next in COMPARISONS:
            sign = self.next
            self.at += 1
            right = self.arithmetic(4)
            pair = self.make(sign, left, right)
            found = pair if found is None else self.make("and", found, pair)
            left = right
        return left if found is None else found

    def arithmetic(self, loosest: int) -> Node:
        self.level += 1
        if self.level > INNERMOST:
            raise InputError(f"{self.where}: {shown(self.text)} is nested deeper than {INNERMOST} levels")
        signs = []
        while self.next in ("-", "+"):
            signs.append(self.next)
            self.at += 1
        if signs:
            node = self.arithmetic(_UNARY)
            for _ in range(signs.count("-")):
                node = self.make("negate", node)
        else:
            node = self.atom()
        while self.next in _BINARY and _BINARY[self.next][1] >= loosest:
            operation, level = _BINARY[self.next]
            self.at += 1
            node = self.make(operation, node, self.arithmetic(_UNARY if operation == "power" else level + 1))
        self.level -= 1
        return node

    def atom(self) -> Node:
        kind, word, _ = self.tokens[self.at]
        if kind == "number":
            value = float(word)
            vanished = value == 0 and word.lower().partition("e")[0].strip("0.")
            if vanished or not value < LARGEST_POWER:
                self.fail(f"a number below {LARGEST_POWER:.0e} that is not lost as a float")
            self.at += 1
            return Node("number", (word,))
        if kind == "name":
            if self.tokens[self.at + 1][1] == "(":
                return self.call(word)
            if word in self.named:
                self.at += 1
                return self.named[word]
            if word not in self.known:
                raise InputError(
                    f"{self.where}: unknown name {shown(word)} in {shown(self.text)}"
                    f"{nearest(word, [*self.known, *self.named])}"
                )
            self.at += 1
            return Node("name", (word,))
        if word == "(" and kind == "sign":
            self.at += 1
            node = self.disjunction()
            self.take(")")
            return node
        return self.fail("a number, a name or (")

    def call(self, name: str) -> Node:
        if name not in FUNCTIONS:
            self.fail(f"one of the functions {', '.join(FUNCTIONS)}")
        self.at += 2
        parts = [self.disjunction()]
        while self.next == ",":
            self.at += 1
            parts.append(self.disjunction())
        self.take(")")
        least, most = FUNCTIONS[name]
        if not least <= len(parts) <= most:
            many = "1 argument" if most == 1 else f"{least} arguments or more"
            raise InputError(f"{self.where}: {name} of {len(parts)} in {shown(self.text)}, expected {many}")
        return self.make(name, *parts)

    def check_power(self, node: Node) -> None:
        base, exponent = node.parts
        if exponent.names():
            raise InputError(f"{self.where}: an exponent in {shown(self.text)} holds a name, expected a number")
        power = _constant(exponent)
        if not abs(power) <= LARGEST_EXPONENT:
            raise InputError(f"{self.where}: an exponent in {shown(self.text)} is beyond {LARGEST_EXPONENT}")
        if base.names():
            return
        value = _constant(base)
        if value == 0 or not (abs(value) == 1 or abs(power * math.log10(abs(value))) <= math.log10(LARGEST_POWER)):
            raise InputError(f"{self.where}: a power in {shown(self.text)} is beyond {LARGEST_POWER:.0e}")
        if value < 0 and power % 1:
            raise InputError(f"{self.where}: a root of a negative number in {shown(self.text)}")


def _constant(node: Node) -> float:
    """The value of an expression without names, as a float; infinite or not a number where it overflows."""
    try:
        return float(_fold(node, {}, float))
    except (OverflowError, ZeroDivisionError, ValueError):
        return math.nan


def evaluate(node: Node, values: Mapping[str, Any]) -> Any:
    """The value at numbers: exact for whole ones, except quotients; a bool for a condition.

    Raises:
        KeyError: a name without a value.
        ZeroDivisionError: a divisor is zero.
    """
    return _fold(node, values, lambda text: int(text) if text.isdigit() else float(text))


def _fold(node: Node, values: Mapping[str, Any], literal: Any) -> Any:
    operation, parts = node.operation, node.parts
    if operation == "number":
        return literal(parts[0])
    if operation == "name":
        return values[parts[0]]
    if operation == "and":
        return all(_fold(part, values, literal) for part in parts)
    if operation == "or":
        return any(_fold(part, values, literal) for part in parts)
    return _SCALAR[operation](*(_fold(part, values, literal) for part in parts))


_SCALAR: dict[str, Any] = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "divide": lambda a, b: a / b,
    "floor_divide": lambda a, b: a // b,
    "remainder": lambda a, b: a % b,
    "power": lambda a, b: a**b,
    "negate": lambda a: -a,
    "min": min,
    "max": max,
    "ceil": math.ceil,
    "floor": math.floor,
    "<=": lambda a, b: a <= b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    ">": lambda a, b: a > b,
    "not": lambda a: not a,
}
