"""Constants of kernels that are known only where somebody measured them: families of them, each the terms of one kind.

A system has a family where its file, or the software on it, gives every constant of the family. The terms of a family
are in a formula only then: there is no default for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .limits import Limits
from .units import COUNT, FRACTION, TIME

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

_UP: Final = "scale_up_bandwidth"
FAMILIES: Final[Mapping[str, Mapping[str, Limits]]] = {
    "domain": {
        "domain_latency": Limits(TIME, 1e-10, 1e-1, _UP, zero=True),
        "domain_hop_latency": Limits(TIME, 1e-10, 1e-1, _UP, zero=True),
        "domain_piece_latency": Limits(TIME, 1e-10, 1e-1, _UP, zero=True),
        "domain_efficiency": Limits(FRACTION, 1e-4, 1.0, _UP),
    },
    "crowding": {"pair_crowding": Limits(FRACTION, 1e-6, 1.0, "domain_efficiency", zero=True)},
    "scans": {
        "scan_latency": Limits(TIME, 1e-10, 1e-2, zero=True),
        "chunk_latency": Limits(TIME, 1e-10, 1e-2, zero=True),
        "scan_passes": Limits(COUNT, 1e-2, 1e3),
    },
}
"""Names and limits of the constants of each family."""
TRAINED: Final = ("domain", "crowding")
"""Families whose terms a training step has."""
FORMAT_CONSTANTS: Final[Mapping[str, Limits]] = {
    "narrow_efficiency": Limits(FRACTION, 1e-4, 1.0),
}
"""Constants of products in one format, which software states by format."""


INSTEAD: Final[Mapping[str, tuple[str, ...]]] = {
    "domain": ("scale_up_latency", "scale_up_efficiency", "scale_up_half_bytes", "switch_efficiency"),
}
"""Constants that a family's stand in place of: who states one of these, and none of the family's, means these."""


def families_of(known: Container[str], stated: Container[str] = ()) -> tuple[str, ...]:
    """The families whose constants are all known, in the order of `FAMILIES`.

    Args:
        known: names of constants.
        stated: those of them that a user gave.

    >>> known = {*FAMILIES["domain"], "scale_up_latency"}
    >>> families_of(known), families_of(known, {"scale_up_latency"})
    (('domain',), ())
    """
    return tuple(
        family
        for family, names in FAMILIES.items()
        if all(name in known for name in names)
        and (not any(name in stated for name in INSTEAD.get(family, ())) or any(name in stated for name in names))
    )
