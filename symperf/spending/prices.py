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
    from .mixin import Spending

OWNED: Final = ("price", "lifetime", "electricity_price", "facility_overhead", "power")
"""Figures of an owned device that its dollars are counted from."""
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


def device_second(run: Spending) -> float | None:
    """Dollars of a second of a device, where that is the same for every run on its system; None where it is not.

    It is a rent, or an owned device with the electricity of its board power; joules of FLOPs and bytes differ from run
    to run.

    Raises:
        InputError: the system has no price, or a price without a lifetime.
    """
    from ..codegen.interpret import floats
    from ..codegen.interpret import run as interpret
    from .program import bill_program

    rent = rent_of(run.system)
    if rent is not None:
        return rent.value
    run.check_price()
    figures = {name: run.system.quantities[name].value for name in OWNED if name in run.system.quantities}
    if figures.get("electricity_price") and run.has_energy and run.told_energies() is not None:
        return None
    program = bill_program()
    usual = {"electricity_price": 0.0, "power": 0.0, "facility_overhead": 1.0}
    inputs = dict.fromkeys(program.inputs, 1.0) | usual | figures
    return float(interpret(program, inputs, floats())[program.outputs["owned_cost"]])


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
