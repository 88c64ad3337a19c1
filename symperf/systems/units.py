"""Numbers with units, read and written: "4.8 TB/s", "200 Gb/s", "5 us", "40 MiB", "80 %".

Units are case-sensitive, since b and B, m and M differ by factors of 8 and 1e9; a near miss is refused with
the spellings it may have meant. Decimal prefixes are powers of 1000, `Ki`, `Mi`, ... of 1024 (IEC 80000-13).
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from ..common.errors import InputError, nearest, quote

if TYPE_CHECKING:
    from collections.abc import Mapping

_DECIMAL = {"k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
_BINARY = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "Pi": 2.0**50}
_NUMBER = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)\s*(.*)", re.DOTALL)


@dataclass(frozen=True)
class UnitKind:
    """A kind of quantity: its name, an example for error lines, and the SI factor of every unit it may have."""

    name: str
    example: str
    units: Mapping[str, float]
    scale: tuple[str, ...]
    """The units that `scaled` writes, from small to large."""


def _dimension(name: str, example: str, units: dict[str, float], scale: tuple[str, ...]) -> UnitKind:
    return UnitKind(name, example, MappingProxyType(units), scale)


def _add_prefixes(bases: dict[str, float], prefixes: dict[str, float]) -> dict[str, float]:
    return {p + base: factor * size for base, size in bases.items() for p, factor in prefixes.items()}


_FLOPS = {"FLOP/s": 1.0, "FLOPS": 1.0, "OP/s": 1.0, "OPS": 1.0}
_BYTES = {"B": 1.0, "KB": 1e3} | _add_prefixes({"B": 1.0}, _DECIMAL | _BINARY)
_BITS = _add_prefixes({"b": 0.125, "bit": 0.125}, _DECIMAL)
_PER_SECOND = {f"{u}/s": f for u, f in (_BYTES | _BITS).items()} | {
    f"{p}{u}ps": f * size for p, f in _DECIMAL.items() for u, size in (("B", 1.0), ("b", 0.125))
}

RATE = _dimension(
    "rate of operations",
    "312 TFLOP/s",
    _FLOPS | _add_prefixes(_FLOPS, _DECIMAL),
    ("FLOP/s", "kFLOP/s", "MFLOP/s", "GFLOP/s", "TFLOP/s", "PFLOP/s"),
)
BANDWIDTH = _dimension("bandwidth", "2039 GB/s", _PER_SECOND, ("B/s", "kB/s", "MB/s", "GB/s", "TB/s", "PB/s"))
BYTES = _dimension("size", "80 GB", _BYTES, ("B", "kB", "MB", "GB", "TB", "PB"))
TIME = _dimension(
    "time",
    "5 us",
    {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ns": 1e-9},
    ("ns", "us", "ms", "s"),
)
POWER = _dimension("power", "400 W", {"W": 1.0, "kW": 1e3, "MW": 1e6}, ("W", "kW", "MW"))
PRICE = _dimension("price", "25000 USD", {"USD": 1.0, "$": 1.0, "dollars": 1.0}, ("USD",))
FRACTION = _dimension("fraction", "0.8 or 80 %", {"": 1.0, "%": 1e-2}, ("",))
COUNT = _dimension("whole number", "108", {"": 1.0}, ("",))

_ALL = (RATE, BANDWIDTH, BYTES, TIME, POWER, PRICE, FRACTION)


def parse(text: str, dimension: UnitKind) -> float:
    """Return the SI value of a number with a unit of `dimension`, such as "4.8 TB/s".

    Signs and magnitudes are not judged here, but the result is finite.

    >>> parse("200 Gb/s", BANDWIDTH)
    25000000000.0
    >>> parse("80 %", FRACTION)
    0.8

    Raises:
        InputError: no number, no unit where one is needed, a unit of another dimension or of no dimension.

    """
    expected = f"expected a {dimension.name} such as {dimension.example}"
    match = _NUMBER.fullmatch(text.strip())
    if match is None:
        raise InputError(f"found {quote(text)}, which does not begin with a plain number; {expected}")
    unit = match[2].strip()
    if unit not in dimension.units:
        raise InputError(f"found {quote(text)}, {_unit_fault(unit, dimension)}; {expected}")
    # One rounding, not two: 5 us is the float nearest to 5e-6, and 80 % the one nearest to 0.8.
    factor = dimension.units[unit]
    value = float(match[1]) / round(1 / factor) if factor < 1 else float(match[1]) * factor
    if not math.isfinite(value):
        raise InputError(f"found {quote(text)}, which is beyond the range of a float; {expected}")
    return value


def _unit_fault(unit: str, dimension: UnitKind) -> str:
    """Say what is wrong with a unit that `dimension` does not have."""
    if not unit:
        return "which has no unit"
    for other in _ALL:
        if unit in other.units:
            return f"whose unit {unit} is one of a {other.name}"
    same = [known for known in dimension.units if known.casefold() == unit.casefold()]
    if same:
        return f"whose unit {unit} is not one (case matters: {' or '.join(same)})"
    return f"whose unit {quote(unit)} is unknown{nearest(unit, dimension.units)}"


def spell(value: float, dimension: UnitKind) -> str:
    """Write a value in the unit that suits its size, to four digits; `parse` reads it back.

    >>> spell(2.039e12, BANDWIDTH)
    '2.039 TB/s'
    >>> spell(0.735, FRACTION)
    '0.735'
    """
    fitting = [u for u in dimension.scale if dimension.units[u] <= abs(value) * (1 + 1e-9)]
    unit = fitting[-1] if fitting else dimension.scale[0]
    return f"{value / dimension.units[unit]:.4g} {unit}".strip()
