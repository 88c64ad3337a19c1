"""Kinds of quantities that chips, energy and money are measured in; each with the SI factor of its units."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from .units import UnitKind

_PREFIX = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_SMALL = {"": 1.0, "m": 1e-3, "u": 1e-6, "n": 1e-9, "p": 1e-12, "f": 1e-15}
_DATA = {"B": 1.0, "byte": 1.0, "b": 0.125, "bit": 0.125}
HOUR: Final = 3600.0


def _make_kind(name: str, example: str, units: dict[str, float], scale: tuple[str, ...]) -> UnitKind:
    return UnitKind(name, example, MappingProxyType(units), scale)


AREA: Final = _make_kind(
    "chip area", "815 mm2", {"m2": 1.0, "cm2": 1e-4, "mm2": 1e-6, "um2": 1e-12}, ("um2", "mm2", "cm2")
)
LENGTH: Final = _make_kind("length", "300 mm", {"m": 1.0, "cm": 1e-2, "mm": 1e-3, "um": 1e-6}, ("um", "mm", "cm", "m"))
PER_LENGTH: Final = _make_kind("number per length", "400 /mm", {"/m": 1.0, "/cm": 1e2, "/mm": 1e3}, ("/m", "/mm"))
PER_AREA: Final = _make_kind("number per area", "0.1 /cm2", {"/m2": 1.0, "/cm2": 1e4, "/mm2": 1e6}, ("/m2", "/cm2"))
VOLTAGE: Final = _make_kind("voltage", "0.8 V", {"V": 1.0, "mV": 1e-3}, ("mV", "V"))
FREQUENCY: Final = _make_kind(
    "frequency", "1.33 GHz", {f"{p}Hz": f for p, f in _PREFIX.items()}, ("Hz", "kHz", "MHz", "GHz")
)
BYTE_ENERGY: Final = _make_kind(
    "transfer energy",
    "3.9 pJ/bit",
    {f"{p}J/{d}": f / size for p, f in _SMALL.items() for d, size in _DATA.items()},
    ("fJ/B", "pJ/B", "nJ/B"),
)
FLOP_ENERGY: Final = _make_kind(
    "FLOP energy",
    "0.5 pJ/FLOP",
    {f"{p}J/{u}": f for p, f in _SMALL.items() for u in ("FLOP", "OP")},
    ("fJ/FLOP", "pJ/FLOP", "nJ/FLOP"),
)
BYTE_AREA: Final = _make_kind(
    "cell area",
    "6.4e-8 mm2/bit",
    {f"{u}/{d}": f / size for u, f in AREA.units.items() for d, size in _DATA.items()},
    ("um2/B", "mm2/B"),
)
BYTE_POWER: Final = _make_kind(
    "power per byte",
    "8e-12 W/bit",
    {f"{p}W/{d}": f / size for p, f in _SMALL.items() for d, size in _DATA.items()},
    ("fW/B", "pW/B", "nW/B", "uW/B"),
)
FACTOR: Final = _make_kind("factor", "0.67", {"": 1.0}, ("",))
HOURLY: Final = _make_kind(
    "price per hour",
    "4.92 USD/h",
    {f"{c}/{t}": 1 / s for c in ("USD", "$") for t, s in (("h", HOUR), ("hour", HOUR), ("s", 1.0))},
    ("USD/h",),
)
ENERGY_PRICE: Final = _make_kind(
    "price of electricity",
    "0.08 USD/kWh",
    {f"{c}/{u}": 1 / j for c in ("USD", "$") for u, j in (("kWh", 3.6e6), ("MWh", 3.6e9), ("J", 1.0))},
    ("USD/kWh",),
)
BYTE_PRICE: Final = _make_kind(
    "price per byte", "15 USD/GB", {f"{c}/{p}B": 1 / f for c in ("USD", "$") for p, f in _PREFIX.items()}, ("USD/GB",)
)
INTENSITY: Final = _make_kind(
    "carbon of electricity",
    "481 g/kWh",
    {f"{m}/{u}": f / j for m, f in (("g", 1e-3), ("kg", 1.0)) for u, j in (("kWh", 3.6e6), ("J", 1.0))},
    ("g/kWh",),
)
LIFETIME: Final = _make_kind(
    "lifetime",
    "4 years",
    {"s": 1.0, "h": HOUR, "days": 86400.0, "year": 365.25 * 86400.0, "years": 365.25 * 86400.0},
    ("s", "h", "days", "years"),
)
