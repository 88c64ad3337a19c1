"""Checkpoints in several formats: each class of modules runs as it does where all are stored so."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.effort import part
from support.paths import GOLDEN_2026

import symperf as sf
from symperf.infer.formats import FORMATS
from symperf.infer.kernels import class_of
from symperf.infer.stored import classes_of
from symperf.models.module_patterns import Names
from symperf.models.quantization import Quantization, Stored

NAMES = ("bf16", "fp8", "fp8-block", "fp4", "int4-weight", "mxfp4-weight")
CLASSES = ("attention", "mlp", "experts", "shared", "head")
WORK: dict[str, Any] = {"batch": 16, "prompt": 256, "generate": 8}
MODELS = ("deepseek-v3", "llama-3.1-8b", "qwen3-30b-a3b")
OF_NO_CLASS = {
    "deepseek-v3": 61 * (2 * 7168 + 1536 + 512) + 58 * 256 * (7168 + 1),
    "llama-3.1-8b": 32 * 2 * 4096,
    "qwen3-30b-a3b": 48 * (2 * 2048 + 2 * 128 + 128 * 2048),
}
"""Values of norms in layers, and of routers with their biases."""


def stored(model: str, formats: dict[str, str]) -> sf.Model:
    """A model whose checkpoint has a format for each class; experts have most weights, then the MLP."""
    found = sf.Model.load(model)
    sizes = {"experts": 100, "mlp": 50, "attention": 20, "shared": 10, "head": 1}
    pairs = tuple((name, Stored(each, 8 * FORMATS[each].weight)) for name, each in formats.items())
    none = Names.of([], "here")
    return replace(found, quantization=Quantization("test", (), none, "here", None, pairs, tuple(sizes.items())))


def run(model: sf.Model, system: str, stack: str, plan: sf.Plan | None = None) -> sf.InferenceRun:
    return sf.inference(model, system, plan or sf.Plan(), stack=stack, kv_precision="bf16", **WORK)


def operations(of: sf.InferenceRun) -> dict[str, tuple[float, float, float]]:
    """Seconds, those without overheads, and bytes of each operation."""
    return {row.name: (row.each_s, row.theory_s / row.count, row.bytes / row.count) for row in of.table()}


@part(0.1)
@given(
    st.sampled_from(MODELS),
    st.sampled_from(("b200-sxm", "h100-sxm")),
    st.sampled_from(("tensorrt-llm", "vllm")),
    st.lists(st.sampled_from(NAMES), min_size=2, max_size=2, unique=True).flatmap(
        lambda names: st.fixed_dictionaries({name: st.sampled_from(names) for name in CLASSES})
    ),
)
def test_an_operation_takes_what_it_takes_where_all_is_in_its_format(
    model: str, system: str, stack: str, formats: dict[str, str]
) -> None:
    mixed = operations(run(stored(model, formats), system, stack))
    alone = {
        name: operations(run(stored(model, dict.fromkeys(CLASSES, name)), system, stack))
        for name in sorted(set(formats.values()))
    }
    for name, found in mixed.items():
        own = formats[class_of(name)]
        if class_of(name) == "head" and "logits" not in name:
            continue
        assert found == pytest.approx(alone[own][name], rel=1e-9), (name, own)


@part(0.1)
@given(st.sampled_from(MODELS), st.fixed_dictionaries({name: st.sampled_from(NAMES) for name in CLASSES}))
@example("qwen3-30b-a3b", dict.fromkeys(CLASSES, "int4-weight") | {"mlp": "fp8-block", "shared": "fp4"})
def test_weights_take_the_bytes_of_their_classes(model: str, formats: dict[str, str]) -> None:
    """Each class adds its own bytes, whatever the others have; norms and routers are as narrow as most weights.

    So they are narrow as soon as one class is, and would be counted once for each class that is looked at alone.
    """

    def weights(formats: dict[str, str]) -> float:
        terms = run(stored(model, formats), "h100-sxm", "vllm").memory_terms()
        return sum(value for name, value in terms.items() if name.startswith("weights"))

    def less(name: str) -> float:
        return FORMATS[name].weight - FORMATS["bf16"].weight

    classes = classes_of(sf.Model.load(model).architecture)
    plain = dict.fromkeys(CLASSES, "bf16")
    whole = weights(plain)
    every = weights(dict.fromkeys(CLASSES, "fp8")) - whole
    single = sum(weights(plain | {name: "fp8"}) - whole for name in classes)
    of_no_class = (single - every) / (len(classes) - 1) / less("fp8")
    assert of_no_class == pytest.approx(OF_NO_CLASS[model], rel=1e-6)
    expected = whole
    for name in classes:
        expected += weights(plain | {name: formats[name]}) - whole - of_no_class * less(formats[name])
    # `stored` gives each class more weights than all that come later.
    narrow = [name for name in ("experts", "mlp", "attention", "shared", "head") if name in classes]
    most = next((formats[name] for name in narrow if formats[name] != "bf16"), "bf16")
    assert weights(formats) == pytest.approx(expected + of_no_class * less(most), rel=1e-9)


def test_experts_in_four_bits_and_attention_in_eight() -> None:
    """What the header says, and that no product of attention waits for the bytes of 16 bits."""
    formats = {"attention": "fp8", "experts": "fp4", "shared": "fp8", "mlp": "fp8", "head": "bf16"}
    found = run(stored("deepseek-v3", formats), "b200-sxm", "vllm", sf.Plan(dp=8, ep=8))
    assert "weights as the checkpoint stores them: fp4, attention and mlp and shared in fp8" in found.warnings
    assert found.bound["weight_bytes"][0] == FORMATS["fp4"].weight
    assert found.bound["weight_bytes_2"][0] == FORMATS["fp8"].weight
    assert found.structure.others[0].classes == ("attention", "mlp", "shared")
    assert sum(found.shares().values()) == pytest.approx(1, abs=1e-12)


def test_a_golden_file_of_several_formats_serves() -> None:
    """Attention in 8 bits, MLP and head in 4, what is stored in 16 small: 18.74 GiB."""
    model = sf.Model.load(GOLDEN_2026 / "configs" / "qwen3.6-27b-nvfp4.json")
    run_ = run(model, "b200-sxm", "vllm")
    held = sum(value for name, value in run_.memory_terms().items() if name.startswith("weights"))
    in_file = sf.inspect(model)["checkpoint"]["bytes"] - 921_460_192
    assert held == pytest.approx(in_file, rel=2e-3)
