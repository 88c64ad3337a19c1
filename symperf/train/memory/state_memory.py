"""Bytes of weights, gradients and optimizer state on a device, by what the optimizer keeps and what is sharded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sympy

from ...formulas.kernels import low_precision as low
from ...formulas.kernels import optimizers as opt
from ...formulas.language.atoms import Max, Min, above_one, ceil_div, complement
from ...formulas.language.symbols import gradient_bytes, hidden_size, optimizer_bytes, pp, tp, vocab_size, weight_bytes
from ...formulas.memory import model_state
from ...models import counts
from ...operations.groups import expert_shard_groups, shard_groups
from ...plans.gradients import gradients_of
from ..layers.adapters import adapter_parameters
from . import device_counts as device
from .host_memory import gradients_on_device, kept_on_device
from .matrices import held_matrices, held_modules, layer_matrices
from .multi_token_counts import ANY, copies_table
from .stored_weights import layer_bytes, weight_terms

if TYPE_CHECKING:
    from ...plans.structure import Structure
    from .device_share import DeviceShare

SHARDED_FROM = {"optimizer": 1, "gradients": 2, "weights": 3}
"""The ZeRO stage from which each part of the state is sharded (Rajbhandari et al. 2020 section 5)."""


def state_terms(structure: Structure, share: DeviceShare) -> dict[str, Any]:
    """Weights, gradients and optimizer state of layers, ends and experts, each sharded as the ZeRO stage has it."""
    trained = share.trained_parameters
    forms = {
        "weights": weight_terms(structure, share),
        "gradients": {
            name: model_state.gradients_memory(count, gradient_bytes)
            for name, count in (_newest(structure, trained) if structure.updates_at_once else trained).items()
        },
        "optimizer": _optimizer(structure, share, trained),
    }
    if structure.products != "half":
        forms["weights"] |= _copies(structure, share)
    found: dict[str, Any] = {}
    dense = ("layers", "ends", "multi_token", "adapters", "copies")
    for group in (dense, ("experts", "multi_token_experts", "adapter_experts", "expert_copies")):
        for state, terms in forms.items():
            for name in group:
                if name in terms:
                    size = _shard(structure, state, name, terms[name])
                    on_host = state in structure.offload and (state != "weights" or name in ("layers", "experts"))
                    if on_host and state == "gradients":
                        size = gradients_on_device(structure, size)
                    elif on_host:
                        size = kept_on_device(structure, state, size)
                    found[f"{state}/{name}"] = size
    return found


def _newest(structure: Structure, trained: dict[str, Any]) -> dict[str, Any]:
    """Parameters whose gradients are there at once where each is updated as it comes: of a layer, and of a table.

    Of adapters those of a layer.
    """
    kinds = [kind for _, kind in counts.kinds_with_counts(structure.architecture)]
    frozen = structure.frozen
    layer = Max(*(device.dense_parameters(structure.architecture, kind, frozen) for kind in kinds))
    experts = 0 if "experts" in frozen else Max(*(device.expert_parameters(structure.architecture, k) for k in kinds))
    largest = {"layers": layer, "multi_token": layer, "experts": experts, "multi_token_experts": experts}
    if structure.adapted:
        own, of_experts = zip(*(adapter_parameters(structure, kind) for kind in kinds), strict=True)
        largest |= {"adapters": Max(*own), "adapter_experts": Max(*of_experts)}
    table = ceil_div(vocab_size, tp) * hidden_size
    return {name: Min(count, largest.get(name, table)) for name, count in trained.items()}


def _shard(structure: Structure, state: str, name: str, size: Any) -> Any:
    if structure.zero < SHARDED_FROM[state]:
        return size
    groups = expert_shard_groups if "expert" in name else shard_groups
    return size / groups(structure)[0].ranks


def _optimizer(structure: Structure, share: DeviceShare, parameters: dict[str, Any]) -> dict[str, Any]:
    match structure.optimizer:
        case "adam-8bit" | "adam-4bit":
            return {name: opt.adam_8bit_memory(count) for name, count in parameters.items()}
        case "sgd-momentum":
            return {name: opt.sgd_momentum_memory(count) for name, count in parameters.items()}
        case "adafactor":
            found = held_matrices(structure, share.layers_of, structure.frozen)
            factors = {"layers": found.factors(routed=False), "experts": found.factors(routed=True)}
            factors["ends"] = end_factors(structure)
            modules = held_modules(structure, share.modules, structure.frozen)
            factors["multi_token"] = modules.factors(routed=False)
            factors["multi_token_experts"] = modules.factors(routed=True)
            return {name: opt.adafactor_memory(count, factors[name]) for name, count in parameters.items()}
        case "muon":
            terms = {"ends": model_state.optimizer_memory(share.trained_ends, optimizer_bytes)}
            modules = held_modules(structure, share.modules, structure.frozen)
            for names, found in (
                (("layers", "experts"), held_matrices(structure, share.layers_of, structure.frozen)),
                (("multi_token", "multi_token_experts"), modules),
            ):
                for name, vectors in zip(names, (found.vectors, found.expert_vectors), strict=True):
                    matrices = found.elements(routed=name.endswith("experts"))
                    terms[name] = opt.muon_memory(matrices) + model_state.optimizer_memory(vectors, optimizer_bytes)
            return {name: terms[name] for name in parameters}
        case _:
            return {name: model_state.optimizer_memory(count, optimizer_bytes) for name, count in parameters.items()}


def end_factors(structure: Structure) -> Any:
    """Row and column statistics of the tables and the head; of learned positions too, and of vectors all elements."""
    architecture, gradients = structure.architecture, gradients_of(structure)
    tied = architecture.tied_embeddings
    whole = opt.factored_elements(ceil_div(vocab_size, tp), hidden_size)
    matrix = ceil_div(vocab_size, tp) * hidden_size
    table, logits = (
        whole if gradients.trains(name) else sympy.S.Zero for name in (gradients.table, gradients.vocabulary)
    )
    others = sympy.expand(counts.embedding_parameters(architecture, tp) - matrix)
    first = table + (others if gradients.trains("embedding") else sympy.S.Zero)
    norm = counts.final_norm_parameters(architecture) if gradients.trains("final_norm") else sympy.S.Zero
    last = norm + logits
    if copies_table(architecture, structure.schedule):
        last += ANY * above_one(pp) * table
    # One device has both ends, and a tied table once, where there is one stage or, under DualPipe, a folded pipeline.
    both = sympy.S.One if structure.schedule == "dualpipe" else complement(above_one(pp))
    return Max(first + both * (norm + (sympy.S.Zero if tied else logits)), above_one(pp) * last)


def _copies(structure: Structure, share: DeviceShare) -> dict[str, Any]:
    """The low-precision copies of the weights of linear layers."""
    found = held_matrices(structure, share.layers_of) + held_modules(structure, share.modules)
    terms = {"copies": low.weight_copies_memory(found.linear(routed=False))}
    if structure.architecture.routed:
        terms["expert_copies"] = low.weight_copies_memory(found.linear(routed=True))
    return terms


def gathered_memory(structure: Structure) -> Any:
    """Bytes of two layers that are gathered under ZeRO-3, and of their gradients if they are trained.

    Nothing of what is not sharded.
    """
    architecture = structure.architecture
    dense, experts = (above_one(groups(structure)[0].ranks) for groups in (shard_groups, expert_shard_groups))
    units = []
    for _, kind in counts.kinds_with_counts(architecture):
        unit = dense * device.dense_parameters(architecture, kind) * (weight_bytes + gradient_bytes)
        if structure.frozen:
            held, trained = (device.dense_parameters(architecture, kind, each) for each in ((), structure.frozen))
            own, of_experts = adapter_parameters(structure, kind)
            trained += own
            unit = dense * (layer_bytes(structure, kind, held) + own * weight_bytes + trained * gradient_bytes)
            unit += experts * of_experts * (weight_bytes + gradient_bytes)
        if kind.ffn in ("experts", "dense_experts"):
            routed = device.expert_parameters(architecture, kind)
            each = layer_bytes(structure, kind, routed, routed=True)
            unit += experts * (each if "experts" in structure.frozen else each + routed * gradient_bytes)
        if structure.products != "half":
            matrices = [m for m in layer_matrices(architecture, kind) if m.linear]
            linear = sum(m.elements * (experts if m.routed else dense) for m in matrices)
            unit += low.weight_copies_memory(linear)
        units.append(unit)
    return 2 * Max(*units)


def gathered_ends(structure: Structure, share: DeviceShare) -> Any:
    """Bytes of the table or the head that is gathered under ZeRO-3, and of its gradients: one of them at a time.

    The head stays whole between its forward and its backward pass, where the loss has its peak.
    """
    matrix = ceil_div(vocab_size, tp) * hidden_size
    held, trained = (Min(ends, matrix) for ends in (share.ends, share.trained_ends))
    return above_one(shard_groups(structure)[0].ranks) * (held * weight_bytes + trained * gradient_bytes)
