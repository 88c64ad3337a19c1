"""Memory by stage, proofs of the options of training's state, and what cannot be combined."""

from __future__ import annotations

from typing import Any

import pytest
import sympy
from support.state_cases import HOST, LLAMA_7B, make, number

from symperf.common.errors import InputError
from symperf.formulas.language.discipline import judge
from symperf.formulas.language.symbols import SYMBOLS
from symperf.operations.schedule import closed_form
from symperf.train.memory.footprint import footprint, stage_footprint
from symperf.train.memory.matrices import layer_matrices
from symperf.train.step.step import TrainingStep

# Memory by stage ----------------------------------------------------------------------------------------------------

STAGED: dict[str, dict[str, Any]] = {
    "1f1b": {},
    "gpipe": {"schedule": "gpipe"},
    "interleaved": {"vpp": 2},
    "zero-bubble": {"schedule": "zero-bubble"},
    "zb-h2": {"schedule": "zb-h2"},
    "dualpipe": {"schedule": "dualpipe", "batch": 128},
    "sharded": {"dp": 4, "zero": 1},
    "recomputed": {"recompute": "full", "recompute_layers": 3},
    "muon": {"optimizer": "muon"},
    "fp8": {"precision": "fp8"},
    "offloaded": {"offload": "activations,weights", "host_bandwidth": 64e9},
}


@pytest.mark.parametrize("name", STAGED)
def test_the_fullest_stage_is_the_footprint(name: str) -> None:
    """To the bytes of the state of a norm, by which the two ends differ; never below."""
    run = make(pp=4, **STAGED[name])
    fullest = max(row["total"] for row in run.stage_memory())
    assert run.value("memory") >= fullest * (1 - 1e-12)
    assert run.value("memory") - fullest <= 20 * 4096


def test_the_fullest_stage_of_a_tied_model_is_the_footprint_to_the_byte() -> None:
    """Where the same stage has the larger end and the most activations, nothing is left."""
    run = make("gpt3-175b", tp=8, pp=8)
    assert run.value("memory") == pytest.approx(max(row["total"] for row in run.stage_memory()), rel=1e-12)


@pytest.mark.parametrize("plan", [{"uneven_stages": True}, {"first_stage_layers": 6, "last_stage_layers": 6}], ids=str)
def test_unequal_stages_add_up(plan: dict[str, Any]) -> None:
    """Layers of all stages are those of the model, and the footprint is no less than any stage."""
    run = make(pp=6 if plan.get("uneven_stages") else 4, batch=48, **plan)
    rows = run.stage_memory()
    assert sum(row["layers"] for row in rows) == 32
    assert max(row["total"] for row in rows) <= run.value("memory") <= 1.1 * max(row["total"] for row in rows)


def test_in_flight_falls_from_stage_to_stage() -> None:
    """1F1B: p, p - 1, ..., 1; interleaved by 2 / v a stage; one value everywhere under the others."""
    assert [row["in_flight"] for row in make(pp=4).stage_memory()] == [4, 3, 2, 1]
    assert [row["in_flight"] for row in make(pp=4, vpp=2).stage_memory()] == [5.5, 4.5, 3.5, 2.5]
    assert {row["in_flight"] for row in make(pp=4, schedule="gpipe").stage_memory()} == {64}


def test_state_of_all_stages_is_the_models() -> None:
    """Summed over stages, weights are those of the model: none lost, none twice."""
    rows = make(pp=4).stage_memory()
    found = sum(row["weights/layers"] + row["weights/ends"] for row in rows)
    assert found == pytest.approx(2 * LLAMA_7B, rel=1e-12)


# Proofs, faults, refusals -------------------------------------------------------------------------------------------

OPTIONS: dict[str, dict[str, Any]] = {
    "adam-8bit": {"optimizer": "adam-8bit"},
    "adafactor": {"optimizer": "adafactor"},
    "sgd": {"optimizer": "sgd-momentum"},
    "muon": {"optimizer": "muon", "zero": 1, "dp": 2},
    "fp8": {"precision": "fp8"},
    "layers": {"recompute": "full", "recompute_layers": 3},
    "offload": {"offload": "activations,optimizer,weights", **HOST},
}


@pytest.mark.parametrize("name", OPTIONS)
def test_memory_and_time_are_proved(name: str) -> None:
    """Memory never falls with a format's bytes, time never rises with a rate nor falls with a latency."""
    of = make(pp=4, **OPTIONS[name]).structure
    formats = {entry.symbol for entry in SYMBOLS.values() if entry.group == "format"}
    for path, expr in footprint(of).items():
        ways = judge(sympy.sympify(expr)).directions
        assert all(way == 1 for symbol, way in ways.items() if symbol in formats), path
    ways = judge(closed_form(TrainingStep(of).tree())).directions
    for symbol, way in ways.items():
        entry = SYMBOLS[str(symbol)]
        if entry.resource is not None:
            assert way == (1 if entry.name.endswith("_latency") else -1), entry.name


@pytest.mark.parametrize("name", OPTIONS)
def test_the_breakdown_sums_to_the_step(name: str) -> None:
    """Rows sum to the time, shares of resources to one."""
    run = make(pp=4, **OPTIONS[name])
    assert sum(row.time_s for row in run.table()) == pytest.approx(run.value("time"), rel=1e-12)
    assert sum(run.shares().values()) == pytest.approx(1, rel=1e-12)


def test_gradients_that_are_sharded_are_reset_by_their_shard() -> None:
    """From ZeRO-2 on a device has a shard of the accumulator, and resets no more."""
    one, two = (make(dp=8, zero=zero) for zero in (1, 2))
    sizes = {row.name: row.bytes for run in (one, two) for row in [r for r in run.table() if r.name.endswith("reset")]}
    rows = [next(row for row in run.table() if row.name == "optimizer/reset") for run in (one, two)]
    assert sizes
    assert rows[1].bytes == pytest.approx(rows[0].bytes / 8, rel=1e-12)


def test_what_is_not_sharded_is_not_gathered() -> None:
    """ZeRO-3 gathers nothing of experts with one replica."""
    run = make("mixtral-8x7b", dp=8, ep=8, zero=3)
    dense = sum(
        number(run, m.elements)
        for m in layer_matrices(run.model.architecture, run.model.architecture.kinds[0])
        if not m.routed
    )
    gathered = run.memory_terms()["workspace/gathered"]
    assert dense * 2 * 6 <= gathered <= 1.001 * dense * 2 * 6


def test_fragmentation_and_frameworks_are_named() -> None:
    """What is reserved: a part of the activations, bytes of driver and libraries, and of each communicator."""
    plain = make(fragmentation=0, context_bytes=0, collective_buffer_bytes=0, library_bytes=0, tp=2, pp=2)
    run = plain.bind(fragmentation=0.1, context_bytes=5e8, collective_buffer_bytes=1e9, library_bytes=1e8)
    assert run.value("memory") == plain.value("memory") == plain.value("reserved")
    more = 0.1 * plain.memory_terms()["activations"] + 5e8 + 1e8 + 2 * 1e9
    assert run.value("reserved") == pytest.approx(plain.value("memory") + more, rel=1e-12)
    assert run.needed_alone() == pytest.approx(run.needed_bytes, rel=1e-12)


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"optimizer": "muno"}, "optimizer: found 'muno', expected adam or .*did you mean muon"),
        ({"optimizer": None}, "optimizer: found None, expected adam or"),
        ({"offload": "weigts"}, "offload: found 'weigts', expected activations or .*did you mean weights"),
        ({"offload": 3}, "offload: found 3, expected activations"),
        ({"offload": "none,weights"}, "offload: found 'none,weights'"),
        ({"recompute_layers": 0}, "recompute_layers: found 0, expected a whole number from 1"),
        ({"recompute_layers": 2}, "recompute_layers: counts layers of full recomputation, found recompute = none"),
        (
            {"recompute": "full", "recompute_layers": 9, "pp": 4},
            "recompute_layers: 9 of each stage, but llama-2-7b has",
        ),
        (
            {"recompute": "full", "recompute_layers": 7, "pp": 4, "first_stage_layers": 6, "last_stage_layers": 6},
            "recompute_layers: 7 of each stage",
        ),
        ({"optimizer": "adafactor", "zero": 1}, "optimizer: adafactor keeps sums over rows and columns"),
        ({"optimizer": "muon", "offload": "optimizer"}, "offload: the host updates with Adam only"),
        (
            {"offload": "activations", "first_stage_layers": 6, "last_stage_layers": 6, "pp": 4},
            "offload: activations and first_stage_layers do not go together",
        ),
        ({"offload": "weights", "schedule": "zero-bubble", "pp": 4}, "offload: weights do not go with schedule zero-b"),
        ({"offload": "weights", "system": "tpu-v5p"}, "offload: system tpu-v5p describes no link to its host"),
        (
            {"offload": "optimizer", "system": "b200-sxm"},
            "offload: system b200-sxm describes no bandwidth of its host's memory",
        ),
        ({"model": "t5-base", "optimizer": "muon"}, "optimizer: muon needs the matrices of every layer"),
        ({"model": "t5-base", "precision": "fp8"}, "precision: fp8 needs the matrices of every layer"),
        ({"moment_bytes": 0}, "set: moment_bytes: found 0"),
        ({"fragmentation": 1.5}, "set: fragmentation: found 1.5"),
        ({"offloaded_weights": -0.1}, "set: offloaded_weights: found -0.1"),
        ({"precision": "int8"}, "precision: found 'int8', expected bf16 or fp16 or fp8 or fp4"),
    ],
    ids=lambda value: str(value)[:60],
)
def test_what_cannot_be_has_its_own_sentence(choices: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make(**choices)


def test_sharded_weights_with_interleaved_stages_are_warned_of() -> None:
    """No framework runs it, but nothing in the physics forbids it."""
    run = make(pp=4, vpp=2, dp=2, zero=3)
    assert any("zero = 3 with interleaved stages" in text for text in run.warnings)


def test_stage_forms_are_closed_in_the_number_of_the_stage() -> None:
    """One expression serves every stage."""
    run = make(pp=4)
    forms = stage_footprint(run.structure)
    assert any(sympy.sympify(form).has(SYMBOLS["stage_number"].symbol) for form in forms.values())
    assert set(run.stage_memory_forms()) == {*forms, "total", "reserved", "logits", "layers", "in_flight"}
