"""Closed forms of what stage i of a pipeline holds: its terms, their sum, its layers and micro-batches in flight."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sympy

from ...formulas.language.symbols import num_layers, strip_units
from .device_share import stage_place
from .footprint import stage_footprint

if TYPE_CHECKING:
    from ...plans.structure import Structure


def stage_forms(structure: Structure) -> dict[str, Any]:
    """The closed forms, by name, in the symbol `stage_number`."""
    place = stage_place(structure)
    terms = {name: strip_units(form) for name, form in stage_footprint(structure).items()}
    layers = place.share(num_layers) * (2 if structure.schedule == "dualpipe" else 1)
    return terms | {
        "total": sympy.Add(*terms.values()),
        "layers": strip_units(layers),
        "in_flight": strip_units(place.held),
    }
