"""Checkpoints in several formats: each class of modules runs as it does where all are stored so."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
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
    "deepseek-v3": 61 * 2 * 7168 + 58 * 256 * 7168,
    "llama-3.1-8b": 32 * 2 * 4096,
    "qwen3-30b-a3b": 48 * (2 * 2048 + 128 * 2048),
}
"""Values of the norms before attention and MLP, and of routers; those of heads and latents are of attention."""


def stored(model: str, formats: dict[str, str]) -> sf.Model:
    """A model whose checkpoint has a format for each class; experts have most weights, then the MLP."""
    found = sf.Model.load(model)
    sizes = {"experts": 100, "mlp": 50, "attention": 20, "shared": 10, "head": 1}
    pairs = tuple((name, Stored(each, 8 * FORMATS[each].weight)) for name, each in formats.items())
    none = Names.of([], "here")
    return replace(found, quantization=Quantization("test", (), none, "here", None, pairs, tuple(sizes.items())))


def run(model: sf.Model, system: str, stack: str, plan: sf.Plan | None = None) -> sf.InferenceRun:
    return sf.inference(model, system, plan or sf.Plan(), stack=stack, kv_precision="bf16", **WORK)


@cache
def weights(model: str, *formats: str) -> float:
    """Bytes of weights where each class has its format."""
    terms = run(stored(model, dict(zip(CLASSES, formats, strict=True))), "h100-sxm", "vllm").memory_terms()
    return float(sum(value for name, value in terms.items() if name.startswith("weights")))


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
@example("deepseek-v3", dict(zip(CLASSES, NAMES[1:], strict=True)))
@example("deepseek-v3", dict.fromkeys(CLASSES, "fp4"))
@example("llama-3.1-8b", dict.fromkeys(CLASSES, "fp8") | {"head": "int4-weight"})
def test_weights_take_the_bytes_of_their_classes(model: str, formats: dict[str, str]) -> None:
    """Each class adds its own bytes, whatever the others have; norms and routers stay in 16 bits.

    They are as narrow as all layers where those have one format, which no class of another tells them from.
    """

    plain = dict.fromkeys(CLASSES, "bf16")
    whole = weights(model, *plain.values())
    alone = [plain | {name: each} for name, each in formats.items()]
    expected = whole + sum(weights(model, *each.values()) - whole for each in alone)
    own = [formats[name] for name in classes_of(sf.Model.load(model).architecture)]
    if len({*own[:-1]}) == 1 and own[-1] in (own[0], "bf16"):
        expected += OF_NO_CLASS[model] * (FORMATS[own[0]].weight - 2)
    assert weights(model, *(formats[name] for name in CLASSES)) == pytest.approx(expected, rel=1e-9)


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
