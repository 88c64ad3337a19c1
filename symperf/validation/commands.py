"""The command line that asks what a row asks: the words of `symperf train`, `infer` or `serve` of the run of a row.

What the catalogue lacks, models of dimensions alone and checkpoints of another format, goes into a file that the words
name. A command is built from the run alone, whatever made it so, and then asks the same numbers of the same structure.
"""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ..common.errors import InputError
from ..models.model import Model, make_model
from ..plans.plan import FIELDS, Plan, attention_of
from ..systems.software import Software
from ..systems.system import System

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping
    from pathlib import Path

    from ..runs.inference_run import InferenceRun
    from ..runs.training_run import Run

MODEL_FILE = "model.json"
NO_FILES: Mapping[str, str] = {}


@dataclass(frozen=True)
class Command:
    """A command line.

    Attributes:
        words: of it, "symperf" first; a word that is the name of one of the files stands for its path.
        files: texts by name.
    """

    words: tuple[str, ...]
    files: Mapping[str, str] = field(default_factory=lambda: NO_FILES)

    def placed(self, folder: Path | None) -> tuple[str, ...]:
        """The words, with files in a folder."""
        return tuple(str(folder / word) if folder and word in self.files else word for word in self.words)

    def text(self, folder: Path | None = None) -> str:
        """As a shell reads it."""
        return shlex.join(self.placed(folder))


class NoCommandError(InputError):
    """No command line asks what a row asks."""


def training_command(run: Run, names: Iterable[str], systems: Iterable[str], stack: str) -> Command:
    """The command of a training step.

    Args:
        run: the step.
        names: what its model may be called.
        systems: what its system may be called.
        stack: the profile of kernels that its system already has; "" for none.

    Raises:
        NoCommandError: what the system is cannot be told.
    """
    model, sizes, files = model_words(run.base_model, names, run.settable.sizes)
    stack = str(run.question["stack"] or stack)
    system, figures = _system_words(run.base_system, systems, stack)
    words = ["train", model, "-s", system, "--batch", str(run.batch), "--sequence", str(run.sequence)]
    words += ["--stack", stack] if stack else []
    words += plan_words(run.base_plan, run.base_model, stack)
    return Command(("symperf", *words, *set_words({**sizes, **figures, **run.given})), files)


def inference_command(run: InferenceRun, names: Iterable[str], systems: Iterable[str]) -> Command:
    """The command of a static batch.

    Raises:
        NoCommandError: what the system is cannot be told.
    """
    work = ["--batch", str(run.work.batch), "--prompt", str(run.work.prompt), "--generate", str(run.work.generate)]
    words, files, values = inference_words(run, names, systems)
    return Command(("symperf", "infer", words[0], *words[1:3], *work, *words[3:], *set_words(values)), files)


def inference_words(
    run: InferenceRun, names: Iterable[str], systems: Iterable[str]
) -> tuple[list[str], Mapping[str, str], dict[str, Any]]:
    """What an inference and a server are told by: words, files, and values to set.

    Raises:
        NoCommandError: what the system is cannot be told.
    """
    model, sizes, files = model_words(run.base_model, names, run.settable.sizes)
    system, figures = _system_words(run.bare_system, systems, "")
    words = [model, "-s", system, "--stack", str(run.question["stack"])]
    words += ["--kv-precision", run.kv_precision] if run.kv_precision else []
    words += plan_words(run.base_plan, run.base_model)
    return words, files, {**sizes, **figures, **run.given}


def set_words(values: Mapping[str, Any]) -> list[str]:
    """The words that set symbols."""
    return [word for name, value in values.items() for word in ("--set", f"{name}={_spell(value)}")]


def plan_words(plan: Plan, model: Model, stack: str = "") -> list[str]:
    """The flags of a plan, under a profile that chooses what is not said."""
    said = {name: value for name in FIELDS if (value := getattr(plan, name)) != FIELDS[name].default}
    if stack:
        chosen = Plan.under(stack, **said)
        said |= {
            name: _as_it_runs(plan, model, name) for name in FIELDS if getattr(chosen, name) != getattr(plan, name)
        }
    words: list[str] = []
    for name, value in said.items():
        flag = name.replace("_", "-")
        words += [f"--{'' if value else 'no-'}{flag}"] if isinstance(value, bool) else [f"--{flag}", _spell(value)]
    return words


def _as_it_runs(plan: Plan, model: Model, name: str) -> Any:
    """The value that stands for a field that a plan leaves open."""
    value = getattr(plan, name)
    if value is not None:
        return value
    if name == "attention":
        return attention_of(plan, model)
    if name == "dropout":
        return model.architecture.dropout
    if FIELDS[name].numeric:
        return int(plan.number(name))
    raise NoCommandError(f"{name}: the profile chooses it, and the row has none")


def _spell(value: Any) -> str:
    if isinstance(value, float):
        return repr(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    return str(value)


# --- the model


def alike(one: Model, other: Model) -> bool:
    """Whether two models are of one structure, whatever they are called; sizes may differ."""
    same = one.architecture == other.architecture and one.sizes.keys() == other.sizes.keys()
    return same and _stored(one) == _stored(other)


def _stored(model: Model) -> object:
    """How a checkpoint stores its weights, wherever that is read."""
    return model.quantization and replace(model.quantization, where="")


def model_words(
    model: Model, names: Iterable[str], settable: Container[str]
) -> tuple[str, dict[str, int], Mapping[str, str]]:
    """What a model is called, sizes of it that are others, and the file that describes it where it has no name.

    Raises:
        NoCommandError: no name and no file is known that describes it.
    """
    for name in dict.fromkeys((model.name, *names)):
        try:
            known = Model.load(name)
        except InputError:
            continue
        other = _other_sizes(known, model, settable)
        if other is not None:
            return name, other, NO_FILES
    for config in _configs(model):
        try:
            known = make_model(model.name, model.source, config, MODEL_FILE)
        except InputError:
            continue
        other = _other_sizes(known, model, settable)
        if other is not None:
            return MODEL_FILE, other, {MODEL_FILE: json.dumps(config, indent=1) + "\n"}
    raise NoCommandError(f"the model {model.name} has neither a name nor a file that describes it")


def _other_sizes(known: Model, model: Model, settable: Container[str]) -> dict[str, int] | None:
    """The sizes that a model has otherwise than a known one; None where they are not all that tells the two apart."""
    other = {key: size for key, size in model.sizes.items() if known.sizes.get(key) != size}
    return other if alike(known, model) and all(key in settable for key in other) else None


def _configs(model: Model) -> Iterable[dict[str, Any]]:
    """Files that may describe a model: of an open architecture by its sizes, and a checkpoint in NVIDIA's NVFP4."""
    sizes = model.sizes
    if all(sizes.get(name) for name in ("num_attention_heads", "num_key_value_heads", "intermediate_size")):
        for dropout in (0.0, 0.1):
            yield {
                "model_type": "gpt2",
                "n_embd": sizes["hidden_size"],
                "n_layer": sizes["num_layers"],
                "n_head": sizes["num_attention_heads"],
                "n_inner": sizes["intermediate_size"],
                "n_positions": sizes["position_rows"] or 1024,
                "vocab_size": sizes["vocab_size"],
                "resid_pdrop": dropout,
                "attn_pdrop": dropout,
                "embd_pdrop": dropout,
            }
        yield {
            "model_type": "llama",
            "hidden_size": sizes["hidden_size"],
            "num_hidden_layers": sizes["num_layers"],
            "num_attention_heads": sizes["num_attention_heads"],
            "num_key_value_heads": sizes["num_key_value_heads"],
            "intermediate_size": sizes["intermediate_size"],
            "vocab_size": sizes["vocab_size"],
        }
    if model.name.endswith(NVFP4):
        from .serving import nvfp4_config

        yield nvfp4_config(model.name.removesuffix(NVFP4))


NVFP4 = "-nvfp4"
"""End of the name of a model whose checkpoint is NVIDIA's in NVFP4."""


# --- the system


def _system_words(system: System, names: Iterable[str], stack: str) -> tuple[str, dict[str, float]]:
    """What a system is called, and figures of it that are others, under a profile of training software.

    Raises:
        NoCommandError: no name is known.
    """
    for name in dict.fromkeys((system.name, *names)):
        try:
            bare = System.load(name)
        except InputError:
            continue
        known = Software.load(stack).on(bare) if stack else bare
        other = {
            key: quantity.value
            for key, quantity in system.quantities.items()
            if key not in known.quantities or known.quantities[key].value != quantity.value
        }
        if set(known.quantities) <= set(system.quantities) and known.matrix_rates.keys() == system.matrix_rates.keys():
            return name, other
    raise NoCommandError(f"the system {system.name} has no name that is known")
