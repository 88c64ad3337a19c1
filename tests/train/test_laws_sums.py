"""Parts add up: work and parameters over devices, terms and shares of resources over the step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.law_cases import each_structure, few, is_product, memory_of, points_of, predict, regimes, some
from support.points import ARCHITECTURES, REGIMES, STRUCTURES, Values, points, structure
from support.strategies import seeds

from symperf.codegen.interpret import adjoints, arrays

if TYPE_CHECKING:
    from collections.abc import Callable


def _layer_flops(values: Values, keep: Callable[[str], bool]) -> Any:
    paths = values.operations(keep)
    return values["devices"] * sum(values[f"term/{p}/count"] * values[f"term/{p}/flops"] for p in paths)


@given(seeds, st.sampled_from(["none", "selective", "full"]), st.sampled_from(["gpt3-175b", "llama-2-7b", "falcon-7b"]))
@few
def test_work_is_conserved(seed: int, recompute: Any, model: str) -> None:
    """Split over any degrees that divide it, the work of the layers is the model's, recomputation included."""
    split = Values(structure(model, recompute=recompute), points(seed))
    whole = split.batch | {name: np.ones_like(split.batch[name]) for name in ("tp", "pp", "dp", "vpp")}
    alone = Values(structure(model, recompute=recompute), whole)
    assert np.allclose(_layer_flops(split, is_product), _layer_flops(alone, is_product), rtol=1e-12)
    b = split.batch
    head = 6 * b["batch"] * b["sequence"] * b["hidden_size"] * b["vocab_size"]
    assert np.allclose(_layer_flops(split, is_product), split["hardware_flops"] - head, rtol=1e-11)


def _of_a_layer(path: str) -> bool:
    return path.startswith("layer/")


@given(seeds)
@few
def test_element_wise_work_is_conserved_under_sequence_parallelism(seed: int) -> None:
    """With sequence parallelism nothing is done twice; without it norms, dropouts and residuals are."""
    of = structure(sequence_parallel=True)
    split = Values(of, points(seed))
    alone = Values(of, split.batch | {name: np.ones_like(split.batch["tp"]) for name in ("tp", "pp", "dp")})
    assert np.allclose(_layer_flops(split, _of_a_layer), _layer_flops(alone, _of_a_layer), rtol=1e-12)
    replicated = Values(structure(), split.batch)
    excess = _layer_flops(replicated, _of_a_layer) - _layer_flops(alone, _of_a_layer)
    assert np.all((excess > 0) == (split.batch["tp"] > 1))


@given(st.sampled_from(sorted(ARCHITECTURES)), seeds)
def test_parameters_are_conserved(model: str, seed: int) -> None:
    """The shards of the layers' weights add up to the whole, and to one more copy a shard of what is replicated."""
    a = ARCHITECTURES[model]
    of = structure(model)
    b = points(seed)
    values, whole = memory_of(of, b), memory_of(of, b | {"tp": np.ones(4096), "pp": np.ones(4096)})["weights/layers"]
    norms = a.block_norms * b["hidden_size"] * (2 if a.norm_bias else 1)
    if a.query_key_norm == "per_head":
        norms = norms + 2 * b["head_dim"]
    biases = b["hidden_size"] * (a.attention_output_bias + a.mlp_bias)
    replicated = (b["tp"] - 1) * b["num_layers"] * (norms + biases) * b["weight_bytes"]
    shards = b["tp"] * b["pp"] * values["weights/layers"]
    assert np.allclose(shards, whole + replicated, rtol=1e-12)
    assert np.allclose(values["gradients/layers"] / b["gradient_bytes"], values["weights/layers"] / b["weight_bytes"])


@each_structure
def test_shares_of_resources_sum_to_one(name: str) -> None:
    """Euler's theorem at 100,000 points over all structures and regimes: each share is in [0, 1], the sum is 1."""
    checked = 0
    for seed, regime in enumerate(REGIMES):
        values = Values(STRUCTURES[name], points_of(name, seed, regime, size=2048))
        program, slopes = values.compiled.program, values.slopes()
        total: Any = 0.0
        shares: dict[str, Any] = {}
        for symbol, resource in values.compiled.resources.items():
            at = program.inputs[symbol]
            if at in slopes:
                sign = 1 if symbol.endswith("_latency") else -1
                part = sign * slopes[at] * values.all[at] / values["time"]
                assert np.all(part >= 0), symbol
                shares[resource] = shares.get(resource, 0.0) + part
        for resource, share in shares.items():
            assert np.all(share <= 1 + 1e-12), resource
            total = total + share
        assert np.max(np.abs(total - 1)) < 1e-12, regime
        checked += np.size(total)
    assert checked * len(STRUCTURES) > 100_000


@given(some, seeds, regimes)
@few
def test_terms_sum_to_the_step(name: str, seed: int, regime: str) -> None:
    """Time times derivative of each term adds up to the step time, at every point."""
    values = Values(STRUCTURES[name], points_of(name, seed, regime, size=512))
    program = values.compiled.program
    idle = {program.lets[term.path] for term in values.compiled.terms if term.idle}
    slopes = adjoints(program, values.all, program.outputs["time"], arrays(), stop=idle)
    total = sum(values.all[program.lets[t.path]] * slopes.get(program.lets[t.path], 0.0) for t in values.compiled.terms)
    assert np.max(np.abs(total / values["time"] - 1)) < 1e-12


CASES = [
    ("gpt3-175b", 64, {"tp": 8, "pp": 8, "vpp": 3, "recompute": "selective", "sequence_parallel": True}),
    ("gpt-22b", 4, {"tp": 8, "micro_batch": 4}),
    ("llama-2-70b", 512, {"tp": 8, "pp": 4, "dp": 16, "zero": 1, "overlap_dp": 1.0}),
    ("gemma-2-9b", 32, {"dp": 8, "recompute": "full"}),
    ("falcon-7b", 1, {}),
]


@pytest.mark.parametrize(("model", "batch", "plan"), CASES, ids=[case[0] for case in CASES])
def test_the_table_adds_up(model: str, batch: int, plan: dict[str, Any]) -> None:
    """The seconds of the breakdown are the step time to 1e-12, its shares sum to 1, its terms are the step's."""
    run = predict(model, batch, **plan)
    table = run.table()
    assert sum(row.time_s for row in table) == pytest.approx(run.value("time"), rel=1e-12)
    assert sum(row.share for row in table) == pytest.approx(1, rel=1e-12)
    assert all(row.time_s >= 0 and row.each_s >= 0 for row in table)
    assert sum(run.shares().values()) == pytest.approx(1, rel=1e-12)
