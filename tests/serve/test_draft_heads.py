"""Heads that draft for a model: their size, their passes, acceptance by position, and what is refused."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.serving_cases import make

import symperf as sf
from symperf.cli import main
from symperf.common.errors import InputError
from symperf.infer.adapter_slots import adapters_of
from symperf.models.draft_heads import draft_of, own_head
from symperf.runs.inference_run import InferenceRun
from symperf.serve.program import form
from symperf.serve.speculation import checked_acceptance, expected_tokens, speedup
from symperf.serve.speculative_generation import SpeculativeGeneration

if TYPE_CHECKING:
    from pathlib import Path

chances = st.floats(0, 1)
EAGLE3 = {
    "architectures": ["LlamaForCausalLMEagle3"],
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 1,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "draft_vocab_size": 32000,
    "hidden_act": "silu",
    "tie_word_embeddings": False,
}


@pytest.fixture
def eagle3(tmp_path: Path) -> Path:
    return written(tmp_path)


def written(folder: Path, **changes: object) -> Path:
    path = folder / "head.json"
    path.write_text(json.dumps(EAGLE3 | changes))
    return path


def drafted(model: str, system: str = "h200-sxm", tp: int = 1, **how: Any) -> Any:
    asked: dict[str, Any] = {"prompt": 512, "generate": 128, "acceptance": (0.8, 0.6)} | how
    return sf.serving(model, system, sf.Plan(tp=tp), **asked)


# --- tokens of a step


@given(several=st.lists(chances, min_size=1, max_size=8), length=st.integers(1, 12))
def test_positions_yield_the_sum_of_products_of_their_chances(several: list[float], length: int) -> None:
    expected, chance = 1.0, 1.0
    for place in range(length):
        chance *= several[min(place, len(several) - 1)]
        expected += chance
    found = expected_tokens(tuple(several), length)
    assert found == pytest.approx(expected, rel=1e-12)
    assert 1 <= found <= length + 1


@given(alpha=st.floats(0.01, 0.99), length=st.integers(1, 12))
def test_equal_positions_are_one_probability(alpha: float, length: int) -> None:
    one = form("expected_tokens", acceptance=alpha, draft_length=length)
    assert expected_tokens((alpha, alpha), length) == pytest.approx(one, rel=1e-9)
    assert expected_tokens(alpha, length) == one


def test_positions_agree_with_chance() -> None:
    chance, several = random.Random(7), (0.9, 0.7, 0.4)

    def step() -> int:
        taken = 0
        while taken < len(several) and chance.random() < several[taken]:
            taken += 1
        return taken + 1

    mean = sum(step() for _ in range(100_000)) / 100_000
    assert mean == pytest.approx(expected_tokens(several, 3), rel=0.01)


@given(several=st.lists(chances, min_size=2, max_size=5), length=st.integers(1, 6))
def test_nothing_accepted_is_never_faster_and_more_never_slower(several: list[float], length: int) -> None:
    times = (0.1, 1.2, 1.0)
    assert speedup(0.0, length, *times) < 1
    better = tuple(min(1.0, each + 0.1) for each in several)
    assert speedup(better, length, *times) >= speedup(tuple(several), length, *times)


# --- heads


def test_the_module_of_deepseek_v3_has_the_parameters_of_its_checkpoint() -> None:
    """DeepSeek-V3's README_WEIGHTS: 11.5 billion parameters of the module that are not the model's too."""
    serving = drafted("deepseek-v3", tp=8, draft_length=1, speculate="mtp")
    plain = sf.serving("deepseek-v3", "h200-sxm", sf.Plan(tp=8), prompt=512, generate=128)
    one = sf.serving("deepseek-v3", "b200-sxm", sf.Plan(precision="bf16"), prompt=64, generate=8)
    head = sf.serving(
        "deepseek-v3", "b200-sxm", sf.Plan(precision="bf16"), prompt=64, generate=8, speculate="mtp", acceptance=0.8
    )
    own = head.memory(1)["weights"] - one.memory(0)["weights"]
    assert own / 2 == pytest.approx(11.5e9, rel=0.01)
    assert serving.memory(1)["sequence"] > plain.memory(0)["sequence"]
    assert serving.limit(1) < plain.limit(0)


def test_the_head_of_eagle3_has_the_bytes_of_its_file(eagle3: Path) -> None:
    """The released head of Llama-3.1-8B has 811 MiB in 16 bits without the table of tokens."""
    serving = drafted("llama-3.1-8b", draft=str(eagle3), draft_length=3)
    plain = sf.serving("llama-3.1-8b", "h200-sxm", prompt=512, generate=128)
    own = serving.memory(3)["weights"] - plain.memory(0)["weights"]
    assert own / 2**20 == pytest.approx(811, rel=0.002)
    assert not any("vocabulary" in warning for warning in serving.warnings)


def test_a_head_costs_a_layer_and_not_a_model(eagle3: Path) -> None:
    serving = drafted("llama-3.1-8b", draft=str(eagle3), draft_length=3, acceptance=0.7)
    found = serving.speculation()
    assert found["draft_cost"] < 0.15
    assert 1 < found["speedup"] < found["tokens_per_step"]
    times = serving.times(3)
    first, later = (times.draft("decode", decoding=4.0, step_tokens=n, groups_in_flight=1.0) for n in (4.0, 1.0))
    # The hidden states of the model enter in the first pass alone, through a product of three widths.
    assert first > later + 3 * 4096**2 * 2 / 4.8e12


def test_heads_of_other_families_are_one_layer_of_theirs() -> None:
    for name, mixer, ffn in (
        ("qwen3-next-80b-a3b", None, None),
        ("nemotron-3-super-120b-a12b", "attention", "experts"),
        ("glm-4.5-air", "attention", "experts"),
        ("mimo-7b-base", "attention", "dense"),
        ("deepseek-v4-flash", "compressed_attention", "experts"),
        ("qwen3.5-35b-a3b", "attention", "experts"),
    ):
        model = sf.Model.load(name)
        if mixer is None:
            with pytest.raises(InputError, match="no layers for multi-token prediction"):
                own_head(model)
            continue
        (kind,) = own_head(model).architecture.kinds
        assert (kind.mixer, kind.ffn, kind.count) == (mixer, ffn, "num_layers")


def test_a_speculator_has_its_head_inside(tmp_path: Path) -> None:
    inner = {key: value for key, value in EAGLE3.items() if key not in ("architectures", "draft_vocab_size")}
    path = tmp_path / "config.json"
    outer = {"speculators_model_type": "eagle3", "draft_vocab_size": 32000, "transformer_layer_config": inner}
    path.write_text(json.dumps(outer))
    model = sf.Model.load("llama-3.1-8b")
    inside, flat = draft_of(model, str(path)), draft_of(model, str(written(tmp_path)))
    assert inside is not None
    assert flat is not None
    assert inside.architecture == flat.architecture
    assert inside.sizes == flat.sizes


def test_runs_without_a_head_are_as_they_were() -> None:
    model = sf.Model.load("deepseek-v3")
    assert draft_of(model, None) is None
    assert make("packed").draft is None
    assert model.architecture.draft_head == "none"


# --- the verbs


def test_an_inference_tells_what_a_head_brings(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["infer", "deepseek-v3", "-s", "h200-sxm", "--tp", "8", "--batch", "4", "--prompt", "512"]
    words += ["--generate", "64", "--speculate", "mtp"]
    assert main([*words, "--acceptance", "0.8,0.5", "--draft-length", "2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    told = found["speculative"]
    assert told["tokens_per_step"] == pytest.approx(1 + 0.8 + 0.4)
    assert told["prefill_s"] > found["prefill_s"]
    assert told["time_per_token_s"] == pytest.approx(told["step_s"] / told["tokens_per_step"])
    assert told["decode_s"] == pytest.approx(63 * told["time_per_token_s"])
    assert 0 < told["draft_bytes"] < found["memory_bytes"]["weights"] / 30
    assert main([*words[:-2], "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["speculative"] is None


def test_a_generation_drafts_with_what_the_inference_has() -> None:
    model, system = sf.Model.load("llama-3.1-8b"), sf.System.load("h100-sxm")
    draft, work = sf.Model.load("llama-3.2-1b"), {"batch": 4, "prompt": 512, "generate": 64}
    runs = [
        InferenceRun(model, system, sf.Plan(), **work, **more)
        for more in ({}, {"adapters": adapters_of(model, 64, 8)}, {"prefix": 448})
    ]
    plain, adapted, behind = (SpeculativeGeneration(each, draft, 0.7, 3) for each in runs)
    assert adapted.step_s > plain.step_s
    assert behind.draft_prefill_s < plain.draft_prefill_s
    assert behind.step_s == plain.step_s


@pytest.mark.parametrize("verb", ["infer", "serve"])
@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("--speculate mtp --acceptance 0.8", "llama-3.1-8b has no layers for multi-token prediction"),
        ("--speculate mpt --acceptance 0.8", "speculate: found 'mpt', expected mtp or eagle or eagle3 or draft"),
        ("--speculate eagle3 --acceptance 0.8", "draft: missing, expected the file of a head"),
        ("--draft llama-3.2-1b --acceptance 1.2", "acceptance: found 1.2, expected a probability"),
        ("--draft llama-3.2-1b --acceptance 0.8,-0.1", "acceptance of position 2: found -0.1"),
        ("--draft llama-3.2-1b --acceptance 0.8,x", "found 'x', expected a number"),
        ("--draft llama-3.2-1b", "acceptance: missing"),
        ("--acceptance 0.8", "acceptance: means something with a draft model only"),
        ("--draft llama-3.2-1b --speculate mtp --acceptance 0.8", "draft: found a model beside speculate = mtp"),
    ],
)
def test_what_cannot_draft_is_refused(capsys: pytest.CaptureFixture[str], verb: str, words: str, told: str) -> None:
    batch = ["--batch", "1"] if verb == "infer" else []
    asked = ["llama-3.1-8b", "-s", "h100-sxm", "--prompt", "64", "--generate", "8", *batch]
    try:
        status = main([verb, *asked, *words.split()])
    except SystemExit as error:  # the parser's own line
        status = int(str(error.code))
    assert status == 2
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"num_hidden_layers": 2}, "found 2 layers, expected a head of one layer"),
        ({"hidden_size": 2048}, "made for 2048 hidden features, but llama-3.1-8b has 4096"),
        ({"target_hidden_size": 5120}, "made for 5120 hidden features"),
        ({"draft_vocab_size": 200000}, "draft_vocab_size is 200000, expected 1 to 128256"),
    ],
)
def test_a_head_of_another_model_is_refused(tmp_path: Path, changes: dict[str, object], told: str) -> None:
    with pytest.raises(InputError, match=told):
        draft_of(sf.Model.load("llama-3.1-8b"), str(written(tmp_path, **changes)))


def test_a_head_without_experts_drafts_for_a_model_with_some(tmp_path: Path) -> None:
    """Its plan has neither the experts nor what the host keeps of the model."""
    path = written(tmp_path, vocab_size=151936, hidden_size=2048)
    plan = sf.Plan(dp=4, ep=4, offload="weights")
    found = sf.serving("qwen3-30b-a3b", "h100-sxm", plan, prompt=64, generate=8, draft=str(path), acceptance=0.5)
    assert found.draft.plan.ep == 1
    assert found.draft.plan.offload is None
    assert found.run.plan.ep == 4


def test_a_head_in_a_pipeline_is_refused() -> None:
    with pytest.raises(InputError, match="pp: found 2, expected 1"):
        sf.serving("deepseek-v3", "h200-sxm", sf.Plan(pp=2), prompt=64, generate=8, speculate="mtp", acceptance=0.5)


@pytest.mark.parametrize("given", [None, (), (0.5, None), True, "0.5", float("nan"), 1.0001])
def test_what_is_no_probability_is_refused(given: Any) -> None:
    with pytest.raises(InputError, match="acceptance"):
        checked_acceptance(given)
