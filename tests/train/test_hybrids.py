"""Training of layers with mixers side by side, of lightning attention and gated linear recurrent units; and in FP8."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
from support.kind_cases import CLASSES, all_terms, train, work
from support.paths import GOLDEN_2026

import symperf as sf
from symperf.models.model import make_model
from symperf.operations.schedule import Op, terms
from symperf.train.memory.device_share import fullest_share
from symperf.train.memory.matrices import held_matrices
from symperf.train.step.low_precision import is_low

HYBRIDS = ("default-minimax", "default-olmo_hybrid", "default-recurrent_gemma", "default-zamba2", "falcon-h1-34b")


def load(name: str) -> sf.Model:
    """A golden model, or one of the catalogue."""
    own = GOLDEN_2026 / "configs" / f"{name}.json"
    return sf.Model.load(own if own.exists() else name)


def run_of(name: str, **how: Any) -> sf.Run:
    """A step with attention that computes every pair, so that products are those that are counted."""
    return train(load(name), **{"batch": 4, "micro_batch": 2, "attention": "eager", "dropout": False, **how})


@pytest.mark.parametrize("name", HYBRIDS)
def test_the_step_has_the_products_that_are_counted(name: str) -> None:
    """Class by class, forward, and twice of them backward; weights are those of the model."""
    run = run_of(name)
    counted = sf.inspect(load(name), batch=4, sequence=512)
    expected = {n: float(f) for n, f in counted["flops_forward"].items() if f and n not in ("total", "ssm")}
    expected["ssm_projections"] = float(counted["flops_ssm"]["projections"])
    found = work(run)
    found.pop("ssm_scan", None)
    assert found == pytest.approx(expected, rel=1e-12)
    phases = [f"backward_{phase}" for phase in ("input", "weight", "scores", "values", "queries", "keys")]
    back = [work(run, phase) for phase in phases]
    for kind, flops in found.items():
        assert sum(each.get(kind, 0.0) for each in back) == pytest.approx(2 * flops, rel=1e-12), kind
    assert run.value("parameters") == counted["parameters"]["total"]
    held = sum(value for term, value in run.memory_terms().items() if term.startswith("weights/"))
    assert held == 2 * counted["parameters"]["total"]


@pytest.mark.parametrize(
    ("name", "tp"), [("default-minimax", 4), ("default-olmo_hybrid", 2), ("default-recurrent_gemma", 5),
                     ("falcon-h1-34b", 2)]
)  # fmt: skip
def test_tensor_parallelism_conserves_work(name: str, tp: int) -> None:
    whole, split = work(run_of(name)), work(run_of(name, tp=tp, sequence_parallel=tp != 5))
    for kind, flops in whole.items():
        assert tp * split[kind] == pytest.approx(flops, rel=1e-12), kind


def test_mixers_side_by_side_share_a_norm_and_an_addition() -> None:
    """Each gathers and sums for itself, as in vLLM and Megatron-LM; their results and gradients are added."""
    run = run_of("falcon-h1-34b", tp=2, sequence_parallel=True)
    paths = set(all_terms(run))
    for part in ("gather/forward", "reduce/forward", "output/forward", "gather/backward", "in/backward_weight"):
        names = ("ssm",) if part.startswith("in/") else ("attention", "ssm")
        assert {f"layer/{name}/{part}" for name in names} <= paths, part
    assert {f"layer/ssm/sum/{phase}" for phase in ("forward", "backward")} <= paths
    for shared in ("norm/forward", "norm/backward", "residual/forward"):
        assert f"layer/attention/{shared}" in paths
        assert f"layer/ssm/{shared}" not in paths


def test_what_a_layer_with_two_mixers_keeps() -> None:
    """By hand, for the backward pass of one micro-batch of one layer, in bytes a token.

    Inputs of two norms, of the MLP and of each mixer; queries, keys, values, the result and statistics of attention;
    what mamba_ssm keeps; and gate, activated gate, up and product of the MLP.
    """
    model = load("falcon-h1-34b")
    shallow = [train(_with_layers(model, n), sequence=2048, batch=1, attention="flash") for n in (1, 2)]
    kept = [run.memory_terms()["activations"] for run in shallow]
    h, f, heads, kv, inner, shared = 5120, 21504, 20 * 128, 4 * 128, 4096, 2 * 2 * 256
    attention = 2 * (heads + 2 * kv + heads) + 4 * 20
    mamba = 2 * (2 * inner + shared + 32 + 2 * inner)
    assert kept[1] - kept[0] == 2048 * (2 * (2 + 1 + 2) * h + attention + mamba + 2 * 4 * f)


def _with_layers(model: sf.Model, count: int) -> sf.Model:
    return dataclasses.replace(model, sizes={**model.sizes, "num_layers": count}, layers=((0, count),))


# In FP8 ---------------------------------------------------------------------------------------------------------------


LOW = {
    "bamba-9b": {"ssm/in", "ssm/output"},
    "default-minimax": {f"lightning_attention/{end}" for end in ("in", "gate_in", "output")},
    "default-recurrent_gemma": {"gated_lru/in", "gated_lru/output"},
    "falcon-h1-34b": {"ssm/in", "ssm/output"},
    "jamba-1.5-mini": {"ssm/in", "ssm/output"},
    "lfm2-8b-a1b": {"short_convolution/in", "short_convolution/output"},
    "qwen3-next-80b-a3b": {"linear_attention/in", "linear_attention/output"},
}


@pytest.mark.parametrize("name", sorted(LOW))
def test_projections_of_recurrent_layers_run_in_fp8(name: str) -> None:
    """Scans, convolutions and what they read stay as they are; copies are of the matrices of all products in FP8."""
    model = load(name)
    run = train(model, precision="fp8")
    named = {path: leaf for path, leaf in terms(run.schedule_tree()).items() if isinstance(leaf, Op)}
    low = {path for path, leaf in named.items() if is_low(leaf)}
    recurrent = {"/".join(path.split("/")[-3:-1]) for path in low}
    mixers = ("ssm", "linear_attention", "lightning_attention", "gated_lru", "short_convolution")
    assert {path for path in recurrent if path.startswith(mixers)} == LOW[name]
    half = train(model)
    scans = [path for path in named if path.endswith("/scan/forward")]
    for path in scans:
        assert run.value(path) == half.value(path)
    held = held_matrices(run.structure, fullest_share(run.structure).layers_of)
    weights = sum(float(_number(run, held.linear(routed=routed))) for routed in (False, True))
    copies = sum(value for term, value in run.memory_terms().items() if term.endswith("copies"))
    assert copies == pytest.approx(2 * weights, rel=1e-12)
    forward = [path for path in low if path.endswith("/forward")]
    tokens = run.bound["micro_batch"][0] * 512
    flops = sum(run.value(f"term/{p}/flops") * run.value(f"term/{p}/count") for p in forward if "/experts/" not in p)
    dense = float(_number(run, held.linear(routed=False)))
    assert flops == pytest.approx(2 * dense * tokens * run.value("term/head/norm/forward/count"), rel=1e-12)
    assert run.value("time") < half.value("time")


def _number(run: sf.Run, form: Any) -> Any:
    return form.xreplace({symbol: run.bound[symbol.name][0] for symbol in form.free_symbols})


@pytest.mark.parametrize("name", ["default-minimax", "default-recurrent_gemma", "falcon-h1-34b", "mamba-130m"])
@pytest.mark.parametrize("optimizer", ["adafactor", "muon"])
def test_optimizers_of_matrices_take_recurrent_layers(name: str, optimizer: str) -> None:
    """No more state than Adam's; every parameter is in a matrix or among the vectors."""
    adam, other = (train(load(name), optimizer=each) for each in ("adam", optimizer))
    state = [sum(v for term, v in run.memory_terms().items() if term.startswith("optimizer/")) for run in (adam, other)]
    assert 0 < state[1] < state[0]
    held = held_matrices(other.structure, fullest_share(other.structure).layers_of)
    parts = [held.elements(routed=False), held.elements(routed=True), held.vectors, held.expert_vectors]
    numbers = [float(_number(other, form)) for form in parts]
    assert min(numbers) >= 0
    ends = adam.memory_terms()["weights/ends"] / 2
    assert sum(numbers) + ends == other.value("parameters")


SHARED = {"mamba_ngroups": 2, "use_shared_attention_adapter": True, "num_mem_blocks": 2, "use_mem_rope": True}
"""Zamba2 with adapters of attention, and two blocks that take turns."""


@pytest.mark.parametrize("tp", [1, 2])
def test_shared_blocks_are_held_once_and_run_at_every_use(tp: int) -> None:
    """Weights of two blocks and of nine uses' own; products of nine uses; gradients of the embedding of each."""
    data = json.loads((GOLDEN_2026 / "configs" / "default-zamba2.json").read_text(encoding="utf-8"))
    model = make_model("zamba2", "test", {**data, **SHARED}, "zamba2.json")
    run = train(model, tp=tp, sequence_parallel=tp > 1, attention="eager", dropout=False)
    counted = sf.inspect(model, batch=8, sequence=512)["flops_forward"]
    found = work(run)
    h, f, rank, a = 2560, 10240, 128, 2 * 2560
    whole = {"mlp": h * rank, "projections": 3 * 2 * h * rank}
    tokens = 8 * 512 * 9
    for kind in ("mlp", "projections"):
        narrow = 2 * tokens * whole[kind]
        assert tp * (found[kind] - narrow) + narrow == pytest.approx(counted[kind], rel=1e-12), kind
    norms, shared = 3 * h, (3 * 2 * h * a + a * h + 3 * h * f) / tp
    own = h * h + (h + 2 * f / tp) * rank + (3 * 2 * h + 3 * a / tp) * rank
    mamba = run.memory_terms()["weights/layers"] / 2 - 2 * (shared + norms) - 9 * own
    alone = train(_only(model, "ssm"), tp=tp, sequence_parallel=tp > 1)
    assert mamba == alone.memory_terms()["weights/layers"] / 2
    paths = set(all_terms(run))
    assert {"layer/attention_dense/attention/join/forward", "layer/attention_dense/mlp/joining/forward"} <= paths
    assert not any("attention_dense" in path and "residual" in path for path in paths)


def _only(model: sf.Model, mixer: str) -> sf.Model:
    kinds = tuple(kind for kind in model.architecture.kinds if kind.mixer == mixer)
    count = sum(model.sizes[kind.count] for kind in kinds)
    architecture = dataclasses.replace(model.architecture, kinds=kinds)
    return dataclasses.replace(
        model, architecture=architecture, sizes={**model.sizes, "num_layers": count}, layers=((0, count),)
    )


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        ({"pp": 3}, "pp: found 3, expected 1: blocks of default-zamba2 are shared"),
        ({"dp": 2, "zero": 3}, "zero: blocks of default-zamba2 are shared between layers"),
        ({"precision": "fp8"}, "blocks that layers share are not listed"),
        ({"optimizer": "muon"}, "blocks that layers share are not listed"),
    ],
)
def test_what_shared_blocks_do_not_go_with_is_refused(plan: dict[str, Any], message: str) -> None:
    with pytest.raises(sf.InputError, match=message):
        train(load("default-zamba2"), **plan)


def test_channels_of_a_unit_are_dealt_whole() -> None:
    with pytest.raises(sf.InputError, match=r"tp: .*4 .*10"):
        train(load("default-recurrent_gemma"), tp=4)


def test_classes_hold_every_product_of_hybrids() -> None:
    """No product of a layer is outside of the classes by which work is compared."""
    ends = tuple(end for names in CLASSES.values() for end in names)
    for name in HYBRIDS:
        run = run_of(name)
        for path in all_terms(run):
            if (
                path.endswith("/forward")
                and path.startswith("layer/")
                and f"term/{path}/m" in run.compiled.program.outputs
            ):
                assert path.removesuffix("/forward").endswith(ends), path
