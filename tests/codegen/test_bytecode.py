"""Instructions run one after the other in compiled code give what NumPy's interpreter gives, bit for bit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from support.kernels import random_program, values_of

from symperf.codegen.bytecode import NUMBERS, Bytecode, LoopInvariants, bytecode_machine
from symperf.codegen.evaluate import evaluate, outputs_at
from symperf.codegen.kernel import GridKernel
from symperf.codegen.passes import prune
from symperf.codegen.program import OPERATIONS, Program
from symperf.codegen.store import Store

if TYPE_CHECKING:
    from pathlib import Path

COUNTS = [1, 7, 256, 1000]


@pytest.fixture(scope="session")
def store(cache_folder: Path) -> Store:
    return Store(cache_folder / "kernels")


def test_every_operation_has_a_number() -> None:
    assert set(NUMBERS) == set(OPERATIONS) - {"input", "constant", "let"}


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("count", COUNTS)
def test_bytecode_is_the_interpreter(store: Store, seed: int, count: int) -> None:
    program = prune(random_program(seed, size=60), ["y", "z", "room"])
    values = np.random.default_rng(seed).integers(1, 999, (5, count)).astype(float)
    inputs: dict[str, Any] = dict(zip("abcd", values, strict=False)) | {"e": 48.0}
    found = Bytecode(program, list(program.outputs.values())).run(bytecode_machine(store), (count,), inputs)
    for value, expected in zip(found, outputs_at(program, inputs, count).values(), strict=True):
        np.testing.assert_array_equal(value, expected)


@pytest.mark.parametrize("operation", [op for op, operands in OPERATIONS.items() if operands == 2 and op != "power"])
def test_special_numbers(store: Store, operation: str) -> None:
    """Undefined and infinite operands, zeros and equals, as in NumPy."""
    program = Program([("input", "a"), ("input", "b"), (operation, 0, 1)], {"a": 0, "b": 1}, {}, {"y": 2})
    special = [0.0, 1.0, 3.5, -2.0, np.inf, -np.inf, np.nan]
    a, b = (grid.ravel() for grid in np.meshgrid(special, special))
    found = Bytecode(program, [2]).run(bytecode_machine(store), a.shape, {"a": a, "b": b})
    np.testing.assert_array_equal(found[0], values_of(program, ["y"], {"a": a, "b": b})["y"])


@pytest.mark.parametrize("operation", ["log2", "sqrt", "above_one"])
def test_one_operand(store: Store, operation: str) -> None:
    program = Program([("input", "a"), (operation, 0)], {"a": 0}, {}, {"y": 1})
    a = np.array([0.0, 0.5, 1.0, 1.5, 8.0, 1e300, np.inf, np.nan, -1.0])
    found = Bytecode(program, [1]).run(bytecode_machine(store), a.shape, {"a": a})
    np.testing.assert_array_equal(found[0], evaluate(program, {"a": a}, {1})[1])


@pytest.mark.parametrize("seed", range(8))
def test_loop_invariants(store: Store, seed: int) -> None:
    """Each value has the dimensions of the axes that it depends on, and no others."""
    program = prune(random_program(seed), ["y", "z"])
    axes = {"a": np.arange(1.0, 6.0) * 25, "c": np.array([75.0, 3.0, 1.0])}
    scalars = {"b": 4.0, "d": 7.0, "e": 48.0}
    wanted = [p for p, (op, *_) in enumerate(program.instructions) if op != "constant"]
    invariants = LoopInvariants(program, ["c", "a"], wanted)
    found = invariants.run(bytecode_machine(store), axes, scalars)
    expected = evaluate(program, {**scalars, "c": axes["c"][:, None], "a": axes["a"][None, :]}, set(wanted))
    for position in wanted:
        depends = invariants.depends[position]
        assert found[position].shape == tuple(n for k, n in enumerate((3, 5)) if depends >> k & 1)
        np.testing.assert_array_equal(found[position].ravel(), np.ravel(expected[position]))


def test_comparisons_are_compiled(store: Store) -> None:
    """`at_least`, of which derivatives are made, in a kernel."""
    program = Program([("input", "a"), ("input", "b"), ("at_least", 0, 1)], {"a": 0, "b": 1}, {}, {"y": 2})
    axes = {"a": np.arange(5.0), "b": np.arange(4.0)}
    found = GridKernel(program, ("a", "b"), ["y"], store=store).run(axes, {}, tier="numba")["y"]
    np.testing.assert_array_equal(found, axes["a"][:, None] >= axes["b"][None, :])
