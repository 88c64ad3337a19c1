"""Memory: what ZeRO, recomputation and the schedule save."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from support.law_cases import memory_of
from support.points import ARCHITECTURES, points
from support.strategies import seeds, structures

if TYPE_CHECKING:
    from symperf.plans.structure import Structure


@given(st.sampled_from(sorted(ARCHITECTURES)), seeds, structures)
def test_zero_never_needs_more_memory(model: str, seed: int, other: Structure) -> None:
    """Sharding the optimizer's state saves memory, and all of it by the number of replicas."""
    batch = points(seed, size=256)
    plain, sharded = (dataclasses.replace(other, architecture=ARCHITECTURES[model], zero=zero) for zero in (0, 1))
    before, after = memory_of(plain, batch), memory_of(sharded, batch)
    assert np.all(after["total"] <= before["total"] * (1 + 1e-15))
    for part in ("optimizer/layers", "optimizer/ends"):
        assert np.allclose(after[part] * batch["dp"], before[part], rtol=1e-12)
    assert np.array_equal(after["activations"], before["activations"])


@given(st.sampled_from(sorted(ARCHITECTURES)), seeds, structures)
def test_recomputation_saves_memory(model: str, seed: int, other: Structure) -> None:
    """Selective never keeps more than none, and full never more than selective and the input of a layer.

    A layer that is computed again is counted whole beside what is kept, its input: on a stage of one layer that is all.
    """
    batch = points(seed, size=256)
    layer_input = batch["activation_bytes"] * batch["sequence"] * batch["micro_batch"] * batch["hidden_size"]
    none, selective, full = (
        memory_of(dataclasses.replace(other, architecture=ARCHITECTURES[model], recompute=mode), batch)["activations"]
        for mode in ("none", "selective", "full")
    )
    assert np.all(selective <= none * (1 + 1e-12))
    assert np.all(full <= (selective + layer_input) * (1 + 1e-12))


@given(seeds, structures)
def test_fewer_in_flight_need_less_memory(seed: int, other: Structure) -> None:
    """GPipe holds every micro-batch, 1F1B at most the stages, interleaving a little more than 1F1B."""
    batch = points(seed, size=256, interleaved=True)
    gpipe, one, interleaved = (
        memory_of(dataclasses.replace(other, schedule=schedule), batch)["total"]
        for schedule in ("gpipe", "1f1b", "interleaved")
    )
    assert np.all(one <= interleaved * (1 + 1e-15))
    assert np.all(interleaved <= gpipe * (1 + 1e-15))
