"""Training of attention to selected keys: what is computed, kept and sent, against sums over tokens."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest
from support.paths import GOLDEN_2026

import symperf as sf
from symperf.formulas.kernels.sparse_selection import block_keys
from symperf.models.model import make_model
from symperf.operations.shapes import Shapes
from symperf.train.memory.saved_activations import _mixer_kept, index_kept

NAMES = ("deepseek-v3.2", "minimax-m3-vl")
TOP = 2048
LOSS = {"index_target", "index_loss"}


@cache
def model(name: str) -> sf.Model:
    """A golden model of four layers: the stages of a whole one are no matter here."""
    data = json.loads((GOLDEN_2026 / "configs" / f"{name}.json").read_text(encoding="utf-8"))
    inner = data.get("text_config", data)
    inner["num_hidden_layers"] = 4
    inner |= {"num_nextn_predict_layers": 0} if name == "deepseek-v3.2" else {"num_mtp_modules": 0}
    for key in ("moe_layer_freq", "sparse_attention_freq"):
        for holder in (inner, inner.get("sparse_attention_config", {})):
            if isinstance(holder.get(key), list):
                holder[key] = holder[key][:4]
    return make_model(name, "a test", data, f"{name}.json")


def training(name: str, sequence: int = 4096, stated: dict[str, float] | None = None, **plan: Any) -> Any:
    """A step of as many sequences as there are replicas."""
    made = sf.Plan(**plan)
    system = sf.System.load("h200-sxm")
    return sf.training(model(name), system, made, batch=made.dp, sequence=sequence, **(stated or {}))


def flops(run: Any, name: str) -> float:
    """FLOPs of one execution of an operation of a sparse layer with experts."""
    (kind,) = (k for k in run.model.architecture.kinds if k.traits and k.ffn == "experts")
    return run.value(f"term/layer/{kind.label}/attention/{name}/flops")


def seen(name: str, sequence: int) -> int:
    """Pairs that selection leaves of one sequence."""
    if name == "deepseek-v3.2":
        return sum(min(token, TOP) for token in range(1, sequence + 1))
    return sum(int(block_keys(token, 16, 128)) for token in range(1, sequence + 1))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("sequence", [1024, 4096])
def test_products_of_a_layer(name: str, sequence: int) -> None:
    """Scores of every pair; attention, its scores again and the loss over the selected ones."""
    run, pairs = training(name, sequence), seen(name, sequence)
    every = sequence * (sequence + 1) // 2
    heads, index, width = (128, 64, 2 * 512 + 64) if name == "deepseek-v3.2" else (64, 4, 2 * 128)
    keys = 576 if name == "deepseek-v3.2" else 128
    assert flops(run, "flash/index_scores/forward") == pytest.approx(2 * index * 128 * every)
    assert flops(run, "flash/forward") == pytest.approx(2 * heads * width * pairs)
    assert flops(run, "flash/backward") == pytest.approx(5 * heads * width * pairs)
    assert flops(run, "flash/index_target/backward") == pytest.approx(2 * heads * keys * pairs)
    assert flops(run, "flash/index_loss/backward") == pytest.approx(6 * index * 128 * pairs)


@pytest.mark.parametrize("name", NAMES)
def test_projections_are_those_that_inspect_counts(name: str) -> None:
    run, sequence = training(name), 4096
    counted = sf.inspect(model(name), batch=1, sequence=sequence)["flops_forward"]
    sparse = sum(run.model.sizes[k.count] for k in run.model.architecture.kinds if k.traits)
    own = sum(flops(run, f"{each}/forward") for each in ("index_query", "index_key"))
    assert sparse * own == pytest.approx(counted["indexer_projections"])
    if name == "deepseek-v3.2":
        names = ("query_down", "query_up", "latent_down", "core/absorb_key", "core/absorb_value", "output")
        assert 4 * sum(flops(run, f"{each}/forward") for each in names) == pytest.approx(counted["projections"])


@pytest.mark.parametrize("name", NAMES)
def test_an_indexer_gives_its_inputs_no_gradient(name: str) -> None:
    names = {path for path in terms(training(name)) if "/index_" in path}
    assert any(path.endswith("index_key/backward_weight") for path in names)
    assert not any(path.endswith("backward_input") for path in names)


def terms(run: Any) -> set[str]:
    """The paths of a step's operations."""
    return {name[5:-6] for name in run.compiled.program.outputs if name.startswith("term/") and name.endswith("/flops")}


@pytest.mark.parametrize("name", NAMES)
def test_matrices_and_vectors_are_all_parameters(name: str) -> None:
    """Muon, which lists every matrix, holds state for as many values as the language model has parameters."""
    adam, muon = (training(name, optimizer=each).memory_terms() for each in ("adam", "muon"))
    total = sf.inspect(model(name))["parameters"]["language"]
    assert sum(value for term, value in adam.items() if term.startswith("weights")) == pytest.approx(2 * total)
    assert sum(value for term, value in muon.items() if term.startswith("weights")) == pytest.approx(2 * total)


def test_more_devices_have_the_whole_indexer_of_latents() -> None:
    one, eight = (training("deepseek-v3.2", tp=tp, sequence_parallel=tp > 1) for tp in (1, 8))
    for name in ("flash/index_scores/forward", "index_query/forward", "index_key/backward_weight"):
        assert flops(one, name) == pytest.approx(flops(eight, name))
    assert flops(one, "core/absorb_key/forward") == pytest.approx(8 * flops(eight, "core/absorb_key/forward"))


def test_parts_of_a_sequence_share_the_work_and_gather_keys() -> None:
    whole, parts = (training("deepseek-v3.2", cp=cp, cp_kind="all-gather") for cp in (1, 4))
    for name in ("flash/index_scores/forward", "flash/forward", "flash/index_loss/backward"):
        assert flops(whole, name) == pytest.approx(4 * flops(parts, name))
    (kind,) = (k for k in parts.model.architecture.kinds if k.traits and k.ffn == "experts")
    message = parts.value(f"term/layer/{kind.label}/attention/context/gather/forward/message")
    assert message == 4096 * (576 + 128) * 2


@pytest.mark.parametrize(
    ("plan", "says"),
    [
        ({"cp": 2}, "cp_kind: .*select or compress keys.*expected all-gather, found ring"),
        ({"cp": 2, "cp_kind": "all-to-all"}, "expected all-gather, found all-to-all"),
        ({"attention": "eager"}, "attention: .*expected flash, found eager"),
    ],
)
def test_plans_that_do_not_go_with_selection(plan: dict[str, Any], says: str) -> None:
    with pytest.raises(sf.InputError, match=says):
        training("deepseek-v3.2", **plan)


def test_what_a_layer_keeps() -> None:
    """By hand, in bytes a token: latents before and after norms, each head in both widths, and the selection."""
    run = training("deepseek-v3.2")
    kind, shapes = run.model.architecture.kinds[-1], Shapes.of(run.structure, run.model.architecture.kinds[-1])
    form = _mixer_kept(run.structure, kind, shapes)
    values = {symbol: run.bound[symbol.name][0] for symbol in form.free_symbols}
    heads, latent, rope, queries = 128, 512, 64, 1536
    attention = 2 * (2 * (latent + queries) + rope + heads * (128 + 2 * latent + rope + 128))
    index = 2 * (64 * 128 + 2 * 128 + 64) + 4 * TOP
    assert float(form.subs(values)) == 4096 * (attention + index)


def test_what_a_layer_of_blocks_keeps() -> None:
    run = training("minimax-m3-vl")
    tokens = 4096
    form = index_kept(run.model.architecture.kinds[-1], tokens)
    values = {symbol: run.bound[symbol.name][0] for symbol in form.free_symbols}
    assert float(form.subs(values)) == tokens * (2 * 2 * 128 * (4 + 1) + 4 * 4 * 16)


def test_a_frozen_indexer_has_no_loss_and_no_gradients() -> None:
    """What is left of a step without its training is what the loss, its gradients and their positions took."""
    trained, frozen = training("deepseek-v3.2"), training("deepseek-v3.2", stated={"index_training": 0.0})
    spent = sum(row.time_s for row in trained.table() if LOSS & {*row.name.split("/")})
    assert 0 < spent < trained.value("time") - frozen.value("time")
    rows = {row.name: row.time_s for row in frozen.table() if "/index_" in row.name}
    assert all(value == 0 for name, value in rows.items() if LOSS & {*name.split("/")})
    assert any(value > 0 for value in rows.values())


def test_a_stage_hands_on_what_was_selected() -> None:
    """A model whose layers reuse a selection sends it with the stream: 2,048 places of 4 bytes a token."""
    data = json.loads((GOLDEN_2026 / "configs" / "glm-5.json").read_text(encoding="utf-8"))
    data |= {"num_hidden_layers": 4, "num_nextn_predict_layers": 0}
    every = make_model("glm", "a test", data, "glm.json")
    reuse = make_model("glm", "a test", {**data, "indexer_types": ["full", "shared"] * 2}, "glm.json")
    sent = [
        sf.training(each, sf.System.load("h200-sxm"), sf.Plan(pp=2), batch=2, sequence=1024).value(
            "term/pipeline/send/forward/message"
        )
        for each in (every, reuse)
    ]
    assert sent[1] - sent[0] == 1024 * TOP * 4
