"""What the kernels of a serving software reach on a system: constants by system, and by format of products."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from ..common.errors import InputError, nearest, quote
from ..systems.kernel_constants import FORMAT_CONSTANTS, LINKED, is_hosted
from ..systems.system import catalogue_names
from ..systems.system_symbols import SYMBOLS
from .formats import FORMATS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..systems.system import System
    from ..systems.system_symbols import Limits, Quantity

ANY: Final = "any"
"""The key of what holds for systems that a software was not measured on."""


@dataclass(frozen=True)
class Reached:
    """Constants of one software on one system.

    Attributes:
        constants: that hold for every format.
        formats: those of products in one format, by format.
    """

    constants: Mapping[str, Quantity]
    formats: Mapping[str, Mapping[str, Quantity]]

    def under(self, precision: str = "") -> dict[str, Quantity]:
        """The constants that hold under a precision; of a format without any those of the format that it is like."""
        known = precision if precision in self.formats or not precision else FORMATS[precision].like
        return {**self.constants, **self.formats.get(known, {})}

    def over(self, other: Reached) -> Reached:
        """These constants, and those of another where these say nothing."""
        names = dict.fromkeys((*other.formats, *self.formats))
        formats = {name: {**other.formats.get(name, {}), **self.formats.get(name, {})} for name in names}
        return Reached({**other.constants, **self.constants}, formats)

    @property
    def count(self) -> int:
        """How many constants there are."""
        return len(self.constants) + sum(len(each) for each in self.formats.values())


def reached_on(system: System, reached: Mapping[str, Reached]) -> Reached:
    """What holds on a system: of the nearest of its lineage that was measured, and where that says nothing, of any."""
    own = next((reached[name] for name in system.lineage if name in reached), Reached({}, {}))
    own = Reached({n: q for n, q in own.constants.items() if SYMBOLS[n].meant(system.quantities)}, own.formats)
    known = reached.get(ANY, Reached({}, {}))
    anywhere = {name: quantity for name, quantity in known.constants.items() if _applies(name, system)}
    return own.over(Reached(anywhere, known.formats))


def strange(system: System, reached: Mapping[str, Reached]) -> tuple[str, ...]:
    """Warnings of tables [on.SYSTEM] whose name is not that of a system, only nearly: nothing reads them."""
    others = [name for name in reached if name != ANY and name not in system.lineage and name not in _catalogue()]
    near = {name: nearest(name, (*_catalogue(), *system.lineage)) for name in others}
    return tuple(f"on.{name}: no system of this name{told}" for name, told in near.items() if told)


@cache
def _catalogue() -> tuple[str, ...]:
    return tuple(catalogue_names())


def _applies(name: str, system: System) -> bool:
    """Whether a constant of any device means something on a system: it has the links or units that it is about."""
    known = system.quantities
    return SYMBOLS[name].meant(known) and not (name in LINKED and is_hosted(known))


def read(table: object, label: str) -> dict[str, Reached]:
    """The tables [on.SYSTEM] of a profile, with [on.SYSTEM.formats.FORMAT] in them.

    A table's `source` is that of its constants which have none.

    Raises:
        InputError: a table, a format or a constant that is not known, with the nearest name.
    """
    where = f"{label}: on"
    return {name: _reached(entry, f"{where}.{name}") for name, entry in _table(table, where).items()}


def _reached(entry: object, where: str) -> Reached:
    table = _table(entry, where)
    formats = {}
    for name, constants in _table(table.pop("formats", {}), f"{where}.formats").items():
        if name not in FORMATS:
            raise InputError(f"{where}.formats: unknown format {quote(name)}{nearest(name, FORMATS)}")
        formats[name] = _constants(constants, FORMAT_CONSTANTS, f"{where}.formats.{name}", table.get("source"))
    return Reached(_constants(table, SYMBOLS, where), formats)


def _constants(entry: object, known: Mapping[str, Limits], where: str, inherited: object = None) -> dict[str, Quantity]:
    from ..systems.quantities import quantity_of, text_of

    table = _table(entry, where)
    source = text_of(table, "source", where) or inherited
    table.pop("source", None)
    found = {}
    for name, value in table.items():
        if name not in known:
            raise InputError(f"{where}: unknown constant {quote(name)}{nearest(name, known)}")
        quantity = quantity_of(value, known[name], where, name)
        told = isinstance(value, dict) and "source" in value
        found[name] = quantity if told or not source else replace(quantity, source=str(source))
    return found


def _table(entry: object, where: str) -> dict[str, Any]:
    if not isinstance(entry, dict):
        raise InputError(f"{where}: found {quote(entry)}, expected a table")
    return dict(entry)
