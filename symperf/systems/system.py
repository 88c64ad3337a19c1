"""A system: one device, its memory levels, the network tiers around it, and how much of each is attainable.

A system is read from the catalogue or from a TOML file. Every value carries its source. What a system does
not say follows from a stated rule (`ASSUMED`, `vector_rate`) that is named in the value's source and in
`warnings`, or it is refused; nothing comes from another part unless the file names that part as its `base`.
"""

from __future__ import annotations

import dataclasses
import os
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, get_args

from ..common.errors import InputError, nearest, quote
from ..common.files import read_toml
from ..common.frozen import Frozen
from ..common.system_errors import one_line
from .kernel_constants import families_of
from .quantities import quantity_of, text_of
from .runtime_memory import DEFAULT_RUNTIME, runtime_of
from .system_symbols import ASSUMED, MATRIX_RATE, PRECISIONS, SYMBOLS, Quantity, vector_rate
from .units import BANDWIDTH, BYTES, RATE, spell

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


CATALOGUE: Final = Path(__file__).parent.parent / "catalogue" / "systems"
_REQUIRED: Final = ("memory_bandwidth", "memory_capacity")
_TEXTS: Final = ("name", "title", "aliases", "base", "scale_up_links", "runtime", "generation")
Links = Literal["switch", "mesh"]
"""What joins the devices of a scale-up domain: a switch, or a link between every two of them."""


class ChipMaker(Protocol):
    """What makes chips from budgets: `symperf.Technology`."""

    def chip(self, **budget: Any) -> Any:
        """A chip, whose `system(name)` is the system around it."""


@dataclass(frozen=True, repr=False)
class System:
    """A device, its memory levels, its network and the attainable share of each; immutable, SI units.

    `levels`, `quantised`, `tiers`, `links`, `in_switch` and `power_limited` decide which terms the formulas have.
    `levels` ends in "l2" only when `l2_bandwidth` is given; `quantised` says that `compute_units` is given, so that
    matrix products pay for whole waves of tiles; `tiers` holds the network tiers that are given, "scale_up" first;
    `links` is the key `scale_up_links` of the file, "switch" unless it is given.
    """

    name: str
    title: str
    matrix_rates: Mapping[str, Quantity]
    quantities: Mapping[str, Quantity]
    levels: tuple[str, ...]
    quantised: bool
    tiers: tuple[str, ...]
    warnings: tuple[str, ...]
    lineage: tuple[str, ...] = ()
    """Its name, and those of the systems whose values it started from, nearest first."""
    stated: frozenset[str] = frozenset()
    """Values that a user gave, which no software replaces."""
    links: Links = "switch"
    runtime: str = DEFAULT_RUNTIME
    """What runs on the device and holds memory beside tensors, one of `runtime_memory.RUNTIMES`."""
    generation: str = ""
    """The architecture of the device, as its maker calls it; "" where the file says none."""
    software: Mapping[str, Quantity] = Frozen({})
    """Values of symbols of the software that runs on it."""

    @cached_property
    def families(self) -> tuple[str, ...]:
        """The families of kernels whose constants are known."""
        return families_of(self.quantities, self.stated)

    @property
    def in_switch(self) -> bool:
        """Whether switches of a scale-up domain add: `switch_efficiency` is given."""
        return "switch_efficiency" in self.quantities

    @property
    def power_limited(self) -> bool:
        """Whether power bounds lasting products before their tiles do: `sustained_efficiency` is given."""
        return "sustained_efficiency" in self.quantities

    @classmethod
    def load(cls, source: str | os.PathLike[str]) -> System:
        """Load the system of a catalogue name, an alias in any case, or a TOML file (a path).

        >>> System.load("a100-80gb-sxm").value("memory_bandwidth")
        2039000000000.0

        Raises:
            InputError: one line with the file, the key, what was found and what was expected.
        """
        raw = _read(_locate(source), ())
        return _build(raw)

    @classmethod
    def from_table(cls, table: Mapping[str, Any], label: str = "system") -> System:
        """The system that a TOML file with this table describes; a relative base counts from the working folder.

        Raises:
            InputError: as of a file; the line begins with `label`.
        """
        return _build(_read_table(dict(table), label, Path(f"{label}.toml"), ()))

    @classmethod
    def from_technology(cls, technology: ChipMaker, name: str = "generated", **budget: Any) -> System:
        """The system of a chip that a technology and a budget give, with the technology's memory and network.

        Args:
            technology: a logic node with a memory and networks (`symperf.technology.Technology`).
            name: of the system.
            budget: what `Technology.chip` takes: `die_area`, `power`, shares, counts.

        Raises:
            InputError: a budget that holds no core, no memory or more than there is.
        """
        made: System = technology.chip(**budget).system(name)
        return made

    def value(self, name: str) -> float:
        """Return the SI value of one symbol; matrix rates have their own method.

        Raises:
            InputError: no such symbol (the nearest names are listed), or this system does not have it.
        """
        if name in self.quantities:
            return self.quantities[name].value
        if name == "matrix_rate":
            raise InputError(
                f"system {self.name}: matrix_rate depends on the precision: {_list_names(self.matrix_rates)}"
            )
        if name in SYMBOLS:
            raise InputError(f"system {self.name}: {name} is not given; set it, or use a system that has it")
        raise InputError(f"system {self.name}: no symbol {quote(name)}{nearest(name, SYMBOLS)}")

    def matrix_rate(self, precision: str) -> Quantity:
        """Return the dense peak FLOP/s in one precision; no precision stands in for another.

        Raises:
            InputError: not a precision, or one that the part does not have (those that it has are listed).
        """
        if precision in self.matrix_rates:
            return self.matrix_rates[precision]
        near = "" if precision in PRECISIONS else nearest(precision, PRECISIONS)
        raise InputError(
            f"system {self.name}: no matrix_rate for precision {quote(precision)}; "
            f"it has {_list_names(self.matrix_rates)}{near}"
        )

    def with_values(self, values: Mapping[str, object], precision: str, where: str = "set") -> System:
        """Return the system with some values replaced; `matrix_rate` is that of `precision`.

        Raises:
            InputError: a value that a system file could not have either, or an unknown name.
        """
        raw = _Raw(where, self.name, self.title, dict(self.matrix_rates), dict(self.quantities), list(self.lineage))
        raw.stated, raw.links, raw.runtime = {*self.stated, *values}, self.links, self.runtime
        raw.generation = self.generation
        for key, entry in values.items():
            if key == "matrix_rate":
                raw.rates[precision] = quantity_of(entry, MATRIX_RATE, where, key)
            elif key in SYMBOLS:
                raw.values[key] = quantity_of(entry, SYMBOLS[key], where, key)
            else:
                raise InputError(f"{where}: no symbol {quote(key)}{nearest(key, [*SYMBOLS, 'matrix_rate'])}")
        return dataclasses.replace(_build(raw), software=self.software)

    def with_software(self, values: Mapping[str, Quantity]) -> System:
        """The system under a software that gives some symbols values."""
        return dataclasses.replace(self, software=Frozen({**self.software, **values})) if values else self

    def with_constants(self, constants: Mapping[str, Quantity]) -> System:
        """The system with what software reaches on it; values that a user gave stay."""
        new = {name: quantity for name, quantity in constants.items() if name not in self.stated}
        if not new:
            return self
        told = tuple(text for text in self.warnings if text.partition(" = ")[0] not in new)
        return dataclasses.replace(self, quantities=Frozen({**self.quantities, **new}), warnings=told)

    def __repr__(self) -> str:
        """Show the rates, the memory, the network and the number of warnings."""
        rates = ", ".join(f"{p} {spell(q.value, RATE)}" for p, q in self.matrix_rates.items())
        memory = f"{spell(self.value('memory_capacity'), BYTES)} at {spell(self.value('memory_bandwidth'), BANDWIDTH)}"
        network = "".join(
            f", {tier} {spell(self.value(tier + '_bandwidth'), BANDWIDTH)}"
            + (f" x {self.value('scale_up_size'):.0f}" if tier == "scale_up" else "")
            + (" in a mesh" if tier == "scale_up" and self.links == "mesh" else "")
            for tier in self.tiers
        )
        return f"System({self.name}: {rates}; {memory}{network}; {len(self.warnings)} warnings)"


def catalogue_names() -> list[str]:
    """List the names of the systems that come with symperf, sorted."""
    return sorted(path.stem for path in CATALOGUE.glob("*.toml"))


@dataclass
class _Raw:
    """Checked values of one file and of its bases, before the default rules."""

    label: str
    name: str
    title: str
    rates: dict[str, Quantity] = field(default_factory=dict)
    values: dict[str, Quantity] = field(default_factory=dict)
    lineage: list[str] = field(default_factory=list)
    stated: set[str] = field(default_factory=set)
    links: Links = "switch"
    runtime: str = DEFAULT_RUNTIME
    generation: str = ""


@cache
def _aliases() -> dict[str, Path]:
    """Map every alias, in lower case, to its catalogue file. Reads them all, so once and only if needed."""
    found: dict[str, Path] = {}
    for name in catalogue_names():
        path = CATALOGUE / f"{name}.toml"
        for alias in read_toml(path, path.name).get("aliases", []):
            found[alias.casefold()] = path
    return found


def _locate(source: object, folder: Path | None = None, where: str = "system") -> Path:
    """Find the file that a name or path means; a relative path counts from `folder`."""
    if not isinstance(source, str | os.PathLike):
        raise InputError(f"{where}: found {quote(source)}, expected a catalogue name or the path of a .toml file")
    text = os.fspath(source)
    if not isinstance(text, str):
        raise InputError(f"{where}: found {quote(text)}, expected text, not bytes")
    if not isinstance(source, str) or text.endswith(".toml") or "/" in text or os.sep in text:
        return (folder or Path()) / text
    key = text.strip().casefold()
    direct = CATALOGUE / f"{key}.toml"
    if key in catalogue_names():
        return direct
    if key in _aliases():
        return _aliases()[key]
    known = [*catalogue_names(), *_aliases()]
    raise InputError(
        f"{where}: no system {quote(text)} in the catalogue, and not the path of a .toml file"
        f"{nearest(key, known) or '; known: ' + ', '.join(catalogue_names())}"
    )


def _read(path: Path, seen: tuple[Path, ...]) -> _Raw:
    """Read the values of a file on top of those of its base."""
    label = path.name if path.parent == CATALOGUE else str(path)
    return _read_table(read_toml(path, label), label, path, seen)


def _read_table(table: dict[str, Any], label: str, path: Path, seen: tuple[Path, ...]) -> _Raw:
    """Read the values of a table, as of the file `path`, on top of those of its base."""
    known = [*_TEXTS, "matrix_rate", *SYMBOLS]
    for key in table:
        if key not in known:
            raise InputError(f"{label}: unknown key {quote(key)}{nearest(key, known)}")
    names = {key: text_of(table, key, label) for key in ("name", "title", "base")}
    _check_aliases(table.get("aliases", []), label)
    if names["base"]:
        base = _locate(names["base"], path.parent, f"{label}: base")
        with one_line(f"{label}: base: {quote(str(base))}"):
            resolved = path.resolve()
            if base.resolve() in (*seen, resolved):
                chain = " -> ".join(p.name for p in (*seen, resolved, base.resolve()))
                raise InputError(f"{label}: base: found a cycle {chain}, expected a chain that ends")
            if not base.exists():
                raise InputError(
                    f"{label}: base: no such file {base}, expected a catalogue name or the path of a .toml file"
                )
        raw = _read(base, (*seen, resolved))
        raw.name = names["name"] or path.stem
        raw.title = names["title"] or f"{raw.name}, after {raw.title}"
    else:
        raw = _Raw(label, names["name"], names["title"] or names["name"])
        if not raw.name:
            raise InputError(f'{label}: no name, expected name = "..." (or base = "..." to start from a system)')
    raw.label = label
    if "scale_up_links" in table:
        raw.links = _links_of(table["scale_up_links"], label)
    if "runtime" in table:
        raw.runtime = runtime_of(table["runtime"], label)
    raw.generation = text_of(table, "generation", label) or raw.generation
    raw.lineage = [raw.name, *raw.lineage]
    if path.parent != CATALOGUE:
        raw.stated |= SYMBOLS.keys() & table.keys()
    rates = table.get("matrix_rate", {})
    if not isinstance(rates, dict):
        raise InputError(
            f"{label}: matrix_rate: found {quote(rates)}, expected a table by precision "
            'such as { bf16 = "312 TFLOP/s" }'
        )
    for precision, entry in rates.items():
        if precision not in PRECISIONS:
            raise InputError(
                f"{label}: matrix_rate: unknown precision {quote(precision)}, expected one of "
                f"{', '.join(PRECISIONS)}{nearest(precision, PRECISIONS)}"
            )
        raw.rates[precision] = quantity_of(entry, MATRIX_RATE, label, f"matrix_rate.{precision}")
    for key in SYMBOLS.keys() & table.keys():
        raw.values[key] = quantity_of(table[key], SYMBOLS[key], label, key)
    return raw


def _check_aliases(aliases: object, label: str) -> None:
    if not isinstance(aliases, list) or not all(isinstance(a, str) and a for a in aliases):
        raise InputError(f"{label}: aliases: found {quote(aliases)}, expected a list of names")


def _links_of(found: object, label: str) -> Links:
    known: tuple[Links, ...] = get_args(Links)
    for each in known:
        if found == each:
            return each
    near = nearest(found, known) if isinstance(found, str) else ""
    raise InputError(f"{label}: scale_up_links: found {quote(found)}, expected one of {', '.join(known)}{near}")


def _check_links(raw: _Raw) -> None:
    """A mesh has devices to join, and no switch that could add."""
    if raw.links == "switch":
        return
    if "scale_up_bandwidth" not in raw.values:
        raise InputError(f"{raw.label}: scale_up_links: given without scale_up_bandwidth, expected both")
    if "switch_efficiency" in raw.values:
        raise InputError(
            f"{raw.label}: switch_efficiency: found with scale_up_links = {quote(raw.links)}, "
            'expected scale_up_links = "switch", as there is no switch in a mesh'
        )


def _build(raw: _Raw) -> System:
    """Build the system of checked values: what must be there is, and default rules fill in the rest."""
    missing = [*([] if raw.rates else ["matrix_rate"]), *(k for k in _REQUIRED if k not in raw.values)]
    if missing:
        raise InputError(
            f"{raw.label}: missing {', '.join(missing)}; a system needs matrix_rate, {_list_names(_REQUIRED)}"
        )
    given = raw.values
    for key in SYMBOLS:
        if key in given and not SYMBOLS[key].meant(given):
            raise InputError(f"{raw.label}: {key}: given without {SYMBOLS[key].needs}, expected both")
    _check_links(raw)
    values: dict[str, Quantity] = {}
    for key, symbol in SYMBOLS.items():
        if key in given:
            values[key] = given[key]
        elif key == "vector_rate":
            values[key] = vector_rate(raw.rates)
        elif key in ASSUMED and symbol.meant(given):
            value, low, high, statistic = ASSUMED[key]
            values[key] = Quantity(value, f"assumed: {statistic}", low, high)
    tiers = tuple(tier for tier in ("scale_up", "scale_out") if f"{tier}_bandwidth" in given)
    return System(
        name=raw.name,
        title=raw.title,
        matrix_rates=Frozen({p: raw.rates[p] for p in PRECISIONS if p in raw.rates}),
        quantities=Frozen(values),
        levels=("memory", "l2") if "l2_bandwidth" in given else ("memory",),
        quantised="compute_units" in given,
        tiers=tiers,
        warnings=tuple(_warnings(values, given, tiers)),
        lineage=tuple(raw.lineage),
        stated=frozenset(raw.stated),
        links=raw.links,
        runtime=raw.runtime,
        generation=raw.generation,
    )


def _warnings(values: Mapping[str, Quantity], given: Mapping[str, Quantity], tiers: tuple[str, ...]) -> Iterator[str]:
    for key, quantity in values.items():
        if quantity.source.startswith("assumed:") or (key not in given and quantity.source.startswith("derived:")):
            yield f"{key} = {spell(quantity.value, SYMBOLS[key].dimension)} is not measured; {quantity.source}"
    if "compute_units" not in given:
        yield "compute_units is not given: matrix products are smooth, without tiles and waves"
    if "l2_bandwidth" not in given:
        yield "l2_bandwidth is not given: the roofline has no L2 level"
    if len(tiers) < 2:
        missing = "scale_out_bandwidth" if tiers else "scale_up_bandwidth"
        yield f"{missing} is not given: plans cannot go beyond {'one scale-up domain' if tiers else 'one device'}"


def _list_names(names: Mapping[str, Quantity] | tuple[str, ...]) -> str:
    return ", ".join(names)
