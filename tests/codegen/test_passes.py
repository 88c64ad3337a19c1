"""Passes keep the values of programs, and what they say of instructions is what a search by brute force says."""

from __future__ import annotations

import copy
from itertools import permutations
from math import ceil, prod
from typing import TYPE_CHECKING, Any

import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st
from support.programs import lowered, operations, step, values
from support.strategies import LEAVES, float_points, programs

from symperf.codegen.builder import Builder
from symperf.codegen.interpret import floats, run
from symperf.codegen.lower import lower
from symperf.codegen.passes import (
    choose_order,
    dependencies,
    depths,
    fold,
    masks,
    order_cost,
    prune,
    specialise,
    split,
    strengthen,
)
from symperf.formulas.language.atoms import Max, Min, above_one, ceil_div

if TYPE_CHECKING:
    from symperf.codegen.program import Program

x, y, z = sympy.symbols("x y z")
NAMES = [str(symbol) for symbol in LEAVES]
STEP_AXES = ("tp", "pp", "micro_batch", "memory_bandwidth", "matrix_rate", "batch")

name_sets = st.lists(st.sampled_from(NAMES), unique=True)
axis_orders = st.lists(st.sampled_from(NAMES), min_size=1, max_size=6, unique=True)


def _close(found: dict[str, float], expected: dict[str, float], relative: float) -> None:
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, rel=relative, abs=0), name


def _needs(program: Program, position: int) -> set[int]:
    """Every instruction that one needs, found by walking."""
    seen, stack = set(), [position]
    while stack:
        at = stack.pop()
        if at not in seen:
            seen.add(at)
            operation, *operands = program.instructions[at]
            stack += [] if operation in ("input", "constant") else operands
    return seen


def _inputs_of(program: Program, position: int) -> set[str]:
    needed = [program.instructions[at] for at in _needs(program, position)]
    return {operands[0] for operation, *operands in needed if operation == "input"}


# --- prune


@given(programs, float_points, st.data(), st.booleans())
def test_prune_keeps_the_values_of_what_it_keeps(
    program: Program, point: dict[str, float], data: st.DataObject, keep_lets: bool
) -> None:
    """Any selection of outputs, in any order, bit for bit; what is left is needed; the argument is as before."""
    names = data.draw(st.lists(st.sampled_from(list(program.outputs)), min_size=1, unique=True))
    before = copy.deepcopy(program)
    smaller = prune(program, names, keep_lets=keep_lets)
    assert program == before
    smaller.check()
    assert list(smaller.outputs) == names
    assert values(smaller, point) == {name: values(program, point)[name] for name in names}
    needed = set().union(*(_needs(smaller, at) for at in smaller.outputs.values()))
    assert needed == set(range(len(smaller)))
    assert set(smaller.inputs.values()) <= needed
    kinds = {instruction[0] for instruction in smaller.instructions}
    assert keep_lets or "let" not in kinds
    assert all(smaller.instructions[at][0] == "let" for at in smaller.lets.values()) or not keep_lets
    expected = run(program, point, floats())
    found = run(smaller, point, floats())
    assert all(found[at] == expected[program.lets[name]] for name, at in smaller.lets.items())


def test_without_lets_equal_values_are_shared() -> None:
    """Two terms of equal cost are one value once nobody asks for them by name."""
    one, two = sympy.symbols("one two")
    program = lower([(one, x * y), (two, x * y)], {"a": one + z, "b": two + z, "c": z + two})
    assert operations(prune(program, ["a", "b", "c"])) == 2
    assert operations(prune(program, ["a", "b", "c"], keep_lets=True)) == 3


def test_prune_of_an_unknown_output() -> None:
    """It is named."""
    with pytest.raises(KeyError, match="cost"):
        prune(lowered(z=x), ["cost"])


# --- fold and specialise


@given(programs, float_points)
def test_fold_changes_no_bit(program: Program, point: dict[str, float]) -> None:
    """Every output and every let; folding again changes nothing."""
    before = copy.deepcopy(program)
    folded = fold(program)
    assert program == before
    folded.check()
    assert values(folded, point) == values(program, point)
    expected, found = run(program, point, floats()), run(folded, point, floats())
    assert all(found[folded.lets[name]] == expected[at] for name, at in program.lets.items())
    assert len(folded) <= len(program)
    assert fold(folded) == folded


@given(programs, float_points, name_sets)
def test_specialise_changes_no_bit(program: Program, point: dict[str, float], names: list[str]) -> None:
    """Whatever is bound first, and no operation on constants alone is left that could be computed."""
    special = specialise(program, {name: point[name] for name in names})
    special.check()
    assert not set(names) & set(special.inputs)
    rest = {name: value for name, value in point.items() if name not in names}
    assert values(special, rest) == values(program, point)


@given(programs, float_points)
def test_all_bound_is_all_constant(program: Program, point: dict[str, float]) -> None:
    """With every input bound nothing is left to compute."""
    special = specialise(program, {**point, "unknown": 1.0})
    assert operations(special) == 0
    assert not special.inputs


@pytest.mark.parametrize(
    ("operation", "operands", "expected"),
    [
        ("multiply", ("x", 1), "x"),
        ("multiply", (1.0, "x"), "x"),
        ("add", ("x", 0), "x"),
        ("add", (0.0, "x"), "x"),
        ("subtract", ("x", 0), "x"),
        ("divide", ("x", 1), "x"),
        ("power", ("x", 1), "x"),
        ("max", ("x", "x"), "x"),
        ("min", ("x", "x"), "x"),
        ("divide", (7, 2), 3.5),
        ("ceil_div", (7, 2), 4.0),
        ("ceil_div", (525, 75), 7.0),
        ("above_one", (2,), 1.0),
        ("at_least", (2, 2), 1.0),
        ("log2", (8,), 3.0),
        ("subtract", (0, "x"), None),
        ("divide", (1, "x"), None),
        ("multiply", ("x", 0), None),
        ("ceil_div", ("x", 1), None),
        ("divide", (1, 0), None),
        ("log2", (0,), None),
        ("sqrt", (-1,), None),
        ("multiply", (1e308, 10), None),
        ("power", (-8, 0.5), None),
    ],
)
def test_identities(operation: str, operands: tuple[Any, ...], expected: Any) -> None:
    """What is exact is folded; what is not, and what fails, is left where it runs."""
    builder = Builder()
    read = [builder.emit("input", o) if isinstance(o, str) else builder.emit("constant", o) for o in operands]
    builder.program.outputs["z"] = builder.emit(operation, *read)
    folded = fold(builder.program)
    found = folded.instructions[folded.outputs["z"]]
    if expected is None:
        assert found[0] == operation
    else:
        assert found == (("input", "x") if expected == "x" else ("constant", expected))


def test_signed_zeros_are_two_constants() -> None:
    """They differ in what a division by them gives."""
    builder = Builder()
    assert builder.emit("constant", 0.0) != builder.emit("constant", -0.0)
    assert builder.emit("constant", 2) == builder.emit("constant", 2.0)


def test_commuted_operands_are_one_instruction_but_not_of_a_maximum() -> None:
    """The first of equals wins a maximum, so its operands have an order."""
    builder = Builder()
    a, b = builder.emit("input", "a"), builder.emit("input", "b")
    for operation in ("add", "multiply"):
        assert builder.emit(operation, a, b) == builder.emit(operation, b, a)
    for operation in ("subtract", "divide", "max", "min"):
        assert builder.emit(operation, a, b) != builder.emit(operation, b, a)


# --- what instructions depend on


@given(programs, axis_orders)
def test_masks_and_depths(program: Program, order: list[str]) -> None:
    """Both against a walk through the operands."""
    every, some, levels = dependencies(program), masks(program, order), depths(program, order)
    inputs = list(program.inputs)
    for position in range(len(program)):
        found = _inputs_of(program, position)
        assert {name for k, name in enumerate(inputs) if every[position] >> k & 1} == found
        assert {name for k, name in enumerate(order) if some[position] >> k & 1} == found & set(order)
        assert levels[position] == max((order.index(name) + 1 for name in found if name in order), default=0)


# --- the order of loops


def _brute_cost(program: Program, order: tuple[str, ...], sizes: dict[str, int]) -> int:
    total = 0
    for position, (operation, *_) in enumerate(program.instructions):
        if operation not in ("input", "constant", "let"):
            found = _inputs_of(program, position)
            depth = max((k + 1 for k, name in enumerate(order) if name in found), default=0)
            total += prod(sizes[name] for name in order[:depth])
    return total


@given(programs, st.dictionaries(st.sampled_from(NAMES), st.integers(1, 50), min_size=1, max_size=4))
def test_the_order_chosen_is_the_best(program: Program, sizes: dict[str, int]) -> None:
    """No permutation computes fewer operations."""
    order = choose_order(program, sizes)
    assert sorted(order) == sorted(sizes)
    costs = {each: _brute_cost(program, each, sizes) for each in permutations(sizes)}
    assert costs[order] == min(costs.values())
    assert all(order_cost(program, each, sizes) == cost for each, cost in costs.items())


@pytest.mark.parametrize("counts", [(100, 100, 50, 200, 3, 7), (2, 3, 4, 5, 6, 7), (10, 10, 10, 10, 10, 10)])
def test_the_order_of_six_axes_of_the_step(counts: tuple[int, ...]) -> None:
    """All 720 orders of the real step."""
    program = prune(step()[0], ["time", "memory"])
    sizes = dict(zip(STEP_AXES, counts, strict=True))
    best = min(order_cost(program, order, sizes) for order in permutations(sizes))
    assert order_cost(program, choose_order(program, sizes), sizes) == best


def test_an_axis_of_no_importance_goes_innermost() -> None:
    """And so does the longer of two that matter alike."""
    program = lowered(z=x * y)
    assert choose_order(program, {"unused": 9, "x": 5, "y": 2}) == ("y", "x", "unused")
    assert choose_order(program, {}) == ()


def test_too_many_axes() -> None:
    """The search is exact or refused."""
    sizes = {f"a{k}": 2 for k in range(13)}
    with pytest.raises(ValueError, match="at most 12 axes, not 13"):
        choose_order(lowered(z=x), sizes)


# --- divisions


@given(programs, float_points, axis_orders, st.booleans())
def test_strengthen_keeps_values(program: Program, point: dict[str, float], order: list[str], any_order: bool) -> None:
    """Up to rounding (which a difference in the program may magnify)."""
    strong = strengthen(program, order, any_order=any_order)
    strong.check()
    _close(values(strong, point), values(program, point), 1e-13)
    if any_order:
        assert strong == strengthen(program, order[::-1], any_order=True)


@pytest.mark.parametrize("order", [STEP_AXES, STEP_AXES[::-1]])
def test_strengthen_of_the_step(order: tuple[str, ...]) -> None:
    """Every division by something known further out is gone, except those that a jump reads."""
    program, inputs = step()
    program = prune(program, ["time", "memory", "mfu"])
    strong = strengthen(program, order)
    _close(values(strong, inputs), values(program, inputs), 1e-15)
    jumps = [at for at, (operation, *_) in enumerate(strong.instructions) if operation in ("ceil_div", "above_one")]
    protected = set().union(*(_needs(strong, at) for at in jumps)) - set(jumps)
    level = depths(strong, order)
    for position, (operation, *operands) in enumerate(strong.instructions):
        if operation == "divide" and level[operands[1]] < level[position]:
            assert position in protected


def _tiles(kind: str) -> Any:
    quotient = x / y
    if kind == "direct":
        return ceil_div(quotient, 1)
    if kind == "product":
        return ceil_div(3 * quotient * z, 3 * z)
    if kind == "maximum":
        return 2 + ceil_div(Max(Min(quotient, 10**9), 1), z)
    return ceil_div(z, quotient) + above_one(quotient)


@pytest.mark.parametrize("kind", ["direct", "product", "maximum", "divisor"])
def test_a_quotient_that_feeds_a_jump_stays(kind: str) -> None:
    """At exact multiples of every divisor below 300, 525 and 75 among them, and not a bit changes."""
    program = lowered(tiles=_tiles(kind))
    assert any(operation == "divide" for operation, *_ in program.instructions)
    assert strengthen(program, ["y", "z", "x"]) == program
    assert strengthen(program, ["y", "z", "x"], any_order=True) == program
    other = strengthen(
        lower([(sympy.Symbol("q"), x / y)], {"t": ceil_div(sympy.Symbol("q"), 1), "c": z / y}), ["y", "x", "z"]
    )
    for divisor in range(1, 300):
        for multiple in (*range(1, 20), 997):
            point = {"x": multiple * divisor, "y": divisor, "z": 1}
            assert values(other, point)["t"] == multiple
            assert values(other, point)["c"] == pytest.approx(1 / divisor, rel=1e-15)
    assert ceil(525 * (1 / 75)) == 8
    assert values(other, {"x": 525, "y": 75, "z": 1})["t"] == 7


def test_the_exact_outputs_stay() -> None:
    """What is compared with zero is not changed by a bit."""
    program = lowered(slack=x / y - 1, cost=x / z)
    strong = strengthen(program, ["y", "z", "x"], exact=["slack"])
    for divisor in range(1, 300):
        assert values(strong, {"x": divisor, "y": divisor, "z": 3})["slack"] == 0
    assert ("divide", strong.inputs["x"], strong.inputs["z"]) not in strong.instructions


# --- splitting


@given(programs, float_points, st.integers(1, 30))
def test_split_covers_every_output(program: Program, point: dict[str, float], limit: int) -> None:
    """Each once, of the same value; a program above the limit holds one output, or outputs that share most."""
    parts = split(program, limit)
    assert sorted(name for part in parts for name in part.outputs) == sorted(program.outputs)
    together = {name: value for part in parts for name, value in values(part, point).items()}
    assert together == values(program, point)
    for part in parts:
        alone = [operations(prune(part, [name], keep_lets=True)) for name in part.outputs]
        assert operations(part) <= limit or max(alone) > limit


def test_split_of_the_step() -> None:
    """Outputs that need the step's time stay together; the others go by the limit."""
    program, inputs = step()
    assert split(program, len(program)) == [program]
    parts = split(program, 300)
    assert len(parts) > 1
    together = {name: value for part in parts for name, value in values(part, inputs).items()}
    assert together == values(program, inputs)
    assert sum(operations(part) > 300 for part in parts) == 1
    assert sum(operations(part) for part in parts) < 1.5 * operations(program)


# --- the real step


@pytest.mark.parametrize("bound", [0, 10, 25, 60])
def test_passes_on_the_step(bound: int) -> None:
    """Prune, specialise and fold change no bit of any output."""
    program, inputs = step()
    expected = values(program, inputs)
    assert values(fold(program), inputs) == expected
    names = list(program.inputs)[:bound]
    special = specialise(prune(program, list(program.outputs)), {name: inputs[name] for name in names})
    assert values(special, inputs) == expected
    assert operations(special) < operations(program)
