"""Quantized checkpoints: bytes by class of modules, what files may say, and what is refused."""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import symperf as sf
from symperf.common.errors import InputError
from symperf.models.module_patterns import Names, compile_regex, matches_glob
from symperf.models.quantization import Stored
from symperf.runs.inspection import inspect

GOLDEN = Path(__file__).parents[1] / "golden2"
OURS = {"norms_convolutions_scalars": "others"}
LLAMA = {
    "model_type": "llama",
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_attention_heads": 4,
    "num_hidden_layers": 3,
    "vocab_size": 1000,
    "tie_word_embeddings": False,
}
GROUP = {"weights": {"num_bits": 4, "type": "int", "group_size": 128, "symmetric": True}, "targets": ["Linear"]}


def load(tmp_path: Path, quantization: Any, beside: Any = None) -> sf.Model:
    data = LLAMA if quantization is None else LLAMA | {"quantization_config": quantization}
    (tmp_path / "config.json").write_text(json.dumps(data))
    if beside is not None:
        (tmp_path / "hf_quant_config.json").write_text(json.dumps(beside))
    return sf.Model.load(tmp_path)


def golden_rows() -> dict[str, dict[str, list[int]]]:
    found: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(lambda: [0, 0, 0]))
    with (GOLDEN / "quantized.csv").open() as file:
        for row in csv.DictReader(file):
            total = found[row["model"]][OURS.get(row["module_class"], row["module_class"])]
            for i, name in enumerate(("params", "weight_bytes", "scale_bytes")):
                total[i] += int(row[name])
    return found


@pytest.mark.parametrize("model", golden_rows())
def test_bytes_by_class_are_those_of_the_goldens(model: str) -> None:
    expected = golden_rows()[model]
    total = expected.pop("TOTAL")
    found: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    answer = inspect(sf.Model.load(GOLDEN / "configs" / f"{model}.json"))["checkpoint"]
    for row in answer["classes"]:
        for i, name in enumerate(("parameters", "weight_bytes", "scale_bytes")):
            found[row["module_class"]][i] += row[name]
    assert found == expected
    assert answer["bytes"] == total[1] + total[2]


@pytest.mark.parametrize(
    ("quantization", "formats"),
    [
        ({"quant_method": "fp8"}, {"fp8"}),
        ({"quant_method": "fp8", "weight_block_size": [64, 128]}, {"fp8-block"}),
        ({"quant_method": "fbgemm_fp8", "modules_to_not_convert": ["model.layers.0.self_attn"]}, {"fp8"}),
        ({"quant_method": "awq", "bits": 4, "group_size": 64, "zero_point": True}, {"int4-weight"}),
        ({"quant_method": "gptq", "bits": 8, "group_size": -1}, {"int8-weight"}),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, {"int4-weight"}),
        ({"quant_method": "bitsandbytes", "load_in_8bit": True}, {"int8-weight"}),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4", "exclude_modules": ["lm_head"]}, {"fp4"}),
        (
            {"quant_method": "compressed-tensors", "config_groups": {"g": GROUP}, "ignore": ["re:.*head"]},
            {"int4-weight"},
        ),
    ],
)
def test_methods_say_a_format_and_no_head(tmp_path: Path, quantization: dict[str, Any], formats: set[str]) -> None:
    model = load(tmp_path, quantization)
    answer = inspect(model)
    rows = answer["checkpoint"]["classes"]
    assert {row["format"] for row in rows} - {"bf16"} == formats
    assert next(row["format"] for row in rows if row["module_class"] == "lm_head") == "bf16"
    assert sum(row["parameters"] for row in rows) == answer["parameters"]["total"]


def test_a_mixture_names_the_format_of_each_module(tmp_path: Path) -> None:
    each = {f"model.layers.{i}.mlp.{n}_proj": {"quant_algo": "FP8"} for i in range(3) for n in ("gate", "up", "down")}
    model = load(tmp_path, {"quant_algo": "MIXED_PRECISION", "quantized_layers": each})
    formats = {(r["module_class"], r["format"]) for r in inspect(model)["checkpoint"]["classes"]}
    assert ("dense_mlp", "fp8") in formats
    assert ("attention", "bf16") in formats


def test_a_file_beside_the_config_says_it_too(tmp_path: Path) -> None:
    model = load(
        tmp_path, None, {"producer": {}, "quantization": {"quant_algo": "FP8", "exclude_modules": ["lm_head"]}}
    )
    assert model.quantization is not None
    assert dict(model.quantization.formats)["mlp"].name == "fp8"


@pytest.mark.parametrize(
    ("quantization", "words"),
    [
        ({"quant_method": "gptqq"}, "quant_method"),
        ({"quant_method": "gptq", "bits": 3.5}, "bits"),
        ({"quant_method": "gptq", "bits": 4, "group_size": -64}, "group_size"),
        ({"quant_method": "fp8", "weight_block_size": [128]}, "weight_block_size"),
        ({"quant_method": "fp8", "weight_block_sizes": [128, 128]}, "weight_block_size"),
        ({"quant_method": "fp8", "ignored_layers": ["re:(a+)+b"]}, "pattern"),
        ({"quant_method": "fp8", "ignored_layers": ["re:("]}, "regular expression"),
        ({"quant_method": "fp8", "ignored_layers": ["*"]}, "no module"),
        ({"quant_method": "bitsandbytes"}, "load_in_4bit"),
        ({"quant_method": "modelopt", "quant_algo": "FP9"}, "FP8"),
        (
            {"quant_method": "compressed-tensors", "config_groups": {"g": GROUP | {"targets": ["re:nowhere"]}}},
            "no module",
        ),
        ({"quant_method": "compressed-tensors", "config_groups": {"g": GROUP | {"targets": []}}}, "targets"),
        ("fp8", "an object"),
    ],
)
def test_what_is_refused_in_one_line(tmp_path: Path, quantization: Any, words: str) -> None:
    with pytest.raises(InputError, match=words) as error:
        load(tmp_path, quantization)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("body", ["(a|b)*c", "(?=a)", r"(a)\1", "a{3}", "x" * 201, "a*b*c*d*e*"])
def test_patterns_that_might_take_long_are_refused(body: str) -> None:
    with pytest.raises(InputError, match="take long"):
        compile_regex(body, "file")


@given(st.text("ab*", max_size=8), st.text("ab", max_size=8))
def test_globs_match_as_the_standard_library_has_them(pattern: str, text: str) -> None:
    import fnmatch

    assert matches_glob(pattern, text) == fnmatch.fnmatchcase(text, pattern)


def test_names_are_runs_of_components() -> None:
    names = Names.of(["model.layers.3.mlp", "gate", "mtp*"], "file")
    assert "layers.3.mlp.up_proj" in names
    assert "layers.3.mlp" in names
    assert "layers.30.mlp.up_proj" not in names
    assert "layers.1.mlp.gate_proj" not in names
    assert "layers.1.mlp.gate" in names


@given(st.integers(1, 4096), st.integers(1, 4096), st.sampled_from([(128, 128), (1, 16), (1, 0), (0, 0)]))
def test_scales_of_a_matrix_are_those_of_its_blocks(rows: int, columns: int, block: tuple[int, int]) -> None:
    stored = Stored("x", 8, block, 4)
    down, across = block[0] or rows, block[1] or columns
    starts = len(range(0, rows, down)) * len(range(0, columns, across))
    assert stored.scale_bytes(rows, columns) == 4 * starts
    assert stored.weight_bytes(rows, columns) == rows * columns


def test_a_plan_that_names_a_format_overrules_the_file(tmp_path: Path) -> None:
    system, plan = sf.System.load("h100-sxm"), sf.Plan(precision="fp8")
    work = {"batch": 1, "prompt": 64, "generate": 4}
    stored = sf.inference(
        load(tmp_path, {"quant_method": "fp8", "weight_block_size": [128, 128]}), system, plan, **work
    )
    plain = sf.inference(load(tmp_path, None), system, plan, **work)
    assert stored.value("time") == plain.value("time")
    assert stored.value("memory") == plain.value("memory")
