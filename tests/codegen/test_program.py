"""The flat program: it survives JSON unchanged, and one that is malformed is refused, never run."""

from __future__ import annotations

import json
from typing import Any

import pytest
import sympy
from hypothesis import given
from support.strategies import expressions

from symperf.codegen.lower import lower
from symperf.codegen.program import OPERATIONS, Program

x, y = sympy.symbols("x y")


@given(expressions)
def test_json_round_trip(expr: Any) -> None:
    """A program written as JSON text and read back is the same program."""
    program = lower([(sympy.Symbol("part"), expr)], {"whole": expr + 1})
    again = Program.from_json(json.loads(json.dumps(program.to_json())))
    assert again == program
    assert again.text() == program.text()
    assert len(again) == len(program)


def test_text_names_values() -> None:
    """One line an instruction, with the names of its value."""
    half = sympy.Symbol("half")
    lines = lower([(half, x / 2)], {"z": half, "y": half, "a": x}).text().splitlines()
    assert lines == ["%0 = constant 2", "%1 = input x  ; a", "%2 = divide %1 %0", "%3 = let %2  ; z, y, let half"]


GOOD: dict[str, Any] = {
    "instructions": [["input", "x"], ["constant", 2], ["multiply", 0, 1], ["let", 2]],
    "inputs": {"x": 0},
    "lets": {"double": 3},
    "outputs": {"double": 3},
}


def test_the_good_one_is_accepted() -> None:
    """The program that the malformed ones are made from is fine."""
    assert Program.from_json(GOOD).outputs == {"double": 3}


@pytest.mark.parametrize(
    ("part", "value", "complaint"),
    [
        ("instructions", [["exp", 0]], "unknown operation 'exp'"),
        ("instructions", [["input", "x"], ["add", 0]], "instruction 1: add"),
        ("instructions", [["input", "x"], ["sqrt", 0, 0]], "instruction 1: sqrt"),
        ("instructions", [["input", "x"], ["add", 0, 1]], "instruction 1: add"),
        ("instructions", [["input", "x"], ["add", 0, 2], ["input", "y"]], "instruction 1: add"),
        ("instructions", [["input", "x"], ["add", -1, 0]], "instruction 1: add"),
        ("instructions", [["input", "x"], ["add", 0, 0.5]], "instruction 1: add"),
        ("instructions", [["input", "x"], ["add", 0, "x"]], "instruction 1: add"),
        ("instructions", [["input"]], "instruction 0: input"),
        ("instructions", [["constant", "2"]], "instruction 0: constant"),
        ("outputs", {"z": 4}, "outside the program"),
        ("inputs", {"x": -1}, "outside the program"),
        ("lets", {"double": 9}, "outside the program"),
    ],
)
def test_malformed_programs_are_refused(part: str, value: Any, complaint: str) -> None:
    """An unknown operation, a wrong number or kind of operands, a forward reference, a name for nothing."""
    data = json.loads(json.dumps(GOOD | {part: value}))
    if part == "instructions":
        data |= {"inputs": {}, "lets": {}, "outputs": {}}
    with pytest.raises(ValueError, match=complaint):
        Program.from_json(data)


@pytest.mark.parametrize("part", sorted(GOOD))
def test_a_missing_part_is_an_error(part: str) -> None:
    """All four parts have to be there."""
    with pytest.raises(KeyError, match=part):
        Program.from_json({name: value for name, value in GOOD.items() if name != part})


def test_every_operation_has_a_number_of_operands() -> None:
    """None takes more than two."""
    assert set(OPERATIONS.values()) == {0, 1, 2}
