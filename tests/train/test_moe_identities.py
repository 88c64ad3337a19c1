"""Mixtures of experts in a training step: what is left of them at one expert and on one device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from support.law_cases import few
from support.parallel_cases import parallel, parallel_points
from support.points import Values
from support.strategies import seeds


def _work(values: Values, part: str) -> Any:
    paths = [p for p in values.operations() if p.startswith("layer/") and part in p]
    return sum(values[f"term/{p}/count"] * values[f"term/{p}/flops"] for p in paths)


@given(seeds)
@few
def test_one_expert_is_the_dense_mlp_and_a_router(seed: int) -> None:
    """One expert, top-1, no shared expert: the products of the dense MLP, and beside them a router's."""
    one = {name: np.ones(256) for name in ("num_experts", "num_experts_per_token", "token_imbalance", "ep", "tp")}
    batch = parallel_points(seed, size=256) | one
    batch["expert_intermediate_size"] = batch["intermediate_size"]
    experts, dense = Values(parallel("mixtral-8x7b"), batch), Values(parallel(), batch)
    for product in ("up", "down"):
        assert np.allclose(_work(experts, f"experts/{product}/"), _work(dense, f"mlp/{product}/"), rtol=1e-12)
    tokens = batch["batch"] / batch["dp"] * batch["sequence"] * batch["num_layers"] / batch["pp"]
    assert np.allclose(_work(experts, "experts/router/"), 6 * tokens * batch["hidden_size"], rtol=1e-12)


@pytest.mark.parametrize("name", ["ep", "expert_tp"])
@given(seeds)
@few
def test_whole_experts_on_one_device_send_nothing(name: str, seed: int) -> None:
    """At e = 1 and t_e = 1 the transfers of experts take no time."""
    batch = parallel_points(seed, size=256) | {"ep": np.ones(256), "expert_tp": np.ones(256)}
    values = Values(parallel("mixtral-8x7b"), batch)
    words = ("dispatch", "combine") if name == "ep" else ("experts/gather", "experts/scatter")
    sent = [path for path in values.operations() if any(word in path for word in words)]
    assert len(sent) == 4
    assert all(not np.any(values[path]) for path in sent)


@given(seeds)
@few
def test_experts_are_conserved(seed: int) -> None:
    """The experts' weights over all shards of e and p are those of one device; nothing is replicated but over data."""
    batch = parallel_points(seed, size=256)
    of = parallel("mixtral-8x7b")
    split = Values(of, batch)["memory/weights/experts"] * batch["ep"] * batch["pp"]
    whole = Values(of, batch | {name: np.ones(256) for name in ("ep", "pp")})["memory/weights/experts"]
    assert np.allclose(split, whole, rtol=1e-12)


@given(seeds)
@few
def test_imbalance_costs_time(seed: int) -> None:
    """Everybody waits for the device with most tokens."""
    batch = parallel_points(seed, size=256)
    even, uneven = (Values(parallel("mixtral-8x7b"), batch | {"token_imbalance": np.full(256, x)}) for x in (1.0, 1.5))
    assert np.all(uneven["time"] > even["time"])
    assert np.all(uneven["memory"] >= even["memory"])
