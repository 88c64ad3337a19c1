"""Bytes that an inference leaves to its host, and what stays on the device."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..formulas.language.atoms import Max, Min
from ..formulas.language.symbols import batch, dp, offloaded_cache
from ..formulas.memory import offload as host
from ..formulas.memory.offload import remaining_share
from .hosted import on_host
from .layer_bytes import growing_cache
from .passes import dealing_of, number_of

if TYPE_CHECKING:
    from ..operations.dealing import Dealing
    from .structure import InferenceStructure


def host_weights(structure: InferenceStructure, dealing: Dealing) -> dict[str, Any]:
    """Bytes of the weights of a stage that the host keeps, by what was offloaded."""
    kinds, found = structure.architecture.kinds, dict[str, Any]()
    for kind in kinds:
        for name, size in on_host(structure, kind).items():
            found[name] = found.get(name, 0) + dealing.layers_of(number_of(kind, len(kinds))) * size
    return found


def cache_on_device(structure: InferenceStructure, cache: Any, tokens: Any) -> Any:
    """What a device keeps of a sequence's caches that grow: its part, and two layers on their way."""
    if "cache" not in structure.offload:
        return cache
    layer = Max(*(growing_cache(kind, tokens) for kind in structure.architecture.kinds))
    return Min(cache, remaining_share(offloaded_cache) * cache + host.transfer_buffer_memory(layer, offloaded_cache))


def buffers(structure: InferenceStructure) -> Any:
    """Bytes of a device for two layers' weights on their way."""
    sizes = [sum(on_host(structure, kind).values()) for kind in structure.architecture.kinds]
    return host.transfer_buffer_memory(Max(*sizes), 1)


def host_memory(structure: InferenceStructure, cache: Any) -> dict[str, Any]:
    """Bytes of the host for one device, by what was offloaded, and `total`; layers dealt evenly.

    Args:
        structure: says what the host keeps.
        cache: bytes of a sequence's caches that grow, wherever they lie.
    """
    found = host_weights(structure, replace(dealing_of(structure), segments=(), stages="even"))
    if "cache" in structure.offload:
        found["cache"] = batch / dp * offloaded_cache * cache
    return found | {"total": sum(found.values())}
