"""Inputs that vary together are one axis of a kernel: a table of points has one, and what it shares with none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from support.kernels import random_program, values_of

from symperf.codegen.kernel import GridKernel
from symperf.codegen.loop_nest import LoopNest
from symperf.codegen.passes import masks
from symperf.codegen.reduce import TopK
from symperf.codegen.store import Store
from symperf.codegen.tiers import count_operations

if TYPE_CHECKING:
    from pathlib import Path

    from symperf.codegen.passes import Axis

SCALARS = {"d": 7.0, "e": 48.0}
ROWS = 37
TABLE: Axis = ("a", "c")
BESIDE: Axis = "b"


@pytest.fixture(scope="session")
def store(cache_folder: Path) -> Store:
    return Store(cache_folder / "kernels")


def points(sign: float = 1.0) -> dict[Axis, Any]:
    """Columns in an order of their own, with equal rows among them, beside an axis of one input."""
    random = np.random.default_rng(3)
    rows = [random.integers(1, 9, ROWS) * 25.0, sign * random.integers(1, 60, ROWS)]
    return {TABLE: rows, BESIDE: np.array([75.0, 3.0, 1.0])}


def meshed(axes: dict[Axis, Any]) -> dict[str, Any]:
    first, second = (np.asarray(row)[:, None] for row in axes[TABLE])
    return {"a": first, "c": second, "b": axes[BESIDE][None, :]} | SCALARS


@pytest.mark.parametrize(
    ("seed", "sign", "nest"),
    [
        (0, 1.0, LoopNest((BESIDE,), (TABLE,))),
        (1, -1.0, LoopNest((TABLE,), (BESIDE,))),
        (2, 1.0, LoopNest((), (BESIDE, TABLE))),
    ],
)
def test_a_table_beside_an_axis_is_the_interpreter(store: Store, seed: int, sign: float, nest: LoopNest) -> None:
    """Within 1e-13 in both tiers, which agree bit for bit; the best rows are those of all; below 0 too."""
    program = random_program(seed)
    axes = points(sign)
    kernel = GridKernel(program, (TABLE, BESIDE), ["y", "z"], constraints=["room"], store=store)
    expected = values_of(program, ["y", "z", "room"], meshed(axes))
    in_numpy = kernel.run(axes, SCALARS, tier="numpy")
    compiled = kernel.run(axes, SCALARS, tier="numba", nest=nest, block=16, threads=2)
    for name in ("y", "z"):
        np.testing.assert_allclose(in_numpy[name], np.broadcast_to(expected[name], (ROWS, 3)), rtol=1e-13)
    for name, value in in_numpy.items():
        np.testing.assert_array_equal(value, compiled[name])
    top = GridKernel(program, (TABLE, BESIDE), ["y"], constraints=["room"], reduce=TopK("y", 5), store=store)
    one, other = (top.run(axes, SCALARS, tier=tier, nest=nest, block=16, threads=2) for tier in ("numpy", "numba"))
    np.testing.assert_array_equal(one.flat, other.flat)
    bounded = top.run(axes, SCALARS, tier="numba", bound=True, block=16, threads=2)
    np.testing.assert_array_equal(one.flat, bounded.flat)
    assert one.feasible == bounded.feasible
    np.testing.assert_array_equal(one.indices[TABLE], one.flat // 3)
    np.testing.assert_array_equal(one.values["y"], np.broadcast_to(expected["y"], (ROWS, 3)).ravel()[one.flat])


def test_a_table_alone(store: Store) -> None:
    """Points that share nothing: the kernel has one axis and no loop around it, and computes all inside."""
    program = random_program(5, size=60)
    whole: Axis = tuple("abcde")
    random = np.random.default_rng(0)
    rows = [random.integers(1, 100, 1000).astype(float) for _ in "abcde"]
    kernel = GridKernel(program, [whole], ["y", "z"], store=store)
    found = kernel.run({whole: rows}, {}, tier="numba", threads=1)
    assert kernel.choose_nest({whole: 1000}) == LoopNest((), (whole,))
    (generated,) = kernel._generated.values()
    assert len(generated.body.columns) <= 5
    expected = values_of(program, ["y", "z"], dict(zip("abcde", rows, strict=True)))
    for name, value in kernel.run({whole: rows}, {}, tier="numpy").items():
        np.testing.assert_array_equal(found[name], value)
        np.testing.assert_allclose(value, expected[name], rtol=1e-13)
    assert set(masks(program, [whole])) <= {0, 1}
    assert count_operations(program, {whole: 10}) == 10 * count_operations(program, {whole: 1})


@pytest.mark.parametrize(
    ("rows", "found"), [([[1.0]], r"\(1,\)"), ([[1.0], [1.0, 2.0]], r"\(1,\), \(2,\)"), ([[], []], r"\(0,\), \(0,\)")]
)
def test_bad_tables(store: Store, rows: Any, found: str) -> None:
    kernel = GridKernel(random_program(0), [TABLE], ["y"], store=store)
    with pytest.raises(ValueError, match=f"axis a with c: expected .*, found {found}"):
        kernel.run({TABLE: rows}, SCALARS | {"b": 1.0})
    with pytest.raises(ValueError, match="an axis is given twice: a, c, a"):
        GridKernel(random_program(0), [TABLE, "a"], ["y"], store=store)
