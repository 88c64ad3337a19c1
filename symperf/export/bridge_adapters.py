"""Adapters in the names of Megatron Bridge, whose layers hold several linear layers of a checkpoint together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..plans.adapted_layers import LAYERS, TARGETS

if TYPE_CHECKING:
    from ..models.model import Model
    from ..plans.plan import Plan

MODULES: Final[dict[str, tuple[str, ...]]] = {
    "linear_qkv": ("q", "k", "v"),
    "linear_proj": ("o",),
    "linear_fc1": ("gate", "up"),
    "linear_fc2": ("down",),
}
"""Its modules (peft/lora.py, `target_modules`) -> the linear layers that each holds."""
PLAIN: Final = ("attention", "local_attention")


def modules_of(plan: Plan, model: Model | None) -> list[str] | None:
    """The modules that have adapters; None where its modules do not hold just those layers.

    >>> from symperf.plans.plan import Plan
    >>> [modules_of(Plan(lora_rank=8, lora_targets=targets), None) for targets in ("q,k,v,o", "q")]
    [['linear_qkv', 'linear_proj'], None]
    """
    named = plan.lora_targets.split(",") if plan.lora_targets else [name for name in LAYERS if name != "experts"]
    wanted = {layer for name in named for layer in TARGETS[name]}
    if model is not None:
        kinds = model.architecture.kinds
        if any(kind.mixer not in PLAIN or kind.beside or kind.cross for kind in kinds):
            return None
        has = {"q", "k", "v", "o", "up", "down", *(("gate",) if model.architecture.gated_mlp else ())}
        if model.architecture.routed:
            # Modules of an MLP are those of experts, too, which have one of their own for each of them or none.
            has -= {"gate", "up", "down"}
            if wanted & {"experts", *(("gate", "up", "down") if model.architecture.shared_experts else ())}:
                return None
        wanted &= has
        held = {name: tuple(layer for layer in layers if layer in has) for name, layers in MODULES.items()}
    else:
        held = dict(MODULES)
    found = [name for name, layers in held.items() if layers and wanted >= {*layers}]
    return found if found and wanted == {layer for name in found for layer in held[name]} else None


def targets_of(modules: list[str]) -> str | None:
    """The linear layers that modules hold; None where a module is not known.

    >>> targets_of(["linear_qkv", "linear_fc2"])
    'q,k,v,down'
    >>> targets_of(["linear_fc1", "linear_proj"]), targets_of(["linear_fc1", "linear_fc2"])
    ('o,linear_fc1', 'mlp')
    """
    if any(name not in MODULES for name in modules):
        return None
    both = {"linear_fc1", "linear_fc2"} <= {*modules}
    names = [name for name in MODULES if name in modules and not (both and name in ("linear_fc1", "linear_fc2"))]
    # The first product of an MLP has a gate or none: a name of its own says both.
    layers = [layer for name in names for layer in ((name,) if name == "linear_fc1" else MODULES[name])]
    return ",".join([*layers, *(["mlp"] if both else [])])
