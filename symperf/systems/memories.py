"""Memory technologies: what one stack or chip delivers, from `catalogue/memories.toml`; each number with its source."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ..common.errors import InputError, nearest, quote
from ..common.files import read_toml
from .physical_units import AREA, BYTE_ENERGY
from .quantities import quantity_of, text_of
from .system_symbols import Limits, Quantity
from .units import BANDWIDTH, BYTES, COUNT

CATALOGUE: Final = Path(__file__).parent.parent / "catalogue" / "memories.toml"
KINDS: Final = ("standard", "vendor", "announced", "projection")
LIMITS: Final = {
    "pins": Limits(COUNT, 1, 1e6),
    "pin_rate": Limits(BANDWIDTH, 1e7, 1e12),
    "count": Limits(COUNT, 1, 1e4),
}
MORE: Final = {
    "capacity": Limits(BYTES, 1e7, 1e13),
    "area": Limits(AREA, 1e-7, 1e-2),
    "energy": Limits(BYTE_ENERGY, 1e-14, 1e-8),
}
"""What only a generated chip needs; a table may leave it out."""


@dataclass(frozen=True)
class Memory:
    """A memory technology.

    Attributes:
        name: of the table in the catalogue.
        title: with the data rate of a pin.
        kind: "standard", "vendor", "announced" or "projection".
        pins: data pins of a stack, or of a chip.
        pin_rate: bytes per second of one pin.
        count: stacks or chips of one device.
        capacity: bytes of a stack, or of a chip.
        area: of a stack on the package.
        energy: joules per byte read or written.
    """

    name: str
    title: str
    kind: str
    pins: Quantity
    pin_rate: Quantity
    count: Quantity
    capacity: Quantity | None = None
    area: Quantity | None = None
    energy: Quantity | None = None

    @property
    def stack_bandwidth(self) -> float:
        """Bytes per second of a stack, or of a chip."""
        return self.pins.value * self.pin_rate.value

    @property
    def device_bandwidth(self) -> float:
        """Bytes per second of a device with `count` of them."""
        return self.count.value * self.stack_bandwidth

    @classmethod
    def load(cls, name: str) -> Memory:
        """One technology by name.

        Raises:
            InputError: no such technology, with the nearest name, or a file that says something else than expected.

        >>> round(Memory.load("hbm3").stack_bandwidth / 1e9, 1)
        819.2
        """
        table = read_toml(CATALOGUE, CATALOGUE.name)
        if name not in table:
            raise InputError(f"memory: found {quote(name)}, expected {' or '.join(table)}{nearest(str(name), table)}")
        return _read(name, table[name])


def names() -> list[str]:
    """The technologies in the catalogue, in the order of the file.

    >>> names()
    ['gddr6', 'hbm2', 'hbm2e', 'hbm3', 'hbm3e', 'hbm4', 'hbm4e', 'hbm6', 'hbm7']
    """
    return list(read_toml(CATALOGUE, CATALOGUE.name))


def _read(name: str, table: Any) -> Memory:
    label = f"{CATALOGUE.name}: {name}"
    known = ("title", "kind", *LIMITS)
    if not isinstance(table, dict) or not set(known) <= set(table) <= {*known, *MORE}:
        raise InputError(f"{label}: found {quote(table)}, expected a table of {', '.join(known)}")
    kind = text_of(table, "kind", label)
    if kind not in KINDS:
        raise InputError(f"{label}: kind: found {quote(kind)}, expected {' or '.join(KINDS)}{nearest(kind, KINDS)}")
    quantities = {
        key: quantity_of(table[key], limits, label, key) for key, limits in (LIMITS | MORE).items() if key in table
    }
    return Memory(name, text_of(table, "title", label), kind, **quantities)
