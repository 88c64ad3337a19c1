"""A grid kernel gives, at every point, what the interpreter gives: the same bits in any order, block and thread."""

from __future__ import annotations

from itertools import permutations, product
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from support.kernels import exact_values, random_program, values_of

from symperf.codegen.kernel import GridKernel
from symperf.codegen.loop_nest import LoopNest, choose_loop_nest, placements, schedule
from symperf.codegen.passes import strength_reduce
from symperf.codegen.program import Program
from symperf.codegen.reassociate import reassociate
from symperf.codegen.reduce import TopK
from symperf.codegen.store import Store
from symperf.codegen.tiers import best_tier, count_operations

if TYPE_CHECKING:
    from pathlib import Path

SCALARS = {"d": 7.0, "e": 48.0}
AXES = {
    "a": np.arange(1.0, 8.0) * 25,
    "b": np.array([75.0, 3.0, 1.0, 108.0]),
    "c": np.geomspace(0.5, 60.0, 11).round(),
}


@pytest.fixture(scope="session")
def store(cache_folder: Path) -> Store:
    return Store(cache_folder / "kernels")


def meshed(axes: dict[str, Any]) -> dict[str, Any]:
    return dict(zip(axes, np.meshgrid(*axes.values(), indexing="ij", sparse=True), strict=True)) | SCALARS


@pytest.mark.parametrize("seed", range(3))
def test_grid_is_the_interpreter(store: Store, seed: int) -> None:
    """Within 1e-13 in both tiers, which agree bit for bit; constraints to the bit."""
    program = random_program(seed)
    kernel = GridKernel(program, tuple(AXES), ["y", "z"], constraints=["room"], store=store)
    expected = values_of(program, ["y", "z", "room"], meshed(AXES))
    found = {tier: kernel.run(AXES, SCALARS, tier=tier) for tier in ("numpy", "numba")}
    for values in found.values():
        for name in ("y", "z"):
            np.testing.assert_allclose(values[name], expected[name], rtol=1e-13)
        np.testing.assert_array_equal(values["feasible"], expected["room"] >= 0)
        np.testing.assert_array_equal(values["reason"], np.where(expected["room"] >= 0, 0, 1))
    for name, value in found["numpy"].items():
        np.testing.assert_array_equal(value, found["numba"][name])


@pytest.mark.parametrize(
    ("nest", "block", "threads"),
    [
        (LoopNest(("a", "b"), ("c",)), 8, 1),
        (LoopNest(("c", "b"), ("a",)), 64, 3),
        (LoopNest(("b",), ("a", "c")), 16, 2),
        (LoopNest(("a",), ("c", "b")), 128, 2),
        (LoopNest((), ("c", "b", "a")), 32, 2),
    ],
)
def test_every_nest_gives_the_same_bits(store: Store, nest: LoopNest, block: int, threads: int) -> None:
    program = random_program(7)
    kernel = GridKernel(program, tuple(AXES), ["y", "z"], store=store)
    expected = kernel.run(AXES, SCALARS, tier="numpy")
    found = kernel.run(AXES, SCALARS, tier="numba", nest=nest, block=block, threads=threads)
    for name in ("y", "z"):
        np.testing.assert_array_equal(found[name], expected[name])
    best = GridKernel(program, tuple(AXES), ["y"], reduce=TopK("y", 1), store=store)
    points = best.run(AXES, SCALARS, tier="numba", nest=nest, block=block, threads=threads)
    assert points.flat[0] == expected["y"].argmin()


def test_exact_multiples(store: Store) -> None:
    """525 / 75 is 7, also where a reciprocal would say 8: against exact fractions, both tiers."""
    program = Program(
        [("input", "a"), ("input", "b"), ("ceil_div", 0, 1), ("input", "c"), ("multiply", 2, 3), ("divide", 4, 1)],
        {"a": 0, "b": 1, "c": 3},
        {},
        {"tiles": 2, "y": 5},
    )
    b = np.array([75.0, 77, 91, 93, 99, 105, 117, 123, 150, 154, 108])
    n = np.arange(1.0, 362.0)
    axes = {"a": np.unique(np.outer(b, n)), "b": b, "c": np.array([1.0, 3.0, 7.0])}
    kernel = GridKernel(program, tuple(axes), ["tiles", "y"], store=store)
    numba = kernel.run(axes, {}, tier="numba")
    assert numba["y"].size > 100_000
    whole = axes["a"].astype(int)[:, None]
    divisors = b.astype(int)[None, :]
    np.testing.assert_array_equal(numba["tiles"][:, :, 0], -(-whole // divisors))
    np.testing.assert_array_equal(numba["tiles"], kernel.run(axes, {}, tier="numpy")["tiles"])
    where = [(i, j, k) for i, j, k in product(range(0, len(axes["a"]), 97), range(len(b)), range(3))]
    points = [{"a": axes["a"][i], "b": b[j], "c": axes["c"][k]} for i, j, k in where]
    exact = np.array([float(v) for v in exact_values(program, "y", points)])
    np.testing.assert_allclose([numba["y"][at] for at in where], exact, rtol=1e-13)


def test_short_and_idle_axes(store: Store) -> None:
    """Axes of one point, and one that the program does not read, keep their dimension."""
    program = random_program(1, "abc", 20)
    axes = {"a": [3.0], "idle": [1.0, 2.0, 3.0], "b": [5.0, 6.0]}
    kernel = GridKernel(program, tuple(axes), ["y"], store=store)
    for tier in ("numpy", "numba"):
        found = kernel.run(axes, {"c": 2.0, "unknown": 1.0}, tier=tier)["y"]
        assert found.shape == (1, 3, 2)
        np.testing.assert_array_equal(found[:, 0], found[:, 2])


@pytest.mark.parametrize(
    ("axes", "scalars", "complaint"),
    [
        ({"a": [1.0]}, SCALARS, "found axes a; expected a, b, c"),
        ({"a": [1.0], "b": [], "c": [1.0]}, SCALARS, "axis b: expected one dimension"),
        ({"a": [1.0], "b": [[1.0]], "c": [1.0]}, SCALARS, "axis b: expected one dimension"),
        ({"a": [1.0], "b": [1.0], "c": [1.0]}, {}, "no value for d, e"),
    ],
)
def test_bad_input(store: Store, axes: Any, scalars: Any, complaint: str) -> None:
    kernel = GridKernel(random_program(0), tuple(AXES), ["y", "z", "room"], store=store)
    with pytest.raises(ValueError, match=complaint):
        kernel.run(axes, scalars)


def test_bad_kernels(store: Store) -> None:
    program = random_program(0)
    with pytest.raises(ValueError, match="no output 'w'"):
        GridKernel(program, ["a"], ["w"], store=store)
    with pytest.raises(ValueError, match="given twice"):
        GridKernel(program, ["a", "a"], ["y"], store=store)
    with pytest.raises(ValueError, match="an axis at least"):
        GridKernel(program, [], ["y"], store=store)


def test_passes_keep_values() -> None:
    """Reassociated, with reciprocals and in another schedule: the same within 1e-13, for any set of axes."""
    for seed in range(40):
        program = random_program(seed)
        axes = tuple("abcde")[: 1 + seed % 5]
        changed = schedule(strength_reduce(reassociate(program, axes), axes))
        changed.check()
        points = dict(zip("abcde", np.random.default_rng(seed).integers(1, 999, (5, 64)).astype(float), strict=True))
        before = values_of(program, ["y", "z"], points)
        after = values_of(changed, ["y", "z"], points)
        signed = values_of(reassociate(program, axes, nonnegative=True), ["y", "z"], points)
        for name, value in before.items():
            np.testing.assert_allclose(after[name], value, rtol=1e-13)
            np.testing.assert_array_equal(signed[name], values_of(reassociate(program, axes), [name], points)[name])


def test_a_factor_leaves_a_maximum_only_where_no_input_is_negative(store: Store) -> None:
    """max(a w, b w) = w max(a, b) where w >= 0, to the bit; a kernel given a negative w does not take it out.

    Nor one given it beside what is undefined, which compares as neither.
    """
    program = Program(
        [("input", "a"), ("input", "w"), ("multiply", 0, 1), ("input", "b"), ("multiply", 3, 1), ("max", 2, 4)],
        {"a": 0, "w": 1, "b": 3},
        {},
        {"y": 5},
    )
    axes = {"a": np.linspace(0.1, 1.0, 9), "b": np.linspace(0.2, 0.7, 7), "w": np.array([0.3, 0.7])}
    count = [len(reassociate(program, ["a", "b", "w"], nonnegative=sign)) for sign in (True, False)]
    assert count == [5, 6]
    kernel = GridKernel(program, tuple(axes), ["y"], store=store)
    for sign in (1, -1):
        signed = {**axes, "w": axes["w"] * sign}
        expected = values_of(program, ["y"], dict(zip(axes, np.meshgrid(*signed.values(), indexing="ij"), strict=True)))
        np.testing.assert_array_equal(kernel.run(signed, {}, tier="numba")["y"], expected["y"])
    signed["w"] = np.array([-0.7, np.nan])
    found = kernel.run(signed, {}, tier="numba")["y"]
    np.testing.assert_array_equal(found[..., 0], kernel.run({**signed, "w": np.array([-0.7])}, {})["y"][..., 0])


def test_a_reassociated_sum_leaves_one_addition_innermost() -> None:
    """Of eight terms two of which depend on the axis, six are added outside its loop."""
    names = [f"x{k}" for k in range(8)]
    program = Program([("input", name) for name in names], {name: k for k, name in enumerate(names)})
    program.instructions.append(("add", 0, 1))
    program.instructions += [("add", 6 + k, k) for k in range(2, 8)]
    program.outputs = {"y": len(program) - 1}
    grouped = reassociate(program, ["x0", "x5"])
    nest = LoopNest((), ("x0", "x5"))
    vector = [
        place
        for place, (op, *_) in zip(placements(grouped, nest), grouped.instructions, strict=True)
        if place.vector and op == "add"
    ]
    assert len(vector) == 2


def test_the_loops_chosen() -> None:
    """A cheap axis goes innermost, and an axis that nothing reads is never a loop around what is costly."""
    program = random_program(5)
    sizes = {"a": 100, "b": 50, "c": 20}
    nest = choose_loop_nest(program, sizes)
    assert sorted((*nest.outer, *nest.vector)) == ["a", "b", "c"]
    assert any(nest.outer == order[: len(nest.outer)] for order in permutations("abc"))
    with pytest.raises(ValueError, match="1 to 12 axes"):
        choose_loop_nest(program, {})


def test_tiers() -> None:
    """Machine code is made where NumPy would take longer than making it, and loaded where it would than loading it."""
    step, small = (500, 1400), (5, 40)  # values to compute a point, instructions

    def tier(points: int, program: tuple[int, int], cached: bool) -> str:
        return best_tier(points, points * program[0], program[1], cached)

    assert tier(1000, step, True) == tier(5_000_000, step, False) == tier(10_000_000, small, False) == "numpy"
    assert tier(10_000_000, step, False) == tier(2_000_000, step, True) == tier(10**8, small, False) == "numba"


def test_a_kernel_counts_each_value_at_the_points_that_it_depends_on() -> None:
    program = Program([("input", "a"), ("input", "b"), ("sqrt", 0), ("add", 2, 1)], {"a": 0, "b": 1}, {}, {"x": 3})
    assert count_operations(program, {"a": 10, "b": 7, "c": 5}) == 10 + 70
