"""Passes keep the values of programs, and what they say of instructions is what a search by brute force says."""

from __future__ import annotations

import copy
from collections import Counter
from itertools import permutations
from math import ceil, prod
from typing import TYPE_CHECKING, Any

import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st
from support.programs import lowered, operations, step, values
from support.strategies import LEAVES, float_points, programs

from symperf.codegen.builder import FREE, Builder, eliminate_dead_code
from symperf.codegen.interpret import floats, run
from symperf.codegen.lower import lower
from symperf.codegen.passes import choose_order, fold, masks, prune, specialise, strength_reduce
from symperf.codegen.program import JUMPS
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


@given(programs, float_points, st.data())
def test_prune_keeps_the_values_of_what_it_keeps(
    program: Program, point: dict[str, float], data: st.DataObject
) -> None:
    """Any selection of outputs, in any order, bit for bit; what is left is needed; the argument is as before."""
    names = data.draw(st.lists(st.sampled_from(list(program.outputs)), min_size=1, unique=True))
    before = copy.deepcopy(program)
    smaller = prune(program, names)
    assert program == before
    smaller.check()
    assert list(smaller.outputs) == names
    assert values(smaller, point) == {name: values(program, point)[name] for name in names}
    needed = set().union(*(_needs(smaller, at) for at in smaller.outputs.values()))
    assert needed == set(range(len(smaller)))
    assert set(smaller.inputs.values()) <= needed
    assert "let" not in {instruction[0] for instruction in smaller.instructions}
    expected = run(program, point, floats())
    found = run(smaller, point, floats())
    assert all(found[at] == expected[program.lets[name]] for name, at in smaller.lets.items())


def test_without_lets_equal_values_are_shared() -> None:
    """Two terms of equal cost are one value once nobody asks for them by name."""
    one, two = sympy.symbols("one two")
    program = lower([(one, x * y), (two, x * y)], {"a": one + z, "b": two + z, "c": z + two})
    assert operations(prune(program, ["a", "b", "c"])) == 2
    assert operations(eliminate_dead_code(program, program.outputs)) == 3


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
def test_masks(program: Program, order: list[str]) -> None:
    """Against a walk through the operands."""
    some = masks(program, order)
    for position in range(len(program)):
        found = _inputs_of(program, position)
        assert {name for k, name in enumerate(order) if some[position] >> k & 1} == found & set(order)


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


@pytest.mark.parametrize("counts", [(100, 100, 50, 200, 3, 7), (2, 3, 4, 5, 6, 7), (10, 10, 10, 10, 10, 10)])
def test_the_order_of_six_axes_of_the_step(counts: tuple[int, ...]) -> None:
    """All 720 orders of the real step."""
    program = prune(step()[0], ["time", "memory"])
    sizes = dict(zip(STEP_AXES, counts, strict=True))
    level = masks(program, list(sizes))
    count = Counter(m for m, (operation, *_) in zip(level, program.instructions, strict=True) if operation not in FREE)

    def cost(order: tuple[str, ...]) -> int:
        rank = [order.index(name) + 1 for name in sizes]
        depth = {mask: max((r for k, r in enumerate(rank) if mask >> k & 1), default=0) for mask in count}
        return sum(n * prod(sizes[name] for name in order[: depth[mask]]) for mask, n in count.items())

    assert cost(choose_order(program, sizes)) == min(cost(order) for order in permutations(sizes))


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


@given(programs, float_points, axis_orders)
def test_strength_reduction_keeps_values(program: Program, point: dict[str, float], axes: list[str]) -> None:
    """Up to rounding (which a difference in the program may magnify), whatever the order of the axes."""
    program = prune(program, list(program.outputs))
    reduced = strength_reduce(program, axes)
    reduced.check()
    _close(values(reduced, point), values(program, point), 1e-13)
    assert reduced == strength_reduce(program, axes[::-1])


def test_strength_reduction_of_the_step() -> None:
    """Every division by something that depends on fewer axes is gone, except those that a jump reads."""
    program, inputs = step()
    program = prune(program, ["time", "memory", "mfu"])
    reduced = strength_reduce(program, STEP_AXES)
    _close(values(reduced, inputs), values(program, inputs), 1e-14)
    jumps = [at for at, (operation, *_) in enumerate(reduced.instructions) if operation in JUMPS]
    protected = set().union(*(_needs(reduced, at) for at in jumps)) - set(jumps)
    depends = masks(reduced, STEP_AXES)
    for position, (operation, *operands) in enumerate(reduced.instructions):
        if operation == "divide" and depends[operands[1]] != depends[position]:
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
    assert strength_reduce(program, ["y", "z", "x"]) == program
    other = strength_reduce(lower([], {"t": ceil_div(x / y, 1), "c": z / y}), ["y", "x", "z"])
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
    strong = strength_reduce(program, ["y", "z", "x"], exact=["slack"])
    for divisor in range(1, 300):
        assert values(strong, {"x": divisor, "y": divisor, "z": 3})["slack"] == 0
    assert ("divide", strong.inputs["x"], strong.inputs["z"]) not in strong.instructions


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
