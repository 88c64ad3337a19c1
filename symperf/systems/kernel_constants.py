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

_PART: Final = Limits(FRACTION, 1e-4, 1.0)
_UP_PART: Final = Limits(FRACTION, 1e-4, 1.0, "scale_up_bandwidth")
_UP_TIME: Final = Limits(TIME, 1e-9, 1e-1, "scale_up_bandwidth", zero=True)
_EXPERTS: Final[Mapping[str, Limits]] = {
    "expert_latency": Limits(TIME, 1e-9, 1e-1, zero=True),
    "grouped_efficiency": _PART,
    "expert_memory_efficiency": _PART,
    "expert_passes": Limits(FACTOR, 1e-6, 1e3, zero=True),
    "choice_latency": Limits(TIME, 1e-15, 1e-3, zero=True),
}
FAMILIES: Final[Mapping[str, Mapping[str, Limits]]] = {
    "experts": _EXPERTS,
    "direct_exchanges": {
        "exchange_latency": _UP_TIME,
        "exchange_hop_latency": _UP_TIME,
        "exchange_efficiency": _UP_PART,
        "exchange_out_efficiency": _UP_PART,
    },
    "bulk_exchanges": {
        "bulk_exchange_latency": _UP_TIME,
        "bulk_hop_latency": _UP_TIME,
        "exchange_units": Limits(FACTOR, 1.0, 1e4, "scale_up_bandwidth"),
        "exchange_unit_efficiency": _UP_PART,
        "exchange_out_efficiency": _UP_PART,
    },
}
"""Names and limits of the constants of each family."""
TRAINED: Final[tuple[str, ...]] = ("bulk_exchanges",)
"""Families whose terms a training step has."""
FORMAT_CONSTANTS: Final[Mapping[str, Limits]] = {
    "narrow_efficiency": Limits(FRACTION, 1e-4, 1.0),
    **_EXPERTS,
}
"""Constants of products in one format, which software states by format."""


def families_of(known: Container[str]) -> tuple[str, ...]:
    """The families whose constants are all known, in the order of `FAMILIES`."""
    return tuple(family for family, names in FAMILIES.items() if all(name in known for name in names))
