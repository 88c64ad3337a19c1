"""Bounds: no step, kernel or collective beats its work, its bytes or what it hides."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.law_cases import few, is_product, is_transfer, regimes, relative, some, values_of
from support.points import STRUCTURES, Values, points, structure
from support.strategies import seeds


@given(some, seeds, regimes)
@few
def test_time_is_above_the_work_bound(name: str, seed: int, regime: str) -> None:
    """No step beats its executed products, or (eager) its model FLOPs, at the peak of all devices."""
    values = values_of(name, seed, regime)
    batch = values.batch
    products = sum(
        values[f"term/{path}/count"] * values[f"term/{path}/flops"] for path in values.operations(is_product)
    )
    assert relative(products / batch["matrix_rate"] - values["time"], values["time"]) < 1e-12
    if STRUCTURES[name].attention == "eager":
        bound = values["model_flops"] / (values["devices"] * batch["matrix_rate"])
        assert relative(bound - values["time"], values["time"]) < 1e-12
        assert np.all(values["mfu"] <= 1 + 1e-12)
        assert np.all(values["hfu"] <= 1 + 1e-12)
    assert np.all(values["hfu"] >= values["mfu"] * (1 - 1e-15))


@given(some, seeds, regimes)
@few
def test_operations_are_above_their_bounds(name: str, seed: int, regime: str) -> None:
    """No kernel beats its compulsory bytes at the peak of the memory, its FLOPs at the peak rate, or its launch."""
    values = values_of(name, seed, regime)
    batch = values.batch
    fastest = np.maximum(batch["matrix_rate"], batch["vector_rate"])
    for path in values.operations(lambda path: not is_transfer(path)):
        time = values[path]
        moved = values[f"term/{path}/bytes"] / batch["memory_bandwidth"]
        work = values[f"term/{path}/flops"] / fastest
        bound = np.maximum(moved, work) + batch["launch_latency"]
        assert relative(bound - time, time) < 1e-12, path


@pytest.mark.parametrize("tiers", [1, 2])
@given(seeds, regimes, st.booleans())
@few
def test_collectives_are_above_their_bounds(tiers: int, seed: int, regime: str, sharded: bool) -> None:
    """No collective of q ranks beats (q - 1)/q of its bytes over all of a device's links, twice for an all-reduce."""
    of = structure(sequence_parallel=sharded, tiers=tiers, zero=int(sharded))
    values = Values(of, points(seed, regime))
    batch = values.batch
    link = batch["scale_up_bandwidth"]
    if tiers == 2:
        link = link + batch["scale_out_bandwidth"]
    for path in values.operations(lambda path: "/gather/" in path or "/reduce/" in path):
        if path.startswith("pipeline/"):
            continue
        once = "/gather/" in path or sharded
        share = (1 if once else 2) * (batch["tp"] - 1) / batch["tp"]
        bound = share * values[f"term/{path}/message"] / link
        assert np.all(values[path] >= bound * (1 - 1e-12)), path
        assert np.all((values[path] == 0) == (batch["tp"] == 1)), path


@given(seeds, regimes)
@few
def test_rounding_up_never_saves_time(seed: int, regime: str) -> None:
    """Whole tiles and waves cost at least as much as smooth products; an L2 cache as a level costs at least none."""
    batch = points(seed, regime)
    whole, flat, smooth = (
        Values(structure(quantised=quantised, l2=l2), batch)
        for quantised, l2 in ((True, True), (True, False), (False, False))
    )
    for path in ["time", *whole.operations()]:
        size = whole[path]
        assert np.all(whole[path] >= flat[path] - 1e-12 * size), path
        assert np.all(flat[path] >= smooth[path] - 1e-12 * size), path


@given(some, seeds, regimes)
@few
def test_overlap_saves_at_most_what_it_hides(name: str, seed: int, regime: str) -> None:
    """T(all hidden) <= T <= T(nothing hidden), and hiding saves no more than half: two things at once, not three."""
    zeros, ones = np.zeros(4096), np.ones(4096)
    serial = values_of(name, seed, regime, overlap_tp=zeros, overlap_dp=zeros)["time"]
    hidden = values_of(name, seed, regime, overlap_tp=ones, overlap_dp=ones)["time"]
    actual = values_of(name, seed, regime)["time"]
    assert np.all(hidden <= actual * (1 + 1e-12))
    assert np.all(actual <= serial * (1 + 1e-12))
    assert np.all(serial <= 2 * hidden * (1 + 1e-12))
