"""The search for common factors and terms before lowering: same values, fewer operations, and no jump is touched."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st
from support.programs import operations, step, values
from support.strategies import exact_points, expressions

from symperf.codegen.interpret import exact, floats, run
from symperf.codegen.lower import lower
from symperf.formulas.language.atoms import Max, above_one, ceil_div
from symperf.formulas.language.symbols import UNITS
from symperf.formulas.mathematics.fractions import fraction_power
from symperf.train import build

if TYPE_CHECKING:
    from fractions import Fraction
    from pathlib import Path

x, y, z, w = sympy.symbols("x y z w", positive=True)


@given(st.lists(expressions, min_size=1, max_size=4), exact_points)
def test_sharing_keeps_values(drawn: list[Any], points: dict[Any, Fraction]) -> None:
    """Exactly in rational numbers, where the program has no root or logarithm; otherwise up to rounding."""
    outputs = {f"out{k}": expr + k for k, expr in enumerate(drawn)}
    point = {str(symbol): value for symbol, value in points.items()}
    plain, shared = lower([], outputs), lower([], outputs, share=True)
    shared.check()
    assert list(shared.outputs) == list(plain.outputs)
    assert not [name for name in shared.inputs if name not in plain.inputs]
    try:
        one, two = (run(program, point, exact()) for program in (plain, shared))
        tolerance = 0.0
    except ValueError:
        one, two = (run(program, point, floats()) for program in (plain, shared))
        tolerance = 1e-12
    for name in outputs:
        expected = one[plain.outputs[name]]
        assert abs(two[shared.outputs[name]] - expected) <= tolerance * max(1, abs(expected)), name


REPEATED = [
    w * x * y + x * y,
    (x + y) * (w * x + w * y),
    Max(x, y) * w + Max(x, y) + w * x + x,
    w * x + x - w * y - y,
    (w * x) ** 2 * x / (w * x + y) / (x + y),
    x / fraction_power(x / (x + y), w * z + z),
]
"""Parts that come more than once when w, a unit, is 1; and a power that is an operation of two numbers."""


@pytest.mark.parametrize("expr", REPEATED)
def test_parts_that_come_more_than_once_count_as_often(expr: Any) -> None:
    """Units that are removed make equal parts of what SymPy tells apart."""
    others = {"one": x * y + x + z, "other": x * Max(x, y) + x + y + z}
    point = {"x": 2.0, "y": 3.0, "z": 5.0}
    for share in (False, True):
        program = lower([], {"expr": expr, **others}, share=share, stand_for={w: 1})
        found = run(program, point, floats())[program.outputs["expr"]]
        plain = expr.replace(fraction_power, lambda base, exponent: base**exponent)
        assert found == pytest.approx(float(plain.subs({x: 2, y: 3, z: 5, w: 1})), rel=1e-12)


def test_lets_stay() -> None:
    """Equal terms keep their own names; what they compute is shared with the rest."""
    one, two = sympy.symbols("one two")
    definitions = [(one, x * y * z), (two, x * y * w)]
    program = lower(definitions, {"sum": one + two, "same": Max(one, x * y * z + 1)}, share=True)
    assert list(program.lets) == ["one", "two"]
    assert operations(program) == 6
    assert values(program, {"x": 2, "y": 3, "z": 5, "w": 7}) == {"sum": 72, "same": 31}


def test_what_a_jump_reads_is_left_alone() -> None:
    """`x * (z / y)` rounds below or above a whole number where `x * z / y` is one."""
    jumps = {"tiles": ceil_div(x * z / y, 1), "there": 1 + above_one(x * z / (y * w))}
    others = {"a": w * z / y, "b": 3 * z / y + 1, "c": x * w / y}
    program = lower([], jumps | others, share=True)
    for divisor in range(1, 300):
        for multiple in (1, 2, 3, 7, 11):
            found = values(program, {"x": multiple * divisor, "z": 1, "y": divisor, "w": multiple})
            assert found["tiles"] == multiple
            assert found["there"] == 1


def test_quotients_stay_true_divisions() -> None:
    """A common divisor is not turned into a product with its reciprocal."""
    program = lower([], {"a": x / y, "b": z / y, "c": Max(w / y, x / y)}, share=True)
    assert ("constant", 1) not in program.instructions
    assert sum(operation == "divide" for operation, *_ in program.instructions) == 3


def test_the_step_gets_smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sixth or more of the operations of the real step is saved."""
    given_to_lower: list[Any] = []

    def remember(definitions: Any, outputs: Any, **options: Any) -> Any:
        given_to_lower[:] = [list(definitions), dict(outputs)]
        return lower(given_to_lower[0], outputs, **options)

    monkeypatch.setattr(build, "lower", remember)
    build.build(_structure())
    plain = lower(*given_to_lower, stand_for=UNITS)
    shared = lower(*given_to_lower, share=True, stand_for=UNITS)
    assert operations(shared) < operations(plain) * 5 / 6
    assert list(shared.lets) == list(plain.lets)
    inputs = step()[1]
    expected = values(plain, inputs)
    for name, value in values(shared, inputs).items():
        assert value == pytest.approx(expected[name], rel=4e-15, abs=0), name


def _structure() -> Any:
    from symperf import Model, Plan, System
    from symperf.runs.training_run import Run

    plan = Plan(tp=8, pp=8, vpp=3, recompute="selective", sequence_parallel=True)
    return Run(Model.load("gpt3-175b"), System.load("a100-80gb-sxm"), plan, batch=64, sequence=2048).structure


SCRIPT = """
import hashlib
import sympy
from symperf.codegen.lower import lower
from symperf.formulas.language.atoms import Max, Min, ceil_div
a, b, c, d, e = sympy.symbols("a b c d e", positive=True)
terms = [ceil_div(p * q, r) * s for p in (a, b) for q in (b, c) for r in (d, e) for s in (a * c, d * e)]
outputs = {"max": Max(*terms) + a * b * c / d, "sum": sum(terms) * b * c / d, "min": Min(*terms, a * b * c)}
print(hashlib.sha256(lower([], outputs, share=True).text().encode()).hexdigest())
"""


def test_the_text_does_not_depend_on_hashes(tmp_path: Path) -> None:
    """Three processes with different hash seeds write the same program."""
    path = os.pathsep.join(each for each in sys.path if each)
    found = set()
    for seed in ("1", "2", "3"):
        environment = os.environ | {"PYTHONPATH": path, "PYTHONHASHSEED": seed}
        command = [sys.executable, "-c", SCRIPT]
        done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=tmp_path, env=environment)
        found.add(done.stdout)
    assert len(found) == 1
