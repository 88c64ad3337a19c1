"""Training with frozen parts: what falls out of a step, by the rules of automatic differentiation and by hand."""

from __future__ import annotations

import dataclasses
import itertools
import json
from typing import TYPE_CHECKING, Any

import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st
from support.effort import part, some

import symperf as sf
from symperf.common.errors import InputError
from symperf.formulas.language.symbols import SYMBOLS
from symperf.models.model import catalogue_names
from symperf.operations.schedule import Op, count_operations
from symperf.plans.freezing import CLASSES, PARTS
from symperf.plans.gradients import Gradients
from symperf.train.inputs import structure_of
from symperf.train.memory.device_share import fullest_share
from symperf.train.memory.matrices import held_matrices
from symperf.train.step.step import TrainingStep

if TYPE_CHECKING:
    from pathlib import Path

H100 = sf.System.load("h100-sxm")
WIDTH, HEADS, PAIRS, HEAD, INNER, LAYERS, WORDS = 64, 4, 2, 16, 160, 3, 96
PASSING = 2
"""Bytes of the gradient of a logit while the loss runs, beside the probability in FP32 that is kept (Megatron-LM)."""
CONFIG = {
    "model_type": "llama",
    "hidden_size": WIDTH,
    "num_attention_heads": HEADS,
    "num_key_value_heads": PAIRS,
    "intermediate_size": INNER,
    "num_hidden_layers": LAYERS,
    "vocab_size": WORDS,
    "tie_word_embeddings": False,
    "hidden_act": "silu",
    "rms_norm_eps": 1e-5,
}
NAMES = ("embedding", "attention", "mlp", "norms", "head")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> sf.Model:
    """A decoder of three layers."""
    path: Path = tmp_path_factory.mktemp("tiny") / "config.json"
    path.write_text(json.dumps(CONFIG))
    return sf.Model.load(path)


# --- operations, by the rule of automatic differentiation


def differentiated(frozen: set[str]) -> dict[str, int]:
    """How often each gradient is computed: of weights that are trained, and of inputs that have a gradient.

    A tensor has one if what it was made of has one or was trained with (PyTorch, autograd mechanics, "Setting
    requires_grad").
    """
    found: dict[str, int] = {}
    has = "embedding" not in frozen

    def count(name: str, *, when: bool) -> None:
        found[name] = found.get(name, 0) + when

    def pass_linear(name: str, owner: str) -> None:
        nonlocal has
        count(f"{name}/backward_input", when=has)
        count(f"{name}/backward_weight", when=owner not in frozen)
        has = has or owner not in frozen

    count("embedding/lookup/backward", when=has)
    for _ in range(LAYERS):
        stream = has
        has = has or "norms" not in frozen
        count("layer/attention/norm/backward", when=has)
        pass_linear("layer/attention/qkv", "attention")
        count("layer/attention/flash/backward", when=has)
        pass_linear("layer/attention/output", "attention")
        has = stream = has or stream
        has = has or "norms" not in frozen
        count("layer/mlp/norm/backward", when=has)
        pass_linear("layer/mlp/up", "mlp")
        count("layer/mlp/activation/backward", when=has)
        pass_linear("layer/mlp/down", "mlp")
        has = has or stream
    has = has or "norms" not in frozen
    count("head/norm/backward", when=has)
    pass_linear("head/logits", "head")
    return {name: number for name, number in found.items() if number}


SUBSETS = [set(names) for size in range(len(NAMES)) for names in itertools.combinations(NAMES, size)]


@pytest.mark.parametrize("frozen", some(SUBSETS, 0.3), ids=lambda names: ",".join(sorted(names)) or "nothing")
def test_gradients_are_computed_as_automatic_differentiation_does(tiny: sf.Model, frozen: set[str]) -> None:
    plan = sf.Plan(freeze=",".join(sorted(frozen)) or None)
    tree = TrainingStep(structure_of(tiny, H100, plan)).tree()
    numbers = {SYMBOLS[name].symbol: 1 for name in ("pp", "batch", "micro_batch", "dp", "vpp")}
    numbers[SYMBOLS["num_layers"].symbol] = LAYERS
    expected = differentiated(frozen)
    found = {
        op.path: int(sympy.sympify(times).subs(numbers))
        for op, times in count_operations(tree).items()
        if op.path.split("/")[-1].startswith("backward") and not op.path.startswith("pipeline")
    }
    kinds = ("residual", "rotary", "loss", "reduce")
    assert {path: n for path, n in found.items() if n and not any(kind in path for kind in kinds)} == expected
    for name in ("layer/attention/qkv", "layer/mlp/up"):
        assert found.get(f"{name}/reduce/backward", 0) == expected.get(f"{name}/backward_input", 0)


def test_of_several_stages_the_first_is_not_the_slowest(tiny: sf.Model) -> None:
    """The saving in the lowest layer counts on a single stage alone: other stages have the pace."""
    run = sf.training(tiny, H100, sf.Plan(pp=3, freeze="embedding,norms"), batch=4, sequence=32)
    rows = {row.name: row for row in run.table()}
    assert rows["layer/attention/qkv/backward_input"].count == rows["layer/attention/qkv/backward_weight"].count


@pytest.mark.parametrize("plan", [{"pp": 2, "dp": 2}, {"tp": 2, "sequence_parallel": True, "pp": 2, "dp": 2}])
def test_below_a_trained_head_there_is_no_backward_pass(plan: dict[str, Any]) -> None:
    run = sf.training("llama-2-7b", H100, sf.Plan(**plan, freeze="embedding,layers,norms"), batch=8, sequence=1024)
    backward = {row.name for row in run.table() if "/backward" in row.name}
    assert backward == {"head/loss/backward", "head/logits/backward_weight"} | (
        {"head/gather/backward"} if "tp" in plan else set()
    )
    tokens, words = 1024, 32000 // plan.get("tp", 1)
    assert run.value("memory/activations") == tokens * 4096 / plan.get("tp", 1) * 2 + tokens * words * (4 + PASSING)


def test_the_gathering_of_an_input_falls_out_with_its_weights() -> None:
    """With sequence parallelism the input of a column-split product is gathered again for its weights' gradient."""
    plan = {"tp": 2, "sequence_parallel": True}
    for freeze, gathered in ((None, True), ("mlp", False)):
        run = sf.training("llama-2-7b", H100, sf.Plan(**plan, freeze=freeze), batch=1, sequence=1024)
        names = {row.name for row in run.table()}
        assert ("layer/mlp/up/gather/backward" in names) == gathered
        assert {
            "layer/mlp/gather/backward",
            "layer/mlp/up/reduce/backward",
            "layer/attention/qkv/gather/backward",
        } <= names


# --- FLOPs


@pytest.mark.parametrize(
    ("freeze", "layers", "head"),
    [
        (None, 6, 6),
        ("layers,norms", 4, 6),
        ("embedding,layers,norms", 2, 4),
        ("embedding,layers", 2, 6),
        ("head", 6, 4),
        ("embedding,head", 6, 4),
    ],
)
def test_a_parameter_costs_a_token_six_four_or_two_flops(freeze: str | None, layers: int, head: int) -> None:
    run = sf.training("llama-2-7b", H100, sf.Plan(freeze=freeze), batch=2, sequence=512)
    tokens, scores = 1024, 2 * 32 * 2 * 2 * 512**2 * 4096
    weights, logits = 32 * (4 * 4096**2 + 3 * 4096 * 11008), 32000 * 4096
    passes = 3 if layers > 2 else 1
    assert run.value("model_flops") == tokens * (layers * weights + head * logits) + passes * scores


def test_recomputation_repeats_only_layers_with_a_backward_pass() -> None:
    whole, frozen = (
        sf.training("llama-2-7b", H100, sf.Plan(recompute="full", freeze=freeze), batch=1, sequence=512)
        for freeze in (None, "embedding,layers")
    )
    assert whole.value("hardware_flops") > whole.value("model_flops")
    assert frozen.value("hardware_flops") == frozen.value("model_flops")
    assert not any("/recompute" in row.name for row in frozen.table())


# --- memory and state

KEPT = {
    "flash": {"": 1088, "attention": 1024, "mlp": 864, "norms": 1088, "attention,mlp": 800, "attention,mlp,norms": 800},
    "eager": {"": 1216, "attention": 1088, "mlp": 992, "attention,mlp": 864, "attention,mlp,norms": 864},
}
"""Elements that a layer keeps of each of 32 tokens, without statistics: PyTorch 2.14 by `saved_tensors_hooks`, storages
that are no parameters, of a layer of this shape with F.scaled_dot_product_attention, or products and softmax. Its
composite norm on a CPU keeps a normalised input beside what the fused one does, which is left out."""


def activations(run: sf.Run) -> float:
    """Bytes of activations on the only stage."""
    (stage,) = run.stage_memory()
    return stage["activations"]


@pytest.mark.parametrize(("attention", "freeze"), [(kind, freeze) for kind, each in KEPT.items() for freeze in each])
def test_a_layer_keeps_what_pytorch_saves(tiny: sf.Model, attention: str, freeze: str) -> None:
    tokens, plan = 32, sf.Plan(attention=attention, freeze=freeze or None)
    three, two = (activations(sf.training(tiny, H100, plan, batch=1, sequence=tokens, num_layers=n)) for n in (3, 2))
    statistics = 4 * tokens * HEADS if attention == "flash" else 0
    assert three - two == 2 * tokens * KEPT[attention][freeze] + statistics


@pytest.mark.parametrize(("freeze", "elements"), [("embedding,attention,norms", 704), ("embedding,norms", 1024)])
def test_the_lowest_layer_keeps_what_pytorch_saves_of_an_input_without_gradient(
    tiny: sf.Model, freeze: str, elements: int
) -> None:
    """By the same measurement, of an input that needs no gradient; the gradient of the logits is not saved."""
    tokens = 32
    run = sf.training(tiny, H100, sf.Plan(freeze=freeze), batch=1, sequence=tokens, num_layers=1)
    head = 2 * tokens * 2 * WIDTH + (4 + PASSING) * tokens * WORDS
    statistics = 0 if "attention" in freeze else 4 * tokens * HEADS
    assert activations(run) == 2 * tokens * elements + statistics + head


def test_frozen_weights_are_held_without_gradients_or_state() -> None:
    """Mixtral: 2 bytes of a frozen parameter, 18 of a trained one; only trained gradients are sent."""
    plan = {"dp": 2, "ep": 2, "zero": 0}
    run = sf.training("mixtral-8x7b", H100, sf.Plan(**plan, freeze="experts"), batch=2, sequence=512)
    terms = run.memory_terms()
    assert terms["weights/experts"] == 2 * 32 * 4 * 3 * 4096 * 14336
    assert not terms.get("gradients/experts")
    assert not terms.get("optimizer/experts")
    layer = 4096 * 4096 * 2 + 4096 * 1024 * 2 + 8 * 4096 + 2 * 4096
    ends = 2 * 32000 * 4096 + 4096
    assert terms["gradients/layers"] + terms["gradients/ends"] == 4 * (32 * layer + ends)
    assert run.value("term/gradients/reduce/message") == 4 * (32 * layer + ends)
    assert "gradients/reduce_experts" not in {row.name for row in run.table()}


def test_frozen_weights_are_sharded_and_gathered_under_zero_3() -> None:
    def run(freeze: str | None) -> sf.Run:
        return sf.training("llama-2-7b", H100, sf.Plan(dp=8, zero=3, freeze=freeze), batch=8, sequence=512)

    whole, frozen, head = run(None), run("layers"), run("embedding,layers,norms")
    assert frozen.memory_terms()["weights/layers"] == whole.memory_terms()["weights/layers"]
    for phase in ("forward", "backward"):
        name = f"term/parameters/gather/{phase}/message"
        assert frozen.value(name) == whole.value(name)
    assert frozen.value("term/gradients/reduce/message") < whole.value("term/gradients/reduce/message")
    assert "parameters/gather/backward" not in {row.name for row in head.table()}


@pytest.mark.parametrize("optimizer", ["adam", "adafactor", "muon"])
def test_the_state_of_a_trained_part_is_what_freezing_it_saves(optimizer: str) -> None:
    """State is a sum over parts: what is left with only the MLP frozen, and with all but the MLP, makes the whole."""

    def state(freeze: str | None) -> float:
        plan = sf.Plan(optimizer=optimizer, freeze=freeze)
        (terms,) = sf.training("llama-2-7b", H100, plan, batch=1, sequence=512).stage_memory()
        return sum(size for name, size in terms.items() if name.startswith(("optimizer/", "gradients/")))

    assert state("mlp") + state("embedding,attention,norms,head") == pytest.approx(state(None), rel=1e-12)


@pytest.mark.parametrize("name", some(catalogue_names(), 0.05))
def test_every_parameter_belongs_to_a_class(name: str) -> None:
    """With all classes frozen no device has a trained one left, whatever the model's layers are."""
    model = sf.Model.load(name)
    try:
        form = structure_of(model, H100, sf.Plan())
    except InputError:
        pytest.skip("a model that is not trained")
    frozen = dataclasses.replace(form, frozen=CLASSES)
    assert [sympy.expand(each) for each in fullest_share(frozen).trained] == [0, 0]
    assert not held_matrices(frozen, lambda count: count, CLASSES).matrices


# --- laws

PLANS: tuple[dict[str, Any], ...] = (
    {},
    {"pp": 2, "dp": 2, "zero": 1, "recompute": "full"},
    {"pp": 2, "dp": 2, "schedule": "zero-bubble"},
    {"tp": 2, "dp": 2, "zero": 3, "sequence_parallel": True},
    {"tp": 2, "pp": 2, "vpp": 2, "sequence_parallel": True, "precision": "fp8"},
)
MODELS = ("gpt2", "qwen3-0.6b", "mixtral-8x7b")


@part(0.03)
@given(
    st.sampled_from(MODELS), st.sampled_from(PLANS), st.lists(st.sampled_from([*PARTS][:9]), min_size=1, unique=True)
)
def test_freezing_more_never_takes_more_time_or_memory(model: str, plan: dict[str, Any], names: list[str]) -> None:
    values = []
    for count in range(len(names) + 1):
        try:
            freeze = ",".join(names[:count]) or None
            run = sf.training(model, H100, sf.Plan(**plan, freeze=freeze), batch=8, sequence=512)
        except InputError:
            continue
        values.append((run.value("time"), run.value("memory"), run.value("model_flops"), run.value("mfu_executed")))
    for before, after in itertools.pairwise(values):
        assert all(more >= less * (1 - 1e-12) for more, less in zip(before[:3], after[:3], strict=True))
        assert 0 < after[3] <= 1


def test_what_is_not_there_changes_nothing() -> None:
    """An encoder that no images pass is frozen in any case; the step is that of no frozen part."""
    model = sf.Model.load("qwen2.5-vl-7b")
    forms = [structure_of(model, H100, sf.Plan(freeze=freeze)) for freeze in (None, "vision", "projector,vision")]
    assert forms[0] == forms[1] == forms[2]
    assert Gradients(forms[0]).trains("attention")


def test_a_tied_table_is_frozen_by_either_of_its_names() -> None:
    model = sf.Model.load("qwen3-0.6b")
    forms = [structure_of(model, H100, sf.Plan(freeze=freeze)) for freeze in ("embedding", "head", "head,embedding")]
    assert forms[0] == forms[1] == forms[2]
    run = sf.training(model, H100, sf.Plan(pp=2, freeze="head"), batch=4, sequence=512)
    assert "gradients/tied" not in {row.name for row in run.table()}


def test_gradients_end_where_trained_layers_begin() -> None:
    """DeepSeek-V3 with experts alone trained: its first three layers, which have none, have no backward pass."""
    plan = sf.Plan(dp=8, ep=8, freeze="embedding,attention,mlp,router,norms,head,multi_token")
    tree = TrainingStep(structure_of(sf.Model.load("deepseek-v3"), H100, plan)).tree()
    paths = {op.path for op in count_operations(tree) if isinstance(op, Op) and "/backward" in op.path}
    assert not any(path.startswith("layer/latent_attention_dense/") for path in paths)
    assert any(path.startswith("layer/latent_attention_experts/") for path in paths)


# --- refusals


@pytest.mark.parametrize(
    ("model", "freeze", "text"),
    [
        ("gpt2", "experts", "freeze: found experts, but gpt2 has no such part, expected some of embedding, layers"),
        ("gpt2", "vision", "freeze: found vision, but gpt2 has no such part"),
        ("gpt2", "layer", "did you mean layers"),
        ("gpt2", "language", "leaves nothing of gpt2 to train"),
        ("qwen3-0.6b", "embedding,layers,norms", "leaves nothing of qwen3-0.6b to train"),
        ("qwen2.5-vl-7b", "language", "its encoders run where there are images or sounds"),
        ("gpt2", "multi_token", "no such part"),
        ("gpt2", 3, "freeze: found 3"),
    ],
)
def test_frozen_parts_that_make_no_step_are_refused(model: str, freeze: Any, text: str) -> None:
    with pytest.raises(InputError, match=text):
        sf.training(model, H100, sf.Plan(freeze=freeze), batch=1, sequence=128)


def test_frozen_parts_are_an_axis_of_sweeps() -> None:
    run = sf.training("gpt2", H100, batch=4, sequence=512)
    found = run.sweep(freeze=[None, "attention", "experts"], outputs=["time"])
    times = [float(each) for each in found.time.values[:2]]
    assert times == [run.value("time"), run.bind(freeze="attention").value("time")]
    assert found.time.isnull().values.tolist() == [False, False, True]
