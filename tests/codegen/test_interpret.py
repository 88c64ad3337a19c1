"""The reference back end: floats, arrays, exact fractions and SymPy give one value, and its derivatives are right."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import sympy
from hypothesis import assume, example, given
from support.strategies import (
    LEAVES,
    continuous_expressions,
    exact_points,
    expressions,
    seeds,
    smooth_expressions,
)

from symperf.codegen.interpret import Arithmetic, adjoints, arrays, exact, floats, run
from symperf.codegen.lower import lower
from symperf.formulas.language.atoms import (
    Atom,
    Max,
    Min,
    above_one,
    ceil_div,
    complement,
    less_one,
    log2,
    stop_gradient,
)
from symperf.formulas.language.symbols import SYMBOLS

if TYPE_CHECKING:
    from symperf.codegen.program import Program

TOLERANCE = 1e-13
NEAR_JUMP = 1e-9
x, y = sympy.symbols("x y", positive=True)
columns, rows, ranks, rate = (SYMBOLS[name].symbol for name in ("columns", "rows", "ranks", "rate"))
Points = dict[Any, Fraction]


def _named(points: Points) -> dict[str, Fraction]:
    return {str(symbol): value for symbol, value in points.items()}


def _sizes() -> Arithmetic:
    """Values with the size of what was added or subtracted on the way: rounding is relative to that."""
    forward = floats().forward

    def of(operation: str, size: Any) -> Any:
        return lambda *args: (forward[operation](*(a[0] for a in args)), size(*args))

    return Arithmetic(
        lambda value: (float(value), abs(float(value))),
        {
            "let": lambda a: a,
            "add": of("add", lambda a, b: a[1] + b[1]),
            "subtract": of("subtract", lambda a, b: a[1] + b[1]),
            "multiply": of("multiply", lambda a, b: a[1] * b[1]),
            "divide": of("divide", lambda a, b: a[1] * b[1] / b[0] ** 2),
            "max": of("max", lambda a, b: max(a[1], b[1])),
            "min": of("min", lambda a, b: max(a[1], b[1])),
            "power": of("power", lambda a, b: a[1] ** b[0]),
            "sqrt": of("sqrt", lambda a: a[1] / math.sqrt(a[0])),
            "log2": of("log2", lambda a: max(a[1] / a[0], math.log2(a[0]))),
            "ceil_div": of("ceil_div", lambda a, b: math.ceil(a[0] / b[0])),
            "above_one": of("above_one", lambda _: 1.0),
            "stop_gradient": of("stop_gradient", lambda a: a[1]),
        },
        lambda condition, yes, no: yes if condition else no,
    )


def _rational(program: Program) -> bool:
    return not any(operation in ("sqrt", "log2", "power") for operation, *_ in program.instructions)


def _clear_of_edges(program: Program, names: dict[str, Fraction]) -> bool:
    """Whether rounding decides no step: each is away from its edge, or on it with operands that floats hold exactly."""
    rational = _rational(program)
    values, rounded = run(program, names, exact() if rational else floats()), run(program, names, floats())
    for operation, *operands in program.instructions:
        if operation not in ("ceil_div", "above_one"):
            continue
        amount, size = values[operands[0]], values[operands[1]] if operation == "ceil_div" else 1
        held = rational and all(Fraction(rounded[o]) == values[o] for o in operands)
        on_edge = held and (amount / size == round(amount / size))
        if abs(amount / size - round(amount / size)) < NEAR_JUMP and not on_edge:
            return False
    return True


@given(expressions, exact_points)
@example(ceil_div(columns, rows), {columns: Fraction(525), rows: Fraction(75)})
@example(ceil_div(3 * columns, 3 * rows) + 1 / rows, {columns: Fraction(77 * 5), rows: Fraction(77)})
@example(less_one(columns) + complement(1 / rows), {columns: Fraction(1), rows: Fraction(1)})
def test_back_ends_agree(expr: Any, points: Points) -> None:
    """Floats, arrays, exact fractions and SymPy to 50 digits agree to 1e-13 of what was added up."""
    program, names = lower([], {"z": expr}), _named(points)
    at = program.outputs["z"]
    _, size = run(program, names, _sizes())[at]
    allowed = TOLERANCE * size
    assume(_clear_of_edges(program, names))
    by_float = run(program, names, floats())[at]
    by_array = run(program, {name: np.full(3, float(value)) for name, value in names.items()}, arrays())[at]
    assert np.all(np.abs(by_array - by_float) <= 1e-15 * size)
    if _rational(program):
        exactly = run(program, names, exact())[at]
        assert isinstance(exactly, Fraction | int)
        assert abs(by_float - exactly) <= allowed
    by_sympy = expr.xreplace({symbol: sympy.Rational(value) for symbol, value in points.items()}).evalf(50)
    assert abs(by_float - float(by_sympy)) <= allowed
    if _rational(program):
        assert float(exactly) == pytest.approx(float(by_sympy), rel=1e-15, abs=1e-300)


@given(seeds)
def test_arrays_broadcast(seed: int) -> None:
    """Open axes give the grid of the floats, and inputs of any type are float64."""
    random = np.random.default_rng(seed)
    program = lower([], {"z": Max(ceil_div(x, y), 3) + log2(x) * Min(y, x) / y})
    at = program.outputs["z"]
    across, down = random.integers(1, 2**40, 5), random.integers(1, 99, 4).astype(np.int32)
    grid = run(program, {"x": across[:, None], "y": down[None, :]}, arrays())[at]
    assert grid.shape == (5, 4)
    assert grid.dtype == np.float64
    for i, j in np.ndindex(grid.shape):
        assert grid[i, j] == run(program, {"x": across[i], "y": down[j]}, floats())[at]


def test_an_input_without_a_value_is_an_error() -> None:
    """The missing name is in the message; a value for nothing is ignored."""
    program = lower([], {"z": x + y})
    with pytest.raises(KeyError, match="y"):
        run(program, {"x": 1}, floats())
    assert run(program, {"x": 1, "y": 2, "other": 3}, floats())[program.outputs["z"]] == 3


@pytest.mark.parametrize("expr", [sympy.sqrt(x), log2(x), x**9, x ** sympy.Rational(1, 3)])
def test_exact_arithmetic_refuses_what_is_not_rational(expr: Any) -> None:
    """A root is no fraction, and is not silently rounded to one."""
    with pytest.raises(ValueError, match="not rational"):
        run(lower([], {"z": expr}), {"x": 4}, exact())


def test_exact_arithmetic_knows_no_overflow() -> None:
    """Products far above 2**64 are kept to the last digit."""
    program = lower([], {"z": x**3 * y})
    assert run(program, {"x": 10**12 + 1, "y": 7}, exact())[program.outputs["z"]] == 7 * (10**12 + 1) ** 3


# Derivatives --------------------------------------------------------------------------------------------------


def _place(seed: int) -> dict[str, float]:
    """Uneven values in the inside of every domain, where no two drawn parts are equal by chance."""
    random = np.random.default_rng(seed)
    return {
        str(symbol): float(
            random.uniform(0.1, 0.9) if SYMBOLS[str(symbol)].domain == "0 to 1" else random.uniform(1.5, 9)
        )
        for symbol in LEAVES
    }


@given(continuous_expressions, seeds)
def test_adjoints_equal_central_differences(expr: Any, seed: int) -> None:
    """Reverse mode agrees with finite differences to 1e-6, through maxima and minima."""
    program, place = lower([], {"z": expr}), _place(seed)
    at = program.outputs["z"]
    values = run(program, place, floats())
    slopes = adjoints(program, values, at, floats())
    for name, position in program.inputs.items():
        step = 1e-6 * place[name]
        up, down = (run(program, place | {name: place[name] + s}, floats())[at] for s in (step, -step))
        one_sided = (up - values[at]) / step, (values[at] - down) / step
        scale = max(abs(values[at]) / place[name], *map(abs, one_sided))
        if abs(one_sided[0] - one_sided[1]) > 1e-4 * scale:
            continue  # a kink lies between the two points
        numeric = (up - down) / (2 * step)
        assert slopes.get(position, 0.0) == pytest.approx(numeric, rel=1e-6, abs=1e-6 * scale)


@given(smooth_expressions, seeds)
def test_adjoints_equal_symbolic_derivatives(expr: Any, seed: int) -> None:
    """Where SymPy can differentiate, reverse mode gives the same derivative."""
    program, place = lower([], {"z": expr}), _place(seed)
    slopes = adjoints(program, run(program, place, floats()), program.outputs["z"], floats())
    plain = sympy.sympify(expr).replace(lambda node: isinstance(node, Atom), lambda node: node.definition())
    numbers = {symbol: sympy.Float(place[str(symbol)], 40) for symbol in LEAVES}
    for name, position in program.inputs.items():
        expected = float(sympy.diff(plain, SYMBOLS[name].symbol).xreplace(numbers).evalf(30))
        assert slopes.get(position, 0.0) == pytest.approx(expected, rel=1e-10, abs=1e-10)


@given(continuous_expressions, seeds)
def test_array_adjoints_equal_scalar_ones(expr: Any, seed: int) -> None:
    """Derivatives of a batch are those of its points."""
    program = lower([], {"z": expr})
    at, places = program.outputs["z"], [_place(seed + i) for i in range(3)]
    batch = {name: np.array([place[name] for place in places]) for name in places[0]}
    found = adjoints(program, run(program, batch, arrays()), at, arrays())
    for index, place in enumerate(places):
        expected = adjoints(program, run(program, place, floats()), at, floats())
        assert set(expected) == set(found)
        for position, slope in expected.items():
            assert np.broadcast_to(found[position], 3)[index] == pytest.approx(slope, rel=1e-13, abs=1e-13)


def _slopes(expr: Any, **inputs: float) -> dict[str, float]:
    program = lower([], {"z": expr})
    found = adjoints(program, run(program, inputs, floats()), program.outputs["z"], floats())
    return {name: found[position] for name, position in program.inputs.items() if position in found}


def test_ties_belong_to_the_first() -> None:
    """At a tie a maximum or minimum passes all of the derivative to one argument, so that shares sum to one."""
    for extremum in (Max(x, y), Min(x, y)):
        slopes = _slopes(extremum, x=2.0, y=2.0)
        assert sorted(slopes.values()) == [0.0, 1.0]


def test_rounded_quotients_differentiate_as_exact_ones() -> None:
    """`ceil_div` has the derivative of the quotient that it rounds; `above_one` has none."""
    assert _slopes(ceil_div(x, y), x=7.0, y=2.0) == {"x": 0.5, "y": -1.75}
    assert _slopes(above_one(x) * y, x=7.0, y=2.0) == {"y": 1.0}
    assert _slopes(stop_gradient(x) * y, x=7.0, y=2.0) == {"y": 7.0}


def _chain() -> Program:
    inner, outer = sympy.symbols("inner outer")
    return lower([(inner, x * y), (outer, inner + y)], {"z": outer * inner})


def test_adjoints_of_named_parts() -> None:
    """The derivative of every instruction is there, named parts included, not only that of inputs."""
    program = _chain()
    values = run(program, {"x": 3.0, "y": 2.0}, floats())
    found = adjoints(program, values, program.outputs["z"], floats())
    assert found[program.lets["outer"]] == 6.0
    assert found[program.lets["inner"]] == 8.0 + 6.0, "directly, and through the outer part"
    assert found[program.inputs["x"]] == 2.0 * 14.0
    assert found[program.inputs["y"]] == 3.0 * 14.0 + 6.0


def test_stop_passes_nothing_on() -> None:
    """A position in `stop` keeps its own derivative; what lies below does not get its part of it."""
    program = _chain()
    values = run(program, {"x": 3.0, "y": 2.0}, floats())
    stop = {program.lets["outer"]}
    found = adjoints(program, values, program.outputs["z"], floats(), stop=stop)
    assert found[program.lets["outer"]] == 6.0
    assert found[program.lets["inner"]] == 8.0
    assert found[program.inputs["y"]] == 3.0 * 8.0
    stopped = adjoints(program, values, program.lets["inner"], floats(), stop={program.lets["inner"]})
    assert stopped == {program.lets["inner"]: 1.0}


def test_independent_instructions_are_absent() -> None:
    """What the result does not depend on has no entry."""
    program = lower([], {"one": x, "two": y})
    assert adjoints(program, run(program, {"x": 1, "y": 1}, floats()), program.outputs["one"], floats()) == {0: 1.0}


def test_rates_need_no_special_case() -> None:
    """Euler's theorem on a small roofline: latencies and reciprocal rates share the time without rest."""
    time = Max(ranks / rate, columns / x) + y
    place = {"ranks": 5.0, "rate": 2.0, "columns": 3.0, "x": 4.0, "y": 0.5}
    slopes = _slopes(time, **place)
    total = 5.0 / 2 + 0.5
    assert -slopes["rate"] * 2 / total - slopes["x"] * 4 / total + slopes["y"] * 0.5 / total == pytest.approx(
        1, abs=1e-15
    )
