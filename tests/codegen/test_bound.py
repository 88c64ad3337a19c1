"""A bound never passes the value, to the bit, and kernels with one find the same points as kernels without."""

from __future__ import annotations

import random
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.kernels import random_program

from symperf.codegen import choose_bound
from symperf.codegen.bound import BOUND, GUARD, Relaxation, add_bound, intervals
from symperf.codegen.bounded_nest import BoundedNest, coarse
from symperf.codegen.choose_bound import Choice, load_or_choose
from symperf.codegen.evaluate import evaluate
from symperf.codegen.kernel import GridKernel
from symperf.codegen.loop_nest import LoopNest
from symperf.codegen.program import Program
from symperf.codegen.reduce import TopK
from symperf.codegen.store import Store

if TYPE_CHECKING:
    from pathlib import Path

    from symperf.codegen.bound import Interval

NEST = LoopNest(("c",), ("b", "a"))
SCALARS = {"d": 7.0, "e": 48.0}
AXES = {"a": np.arange(1.0, 9.0), "b": np.array([3.0, 1.0, 4.0, 2.0]), "c": np.arange(9.0, 0.0, -1.0)}


@pytest.fixture(scope="session")
def store(cache_folder: Path) -> Store:
    return Store(cache_folder / "kernels")


def values_in(ranges: dict[str, Interval], rng: Any, count: int = 60) -> dict[str, Any]:
    """Points of a box, of which some are its corners."""
    corners = np.array(list(product(*ranges.values()))).T
    inside = [rng.uniform(low, high, count) for low, high in ranges.values()]
    return {
        name: np.concatenate([column, corners[k]]) for k, (name, column) in enumerate(zip(ranges, inside, strict=True))
    }


@given(seed=st.integers(0, 10**6), down=st.booleans(), floor=st.sampled_from([0.0, 0.5, 3.0]))
def test_whatever_is_left_out_the_bound_is_one(seed: int, down: bool, floor: float) -> None:
    """Random operands of random programs over random boxes, also where a factor is negative at some points."""
    draw = random.Random(seed)
    program = random_program(seed, size=40)
    for _ in range(3):  # signs that intervals do not know
        position = draw.randrange(7, len(program))
        program.instructions += [("subtract", position, draw.randrange(7))]
        factor = draw.choice([len(program) - 1, program.outputs["y"]])
        program.instructions += [("multiply", len(program) - 1, factor)]
        program.instructions += [("add", program.outputs["y"], len(program) - 1)]
        program.outputs["y"] = len(program) - 1
    ranges = {name: (low := draw.uniform(floor, 9.0), low + draw.uniform(0.0, 60.0)) for name in program.inputs}
    known = intervals(program, ranges)
    points = values_in(ranges, np.random.default_rng(seed))
    found = evaluate(program, points, range(len(program)))
    if known is None:
        return
    for position, (low, high) in enumerate(known):
        assert low <= np.min(found[position])
        assert np.max(found[position]) <= high
    guards = frozenset(p for p, (low, _) in enumerate(known) if low < 0 and draw.random() < 0.7)
    signs = [low >= 0 or p in guards for p, (low, _) in enumerate(known)]
    inside = [draw.random() < 0.9 for _ in known]
    drops: dict[int, int] = {}
    for _ in range(4):
        relaxed = Relaxation(program, "y", signs, inside, drops, down=down)
        free = [(p, k) for p in range(len(program)) for k in (0, 1) if p not in drops and relaxed.can_drop(p, k)]
        drops |= dict(draw.sample(free, min(len(free), 3)))
    relaxed = Relaxation(program, "y", signs, inside, drops, down=down)
    # A choice that is kept knows only these signs.
    relied = [position in relaxed.relies for position in range(len(program))]
    assert Relaxation(program, "y", relied, inside, drops, down=down).sides == relaxed.sides
    bounded = add_bound(relaxed, "y", guards)
    if not bounded.holds(ranges):
        return
    seen = evaluate(bounded.program, points, set(bounded.program.outputs.values()))
    outputs = {name: np.broadcast_to(seen[p], points["a"].shape) for name, p in bounded.program.outputs.items()}
    np.testing.assert_array_equal(outputs["y"], np.broadcast_to(found[program.outputs["y"]], points["a"].shape))
    told = outputs[GUARD] >= 0 if GUARD in outputs else np.ones(points["a"].shape, bool)
    good = outputs[BOUND + "y"] <= outputs["y"] if down else outputs[BOUND + "y"] >= outputs["y"]
    assert np.all(good | ~told)


def test_what_may_not_be_left_out_is_refused() -> None:
    """A term that may be negative, an operand of a minimum, and what a logarithm reads."""
    program = Program(
        [("input", "a"), ("input", "b"), ("subtract", 0, 1), ("add", 0, 2), ("min", 0, 1), ("max", 3, 4), ("log2", 5)],
        {"a": 0, "b": 1},
        {},
        {"x": 5, "y": 6},
    )
    known = intervals(program, {"a": (1.0, 5.0), "b": (2.0, 3.0)})
    assert known is not None
    assert known[2] == (-2.0, 3.0)
    signs = [low >= 0 for low, _ in known]
    for output, drop in (("x", {3: 1}), ("x", {4: 0}), ("y", {5: 0})):
        with pytest.raises(ValueError, match="needs both its operands"):
            add_bound(Relaxation(program, output, signs, [True] * 7, drop, down=True), output, ())
    assert add_bound(Relaxation(program, "x", signs, [True] * 7, {5: 0}, down=True), "x", ()).holds(
        {"a": (2.0, 5.0), "b": (0.0, 1.0)}
    )


def test_what_is_squared_is_left_whole_where_its_bound_may_be_negative() -> None:
    """The square of -3 is no lower bound of that of -3 + 3.5; of a sum of what is never negative the terms may go."""
    terms = [("input", "a"), ("input", "b"), ("input", "c"), ("subtract", 0, 1), ("add", 3, 2), ("multiply", 4, 4)]
    ranges = {"a": (1.0, 1.0), "b": (4.0, 4.0), "c": (3.5, 10.0)}
    for operation, may in (("subtract", False), ("add", True)):
        terms[3] = operation, 0, 1
        program = Program(list(terms), {"a": 0, "b": 1, "c": 2}, {}, {"y": 5})
        known = intervals(program, ranges)
        assert known is not None
        relaxed = Relaxation(program, "y", [low >= 0 for low, _ in known], [True] * 6, {}, down=True)
        assert relaxed.can_drop(4, 1) is may


@pytest.mark.parametrize("operation", ["multiply", "divide", "ceil_div"])
@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("largest", [False, True])
def test_a_choice_keeps_the_signs_that_it_needs(operation: str, place: int, largest: bool) -> None:
    """Also where one factor, or what is divided, or the divisor, is computed outside the innermost loop."""
    rises = operation == "multiply" or not place
    extreme = "max" if rises != largest else "min"
    terms = [("input", "a"), ("input", "b"), ("input", "c"), (extreme, 1, 2)]
    operands = (0, 3) if place else (3, 0)
    program = Program([*terms, (operation, *operands)], {"a": 0, "b": 1, "c": 2}, {}, {"y": 4})
    nest = LoopNest(("a", "b"), ("c",))
    inside = [cost > 0 for cost in choose_bound.innermost_costs(program, nest)]
    relaxed = Relaxation(program, "y", [True] * 5, inside, {3: 1}, down=not largest)
    choice = Choice(nest, ((3, 1),), frozenset(relaxed.relies), frozenset(), 0.5)
    bounded = choice.add_to(program, TopK("y", 1, largest=largest))
    assert len(bounded.program) == 6  # the exact value, and the operation with an operand less
    assert bounded.holds(dict.fromkeys("abc", (1.0, 2.0)))


def test_where_a_value_may_be_infinite_or_undefined_there_is_no_bound() -> None:
    program = Program([("input", "a"), ("input", "b"), ("divide", 0, 1)], {"a": 0, "b": 1}, {}, {"x": 2})
    assert intervals(program, {"a": (0.0, 1.0), "b": (0.5, 1.0)}) == [(0.0, 1.0), (0.5, 1.0), (0.0, 2.0)]
    for wrong in ((0.0, 1.0), (-1.0, 1.0), (float("nan"), 1.0), (1.0, float("inf")), (1e-320, 1.0)):
        assert intervals(program, {"a": (0.0, 1e300), "b": wrong}) is None


def key() -> Program:
    """Many ties; over 0 or below it some values are infinite, undefined or negative."""
    program: Program = random_program(3)
    program.instructions += [("divide", program.inputs["a"], program.inputs["b"]), ("subtract", 2, 1)]
    end = len(program)
    program.instructions += [("multiply", end - 1, end - 2), ("add", program.outputs["y"], end)]
    program.instructions += [("subtract", program.inputs["e"], 0), ("max", end + 1, end + 2)]
    program.outputs = {"key": end + 3, "gap": end - 1, "room": end + 2}
    return program


def best(store: Store, top: TopK, columns: dict[str, Any], scalars: dict[str, float], **options: Any) -> Any:
    """What a kernel finds, and whether it had a bound."""
    kernel = GridKernel(key(), tuple(AXES), ["key"], constraints=["gap", "room"], reduce=top, store=store)
    given: Any = {"tier": "numba", "nest": NEST, "block": 8, "threads": 1} | options
    found = kernel.run(columns, scalars, **given)
    told = [each.about["passes"][-1][0] for each in kernel._generated.values() if isinstance(each, BoundedNest)]
    assert set(told) <= {"bound"}
    return found, bool(told)


def same(found: Any, expected: Any) -> None:
    np.testing.assert_array_equal(found.flat, expected.flat)
    np.testing.assert_array_equal(found.values["key"].view(np.int64), expected.values["key"].view(np.int64))
    assert (found.feasible, found.rejected) == (expected.feasible, expected.rejected)


@pytest.mark.parametrize("largest", [False, True])
def test_a_kernel_with_a_bound_finds_the_same(store: Store, monkeypatch: pytest.MonkeyPatch, largest: bool) -> None:
    """In points, bits and counts as without one and as NumPy: ties, nothing feasible, more asked than there is, NaN."""
    monkeypatch.setattr(choose_bound, "LEAST", -1.0)
    monkeypatch.setattr(choose_bound, "WORTH", 1e9)
    assert best(store, TopK("key", 3, largest=largest), AXES, SCALARS, bound=True)[1]
    rng = np.random.default_rng(0)
    for count in range(12):
        most = (4, 30)[count % 2]
        columns: dict[str, Any] = {
            name: rng.integers(0 if count % 3 else 1, most, size).astype(float)
            for name, size in (("a", 7 + count), ("b", 9), ("c", 23))
        }
        if count == 11:
            columns["c"][:3] = np.nan, np.inf, 0.0
        scalars = {**SCALARS, "e": (48.0, 0.0, 9.0)[count % 3]}
        top = TopK("key", (1, 7, 10_000)[count % 3], largest=largest)
        expected = best(store, top, columns, scalars, bound=False)[0]
        for threads in (1, 3):
            found, had = best(store, top, columns, scalars, threads=threads)
            assert had
            same(found, expected)
        if np.all(columns["b"]) and count != 11:
            same(found, best(store, top, columns, scalars, tier="numpy")[0])


def test_a_choice_is_kept_and_a_damaged_one_is_not_believed(tmp_path: Path) -> None:
    """The second grid takes the first one's choice; one that leaves out what it may not is made anew."""
    store = Store(tmp_path)
    terms = [("input", "a"), ("input", "b"), ("multiply", 0, 1), ("add", 2, 0)]
    for k in range(20):
        terms += [("max", 3 + 2 * k, 0 if k % 2 else 1), ("add", 4 + 2 * k, 2)]
    program = Program(terms, {"a": 0, "b": 1}, {}, {"y": len(terms) - 1})
    columns = {"a": np.arange(1.0, 90.0), "b": np.arange(1.0, 70.0)}
    options: Any = {"block": 8, "may_turn": False}
    given: Any = program, TopK("y", 1), (), LoopNest((), ("a", "b")), columns, {}, store
    assert load_or_choose(*given, **options, may_choose=False) is None
    chosen = load_or_choose(*given, **options, may_choose=True)
    assert chosen is not None
    assert chosen.choice.drops
    again = load_or_choose(*given, **options, may_choose=False)
    assert again is not None
    assert again.choice == chosen.choice
    (kept,) = store.entries()
    wrong = chosen.choice.to_json() | {"drops": [[2, 0]]}
    for damaged in (wrong, wrong | {"drops": [[10**6, 0]]}, wrong | {"vector": ["z"]}, {}):
        store.save(kept.key, damaged)
        assert load_or_choose(*given, **options, may_choose=False) is None
    assert load_or_choose(*given, **options, may_choose=True) == chosen


def test_a_coarse_grid_has_the_ends_of_each_axis() -> None:
    columns = {"a": np.arange(1000.0), "b": np.arange(3.0), "c": np.arange(50_000.0), "d": np.ones(1)}
    few = coarse(columns, tuple(columns))
    assert few["b"].tolist() == [0.0, 1.0, 2.0]
    assert (few["a"][0], few["a"][-1], few["c"][-1]) == (0.0, 999.0, 49_999.0)
    assert np.prod([len(column) for column in few.values()]) <= 16_384
    assert all(len(np.unique(few[name])) == len(few[name]) for name in few)
    assert Choice.from_json(Choice(NEST, ((1, 0),), frozenset({1}), frozenset(), 0.5).to_json(), NEST).drops == (
        (1, 0),
    )
