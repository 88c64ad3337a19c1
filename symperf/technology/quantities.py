"""The quantities of a technology and of a chip's budget: what values they may take, and how tables of them are read."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from ..common.errors import InputError, nearest, quote
from ..systems.physical_units import AREA, BYTE_AREA, BYTE_ENERGY, BYTE_POWER, FACTOR, FREQUENCY, PER_LENGTH, VOLTAGE
from ..systems.quantities import quantity_of
from ..systems.system_symbols import Limits, Quantity
from ..systems.units import BANDWIDTH, BYTES, COUNT, FRACTION, POWER, TIME

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_AREA = Limits(AREA, 1e-14, 1e-1)
_VOLT = Limits(VOLTAGE, 1e-2, 10.0)
_CLOCK = Limits(FREQUENCY, 1e6, 1e12)
_ENERGY = Limits(BYTE_ENERGY, 1e-17, 1e-8)
_SHARE, _NONE_TOO = Limits(FRACTION, 1e-9, 1.0), Limits(FRACTION, 1e-9, 1.0, zero=True)
_STATIC = Limits(BYTE_POWER, 1e-20, 1e-3, zero=True)
_SMALL_BYTES = replace(BYTES, example="32 KiB")
LEVELS: Final = ("l2", "l1", "registers")

BASE: Final[Mapping[str, Limits]] = {
    "core_area": _AREA,
    "core_power": Limits(POWER, 1e-9, 1e4),
    "core_frequency": _CLOCK,
    "core_voltage": _VOLT,
    "core_threshold": _VOLT,
    "core_margin": _VOLT,
    "core_limit_frequency": _CLOCK,
    "core_flops": Limits(COUNT, 1, 1e7),
    "core_group": Limits(COUNT, 1, 1e5),
    "vector_flops": Limits(COUNT, 1, 1e6),
    "operand_bytes": Limits(FACTOR, 1e-6, 1e3, zero=True),
    **{
        f"{level}_{name}": limits
        for level in LEVELS
        for name, limits in (
            ("bank", Limits(_SMALL_BYTES, 1.0, 1e10)),
            ("cell_area", Limits(BYTE_AREA, 1e-18, 1e-8)),
            ("cell_share", Limits(FRACTION, 1e-3, 1.0)),
            ("port_area", Limits(AREA, 1e-16, 1e-4, zero=True)),
            ("energy", _ENERGY),
            ("static", _STATIC),
            ("cycle_bytes", Limits(_SMALL_BYTES, 1.0, 1e9)),
        )
    },
    "controller_area": _AREA,
    "memory_link_density": Limits(PER_LENGTH, 1.0, 1e8),
    "network_link_density": Limits(PER_LENGTH, 1.0, 1e8),
    "network_link_area": _AREA,
}
"""Quantities of a logic node: of a core, of the memories on the die, of controllers and links."""
OPTIONAL: Final = (
    "core_limit_frequency",
    *(f"{level}_cycle_bytes" for level in LEVELS),
    "network_link_density",
    "network_link_area",
)
"""Quantities that a set may leave out: nothing then limits what they limit."""
STEPS: Final = (
    "voltage",
    "core_area",
    "core_power",
    "sram_area",
    "sram_energy",
    "port_area",
    "controller_area",
)
"""What changes from node to node."""
FACTOR_LIMITS: Final = Limits(FACTOR, 1e-2, 10.0)

AREAS: Final = ("core", *LEVELS, "memory", "network")
EDGES: Final = ("memory", "network")
BUDGET: Final[Mapping[str, Limits]] = {
    "die_area": Limits(AREA, 1e-7, 1e-1),
    "package_area": Limits(AREA, 1e-7, 10.0),
    "power": Limits(POWER, 1e-2, 1e6),
    **{
        f"{kind}_{name}": _NONE_TOO if name == "network" else _SHARE
        for kind, names in (("area", AREAS), ("power", AREAS), ("edge", EDGES))
        for name in names
    },
    "cores": Limits(COUNT, 1, 1e8),
    "stacks": Limits(COUNT, 1, 1e4),
}
"""A chip's budget: totals, shares of them, and counts that replace what the shares would hold."""
COUNTS: Final = ("cores", "stacks")

MEMORY: Final[Mapping[str, Limits]] = {
    "pins": Limits(COUNT, 1, 1e6),
    "frequency": _CLOCK,
    "capacity": Limits(BYTES, 1e7, 1e13),
    "area": _AREA,
    "energy": _ENERGY,
    "static": _STATIC,
    "voltage": _VOLT,
    "threshold": _VOLT,
    "margin": _VOLT,
    "voltage_limit": _VOLT,
}
NETWORK: Final[Mapping[str, Limits]] = {
    "rate": Limits(BANDWIDTH, 1e6, 1e13),
    "lanes": Limits(COUNT, 1, 1e6),
    "frequency": _CLOCK,
    "energy": _ENERGY,
    "area": _AREA,
    "density": Limits(PER_LENGTH, 1.0, 1e8),
    "voltage": _VOLT,
    "threshold": _VOLT,
    "margin": _VOLT,
    "latency": Limits(TIME, 1e-10, 1e-1, zero=True),
    "size": Limits(COUNT, 1, 1e6),
}


def read(table: Any, known: Mapping[str, Limits], where: str, needed: Iterable[str] = ()) -> dict[str, Quantity]:
    """The quantities of a table, each checked.

    Args:
        table: what the file or the user gives, by name.
        known: the names that there are, with their limits.
        where: what an error line begins with.
        needed: names that must be there.

    Raises:
        InputError: something else than a table, an unknown name with the nearest, a missing one, a value out of range.
    """
    if not isinstance(table, dict):
        raise InputError(f"{where}: found {quote(table)}, expected a table of {', '.join(known)}")
    for name in table:
        if name not in known:
            hint = nearest(str(name), known) or f", expected one of {', '.join(known)}"
            raise InputError(f"{where}: unknown name {quote(name)}{hint}")
    missing = [name for name in needed if name not in table]
    if missing:
        raise InputError(f"{where}: missing {', '.join(missing)}")
    return {name: quantity_of(entry, known[name], where, name) for name, entry in table.items()}


def times(quantity: Quantity, factor: float, how: str) -> Quantity:
    """A quantity scaled, with the scaling in its source; a spread scales with it."""
    low, high = (None if end is None else end * factor for end in (quantity.low, quantity.high))
    return Quantity(quantity.value * factor, f"{quantity.source}; {how}", low, high)
