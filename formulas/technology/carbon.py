"""Carbon dioxide of electricity."""

from __future__ import annotations

from typing import Any

from ..language.dimension import KILOGRAM
from ..language.formula import formula
from ..sources import PATTERSON


@formula(
    glyph="M_c",
    dimension=KILOGRAM,
    source=PATTERSON,
    increasing="device_energy facility_overhead grid_intensity",
    curvature="affine",
)
def operational_carbon(device_energy: Any, facility_overhead: Any, grid_intensity: Any) -> Any:
    """Carbon dioxide of running, E_tot pi g_c.

    Assumes: the grid's mean intensity; nothing of what building the machine emitted.

    Source: Patterson et al. 2021, their equation of tCO2e: energy, PUE and intensity of the grid multiplied.

    >>> from sympy import symbols
    >>> operational_carbon(*symbols("E pi g"))
    E*g*pi
    """
    return device_energy * facility_overhead * grid_intensity
