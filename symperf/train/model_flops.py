"""Model FLOPs of a training step: forward, the gradients that it needs, and what it computes again.

A product is 2 m n k forward. Its backward pass is as much again for the gradient of its input, where something is
trained below, and as much for that of its weights, where these are trained. So a parameter costs a token 6 FLOPs if it
is trained (those of adapters too), 4 if it is frozen above something that is trained, and 2 if nothing below it is.
Products of two activations have gradients of both, or of none. Layers are counted whole, also the lowest in which
gradients end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sympy

from ..formulas.language.symbols import (
    batch,
    cp,
    document_length,
    ep,
    expert_tp,
    flop,
    lora_rank,
    micro_batch,
    num_layers,
    num_multi_token_layers,
    num_recomputed_layers,
    pp,
    sequence,
    token_imbalance,
    tp,
)
from ..models import counts
from ..models.own_sizes import of_kind
from ..operations.groups import parts
from ..operations.schedule import Op, executions, terms
from ..plans.gradients import gradients_of
from .layers.adapters import adapter_parameters, layer_adapters
from .layers.recomputed import recomputed_modules
from .layers.transformer import Decoder
from .memory import multi_token_counts
from .memory.encoder_counts import encoder_flops

if TYPE_CHECKING:
    from ..models.architecture import LayerKind
    from ..plans.structure import Structure

LAYER_CLASSES = {
    **dict.fromkeys(("projections", "cross_projections", "ssm_projections"), "attention"),
    **dict.fromkeys(("experts", "expert_projections", "shared_experts"), "experts"),
    "mlp": "mlp",
    "router": "router",
    "side_blocks": "streams",
}
"""Classes of products with weights -> the classes of parameters that these are; all others multiply activations."""
END_CLASSES = {
    **dict.fromkeys(("patch_embedding", "spectrum_embedding"), "embedding"),
    **dict.fromkeys(("side_projections", "hyper_connections"), "final_norm"),
    "head_transform": "head",
}
"""The same of what precedes and follows the layers."""
ZERO = sympy.S.Zero
WHOLE = dict.fromkeys((tp, cp, ep, expert_tp, token_imbalance), sympy.S.One)
"""What makes the sizes of one device those of all."""


def keys_of(structure: Structure) -> Any:
    """Tokens that a query attends to, masked or not: those of its sequence, or of its document."""
    return document_length if structure.documents else sequence


def model_flops(structure: Structure) -> Any:
    """FLOPs of a step's forward pass and of its gradients."""
    keys = keys_of(structure)
    modules = multi_token_counts.forward_flops(structure.architecture, keys)
    forward = sympy.Add(*counts.forward_flops(structure.architecture, keys=keys).values()) + sympy.Add(*modules)
    if not (structure.frozen or structure.encoders):
        return 3 * forward
    encoded, encoder_gradients = encoder_flops(structure)
    gradients = _layer_gradients(structure) + _end_gradients(structure) + _module_gradients(structure)
    return forward + encoded + gradients + encoder_gradients + 3 * adapter_flops(structure)


def adapter_flops(structure: Structure) -> Any:
    """FLOPs of the forward products of adapters over the whole batch: 2 of each parameter and token that passes it."""
    total: Any = ZERO
    for count, kind in counts.kinds_with_counts(structure.architecture):
        for each in layer_adapters(structure, kind):
            rows = each.groups * each.rows
            total += count * 2 * flop * rows * lora_rank * (each.layers * each.inner + each.columns)
    return sympy.sympify(total, strict=True).xreplace(WHOLE | {micro_batch: batch})


def trained_adapter_parameters(structure: Structure) -> Any:
    """Parameters of all adapters of a model."""
    total = ZERO
    for count, kind in counts.kinds_with_counts(structure.architecture):
        total += count * sum(adapter_parameters(structure, kind))
    return sympy.sympify(total, strict=True).xreplace(WHOLE)


def _layer_gradients(structure: Structure) -> Any:
    gradients, total = gradients_of(structure), ZERO
    for count, kind, classes in counts.layer_flops(structure.architecture, keys=keys_of(structure)):
        if gradients.flows(kind):
            total += count * sum(_passes(structure, LAYER_CLASSES.get(name)) * f for name, f in classes.items())
    return total


def _passes(structure: Structure, name: str | None) -> int:
    """Backward products of one forward: two, or one where the weights, of a class, are frozen."""
    return 2 - (name in structure.frozen)


def _end_gradients(structure: Structure) -> Any:
    gradients, total = gradients_of(structure), ZERO
    for name, flops in counts.end_flops(structure.architecture).items():
        own = gradients.vocabulary if name == "lm_head" else END_CLASSES.get(name, "final_norm")
        if own == "embedding":
            inputs = gradients.trains("embedding")
        else:
            inputs = gradients.through_layers or gradients.trains("final_norm")
        total += (inputs + gradients.trains(own)) * flops
    return total


def _module_gradients(structure: Structure) -> Any:
    gradients = gradients_of(structure)
    scores, products, head = multi_token_counts.forward_flops(structure.architecture, keys_of(structure))
    through = int(gradients.through_modules)
    total = through * (2 * scores + _passes(structure, "multi_token") * products)
    return total + (through + gradients.trains(gradients.vocabulary)) * head


def _module_flops(structure: Structure, kind: LayerKind) -> Any:
    """FLOPs of the products of a layer that are computed again for modules, over all devices and micro-batches."""
    layer = Decoder(structure, kind)
    again = recomputed_modules(layer, structure.modules)
    if again is None:
        return ZERO
    times = executions(again)
    products = [(path, op) for path, op in terms(again).items() if isinstance(op, Op) and op.shape is not None]
    devices = tp * parts(structure) * batch / micro_batch
    return of_kind(sum((times[path] * op.demand.flops for path, op in products), ZERO) * devices, kind)


def recomputed_flops(structure: Structure) -> Any:
    """FLOPs that recomputation adds; of some layers of each stage, in proportion."""
    core = "core_attn" in structure.modules or structure.recompute != "selective"
    mode = structure.recompute if core else "none"
    whole = counts.recomputed_flops(structure.architecture, mode, keys_of(structure))
    for count, kind, classes in counts.layer_flops(structure.architecture, keys=keys_of(structure)):
        if not gradients_of(structure).flows(kind):
            whole -= count * counts.recomputed_of(classes, structure.recompute) if core else ZERO
        else:
            whole += count * _module_flops(structure, kind)
    layers = whole * num_recomputed_layers * pp / num_layers if structure.some_layers else whole
    return layers + _module_again(structure) + _logits_again(structure)


def _module_again(structure: Structure) -> Any:
    """FLOPs that recomputation adds in modules for multi-token prediction: of all but the head, or of some parts."""
    architecture = structure.architecture
    if not (architecture.multi_token_head and gradients_of(structure).through_modules):
        return ZERO
    parts_again = _module_flops(structure, architecture.module_kind)
    return multi_token_counts.recomputed_flops(structure) + num_multi_token_layers * parts_again


def _logits_again(structure: Structure) -> Any:
    """FLOPs of the logits that a cut loss computes once more for their gradient (Wijmans et al. 2025, algorithm 3)."""
    if structure.loss != "cut":
        return ZERO
    *_, of_modules = multi_token_counts.forward_flops(structure.architecture)
    return counts.end_flops(structure.architecture).get("lm_head", ZERO) + of_modules
