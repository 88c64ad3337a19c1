"""Files of frameworks as plans: what each key means, what is ignored, and what is refused."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from support.framework_cases import AXOLOTL, DEEPSPEED, FILES, GPT3, LLAMA_FACTORY, MEGATRON, MIXTRAL, TORCHTITAN

import symperf as sf
from symperf.common.errors import InputError
from symperf.export.emit import FRAMEWORKS
from symperf.export.megatron import OPTIONS
from symperf.export.megatron_bridge import SAME
from symperf.frameworks.keys import Keys
from symperf.frameworks.shell import shell_options
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
        ("float32: true", "fp32"),
    ],
)
def test_products_in_32_bits_are_rounded_where_the_file_says_so(tmp_path: Path, text: str, precision: str) -> None:
    """tf32 tells how products of 32 bits run, and nothing of those of 16."""
    path = tmp_path / "a.yml"
    path.write_text(f"base_model: meta-llama/Llama-2-7b-hf\nmicro_batch_size: 1\n{text}\n", encoding="utf-8")
    assert sf.read_framework(path).fields["precision"] == precision
    text = text.replace("float32: true", "bf16: false")
    path.write_text(f"model_name_or_path: meta-llama/Llama-2-7b-hf\nfinetuning_type: full\n{text}\n", encoding="utf-8")
    assert sf.read_framework(path).fields["precision"] == precision


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


BAD: list[tuple[str, str, list[str], str]] = [
    ("f.json", DEEPSPEED.replace('"gradient_clipping"', '"gradient_cliping"'), [], "did you mean gradient_clipping or"),
    ("f.json", DEEPSPEED.replace('"stage": 2', '"stage": "two"'), [], "stage: found 'two', expected a whole number"),
    ("f.json", DEEPSPEED.replace('"stage": 2', '"stage": 7'), [], "found 7, expected 0 or 1 or 2 or 3"),
    ("f.json", DEEPSPEED.replace("64", "65"), [], "a batch of 65 is not divisible by 2 sequences x 4 micro-batches"),
    ("f.json", DEEPSPEED.replace('"cpu"', '"nvme"'), ["--sequence", "64"], "nvme_bandwidth"),
    ("f.json", '{"zero_optimization": {}, "base_model": "x"}', [], "keys of deepspeed (zero_optimization) and axolotl"),
    ("f.json", '{"a": 1}', [], "found a, expected options of Megatron-LM"),
    ("f.json", "[1]", [], "expected an object"),
    ("f.json", '{"train_batch_size": 1, "train_batch_size": 2}', [], "comes twice"),
    ("f.json", "{", [], "not valid JSON"),
    ("f.json", DEEPSPEED, ["--batch", "8", "--devices", "3", "--tp", "2"], "3 devices, but tp x pp x cp = 2"),
    ("f.toml", TORCHTITAN.replace("max_norm", "max_nrom"), [], "did you mean training.max_norm"),
    ("f.toml", TORCHTITAN.replace('"full"', '"selective"'), [], "expected full or none, or selective by op"),
    ("f.toml", TORCHTITAN.replace("Interleaved1F1B", "ZBVZeroBubble"), [], "others are not modelled"),
    ("f.toml", TORCHTITAN.replace("= 8\nseq", "= 7\nseq"), [], "local_batch_size 7 is not divisible by"),
    ("f.toml", TORCHTITAN + "[experimental]\npipeline_parallel_degree = 4\n", [], "unknown key 'experimental.pipeline"),
    ("f.toml", "[parallelism\n", [], "not valid TOML"),
    ("f.yml", AXOLOTL.replace("sample_packing", "sampel_packing"), [], "did you mean sample_packing"),
    ("f.yml", AXOLOTL + "model_name_or_path: x\n", [], "axolotl (base_model) and llama-factory (model_name_or_path)"),
    ("f.yml", AXOLOTL, [], "does not tell the number of devices; add --devices N, or --dp N"),
    (
        "f.yml",
        AXOLOTL.replace("NousResearch/Meta-Llama-3.1-8B", "nobody/none"),
        ["--devices", "8"],
        "no such file and no model of the catalogue",
    ),
    ("f.yml", AXOLOTL.replace("flash_attention: true", "flash_attention: 1"), [], "expected true or false"),
    ("f.yml", AXOLOTL + "eager_attention: true\n", [], "expected one kernel of attention"),
    ("f.yml", AXOLOTL + "rl: orpo\n", [], "rl: found 'orpo', expected dpo or ipo or grpo"),
    ("f.yml", AXOLOTL + "adapter: lora\n", [], "adapter lora needs lora_r, found none"),
    ("f.yml", AXOLOTL + "load_in_8bit: true\n", [], "need an adapter, found none"),
    ("f.yml", AXOLOTL + "deepspeed: no.json\n", [], "no such file 'no.json' beside it"),
    ("f.yaml", LLAMA_FACTORY.replace("stage: sft", "stage: stf"), [], "found 'stf', expected"),
    ("f.yaml", LLAMA_FACTORY + "use_galore: true\n", [], "GaLore is not modelled"),
    ("f.yaml", "- a\n", [], "expected keys and values"),
    ("f.txt", MEGATRON.replace("--sequence-parallel", "--sequence-paralel"), [], "did you mean --sequence-parallel"),
    ("f.txt", MEGATRON.replace("$TP", "eight"), [], "found 'eight', expected a whole number"),
    ("f.txt", MEGATRON.replace("TP=8\n", ""), [], "found '$TP', expected a whole number"),
    ("f.txt", MEGATRON + "--tensor-model-parallel-size 4\n", [], "found 8 and 4, expected one of them"),
    ("f.txt", MEGATRON + "--zero-stage 2\n", [], "settings of two frameworks are mixed"),
    ("f.txt", MEGATRON.replace("--vocab-size 32000", ""), [], "describes a model without --vocab-size"),
    ("f.txt", MEGATRON.replace("--swiglu", ""), [], "name the model"),
    ("f.txt", MEGATRON + "--multi-latent-attention\n", [], "name it before the options"),
    ("f.txt", MEGATRON + "--fp32-residual-connection\n", [], "but a residual stream in 32 bits is not modelled"),
    ("f.yml", AXOLOTL + "activation_offloading: disk\n", [], "activation_offloading: found 'disk', expected true"),
    ("f.yml", AXOLOTL.replace("checkpointing: true", "checkpointing: offload_disk"), [], "checkpointing: found 'offl"),
    ("f.yml", AXOLOTL.replace("checkpointing: true", "checkpointing: [1]"), [], "checkpointing: found [1], expected"),
    ("f.txt", "mixed_precision=[1]\ntrain.micro_batch_size=1\n", ["--devices", "1"], "found [1], expected a text"),
    ("f.txt", MEGATRON + "'", [], "not a command line"),
    ("f.txt", "--bf16 --micro-batch-size 1\n", ["--devices", "8"], "names no model that is known"),
    ("f.txt", "model.tensor_model_parallel_size=2\nmodel.oops\n", [], "found"),
    ("f.txt", "mixed_precision=bf16\ntrain.micro_batch_size=1\n", ["--devices", "1"], "mixed_precision: found 'bf16'"),
]


@pytest.mark.parametrize(("name", "text", "more", "told"), BAD)
def test_bad_files_are_one_line(
    tmp_path: Path, call: Callable[[Any], Any], name: str, text: str, more: list[str], told: str
) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    model = ["gpt-6.7b"] if name == "f.json" else []
    code, out, err = call(["train", *model, "-s", "h100-sxm", "--from", str(tmp_path / name), *more])
    assert (code, out) == (2, "")
    assert told in err
    assert len(err.splitlines()) == 1


def test_what_is_missing_is_named(tmp_path: Path, call: Callable[[Any], Any]) -> None:
    """No file, no model, no batch, devices without a file; a key that is ignored has to be there."""
    (tmp_path / "f.json").write_text(DEEPSPEED, encoding="utf-8")
    path = str(tmp_path / "f.json")
    for words, told in (
        (["gpt-6.7b", "-s", "h100-sxm", "--from", "nowhere.json"], "nowhere.json: no such file"),
        (["-s", "h100-sxm", "--from", path], "f.json names no model that is known"),
        (["gpt-6.7b", "--from", path], "arguments are required: -s/--system"),
        (["gpt-6.7b", "-s", "h100-sxm"], "arguments are required: --batch"),
        ([], "arguments are required: model, -s/--system, --batch"),
        (["gpt-6.7b", "-s", "h100-sxm", "--batch", "8", "--devices", "8"], "--devices, which goes with --from"),
        (["gpt-6.7b", "-s", "h100-sxm", "--from", path, "--ignore-key", "oops"], "there is no key 'oops'"),
    ):
        code, out, err = call(["train", *words])
        assert (code, out, len(err.splitlines())) == (2, "", 1)
        assert told in err


def test_an_ignored_key_is_read_as_if_it_were_not_there(tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    path.write_text(DEEPSPEED.replace('"gradient_clipping"', '"new_thing"'), encoding="utf-8")
    found = sf.read_framework(path, ignore_keys=["new_thing", "zero_optimization"])
    assert found.fields["zero"] == 0
    assert found.ignores("new_thing")
    assert found.ignored["zero_optimization.stage"] == "as asked for (--ignore-key)"
    path = tmp_path / "f.txt"
    path.write_text("mixed_precision=bf16_mixed\nmodel.new_thing=3\n", encoding="utf-8")
    assert sf.read_framework(path, ignore_keys=["model.new_thing"], model=True).ignores("model.new_thing")


def test_scripts_are_not_run() -> None:
    """Names that the script sets are filled in; what a shell would compute stays as it is written."""
    text = "A=2\nB=$A\nC=$((A*2))\nrun --x $B --y $C --z `id` --w $(id) --v ${D:-7} --flag pretrain.py; run2 --u 1"
    found = shell_options(text, "f", ("--flag",), ())
    assert found == {"--x": 2, "--y": "$((A*2))", "--z": "`id`", "--w": "$(id)", "--v": 7, "--flag": True, "--u": 1}


def test_two_names_of_one_key_agree() -> None:
    keys = Keys("x", "f", {"a": 1, "b": 2})
    with pytest.raises(InputError, match="a is 1 and b is 2, expected one"):
        keys.count("a", "b")


@pytest.mark.parametrize(
    ("flags", "hidden"),
    [
        ("--num-virtual-stages-per-pipeline-rank 2", 1.0),
        ("--num-virtual-stages-per-pipeline-rank 2 --no-overlap-p2p-communication", 0.0),
        ("", 0.0),
    ],
)
def test_megatron_hides_transfers_of_interleaved_stages_unless_told_not_to(
    tmp_path: Path, flags: str, hidden: float
) -> None:
    (tmp_path / "run.txt").write_text(f"--pipeline-model-parallel-size 4 {flags}\n", encoding="utf-8")
    assert sf.read_framework(tmp_path / "run.txt", model=True).plan(32, devices=4)[0].overlap_pp == hidden


def test_fused_sorting_of_tokens_adds_nothing_atomically(tmp_path: Path) -> None:
    (tmp_path / "run.txt").write_text("--moe-permute-fusion\n", encoding="utf-8")
    assert sf.read_framework(tmp_path / "run.txt", model=True).values == {"scatter_latency": 0.0}
