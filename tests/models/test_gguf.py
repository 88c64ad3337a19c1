"""Files of GGUF types: sizes beside those that llama.cpp publishes, and which matrices have which type."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

import symperf as sf
from symperf.models.gguf import FILES, TYPES, File, file_bytes, mean_bytes
from symperf.plans.plan_fields import PRECISIONS

LLAMA_3_1_8B = {
    "iq1_s": 2.0042,
    "iq1_m": 2.1460,
    "iq2_xxs": 2.3824,
    "iq2_xs": 2.5882,
    "iq2_s": 2.7403,
    "iq2_m": 2.9294,
    "iq3_xxs": 3.2548,
    "iq3_xs": 3.4977,
    "iq3_s": 3.6606,
    "iq3_m": 3.7628,
    "iq4_xs": 4.4597,
    "iq4_nl": 4.6818,
    "q2_k_s": 2.9697,
    "q2_k": 3.1593,
    "q3_k_s": 3.6429,
    "q3_k_l": 4.2979,
    "q4_k_s": 4.6672,
    "q4_k_m": 4.8944,
    "q5_k_s": 5.5704,
    "q5_k_m": 5.7036,
    "q6_k": 6.5633,
    "q8_0": 8.5008,
}
"""Bits a weight of meta-llama/Llama-3.1-8B (llama.cpp, tools/quantize/README.md at 311c2c9f)."""
LLAMA_2 = {
    "llama-2-7b": {"q3_k_s": 3.50, "q3_k_m": 3.91, "q4_k_s": 4.58, "q4_k_m": 4.84, "q5_k_m": 5.68, "q6_k": 6.56},
    "llama-2-13b": {"q3_k_s": 3.48, "q3_k_m": 3.89, "q4_k_s": 4.56, "q4_k_m": 4.83, "q5_k_m": 5.67, "q6_k": 6.56},
    "llama-2-70b": {"q3_k_m": 3.85, "q3_k_l": 4.19, "q4_k_s": 4.53, "q4_k_m": 4.80, "q5_k_s": 5.50, "q5_k_m": 5.65},
}
"""The same of models of Llama 2 (llama.cpp, examples/quantize/README.md of 2024), files whose rules are as then."""


def load(name: str) -> sf.Model:
    return sf.Model.load(name)


def bits(name: str, model: sf.Model) -> float:
    """Bits of a weight of a file."""
    parameters = sf.inspect(model)["parameters"]["total"]
    return 8 * file_bytes(name, model, parameters) / parameters


@pytest.mark.parametrize("name", LLAMA_3_1_8B)
def test_sizes_are_those_of_llama_cpp(name: str) -> None:
    """To the last digit that is published."""
    assert bits(name, load("llama-3.1-8b")) == pytest.approx(LLAMA_3_1_8B[name], abs=6e-5)


@pytest.mark.parametrize("name", LLAMA_2)
def test_sizes_of_older_models(name: str) -> None:
    for file, published in LLAMA_2[name].items():
        assert bits(file, load(name)) == pytest.approx(published, rel=0.005)


def test_a_published_file_has_these_bytes_and_a_header() -> None:
    """Meta-Llama-3.1-70B-Instruct-Q4_K_M.gguf of bartowski, at 83fb6e83: its vocabulary takes the rest."""
    model = load("llama-3.1-70b")
    tensors = file_bytes("q4_k_m", model, sf.inspect(model)["parameters"]["total"])
    assert 0 < 42_520_398_400 - tensors < 10e6


def types_of(name: str, model: str, leaf: str) -> list[str]:
    """The types of the matrices of a name, layer by layer."""
    return [kind for _, matrix, kind in File(name, load(model)).matrices() if matrix.names[0].endswith(leaf)]


def test_more_bits_go_to_the_ends_and_to_every_third_layer() -> None:
    more = [*range(4), 6, 9, 12, 15, 18, 21, 24, 27, *range(28, 32)]
    for leaf in ("v_proj", "down_proj"):
        found = types_of("q4_k_m", "llama-3.1-8b", leaf)
        assert [layer for layer, kind in enumerate(found) if kind == "q6_k"] == more
        assert set(found) == {"q4_k", "q6_k"}
    assert set(types_of("q4_k_m", "llama-3.1-8b", "gate_proj")) == {"q4_k"}
    assert types_of("q4_k_m", "llama-3.1-8b", "lm_head") == ["q6_k"]


@pytest.mark.parametrize(
    ("model", "name", "leaf", "expected"),
    [
        ("mixtral-8x7b", "q4_k_m", "v_proj", {"q8_0": 32}),
        ("mixtral-8x7b", "q4_k_m", "k_proj", {"q8_0": 32}),
        ("mixtral-8x7b", "q4_k_m", "o_proj", {"q5_k": 32}),
        ("llama-2-70b", "q4_k_m", "v_proj", {"q6_k": 40, "q5_k": 40}),
        ("llama-65b", "q4_k_s", "v_proj", {"q5_k": 4, "q4_k": 76}),
        ("falcon-7b", "q4_k_m", "down_proj", {"q6_k": 2, "q5_k": 14, "q4_k": 16}),
        ("qwen2-0.5b", "q4_k_m", "q_proj", {"q5_0": 24}),
        ("qwen2-0.5b", "q4_k_m", "down_proj", {"q6_k": 12, "q4_k": 12}),
        ("phi-3-mini-4k", "q4_k_m", "q_proj", {"q6_k": 16, "q4_k": 16}),
    ],
)
def test_models_have_rules_of_their_own(model: str, name: str, leaf: str, expected: dict[str, int]) -> None:
    """Eight experts, 70 B by its layers, Falcon, rows that are no whole blocks, queries beside keys and values."""
    assert dict(Counter(types_of(name, model, leaf))) == expected


def test_a_table_that_is_the_head_has_its_type() -> None:
    assert File("q4_k_m", load("llama-3.2-1b")).table() == "q6_k"
    assert File("q4_k_m", load("llama-3.1-8b")).table() == "q4_k"
    means = mean_bytes("q4_k_m", load("llama-3.2-1b"))
    assert means["head"] == means["embedding"]
    assert means["head"][0] == 210 / 256


@pytest.mark.parametrize("name", ["llama-3.1-8b", "llama-3.2-1b", "mixtral-8x7b", "qwen3-30b-a3b"])
def test_a_run_holds_what_the_file_has(name: str) -> None:
    """Weights on one device are the file's, but for norms and routers, which have 16 bits and not 32."""
    model = load(name)
    run: Any = sf.inference(model, "h200-sxm", sf.Plan(precision="q4_k_m"), batch=1, prompt=64, generate=8)
    weights = sum(size for term, size in run.memory_terms().items() if term.startswith("weights"))
    assert weights == pytest.approx(file_bytes("q4_k_m", model, sf.inspect(model)["parameters"]["total"]), rel=2e-3)
    assert any("as in a file of Q4_K_M" in text for text in run.warnings)


def test_fewer_bits_are_never_slower() -> None:
    model, times = load("llama-3.1-8b"), []
    for name in ("q2_k", "q3_k_m", "q4_k_m", "q5_k_m", "q6_k", "q8_0"):
        run = sf.inference(model, "a100-80gb-sxm", sf.Plan(precision=name), batch=1, prompt=64, generate=8)
        times.append(run.value("decode"))
    assert times == sorted(times)


def test_every_file_and_type_is_a_precision() -> None:
    assert {*FILES, *TYPES} <= set(PRECISIONS)
    assert set(FILES.values()) <= set(TYPES)
