"""Closed forms inside a regime: SymPy expressions in which every maximum and minimum is its active branch.

A program is run on sums of powers of one symbol whose coefficients are SymPy expressions in the others. What is asked
for is then the zero of such a sum: of two powers, or of three as far apart as in a quadratic.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import sympy

from ..codegen.interpret import floats, run
from ..formulas.language.symbols import SYMBOLS
from .forms import FormError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .changes import Crossover
    from .subject import Subject

Powers = dict[Fraction, Any]
"""Coefficients by exponent of the symbol."""
ZERO, ONE = Fraction(0), Fraction(1)
MOST_OPERATIONS = 4000
"""A coefficient with more than these is not written out."""


def symbol_of(name: str) -> Any:
    """The symbol of the vocabulary, or a positive one of that name."""
    return SYMBOLS[name].symbol if name in SYMBOLS else sympy.Symbol(name, positive=True)


def sides_at(subject: Subject, values: list[float]) -> dict[int, int]:
    """Which operand every maximum and minimum takes at values of all instructions, and what every step is."""
    found = {}
    for at, (operation, *operands) in enumerate(subject.program.instructions):
        if operation == "max":
            found[at] = int(values[operands[0]] < values[operands[1]])
        elif operation == "min":
            found[at] = int(values[operands[0]] > values[operands[1]])
        elif operation in ("above_one", "at_least"):
            found[at] = int(values[at])
    return found


def crossing(crossover: Crossover) -> Any:
    """The value of the symbol at a crossover as an expression in the others, or nothing.

    It is the zero of the difference of the two branches of a maximum or minimum that switches there, or, where none
    does, of the difference of the shares of the two resources of which each is the largest on one side.
    """
    subject, x = crossover.cell.numbers.subject, crossover.x
    inputs = subject.values | {crossover.symbol: x}
    numbers, point = crossover.cell.numbers, crossover.cell.point
    values = [numbers.at(position, point) for position in range(len(subject.program.instructions))]
    try:
        sides = sides_at(subject, values) | crossover.cell.sides
        found = powers(subject, crossover.symbol, sides, subject.bearing)
    except FormError:
        return None
    for change in crossover.changes:
        operation, *operands = subject.program.instructions[change.before.position]
        if operation not in ("max", "min"):
            continue
        one, other = (found[operand] for operand in operands)
        if one is None or other is None:
            continue
        difference = _sum(one, other, -1)
        root = zero(difference, inputs, x)
        if root is not None:
            return root
    if crossover.bound is None:
        return None
    return zero(shares_apart(subject, crossover.symbol, found[subject.bearing], crossover.bound), inputs, x)


def shares_apart(subject: Subject, symbol: str, total: Powers, bound: tuple[str | None, str | None]) -> Powers:
    """What the output is due to one resource less what it is due to another, as a sum of powers of a symbol.

    What it is due to a resource is its derivative with respect to the logarithms of the resource's latencies and
    reciprocal rates (the breakdown of a run, for one regime).
    """
    found: Powers = {}
    for exponent, coefficient in total.items():
        if coefficient.count_ops() > MOST_OPERATIONS:
            return {}
        due = sympy.S.Zero
        for name, resource in subject.resources.items():
            if resource in bound:
                rate = symbol_of(name)
                power = sympy.Rational(exponent.numerator, exponent.denominator)
                moved = power * coefficient if name == symbol else rate * sympy.diff(coefficient, rate)
                moved = moved.xreplace({s: sympy.S.One for s in moved.free_symbols if "/" in s.name})
                due += (1 if resource == bound[0] else -1) * subject.degree(name) * moved
        if due != 0:
            found[exponent] = due
    return found


def zero(total: Powers, inputs: Mapping[str, float], x: float) -> Any:
    """Where a sum of powers is zero, near the number x; nothing where that is no short closed form.

    Args:
        total: coefficients by exponent.
        inputs: a number for every symbol of the coefficients.
        x: the value of the symbol that is solved for.
    """
    sizes = {}
    for exponent, coefficient in total.items():
        if coefficient.count_ops() > MOST_OPERATIONS:
            return None
        sizes[exponent] = evaluator(coefficient)(inputs) * x ** float(exponent)
    largest = max((abs(size) for size in sizes.values()), default=0.0)
    kept = sorted(exponent for exponent, size in sizes.items() if abs(size) > 1e-12 * largest)
    roots: list[Any] = []
    if len(kept) == 2:
        low, high = kept
        roots = [_power(-total[low] / total[high], high - low)]
    elif len(kept) == 3 and kept[2] - kept[1] == kept[1] - kept[0]:
        c, b, a = (total[exponent] for exponent in kept)
        root = sympy.sqrt(b**2 - 4 * a * c)
        roots = [_power((-b + sign * root) / (2 * a), kept[1] - kept[0]) for sign in (1, -1)]
    for candidate in roots:
        number = evaluator(candidate)(inputs)
        if math.isfinite(number) and math.isclose(number, x, rel_tol=1e-9):
            return _tidy(candidate.xreplace({s: sympy.S.One for s in candidate.free_symbols if "/" in s.name}))
    return None


def powers(subject: Subject, symbol: str, sides: Mapping[int, int], position: int | None = None) -> list[Any]:
    """Every instruction as a sum of powers of a symbol, inside a regime; nothing for one that is no such sum.

    Args:
        subject: what to run.
        symbol: the symbol whose powers are told apart.
        sides: which operand wins, of every maximum and minimum; the value of every step.
        position: what has to be such a sum; by default the output.

    Raises:
        FormError: the output divides by a sum that holds the symbol.
    """
    from ..formulas.language.atoms import ceil_div, log2

    atoms = {"ceil_div": ceil_div, "log2": log2}
    found: list[Any] = []
    for at, (operation, *operands) in enumerate(subject.program.instructions):
        if operation == "input":
            name = operands[0]
            found.append({ONE: sympy.S.One} if name == symbol else {ZERO: symbol_of(name)})
        elif operation == "constant":
            found.append({ZERO: _constant(operands[0])})
        elif operation in ("above_one", "at_least"):
            found.append({ZERO: sympy.Integer(sides[at])})
        elif operation in ("max", "min"):
            found.append(found[operands[sides[at]]])
        else:
            args = [found[operand] for operand in operands]
            found.append(None if any(arg is None for arg in args) else _compute(operation, args, atoms))
    if found[subject.position if position is None else position] is None:
        raise FormError("the quantity is no sum of powers of the symbol")
    return found


def _constant(value: float) -> Any:
    return sympy.Integer(int(value)) if value == int(value) else sympy.Float(value)


def _compute(operation: str, args: list[Powers], atoms: Mapping[str, Any]) -> Powers | None:
    match operation:
        case "let" | "stop_gradient":
            return args[0]
        case "add":
            return _sum(args[0], args[1], 1)
        case "subtract":
            return _sum(args[0], args[1], -1)
        case "multiply":
            product: Powers = {}
            for e, c in args[0].items():
                for f, d in args[1].items():
                    product[e + f] = product[e + f] + c * d if e + f in product else c * d
            return product
        case "divide" if len(args[1]) == 1:
            ((f, d), *_) = args[1].items()
            return {e - f: c / d for e, c in args[0].items()}
        case "sqrt" if len(args[0]) == 1:
            ((e, c), *_) = args[0].items()
            return {e / 2: sympy.sqrt(c)}
        case "power" if len(args[0]) == 1:
            ((e, c), *_), exponent = args[0].items(), args[1].get(ZERO)
            rational = sympy.nsimplify(exponent) if exponent is not None and exponent.is_Number else None
            return None if rational is None else {e * Fraction(int(rational.p), int(rational.q)): c**rational}
        case "ceil_div" | "log2" if all(set(arg) <= {ZERO} for arg in args):
            return {ZERO: atoms[operation](*(arg.get(ZERO, sympy.S.Zero) for arg in args))}
    return None


def _sum(a: Powers, b: Powers, sign: int) -> Powers:
    found = dict(a)
    for exponent, c in b.items():
        found[exponent] = found.get(exponent, sympy.S.Zero) + sign * c
    return {exponent: c for exponent, c in found.items() if c != 0}


def _power(base: Any, degree: Fraction) -> Any:
    return base if degree == 1 else base ** sympy.Rational(degree.denominator, degree.numerator)


def _tidy(expr: Any) -> Any:
    """A short quotient in lowest terms; a longer one as it is."""
    if expr.count_ops() > 120 or any(not power.exp.is_Integer for power in expr.atoms(sympy.Pow)):
        return expr
    return sympy.factor_terms(sympy.cancel(expr))


def evaluator(expr: Any) -> Callable[[Mapping[str, float]], float]:
    """An expression in symbols as a function of their numbers; not a number where it has none."""
    from ..codegen.lower import lower

    program = lower([], {"value": expr})

    def value(inputs: Mapping[str, float]) -> float:
        try:
            return float(run(program, inputs, floats())[program.outputs["value"]])
        except (ArithmeticError, ValueError):
            return math.nan

    return value
