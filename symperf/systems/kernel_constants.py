"""Constants of kernels that are known only where somebody measured them: families of them, each the terms of one kind.

A system has a family where its file, or the software on it, gives every constant of the family. The terms of a family
are in a formula only then: there is no default for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .limits import Limits
from .units import COUNT, FRACTION, RATE, TIME

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

_LATENCY = Limits(TIME, 1e-10, 1e-2, zero=True)
_ATTAINED = Limits(FRACTION, 1e-4, 2.0)
"""A part of a peak that was measured beside other terms, which may hide each other: a little over 1 is possible."""
_PROMPTS: Final = {
    "exponent_rate": Limits(RATE, 1e9, 1e17),
    "query_block": Limits(COUNT, 8, 1024),
    "prompt_latency": _LATENCY,
    "prompt_efficiency": _ATTAINED,
    "block_latency": _LATENCY,
}
FAMILIES: Final[Mapping[str, Mapping[str, Limits]]] = {
    "prompts": _PROMPTS,
    "decoding": {"decode_latency": _LATENCY, "decode_block_latency": _LATENCY, "cache_efficiency": _ATTAINED},
    "cache_casts": {"cache_cast_latency": _LATENCY},
    "latent": {**_PROMPTS, "latent_latency": _LATENCY, "latent_efficiency": _ATTAINED},
}
"""Names and limits of the constants of each family."""
TRAINED: Final[tuple[str, ...]] = ()
"""Families whose terms a training step has."""
FORMAT_CONSTANTS: Final[Mapping[str, Limits]] = {
    "narrow_efficiency": Limits(FRACTION, 1e-4, 1.0),
}
"""Constants of products in one format, which software states by format."""


def families_of(known: Container[str]) -> tuple[str, ...]:
    """The families whose constants are all known, in the order of `FAMILIES`."""
    return tuple(family for family, names in FAMILIES.items() if all(name in known for name in names))
