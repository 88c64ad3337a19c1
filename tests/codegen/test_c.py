"""The C back end: real compilers, exact answers, clean warnings, no undefined behaviour, and names that do no harm."""

from __future__ import annotations

import ctypes
import itertools
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

from symperf.codegen import native
from symperf.codegen.export import c_source
from symperf.codegen.interpret import arrays, floats, run
from symperf.codegen.native import CompilerError, Native, compiler
from symperf.codegen.printers.c import TABLE, constants, function_name, number
from symperf.codegen.program import OPERATIONS, Program
from symperf.codegen.store import Store

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

STRICT = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Wshadow", "-Wconversion", "-Werror"]
AXES = ("x", "y", "n")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    tool("cc", "gcc", "clang")
    folder = tmp_path_factory.mktemp("native")
    folder.chmod(0o700)
    return Store(folder)


def _write(folder: Path, header: str, source: str, name: str = "unit") -> None:
    (folder / f"{name}.h").write_text(header)
    (folder / f"{name}.c").write_text(source)


def _compiled(folder: Path, *arguments: str) -> None:
    command = [tool("gcc", "cc", "clang"), *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def _everything(program: Program, axes: Sequence[str], constraints: Sequence[str] = ()) -> tuple[str, str]:
    return c_source(program, list(program.outputs), "unit", axes=axes, constraints=constraints)


def test_every_operation_has_a_text() -> None:
    """The table covers what a program may hold, and nothing else."""
    assert set(TABLE) == set(OPERATIONS) - {"input", "constant"}


def test_exact_at_a_hundred_thousand_points(store: Store) -> None:
    """Every output is within 1e-13 of its exact value, also where what is rounded up divides exactly."""
    program, points = rational_program(), rational_points(100_000)
    found = Native(program, list(program.outputs), store).points({}, points)
    expected = exact_values(program, points)
    for name in program.outputs:
        assert_exact(found[name], expected[name])
    assert found["bins"].tolist() == expected["bins"]


def test_ceil_div_at_exact_multiples(store: Store) -> None:
    """`ceil(525 * (1/75))` is 8; the compiler's flags leave the division alone, in points and in a grid."""
    program = Program([("input", "a"), ("input", "b"), ("ceil_div", 0, 1)], {"a": 0, "b": 1}, {}, {"bins": 2})
    divisors = np.arange(1.0, 300.0)
    kernel = Native(program, ["bins"], store, axes=["b"], columns=["a", "b"])
    for multiple in (1, 2, 3, 7, 39, 997, 4999):
        for more in (-1, 0, 1):
            expected = [-((-(multiple * int(d) + more)) // int(d)) for d in divisors]
            columns = {"a": multiple * divisors + more, "b": divisors}
            assert kernel.points({}, columns)["bins"].tolist() == expected
    assert kernel.grid({"a": 525.0}, {"b": divisors})["bins"][74] == 7
    assert kernel.point({"a": 525, "b": 75}) == {"bins": 7}


def test_as_the_interpreter(store: Store) -> None:
    """Every operation, at 100,000 points: the interpreter's values, and single points give the same bits."""
    program = whole_program()
    rng = np.random.default_rng(1)
    columns = {name: 10.0 ** rng.uniform(-1, 2, 100_000) for name in program.inputs}
    kernel = Native(program, list(program.outputs), store)
    found, expected = kernel.points({}, columns), run(program, columns, arrays())
    for name, position in program.outputs.items():
        np.testing.assert_allclose(found[name], expected[position], rtol=1e-13, atol=1e-13)
    for k in range(0, 100_000, 5000):
        point = kernel.point({name: values[k] for name, values in columns.items()})
        assert point == {name: values[k] for name, values in found.items()}
    again = Native(program, ["second"], store, columns=["n", "x"]).points(
        {"z": 3.0, "y": 2.0}, {"n": columns["n"], "x": columns["x"]}
    )
    expected = run(program, columns | {"z": np.float64(3), "y": np.float64(2)}, arrays())
    np.testing.assert_allclose(again["second"], expected[program.outputs["second"]], rtol=1e-13, atol=1e-13)


def test_a_whole_step(store: Store) -> None:
    """The largest program: all outputs as the interpreter's at 100,000 points, and as with fifty digits at some."""
    program, inputs = step()
    points = step_points(inputs, 100_000)
    names = ["time", "memory", "mfu", "tokens_per_s", *(name for name in program.outputs if name.endswith("bytes"))]
    found = Native(program, names, store).points({}, points)
    expected = run(program, points, arrays())
    for name in names:
        np.testing.assert_allclose(found[name], expected[program.outputs[name]], rtol=1e-13)
    for k in range(0, 100_000, 1000):
        exactly = run(program, {name: values[k] for name, values in points.items()}, fifty_digits())
        assert_exact([found[name][k] for name in names], [exactly[program.outputs[name]] for name in names])


@pytest.mark.parametrize("axes", [*itertools.permutations(AXES), ("x",), ("n", "x", "z", "y")])
@pytest.mark.parametrize("usual", [2, 500])
def test_a_grid_is_its_points(axes: tuple[str, ...], usual: int, store: Store) -> None:
    """In any order of the axes, whatever loop is innermost, for sizes about those of a block."""
    program = whole_program()
    kernel = Native(
        program, ["first", "second"], store, axes=axes, sizes={axes[0]: usual}, constraints=["slack"], minimise="second"
    )
    rng = np.random.default_rng(len(axes))
    scalars = {"x": 2.0, "y": 3.0, "z": 50.0, "n": 4.0}
    for sizes in [(1, 1, 1, 1), (3, 17, 5, 2), (513, 2, 3, 1), (2, 3, 530, 1), (4, 0, 2, 1)]:
        given = {axis: rng.uniform(0.5, 20, size) for axis, size in zip(axes, sizes, strict=False)}
        mesh = dict(zip(axes, np.meshgrid(*given.values(), indexing="ij"), strict=True))
        expected = run(program, scalars | mesh, arrays())
        found = kernel.grid(scalars, given)
        for name in ("first", "second"):
            np.testing.assert_allclose(found[name], expected[program.outputs[name]], rtol=1e-13, atol=1e-13)
        second = expected[program.outputs["second"]]
        feasible = np.where(np.broadcast_to(expected[program.outputs["slack"]], second.shape) >= 0, second, np.inf)
        best = kernel.argmin(scalars, given)
        if not np.isfinite(feasible).any():
            assert best is None
            continue
        assert best is not None
        assert best[0] == int(np.argmin(feasible))
        at = np.unravel_index(best[0], feasible.shape)
        point = kernel.point(scalars | {axis: given[axis][k] for axis, k in zip(axes, at, strict=True)})
        assert best[1] == point


def test_the_smallest_index_of_equals(store: Store) -> None:
    """Whatever the loops' order; NaN and infinity are never the best."""
    program = Program(
        [("input", "a"), ("input", "b"), ("ceil_div", 0, 1), ("log2", 0), ("multiply", 2, 3), ("sqrt", 4)],
        {"a": 0, "b": 1}, {}, {"z": 5},
    )  # fmt: skip
    a, b = np.array([-1.0, 4.0, 0.0, 2.0, np.nan, 4.0]), np.array([np.nan, 3.0, 2.0, np.inf, 2.0, 4.0])
    for axes, usual in itertools.product((("a", "b"), ("b", "a")), (1, 900)):
        kernel = Native(program, ["z"], store, axes=axes, sizes={"a": usual})
        given = {"a": a, "b": b}
        shape = tuple(len(given[axis]) for axis in axes)
        with np.errstate(all="ignore"):
            mesh = dict(zip(axes, np.meshgrid(*[given[axis] for axis in axes], indexing="ij"), strict=True))
            expected = run(program, mesh, arrays())[5]
        best = kernel.argmin({}, given)
        assert best is not None
        assert best[0] == int(np.nanargmin(expected)), (axes, shape)


def test_many_threads_and_blocks_agree(store: Store) -> None:
    """A grid of a million equal points has its best at index 0, whichever thread comes first."""
    program = Program([("input", "a"), ("input", "b"), ("min", 0, 1)], {"a": 0, "b": 1}, {}, {"z": 2})
    kernel = Native(program, ["z"], store, axes=["a", "b"])
    assert kernel.argmin({}, {"a": np.ones(1000), "b": np.ones(1000)}) == (0, {"z": 1.0})


@pytest.mark.parametrize("openmp", [[], ["-fopenmp"]])
def test_no_warnings(openmp: list[str], tmp_path: Path) -> None:
    """Strict C99 with every warning an error: for every operation, for none, and for hostile names."""
    bare = Program([("constant", -2.5), ("constant", 0.1)], {}, {}, {"c": 0, "d": 1})
    cases = [
        _everything(whole_program(), AXES, ["slack"]),
        _everything(hostile_program(), ["*/ evil(); /*", "", "int"], ["\\", "??/"]),
        _everything(rational_program(), ()),
        c_source(rational_program(), ["bins"], "unit", columns=(), axes=["bw"]),
        c_source(whole_program(), ["slack"], "unit", columns=["n"], axes=["n", "x"]),
        c_source(bare, ["c", "d"], "unit"),
    ]
    for k, (header, source) in enumerate(cases):
        folder = tmp_path / str(k)
        folder.mkdir()
        _write(folder, header, source)
        assert (header + source).isascii()
        _compiled(folder, *STRICT, *openmp, "-O2", "-c", "unit.c")


MAIN = """
#include "unit.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
int main(void)
{
    static const double values[] = {0.0, -0.0, 1.0, -1.0, 3.0, 1e308, -1e308, 5e-324, INFINITY, NAN};
    size_t sizes[UNIT_AXES];
    const double *axes[UNIT_AXES];
    const double *columns[UNIT_INPUTS];
    double inputs[UNIT_INPUTS], outputs[UNIT_OUTPUTS];
    double *results[UNIT_OUTPUTS];
    for (size_t n = 0; n <= 10; n++) {
        size_t points = 1;
        for (size_t k = 0; k < UNIT_AXES; k++) { sizes[k] = n; axes[k] = values; points *= n; }
        for (size_t k = 0; k < UNIT_INPUTS; k++) { inputs[k] = values[(n + k) % 10]; columns[k] = values; }
        for (size_t o = 0; o < UNIT_OUTPUTS; o++) results[o] = malloc((points + 1) * sizeof(double));
        unit(inputs, outputs);
        unit_points(inputs, n, columns, results);
        unit_grid(inputs, axes, sizes, results);
        size_t best = unit_argmin(inputs, axes, sizes, outputs);
        printf("%zu\\n", best);
        for (size_t o = 0; o < UNIT_OUTPUTS; o++) free(results[o]);
    }
    return 0;
}
"""


def test_no_undefined_behaviour(tmp_path: Path) -> None:
    """The sanitisers find nothing, with zeros, infinities, NaN, tiny and huge numbers, and empty axes."""
    _write(tmp_path, *_everything(whole_program(), AXES, ["slack"]))
    (tmp_path / "main.c").write_text(MAIN)
    sanitise = ["-fsanitize=undefined,address", "-fno-sanitize-recover=all"]
    _compiled(tmp_path, *STRICT, "-O1", *sanitise, "unit.c", "main.c", "-lm", "-o", "unit")
    done = subprocess.run([tmp_path / "unit"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert len(done.stdout.split()) == 11


def test_hostile_names(store: Store) -> None:
    """Each name keeps its place and its spelling, and none ends a comment or a string."""
    program = hostile_program()
    kernel = Native(program, HOSTILE, store)
    values = {name: 100.0 * k for k, name in enumerate(HOSTILE)}
    assert kernel.point(values) == {name: 101.0 * k for k, name in enumerate(HOSTILE)}
    loaded = ctypes.CDLL(str(kernel.path))
    for part in ("input", "output"):
        names = (ctypes.c_char_p * len(HOSTILE)).in_dll(loaded, f"kernel_of_program_{part}_names")
        spelled = [name.encode("utf-8", "surrogatepass").split(b"\0")[0] for name in HOSTILE]
        assert list(names) == spelled


def test_identifiers_are_distinct() -> None:
    """Names that differ only in what C cannot spell get numbers, also where these are taken."""
    names = ["a/b", "a_b", "a_b_2", "a b", *HOSTILE[3:]]
    found = constants("P_", names)
    assert len(set(found.values())) == len(names)
    assert all(value.isascii() and value.isidentifier() for value in found.values())


@pytest.mark.parametrize(
    "name", ["int", "class", "log2", "main", "best", "point", "v12", "", "2x", "a-b", "a b", "é", "_x"]
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
        ({"axes": ["x", "x"]}, ValueError, "axis 'x' is named twice"),
        ({"axes": ["nothing"]}, KeyError, "nothing"),
        ({"columns": ["nothing"]}, KeyError, "nothing"),
        ({"axes": ["x"], "constraints": ["nothing"]}, KeyError, "nothing"),
        ({"axes": ["x"], "minimise": "nothing"}, KeyError, "nothing"),
    ],
)
def test_bad_requests(arguments: dict[str, Any], error: type[Exception], complaint: str) -> None:
    """Each is refused by name."""
    with pytest.raises(error, match=complaint):
        c_source(**{"program": whole_program(), "outputs": ["first"], "name": "unit"} | arguments)


@pytest.mark.parametrize(
    "value", [0, 1, -3, 0.1, -0.0, 1e300, 5e-324, 2**53 + 2, 2.0**80, math.pi, math.inf, -math.inf]
)
def test_numbers_round_trip(value: float, store: Store) -> None:
    """What C reads is the double that was written."""
    program = Program([("constant", value)], {}, {}, {"z": 0})
    found = Native(program, ["z"], store).point({})["z"]
    assert (found, math.copysign(1, found)) == (float(value), math.copysign(1, value))
    if math.isfinite(value):
        assert "," not in number(value)


def test_a_whole_number_too_large_is_refused() -> None:
    """It is no double."""
    with pytest.raises(OverflowError):
        number(10**400)


def test_text_is_deterministic() -> None:
    """The same program gives the same text, so that its hash is a name."""
    assert _everything(whole_program(), AXES) == _everything(Program.from_json(whole_program().to_json()), AXES)


def test_compiled_once(monkeypatch: pytest.MonkeyPatch, store: Store) -> None:
    """A second kernel of the same text uses the library that is there; a damaged one is compiled again."""
    program = Program([("input", "a"), ("sqrt", 0)], {"a": 0}, {}, {"root": 1})
    path = Native(program, ["root"], store).path
    calls = []
    original = native._compile
    monkeypatch.setattr(native, "_compile", lambda *a: (calls.append(a), original(*a)))
    assert Native(program, ["root"], store).point({"a": 9}) == {"root": 3}
    assert calls == []
    damaged = path.with_suffix(".other")
    damaged.write_bytes(path.read_bytes()[:2000])
    damaged.replace(path)
    assert Native(program, ["root"], store).point({"a": 16}) == {"root": 4}
    assert len(calls) == 1


def test_without_a_compiler(monkeypatch: pytest.MonkeyPatch, store: Store, tmp_path: Path) -> None:
    """A clear error, whether it is missing or fails."""
    program = Program([("input", "a"), ("sqrt", 0)], {"a": 0}, {}, {"other_root": 1})
    monkeypatch.setenv("CC", "false")
    with pytest.raises(CompilerError, match="failed on generated C"):
        Native(program, ["other_root"], store)
    monkeypatch.delenv("CC")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert compiler() is None
    with pytest.raises(CompilerError, match="no C compiler"):
        Native(program, ["other_root"], store)


def test_bad_arguments(store: Store) -> None:
    """Columns and axes have one dimension and, for columns, one length; every input needs a value."""
    kernel = Native(whole_program(), ["slack"], store, axes=["x"])
    with pytest.raises(KeyError, match="y"):
        kernel.point({"x": 1, "z": 2})
    with pytest.raises(ValueError, match="different lengths"):
        kernel.points({}, {"x": np.ones(2), "y": np.ones(3), "z": np.ones(2)})
    with pytest.raises(ValueError, match="x: expected one dimension"):
        kernel.grid({"y": 1, "z": 2}, {"x": np.ones((2, 2))})


def test_floats_bit_for_bit(store: Store) -> None:
    """Without logarithms and general powers, a point is the interpreter's to the last bit."""
    program, points = rational_program(), rational_points(300)
    kernel = Native(program, list(program.outputs), store)
    for row in zip(*points.values(), strict=True):
        inputs = dict(zip(points, map(float, row), strict=True))
        values = run(program, inputs, floats())
        assert kernel.point(inputs) == {name: values[position] for name, position in program.outputs.items()}
