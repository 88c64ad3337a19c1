"""Prices of devices and carbon of grids from the catalogue, each with its source and date."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from ..common.errors import InputError, nearest, quote
from ..common.files import read_toml
from ..systems.quantities import quantity_of
from ..systems.system_symbols import SYMBOLS

if TYPE_CHECKING:
    from ..systems.system import System
    from ..systems.system_symbols import Quantity

CATALOGUE: Final = Path(__file__).parent.parent / "catalogue" / "technology"
PRICES: Final = CATALOGUE / "prices.toml"
GRIDS: Final = CATALOGUE / "grids.toml"


def rent_of(system: System) -> Quantity | None:
    """The price of an hour of a system's device: its own, or the catalogue's for its name; in dollars per second."""
    name = "price_per_hour"
    if name in system.quantities:
        return system.quantities[name]
    if "price" in system.quantities:
        return None
    table = read_toml(PRICES, PRICES.name)
    if system.name not in table:
        return None
    return quantity_of(table[system.name][name], SYMBOLS[name], f"{PRICES.name}: {system.name}", name)


def grid_of(system: System, grid: str | None) -> Quantity:
    """Kilograms of carbon dioxide of a joule, of a grid of the catalogue or of the system.

    Raises:
        InputError: no such grid, with the nearest, or none given.
    """
    table = read_toml(GRIDS, GRIDS.name)
    if grid is not None:
        if not isinstance(grid, str) or grid not in table:
            raise InputError(f"grid: found {quote(grid)}, expected {' or '.join(table)}{nearest(str(grid), table)}")
        return quantity_of(table[grid]["grid_intensity"], SYMBOLS["grid_intensity"], f"{GRIDS.name}: {grid}", "value")
    if "grid_intensity" in system.quantities:
        return system.quantities["grid_intensity"]
    raise InputError(f"carbon: system {system.name} has no grid_intensity; set it, or name a grid: {', '.join(table)}")
