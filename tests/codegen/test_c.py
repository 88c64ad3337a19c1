"""The C back end: real compilers, exact answers, clean warnings, no undefined behaviour, and names that do no harm."""

from __future__ import annotations

import ctypes
import math
import subprocess
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from support.programs import step
from support.tools import (
    HOSTILE,
    assert_exact,
    exact_values,
    fifty_digits,
    hostile_program,
    rational_points,
    rational_program,
    step_points,
    tool,
    whole_program,
)

from symperf.codegen.export import c_source
from symperf.codegen.interpret import arrays, floats, run
from symperf.codegen.passes import prune
from symperf.codegen.printers.c import TABLE, constants, function_name, number
from symperf.codegen.program import OPERATIONS, Program

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    Point = Callable[[Mapping[str, float]], dict[str, float]]
    Compile = Callable[[Program, Sequence[str]], Point]

STRICT = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Wshadow", "-Wconversion", "-Werror"]
OPTIMISED = ["-std=c99", "-O3", "-march=native", "-ffp-contract=off", "-fPIC", "-shared"]


def _run_compiler(folder: Path, *arguments: str) -> None:
    command = [tool("gcc", "cc", "clang"), *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def _write(folder: Path, program: Program, outputs: Sequence[str]) -> None:
    header, source = c_source(program, outputs, "unit")
    (folder / "unit.h").write_text(header)
    (folder / "unit.c").write_text(source)


def _load(folder: Path, program: Program, outputs: Sequence[str]) -> ctypes.CDLL:
    _write(folder, program, outputs)
    _run_compiler(folder, *OPTIMISED, "unit.c", "-lm", "-o", "unit.so")
    return ctypes.CDLL(str(folder / "unit.so"))


@pytest.fixture
def compile_c(tmp_path_factory: pytest.TempPathFactory) -> Compile:
    """Compiles outputs of a program with all optimisations that keep a double's bits, and gives the function."""

    def compile_one(program: Program, outputs: Sequence[str]) -> Point:
        unit = _load(tmp_path_factory.mktemp("unit"), program, outputs).unit
        names = list(prune(program, outputs).inputs)
        results = (ctypes.c_double * len(outputs))()

        def point(values: Mapping[str, float]) -> dict[str, float]:
            unit((ctypes.c_double * len(names))(*[values[name] for name in names]), results)
            return dict(zip(outputs, results, strict=True))

        return point

    return compile_one


def _rows(points: Mapping[str, np.ndarray]) -> list[dict[str, float]]:
    return [dict(zip(points, map(float, row), strict=True)) for row in zip(*points.values(), strict=True)]


def test_every_operation_has_a_text() -> None:
    """The table covers what a program may hold, and nothing else."""
    assert set(TABLE) == set(OPERATIONS) - {"input", "constant"}


def test_exact_at_ten_thousand_points(compile_c: Compile) -> None:
    """Every output is within 1e-13 of its exact value, also where what is rounded up divides exactly."""
    program, points = rational_program(), rational_points(10_000)
    point = compile_c(program, list(program.outputs))
    rows = [point(row) for row in _rows(points)]
    expected = exact_values(program, points)
    for name in program.outputs:
        assert_exact([row[name] for row in rows], expected[name])
    assert [row["bins"] for row in rows] == expected["bins"]


def test_ceil_div_at_exact_multiples(compile_c: Compile) -> None:
    """`ceil(525 * (1/75))` is 8; the compiler's flags leave the division alone."""
    program = Program([("input", "a"), ("input", "b"), ("ceil_div", 0, 1)], {"a": 0, "b": 1}, {}, {"bins": 2})
    point = compile_c(program, ["bins"])
    for multiple in (1, 2, 3, 7, 39, 997, 4999):
        for divisor in range(1, 300):
            for rows in (multiple * divisor - 1, multiple * divisor, multiple * divisor + 1):
                assert point({"a": rows, "b": divisor}) == {"bins": -(-rows // divisor)}
    assert point({"a": 525, "b": 75}) == {"bins": 7}


def test_as_the_interpreter(compile_c: Compile) -> None:
    """Every operation, at 10,000 points: the interpreter's values."""
    program = whole_program()
    rng = np.random.default_rng(1)
    columns = {name: 10.0 ** rng.uniform(-1, 2, 10_000) for name in program.inputs}
    point = compile_c(program, list(program.outputs))
    rows, expected = [point(row) for row in _rows(columns)], run(program, columns, arrays())
    for name, position in program.outputs.items():
        np.testing.assert_allclose([row[name] for row in rows], expected[position], rtol=1e-13, atol=1e-13)


def test_a_whole_step(compile_c: Compile) -> None:
    """The largest program: all outputs as the interpreter's at 2,000 points, and as with fifty digits at some."""
    program, inputs = step()
    points = step_points(inputs, 2_000)
    names = ["time", "memory", "mfu", "tokens_per_s", *(name for name in program.outputs if name.endswith("bytes"))]
    point = compile_c(program, names)
    rows, expected = [point(row) for row in _rows(points)], run(program, points, arrays())
    for name in names:
        np.testing.assert_allclose([row[name] for row in rows], expected[program.outputs[name]], rtol=1e-13)
    for k in range(0, 2_000, 40):
        exactly = run(program, {name: values[k] for name, values in points.items()}, fifty_digits())
        assert_exact([rows[k][name] for name in names], [exactly[program.outputs[name]] for name in names])


def test_no_warnings(tmp_path: Path) -> None:
    """Strict C99 with every warning an error: for every operation, for none, and for hostile names."""
    bare = Program([("constant", -2.5), ("constant", 0.1)], {}, {}, {"c": 0, "d": 1})
    for k, program in enumerate((whole_program(), hostile_program(), rational_program(), bare)):
        folder = tmp_path / str(k)
        folder.mkdir()
        _write(folder, program, list(program.outputs))
        assert ((folder / "unit.h").read_text() + (folder / "unit.c").read_text()).isascii()
        _run_compiler(folder, *STRICT, "-O2", "-c", "unit.c")


MAIN = """
#include "unit.h"
#include <math.h>
#include <stdio.h>
int main(void)
{
    static const double values[] = {0.0, -0.0, 1.0, -1.0, 3.0, 1e308, -1e308, 5e-324, INFINITY, NAN};
    double inputs[UNIT_INPUTS], outputs[UNIT_OUTPUTS];
    for (int n = 0; n < 10000; n++) {
        for (int k = 0, rest = n; k < UNIT_INPUTS; k++, rest /= 10) inputs[k] = values[rest % 10];
        unit(inputs, outputs);
        printf("%g\\n", outputs[0]);
    }
    return 0;
}
"""


def test_no_undefined_behaviour(tmp_path: Path) -> None:
    """The sanitisers find nothing, with every mix of zeros, infinities, NaN, tiny and huge numbers."""
    assert len(whole_program().inputs) == 4
    _write(tmp_path, whole_program(), list(whole_program().outputs))
    (tmp_path / "main.c").write_text(MAIN)
    sanitise = ["-fsanitize=undefined,address", "-fno-sanitize-recover=all"]
    _run_compiler(tmp_path, *STRICT, "-O1", *sanitise, "unit.c", "main.c", "-lm", "-o", "unit")
    done = subprocess.run([tmp_path / "unit"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert len(done.stdout.split()) == 10_000


def test_hostile_names(compile_c: Compile, tmp_path: Path) -> None:
    """Each name keeps its place and its spelling, and none ends a comment or a string."""
    program = hostile_program()
    values = {name: 100.0 * k for k, name in enumerate(HOSTILE)}
    assert compile_c(program, HOSTILE)(values) == {name: 101.0 * k for k, name in enumerate(HOSTILE)}
    loaded = _load(tmp_path, program, HOSTILE)
    for part in ("input", "output"):
        names = (ctypes.c_char_p * len(HOSTILE)).in_dll(loaded, f"unit_{part}_names")
        spelled = [name.encode("utf-8", "surrogatepass").split(b"\0")[0] for name in HOSTILE]
        assert list(names) == spelled


def test_identifiers_are_distinct() -> None:
    """Names that differ only in what C cannot spell get numbers, also where these are taken."""
    names = ["a/b", "a_b", "a_b_2", "a b", *HOSTILE[3:]]
    found = constants("P_", names)
    assert len(set(found.values())) == len(names)
    assert all(value.isascii() and value.isidentifier() for value in found.values())


@pytest.mark.parametrize(
    "name", ["int", "class", "log2", "main", "inputs", "outputs", "v12", "", "2x", "a-b", "a b", "é", "_x"]
)
def test_names_that_a_function_cannot_have(name: str) -> None:
    """Words of C and C++, of the library and of the generated code, and what is no identifier."""
    with pytest.raises(ValueError, match="cannot be the name"):
        function_name(name)
    with pytest.raises(ValueError, match="cannot be the name"):
        c_source(whole_program(), ["first"], name)


@pytest.mark.parametrize(
    ("arguments", "error", "complaint"),
    [
        ({"outputs": []}, ValueError, "no outputs"),
        ({"outputs": ["first", "first"]}, ValueError, "'first' is named twice"),
        ({"outputs": ["nothing"]}, KeyError, "nothing"),
    ],
)
def test_bad_requests(arguments: dict[str, Any], error: type[Exception], complaint: str) -> None:
    """Each is refused by name."""
    with pytest.raises(error, match=complaint):
        c_source(**{"program": whole_program(), "outputs": ["first"], "name": "unit"} | arguments)


@pytest.mark.parametrize(
    "value", [0, 1, -3, 0.1, -0.0, 1e300, 5e-324, 2**53 + 2, 2.0**80, math.pi, math.inf, -math.inf]
)
def test_numbers_round_trip(value: float, compile_c: Compile) -> None:
    """What C reads is the double that was written."""
    program = Program([("constant", value)], {}, {}, {"z": 0})
    found = compile_c(program, ["z"])({})["z"]
    assert (found, math.copysign(1, found)) == (float(value), math.copysign(1, value))
    if math.isfinite(value):
        assert "," not in number(value)


def test_a_whole_number_too_large_is_refused() -> None:
    """It is no double."""
    with pytest.raises(OverflowError):
        number(10**400)


def test_text_is_deterministic() -> None:
    """The same program gives the same text."""
    one, two = whole_program(), Program.from_json(whole_program().to_json())
    assert c_source(one, list(one.outputs), "unit") == c_source(two, list(two.outputs), "unit")


def test_floats_bit_for_bit(compile_c: Compile) -> None:
    """Without logarithms and general powers, a point is the interpreter's to the last bit."""
    program = rational_program()
    point = compile_c(program, list(program.outputs))
    for row in _rows(rational_points(300)):
        values = run(program, row, floats())
        assert point(row) == {name: values[position] for name, position in program.outputs.items()}
