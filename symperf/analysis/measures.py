"""Quantities and symbols in the units that people read."""

from __future__ import annotations

import math
from types import MappingProxyType

from ..common.vocabulary import meaning_of, unit
from ..systems import physical_units, units
from ..systems.units import UnitKind
from ..train.inputs import limits_of

RATIOS = ("mfu", "hfu", "mbu", "share of")
"""Beginnings or ends of the names of quantities that are read in per cent."""
ENERGY = UnitKind(
    "energy",
    "5 MJ",
    MappingProxyType({"J": 1.0, "kJ": 1e3, "MJ": 1e6, "GJ": 1e9, "kWh": 3.6e6}),
    ("J", "kJ", "MJ", "GJ"),
)
SPEED = UnitKind(
    "throughput",
    "20 ktoken/s",
    MappingProxyType({"token/s": 1.0, "ktoken/s": 1e3, "Mtoken/s": 1e6}),
    ("token/s", "ktoken/s", "Mtoken/s"),
)
KINDS = {
    "s": units.TIME,
    "B": units.BYTES,
    "B/s": units.BANDWIDTH,
    "FLOP/s": units.RATE,
    "J/s": units.POWER,
    "$": units.PRICE,
    "USD": units.PRICE,
    "J/FLOP": physical_units.FLOP_ENERGY,
    "J/B": physical_units.BYTE_ENERGY,
    "$/s": physical_units.HOURLY,
    "J": ENERGY,
    "1/s": SPEED,
}
"""How values are read and written, by the SI unit of a symbol or quantity."""
DRAWN = {"$/s": ("USD/h", 3600.0), "$": ("USD", 1.0)}
"""Units of axes that are not the SI unit, and how many of them it is."""
SPENT = {"cost": "$", "energy": "J", "carbon": "kg"}
"""Units of what a run spends."""


def unit_of(name: str) -> str:
    """The SI unit of a symbol, an output, a term or a resource; "1" of a number."""
    if name in SPENT:
        return SPENT[name]
    known = meaning_of(name)
    if known is not None:
        return known.unit
    if name.endswith(("_mfu", "_mbu")):
        return "1"
    return unit(name) or ("s" if name in ("prefill", "decode", "time_per_token") else "1")


def kind_of_unit(name: str) -> UnitKind:
    """How a value of a symbol or quantity is read and written."""
    limits = limits_of(name)
    if limits is not None:
        return limits.dimension
    return KINDS.get(unit_of(name), units.FRACTION)


def spell(name: str, value: float) -> str:
    """A value of a symbol or quantity to four digits in the unit that suits its size.

    >>> spell("time", 0.02), spell("memory", 8e10), spell("mfu", 0.5), spell("batch", 96.0)
    ('20 ms', '80 GB', '50 %', '96')
    """
    if math.isinf(value):
        return "infinity"
    if any(name.startswith(part) or name.endswith(part) for part in RATIOS):
        return f"{100 * value:.4g} %"
    kind = kind_of_unit(name)
    if kind not in (units.FRACTION, units.COUNT):
        return units.spell(value, kind) if value else f"0 {kind.scale[0]}"
    return f"{value:.0f}" if value % 1 == 0 and abs(value) < 1e15 else f"{value:.6g}"


def axis_scale(name: str) -> float:
    """What values of a symbol or quantity are multiplied by to be in the unit of `axis`."""
    return DRAWN.get(unit_of(name), ("", 1.0))[1]


def axis(name: str, *, named: bool = True) -> str:
    """The name of a symbol or quantity with its unit, or the unit alone, as the label of an axis."""
    unit_ = DRAWN.get(unit_of(name), (unit_of(name), 1.0))[0]
    if not named:
        return "" if unit_ == "1" else unit_
    return name if unit_ == "1" else f"{name} ({unit_})"


def si_axis(name: str) -> str:
    """The name of a symbol or quantity with its SI unit, as the label of an axis whose values are not scaled."""
    return name if unit_of(name) == "1" else f"{name} ({unit_of(name)})"
