"""From SymPy to a `Program`, once: sharing, true division, subtraction, small powers, and atoms kept whole.

SymPy stores `a/b` as `a*b**-1`. Negative powers are gathered into one true division, so that quotients of integers
that divide exactly stay exact. A function is known by its class attribute `operation`; one that is not an operation
of `Program` is expanded by its `definition()`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sympy

from .program import JUMPS, OPERATIONS, Program
from .replacement import Replacement

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class LoweringError(TypeError):
    """An expression holds a head that no back end knows."""


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
        share: look for common factors and common terms first, which saves a fifth of the operations of a large program
            for a tenth of a second. Values may then differ in the last place from those of an output lowered alone.
            What a `ceil_div` or a `above_one` reads is left as it is written.
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
    symbols, formulas = [], []
    for symbol, expr in definitions:
        symbols.append(symbol)
        formulas.append(sympy.sympify(expr, strict=True))
    formulas += [sympy.sympify(expr, strict=True) for expr in outputs.values()]
    if stand_for:
        stand_in = Replacement(stand_for)
        formulas = [stand_in(formula) for formula in formulas]
    builder = _Builder()
    if share:
        builder.shared, formulas = _share(formulas)
    for symbol, expr in zip(symbols, formulas, strict=False):
        builder.define(symbol, expr)
    for name, expr in zip(outputs, formulas[len(symbols) :], strict=True):
        builder.program.outputs[name] = builder.visit(expr, name)
    return builder.program


def _share(formulas: list[Any]) -> tuple[dict[Any, Any], list[Any]]:
    """Formulas in terms of new symbols, and what the symbols stand for."""
    # 1. What jumps, whole and with all that it reads, becomes a symbol: sharing inside it could round its operands
    #    differently, and a `ceil_div` would then be off by one.
    jumps: dict[Any, Any] = {}
    seen = set()
    stack = formulas[::-1]
    while stack:  # SymPy's own traversal visits the arguments of a maximum in the order of their hashes, which vary
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        if getattr(node, "operation", None) in JUMPS:
            jumps[node] = sympy.Symbol(f"%jump{len(jumps)}")
        else:
            stack.extend(reversed(node.args))
    # 2. SymPy finds the common factors and terms of the rest.
    without_jumps = Replacement(jumps)
    smooth = [without_jumps(formula) for formula in formulas]
    parts, smooth = sympy.cse(smooth, symbols=sympy.numbered_symbols("%part"), order="none")
    shared = {symbol: atom for atom, symbol in jumps.items()}
    # 3. With a shared 1/x, a/x would be a product, and not exact where x divides a. Such parts are written back where
    #    they are used, so that each product finds all its divisors and divides once.
    written_back = Replacement({})
    for symbol, part in parts:
        whole = written_back(part)
        (written_back.known if _is_divisor(whole) else shared)[symbol] = whole
    return shared, [written_back(formula) for formula in smooth]


class _Builder:
    def __init__(self) -> None:
        self.program = Program()
        self.known: dict[Any, int] = {}
        self.done: dict[Any, int] = {}
        self.shared: dict[Any, Any] = {}

    def define(self, symbol: Any, expr: Any) -> None:
        name = str(symbol)
        value = self.visit(expr, name)
        self.program.instructions.append(("let", value))
        position = len(self.program) - 1
        self.program.lets[name] = position
        self.done[symbol] = position

    def visit(self, expr: Any, where: str) -> int:
        """The position of an expression, its parts first; by a stack, as trees are too deep for recursion."""
        expr = sympy.sympify(expr, strict=True)
        stack = [expr]
        while stack:
            node = stack[-1]
            if node in self.done:
                stack.pop()
                continue
            needs = [child for child in self.children(node, where) if child not in self.done]
            if needs:
                stack.extend(reversed(needs))
            else:
                stack.pop()
                self.done[node] = self.build(node)
        return self.done[expr]

    def children(self, node: Any, where: str) -> tuple[Any, ...]:
        if node in self.shared:
            return (self.shared[node],)
        if node.is_Number or node.is_Symbol:
            return ()
        if node.is_Add:
            return tuple(-term if _is_negative(term) else term for term in node.args)
        if node.is_Mul:
            return tuple(f.base if _is_divisor(f) else f for f in node.args if not f.is_Rational)
        if node.is_Pow:
            if not node.exp.is_Rational:
                raise LoweringError(f"{where}: exponent {node.exp} is not a rational number")
            return (node.base,)
        if getattr(node, "operation", None) in OPERATIONS:
            return tuple(node.args)
        if hasattr(node, "definition"):
            return (node.definition(),)
        raise LoweringError(f"{where}: no back end knows the function {node.func.__name__}")

    def build(self, node: Any) -> int:
        if node in self.shared:
            return self.done[self.shared[node]]
        if node.is_Number:
            return self.constant(node)
        if node.is_Symbol:
            position = self.emit("input", str(node))
            self.program.inputs[str(node)] = position
            return position
        if node.is_Add:
            return self.build_sum(node)
        if node.is_Mul:
            return self.build_product(node)
        if node.is_Pow:
            return self.build_power(node)
        if getattr(node, "operation", None) in OPERATIONS:
            return self.chain(node.operation, [self.done[arg] for arg in node.args])
        return self.done[node.definition()]

    def build_sum(self, node: Any) -> int:
        total: int | None = None
        negative = []
        for term in node.args:
            if _is_negative(term):
                negative.append(self.done[-term])
            else:
                position = self.done[term]
                total = position if total is None else self.emit("add", total, position)
        if total is None:
            total = self.constant(sympy.S.Zero)
        for position in negative:
            total = self.emit("subtract", total, position)
        return total

    def build_product(self, node: Any) -> int:
        over: list[int] = []
        under: list[int] = []
        sign = 1
        for factor in node.args:
            if factor.is_Rational:
                sign = -1 if factor < 0 else 1
                if abs(factor.p) != 1:
                    over.append(self.constant(sympy.Integer(abs(factor.p))))
                if factor.q != 1:
                    under.append(self.constant(sympy.Integer(factor.q)))
            elif _is_divisor(factor):
                under.append(self.power(self.done[factor.base], -factor.exp))
            else:
                over.append(self.done[factor])
        top = self.chain("multiply", over) if over else self.constant(sympy.S.One)
        if under:
            top = self.emit("divide", top, self.chain("multiply", under))
        return top if sign > 0 else self.emit("subtract", self.constant(sympy.S.Zero), top)

    def build_power(self, node: Any) -> int:
        base = self.done[node.base]
        if node.exp < 0:
            return self.emit("divide", self.constant(sympy.S.One), self.power(base, -node.exp))
        return self.power(base, node.exp)

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


def _is_negative(term: Any) -> bool:
    if term.is_Number:
        return bool(term < 0)
    return bool(term.is_Mul and term.args[0].is_Number and term.args[0] < 0)


def _is_divisor(factor: Any) -> bool:
    return bool(factor.is_Pow and factor.exp.is_Rational and factor.exp < 0)
