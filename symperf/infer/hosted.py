"""What an inference leaves to its host: weights and caches come over the link, experts are computed there.

The layers of a pass run beside the transfers of what they read: a layer is fetched while the one before it runs. In a
decode step routed experts are computed where they lie, and the hidden states of the tokens go there and back; in a pass
over prompts their weights come over the link instead, as llama.cpp (op offload) and KTransformers do it. A part
`offloaded_weights`, `offloaded_cache` or `offloaded_experts` of each lies on the host, the rest on the device.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from ..formulas.kernels import matmul
from ..formulas.language.symbols import (
    activation_bytes,
    hidden_size,
    offloaded_cache,
    offloaded_experts,
    offloaded_weights,
    overlap_offload,
)
from ..formulas.memory import offload as host
from ..formulas.memory.offload import remaining_share
from ..operations.schedule import Demand, Node, Op, Overlap, Sequence
from .layer_bytes import class_bytes, growing_cache, weight_bytes_of

if TYPE_CHECKING:
    from ..models.architecture import LayerKind
    from .experts import Experts
    from .structure import InferenceStructure

CLASSES: Final = ("attention", "mlp", "shared")
Cached = tuple[Any, Any]
"""Sequences, and the tokens of each that a pass reads in a cache or writes into it."""


# --- times


def beside_transfers(
    structure: InferenceStructure, phase: str, layer: Node, kind: LayerKind, root: str, cached: list[Cached]
) -> Node:
    """A layer of a pass, beside the transfers of what it reads."""
    found: list[Node] = []
    path = f"{phase}/{root}/offload"
    for name, message in _messages(structure, phase, kind, cached).items():
        if message != 0:
            found.append(transfer(f"{path}/{name}", message))
    return Overlap(layer, Sequence(tuple(found)), overlap_offload) if found else layer


def transfer(path: str, message: Any) -> Op:
    """A transfer between a device and its host."""
    return Op(path, host.host_transfer_time(message), Demand(message_bytes=message))


def _messages(structure: InferenceStructure, phase: str, kind: LayerKind, cached: list[Cached]) -> dict[str, Any]:
    found = on_host(structure, kind, streamed=phase != "decode")
    if "cache" in structure.offload:
        found["cache"] = offloaded_cache * sum(count * growing_cache(kind, tokens) for count, tokens in cached)
    return found


def hosted_experts(experts: Experts, steps: list[Op | None]) -> list[Op | None]:
    """The routed experts of a step: those on the device, and those that the host computes."""
    layer = experts.layer
    if "experts" not in layer.structure.offload or layer.phase != "decode":
        return steps
    left = remaining_share(offloaded_experts)
    own = [None if op is None else _part(op, left) for op in steps]
    matrices = 3 if experts.architecture.gated_mlp else 2
    work = matmul.matmul_flops(experts.rows, matrices * experts.inner, hidden_size, experts.groups)
    weights = experts.groups * matrices * experts.inner * hidden_size * weight_bytes_of(layer.structure, "experts")
    message = offloaded_experts * layer.tokens * hidden_size * activation_bytes
    time = offloaded_experts * host.host_products_time(work, weights)
    return [
        *own,
        transfer(experts.path("host_send"), message),
        Op(experts.path("host"), time, Demand(offloaded_experts * work)),
        transfer(experts.path("host_receive"), message),
    ]


def _part(op: Op, left: Any) -> Op:
    demand = Demand(*(left * each for each in (op.demand.flops, op.demand.memory_bytes, op.demand.message_bytes)))
    return replace(op, time=left * op.time, demand=demand)


# --- bytes


def on_host(structure: InferenceStructure, kind: LayerKind, *, streamed: bool = True) -> dict[str, Any]:
    """Bytes of a layer's weights that the host keeps of one device, by what was offloaded.

    Args:
        structure: says what the host keeps.
        kind: of the layer.
        streamed: experts are among them; else those on the host are computed there.
    """
    kept, found = structure.offload, {}
    experts = class_bytes(structure, kind, "experts")
    if "weights" in kept:
        dense = sum(class_bytes(structure, kind, name) for name in (*CLASSES, "rest"))
        found["weights"] = offloaded_weights * (dense + (0 if "experts" in kept else experts))
    if "experts" in kept and streamed:
        found["experts"] = offloaded_experts * experts
    return found
