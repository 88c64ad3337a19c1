"""What a device holds beside the tensors of a step, and with it all that it must have: what nvidia-smi shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sympy

from ...formulas.language.symbols import context_bytes, cp, dp, ep, library_bytes, pp, tp
from ...formulas.memory.reserved_memory import communicator_count, communicator_memory
from ...formulas.memory.stage_memory import fragmentation_memory
from .footprint import footprint, memory

if TYPE_CHECKING:
    from ...plans.structure import Structure


def reserved_terms(structure: Structure, activations: Any) -> dict[str, Any]:
    """Bytes beside the tensors of a device by name, given those of its activations."""
    parts = cp if structure.context != "none" else 1
    experts = ep if structure.architecture.routed else 1
    return {
        "fragmentation": fragmentation_memory(activations),
        "context": context_bytes,
        "communicators": communicator_memory(communicator_count(tp, pp, dp, parts, experts)),
        "libraries": library_bytes,
    }


def reserved(structure: Structure) -> Any:
    """Bytes that the fullest device must have: its tensors, and what is held beside them."""
    return memory(structure) + sympy.Add(*reserved_terms(structure, footprint(structure)["activations"]).values())
