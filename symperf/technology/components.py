"""Memories and networks as a chip's generator sees them: one form for standards, products and scaled sets."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ..common.errors import InputError, nearest, quote
from ..common.files import read_toml
from ..systems.memories import Memory
from ..systems.memories import names as memory_names
from ..systems.quantities import text_of
from ..systems.system_symbols import Quantity
from .quantities import MEMORY, NETWORK, read

if TYPE_CHECKING:
    from collections.abc import Mapping

CATALOGUE: Final = Path(__file__).parent.parent / "catalogue" / "technology"
NETWORKS: Final = CATALOGUE / "networks.toml"
LAW: Final = ("voltage", "threshold", "margin")


@dataclass(frozen=True)
class Component:
    """A memory or a network generation.

    Attributes:
        name: of the generation.
        title: in words.
        kind: of a memory "standard", "vendor", ...; of a network "scale_up" or "scale_out".
        quantities: value and source by name.
    """

    name: str
    title: str
    kind: str
    quantities: Mapping[str, Quantity]

    @property
    def has_law(self) -> bool:
        """Whether its clock follows from a voltage, not from a standard."""
        return all(name in self.quantities for name in LAW)

    def value(self, name: str, default: float | None = None) -> float:
        """One quantity in SI units.

        Raises:
            InputError: the generation does not give it, and there is no default.
        """
        if name in self.quantities:
            return self.quantities[name].value
        if default is None:
            raise InputError(f"{self.name}: {name} is not given, expected it for a generated chip")
        return default


def memory_of(name: str, own: Mapping[str, Any], where: str) -> Component:
    """A memory generation of a set, or of the catalogue of memories.

    Raises:
        InputError: no such memory, with the nearest.
    """
    if isinstance(name, str) and name in own:
        return _read(name, own[name], MEMORY, ("pins", "frequency", "capacity", "area", "energy"), where)
    known = list(dict.fromkeys([*own, *memory_names()]))
    if not isinstance(name, str) or name not in known:
        raise InputError(f"memory: found {quote(name)}, expected {' or '.join(known)}{nearest(str(name), known)}")
    memory = Memory.load(name)
    rate = memory.pin_rate
    found = {
        "pins": memory.pins,
        "frequency": Quantity(
            rate.value * 8, rate.source, *(None if x is None else 8 * x for x in (rate.low, rate.high))
        ),
        "capacity": memory.capacity,
        "area": memory.area,
        "energy": memory.energy,
    }
    return Component(name, memory.title, memory.kind, {n: q for n, q in found.items() if q is not None})


def network_of(name: str, kind: str, own: Mapping[str, Any], where: str) -> Component:
    """A network generation of a set, or of the catalogue.

    Raises:
        InputError: no such network of that kind, with the nearest.
    """
    tables = {**read_toml(NETWORKS, NETWORKS.name), **own}
    known = [each for each, table in tables.items() if isinstance(table, dict) and table.get("kind") == kind]
    if not isinstance(name, str) or name not in known:
        raise InputError(f"{kind}: found {quote(name)}, expected {' or '.join(known)}{nearest(str(name), known)}")
    needed = ("frequency", "energy", "area", "density") if name in own else ("rate", "lanes", "energy")
    return _read(name, tables[name], NETWORK, needed, where if name in own else NETWORKS.name)


def _read(name: str, table: Any, known: Mapping[str, Any], needed: tuple[str, ...], where: str) -> Component:
    label = f"{where}: {name}"
    if not isinstance(table, dict):
        raise InputError(f"{label}: found {quote(table)}, expected a table of {', '.join(known)}")
    texts = {key: text_of(table, key, label) for key in ("title", "kind")}
    rest = {key: entry for key, entry in table.items() if key not in texts}
    found = Component(name, texts["title"], texts["kind"], read(rest, known, label, needed))
    check_law(found.quantities, "", label)
    return found


def check_law(quantities: Mapping[str, Quantity], prefix: str, where: str) -> None:
    """Refuse voltages that the power law cannot hold.

    Raises:
        InputError: some of them alone, a nominal voltage not above the threshold, a margin below a third of it.
    """
    given = [f"{prefix}{name}" for name in LAW if f"{prefix}{name}" in quantities]
    if not given:
        return
    if len(given) < len(LAW):
        raise InputError(f"{where}: found {', '.join(given)}, expected voltage, threshold and margin together")
    voltage, threshold, margin = (quantities[f"{prefix}{name}"].value for name in LAW)
    if voltage <= threshold:
        raise InputError(
            f"{where}: {prefix}voltage: found {voltage:g} V, expected one above {prefix}threshold, {threshold:g} V"
        )
    if margin < threshold / 3:
        raise InputError(
            f"{where}: {prefix}margin: found {margin:g} V, expected at least a third of {prefix}threshold, "
            f"{threshold / 3:.3g} V"
        )
