"""Programs of derivatives: against reverse mode in the interpreter, against differences, and at kinks and jumps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st
from support.programs import lowered, operations, step, values
from support.strategies import exact_points, float_points, programs, smooth_expressions

from symperf.codegen.adjoint import gradient
from symperf.codegen.interpret import adjoints, arrays, exact, floats, run
from symperf.codegen.passes import masks, prune
from symperf.codegen.program import Program
from symperf.formulas.language.atoms import Max, Min, above_one, ceil_div, log2, stop_gradient

if TYPE_CHECKING:
    from fractions import Fraction

x, y, z = sympy.symbols("x y z", positive=True)


def _partials(expr: Any, **point: float) -> dict[str, float]:
    program = lowered(out=expr)
    found = values(gradient(program, "out", list(program.inputs)), point)
    assert found.pop("out") == values(program, point)["out"]
    return found


@given(programs, float_points, st.data())
def test_the_same_as_reverse_mode_in_the_interpreter(
    program: Program, point: dict[str, float], data: st.DataObject
) -> None:
    """Every partial of any output, up to rounding."""
    output = data.draw(st.sampled_from(list(program.outputs)))
    names = list(program.inputs)
    derived = gradient(program, output, names)
    derived.check()
    assert list(derived.outputs) == [output, *(f"d/{name}" for name in names)]
    everything = run(program, point, floats())
    try:
        expected = adjoints(program, everything, program.outputs[output], floats())
    except ZeroDivisionError:  # the square root of zero
        with pytest.raises(ZeroDivisionError):
            values(derived, point)
        return
    found = values(derived, point)
    assert found[output] == everything[program.outputs[output]]
    for name, position in program.inputs.items():
        assert found[f"d/{name}"] == pytest.approx(expected.get(position, 0.0), rel=1e-9, abs=1e-9 * abs(found[output]))


@given(smooth_expressions, exact_points, st.data())
def test_central_differences_of_smooth_expressions(expr: Any, points: dict[Any, Fraction], data: st.DataObject) -> None:
    """In 60 digits, so that only the curve's own third derivative is left of the error."""
    symbols = sorted(sympy.sympify(expr).free_symbols, key=str)
    if not symbols:
        return
    symbol = data.draw(st.sampled_from(symbols))
    values_of = {s: sympy.Rational(points[s].numerator, points[s].denominator) for s in symbols}
    if any(values_of[s] in (0, 1) for s in symbols):  # roots of zero
        return
    h = values_of[symbol] * sympy.Rational(1, 10**12)
    around = [sympy.N(sympy.sympify(expr).subs(values_of | {symbol: values_of[symbol] + d}), 60) for d in (h, -h)]
    expected = float((around[0] - around[1]) / (2 * h))
    found = _partials(expr, **{str(s): float(v) for s, v in values_of.items()})
    scale = abs(float(around[0]) / float(values_of[symbol]))
    assert found[f"d/{symbol}"] == pytest.approx(expected, rel=1e-9, abs=1e-9 * scale)


def test_kinks_give_the_branch_that_wins() -> None:
    """And the first of equals."""
    program = Program(
        [("input", "x"), ("input", "y"), ("max", 0, 1), ("min", 0, 1)], {"x": 0, "y": 1}, {}, {"max": 2, "min": 3}
    )
    for name, low, high in (("max", "y", "x"), ("min", "x", "y")):
        derived = gradient(program, name, ["x", "y"])
        found = values(derived, {"x": 3.0, "y": 2.0})
        assert (found[f"d/{high}"], found[f"d/{low}"]) == (1, 0)
        found = values(derived, {"x": 2.0, "y": 3.0})
        assert (found[f"d/{high}"], found[f"d/{low}"]) == (0, 1)
        found = values(derived, {"x": 2.0, "y": 2.0})
        assert (found["d/x"], found["d/y"]) == (1, 0)


def test_jumps() -> None:
    """`ceil_div` as the exact quotient, `above_one` as a constant."""
    assert _partials(ceil_div(x, y), x=7, y=2) == {"d/x": 0.5, "d/y": -1.75}
    assert _partials(z * ceil_div(x, y), x=7, y=2, z=3) == {"d/x": 1.5, "d/y": -5.25, "d/z": 4}
    assert _partials(z * above_one(x), x=7, z=3) == {"d/x": 0, "d/z": 1}
    assert _partials(z * stop_gradient(x), x=7, z=3) == {"d/x": 0, "d/z": 7}


@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        (x - y, {"d/x": 1, "d/y": -1}),
        (y - 2 * x, {"d/x": -2, "d/y": 1}),
        (x / y, {"d/x": 0.25, "d/y": -0.1875}),
        (x * x * y, {"d/x": 24, "d/y": 9}),
        (sympy.sqrt(y), {"d/y": 0.25}),
        (y ** sympy.Rational(1, 3) * 3, {"d/y": 4 ** (-2 / 3)}),
        (log2(y), {"d/y": 0.36067376022224085}),
        (x + Max(x, Min(y, 10 * x)), {"d/x": 1, "d/y": 1}),
    ],
)
def test_rules(expr: Any, expected: dict[str, float]) -> None:
    """Each operation at x = 3, y = 4."""
    assert _partials(expr, x=3, y=4) == pytest.approx(expected, rel=1e-15)


def test_what_does_not_matter_has_the_partial_zero() -> None:
    """An input of other outputs only; and inputs not asked for cost nothing."""
    program = lowered(one=x * y, two=z)
    assert values(gradient(program, "one", ["z", "x"]), {"x": 2, "y": 3}) == {"one": 6, "d/z": 0, "d/x": 3}
    full, part = (gradient(step()[0], "time", names) for names in (list(step()[0].inputs), ["memory_bandwidth"]))
    assert operations(part) < operations(full) / 2


def test_unknown_names() -> None:
    """They are named; an output that would be taken for a partial is refused."""
    program = lowered(cost=x)
    with pytest.raises(KeyError, match="price"):
        gradient(program, "price", ["x"])
    with pytest.raises(KeyError, match="w"):
        gradient(program, "cost", ["x", "w"])
    with pytest.raises(ValueError, match="name of a partial"):
        gradient(lowered(**{"d/x": x}), "d/x", ["x"])


def test_in_every_arithmetic() -> None:
    """A program of derivatives is a program: arrays and fractions run it as well."""
    derived = gradient(lowered(out=Max(x / y, z) * ceil_div(x, y) + above_one(x)), "out", ["x", "y", "z"])
    points = [{"x": 7, "y": 2, "z": 3}, {"x": 7, "y": 2, "z": 4}, {"x": 1, "y": 3, "z": 1}]
    batch = {name: np.array([point[name] for point in points], dtype=float) for name in ("x", "y", "z")}
    for name, position in derived.outputs.items():
        by_arrays = np.broadcast_to(run(derived, batch, arrays())[position], 3)
        for k, point in enumerate(points):
            by_floats = run(derived, point, floats())[position]
            assert (
                by_arrays[k] == by_floats == pytest.approx(float(run(derived, point, exact())[position]), rel=1e-15)
            ), name


def test_central_differences_of_the_step() -> None:
    """By every symbol that does not reach a jump, at points off the kinks: 1e-6 of the step's elasticity."""
    program, inputs = step()
    program = prune(program, ["time"])
    names = list(program.inputs)
    reach = masks(program, names)
    jumps = 0
    for operation, *operands in program.instructions:
        if operation in ("ceil_div", "above_one"):
            jumps |= reach[operands[0]] | (reach[operands[1]] if operation == "ceil_div" else 0)
    smooth = [name for k, name in enumerate(names) if not jumps >> k & 1]
    assert len(smooth) >= 12
    random = np.random.default_rng(7)
    derived = gradient(program, "time", smooth)
    for _ in range(10):
        point = inputs | {name: inputs[name] * random.uniform(0.9, 1.1) for name in smooth if inputs[name]}
        found = values(derived, point)
        for name in smooth:
            h = 1e-5 * point[name]
            up, down = (values(program, point | {name: point[name] + d})["time"] for d in (h, -h))
            elasticity = (up - down) / 2e-5 / found["time"]
            assert found[f"d/{name}"] * point[name] / found["time"] == pytest.approx(elasticity, abs=1e-6), name
