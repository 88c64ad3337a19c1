"""Overrides of Megatron Bridge: each is a flag of Megatron-LM, by the table that writes them."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Final

from ..common.errors import InputError
from ..export.bridge_adapters import MODULES, targets_of
from ..export.megatron_bridge import PRECISIONS, SAME
from . import megatron
from .keys import Keys

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from .settings import FrameworkSettings

FLAGS: Final = {name: flag for flag, names in SAME.items() for name in names} | {
    "model.attention_backend": "--attention-backend",
    "model.num_layers_in_first_pipeline_stage": "--decoder-first-pipeline-num-layers",
    "model.num_layers_in_last_pipeline_stage": "--decoder-last-pipeline-num-layers",
    "model.cp_comm_type": "--cp-comm-type",
    "model.pipeline_model_parallel_layout": "--pipeline-model-parallel-layout",
    "optimizer.optimizer": "--optimizer",
}
WITHOUT_COST: Final = ("peft.alpha", "peft.dropout", "peft.lora_A_init_method", "peft.lora_B_init_method")
"""Options of adapters that change no time and no memory here."""
RECIPES: Final = {recipe: precision for precision, recipe in PRECISIONS.items()}
PRODUCTS: Final[Mapping[str, dict[str, Any]]] = {
    "bf16": {"--bf16": True},
    "fp16": {"--fp16": True},
    "fp8": {"--bf16": True, "--fp8-format": "hybrid"},
}


def read(data: Mapping[str, Any], label: str, ignore: Iterable[str], *, model: bool) -> FrameworkSettings:
    """The settings of overrides by name."""
    keys = Keys("megatron-bridge", label, data, ignore)
    found: dict[str, Any] = dict(PRODUCTS.get(keys.word("mixed_precision", RECIPES), {}))
    for name, value in keys.data.items():
        if value is None or name == "mixed_precision" or name.startswith("peft."):
            continue
        flag = FLAGS.get(name, f"--{name.partition('.')[2].replace('_', '-')}")
        if value is not False:
            found[flag] = value
    settings = megatron.read(found, label, (), model=model, framework=keys.framework)
    fields = {**settings.fields, **_adapters(keys)}
    return dataclasses.replace(
        settings,
        fields=fields,
        read={**settings.read, **keys.read},
        ignored={**keys.ignored, **settings.ignored},
        notes=(*settings.notes, *keys.notes),
    )


def _adapters(keys: Keys) -> dict[str, Any]:
    """The fields of adapters; by default its LoRA has them beside every linear layer."""
    rank, modules = keys.count("peft.dim"), keys.take("peft.target_modules", list)
    for name in [name for name in keys.data if name.startswith("peft.")]:
        if name in WITHOUT_COST:
            keys.drop(name, "it costs nothing in a step")
        elif name not in keys.read:
            keys.fail(name, f"peft.dim, peft.target_modules or {', '.join(WITHOUT_COST)}")
    if rank is None:
        if modules:
            raise InputError(f"{keys.label}: peft.target_modules need peft.dim, found none")
        return {}
    targets = targets_of([str(name) for name in modules or MODULES])
    if targets is None:
        keys.fail("peft.target_modules", f"some of {', '.join(MODULES)}")
    if "mlp" in targets:
        keys.note(
            "lora_targets: mlp, of dense and shared MLPs; routed experts have adapters with --lora-targets experts"
        )
    return {"lora_rank": rank, "lora_targets": targets}
