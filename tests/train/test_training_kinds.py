"""The training step of every architecture: its products are those that are counted, and laws hold for all kinds."""

from __future__ import annotations

import csv
import dataclasses
from typing import Any

import pytest
from support.effort import some
from support.kind_cases import CLASSES, SYSTEM, all_terms, length_of, train, work
from support.paths import GOLDEN
from support.points import directions

import symperf as sf
from symperf.models.catalogue import BENCHMARKS, CATALOGUE
from symperf.models.model import Model

with (GOLDEN / "params.csv").open(encoding="utf-8", newline="") as _file:
    NAMES = [row["model"] for row in csv.DictReader(_file)]
RECURRENT = (
    *("mamba2-codestral-7b", "mamba-130m", "jamba-1.5-mini", "bamba-9b", "nemotron-h-8b", "qwen3-next-80b-a3b"),
    "kimi-linear-48b-a3b",
    *("xlstm-7b", "rwkv7-world-1.5b"),
)
ENCODERS = ("bert-base", "roberta-base", "vit-base-p16-224", "t5-base", "bart-large", "flan-t5-large")
OTHERS = ("gemma-3-1b", "gemma-4-26b-a4b", "gpt-oss-20b", "llama-4-scout", "deepseek-v2-lite", "qwen1.5-moe-a2.7b")


def load(name: str) -> sf.Model:
    """A model of the catalogue, or one of the golden configurations."""
    own = GOLDEN / "configs" / f"{name}.json"
    return sf.Model.load(own if own.exists() else name)


@pytest.mark.parametrize("name", some(NAMES, 0.4))
def test_the_step_has_the_products_that_are_counted(name: str) -> None:
    """Class by class, with attention that computes every pair; the scan apart, whose fused kernel computes less."""
    model = load(name)
    run = train(model, batch=4, micro_batch=2, attention="eager", dropout=False)
    counted = sf.inspect(model, batch=4, sequence=length_of(model, 512))
    expected = {n: float(f) for n, f in counted["flops_forward"].items() if f and n not in ("total", "ssm")}
    found = work(run)
    scan = found.pop("ssm_scan", None)
    if counted["flops_ssm"]:
        expected["ssm_projections"] = float(counted["flops_ssm"]["projections"])
        assert scan is not None
    assert found == pytest.approx(expected, rel=1e-12)
    modules = sum(work(run, modules=True).values())
    assert (modules > 0) == model.architecture.multi_token_head
    assert run.value("model_flops") == pytest.approx(3 * (counted["flops_forward"]["total"] + modules), rel=1e-12)
    assert run.value("parameters") == counted["parameters"]["vision" if model.architecture.patches else "language"]


@pytest.mark.parametrize("name", some(NAMES))
def test_a_backward_pass_has_two_products_for_each_of_the_forward_pass(name: str) -> None:
    """Gradients of inputs and of weights, of both factors of scores and context; images need none of the first."""
    run = train(load(name), batch=4, micro_batch=2, attention="eager", dropout=False)
    phases = [f"backward_{phase}" for phase in ("input", "weight", "scores", "values", "queries", "keys")]
    for modules in (False, True):
        forward = work(run, modules=modules)
        forward.pop("ssm_scan", None)
        each = [work(run, phase, modules=modules) for phase in phases]
        found = {name: sum(one.get(name, 0.0) for one in each) for name in CLASSES}
        for name, flops in forward.items():
            assert found[name] == pytest.approx((1 if name == "patch_embedding" else 2) * flops, rel=1e-12), name


@pytest.mark.parametrize("name", some([*CATALOGUE.names(), *BENCHMARKS.names()], 0.3))
def test_every_model_of_the_catalogue_trains(name: str) -> None:
    """On one device, with finite and positive numbers in every term."""
    model = Model.load(name)
    run = train(model, sequence=256)
    assert 0 < run.value("time") < 1e9
    assert run.value("memory") > 0
    rows = run.table()
    assert sum(row.time_s for row in rows) == pytest.approx(run.value("time"), rel=1e-9)
    for path in all_terms(run):
        flops, moved = run.value(f"term/{path}/flops"), run.value(f"term/{path}/bytes")
        assert flops >= 0 <= moved
        assert run.value(path) > 0 or not moved, path
    assert all(value >= 0 for value in run.memory_terms().values())


@pytest.mark.parametrize("name", [*RECURRENT, *ENCODERS, *OTHERS])
def test_one_device_holds_all_parameters(name: str) -> None:
    """Weights take as many bytes as the model has parameters."""
    run = train(name)
    terms = run.memory_terms()
    held = sum(value for term, value in terms.items() if term.startswith("weights/"))
    assert held == pytest.approx(2 * run.value("parameters"), rel=1e-12)


SHARDED = {
    "mamba2-codestral-7b": (2, 8),
    "mamba-130m": (2, 4),
    "jamba-1.5-mini": (2, 4, 8),
    "nemotron-h-8b": (2, 8),
    "qwen3-next-80b-a3b": (2,),
    "gemma-3-27b": (2, 4, 8),
    "gemma-4-26b-a4b": (2,),
    "gpt-oss-20b": (2, 8),
    "bert-base": (2, 4),
    "t5-base": (2, 4),
    "bart-large": (2, 8),
}


@pytest.mark.parametrize(("name", "tp"), [(name, tp) for name, degrees in SHARDED.items() for tp in degrees])
def test_tensor_parallelism_conserves_work(name: str, tp: int) -> None:
    """All devices together do the products of one."""
    whole = work(train(name, attention="eager", dropout=False))
    split = work(train(name, attention="eager", dropout=False, tp=tp, sequence_parallel=True))
    vocabulary = sf.Model.load(name).sizes["vocab_size"]
    for kind, flops in whole.items():
        scale = -(-vocabulary // tp) * tp / vocabulary if kind == "lm_head" else 1
        assert tp * split[kind] == pytest.approx(scale * flops, rel=1e-12), kind


@pytest.mark.parametrize("name", [*RECURRENT, "gemma-3-1b", "gpt-oss-20b", "t5-base", "bart-large", "bert-base"])
def test_cost_rises_with_tokens_layers_and_width(name: str) -> None:
    """Time and memory, whatever the layers are."""
    model = sf.Model.load(name)
    hidden = {**model.sizes, "hidden_size": 2 * model.sizes["hidden_size"]}
    layers = {kind.count: 2 * model.sizes[kind.count] for kind in model.architecture.kinds}
    deep = {**model.sizes, **layers, "num_layers": 2 * model.sizes["num_layers"]}
    base = train(model, sequence=256)
    more = [train(dataclasses.replace(model, sizes=sizes), sequence=256) for sizes in (hidden, deep)]
    for run in (train(model, sequence=512), *more):
        assert run.value("time") > base.value("time")
        assert run.value("memory") > base.value("memory")


# Identities ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["mistral-7b-v0.1", "gemma-3-1b", "gpt-oss-20b", "llama-4-scout"])
def test_a_window_of_the_whole_sequence_is_full_attention(name: str) -> None:
    """Time and memory do not change when a window or chunk holds every key; a narrower one is faster."""
    model = sf.Model.load(name)
    at = [
        train(dataclasses.replace(model, sizes={**model.sizes, "sliding_window": window}), sequence=4096)
        for window in (512, 4096, 10**6)
    ]
    full = [
        dataclasses.replace(kind, mixer="attention") if kind.mixer == "local_attention" else kind
        for kind in model.architecture.kinds
    ]
    without = dataclasses.replace(
        model, architecture=dataclasses.replace(model.architecture, kinds=tuple(full)), sliding_window=None
    )
    assert at[1].value("time") == pytest.approx(train(without, sequence=4096).value("time"), rel=1e-12)
    assert at[1].value("time") == pytest.approx(at[2].value("time"), rel=1e-12)
    assert at[0].value("time") < at[1].value("time")
    assert at[0].value("memory") == at[1].value("memory")
    assert not any("not modelled" in warning for run in at for warning in (*run.warnings, *run.model.warnings))


def test_eager_attention_computes_pairs_outside_of_the_window_too() -> None:
    """Its time does not depend on the window, and it says so."""
    model = sf.Model.load("mistral-7b-v0.1")
    narrow = dataclasses.replace(model, sizes={**model.sizes, "sliding_window": 16})
    runs = [train(each, sequence=8192, attention="eager") for each in (model, narrow)]
    assert runs[0].value("time") == runs[1].value("time")
    assert any("eager attention computes all pairs" in warning for warning in runs[0].warnings)


@pytest.mark.parametrize("name", ["bamba-9b", "nemotron-h-8b", "jamba-1.5-mini", "qwen3-next-80b-a3b"])
def test_a_hybrid_without_recurrent_layers_is_a_transformer(name: str) -> None:
    """What is left has the time of a model of those kinds alone."""
    model = sf.Model.load(name)
    gone = {kind.count: 0 for kind in model.architecture.kinds if kind.mixer in ("ssm", "ssm1", "linear_attention")}
    left = tuple(kind for kind in model.architecture.kinds if kind.count not in gone)
    sizes = {**model.sizes, **gone, "num_layers": sum(model.sizes[kind.count] for kind in left)}
    emptied = train(dataclasses.replace(model, sizes=sizes))
    plain = dataclasses.replace(model, sizes=sizes, architecture=dataclasses.replace(model.architecture, kinds=left))
    assert emptied.value("time") == pytest.approx(train(plain).value("time"), rel=1e-12)


def test_an_encoder_as_long_as_its_decoder_is_the_default() -> None:
    """And a longer one costs more."""
    default, same, longer = (
        train("t5-base", values=values) for values in ({}, {"encoder_sequence": 512}, {"encoder_sequence": 1024})
    )
    assert default.value("time") == same.value("time") < longer.value("time")
    assert default.bound["encoder_sequence"] == (512.0, "as the decoder's sequence")
    assert longer.bind(encoder_sequence=512).value("time") == same.value("time")


@pytest.mark.parametrize("name", some([*RECURRENT, "t5-base", "bart-large", "bert-base", "gemma-3-1b"]))
def test_recomputation_trades_memory_for_time(name: str) -> None:
    """Full recomputation keeps less and takes longer, by less than another forward pass of everything."""
    none, full = train(name), train(name, recompute="full")
    assert full.memory_terms()["activations"] < none.memory_terms()["activations"]
    assert none.value("time") < full.value("time") < 1.6 * none.value("time")
    again = {path for path in all_terms(full) if path.endswith("/recompute")}
    forward = {path for path in all_terms(full) if path.startswith("layer") and path.endswith("/forward")}
    assert {path.removesuffix("/recompute") for path in again} >= {path.removesuffix("/forward") for path in forward}


@pytest.mark.parametrize("name", some(["nemotron-h-8b", "jamba-1.5-mini", "mamba2-codestral-7b"], 0.67))
@pytest.mark.parametrize("plan", [{"pp": 2, "dp": 2}, {"pp": 2, "uneven_stages": True}, {"zero": 3, "dp": 4}])
def test_recurrent_layers_go_with_other_parallelism(name: str, plan: dict[str, Any]) -> None:
    """Pipelines and sharded state know nothing of the mixer."""
    run = train(name, batch=16, recompute="full", **plan)
    assert 0 < run.value("mfu") < 1
    assert SYSTEM.name in repr(run)


@pytest.mark.parametrize("name", some([*RECURRENT, *ENCODERS, *OTHERS], 0.4))
def test_a_step_never_slows_where_a_rate_rises(name: str) -> None:
    """The fold proves it of the closed form: rates and bandwidths are decreasing, latencies and tokens increasing."""
    plan: dict[str, Any] = {"dp": 2} if name in (*ENCODERS, "deepseek-v2-lite") else {"pp": 2, "dp": 2}
    found = directions(train(name, batch=16, **plan).structure)
    for symbol in ("matrix_rate", "memory_bandwidth", "vector_rate", "scale_up_bandwidth"):
        assert found[symbol] == -1, symbol
    for symbol in ("launch_latency", "hidden_size"):
        assert found[symbol] == 1, symbol


def test_selective_recomputation_repeats_both_cores_of_a_decoder() -> None:
    """HFU counts the scores of self-attention and of attention to the encoder once more."""
    run = train("t5-base", recompute="selective", dropout=False)
    scores = sum(work(run)[name] for name in ("attention_scores", "cross_attention_scores"))
    assert run.value("hardware_flops") - run.value("model_flops") == pytest.approx(scores, rel=1e-9)
    again = work(run, "recompute")
    assert sum(again.values()) == pytest.approx(scores, rel=1e-12)
