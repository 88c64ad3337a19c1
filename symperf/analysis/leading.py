"""The leading term of a program's output in symbols: a sum of monomials times a power of the symbol at its end.

The end has decided which operand every maximum takes and what every rounding tends to (`limits.trace`). So each
instruction that the output is then made of is a sum of powers of the symbol and of its logarithm, with SymPy
expressions in the other symbols as coefficients; of a quotient of sums only the leading power is kept. What rounding
up adds at the run's values is a factor before a monomial, as in a derivation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import sympy

from ..formulas.language.atoms import ceil_div, log2
from ..formulas.language.symbols import SYMBOLS, batch
from ..formulas.mathematics.fractions import fraction_power
from .closed import MOST_OPERATIONS, symbol_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .forms import PowerQuotient
    from .subject import Subject

Key = tuple[Fraction, int]
"""Exponent of the symbol, and power of its logarithm to base two."""
Terms = dict[Key, Any]

CONSTANT: Key = (Fraction(0), 0)
"""The key of what does not depend on the symbol."""
LARGEST_RATIO = 64
"""A ratio of two sizes with a larger numerator or denominator is no relation that anyone has in mind."""
LONGEST_SUM = 4
"""Summands of a denominator of a short closed form."""
SIZES = (
    ("intermediate_size", "hidden_size", None),
    ("head_dim", "hidden_size", "num_attention_heads"),
    ("num_key_value_heads", "num_attention_heads", None),
)
"""Sizes that may be a simple multiple of another one, or of a quotient of two."""


@dataclass(frozen=True)
class Monomial:
    """A summand of a leading term.

    Attributes:
        expr: with its coefficient and without the symbol that goes to its end.
        rounding: a factor on it: what rounding up (tiles, waves, shares that do not divide) adds at the run's values.
        share: of the leading term.
        resource: whose rate or latency it holds; nothing for bytes and counts.
    """

    expr: Any
    rounding: float
    share: float
    resource: str | None


def monomials(
    subject: Subject,
    symbol: str,
    at_infinity: bool,
    traced: Sequence[PowerQuotient],
    key: Key,
    expected: float,
) -> list[Monomial] | None:
    """The coefficient of the leading term as monomials, the largest first.

    Args:
        subject: what has the limit.
        symbol: that goes to its end.
        at_infinity: whether the end is infinity; else it is zero.
        traced: the form of every instruction near the end.
        key: of the leading term.
        expected: its number, that the monomials have to give.

    Returns:
        Nothing where there is no short closed form.
    """
    from ..codegen.lower import LoweringError

    try:
        return _monomials(subject, symbol, _Tracer(subject, symbol, at_infinity, traced), key, expected)
    except (_NoClosedFormError, LoweringError):  # a program has no exponents that are symbols
        return None


def _monomials(subject: Subject, symbol: str, tracer: _Tracer, key: Key, expected: float) -> list[Monomial] | None:
    numbers = {symbol_of(name): value for name, value in subject.values.items() if name != symbol}
    form = tracer.terms(subject.position).get(key)
    if form is None or form.count_ops() > MOST_OPERATIONS:
        return None
    simpler = _formats(numbers, symbol) | _relations(numbers, symbol)
    smooth = _Smooth(numbers | tracer.values)
    summed: dict[Any, tuple[Any, float]] = {}
    for part in sympy.Add.make_args(_expanded(smooth(form), simpler)):
        whole = _put_in(part, tracer.reduced, simpler)
        factors = [each for each in sympy.Mul.make_args(whole) if each in smooth.roundings]
        ratio = math.prod(smooth.roundings[each] for each in factors)
        coefficient, monomial = (whole / sympy.Mul(*factors)).as_coeff_Mul()
        before = summed.get(monomial, (sympy.S.Zero, 0.0))
        summed[monomial] = before[0] + coefficient, before[1] + float(coefficient) * ratio
    parts = {monomial: pair for monomial, pair in summed.items() if pair[0] != 0}
    if any(_divides_by_a_long_sum(part) or part.free_symbols & smooth.roundings.keys() for part in parts):
        return None
    sizes = _values(list(parts), numbers)
    sized = [
        (c * part, exact / float(c), exact * size)
        for (part, (c, exact)), size in zip(parts.items(), sizes, strict=True)
    ]
    total = math.fsum(size for *_, size in sized)
    if not math.isclose(total, expected, rel_tol=1e-9):
        return None
    sized.sort(key=lambda each: -abs(each[2]))
    return [Monomial(part, ratio, size / total if total else 0.0, _resource(part)) for part, ratio, size in sized]


class _NoClosedFormError(Exception):
    pass


class _Smooth:
    """Expressions without roundings up: each is its quotient times a symbol for what rounding adds.

    Args:
        numbers: the values of all symbols.

    Attributes:
        roundings: what each of these symbols is.
    """

    def __init__(self, numbers: dict[Any, float]) -> None:
        self.numbers, self.roundings = numbers, dict[Any, float]()
        self.known: dict[Any, Any] = {}

    def __call__(self, expr: Any) -> Any:
        """The expression; of a rounding inside of another the outer one's symbol tells both."""
        return self.rewritten(expr, lambda each: self.symbol(each) * self.quotient(each))

    def quotient(self, rounded: Any) -> Any:
        over, under = (self.rewritten(each, self.quotient) for each in rounded.args)
        return over / under

    def symbol(self, rounded: Any) -> Any:
        if rounded not in self.known:
            self.known[rounded] = made = sympy.Symbol(f"rounding_{len(self.known)}", positive=True)
            self.roundings[made] = _value(rounded, self.numbers) / _value(self.quotient(rounded), self.numbers)
        return self.known[rounded]

    def rewritten(self, expr: Any, rule: Any) -> Any:
        if not expr.has(ceil_div) or isinstance(expr, log2):  # a factor inside of a logarithm is none before it
            return expr
        if isinstance(expr, ceil_div):
            return rule(expr)
        return expr.func(*(self.rewritten(each, rule) for each in expr.args))


def _expanded(form: Any, simpler: dict[Any, Any]) -> Any:
    return sympy.expand(form.xreplace(simpler).xreplace(simpler))


def _put_in(part: Any, reduced: Mapping[Any, Any], simpler: dict[Any, Any]) -> Any:
    """A monomial with what is less by one in place of the symbols that stand for it."""
    while part.free_symbols & reduced.keys():
        part = part.xreplace(reduced).xreplace(simpler)
    return part


def _divides_by_a_long_sum(part: Any) -> bool:
    return any(
        power.exp.is_negative and power.base.is_Add and len(power.base.args) > LONGEST_SUM
        for power in part.atoms(sympy.Pow)
    )


class _Tracer:
    """Instructions as sums of powers, each computed once it is needed."""

    def __init__(self, subject: Subject, symbol: str, at_infinity: bool, traced: Sequence[PowerQuotient]) -> None:
        self.subject, self.symbol, self.at_infinity, self.traced = subject, symbol, at_infinity, traced
        self.known: dict[int, Terms] = {}
        self.reduced: dict[Any, Any] = {}
        """What a symbol stands for that is another expression less one: it is not multiplied out."""
        self.values: dict[Any, float] = {}
        """The values of these symbols."""

    def terms(self, position: int) -> Terms:
        """One instruction; what it is made of is computed first, without recursion."""
        waiting = [position]
        while waiting:
            at = waiting[-1]
            needed = [operand for operand in self.needs(at) if operand not in self.known]
            if needed:
                waiting += needed
                continue
            waiting.pop()
            if at not in self.known:
                self.known[at] = self.instruction(at)
        return self.known[position]

    def needs(self, at: int) -> list[int]:
        """The operands that an instruction takes near the end."""
        operation, *operands = self.subject.program.instructions[at]
        if operation in ("input", "constant", "above_one", "at_least"):
            return []
        if operation in ("max", "min"):
            return [operands[self.side(at)]]
        if operation == "ceil_div" and self.fixed(operands) is None:
            return [] if self.traced[at].number() is not None else operands
        return operands

    def side(self, at: int) -> int:
        operands = self.subject.program.instructions[at][1:]
        return 0 if self.traced[at] is self.traced[operands[0]] else 1

    def fixed(self, operands: Sequence[int]) -> bool | None:
        """True where nothing of a rounding depends on the symbol."""
        numbers = [self.traced[operand].number() for operand in operands]
        return True if all(number is not None for number in numbers) else None

    def instruction(self, at: int) -> Terms:
        operation, *operands = self.subject.program.instructions[at]
        zero: Key = (Fraction(0), 0)
        if operation == "input":
            name = operands[0]
            if name == self.symbol:
                return {(Fraction(1), 0): sympy.S.One}
            # What only marks a part, of the memory for instance, is 1 and no symbol.
            return {zero: _constant(self.subject.values[name]) if "/" in name else symbol_of(name)}
        if operation == "constant":
            return {zero: _constant(operands[0])}
        if operation in ("above_one", "at_least"):
            number = self.traced[at].number()
            return {zero: sympy.Integer(int(number or 0))} if number else {}
        if operation in ("max", "min"):
            return self.known[operands[self.side(at)]]
        if operation == "ceil_div":
            return self.rounded(at, operands)
        if operation == "power" and self.traced[operands[1]].number() is None:
            number = self.traced[at].number()  # 0 or 1: the exponent grows without bound
            return {zero: sympy.Integer(int(number))} if number else {}
        args = [self.known[operand] for operand in operands]
        if operation == "subtract" and args[1] == {zero: sympy.S.One} and set(args[0]) == {zero}:
            return self.less_one(at, args[0][zero])
        return self.computed(operation, args)

    def less_one(self, at: int, expr: Any) -> Terms:
        """An expression less one as a symbol of its own, or nothing where it is one at the values."""
        if self.traced[at].number() == 0:
            return {}
        if expr.is_Number or expr.has(batch):  # the last of the micro-batches belongs to the others
            return {(Fraction(0), 0): expr - 1}
        known = next((symbol for symbol, found in self.reduced.items() if found == expr - 1), None)
        if known is None:
            value = self.traced[at].number()
            if value is None:
                raise _NoClosedFormError
            known = sympy.Symbol(f"reduced_{len(self.reduced)}", positive=True)
            self.reduced[known], self.values[known] = expr - 1, float(value)
        return {(Fraction(0), 0): known}

    def rounded(self, at: int, operands: Sequence[int]) -> Terms:
        number = self.traced[at].number()
        if self.fixed(operands) is None:
            if number is not None:
                return {(Fraction(0), 0): sympy.Integer(int(number))}
            return self.divide(*(self.known[operand] for operand in operands))
        over, under = (self.number_of(self.known[operand]) for operand in operands)
        quotient = Fraction(self.traced[operands[0]].number() or 0) / Fraction(self.traced[operands[1]].number() or 1)
        return {(Fraction(0), 0): over / under if quotient.denominator == 1 else ceil_div(over, under)}

    def computed(self, operation: str, args: list[Terms]) -> Terms:
        match operation:
            case "let" | "stop_gradient":
                return args[0]
            case "add":
                return _sum(args[0], args[1], 1)
            case "subtract":
                return _sum(args[0], args[1], -1)
            case "multiply":
                return _product(args[0], args[1])
            case "divide":
                return self.divide(args[0], args[1])
            case "sqrt":
                return self.power(args[0], Fraction(1, 2))
            case "power":
                exponent = self.number_of(args[1])
                if exponent.is_number:
                    return self.power(args[0], Fraction(float(exponent)).limit_denominator(1000))
                return {(Fraction(0), 0): fraction_power(self.number_of(args[0]), exponent)}
            case "log2":
                (e, k), c = self.leading(args[0])
                if k:
                    raise _NoClosedFormError
                found = {(Fraction(0), 1): sympy.Rational(e.numerator, e.denominator)} if e else {}
                return found | ({(Fraction(0), 0): log2(c)} if c != 1 else {})
        raise _NoClosedFormError

    def divide(self, over: Terms, under: Terms) -> Terms:
        if len(under) > 1:
            (e, k), c = self.leading(over)
            over = {(e, k): c}
        (f, n), d = self.leading(under)
        return {(e - f, k - n): c / d for (e, k), c in over.items()}

    def power(self, base: Terms, exponent: Fraction) -> Terms:
        (e, k), c = self.leading(base)
        if k and exponent.denominator != 1:
            raise _NoClosedFormError
        raised = c ** sympy.Rational(exponent.numerator, exponent.denominator)
        return {(e * exponent, int(k * exponent)): raised}

    def leading(self, terms: Terms) -> tuple[Key, Any]:
        """The term that a sum goes to."""
        if not terms:
            raise _NoClosedFormError
        key = max(terms) if self.at_infinity else min(terms, key=lambda each: (each[0], -each[1]))
        return key, terms[key]

    @staticmethod
    def number_of(terms: Terms) -> Any:
        """A sum that does not depend on the symbol."""
        if any(key != (Fraction(0), 0) for key in terms):
            raise _NoClosedFormError
        return terms.get((Fraction(0), 0), sympy.S.Zero)


def _sum(a: Terms, b: Terms, sign: int) -> Terms:
    found = dict(a)
    for key, c in b.items():
        found[key] = found.get(key, sympy.S.Zero) + sign * c
    return {key: c for key, c in found.items() if c != 0}


def _product(a: Terms, b: Terms) -> Terms:
    found: Terms = {}
    for (e, k), c in a.items():
        for (f, n), d in b.items():
            key = (e + f, k + n)
            found[key] = found[key] + c * d if key in found else c * d
    return found


def _constant(value: float) -> Any:
    exact = Fraction(value)
    simple = exact.limit_denominator(1000)
    return sympy.Rational(simple.numerator, simple.denominator) if float(simple) == value else sympy.Float(value)


def _formats(numbers: Mapping[Any, float], symbol: str) -> dict[Any, Any]:
    """Bytes of elements as numbers."""
    return {
        entry.symbol: _constant(numbers[entry.symbol])
        for name, entry in SYMBOLS.every().items()
        if entry.group == "format" and name != symbol and entry.symbol in numbers
    }


def _relations(numbers: Mapping[Any, float], symbol: str) -> dict[Any, Any]:
    """Sizes in terms of others, where that holds exactly with a simple ratio."""
    found = {}
    for name, over, under in SIZES:
        names = [each for each in (name, over, under) if each is not None]
        if symbol in names or not all(symbol_of(each) in numbers for each in names):
            continue
        size, base = numbers[symbol_of(name)], numbers[symbol_of(over)]
        parts = 1.0 if under is None else numbers[symbol_of(under)]
        if not all(each.is_integer() and each > 0 for each in (size, base, parts)):
            continue
        ratio = Fraction(int(size) * int(parts), int(base))
        if max(ratio.numerator, ratio.denominator) <= LARGEST_RATIO:
            form = symbol_of(over) if under is None else symbol_of(over) / symbol_of(under)
            found[symbol_of(name)] = sympy.Rational(ratio.numerator, ratio.denominator) * form
    return found


def _value(expr: Any, numbers: Mapping[Any, float]) -> float:
    return _values([expr], numbers)[0]


def _values(exprs: Sequence[Any], numbers: Mapping[Any, float]) -> list[float]:
    from ..codegen.interpret import floats, run
    from ..codegen.lower import lower

    program = lower([], {str(k): expr for k, expr in enumerate(exprs)})
    found = run(program, {symbol.name: value for symbol, value in numbers.items()}, floats())
    return [float(found[program.outputs[str(k)]]) for k in range(len(exprs))]


def _resource(expr: Any) -> str | None:
    names = [symbol.name for symbol in expr.free_symbols]
    return next((SYMBOLS[name].resource for name in names if name in SYMBOLS and SYMBOLS[name].resource), None)
