"""Reductions equal what NumPy says of all points, with ties, NaN, nothing feasible, and more asked than there is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from symperf.codegen.grid import Plan
from symperf.codegen.kernel import GridKernel
from symperf.codegen.program import Program
from symperf.codegen.reduce import ArgMax, ArgMin, Count, Histogram, Pareto, TopK
from symperf.codegen.store import Store

if TYPE_CHECKING:
    from pathlib import Path

    from symperf.codegen.reduce import Reduction

AXES = {"a": np.arange(0.0, 12.0), "b": np.array([3.0, 0.0, 5.0, 1.0, 4.0]), "c": np.arange(9.0, 0.0, -1.0)}
PLANS = [None, Plan(("c",), ("b", "a")), Plan(("b", "a"), ("c",))]


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


def reduced(
    store: Store, reduce: Reduction, tier: str, plan: Plan | None = None, limit: float = 8.0, count: bool = False
) -> Any:
    options: Any = {"constraints": ["gap", "room"], "reduce": reduce, "count": count}
    kernel = GridKernel(program(), tuple(AXES), ["steps", "ratio", "area"], store=store, **options)
    return kernel.run(AXES, {"limit": limit}, tier=tier, plan=plan, threads=2, block=16)


CASES = [("numpy", None), *(("numba", plan) for plan in PLANS)]


@pytest.mark.parametrize(("tier", "plan"), CASES)
@pytest.mark.parametrize("output", ["steps", "ratio"])
@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("k", [1, 7, 10_000])
def test_top(store: Store, tier: str, plan: Plan | None, output: str, largest: bool, k: int) -> None:
    values, reason = everything(8.0)
    key = -values[output] if largest else values[output]
    good = np.flatnonzero((reason == 0) & ~np.isnan(key))
    expected = good[np.lexsort((good, key[good]))][:k]
    found = reduced(store, TopK(output, k, largest=largest), tier, plan)
    np.testing.assert_array_equal(found.flat, expected)
    for name in ("steps", "ratio", "area"):
        np.testing.assert_array_equal(found.values[name], values[name][expected])
    index = np.unravel_index(expected, [len(axis) for axis in AXES.values()])
    for axis, at in zip(AXES, index, strict=True):
        np.testing.assert_array_equal(found.indices[axis], at)


@pytest.mark.parametrize("tier", ["numpy", "numba"])
def test_nothing_feasible(store: Store, tier: str) -> None:
    """No point: an empty answer, not an error."""
    for reduction in (ArgMin("steps"), ArgMax("steps"), TopK("steps", 5), Pareto(("steps", "area"))):
        found = reduced(store, reduction, tier, limit=-1.0)
        assert len(found) == 0
        assert all(len(value) == 0 for value in (*found.indices.values(), *found.values.values()))
    counts = reduced(store, Count(), tier, limit=-1.0)
    assert counts.feasible == 0
    assert counts.points == sum(counts.rejected.values()) == 540


@pytest.mark.parametrize(("tier", "plan"), CASES)
def test_count(store: Store, tier: str, plan: Plan | None) -> None:
    _, reason = everything(8.0)
    found = reduced(store, Count(), tier, plan)
    assert found.points == reason.size
    assert found.feasible == (reason == 0).sum()
    assert found.rejected == {"gap": (reason == 1).sum(), "room": (reason == 2).sum()}


@pytest.mark.parametrize(("tier", "plan"), CASES)
@pytest.mark.parametrize("reduce", [TopK("steps", 7), ArgMax("ratio"), Pareto(("steps", "area"))])
@pytest.mark.parametrize("limit", [8.0, -1.0])
def test_counted_points(store: Store, tier: str, plan: Plan | None, reduce: Reduction, limit: float) -> None:
    """The points are those found without a count, and the counts those of a reduction that only counts."""
    _, reason = everything(limit)
    found = reduced(store, reduce, tier, plan, limit, count=True)
    assert found.flat.tolist() == reduced(store, reduce, tier, plan, limit).flat.tolist()
    assert found.feasible == (reason == 0).sum()
    assert found.rejected == {0: (reason == 1).sum(), 1: (reason == 2).sum()}


@pytest.mark.parametrize("tier", ["numpy", "numba"])
def test_counted_without_constraints(store: Store, tier: str) -> None:
    options: Any = {"reduce": TopK("steps", 3), "count": True, "store": store}
    found = GridKernel(program(), tuple(AXES), ["steps"], **options).run(AXES, {"limit": 8.0}, tier=tier)
    assert (len(found), found.feasible, found.rejected) == (3, 540, {})


@pytest.mark.parametrize("reduce", [None, Count(), Histogram("steps", (0.0, 1.0))])
def test_only_points_are_counted_beside(store: Store, reduce: Reduction | None) -> None:
    with pytest.raises(ValueError, match="expected one to points"):
        GridKernel(program(), tuple(AXES), ["steps"], reduce=reduce, count=True, store=store)


@pytest.mark.parametrize(("tier", "plan"), CASES)
@pytest.mark.parametrize("output", ["steps", "ratio"])
def test_histogram(store: Store, tier: str, plan: Plan | None, output: str) -> None:
    """Bins are those of `numpy.histogram`; what is outside or undefined is told apart."""
    values, reason = everything(8.0)
    edges = (1.0, 2.0, 3.5, 8.0, 10.0)
    found = reduced(store, Histogram(output, edges), tier, plan)
    value = values[output][reason == 0]
    known = value[~np.isnan(value)]
    np.testing.assert_array_equal(found.counts, np.histogram(known, np.array(edges))[0])
    assert found.below == (known < 1.0).sum()
    assert found.above == (known > 10.0).sum()
    assert found.undefined == len(value) - len(known)
    assert found.rejected == {"gap": (reason == 1).sum(), "room": (reason == 2).sum()}


@pytest.mark.parametrize(("tier", "plan"), CASES)
@pytest.mark.parametrize("outputs", [("steps", "area"), ("ratio", "steps"), ("area", "steps", "length")])
def test_pareto(store: Store, tier: str, plan: Plan | None, outputs: tuple[str, ...]) -> None:
    values, reason = everything(8.0)
    rows = np.stack([values[name] for name in outputs], axis=1)
    good = [int(i) for i in np.flatnonzero((reason == 0) & ~np.isnan(rows).any(axis=1))]
    front = [
        i for i in good if not any((rows[j] <= rows[i]).all() and ((rows[j] < rows[i]).any() or j < i) for j in good)
    ]
    front.sort(key=lambda i: (*rows[i], i))
    assert reduced(store, Pareto(outputs), tier, plan).flat.tolist() == front


@pytest.mark.parametrize("tier", ["numpy", "numba"])
def test_pareto_larger_than_its_room(store: Store, tier: str) -> None:
    """Every point is on the front: its arrays grow, and no point is counted twice."""
    identity = Program([("input", "a"), ("input", "l"), ("subtract", 1, 0)], {"a": 0, "l": 1}, {}, {"y": 0, "z": 2})
    options: Any = {"constraints": ["z"], "reduce": Pareto(("y", "z")), "count": True, "store": store}
    kernel = GridKernel(identity, ("a",), ["y"], **options)
    found = kernel.run({"a": np.arange(5007.0)[::-1]}, {"l": 4999.0}, tier=tier)
    np.testing.assert_array_equal(found.flat, np.arange(5007)[:6:-1])
    assert (found.feasible, found.rejected) == (5000, {0: 7})


def test_bad_reductions() -> None:
    with pytest.raises(ValueError, match="whole number from 1"):
        TopK("y", 0)
    with pytest.raises(ValueError, match="each above the one before"):
        Histogram("y", (1.0, 1.0))
    with pytest.raises(ValueError, match="two or three different outputs"):
        Pareto(("y", "y"))
