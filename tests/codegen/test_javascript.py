"""The JavaScript back end, run by Node.js: exact answers, clear errors, and names that do no harm."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from support.programs import step
from support.tools import (
    HOSTILE,
    assert_exact,
    exact_values,
    hostile_program,
    rational_points,
    rational_program,
    step_points,
    tool,
    whole_program,
)

from symperf.codegen.export import javascript_module
from symperf.codegen.interpret import floats, run
from symperf.codegen.printers.javascript import TABLE, number, string
from symperf.codegen.program import OPERATIONS, Program

if TYPE_CHECKING:
    from pathlib import Path

SCRIPT = """
import { readFileSync } from "node:fs";
import * as module from "./unit.mjs";
const points = JSON.parse(readFileSync("points.json", "utf8"));
const found = points.map((point) => {
  try {
    return Object.entries(module.evaluate(point)).map(([name, v]) => [name, Object.is(v, -0) ? "-0" : String(v)]);
  } catch (error) {
    return `${error.name}: ${error.message}`;
  }
});
console.log(JSON.stringify({ inputs: module.inputs, outputs: module.outputs, exports: Object.keys(module), found }));
"""


def _run(program: Program, outputs: list[str], points: list[Any], folder: Path) -> dict[str, Any]:
    """What Node.js says of a module: its lists, and for each point its outputs by name, or the error."""
    text = javascript_module(program, outputs, "unit")
    assert text.isascii()
    (folder / "unit.mjs").write_text(text)
    (folder / "main.mjs").write_text(SCRIPT)
    (folder / "points.json").write_text(json.dumps(points).replace("Infinity", "1e999"))
    done = subprocess.run([tool("node", "nodejs"), "main.mjs"], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    result["found"] = [
        found if isinstance(found, str) else {name: float(value.replace("Infinity", "inf")) for name, value in found}
        for found in result["found"]
    ]
    return result


def _rows(columns: dict[str, np.ndarray]) -> list[dict[str, float]]:
    return [dict(zip(columns, row, strict=True)) for row in zip(*(c.tolist() for c in columns.values()), strict=True)]


def test_every_operation_has_a_text() -> None:
    """The table covers what a program may hold, and nothing else."""
    assert set(TABLE) == set(OPERATIONS) - {"input", "constant"}


def test_exact_at_ten_thousand_points(tmp_path: Path) -> None:
    """Every output is within 1e-13 of its exact value, also where what is rounded up divides exactly."""
    program, points = rational_program(), rational_points(10_000)
    result = _run(program, list(program.outputs), _rows(points), tmp_path)
    expected = exact_values(program, points)
    for name in program.outputs:
        assert_exact([found[name] for found in result["found"]], expected[name])
    assert [found["bins"] for found in result["found"]] == expected["bins"]
    assert sorted(result["inputs"]) == sorted(program.inputs)
    assert result["outputs"] == list(program.outputs)
    assert sorted(result["exports"]) == ["evaluate", "inputs", "outputs"]


def test_as_the_interpreter(tmp_path: Path) -> None:
    """Every operation, logarithms and general powers included."""
    program = whole_program()
    rng = np.random.default_rng(2)
    rows = _rows({name: 10.0 ** rng.uniform(-1, 2, 10_000) for name in program.inputs})
    result = _run(program, list(program.outputs), rows, tmp_path)
    for row, found in zip(rows, result["found"], strict=True):
        values = run(program, row, floats())
        expected = {name: pytest.approx(values[p], rel=1e-13, abs=1e-13) for name, p in program.outputs.items()}
        assert found == expected


def test_a_whole_step(tmp_path: Path) -> None:
    """The largest program, all its outputs, as the interpreter's."""
    program, inputs = step()
    rows = _rows(step_points(inputs, 300))
    result = _run(program, list(program.outputs), rows, tmp_path)
    for row, found in zip(rows, result["found"], strict=True):
        values = run(program, row, floats())
        assert list(found) == list(program.outputs)
        assert_exact(list(found.values()), [values[position] for position in program.outputs.values()])


def test_ceil_div_at_exact_multiples(tmp_path: Path) -> None:
    """`ceil(525 * (1/75))` is 8; here it is 7, and so for every divisor below 300."""
    program = Program([("input", "a"), ("input", "b"), ("ceil_div", 0, 1)], {"a": 0, "b": 1}, {}, {"bins": 2})
    pairs = [(k * d + more, d) for d in range(1, 300) for k in (1, 3, 7, 39, 997) for more in (-1, 0, 1)]
    result = _run(program, ["bins"], [{"a": a, "b": b} for a, b in pairs], tmp_path)
    assert [found["bins"] for found in result["found"]] == [-(-a // b) for a, b in pairs]


def test_hostile_names(tmp_path: Path) -> None:
    """Each name keeps its spelling, also that of the prototype, and none ends a comment or a string."""
    program = hostile_program()
    point = {name: 100.0 * k for k, name in enumerate(HOSTILE)}
    result = _run(program, HOSTILE, [point], tmp_path)
    assert result["found"] == [{name: 101.0 * k for k, name in enumerate(HOSTILE)}]
    assert result["inputs"] == HOSTILE
    assert result["outputs"] == HOSTILE
    text = javascript_module(program, HOSTILE, "*/ evil(); //\n</script>")
    assert "evil()" not in text.replace("\\u002a/ evil()\\u003b", "")
    assert "</script" not in text


def test_errors_are_clear(tmp_path: Path) -> None:
    """A value that is absent, or no number, is named; NaN and infinity pass."""
    program = Program([("input", "a/b"), ("sqrt", 0)], {"a/b": 0}, {}, {"root": 1})
    points = [{}, {"a/b": "4"}, {"a/b": None}, {"a/b": 4}, {"a/b": -1}, {"a/b": 1e999}, None]
    found = _run(program, ["root"], points, tmp_path)["found"]
    assert found[:3] == [
        f'TypeError: input "a/b": expected a number, found {what}' for what in ("undefined", "string", "null")
    ]
    assert found[3] == {"root": 2}
    assert np.isnan(found[4]["root"])
    assert found[5] == {"root": np.inf}
    assert found[6].startswith("TypeError")


def test_inherited_names_are_no_values(tmp_path: Path) -> None:
    """What every object has is not taken for an input."""
    program = Program([("input", "constructor")], {"constructor": 0}, {}, {"z": 0})
    assert _run(program, ["z"], [{}], tmp_path)["found"] == [
        'TypeError: input "constructor": expected a number, found function'
    ]


def test_numbers_round_trip(tmp_path: Path) -> None:
    """What JavaScript reads is the double that was written."""
    values = [0, 1, -3, 0.1, -0.0, 1e300, 5e-324, 2**53 + 2, 2.0**80, 1e16, 1e21, -1e-7, float("inf"), float("-inf")]
    instructions = [("constant", value) for value in values]
    program = Program(instructions, {}, {}, {str(k): k for k in range(len(values))})
    found = _run(program, list(program.outputs), [{}], tmp_path)["found"][0]
    assert [repr(found[str(k)]) for k in range(len(values))] == [repr(float(value)) for value in values]
    assert number(float("nan")) == "NaN"
    with pytest.raises(OverflowError):
        number(10**400)


def test_strings_stay_apart() -> None:
    """Distinct names have distinct literals."""
    assert len({string(name) for name in HOSTILE}) == len(HOSTILE)


@pytest.mark.parametrize(
    ("outputs", "error", "complaint"),
    [([], ValueError, "no outputs"), (["first", "first"], ValueError, "twice"), (["nothing"], KeyError, "nothing")],
)
def test_bad_requests(outputs: list[str], error: type[Exception], complaint: str) -> None:
    """Each is refused by name."""
    with pytest.raises(error, match=complaint):
        javascript_module(whole_program(), outputs, "unit")


def test_only_what_the_outputs_need() -> None:
    """Inputs and statements of other outputs are left out, and the text is the same every time."""
    text = javascript_module(whole_program(), ["slack"], "unit")
    assert "log2" not in text
    assert '"n"' not in text
    assert text == javascript_module(Program.from_json(whole_program().to_json()), ["slack"], "unit")
