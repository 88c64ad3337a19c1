"""Programs over the rows of a table: equal to the reference at every row, in machine code and by NumPy."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

from symperf.codegen.evaluate import evaluate, outputs_at
from symperf.codegen.lower import lower
from symperf.codegen.packed import PackedProgram
from symperf.codegen.passes import prune
from symperf.codegen.program import OPERATIONS, Program
from symperf.codegen.row_machine import CHUNK, RowMachine, row_machine
from symperf.codegen.row_machine import OPERATIONS as MADE
from symperf.codegen.rows import BLOCK, PointTable, RowProgram
from symperf.codegen.store import Store
from symperf.formulas.language.atoms import Max, above_one, bubble, ceil_div, log2

if TYPE_CHECKING:
    from pathlib import Path

A, B, C, S = sympy.symbols("a b c s", positive=True)
FORMS = {
    "nothing": S + 1,
    "one": ceil_div(A, 3) + log2(A),
    "two": Max(A * S, B) / (1 + bubble(B, A)),
    "three": A / B + above_one(C) * Max(A, B * C) ** 2,
    "column": C,
    "scalar": S,
}
PROGRAM = PackedProgram.of(prune(lower([], FORMS), list(FORMS)))
ODD = [0.0, 1.0, 2.0, 3.0, 0.5, 0.7071, 1.5, -1.0, -3.7, 5e-324, 1e-310, 1e300, np.inf, -np.inf, np.nan]


@pytest.fixture(scope="module")
def store(cache_folder: Path) -> Store:
    return Store(cache_folder / "kernels")


def table(seed: int, rows: int, kinds: int) -> dict[str, Any]:
    draw = np.random.default_rng(seed)
    return {name: draw.integers(1, kinds + 1, rows).astype(float) for name in "abc"}


@given(st.integers(0, 2**32 - 1), st.integers(1, 300), st.sampled_from([1, 2, 5, 100]), st.booleans())
def test_every_row_is_what_the_reference_computes(store: Store, seed: int, rows: int, kinds: int, kept: bool) -> None:
    columns = table(seed, rows, kinds)
    expected = outputs_at(PROGRAM.unpack(), {**columns, "s": 1.5}, rows)
    program = RowProgram(PROGRAM, list(columns), store if kept else None)
    for block, found in program.run(PointTable(columns), {"s": 1.5}, list(FORMS)):
        for name, values in zip(FORMS, found, strict=True):
            assert np.array_equal(values, expected[name][block]), name


@pytest.mark.parametrize("operation", [name for name in OPERATIONS if name not in ("input", "constant")])
def test_operations_of_odd_numbers(store: Store, operation: str) -> None:
    """Every operation of every pair of numbers, ordinary and odd, is NumPy's; one that is not made is left to NumPy."""
    numbers = [*ODD, *np.exp(np.random.default_rng(1).normal(0.0, 40.0, 30))]
    columns = {
        name: values.ravel() for name, values in zip("ab", np.meshgrid(numbers, numbers, indexing="ij"), strict=True)
    }
    used = tuple(range(OPERATIONS[operation]))
    program = Program([("input", "a"), ("input", "b"), (operation, *used)], {"a": 0, "b": 1}, {}, {"f": 2})
    rows = RowProgram(PackedProgram.of(program), ["a", "b"], store)
    assert (rows.store is not None) == (operation in MADE)
    ((_, found),) = rows.run(PointTable(columns), {}, ["f"])
    assert np.array_equal(found[0], evaluate(program, columns, {2})[2], equal_nan=True)


def instructions(draw: st.DrawFn) -> Program:
    program = Program()
    for name in "abs":
        program.inputs[name] = len(program)
        program.instructions.append(("input", name))
    program.instructions.append(("constant", 2.5))
    for _ in range(draw(st.integers(1, 40))):
        operation = draw(st.sampled_from(["add", "subtract", "multiply", "max", "min", "at_least", "stop_gradient"]))
        operands = [draw(st.integers(0, len(program) - 1)) for _ in range(OPERATIONS[operation])]
        program.instructions.append((operation, *operands))
    wanted = draw(st.lists(st.integers(0, len(program) - 1), min_size=1, max_size=6))
    program.outputs = {f"f{k}": position for k, position in enumerate(wanted)}
    return program


@given(st.composite(instructions)(), st.data())
def test_rows_that_are_used_again(store: Store, program: Program, data: st.DataObject) -> None:
    """Any outputs of any program, though its values share rows: no value is written over before its last use."""
    columns = {name: np.arange(CHUNK + 3.0) * factor for name, factor in (("a", 1.0), ("b", -0.5))}
    names = data.draw(st.lists(st.sampled_from(list(program.outputs)), min_size=1))
    packed = PackedProgram.from_json(json.loads(json.dumps(PackedProgram.of(program).to_json())))
    assert packed.unpack() == program
    rows = RowProgram(packed, ["a", "b"], store)
    ((_, found),) = rows.run(PointTable(columns), {"s": 3.0}, names)
    expected = outputs_at(program, {**columns, "s": 3.0}, CHUNK + 3)
    for name, values in zip(names, found, strict=True):
        assert np.array_equal(values, expected[name], equal_nan=True)
    part = rows.part({"g": names[0]})
    assert np.array_equal(outputs_at(part, {**columns, "s": 3.0}, CHUNK + 3)["g"], expected[names[0]], equal_nan=True)
    assert RowProgram(packed, ["a", "b"]).part({"g": names[0]}) == part


def test_some_rows_in_blocks(store: Store) -> None:
    """Chosen rows come in their order, in blocks, and outputs in the order asked for."""
    columns = table(3, 3 * BLOCK, 40)
    expected = outputs_at(PROGRAM.unpack(), {**columns, "s": 2.0}, 3 * BLOCK)
    chosen = np.arange(5, 3 * BLOCK, 2)
    names = ["three", "one"]
    parts = list(RowProgram(PROGRAM, list(columns), store).run(PointTable(columns), {"s": 2.0}, names, chosen))
    assert len(parts) == 2
    assert np.array_equal(np.concatenate([block for block, _ in parts]), chosen)
    for k, name in enumerate(names):
        assert np.array_equal(np.concatenate([found[k] for _, found in parts]), expected[name][chosen])


def test_the_machine_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It is made once for a store, and loaded from there; a store that cannot be written costs only time."""
    found: list[Any] = []
    monkeypatch.setattr("symperf.codegen.row_machine._made", found)
    made = row_machine(Store(tmp_path / "kept"))
    assert row_machine(Store(tmp_path / "other")) is made
    (entry,) = Store(tmp_path / "kept").entries()
    found.clear()
    assert row_machine(Store(tmp_path / "kept")) is not made
    assert [each.key for each in Store(tmp_path / "kept").entries()] == [entry.key]
    (tmp_path / "file").write_text("", encoding="utf-8")
    found.clear()
    assert row_machine(Store(tmp_path / "file" / "below")) is not made


@pytest.mark.parametrize("damage", ["cut", "flipped", "open"])
def test_machine_code_that_is_not_whole_or_not_private_is_not_loaded(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, damage: str
) -> None:
    """It is made anew; where others may write to the store, what lies there stays as it was."""
    found: list[Any] = []
    loaded: list[bytes] = []
    made = RowMachine.__init__
    monkeypatch.setattr("symperf.codegen.row_machine._made", found)
    monkeypatch.setattr(RowMachine, "__init__", lambda self, data: (loaded.append(data), made(self, data))[1])
    store = Store(tmp_path / "kept")
    row_machine(store)
    (path,) = store.folder.glob("*.json")
    whole = path.read_bytes()
    spoilt = {"cut": whole[:-100], "flipped": whole[:200] + b"AAAA" + whole[204:], "open": whole[:-100]}[damage]
    path.write_bytes(spoilt)
    if damage == "open":
        store.folder.chmod(0o777)
    found.clear()
    row_machine(store)
    assert loaded[0] == loaded[1]
    assert path.read_bytes() == (spoilt if damage == "open" else whole)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"operation": [99]}, "unknown operation"),
        ({"left": [7]}, "not defined yet"),
        ({"right": [-1]}, "not defined yet"),
        ({"row": [1000]}, "outside the program"),
        ({"row": [-1]}, "outside the program"),
        ({"inputs": []}, "without a name"),
        ({"outputs": {"f": 1000}}, "points outside"),
    ],
)
def test_damaged_columns(changed: dict[str, Any], message: str) -> None:
    """No column makes the machine read or write where it must not."""
    for name, value in changed.items():
        if name in ("inputs", "outputs"):
            damaged = dataclasses.replace(PROGRAM, **{name: value})
        else:
            column = getattr(PROGRAM, name).copy()
            column[3] = value[0]
            damaged = dataclasses.replace(PROGRAM, **{name: column})
        with pytest.raises(ValueError, match=message):
            PackedProgram.from_json(damaged.to_json())
    with pytest.raises(ValueError, match="different lengths"):
        PackedProgram.from_json(dataclasses.replace(PROGRAM, row=PROGRAM.row[:-1]).to_json())


def test_tables_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match="lengths 1, 2"):
        PointTable({"a": [1.0], "b": [1.0, 2.0]})
    with pytest.raises(ValueError, match="found columns a; expected a, b, c"):
        next(RowProgram(PROGRAM, ["a", "b", "c"]).run(PointTable({"a": [1.0]}), {"s": 1.0}, ["one"]))
