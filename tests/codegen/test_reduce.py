"""The best points are what NumPy says of all, with ties, NaN, nothing feasible, and more asked than there is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from support.effort import some

from symperf.codegen.kernel import GridKernel
from symperf.codegen.loop_nest import LoopNest
from symperf.codegen.program import Program
from symperf.codegen.reduce import TopK
from symperf.codegen.store import Store

if TYPE_CHECKING:
    from pathlib import Path

AXES = {"a": np.arange(0.0, 12.0), "b": np.array([3.0, 0.0, 5.0, 1.0, 4.0]), "c": np.arange(9.0, 0.0, -1.0)}
NESTS = [None, LoopNest(("c",), ("b", "a")), LoopNest(("b", "a"), ("c",))]


@pytest.fixture(scope="session")
def store(cache_folder: Path) -> Store:
    return Store(cache_folder / "kernels")


def program() -> Program:
    """Whole numbers with many ties; `ratio` is undefined at a = b = 0 and infinite at other b = 0."""
    return Program(
        [
            ("input", "a"),
            ("input", "b"),
            ("input", "c"),
            ("max", 0, 1),
            ("add", 3, 2),
            ("divide", 0, 1),
            ("subtract", 2, 1),
            ("input", "limit"),
            ("subtract", 7, 0),
            ("multiply", 1, 2),
            ("add", 0, 2),
        ],
        {"a": 0, "b": 1, "c": 2, "limit": 7},
        {},
        {"steps": 4, "ratio": 5, "gap": 6, "room": 8, "area": 9, "length": 10},
    )


def everything(limit: float) -> tuple[dict[str, Any], Any]:
    a, b, c = (m.ravel() for m in np.meshgrid(*AXES.values(), indexing="ij"))
    with np.errstate(all="ignore"):
        ratio = a / b
    values = {
        "steps": np.maximum(a, b) + c,
        "ratio": ratio,
        "gap": c - b,
        "room": limit - a,
        "area": b * c,
        "length": a + c,
    }
    return values, np.where(values["gap"] >= 0, np.where(values["room"] >= 0, 0, 2), 1)


def find(store: Store, top: TopK, tier: str, nest: LoopNest | None = None, limit: float = 8.0) -> Any:
    options: Any = {"constraints": ["gap", "room"], "reduce": top}
    kernel = GridKernel(program(), tuple(AXES), ["steps", "ratio", "area"], store=store, **options)
    return kernel.run(AXES, {"limit": limit}, tier=tier, nest=nest, threads=2, block=16)


CASES = [("numpy", None), *(("numba", nest) for nest in NESTS)]


@pytest.mark.parametrize(("tier", "nest"), some(CASES))
@pytest.mark.parametrize("output", ["steps", "ratio"])
@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("k", [1, 7, 10_000])
def test_top(store: Store, tier: str, nest: LoopNest | None, output: str, largest: bool, k: int) -> None:
    values, reason = everything(8.0)
    key = -values[output] if largest else values[output]
    good = np.flatnonzero((reason == 0) & ~np.isnan(key))
    expected = good[np.lexsort((good, key[good]))][:k]
    found = find(store, TopK(output, k, largest=largest), tier, nest)
    np.testing.assert_array_equal(found.flat, expected)
    for name in ("steps", "ratio", "area"):
        np.testing.assert_array_equal(found.values[name], values[name][expected])
    index = np.unravel_index(expected, [len(axis) for axis in AXES.values()])
    for axis, at in zip(AXES, index, strict=True):
        np.testing.assert_array_equal(found.indices[axis], at)


@pytest.mark.parametrize("tier", ["numpy", "numba"])
def test_nothing_feasible(store: Store, tier: str) -> None:
    """No point: an empty answer, not an error."""
    for top in (TopK("steps", 1), TopK("steps", 1, largest=True), TopK("steps", 5)):
        found = find(store, top, tier, limit=-1.0)
        assert len(found) == 0
        assert all(len(value) == 0 for value in (*found.indices.values(), *found.values.values()))
        assert found.feasible == 0
        assert sum(found.rejected.values()) == 540


@pytest.mark.parametrize(("tier", "nest"), CASES)
@pytest.mark.parametrize("top", [TopK("steps", 7), TopK("ratio", 1, largest=True)])
@pytest.mark.parametrize("limit", [8.0, -1.0])
def test_counts(store: Store, tier: str, nest: LoopNest | None, top: TopK, limit: float) -> None:
    """How many points are feasible, and how many each constraint is the first to reject."""
    _, reason = everything(limit)
    found = find(store, top, tier, nest, limit)
    assert found.feasible == (reason == 0).sum()
    assert found.rejected == {0: (reason == 1).sum(), 1: (reason == 2).sum()}


@pytest.mark.parametrize("tier", ["numpy", "numba"])
def test_counts_without_constraints(store: Store, tier: str) -> None:
    options: Any = {"reduce": TopK("steps", 3), "store": store}
    found = GridKernel(program(), tuple(AXES), ["steps"], **options).run(AXES, {"limit": 8.0}, tier=tier)
    assert (len(found), found.feasible, found.rejected) == (3, 540, {})


@pytest.mark.parametrize("k", [0, -1, 1.5, True])
def test_not_a_number_of_points(k: Any) -> None:
    with pytest.raises(ValueError, match="whole number from 1"):
        TopK("y", k)
