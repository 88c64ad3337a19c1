"""Programs that some tests run, and a small program with every operation, with its exact values."""

from __future__ import annotations

import os
import shutil
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import mpmath
import numpy as np
import pytest
import sympy

from symperf.codegen.interpret import Arithmetic, exact, floats, run
from symperf.codegen.lower import lower
from symperf.codegen.program import Program
from symperf.formulas.language.atoms import Max, Min, above_one, ceil_div, log2

if TYPE_CHECKING:
    from fractions import Fraction

HOSTILE = [
    "a/b", "a_b", "a b", "int", "double", "inputs", "v1", "*/ evil(); /*", "// x", "/*", 'q"uote', "'", "new\nline",
    "\\", "\\\n", "??/", "??)", "é✓", "\U0001f600", "\ud800", "a\u2028b", "__proto__", "constructor", "toString",
    "</script>", "${x}", "`", "", "%s%n", "{{ x }}", "{% x %}", "@param", "*/", "arguments", "NaN",
    "\x00x", "\x7f", "#if",
]  # fmt: skip
"""Names that break a printer that does not escape them."""


def tool(*names: str) -> str:
    """The path of the first of these programs that is there; without any the test is skipped, on CI it fails."""
    for name in names:
        found = shutil.which(name)
        if found:
            return found
    if os.environ.get("CI"):
        pytest.fail(f"none of {names} is installed")
    pytest.skip(f"none of {names} is installed")


def hostile_program() -> Program:
    """For each hostile name an input, and an output that is the input and its number."""
    program = Program()
    for k, name in enumerate(HOSTILE):
        program.instructions += [("input", name), ("constant", k), ("add", 3 * k, 3 * k + 1)]
        program.inputs[name] = 3 * k
        program.outputs[name] = 3 * k + 2
    return program


@lru_cache(maxsize=1)
def rational_program() -> Program:
    """A program whose values are rational, and which rounds up: outputs "bins", "time", "rest"."""
    rows, columns, tile, width, rate, bandwidth, ranks, part = sympy.symbols(
        "rows columns tile width rate bw ranks part"
    )
    bins = ceil_div(rows, tile) * ceil_div(columns, width)
    work = Max(ceil_div(bins, ranks) * tile * width / rate, rows * columns * sympy.Rational(1, 10) / bandwidth)
    time = (
        Max(work * (1 + part), Min(rows / bandwidth, work) * (ranks - 1) / ranks + part * work)
        + above_one(ranks) / rate
    )
    return lower([(part, work**-1 / 3)], {"bins": bins, "time": time, "rest": 1 / (time + tile**3) + 2 / rate})


def rational_points(count: int) -> dict[str, np.ndarray]:
    """Random points of the rational program, half of them where what is rounded up divides exactly."""
    rng = np.random.default_rng(7)
    tile, width = rng.integers(1, 300, count), rng.integers(1, 300, count)
    more = np.where(rng.random((2, count)) < 0.5, 0, rng.integers(-1, 2, (2, count)))
    whole = {
        "rows": np.maximum(tile * rng.integers(1, 5000, count) + more[0], 1),
        "columns": np.maximum(width * rng.integers(1, 5000, count) + more[1], 1),
        "tile": tile,
        "width": width,
        "ranks": rng.integers(1, 200, count),
    }
    whole |= {name: np.rint(10.0 ** rng.uniform(0, 14, count)) for name in ("rate", "bw")}
    return {name: values.astype(np.float64) for name, values in whole.items()}


def exact_values(program: Program, points: dict[str, np.ndarray]) -> dict[str, list[Fraction]]:
    """The outputs at each point, as fractions."""
    found: dict[str, list[Fraction]] = {name: [] for name in program.outputs}
    rational = exact()
    for row in zip(*points.values(), strict=True):
        values = run(program, dict(zip(points, row, strict=True)), rational)
        for name, position in program.outputs.items():
            found[name].append(values[position])
    return found


def assert_exact(found: Any, expected: list[Any], relative: float = 1e-13) -> None:
    """Every value is within `relative` of the exact one, which is rounded to a double for the comparison."""
    exactly = np.array([float(value) for value in expected])
    np.testing.assert_array_less(np.abs(np.asarray(found) - exactly), relative * np.abs(exactly) + 5e-324)


def fifty_digits() -> Arithmetic:
    """Numbers of fifty digits, for what is not rational."""
    context = mpmath.MPContext()
    context.dps = 50
    return Arithmetic(
        context.mpf,
        floats().forward
        | {
            "above_one": lambda a: context.mpf(1 if a > 1 else 0),
            "stop_gradient": lambda a: a,
            "at_least": lambda a, b: context.mpf(1 if a >= b else 0),
            "sqrt": context.sqrt,
            "log2": lambda a: context.log(a) / context.log(2),
            "ceil_div": lambda a, b: context.ceil(a / b),
        },
        lambda condition, yes, no: yes if condition else no,
    )


def step_points(inputs: dict[str, float], count: int) -> dict[str, np.ndarray]:
    """Points about those of a real run: counts times powers of two, so that the same ones divide, the rest by any."""
    rng = np.random.default_rng(3)
    points = {}
    for name, value in inputs.items():
        whole = value.is_integer() and 1 <= value < 1e6
        factor = 2.0 ** rng.integers(0, 3, count) if whole else rng.uniform(0.5, 1.0, count)
        points[name] = value * factor
    return points


@lru_cache(maxsize=1)
def whole_program() -> Program:
    """A program with every operation; inputs "x", "y", "z" and "n" are positive; outputs "first", "second", "slack"."""
    x, y, z, n = sympy.symbols("x y z n")
    first = Max(log2(x + 1) * y, x**3 / z) + x**20 / (x**20 + 1) + sympy.sqrt(y) + above_one(n) * ceil_div(x * n, y)
    second = Min(x * y, z) + log2(1 + log2(1 + x * n)) - n / 3 + x ** sympy.Rational(1, 3)
    return lower(
        [(sympy.Symbol("named"), first)], {"first": sympy.Symbol("named"), "second": second, "slack": z - x * y}
    )
