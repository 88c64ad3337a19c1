"""The tier of Python floats: bit for bit the interpreter, derivatives in milliseconds, and nothing heavy imported."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from support.programs import step, values
from support.strategies import float_points, programs

from symperf.codegen.adjoint import gradient
from symperf.codegen.passes import prune
from symperf.codegen.point import GradientKernel, PointKernel
from symperf.codegen.printers.python import TABLE, number, point_module
from symperf.codegen.program import OPERATIONS, Program
from symperf.codegen.store import Store

if TYPE_CHECKING:
    from pathlib import Path


@given(programs, float_points)
def test_bit_for_bit_the_interpreter(program: Program, point: dict[str, float]) -> None:
    """All outputs, in the order asked for."""
    names = list(program.outputs)[::-1]
    kernel = PointKernel(program, names)
    assert list(kernel(point)) == names
    assert kernel(point) == values(program, point)
    assert set(kernel.inputs) <= set(program.inputs)


def test_the_step(tmp_path: Path) -> None:
    """Every output of the real step, from a tuple and from names."""
    program, inputs = step()
    kernel = PointKernel(program, list(program.outputs), store=Store(tmp_path / "kernels"))
    expected = values(program, inputs)
    assert kernel(inputs) == expected
    assert kernel(inputs | {"unknown": 1}) == expected
    assert kernel.evaluate(kernel.point(inputs)) == tuple(expected.values())
    again = PointKernel(program, list(program.outputs), store=Store(tmp_path / "kernels"))
    assert again.evaluate is kernel.evaluate


def test_the_order_of_outputs_is_part_of_the_kernel(tmp_path: Path) -> None:
    """Two orders are two modules."""
    program, inputs = step()
    store = Store(tmp_path / "kernels")
    one, two = (PointKernel(program, names, store=store)(inputs) for names in (["time", "memory"], ["memory", "time"]))
    assert one == two
    assert list(one) == list(two)[::-1]


@pytest.mark.parametrize("value", [0.0, -0.0, 2, -2, 0.1, 1e300, -1e-300, 5e-324, float("inf"), float("-inf"), 10**20])
@pytest.mark.parametrize("operation", sorted(set(OPERATIONS) - {"input", "constant"}))
def test_every_operation_on_constants_of_any_sign(operation: str, value: float) -> None:
    """A negative base is not an exponent's sign, and what fails in the interpreter fails here."""
    count = OPERATIONS[operation]
    operands = (0,) * count if count == 1 else (0, 1)
    program = Program([("constant", value), ("input", "x"), (operation, *operands)], {"x": 1}, {}, {"z": 2})
    for x in (2.0, 3.0, -1.0, 0.0):
        outcomes: list[Any] = []
        for evaluate in (
            lambda x=x: values(program, {"x": x})["z"],
            lambda x=x: PointKernel(program, ["z"])({"x": x})["z"],
        ):
            try:
                outcomes.append(evaluate())
            except (ArithmeticError, ValueError) as error:
                outcomes.append(type(error))
        assert outcomes[0] == outcomes[1] or outcomes[0] != outcomes[0]


def test_the_table_is_complete() -> None:
    """Each operation has a text."""
    assert set(TABLE) == set(OPERATIONS) - {"input", "constant"}


def test_literals() -> None:
    """Exact and safe in any place."""
    assert [number(v) for v in (1, -1, 0.1, float("nan"), float("-inf"))] == ["1.0", "(-1.0)", "0.1", "nan", "(-inf)"]


@pytest.mark.parametrize("name", ['"""', "'''\nimport os", "x\\", "{{ 7 * 7 }}", "\u2028é\x00", "__import__('os')", ""])
def test_names_are_data(name: str) -> None:
    """Whatever an input or output is called, it is a string of the module and nothing else."""
    program = Program([("input", name), ("sqrt", 0)], {name: 0}, {}, {name: 1})
    source = point_module(prune(program, [name]), [name])
    assert source.isascii()
    assert f"    {name!a},\n" in source
    assert PointKernel(program, [name])({name: 9}) == {name: 3}


def test_missing_names() -> None:
    """An output that is not there, an input without a value."""
    program, inputs = step()
    with pytest.raises(KeyError, match="price"):
        PointKernel(program, ["price"])
    with pytest.raises(KeyError, match="micro_batch"):
        PointKernel(program, ["time"])({name: value for name, value in inputs.items() if name != "micro_batch"})
    with pytest.raises(KeyError, match="colour"):
        GradientKernel(program, "time", ["colour"])


@given(programs, float_points)
def test_partials_are_those_of_the_gradient_program(program: Program, point: dict[str, float]) -> None:
    """By default by all inputs that the output depends on."""
    kernel = GradientKernel(program, "quotient")
    expected = gradient(program, "quotient", kernel.wanted)
    assert set(kernel.wanted) == set(prune(program, ["quotient"]).inputs)
    try:
        found = values(expected, point)
    except ZeroDivisionError:
        with pytest.raises(ZeroDivisionError):
            kernel.partials(point)
        return
    value, slopes = kernel.partials(point)
    assert value == found["quotient"]
    assert slopes == {name: found[f"d/{name}"] for name in kernel.wanted}


def test_elasticities_of_the_step() -> None:
    """All of one run agree with central differences for the symbols that no ceiling reads."""
    program, inputs = step()
    kernel = GradientKernel(program, "time")
    found = kernel.elasticities(inputs)
    assert len(found) >= 35
    whole = PointKernel(program, ["time"])
    for name in ("matrix_rate", "memory_bandwidth", "launch_latency", "vector_rate"):
        up, down = (whole(inputs | {name: inputs[name] * (1 + d)})["time"] for d in (1e-5, -1e-5))
        assert found[name] == pytest.approx((up - down) / 2e-5 / whole(inputs)["time"], abs=1e-6), name


SCRIPT = """
import sys
from pathlib import Path
from symperf import Model, Plan, System
from symperf.codegen.point import GradientKernel, PointKernel
from symperf.codegen.store import Store
from symperf.runs.training_run import Run
found = Run(Model.load("gpt3-175b"), System.load("a100-80gb-sxm"), Plan(tp=8, pp=8), batch=64, sequence=2048)
inputs = {name: value for name, (value, _) in found.bound.items()}
program = found.compiled.program
store = Store(Path(sys.argv[1]))
kernel, twin = PointKernel(program, ["time"], store=store), GradientKernel(program, "time", store=store)
print(kernel(inputs), twin.partials(inputs))
print(*sorted({"sympy", "numba", "numpy"} & set(sys.modules)))
"""


def test_a_cached_estimate_imports_nothing_heavy(tmp_path: Path) -> None:
    """The first process needs SymPy to build the step; the second neither it nor NumPy nor Numba."""
    runs = []
    for _ in range(2):
        command = [sys.executable, "-c", SCRIPT, str(tmp_path / "kernels")]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=tmp_path, env=environment)
        runs.append(done.stdout.splitlines())
    assert runs[0][0] == runs[1][0]
    assert runs[1][1] == ""
