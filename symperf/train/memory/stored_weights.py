"""Bytes of the weights of a device where those of frozen linear layers are stored in few bits: QLoRA's base.

Stored so are the matrices of the layers; tables, head, norms, routers, modules for multi-token prediction and adapters
are in the format of products.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sympy

from ...formulas.kernels.trained_adapters import stored_weights_memory
from ...formulas.language.atoms import Max
from ...formulas.language.symbols import weight_bytes
from ...formulas.memory.model_state import weights_memory
from ...models import counts
from .device_share import in_two
from .matrices import held_matrices, layer_matrices

if TYPE_CHECKING:
    from ...models.architecture import LayerKind
    from ...plans.structure import Structure
    from .device_share import DeviceShare


def weight_terms(structure: Structure, share: DeviceShare) -> dict[str, Any]:
    """Bytes of all weights of a device by what they are of, before they are sharded."""
    parameters = share.parameters
    found = {name: weights_memory(count, weight_bytes) for name, count in parameters.items()}
    if structure.stored:
        held = held_matrices(structure, share.layers_of)
        for name, routed in (("layers", False), ("experts", True)):
            if name in parameters:
                found[name] = _mixed(parameters[name], held.linear(routed=routed))
    return found


def gathered_bytes(structure: Structure, share: DeviceShare) -> tuple[Any, Any]:
    """Bytes that a device gathers from shards: of what is no routed expert's, and of what is.

    Under ZeRO-3 all weights as they are stored, else those that were updated.
    """
    if structure.zero > 2 and structure.stored:
        return in_two(weight_terms(structure, share))
    dense, routed = share.whole if structure.zero > 2 else share.trained
    return dense * weight_bytes, routed * weight_bytes


def layer_bytes(structure: Structure, kind: LayerKind, parameters: Any, *, routed: bool = False) -> Any:
    """Bytes of a layer's parameters on a device, of routed experts or of all else."""
    if not structure.stored:
        return parameters * weight_bytes
    matrices = layer_matrices(structure.architecture, kind)
    return _mixed(parameters, sympy.Add(*(m.elements for m in matrices if m.linear and m.routed == routed)))


def _mixed(parameters: Any, stored: Any) -> Any:
    """Bytes of parameters of which some are stored in few bits."""
    return weights_memory(sympy.expand(parameters - stored), weight_bytes) + stored_weights_memory(stored)


def widened_memory(structure: Structure) -> Any:
    """Bytes of the largest matrix of a layer, widened for a product."""
    kinds = [kind for _, kind in counts.kinds_with_counts(structure.architecture)]
    matrices = [m for kind in kinds for m in layer_matrices(structure.architecture, kind) if m.linear]
    return Max(*(weights_memory(m.local[0] * m.local[1], weight_bytes) for m in matrices))
