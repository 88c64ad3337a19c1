"""Axes of choices that came later: the optimizer, what the host keeps, and how many layers are computed again."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from support.effort import some

import symperf as sf
from symperf.common.errors import InputError
from symperf.sweep.axes import axis
from symperf.sweep.cells import Base
from symperf.sweep.sweep import REASON, Sweep

OUTPUTS = ("time", "memory")
GRIDS: dict[str, dict[str, Any]] = {
    "optimizer": {
        "optimizer": ["adam", "adam-8bit", "adafactor", "sgd-momentum", "muon"],
        "zero": [0, 1],
        "dp": [1, 4],
    },
    "offload": {"offload": [None, "activations", "optimizer,weights"], "recompute": ["none", "full"], "pp": [1, 2]},
    "layers": {"recompute_layers": [None, 1, 4, 9], "recompute": ["none", "full"], "pp": [1, 2, 4]},
}


def base() -> Base:
    fixed: dict[str, Any] = {"tp": 2, "micro_batch": 1}
    return Base(sf.Model.load("gpt2"), sf.System.load("h100-sxm"), fixed, {"batch": 16, "sequence": 512}, {})


@pytest.mark.parametrize("name", some(list(GRIDS)))
def test_every_point_is_a_single_run(name: str) -> None:
    """The same time and memory at every point, and no values where a single run refuses the plan."""
    grid = GRIDS[name]
    sweep = Sweep(base(), grid, outputs=OUTPUTS)
    found = sweep.compute(tuple(slice(0, n) for n in sweep.shape))
    refused = 0
    for place in np.ndindex(*sweep.shape):
        fields = {key: values[k] for (key, values), k in zip(grid.items(), place, strict=True)}
        try:
            run = sf.training(
                sf.Model.load("gpt2"),
                sf.System.load("h100-sxm"),
                sf.Plan(**{**base().plan, **fields}),
                batch=16,
                sequence=512,
            )
        except InputError:
            refused += 1
            assert found[REASON][place]
            assert all(np.isnan(found[output][place]) for output in OUTPUTS)
            continue
        assert not found[REASON][place]
        for output in OUTPUTS:
            assert math.isclose(found[output][place], run.value(output), rel_tol=1e-12)
    assert refused < sweep.points
    assert (refused > 0) is (name != "offload")


def test_a_host_that_the_system_does_not_describe_is_a_reason() -> None:
    """As a single run refuses it; alone it is the error of the sweep."""
    system = sf.System.load("b200-sxm")
    assert "host_memory_bandwidth" not in system.quantities
    given = base()
    without = Base(given.model, system, given.plan, given.work, {})
    sweep = Sweep(without, {"offload": [None, "optimizer"], "tp": [1, 2]}, outputs=OUTPUTS)
    found = sweep.compute((slice(0, 2), slice(0, 2)))
    assert found[REASON].astype(bool).tolist() == [[False, False], [True, True]]
    with pytest.raises(InputError, match="host_memory_bandwidth"):
        Sweep(Base(given.model, system, {**given.plan, "offload": "optimizer"}, given.work, {}), {"tp": [1, 2]})


def test_values_are_those_of_a_plan() -> None:
    """Names in their order, each once; "none" is nothing; counts are whole."""
    made = axis("offload", ["none", "weights, activations", "optimizer"])
    assert made.members["offload"] == (None, "activations,weights", "optimizer")
    with pytest.raises(InputError, match="comes twice"):
        axis("offload", ["weights,optimizer", "optimizer,weights"])
    for name, value, told in (
        ("offload", "activation", "did you mean activations"),
        ("optimizer", "adamw", "expected adam or"),
        ("recompute_layers", 0, "expected a whole number from 1"),
        ("recompute_layers", 1.5, "expected a whole number"),
    ):
        with pytest.raises(InputError, match=told):
            axis(name, [value])


def test_the_dataset_has_labels() -> None:
    pytest.importorskip("xarray")
    run = sf.training(
        sf.Model.load("gpt2"), sf.System.load("h100-sxm"), sf.Plan(tp=2, recompute="full"), batch=16, sequence=512
    )
    found = run.sweep(offload=[None, "optimizer"], recompute_layers=[1, 3], outputs=["time"])
    assert found.offload.values.tolist() == ["default", "optimizer"]
    assert found.recompute_layers.values.tolist() == [1, 3]
    assert list(found.time.dims) == ["offload", "recompute_layers"]
