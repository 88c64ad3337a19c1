"""Files of axolotl and LLaMA-Factory that train adapters, or a step of several models."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import symperf as sf
from symperf.cli import main
from symperf.common.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

AXOLOTL = """\
base_model: NousResearch/Llama-2-7b-hf
adapter: qlora
load_in_4bit: true
lora_r: 32
lora_alpha: 16
lora_dropout: 0.05
lora_target_linear: true
sequence_len: 1024
micro_batch_size: 2
gradient_accumulation_steps: 4
optimizer: paged_adamw_8bit
bf16: true
gradient_checkpointing: true
flash_attention: true
sample_packing: true
"""
LLAMA_FACTORY = """\
model_name_or_path: meta-llama/Llama-2-7b-hf
stage: dpo
finetuning_type: lora
lora_rank: 8
lora_target: q_proj,v_proj
freeze_vision_tower: true
cutoff_len: 512
per_device_train_batch_size: 1
gradient_accumulation_steps: 8
bf16: true
"""


def test_adapters_are_fields_of_the_plan(tmp_path: Path) -> None:
    (tmp_path / "a.yml").write_text(AXOLOTL, encoding="utf-8")
    plan, batch = sf.read_framework(tmp_path / "a.yml").plan(32, devices=1)
    assert (plan.lora_rank, plan.lora_targets, plan.base_precision) == (32, "all-linear", "nf4")
    assert (plan.optimizer, plan.recompute, batch) == ("adam-8bit", "full", 8)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.yml", AXOLOTL.replace("load_in_4bit", "load_in_8bit").replace("qlora", "lora")),
        ("f.yaml", LLAMA_FACTORY.replace("stage: dpo", "stage: sft") + "quantization_bit: 8\n"),
    ],
)
def test_a_base_in_eight_bits(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    plan, _ = sf.read_framework(tmp_path / name).plan(32, devices=1)
    assert plan.base_precision == "int8"


def test_adapters_of_encoders_alone_are_refused(tmp_path: Path) -> None:
    """LLaMA-Factory puts no adapters beside what its file freezes."""
    text = "model_name_or_path: Qwen/Qwen2.5-VL-7B-Instruct\nbf16: true\nfreeze_language_model: true\n"
    (tmp_path / "f.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match="freeze_language_model: found True, expected false"):
        sf.read_framework(tmp_path / "f.yaml")


@pytest.mark.parametrize("key", ["freeze_vision_tower", "freeze_multi_modal_projector"])
@pytest.mark.parametrize("model", ["Qwen/Qwen2.5-VL-7B-Instruct", "someone/of-whom-nothing-is-known"])
def test_adapters_of_encoders_are_refused(tmp_path: Path, key: str, model: str) -> None:
    """LLaMA-Factory puts adapters beside every part that its file does not freeze; all of one may be trained."""
    text = f"model_name_or_path: {model}\nbf16: true\n{key}: false\n"
    (tmp_path / "f.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=f"{key}: found False, expected true: adapters beside layers of encoders"):
        sf.read_framework(tmp_path / "f.yaml")
    (tmp_path / "f.yaml").write_text(f"{text}finetuning_type: full\n", encoding="utf-8")
    assert "language" not in sf.read_framework(tmp_path / "f.yaml").fields.get("freeze", "")
    (tmp_path / "f.yaml").write_text(text.replace(model, "meta-llama/Llama-2-7b-hf"), encoding="utf-8")
    assert sf.read_framework(tmp_path / "f.yaml").fields["lora_rank"] == 8


def test_a_stage_is_a_method(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "f.yaml").write_text(LLAMA_FACTORY, encoding="utf-8")
    asked = ["train", "--from", str(tmp_path / "f.yaml"), "-s", "h100-sxm", "--devices", "2", "--json"]
    assert main(asked) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["adapters"]["trainable_parameters"] == 4_194_304
    assert found["method"]["name"] == "dpo"
    assert found["method"]["sequences"] == 2 * 2 * 8
    assert [each["name"] for each in found["method"]["phases"]] == ["ref", "update_actor"]
    assert set(found["method"]["memory_bytes"]) == {"policy", "passing", "total", "reserved"}


@pytest.mark.parametrize("framework", ["megatron", "torchtitan", "deepspeed"])
def test_no_framework_whose_files_say_none_is_searched_with_adapters(
    framework: str, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["search", "llama-2-7b", "-s", "h100-sxm", "--devices", "1", "--batch", "1", "--sequence", "64"]
    assert main([*asked, "--require", "lora_rank=8", "--emit", framework]) == 2
    assert f"lora_rank: found 8, which {framework} does not run; expected none" in capsys.readouterr().err
    assert any(field == "lora_rank" for field, _ in sf.emit(sf.Plan(lora_rank=8), framework).notes)


def test_no_framework_whose_files_have_no_layout_is_searched_with_one(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["search", "gpt2", "-s", "h100-sxm", "--devices", "2", "--batch", "4", "--sequence", "64"]
    assert main([*asked, "--require", "layout=Et*6|t*6L", "--emit", "torchtitan"]) == 2
    assert "which torchtitan does not run; expected none" in capsys.readouterr().err


@pytest.mark.parametrize("model", ["llama-2-7b", "gpt-6.7b", "mixtral-8x7b"])
@pytest.mark.parametrize("targets", [None, "q,k,v,o", "mlp", "q,v"])
def test_adapters_in_the_modules_of_megatron_bridge(tmp_path: Path, model: str, targets: str | None) -> None:
    """What its modules hold as a whole is written and read back as the same layers; other adapters are a note."""
    loaded = sf.Model.load(model)
    plan = sf.Plan(lora_rank=8, lora_targets=targets, precision="bf16", attention="flash", dropout=False)
    sheet = sf.emit(plan, "megatron-bridge", model=loaded, batch=4, sequence=512)
    if targets == "q,v" or (targets == "mlp" and model == "mixtral-8x7b"):
        assert "lora_targets" in {field for field, _ in sheet.notes}
        return
    path = tmp_path / "run.txt"
    path.write_text(sheet.text, encoding="utf-8")
    told = sf.read_framework(path, model=True)
    assert {"peft.dim", "peft.target_modules"} <= set(told.read)
    found, _ = told.plan(32, devices=1)
    runs = [sf.training(loaded, "h100-sxm", each, batch=4, sequence=512) for each in (plan, found)]
    assert runs[0].structure.adapted == runs[1].structure.adapted
    assert runs[0].value("adapter_parameters") == runs[1].value("adapter_parameters")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("peft.target_modules=[linear_qkv]", "peft.target_modules need peft.dim"),
        ("peft.dim=8\npeft.target_modules=[linear_kqv]", "expected some of linear_qkv, linear_proj"),
        ("peft.dim=8\npeft.dora=true", "peft.dora: found True, expected peft.dim"),
    ],
)
def test_adapters_of_megatron_bridge_that_are_not_known(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "run.txt"
    path.write_text(f"model.tensor_model_parallel_size=1\ntrain.micro_batch_size=1\n{text}\n", encoding="utf-8")
    with pytest.raises(InputError, match=told):
        sf.read_framework(path, model=True)
