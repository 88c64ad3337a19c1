"""Files of frameworks that are refused: one line that names the place, and nothing of them is run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from support.framework_cases import AXOLOTL, DEEPSPEED, LLAMA_FACTORY, MEGATRON, TORCHTITAN

import symperf as sf
from symperf.common.errors import InputError
from symperf.frameworks.keys import Keys
from symperf.frameworks.shell import shell_options

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

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
    ("f.toml", TORCHTITAN.replace('"full"', '"selective"'), [], "recompute_layers: counts layers of each stage"),
    ("f.toml", TORCHTITAN.replace('"full"', '"memory_budget"'), [], "expected full, none or selective"),
    (
        "f.toml",
        TORCHTITAN.replace('"full"', '"selective"\nselective_ac_option = "mlp"'),
        [],
        "expected op, or of how many",
    ),
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
    ("f.txt", MEGATRON + "--distribute-saved-activations\n", [], "split over tp are not modelled"),
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
