"""Lowering: expressions become programs of the same value, with sharing, true division and subtraction."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING, Any

import pytest
import sympy
from hypothesis import given
from support.strategies import exact_points, expressions

from symperf.codegen.interpret import arrays, exact, floats, run
from symperf.codegen.lower import LoweringError, lower
from symperf.formulas.language.atoms import Max, Min, ceil_div, ring_share

if TYPE_CHECKING:
    from symperf.codegen.program import Program

x, y, z = sympy.symbols("x y z")


def _operations(program: Program) -> Counter[str]:
    return Counter(operation for operation, *_ in program.instructions)


def _value(expr: Any, arithmetic: Any, **inputs: Any) -> Any:
    program = lower([], {"out": expr})
    return run(program, inputs, arithmetic)[program.outputs["out"]]


def test_equal_parts_are_computed_once() -> None:
    """A sub-expression that occurs in several places, or in several outputs, is one instruction."""
    shared = Max(x * y, z)
    program = lower([], {"one": shared + 1, "two": shared / y, "three": shared})
    assert _operations(program) == {"input": 3, "constant": 1, "multiply": 1, "max": 1, "add": 1, "divide": 1}


@given(expressions)
def test_no_two_instructions_are_equal(expr: Any) -> None:
    """Whatever is lowered, nothing is computed twice."""
    program = lower([], {"one": expr, "two": expr + 1})
    assert len(set(program.instructions)) == len(program.instructions)


@given(expressions)
def test_lowering_is_deterministic(expr: Any) -> None:
    """The same expression gives the same text."""
    assert lower([], {"z": expr}).text() == lower([], {"z": expr}).text()


def test_quotients_are_true_divisions() -> None:
    """`a * b**-1` is one division, not a product with a reciprocal."""
    assert lower([], {"q": x / y}).text().splitlines() == ["%0 = input x", "%1 = input y", "%2 = divide %0 %1  ; q"]
    assert _operations(lower([], {"q": x * y / (z * (x + y))}))["divide"] == 1
    assert _operations(lower([], {"q": sympy.Rational(5, 2) * x}))["divide"] == 1


def test_525_by_75() -> None:
    """The multiple that a reciprocal gets wrong: `ceil(525 * (1/75))` is 8."""
    assert ceil(525 * (1 / 75)) == 8
    assert _value(ceil_div(x, y) + 1 / y, floats(), x=525, y=75) == 7 + 1 / 75
    assert _value(x / y, floats(), x=525, y=75) == 7


def test_ceil_div_at_exact_multiples_of_every_small_divisor() -> None:
    """For every divisor below 300, multiples and their neighbours: floats, arrays and fractions agree."""
    program = lower([], {"bins": ceil_div(x, y)})
    at = program.outputs["bins"]
    multiples = (*range(1, 40), 997, 4999)
    for divisor in range(1, 300):
        amounts = [multiple * divisor + more for multiple in multiples for more in (-1, 0, 1)]
        found = run(program, {"x": amounts, "y": divisor}, arrays())[at]
        expected = [ceil(Fraction(amount, divisor)) for amount in amounts]
        assert found.tolist() == expected, divisor
        assert [run(program, {"x": a, "y": divisor}, floats())[at] for a in amounts[:9]] == expected[:9], divisor
        assert [run(program, {"x": a, "y": divisor}, exact())[at] for a in amounts[:9]] == expected[:9], divisor


def test_differences_subtract() -> None:
    """A negative term is subtracted; nothing is multiplied by minus one."""
    program = lower([], {"d": x - 2 * y - 3})
    assert _operations(program) == {"input": 2, "constant": 2, "multiply": 1, "subtract": 2}
    assert _value(x - 2 * y - 3, exact(), x=Fraction(1, 3), y=5) == Fraction(1, 3) - 13
    assert _value(-x - y, exact(), x=2, y=3) == -5
    assert _value(-x / 3, exact(), x=2) == Fraction(-2, 3)


@pytest.mark.parametrize(
    "exponent", ["2", "3", "8", "9", "20", "1/2", "3/2", "17/2", "-1", "-2", "-1/2", "-5/2", "1/3"]
)
def test_powers(exponent: str) -> None:
    """Small whole and half powers are products and roots; others are powers; all have the right value."""
    power = sympy.Rational(exponent)
    program = lower([], {"p": x**power})
    small = bool(power.q in (1, 2) and abs(power) < 9)
    assert ("power" in _operations(program)) is not small
    assert ("sqrt" in _operations(program)) is (small and power.q == 2)
    assert _value(x**power, floats(), x=1.7) == pytest.approx(1.7 ** float(power), rel=1e-14)
    assert _value(y * x**power, arrays(), x=1.7, y=3) == pytest.approx(3 * 1.7 ** float(power), rel=1e-14)


@pytest.mark.parametrize(
    ("expr", "name"),
    [
        (sympy.exp(x), "exp"),
        (sympy.Function("mystery")(x), "mystery"),
        (Max(1, sympy.cos(y)), "cos"),
        (x + sympy.pi, "Pi"),
    ],
)
def test_an_unknown_head_is_named(expr: Any, name: str) -> None:
    """A function that no back end knows is an error that says which, and in which output."""
    with pytest.raises(LoweringError, match=rf"cost: no back end knows the function {name}"):
        lower([], {"cost": expr})
    with pytest.raises(LoweringError, match=r"^term: "):
        lower([(sympy.Symbol("term"), expr)], {})


def test_a_symbolic_exponent_is_an_error() -> None:
    """Powers are rational."""
    with pytest.raises(LoweringError, match="exponent y"):
        lower([], {"cost": x**y})


def test_lets_are_never_merged() -> None:
    """Two terms of equal cost stay two instructions, so that each can be asked for; what they compute is shared."""
    one, two, three = sympy.symbols("one two three")
    program = lower([(one, x * y), (two, x * y), (three, one)], {"sum": one + two, "time": one})
    assert _operations(program) == {"input": 2, "multiply": 1, "let": 3, "add": 1}
    assert len(set(program.lets.values())) == 3
    assert set(program.inputs) == {"x", "y"}
    assert program.outputs["time"] == program.lets["one"]


def test_later_definitions_use_earlier_ones() -> None:
    """A defined symbol is no input."""
    one, two = sympy.symbols("one two")
    program = lower([(one, x + 1), (two, one * one)], {"out": two - one})
    values = run(program, {"x": 2}, exact())
    assert values[program.outputs["out"]] == 6
    assert values[program.lets["two"]] == 9


def test_atoms_without_an_operation_are_expanded() -> None:
    """`ring_share` is lowered by its definition, other atoms whole."""
    assert _operations(lower([], {"s": ring_share(x)})) == {"input": 1, "constant": 1, "subtract": 1, "divide": 1}
    assert _operations(lower([], {"m": Min(x, y, z)}))["min"] == 2


def test_deep_expressions_need_no_deep_stack() -> None:
    """Five thousand nested operations are lowered without recursion."""
    expr = x
    for _ in range(2500):
        expr = sympy.Mul(y, sympy.Add(expr, 1, evaluate=False), evaluate=False)
    program = lower([], {"z": expr})
    assert _operations(program)["add"] == 2500


@pytest.mark.parametrize("constant", ["1/3", "-1/7", "22/7", "5", "-2"])
def test_constants_stay_exact(constant: str) -> None:
    """A rational number is kept exactly wherever it stands, not only as a factor."""
    number = sympy.Rational(constant)
    assert _value(x + number, exact(), x=1) == 1 + Fraction(constant)
    assert _value(Max(x, number), exact(), x=-9) == Fraction(constant)
    assert _value(number, exact()) == Fraction(constant)
    assert _value(x + number, floats(), x=0) == float(number)


@given(expressions, exact_points)
def test_outputs_are_independent_of_one_another(expr: Any, points: dict[Any, Fraction]) -> None:
    """Lowered beside other outputs an expression has bit for bit the value that it has alone."""
    names = {str(symbol): value for symbol, value in points.items()}
    alone, beside = (
        lower([], {"z": expr}),
        lower([(sympy.Symbol("other"), 2 + expr / 3)], {"o": 1 / (1 + expr), "z": expr}),
    )
    assert run(alone, names, floats())[alone.outputs["z"]] == run(beside, names, floats())[beside.outputs["z"]]


def test_what_stands_for_a_symbol_is_lowered_in_its_place() -> None:
    program = lower([(y, 2 * x * z)], {"out": y + x}, stand_for={x: sympy.S.One})
    assert set(program.inputs) == {"z"}
    assert program.text() == lower([(y, 2 * z)], {"out": y + 1}).text()


def test_operations_of_functions_are_told_from_powers_and_sums() -> None:
    """A function may raise to what is no number; its name is no other kind of part."""

    class raise_to(sympy.Function):  # noqa: N801
        operation = "power"

    expr = raise_to(x, y) + x**2 + raise_to(x, 2)
    assert _value(expr, floats(), x=3, y=4) == 81 + 9 + 9
    program = lower([], {"out": expr, "same": 1 + expr}, share=True)
    assert run(program, {"x": 3, "y": 4}, floats())[program.outputs["same"]] == 100
