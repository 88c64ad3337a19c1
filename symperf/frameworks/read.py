"""`symperf.read_framework`: a file of a training framework as a plan, told by its keys whose it is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ..common.errors import InputError
from ..common.files import decode, read_file
from . import axolotl, bridge, deepspeed, llama_factory, megatron, torchtitan
from .parsed import parse

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping

    from .settings import FrameworkSettings

LARGEST: Final = 1_000_000
EXPECTED: Final = (
    "options of Megatron-LM (or of Megatron Bridge), a JSON of DeepSpeed, a TOML of torchtitan, or a YAML of axolotl "
    "or LLaMA-Factory"
)
SIGNS: Final[dict[str, tuple[str, ...]]] = {
    "deepspeed": (
        *("train_batch_size", "train_micro_batch_size_per_gpu", "zero_optimization", "activation_checkpointing"),
        *("tensor_parallel", "zero_allow_untested_optimizer", "steps_per_print", "wall_clock_breakdown"),
    ),
    "torchtitan": ("parallelism", "activation_checkpoint", "job", "lr_scheduler", "training"),
    "axolotl": ("base_model", "micro_batch_size", "sequence_len", "adapter", "sample_packing", "lora_r", "datasets"),
    "llama-factory": (
        *("model_name_or_path", "finetuning_type", "stage", "cutoff_len", "per_device_train_batch_size", "template"),
        *("lora_target", "dataset_dir"),
    ),
}
"""Keys that only one framework has at the top."""


def read_framework(
    source: str | os.PathLike[str], *, ignore_keys: Iterable[str] = (), model: bool = False
) -> FrameworkSettings:
    """The settings in a file of a training framework.

    Args:
        source: the file: a command line or a script with options of Megatron-LM, overrides of Megatron Bridge, a JSON
            of DeepSpeed, a TOML of torchtitan, a YAML of axolotl or of LLaMA-Factory. Nothing in it is run.
        ignore_keys: keys that are read as if they were not there.
        model: whether the model is named elsewhere, so that the file need not describe one.

    Returns:
        The plan, the batch, the sequence and the model as far as the file says them, and what was not read.

    Raises:
        InputError: no such file, a file of no framework or of two, a wrong value, a key that is not known.
    """
    path = Path(source)
    label = path.name
    text = decode(read_file(path, label, EXPECTED, LARGEST), label, EXPECTED)
    form, data = parse(text, label, path.suffix.lower())
    if form == "words":
        return megatron.read_text(text, label, ignore_keys, model=model)
    if form == "overrides":
        return bridge.read(data, label, ignore_keys, model=model)
    return _tables(data, label, tuple(ignore_keys), path.parent)


def _tables(data: Mapping[str, Any], label: str, ignore: tuple[str, ...], folder: Path) -> FrameworkSettings:
    signs = {name: [key for key in keys if key in data and key not in ignore] for name, keys in SIGNS.items()}
    found = [name for name, keys in signs.items() if keys]
    if not found:
        told = ", ".join(list(data)[:3]) or "nothing"
        raise InputError(f"{label}: found {told}, expected {EXPECTED}")
    if len(found) > 1:
        words = " and ".join(f"{name} ({signs[name][0]})" for name in found)
        raise InputError(f"{label}: has keys of {words}, expected those of one framework")
    if found == ["deepspeed"]:
        return deepspeed.read(data, label, ignore)
    if found == ["torchtitan"]:
        return torchtitan.read(data, label, ignore)
    reader = axolotl.read if found == ["axolotl"] else llama_factory.read
    return reader(data, label, ignore, folder)
