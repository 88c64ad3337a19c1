"""A kernel over the rows of a table gives what the interpreter and the grid give, in any block and thread."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from support.kernels import exact_values, random_program, values_of

from symperf.codegen.kernel import FlatKernel, GridKernel, Interrupted
from symperf.codegen.reduce import ArgMax, Count, TopK
from symperf.codegen.store import Store
from symperf.codegen.workers import boxes, run_boxes

if TYPE_CHECKING:
    from pathlib import Path

SCALARS = {"d": 7.0, "e": 48.0}


@pytest.fixture(scope="session")
def store(cache_folder: Path) -> Store:
    return Store(cache_folder / "kernels")


def columns(count: int, seed: int = 0) -> dict[str, Any]:
    """Whole numbers, a third of them multiples of b."""
    generator = np.random.default_rng(seed)
    a, b, c = generator.integers(1, 5000, (3, count)).astype(float)
    b = np.minimum(b, 160)
    a[::3] = b[::3] * np.minimum(c[::3], 300)
    return {"a": a, "b": b, "c": c}


@pytest.mark.parametrize("tier", ["numpy", "numba"])
def test_flat_is_exact(store: Store, tier: str) -> None:
    """10^5 points with exact multiples, against exact fractions: within 1e-13."""
    program = random_program(11, size=16)
    table = columns(100_000)
    found = FlatKernel(program, tuple(table), ["y", "z"], store=store).run(table, SCALARS, tier=tier)
    rows = [
        dict(zip(table, row, strict=True)) | SCALARS for row in zip(*(c.tolist() for c in table.values()), strict=True)
    ]
    for name in ("y", "z"):
        exact = np.array([float(value) for value in exact_values(program, name, rows)])
        np.testing.assert_allclose(found[name], exact, rtol=1e-13)


@pytest.mark.parametrize("seed", range(2))
def test_flat_is_the_grid(store: Store, seed: int) -> None:
    """The same points as a grid and as a table."""
    program = random_program(seed)
    axes = {"a": np.arange(1.0, 40.0) * 25, "b": np.array([75.0, 3.0, 1.0]), "c": np.array([1.0, 2.0, 60.0, 61.0])}
    grid = GridKernel(program, tuple(axes), ["y", "z"], store=store).run(axes, SCALARS, tier="numba")
    table = {name: m.ravel() for name, m in zip(axes, np.meshgrid(*axes.values(), indexing="ij"), strict=True)}
    flat = FlatKernel(program, tuple(table), ["y", "z"], store=store).run(table, SCALARS, tier="numba")
    for name in ("y", "z"):
        np.testing.assert_allclose(flat[name], grid[name].ravel(), rtol=1e-13)


@pytest.mark.parametrize(("block", "threads", "tier"), [(8, 1, "numba"), (256, 3, "numba"), (None, None, "numpy")])
def test_every_block_gives_the_same_bits(store: Store, block: Any, threads: Any, tier: str) -> None:
    program = random_program(2)
    table = columns(50_001)
    kernel = FlatKernel(program, tuple(table), ["y"], constraints=["room"], store=store)
    expected = kernel.run(table, SCALARS, tier="numba")
    found = kernel.run(table, SCALARS, tier=tier, block=block, threads=threads)
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value)
    np.testing.assert_array_equal(found["feasible"], values_of(program, ["room"], table | SCALARS)["room"] >= 0)


@pytest.mark.parametrize("tier", ["numpy", "numba"])
def test_reductions_of_rows(store: Store, tier: str) -> None:
    """The index of a point is its row."""
    program = random_program(4)
    table = columns(30_000)
    options: Any = {"constraints": ["room"], "store": store}
    kernel = FlatKernel(program, tuple(table), ["y"], **options)
    every = kernel.run(table, SCALARS, tier=tier)
    key = np.where(every["feasible"], every["y"], np.inf)
    top = FlatKernel(program, tuple(table), ["y", "z"], reduce=TopK("y", 50), **options).run(table, SCALARS, tier=tier)
    rows = np.lexsort((np.arange(len(key)), key))[:50]
    np.testing.assert_array_equal(top.flat, rows[: every["feasible"].sum()])
    np.testing.assert_array_equal(top.indices["point"], top.flat)
    np.testing.assert_allclose(top.values["y"], key[top.flat], rtol=1e-13)
    most = FlatKernel(program, tuple(table), ["y"], reduce=ArgMax("y"), **options).run(table, SCALARS, tier=tier)
    assert most.flat.tolist() == [np.where(every["feasible"], every["y"], -np.inf).argmax()]


@pytest.mark.parametrize("count", [1, 7, 8, 9, 1024, 1031, 2049])
def test_every_length(store: Store, count: int) -> None:
    """Rows after the last whole line of lanes, and none; columns at odd addresses; a count beside the points."""
    program = random_program(2)
    table = {name: column[3 : count + 3] for name, column in columns(count + 3).items()}
    options: Any = {"constraints": ["room"], "store": store}
    kernel = FlatKernel(program, tuple(table), ["y"], **options)
    expected = kernel.run(table, SCALARS, tier="numpy")
    found = kernel.run(table, SCALARS, tier="numba", threads=2)
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value)
    best = FlatKernel(program, tuple(table), ["y"], reduce=TopK("y", 3), count=True, **options)
    points = best.run(table, SCALARS, tier="numba", threads=2)
    feasible = np.flatnonzero(expected["feasible"])
    assert points.flat.tolist() == feasible[np.lexsort((feasible, expected["y"][feasible]))][:3].tolist()
    assert (points.feasible, points.rejected) == (len(feasible), {0: count - len(feasible)})


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_a_failure_in_any_thread_is_raised(failing: int) -> None:
    """Also by the threads beside the caller's, and the others end."""

    def work(thread: int, box: Any) -> None:
        time.sleep(0.001)
        if thread == failing:
            raise OSError(f"box {box}")

    with pytest.raises(OSError, match="box"):
        run_boxes(boxes([10_000], [1], 10), work, 3, 10_000, None)


def test_bad_input(store: Store) -> None:
    kernel = FlatKernel(random_program(0), ("a", "b", "c"), ["y"], store=store)
    with pytest.raises(ValueError, match="columns of different lengths: 1, 2"):
        kernel.run({"a": [1.0], "b": [1.0, 2.0], "c": [1.0]}, SCALARS)


def test_interruption(store: Store) -> None:
    def stop(done: int, _: int) -> None:
        if done:
            raise KeyboardInterrupt

    kernel = FlatKernel(random_program(0), ("a", "b", "c"), [], constraints=["room"], reduce=Count(), store=store)
    with pytest.raises(Interrupted) as caught:
        kernel.run(columns(200_000), SCALARS, tier="numba", progress=stop)
    assert 0 < caught.value.partial.points <= 200_000
