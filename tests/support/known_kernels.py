"""Systems on which the constants of every family of kernels are known, with values that are plausible and no more."""

from __future__ import annotations

from typing import Any, Final

from symperf.systems.kernel_constants import FAMILIES
from symperf.systems.limits import Limits, Quantity
from symperf.systems.system import System
from symperf.systems.units import COUNT, FRACTION, RATE, TIME

PLAUSIBLE: Final = {TIME.name: 2e-6, FRACTION.name: 0.7, RATE.name: 4e12, COUNT.name: 64.0}
"""By the name of what a constant is; between its limits where it is something else or they are others."""


def plausible(limits: Limits) -> float:
    """A value of a constant."""
    usual = PLAUSIBLE.get(limits.dimension.name, 0.0)
    return usual if limits.low <= usual <= limits.high else (limits.low * limits.high) ** 0.5


def known(name: str, *families: str, **values: float) -> System:
    """A system of the catalogue with the constants of some families, or of all; some with values of their own."""
    constants: dict[str, Any] = {
        constant: Quantity(values.get(constant, plausible(limits)), "a test")
        for family, members in FAMILIES.items()
        if not families or family in families
        for constant, limits in members.items()
    }
    return System.load(name).with_constants(constants)
