"""Training software as a named profile: what share of a device's efficiencies its kernels reach, each with its source.

A system's efficiencies are those of the best published kernels. Software of another generation has others:
FlashAttention in Triton, say, or FlashAttention-2 on a device that has a third. A profile multiplies the efficiencies
by shares. Kernels of the software's own, such as those that exchange tokens between experts, have constants instead,
system by system.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ..common.errors import InputError, nearest, quote
from ..common.files import read_toml
from ..common.frozen import Frozen
from .kernel_constants import FAMILIES, TRAINED
from .profiles import locate, names_in
from .quantities import quantity_of, text_of
from .runtime_memory import read_memory
from .software_symbols import SOFTWARE
from .system_symbols import Limits, Quantity
from .units import FRACTION

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from .system import System

CATALOGUE: Final = Path(__file__).parent.parent / "catalogue" / "stacks" / "training"
SHARE: Final = Limits(FRACTION, 1e-3, 1.0)
SCALED: Final = (
    "matrix_efficiency",
    "sustained_efficiency",
    "fp8_efficiency",
    "fp4_efficiency",
    "vector_efficiency",
    "memory_efficiency",
    "attention_efficiency",
    "attention_backward_efficiency",
    "scale_up_efficiency",
    "scale_out_efficiency",
)
"""Efficiencies of which a profile may state a share."""
CONSTANTS: Final = {name: limits for family in TRAINED for name, limits in FAMILIES[family].items()}
"""Constants of kernels that a profile may state in a table [on.SYSTEM]."""
_ENTRY: Final = ("efficiency", "systems", "value", "low", "high", "source")


@dataclass(frozen=True)
class Share:
    """The part of one efficiency that a software reaches.

    Attributes:
        efficiency: its name.
        systems: names of the systems that it holds for; none are all.
        quantity: value, spread and source.
    """

    efficiency: str
    systems: tuple[str, ...]
    quantity: Quantity

    def applies(self, system: System) -> bool:
        """Whether it holds for a system."""
        return not self.systems or system.name in self.systems


@dataclass(frozen=True)
class Chosen:
    """What a software chooses for a field of the plan that is not given.

    Attributes:
        value: of the field, or the name of a degree whose number it takes.
        needs: a degree that has to be above 1 for it; "" for none.
        source: where that is read.
    """

    value: Any
    needs: str
    source: str


@dataclass(frozen=True)
class Software:
    """A training software.

    Attributes:
        name: of the profile.
        title: what it stands for.
        source: where its kernels are read.
        shares: of efficiencies.
        constants: of its own kernels, by system.
        values: of symbols that are of the software and its host, and of memory that it holds beside tensors.
        plan: what it chooses for fields of the plan that are not given.
    """

    name: str
    title: str
    source: str
    shares: tuple[Share, ...]
    constants: Mapping[str, Mapping[str, Quantity]]
    values: Mapping[str, Quantity]
    plan: Mapping[str, Chosen]

    @classmethod
    def load(cls, source: str | os.PathLike[str]) -> Software:
        """The profile of a catalogue name or of a TOML file.

        Raises:
            InputError: one line with the file, the key, what was found and what was expected.

        >>> Software.load("flash-attention-2").shares[0].efficiency
        'attention_efficiency'
        """
        return _read(locate(source, CATALOGUE))

    def on(self, system: System) -> System:
        """The system with the efficiencies and the constants that this software reaches on it."""
        quantities = dict(system.quantities)
        for share in self.shares:
            if share.applies(system) and share.efficiency in quantities:
                quantities[share.efficiency] = _times(quantities[share.efficiency], share.quantity, self.name)
        own = next((self.constants[name] for name in system.lineage if name in self.constants), {})
        found = dataclasses.replace(system, quantities=Frozen(quantities)).with_constants(own)
        return found.with_software(self.values)


def names() -> list[str]:
    """The profiles that come with symperf, sorted."""
    return names_in(CATALOGUE)


def _times(quantity: Quantity, share: Quantity, name: str) -> Quantity:
    """A share of a quantity; relative spreads add in quadrature."""

    def end(which: str) -> float:
        far = [getattr(q, which) or q.value for q in (quantity, share)]
        spread = math.hypot(*(math.log(e / q.value) for e, q in zip(far, (quantity, share), strict=True)))
        return value * math.exp(-spread if which == "low" else spread)

    value = quantity.value * share.value
    source = f"{share.value:.3g} of {quantity.value:.3g} under {name} ({share.source}); {quantity.source}"
    return Quantity(value, source, end("low"), min(end("high"), 1.0))


def _read(path: Path) -> Software:
    label = path.name if path.parent == CATALOGUE else str(path)
    table = read_toml(path, label)
    known = ("name", "title", "source", "share", "on", "values", "memory", "plan")
    for key in table:
        if key not in known:
            raise InputError(f"{label}: unknown key {quote(key)}{nearest(key, known)}")
    if "name" not in table:
        raise InputError(f"{label}: missing name")
    entries = table.get("share", [])
    if not isinstance(entries, list):
        raise InputError(f"{label}: share: found {quote(entries)}, expected tables [[share]]")
    name = text_of(table, "name", label)
    shares = tuple(_share(entry, label) for entry in entries)
    title, source = text_of(table, "title", label) or name, text_of(table, "source", label)
    constants = _constants(table.get("on", {}), label)
    values = {**_values(table.get("values", {}), label), **read_memory(table.get("memory", {}), label)}
    plan = _plan(table.get("plan", {}), label)
    return Software(name, title, source, shares, constants, Frozen(values), plan)


def _plan(table: Any, label: str) -> Mapping[str, Chosen]:
    """The table [plan]: fields, each a table of value and source, and of a degree that it needs above 1."""
    where, known = f"{label}: plan", ("value", "needs", "source")
    found = {}
    for name, entry in _tables(table, where).items():
        each = _tables(entry, f"{where}.{name}")
        for key in each:
            if key not in known:
                raise InputError(f"{where}.{name}: unknown key {quote(key)}{nearest(key, known)}")
        if not isinstance(each.get("value"), str | int | float | bool):
            raise InputError(f"{where}.{name}: value: found {quote(each.get('value'))}, expected a value of the field")
        needs, source = (text_of(each, key, f"{where}.{name}") for key in ("needs", "source"))
        found[name] = Chosen(each["value"], needs, source)
    return Frozen(found)


def _values(table: Any, label: str) -> Mapping[str, Quantity]:
    """The table [values]: symbols of the software, each a value or a table of value, low, high and source."""
    where, found = f"{label}: values", {}
    for name, entry in _tables(table, where).items():
        if name not in SOFTWARE:
            raise InputError(f"{where}: unknown symbol {quote(name)}{nearest(name, SOFTWARE)}")
        found[name] = quantity_of(entry, SOFTWARE[name], where, name)
    return Frozen(found)


def _constants(table: Any, label: str) -> Mapping[str, Mapping[str, Quantity]]:
    """Tables [on.SYSTEM]: constants of kernels, each a value or a table of value, low, high and source."""
    found: dict[str, dict[str, Quantity]] = {}
    for system, entries in _tables(table, f"{label}: on").items():
        where = f"{label}: on.{system}"
        for name, entry in _tables(entries, where).items():
            if name not in CONSTANTS:
                raise InputError(f"{where}: unknown constant {quote(name)}{nearest(name, CONSTANTS)}")
            found.setdefault(system, {})[name] = quantity_of(entry, CONSTANTS[name], where, name)
    return found


def _tables(entry: Any, where: str) -> dict[str, Any]:
    if not isinstance(entry, dict):
        raise InputError(f"{where}: found {quote(entry)}, expected a table")
    return entry


def _share(entry: Any, label: str) -> Share:
    if not isinstance(entry, dict):
        raise InputError(f"{label}: share: found {quote(entry)}, expected a table of {', '.join(_ENTRY)}")
    for key in entry:
        if key not in _ENTRY:
            raise InputError(f"{label}: share: unknown key {quote(key)}{nearest(key, _ENTRY)}")
    efficiency = entry.get("efficiency")
    if efficiency not in SCALED:
        hint = nearest(efficiency, SCALED) if isinstance(efficiency, str) else ""
        raise InputError(f"{label}: share: efficiency: found {quote(efficiency)}, expected {' or '.join(SCALED)}{hint}")
    systems = entry.get("systems", [])
    if not isinstance(systems, list) or not all(isinstance(name, str) and name for name in systems):
        raise InputError(f"{label}: share: systems: found {quote(systems)}, expected a list of names")
    numbers = {key: entry[key] for key in ("value", "low", "high", "source") if key in entry}
    return Share(efficiency, tuple(systems), quantity_of(numbers, SHARE, label, f"share of {efficiency}"))
