"""Adapters that a training step trains beside frozen weights: what they need of a plan and a model.

With adapters all else is frozen, as PEFT leaves it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..common.errors import nearest
from .adapted_layers import LAYERS, TARGETS, adaptable_layers
from .freezing import CLASSES, PARTS, language_classes
from .frozen_parts import frozen_classes
from .rule import Rule, refuse
from .structure import MATRIX_MIXERS

if TYPE_CHECKING:
    from ..models.model import Model
    from .encoders import EncoderPart
    from .plan import Plan

_NAMES = (
    *("ranked", "asked", "known", "frozen", "matrix_optimizer", "quantised", "low_precision", "host_weights"),
    *("decomposed", "split_experts", "all_matrices"),
)


def _rule(name: str, condition: str, message: str) -> Rule:
    return Rule(name, condition, message, _NAMES)


ADAPTER_RULES = (
    _rule(
        "adapters_have_a_rank",
        "ranked == 1 or asked == 0",
        "{asked_field}: is of adapters, found no rank of them; add --lora-rank",
    ),
    _rule(
        "only_frozen_weights_are_in_4_bits",
        "ranked == 1 or quantised == 0",
        "base_precision: {base_precision} stores frozen weights under adapters, and those that are trained need 16 "
        "bits or more; add --lora-rank (QLoRA)",
    ),
    _rule(
        "adapters_freeze_all_else",
        "ranked == 0 or frozen == 0",
        "freeze: found {freeze} with lora_rank = {lora_rank}, under which all but the adapters is frozen; name the "
        "layers that have some by lora_targets",
    ),
    _rule(
        "adapted_layers_are_of_the_model",
        "ranked == 0 or known == 1",
        "lora_targets: found {unknown}, but {model} has no such linear layer whose adapters are modelled, expected "
        "some of {layers}{hint}",
    ),
    _rule(
        "adapters_need_an_element_wise_optimizer",
        "ranked == 0 or matrix_optimizer == 0",
        "optimizer: found {optimizer}, whose state of adapters is not modelled; expected adam, adam-8bit or "
        "sgd-momentum",
    ),
    _rule(
        "stored_weights_are_widened_to_16_bits",
        "quantised == 0 or low_precision == 0",
        "base_precision: {base_precision} is widened to 16 bits before each product, found precision = {precision}; "
        "expected bf16 or fp16",
    ),
    _rule(
        "stored_weights_stay_on_the_device",
        "quantised == 0 or host_weights == 0",
        "base_precision: {base_precision} with weights on the host is not modelled; expected offload without weights",
    ),
    _rule(
        "stored_weights_need_listed_matrices",
        "quantised == 0 or all_matrices == 1",
        "base_precision: {base_precision} needs the matrices of every layer, and some of {model} are not listed",
    ),
    _rule(
        "magnitudes_of_split_experts",
        "decomposed == 0 or split_experts == 0",
        "dora: found adapters of routed experts, whose magnitudes no library trains; expected lora_targets without "
        "experts",
    ),
)
"""What adapters of a plan must satisfy with a model."""


def trained_parts(
    plan: Plan, model: Model, encoders: tuple[EncoderPart, ...]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The classes of parameters that a plan freezes, and the linear layers that it adapts.

    Args:
        plan: says what is trained.
        model: of which.
        encoders: of images and sound that the step passes.

    Raises:
        BrokenRuleError: what does not go together, or what the model has not.
    """
    if not (plan.lora_rank or plan.lora_targets or plan.dora or plan.freeze or plan.base_precision):
        return (), ()
    architecture = model.architecture
    layers = adaptable_layers(architecture)
    names = _targets(plan, layers)
    unknown = [name for name in names if not {*TARGETS[name]} & {*layers}]
    adapted = {layer for name in names for layer in TARGETS[name]} & {*layers} if plan.lora_rank else set()
    asked = [name for name in ("lora_targets", "dora") if getattr(plan, name)]
    parts = plan.freeze.split(",") if plan.freeze else []
    words = {
        "asked_field": " and ".join(asked),
        "base_precision": plan.base_precision,
        "freeze": plan.freeze,
        "lora_rank": plan.lora_rank,
        "unknown": ", ".join(unknown) or "none",
        "layers": ", ".join(layers) or "none",
        "hint": nearest(unknown[0], layers) if unknown else "",
        "optimizer": plan.optimizer,
        "precision": plan.precision,
        "model": model.name,
    }
    values = {
        "ranked": int(plan.lora_rank is not None),
        "asked": int(bool(asked)),
        "known": int(bool(layers) and not unknown),
        "frozen": int(bool({"attention", "mlp", "experts"} & {name for each in parts for name in PARTS[each]})),
        "matrix_optimizer": int(plan.optimizer in ("adafactor", "muon")),
        "quantised": int(plan.base_precision is not None),
        "low_precision": int(plan.precision in ("fp8", "fp4")),
        "host_weights": int("weights" in plan.offloads),
        "decomposed": int(plan.dora),
        "split_experts": int("experts" in adapted),
        "all_matrices": int(all(each.mixer in MATRIX_MIXERS for kind in architecture.kinds for each in kind.alone)),
    }
    refuse(ADAPTER_RULES, words | values)
    if plan.lora_rank is None:
        return frozen_classes(plan.freeze, model, encoders), ()
    passed = language_classes(architecture, model.sizes.get("num_multi_token_layers", 0))
    passed |= {name for each in encoders for name in (each.part, "projector")}
    return tuple(each for each in CLASSES if each in passed), tuple(each for each in LAYERS if each in adapted)


def _targets(plan: Plan, layers: tuple[str, ...]) -> list[str]:
    """The names of a plan's targets; by default all but routed experts, which transformers 5 has as one tensor."""
    if plan.lora_targets is not None:
        return plan.lora_targets.split(",")
    return [name for name in layers if name != "experts"]
