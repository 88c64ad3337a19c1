"""Files of frameworks as plans: what each key means, what is ignored, and what is refused."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from support.framework_cases import AXOLOTL, FILES, GPT3, LLAMA_FACTORY, MEGATRON, MIXTRAL

import symperf as sf
from symperf.common.errors import InputError
from symperf.export.emit import FRAMEWORKS
from symperf.export.megatron import OPTIONS
from symperf.export.megatron_bridge import SAME
from symperf.models.model import make_model
from symperf.plans.plan import Plan

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


WANTED: dict[str, tuple[int, dict[str, Any], Plan, int]] = {
    "run.sh": (
        80,
        {},
        Plan(
            tp=8,
            pp=4,
            dp=4,
            vpp=4,
            micro_batch=1,
            sequence_parallel=True,
            zero=1,
            recompute="full",
            recompute_layers=8,
            overlap_pp=1.0,
            precision="bf16",
            attention="flash",
            dropout=False,
            overlap_dp=1.0,
            overlap_parameters=1.0,
        ),
        256,
    ),
    "gpt3.txt": (
        96,
        {"devices": 64},
        Plan(
            tp=8,
            pp=8,
            vpp=3,
            overlap_pp=1.0,
            micro_batch=1,
            recompute="selective",
            sequence_parallel=True,
            precision="fp16",
            attention="eager",
            dropout=True,
        ),
        64,
    ),
    "mixtral.txt": (
        32,
        {"dp": 8},
        Plan(
            tp=2,
            dp=8,
            micro_batch=1,
            sequence_parallel=True,
            zero=3,
            precision="bf16",
            attention="flash",
            dropout=False,
            ep=8,
            expert_tp=2,
            cp=2,
            overlap_gather=0.0,
        ),
        128,
    ),
    "ds.json": (
        32,
        {},
        Plan(dp=8, micro_batch=2, recompute="full", zero=2, precision="bf16", overlap_dp=1.0, offload="optimizer"),
        64,
    ),
    "tt.toml": (
        80,
        {},
        Plan(
            tp=8,
            pp=4,
            dp=8,
            vpp=2,
            account_for="both",
            uneven_stages=True,
            micro_batch=2,
            zero=3,
            recompute="full",
            sequence_parallel=True,
            schedule="interleaved",
            precision="fp8",
            attention="flash",
            dropout=False,
            overlap_tp=0.0,
            overlap_dp=1.0,
            overlap_parameters=1.0,
            cp_kind="all-gather",
            zero_shards=4,
            loss="fused",
            compiled=True,
        ),
        64,
    ),
    "ax.yml": (
        32,
        {"devices": 8},
        Plan(
            dp=8,
            micro_batch=2,
            recompute="full",
            zero=3,
            precision="bf16",
            attention="flash",
            overlap_dp=1.0,
            overlap_parameters=1.0,
            optimizer="adam-8bit",
            offload="optimizer,weights",
        ),
        64,
    ),
    "lf.yaml": (
        32,
        {"devices": 4, "batch": 16},
        Plan(dp=4, micro_batch=1, recompute="full", zero=3, precision="bf16", attention="flash", overlap_dp=1.0),
        16,
    ),
}


@pytest.mark.parametrize("name", WANTED)
def test_each_file_is_the_plan_that_it_says(folder: Path, name: str) -> None:
    layers, over, plan, batch = WANTED[name]
    assert sf.read_framework(folder / name).plan(layers, **over) == (plan, batch)


@pytest.mark.parametrize(("text", "like"), [(MEGATRON, "llama-2-70b"), (GPT3, "gpt3-175b"), (MIXTRAL, "mixtral-8x7b")])
def test_megatron_describes_the_model_that_it_trains(tmp_path: Path, text: str, like: str) -> None:
    """As many parameters, of the same kinds, as the published configuration."""
    (tmp_path / "run.txt").write_text(text, encoding="utf-8")
    found = sf.read_framework(tmp_path / "run.txt").model
    assert isinstance(found, dict)
    mine, other = make_model("x", "x", found, "x"), sf.Model.load(like)
    counts = [sf.inspect(each)["parameters"] for each in (mine, other)]
    assert counts[0] == counts[1]
    assert mine.architecture == other.architecture


def test_models_of_the_hub_are_those_of_the_catalogue(folder: Path) -> None:
    found = {name: sf.read_framework(folder / name).model for name in ("ax.yml", "lf.yaml", "tt.toml", "ds.json")}
    assert found == {"ax.yml": "llama-3.1-8b", "lf.yaml": "llama-3-8b", "tt.toml": "llama-3.1-70b", "ds.json": None}


def test_what_is_not_read_is_told_with_its_reason(folder: Path) -> None:
    found = sf.read_framework(folder / "ax.yml")
    assert found.ignored["liger_rope"].startswith("a choice of kernels")
    assert found.ignored["special_tokens.pad_token"] == "costs nothing in a step"
    assert found.read["micro_batch_size"] == 2
    assert "wandb_project" not in found.ignored  # null says nothing
    found = sf.read_framework(folder / "lf.yaml")
    assert found.ignored["z3.json: train_batch_size"].startswith("auto")
    assert any("does not pack" in note for note in found.notes)
    assert sf.read_framework(folder / "gpt3.txt").notes[0].startswith("dropout: 0.1")


def test_adapters_are_fields_of_the_plan(tmp_path: Path) -> None:
    lora = (
        "adapter: qlora\nlora_r: 16\nlora_target_modules: [q_proj, v_proj]\nload_in_4bit: true\npeft_use_dora: true\n"
    )
    (tmp_path / "a.yml").write_text(AXOLOTL.replace("fsdp_offload_params: true", "") + lora, encoding="utf-8")
    plan, _ = sf.read_framework(tmp_path / "a.yml").plan(32, devices=8)
    assert (plan.lora_rank, plan.lora_targets, plan.dora, plan.base_precision) == (16, "q,v", True, "nf4")
    text = LLAMA_FACTORY.replace("finetuning_type: full", "lora_target: all\nquantization_bit: 4").replace(
        "z3.json", ""
    )
    (tmp_path / "l.yaml").write_text(text, encoding="utf-8")
    plan, _ = sf.read_framework(tmp_path / "l.yaml").plan(32, devices=1)
    assert (plan.lora_rank, plan.lora_targets, plan.base_precision) == (
        8,
        Plan(lora_rank=8, lora_targets="all-linear").lora_targets,
        "nf4",
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("gradient_checkpointing: true", ("full", None)),
        ("gradient_checkpointing: offload", ("full", "activations")),
        ("gradient_checkpointing: true\nactivation_offloading: legacy", ("full", "activations")),
        ("activation_offloading: true", (None, "activations")),
    ],
)
def test_activations_on_the_host_are_recomputed_only_where_the_file_says_so(
    tmp_path: Path, text: str, told: tuple[str | None, str | None]
) -> None:
    path = tmp_path / "a.yml"
    path.write_text(f"base_model: meta-llama/Llama-2-7b-hf\nmicro_batch_size: 1\n{text}\n", encoding="utf-8")
    fields = sf.read_framework(path).fields
    assert (fields.get("recompute"), fields.get("offload")) == told


@pytest.mark.parametrize(
    ("text", "precision"),
    [
        ("bf16: false\ntf32: true", "tf32"),
        ("bf16: false", "fp32"),
        ("bf16: true\ntf32: true", "bf16"),
        ("bf16: false\nfloat32: true", "fp32"),
    ],
)
def test_products_in_32_bits_are_rounded_where_the_file_says_so(tmp_path: Path, text: str, precision: str) -> None:
    """tf32 tells how products of 32 bits run, and nothing of those of 16."""
    path = tmp_path / "a.yml"
    path.write_text(f"base_model: meta-llama/Llama-2-7b-hf\nmicro_batch_size: 1\n{text}\n", encoding="utf-8")
    assert sf.read_framework(path).fields["precision"] == precision
    text = text.replace("\nfloat32: true", "")
    path.write_text(f"model_name_or_path: meta-llama/Llama-2-7b-hf\nfinetuning_type: full\n{text}\n", encoding="utf-8")
    assert sf.read_framework(path).fields["precision"] == precision


@pytest.mark.parametrize(
    ("text", "precision", "noted"),
    [
        ("", "bf16", ""),
        ("bf16: true\nfloat32: true", "bf16", "float32 nowhere"),
        ("float32: true", "bf16", "float32 nowhere"),
        ("fp16: true", "fp16", ""),
        ("float16: true", "bf16", "wins over float16"),
        ("bf16: auto\nfp16: true", "fp16", ""),
        ("bf16: true\nfp16: true", "bf16", ""),
        ("bf16: false\nload_in_8bit: true\nadapter: lora\nlora_r: 8", "fp16", ""),
        ("bf16: false\nfp16: true\nfloat32: true", "fp16", "float32 nowhere"),
        ("bf16: false\nbfloat16: true\nfp16: true", "bf16", ""),
        ("bf16: false\nfloat16: true", "fp16", ""),
        ("bf16: false\nfloat32: true", "fp32", ""),
    ],
)
def test_formats_are_chosen_in_axolotls_order(tmp_path: Path, text: str, precision: str, noted: str) -> None:
    """That of its resolve_dtype: "auto" gives way to fp16, and says so where it does not to float16."""
    path = tmp_path / "a.yml"
    path.write_text(f"base_model: gpt2\nmicro_batch_size: 1\n{text}\n", encoding="utf-8")
    found = sf.read_framework(path)
    assert found.fields["precision"] == precision
    assert [note for note in found.notes if note.startswith("precision: ")] == [
        note for note in found.notes if noted and noted in note
    ]
    assert bool(noted) == any(note.startswith("precision: ") for note in found.notes)


@pytest.mark.parametrize(("text", "precision"), [("", "bf16"), ("bf16: false", "tf32")])
def test_tf32_by_itself_is_on(tmp_path: Path, text: str, precision: str) -> None:
    """Axolotl's "auto" is on where a device has it."""
    path = tmp_path / "a.yml"
    path.write_text(f"base_model: gpt2\nmicro_batch_size: 1\ntf32: auto\n{text}\n", encoding="utf-8")
    assert sf.read_framework(path).fields["precision"] == precision


@pytest.mark.parametrize(
    ("model", "text", "frozen"),
    [
        ("Qwen/Qwen2.5-VL-7B-Instruct", "", "vision,projector"),
        ("Qwen/Qwen2.5-VL-7B-Instruct", "freeze_vision_tower: false", "projector"),
        ("Qwen/Qwen2.5-VL-7B-Instruct", "freeze_language_model: true", "vision,projector,language"),
        ("meta-llama/Llama-2-7b-hf", "", None),
        ("meta-llama/Llama-2-7b-hf", "freeze_vision_tower: true", None),
    ],
)
def test_encoders_are_frozen_by_default(tmp_path: Path, model: str, text: str, frozen: str | None) -> None:
    """LLaMA-Factory trains towers and projectors only where its file says so, and ignores them in models without."""
    path = tmp_path / "l.yaml"
    path.write_text(f"model_name_or_path: {model}\nfinetuning_type: full\nbf16: true\n{text}\n", encoding="utf-8")
    assert sf.read_framework(path).fields.get("freeze") == frozen


def test_every_option_that_is_written_is_read() -> None:
    """Each option of the emitters is known to the readers."""
    from symperf.frameworks import bridge, megatron

    assert set(SAME) <= set(OPTIONS)
    for name in OPTIONS:
        texts = OPTIONS[name].choices or ("EttL",)
        value: Any = {str: texts[-1], int: 1, bool: True, float: 0.0, list: ["core_attn"]}[OPTIONS[name].kind]
        others = {"--bf16": True, "--num-layers": 2} if name != "--fp16" else {"--num-layers": 2}
        found = megatron.read({**others, name: value}, "f", (), model=True)
        assert name in found.read or name in found.ignored, name
    assert set(bridge.FLAGS.values()) >= set(SAME)
    assert set(FRAMEWORKS) >= {"megatron", "megatron-bridge", "torchtitan", "deepspeed"}


@pytest.mark.parametrize(
    ("layout", "want"),
    [
        ("Et*4|t*4|t*4|t*4L", {}),
        ("Et*5|t*4|t*4|t*3L", {"first_stage_layers": 5, "last_stage_layers": 3}),
        ("Et*4|t*4|t*4|t*3L", {"uneven_stages": True}),
        ("E|t*4|t*4|L", {"layout": "E|t*4|t*4|L"}),
        ("Et*4|t*4|t*4m|L", {"layout": "Et*4|t*4|t*4m|L"}),
        ("Et*4|t*4|t*4|t*4mL", {}),
    ],
)
def test_a_layout_is_what_says_the_same(tmp_path: Path, layout: str, want: dict[str, Any]) -> None:
    """A field that only counts layers stands for no layout whose ends or modules are elsewhere."""
    text = f"--pipeline-model-parallel-size 4 --bf16 --pipeline-model-parallel-layout '{layout}'"
    (tmp_path / "run.txt").write_text(text, encoding="utf-8")
    plan, _ = sf.read_framework(tmp_path / "run.txt", model=True).plan(16, dp=1)
    ways = ("layout", "uneven_stages", "first_stage_layers", "last_stage_layers")
    assert {name: getattr(plan, name) for name in ways if getattr(plan, name)} == {
        name: Plan(pp=4, layout=value).layout if name == "layout" else value for name, value in want.items()
    }


def test_modules_that_are_written_are_read(tmp_path: Path) -> None:
    """Each is a word of its own, as argparse wants the values of an option that has several."""
    plan = Plan(recompute="selective", recompute_modules="core_attn,mlp", precision="bf16", attention="flash")
    text = sf.emit(plan, "megatron").text
    assert "--recompute-modules core_attn mlp\n" in text
    (tmp_path / "run.txt").write_text(text, encoding="utf-8")
    found, _ = sf.read_framework(tmp_path / "run.txt", model=True).plan(32, dp=1)
    assert found.recompute_modules == plan.recompute_modules


def test_both_names_of_the_kernels_of_deepep_are_read(tmp_path: Path) -> None:
    text = "--expert-model-parallel-size 2 --moe-token-dispatcher-type flex --moe-enable-deepep"
    (tmp_path / "run.txt").write_text(f"{text} --moe-flex-dispatcher-backend deepep", encoding="utf-8")
    assert sf.read_framework(tmp_path / "run.txt", model=True).stack == "deepep"


@pytest.mark.parametrize("told", ["", ', "tensor_parallel": {"autotp_size": 2}'])
def test_deepspeed_beside_a_file_leaves_its_tensor_parallelism(tmp_path: Path, told: str) -> None:
    """What only one of two files says stands, and what both say is to be one number."""
    (tmp_path / "z.json").write_text(f'{{"zero_optimization": {{"stage": 1}}{told}}}', encoding="utf-8")
    text = "base_model: gpt2\nmicro_batch_size: 1\ndeepspeed: z.json\ntensor_parallel_size: "
    (tmp_path / "a.yml").write_text(f"{text}2\n", encoding="utf-8")
    plan, _ = sf.read_framework(tmp_path / "a.yml").plan(12, devices=4)
    assert (plan.tp, plan.dp, plan.zero) == (2, 2, 1)
    if told:
        (tmp_path / "a.yml").write_text(f"{text}4\n", encoding="utf-8")
        with pytest.raises(InputError, match=r"tp is 4, and 2 in z.json, expected one"):
            sf.read_framework(tmp_path / "a.yml")


def test_flags_override_the_file(folder: Path, call: Callable[[Any], Any]) -> None:
    ask = ["train", "llama-2-7b", "-s", "a100-80gb-sxm", "--from", str(folder / "ds.json"), "--sequence", "1024"]
    code, out, err = call([*ask, "--json"])
    assert (code, err) == (0, "")
    plain = json.loads(out)
    plan = Plan(dp=8, micro_batch=2, recompute="full", zero=2, precision="bf16", overlap_dp=1.0, offload="optimizer")
    want = sf.training("llama-2-7b", "a100-80gb-sxm", plan, batch=64, sequence=1024, stack=plain["from"]["stack"])
    assert plain["time_s"] == want.value("time")
    assert plain["from"]["framework"] == "deepspeed"
    assert plain["from"]["read"]["zero_optimization.stage"] == 2
    code, out, _ = call([*ask, "--zero", "0", "--overlap-dp", "0", "--offload", "none", "--tp", "1", "--json"])
    plan = Plan(dp=8, micro_batch=2, recompute="full", precision="bf16")
    want = sf.training("llama-2-7b", "a100-80gb-sxm", plan, batch=64, sequence=1024, stack=plain["from"]["stack"])
    assert (code, json.loads(out)["time_s"]) == (0, want.value("time"))
    code, out, _ = call(ask)
    assert code == 0
    assert "read from ds.json (deepspeed)" in out
    code, out, err = call(["train", "-s", "h100-sxm", "--from", str(folder / "run.sh"), "--json"])
    assert (code, json.loads(out)["devices"]) == (0, 128)
