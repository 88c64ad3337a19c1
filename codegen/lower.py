"""From SymPy to a `Program`, once: sharing, true division, subtraction, small powers, and atoms kept whole.

A function is known by its class attribute `operation`; one that is not an operation of `Program` is expanded by its
`definition()`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sympy

from .graph import Graph, parts_of
from .graph import LoweringError as LoweringError
from .program import OPERATIONS, Program
from .sharing import share as share_parts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def lower(
    definitions: Iterable[tuple[Any, Any]],
    outputs: Mapping[str, Any],
    *,
    share: bool = False,
    stand_for: Mapping[Any, Any] | None = None,
) -> Program:
    """Compile expressions into one program.

    Args:
        definitions: (symbol, expression) in order; later expressions and outputs may use the symbol. Each becomes a
            `let` of its own, which sharing never merges.
        outputs: expressions by name.
        share: look for common factors and common terms first, which saves a fifth of the operations of a large program.
            Values may then differ in the last place from those of an output lowered alone. What a `ceil_div` or a
            `above_one` reads is left as it is written.
        stand_for: what stands for some parts of all expressions.

    Returns:
        The program; every symbol that is not defined is an input, by its name.

    Raises:
        LoweringError: an expression holds an unknown function, naming it and the output.

    >>> x, y = sympy.symbols("x y")
    >>> print(lower([], {"z": x / y + 2}).text())
    %0 = constant 2
    %1 = input x
    %2 = input y
    %3 = divide %1 %2
    %4 = add %0 %3  ; z
    """
    graph = Graph(stand_for)
    lets = [
        (graph.node("symbol", symbol), str(symbol), _root(graph, expr, str(symbol))) for symbol, expr in definitions
    ]
    roots = [(name, _root(graph, expr, name)) for name, expr in outputs.items()]
    if share:
        share_parts(graph)
    writer = _Writer(graph)
    for symbol, name, root in lets:
        writer.define(symbol, name, root)
    for name, root in roots:
        writer.program.outputs[name] = writer.write(root)
    return writer.program


def _root(graph: Graph, expr: Any, where: str) -> int:
    return graph.add(sympy.sympify(expr, strict=True), where)


class _Writer:
    """Writes nodes of a graph as instructions, each once."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.program = Program()
        self.known: dict[Any, int] = {}
        self.done: dict[int, int] = {}

    def define(self, symbol: int, name: str, root: int) -> None:
        self.program.instructions.append(("let", self.write(root)))
        self.done[symbol] = self.program.lets[name] = len(self.program) - 1

    def write(self, root: int) -> int:
        """The position of a node, its parts first; by a stack, as graphs are too deep for recursion."""
        nodes, done = self.graph.nodes, self.done
        stack = [root]
        while stack:
            at = stack[-1]
            if at in done:
                stack.pop()
                continue
            needs = [part for part in parts_of(nodes[at]) if part not in done]
            if needs:
                stack.extend(reversed(needs))
            else:
                stack.pop()
                done[at] = self.build(*nodes[at])
        return done[root]

    def build(self, kind: str, *parts: Any) -> int:
        match kind:
            case "number":
                return self.constant(parts[0])
            case "symbol":
                name = str(parts[0])
                self.program.inputs[name] = position = self.emit("input", name)
                return position
            case "negative":
                return self.emit("subtract", self.constant(sympy.S.Zero), self.done[parts[0]])
            case "sum":
                return self.build_sum(parts[0])
            case "product":
                return self.build_product(parts[0])
            case "raised":
                return self.power(self.done[parts[0]], parts[1])
        return self.chain(kind, [self.done[part] for part in parts])

    def build_sum(self, terms: tuple[int, ...]) -> int:
        added = [self.done[term >> 1] for term in terms if term % 2 == 0]
        total = self.chain("add", added) if added else self.constant(sympy.S.Zero)
        for term in terms:
            if term % 2:
                total = self.emit("subtract", total, self.done[term >> 1])
        return total

    def build_product(self, factors: tuple[int, ...]) -> int:
        over = [self.done[factor >> 1] for factor in factors if factor % 2 == 0]
        under = [self.done[factor >> 1] for factor in factors if factor % 2]
        top = self.chain("multiply", over) if over else self.constant(sympy.S.One)
        return self.emit("divide", top, self.chain("multiply", under)) if under else top

    def power(self, base: int, exponent: Any) -> int:
        whole, half = divmod(exponent, 1)
        if whole > 8 or half not in (0, sympy.Rational(1, 2)):
            return self.emit("power", base, self.constant(exponent))
        parts = [base] * int(whole) + ([self.emit("sqrt", base)] if half else [])
        return self.chain("multiply", parts)

    def chain(self, operation: str, operands: list[int]) -> int:
        if OPERATIONS[operation] == 1 or operation == "ceil_div":
            return self.emit(operation, *operands)
        result = operands[0]
        for operand in operands[1:]:
            result = self.emit(operation, result, operand)
        return result

    def constant(self, number: Any) -> int:
        if number.is_Rational and not number.is_Integer:  # exact in every arithmetic
            return self.emit("divide", self.emit("constant", int(number.p)), self.emit("constant", int(number.q)))
        return self.emit("constant", int(number) if number.is_Integer else float(number))

    def emit(self, operation: str, *operands: Any) -> int:
        key = (operation, *operands)
        if key not in self.known:
            self.program.instructions.append(key)
            self.known[key] = len(self.program) - 1
        return self.known[key]
