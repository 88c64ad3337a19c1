"""The texts of plain Python: bit for bit the interpreter, literals that are exact and safe in any place."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from support.programs import step, values
from support.strategies import float_points, programs

from symperf.codegen.passes import prune
from symperf.codegen.printers.python import TABLE, number
from symperf.codegen.printers.table import statements
from symperf.codegen.program import OPERATIONS, Program


def evaluate(program: Program, point: dict[str, float]) -> dict[str, Any]:
    """The outputs, by running the statements."""
    program = prune(program, list(program.outputs))
    reads = {name: f"point[{k}]" for k, name in enumerate(program.inputs)}
    lines, texts = statements(program, TABLE, number, reads, "{} = {}")
    scope: dict[str, Any] = {name: getattr(math, name) for name in ("ceil", "inf", "log2", "nan", "sqrt")}
    scope["point"] = [float(point[name]) for name in program.inputs]
    exec("\n".join(lines), scope)
    return {name: eval(texts[position], scope) for name, position in program.outputs.items()}


@given(programs, float_points)
def test_bit_for_bit_the_interpreter(program: Program, point: dict[str, float]) -> None:
    assert evaluate(program, point) == values(program, point)


def test_the_step() -> None:
    program, inputs = step()
    assert evaluate(program, inputs) == values(program, inputs)


@pytest.mark.parametrize("value", [0.0, -0.0, 2, -2, 0.1, 1e300, -1e-300, 5e-324, float("inf"), float("-inf"), 10**20])
@pytest.mark.parametrize("operation", sorted(set(OPERATIONS) - {"input", "constant"}))
def test_every_operation_on_constants_of_any_sign(operation: str, value: float) -> None:
    """A negative base is not an exponent's sign, and what fails in the interpreter fails here."""
    count = OPERATIONS[operation]
    operands = (0,) * count if count == 1 else (0, 1)
    program = Program([("constant", value), ("input", "x"), (operation, *operands)], {"x": 1}, {}, {"z": 2})
    for x in (2.0, 3.0, -1.0, 0.0):
        outcomes: list[Any] = []
        for back_end in (values, evaluate):
            try:
                outcomes.append(back_end(program, {"x": x})["z"])
            except (ArithmeticError, ValueError) as error:
                outcomes.append(type(error))
        assert outcomes[0] == outcomes[1] or outcomes[0] != outcomes[0]


def test_the_table_is_complete() -> None:
    """Each operation has a text."""
    assert set(TABLE) == set(OPERATIONS) - {"input", "constant"}


def test_literals() -> None:
    """Exact and safe in any place."""
    assert [number(v) for v in (1, -1, 0.1, float("nan"), float("-inf"))] == ["1.0", "(-1.0)", "0.1", "nan", "(-inf)"]
