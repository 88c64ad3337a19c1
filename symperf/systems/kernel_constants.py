"""Constants of kernels that are known only where somebody measured them: families of them, each the terms of one kind.

A system has a family where its file, or the software on it, gives every constant of the family. The terms of a family
are in a formula only then: there is no default for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .limits import Limits
from .physical_units import FACTOR
from .units import FRACTION, TIME

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

LATENCY: Final = Limits(TIME, 1e-10, 1e-1, zero=True)
INNER_LATENCY: Final = Limits(TIME, 1e-13, 1e-6, zero=True)
ENDS: Final = Limits(FACTOR, 1e-2, 1e5, zero=True)
CAST: Final = {"cast_latency": LATENCY, "cast_passes": Limits(FACTOR, 1e-3, 1e3, zero=True)}
FAMILIES: Final[Mapping[str, Mapping[str, Limits]]] = {
    "loops": {"inner_latency": INNER_LATENCY, "inner_ends": ENDS},
    "late_starts": {"format_latency": LATENCY},
    "casts": {**CAST, "cast_ends": ENDS, "narrow_ends": ENDS},
}
"""Names and limits of the constants of each family."""
TRAINED: Final[tuple[str, ...]] = ("loops",)
"""Families whose terms a training step has."""
FORMAT_CONSTANTS: Final[Mapping[str, Limits]] = {
    "narrow_efficiency": Limits(FRACTION, 1e-4, 1.0),
    "inner_latency": INNER_LATENCY,
    "format_latency": LATENCY,
    **CAST,
}
"""Constants of products in one format, which software states by format."""


def families_of(known: Container[str]) -> tuple[str, ...]:
    """The families whose constants are all known, in the order of `FAMILIES`."""
    return tuple(family for family, names in FAMILIES.items() if all(name in known for name in names))
