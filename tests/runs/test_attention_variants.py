"""Runs of attention whose keys, values, heads or gates differ: the operations do what is counted, and nothing else."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.kind_cases import CLASSES, train, work
from support.paths import GOLDEN_2026

import symperf as sf
from symperf.models.model import make_model

MIMO, STEP, DIFFERENCE = "mimo-v2-flash", "step-3.7-flash", "default-diffllama"
GEMMA, INKLING = "default-gemma3n_text", "default-inkling_text"
NAMES = (DIFFERENCE, GEMMA, INKLING, MIMO, STEP)
SYSTEM = sf.System.load("h200-sxm")


def data(name: str) -> dict[str, Any]:
    """The object of a golden file."""
    found: dict[str, Any] = json.loads((GOLDEN_2026 / "configs" / f"{name}.json").read_text(encoding="utf-8"))
    return found


def made(name: str, **changes: Any) -> sf.Model:
    """The model of a golden file in 16 bits, with some keys changed."""
    plain = {key: value for key, value in data(name).items() if key != "quantization_config"}
    return make_model(name, "test", plain | changes, f"{name}.json")


def counted(model: sf.Model, **work: int) -> dict[str, float]:
    """Forward FLOPs by class."""
    found = sf.inspect(model, **work)["flops_forward"]
    # Convolutions are element-wise kernels, whose padding torch counts.
    other = ("total", "ssm", "convolutions")
    return {name: float(flops) for name, flops in found.items() if flops and name not in other}


@pytest.mark.parametrize("name", NAMES)
def test_a_training_step_has_the_products_that_are_counted(name: str) -> None:
    model = made(name)
    run = train(model, batch=4, micro_batch=2, attention="eager")
    found = work(run)
    found.pop("ssm_scan", None)
    assert found == pytest.approx(counted(model, batch=4, sequence=512), rel=1e-12)
    assert run.value("parameters") == sf.inspect(model)["parameters"]["total"]


@pytest.mark.parametrize("name", NAMES)
def test_a_backward_pass_has_two_products_for_each(name: str) -> None:
    run = train(made(name), batch=4, micro_batch=2, attention="eager")
    phases = [f"backward_{phase}" for phase in ("input", "weight", "scores", "values", "queries", "keys")]
    each = [work(run, phase) for phase in phases]
    for one, flops in work(run).items():
        # Mixing streams is one kernel, whose gradients are another.
        if one in CLASSES and one != "side_blocks":
            assert sum(found.get(one, 0.0) for found in each) == pytest.approx(2 * flops, rel=1e-12), one


@pytest.mark.parametrize("name", NAMES)
def test_devices_of_a_tensor_parallel_group_share_the_parameters(name: str) -> None:
    """Eight have an eighth each, but for norms, routers and copies of key-value heads, of which MiMo-V2 has four.

    What Gemma-3n has beside attention and MLP is whole on every device.
    """
    run = train(made(name), batch=8, tp=8, sequence_parallel=True)
    terms = {path: size for path, size in run.memory_terms().items() if "multi_token" not in path}
    weights = sum(size for path, size in terms.items() if path.startswith("weights/")) / 2
    total = sf.inspect(made(name))["parameters"]["total"]
    assert total <= 8 * weights < (1.6 if name == GEMMA else 1.01) * total


@pytest.mark.parametrize("name", NAMES)
def test_a_generation_reads_and_keeps_the_cache_that_is_counted(name: str) -> None:
    """Of one sequence, longer than any window."""
    model = made(name)
    run = sf.inference(model, SYSTEM, sf.Plan(precision="bf16"), batch=1, prompt=1024, generate=1024, stack="none")
    parts = sf.inspect(model)["kv_cache"]
    window = model.sizes.get("sliding_window", 0)
    expected = 2048 * parts["growing_bytes_per_token"] + window * parts["window_bytes_per_token"]
    assert run.memory_terms()["kv_cache"] == pytest.approx(expected, rel=1e-12)
    assert run.memory_terms().get("kv_cache/state", 0.0) == pytest.approx(parts["state_bytes_per_sequence"], rel=1e-12)


def test_serving_runs() -> None:
    answer = sf.serving(made(STEP), SYSTEM, sf.Plan(precision="fp8", tp=8), prompt=512, generate=64, load=1.0)
    assert answer.answer is not None
    assert (answer.answer.tpot_s or 0) > 0


def step_3_5(**changes: Any) -> sf.Model:
    """Step-3.5-Flash in the keys of its hub file: 96 heads in windowed layers, three further layers."""
    plain = data(STEP)
    for key in ("num_key_value_heads", "first_k_dense_replace", "num_experts", "num_experts_per_tok"):
        del plain[key]
    heads = {
        "attention_type": "sliding_attention",
        "num_attention_heads": 96,
        "num_attention_groups": 8,
        "head_dim": 128,
    }
    kinds = ["full_attention", *["sliding_attention"] * 3] * 12
    given = {
        "model_type": "step3p5",
        "num_attention_groups": 8,
        "moe_num_experts": 288,
        "moe_top_k": 8,
        "moe_layers_enum": ",".join(str(layer) for layer in range(3, 45)),
        "layer_types": kinds,
        "attention_other_setting": heads,
    }
    return make_model("step-3.5-flash", "test", plain | given | changes, "step-3.5-flash.json")


def test_windowed_layers_may_have_more_heads() -> None:
    """196,956,118,272 parameters: Step3p7TextModel of transformers 5.24 on the meta device, with its untied head."""
    of = step_3_5()
    assert sf.inspect(of)["parameters"]["total"] == 196_956_118_272
    assert (of.sizes["num_attention_heads"], of.sizes["num_attention_heads_2"]) == (64, 96)
    nested = {"model_type": "step3p7", "text_config": data(STEP) | {"model_type": "step3p5"}}
    assert make_model("step", "test", nested, "step.json").sizes == made(STEP).sizes
    layers = {str(i): {"num_attention_heads": 96} for i in range(45) if i % 4}
    resaved = step_3_5(attention_other_setting=None, per_layer_config=layers)
    assert (resaved.sizes, resaved.architecture) == (of.sizes, of.architecture)
    with pytest.raises(sf.InputError, match="tp: 64 does not divide"):
        train(of, batch=64, tp=64, sequence_parallel=True)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"attention_other_setting": {"num_attention_head": 96}}, "num_attention_head"),
        ({"attention_other_setting": {"num_attention_heads": 60}}, "attention_other_setting: the 60 attention heads"),
        ({"per_layer_config": {"1": {"head_dim": 64}}}, "per_layer_config"),
        ({"moe_layers_enum": "3,x"}, "moe_layers_enum"),
        ({"layer_types": ["full_attention"] * 46}, "layer_types"),
        ({"n_shared_experts": 2}, "n_shared_experts"),
    ],
)
def test_faults_name_their_key(change: dict[str, Any], words: str) -> None:
    with pytest.raises(sf.InputError, match=words):
        step_3_5(**change)


def test_convolutions_need_the_tokens_before() -> None:
    with pytest.raises(sf.InputError, match="convolutions"):
        train(made(INKLING), batch=8, cp=2)
    with pytest.raises(sf.InputError, match="pp: "):
        train(made(GEMMA), batch=8, pp=5)


def test_widths_of_inkling_may_be_told_as_its_checkpoints_do() -> None:
    """There `intermediate_size` is that of experts where dense layers have a key of their own."""
    told = made(INKLING, intermediate_size=3072, dense_intermediate_size=24576, moe_intermediate_size=None)
    assert (told.sizes, told.layers) == (made(INKLING).sizes, made(INKLING).layers)
    listed = made(INKLING, layer_types=None, local_layer_ids=[i for i in range(66) if (i + 1) % 6])
    assert listed.layers == made(INKLING, layer_types=None).layers == made(INKLING).layers


GEMMA_4 = {"model_type": "gemma4_text", "vocab_size": 262144, "head_dim": 256, "global_head_dim": 512}
DENSE_4 = {
    **dict(zip(("hidden_size", "intermediate_size", "num_hidden_layers"), (5376, 21504, 60), strict=True)),
    **dict(zip(("num_attention_heads", "num_key_value_heads", "num_global_key_value_heads"), (32, 16, 4), strict=True)),
    "attention_k_eq_v": True,
    "hidden_size_per_layer_input": 0,
    "sliding_window": 1024,
}
SMALL_4 = {
    **dict(zip(("hidden_size", "intermediate_size", "num_hidden_layers"), (1536, 6144, 35), strict=True)),
    **dict(zip(("num_attention_heads", "num_key_value_heads", "num_kv_shared_layers"), (8, 1, 20), strict=True)),
    "layer_types": [*["sliding_attention"] * 4, "full_attention"] * 7,
    "use_double_wide_mlp": True,
}


@pytest.mark.parametrize(("keys", "parameters"), [(DENSE_4, 30_697_345_280), (SMALL_4, 4_628_569_344)])
def test_gemma_4_without_experts(keys: dict[str, Any], parameters: int) -> None:
    """Parameters of Gemma4ForCausalLM of transformers 5.24 in these dimensions, on the meta device."""
    of = make_model("gemma-4", "test", GEMMA_4 | keys, "gemma-4.json")
    assert sf.inspect(of)["parameters"]["total"] == parameters
    run = train(of, batch=4, micro_batch=2, attention="eager")
    assert work(run) == pytest.approx(counted(of, batch=4, sequence=512), rel=1e-12)
    with pytest.raises(sf.InputError, match="attention_k_eq_v"):
        make_model("gemma-4", "test", GEMMA_4 | SMALL_4 | {"attention_k_eq_v": True}, "gemma-4.json")
