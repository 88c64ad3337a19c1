"""Limits: one device, one stage, many micro-batches, replicas, and groups inside a domain or across."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.law_cases import few, is_transfer, regimes, some, values_of
from support.points import STRUCTURES, Values, points, structure
from support.strategies import seeds

from symperf.train.step.step import BUBBLE


@given(some, seeds, regimes)
@few
def test_alone_nothing_is_sent(name: str, seed: int, regime: str) -> None:
    """On one device every collective and transfer takes no time, and there is no bubble."""
    one = np.ones(4096)
    values = values_of(name, seed, regime, tp=one, pp=one, dp=one, vpp=one)
    for path in values.operations(is_transfer):
        assert np.all(values[path] == 0), path
    assert np.all(values[BUBBLE] == 0)
    network = [n for n in values.compiled.program.inputs if n.startswith(("scale_up_b", "scale_out_b"))]
    slow = Values(STRUCTURES[name], values.batch | {n: values.batch[n] / 1e3 for n in network})
    assert np.array_equal(slow["time"], values["time"])


def test_transfers_are_recognised() -> None:
    """The test above sees every operation that sends anything, and no other."""
    for of in STRUCTURES.values():
        values = Values(of, points(0, size=64))
        sends = {path for path in values.operations() if np.any(values[f"term/{path}/message"] > 0)}
        assert sends == set(values.operations(is_transfer))


@given(some, seeds, regimes)
@few
def test_one_stage_has_no_bubble(name: str, seed: int, regime: str) -> None:
    """Without a pipeline no device waits, and nothing goes from stage to stage."""
    one = np.ones(4096)
    values = values_of(name, seed, regime, pp=one, vpp=one)
    assert np.all(values[BUBBLE] == 0)
    for path in values.operations(lambda path: path.startswith("pipeline/")):
        assert np.all(values[path] == 0), path


@given(seeds, regimes, st.integers(2, 9))
@few
def test_the_bubble_shrinks(seed: int, regime: str, factor: int) -> None:
    """Its share falls with more micro-batches and, interleaved, with more virtual stages; never below zero."""
    name = "gpt, interleaved, selective, sharded"
    values = values_of(name, seed, regime)
    b = values.batch
    share = values[BUBBLE] / values["time"]
    assert np.all((share > 0) == (b["pp"] > 1))
    more = values_of(name, seed, regime, batch=b["batch"] * factor)
    assert np.all(more[BUBBLE] / more["time"] <= share)
    finer = values_of(name, seed, regime, vpp=b["vpp"] * factor, num_layers=b["num_layers"])
    assert np.all(finer[BUBBLE] / finer["time"] <= share * (1 + 1e-12))
    many = values_of(name, seed, regime, batch=b["batch"] * 10**9)
    assert np.all(many[BUBBLE] / many["time"] < 1e-6)


@few
@given(seeds, regimes)
def test_zero_shares_the_update(seed: int, regime: str) -> None:
    """With ZeRO each replica updates its part of the parameters, and then gathers the others'."""
    batch = points(seed, regime)
    whole, shared = Values(structure(zero=0), batch), Values(structure(zero=1), batch)
    for path in ("optimizer/adam", "optimizer/clip"):
        for what in ("flops", "bytes"):
            name = f"term/{path}/{what}"
            assert np.allclose(shared[name] * batch["dp"], whole[name], rtol=1e-12)
        assert np.all(shared[path] <= whole[path] * (1 + 1e-12))
    assert np.all((shared["parameters/gather"] > 0) == (batch["dp"] > 1))


@pytest.mark.parametrize(
    ("path", "degree", "stride"),
    [
        ("layer/mlp/reduce/forward", "tp", ()),
        ("gradients/reduce", "dp", ("tp",)),
        ("pipeline/send/forward", "pp", ("tp", "dp")),
    ],
)
@pytest.mark.parametrize("inside", [True, False])
@few
@given(seeds)
def test_groups_lie_where_their_ranks_are(
    path: str, degree: str, stride: tuple[str, ...], inside: bool, seed: int
) -> None:
    """Ranks are numbered by tensor, data, pipeline: a group inside a domain sends nothing out of it, others do."""
    batch = points(seed)
    batch[degree] = np.maximum(batch[degree], 2)
    below = np.prod([batch[name] for name in stride], axis=0)
    batch["scale_up_size"] = below * batch[degree] if inside else np.ones(4096) * below
    for figure, part in (("bandwidth", 0.01), ("efficiency", 1), ("latency", 1), ("half_bytes", 1)):
        batch[f"scale_out_{figure}"] = batch[f"scale_up_{figure}"] * part
    before = Values(structure(), batch)[path]
    after = Values(structure(), batch | {"scale_out_bandwidth": batch["scale_out_bandwidth"] / 100})[path]
    assert np.all((after == before) if inside else (after > before))
