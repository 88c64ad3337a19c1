"""From a generated chip to the system of devices with it, as the table of a system file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..common.errors import InputError, quote
from ..systems.system import System
from ..systems.system_symbols import SYMBOLS

if TYPE_CHECKING:
    from ..systems.system_symbols import Quantity
    from .chip import Chip

FIGURES = (
    "vector_rate",
    "memory_bandwidth",
    "memory_capacity",
    "l2_bandwidth",
    "l2_capacity",
    "compute_units",
    "scale_up_bandwidth",
    "scale_out_bandwidth",
    "matrix_energy",
    "static_power",
)
"""Figures of a chip that a system has under the same name."""
LIKE = ("_efficiency", "_latency", "_half_bytes")
"""Ends of the names of what comes from a system that the chip is like."""


def system_of(chip: Chip, name: str) -> System:
    """The system of devices with a chip.

    Raises:
        InputError: an empty name, or a scale-out network without one inside a domain.
    """
    return System.from_table(table_of(chip, name), f"technology {chip.technology.name}")


def table_of(chip: Chip, name: str) -> dict[str, Any]:
    """The table of a system file: every value with where it comes from.

    The vector units draw at their peak what the matrix units draw at theirs, which gives the energy of their FLOP; that
    is assumed, since no source tells it. Without a network inside a domain each device is a domain of its own, joined
    by the network between them.
    """
    if not name.strip():
        raise InputError(f"system: name: found {quote(name)}, expected a text that is not empty")
    technology, figures = chip.technology, chip.figures
    how = f"generated: technology {technology.name}, {technology.node}, {technology.memory.name}"
    table: dict[str, Any] = {"name": name, "title": f"{technology.title}, {technology.node}, {technology.memory.name}"}
    rates = {"bf16": 1.0, "fp16": 1.0, **technology.precisions}
    table["matrix_rate"] = {p: _entry(figures["matrix_rate"] * x, how) for p, x in rates.items()}
    for figure in FIGURES:
        if figure in figures:
            table[figure] = _entry(figures[figure], how)
    vector = figures["core_flop_energy"] * figures["matrix_rate"] / figures["vector_rate"]
    table["vector_energy"] = _entry(
        vector, "assumed: as much power at the peak of the vector units as of the matrix units"
    )
    table["power"] = _quantity(chip.budget["power"])
    table["memory_energy"] = _quantity(technology.memory.quantities["energy"])
    table["l2_energy"] = _quantity(technology.quantities["l2_energy"])
    _networks(chip, table)
    if technology.like:
        _like(System.load(technology.like), table)
    return table


def _networks(chip: Chip, table: dict[str, Any]) -> None:
    """What a system tells of its networks; one between domains alone is the scale-up network of all devices."""
    technology = chip.technology
    tiers = {"scale_up": technology.scale_up, "scale_out": technology.scale_out}
    alone = technology.scale_up is None and technology.scale_out is not None
    for tier, network in tiers.items():
        if network is None:
            continue
        own = "scale_up" if alone else tier
        if own != tier:
            table[f"{own}_bandwidth"] = table.pop(f"{tier}_bandwidth")
        table[f"{own}_energy"] = _quantity(network.quantities["energy"])
        if "latency" in network.quantities:
            table[f"{own}_latency"] = _quantity(network.quantities["latency"])
        if own == "scale_up":
            size = network.quantities.get("size")
            table["scale_up_size"] = (
                _entry(64, "assumed: one flat network of 64 devices") if size is None else _quantity(size)
            )


def _like(system: System, table: dict[str, Any]) -> None:
    """Efficiencies and latencies of a system, where the table has what they are of."""
    for name, quantity in system.quantities.items():
        needs = SYMBOLS[name].needs
        if name.endswith(LIKE) and name not in table and (not needs or needs in table):
            if quantity.source.startswith(("assumed:", "derived:")):
                continue
            table[name] = _quantity(quantity) | {"source": f"as {system.name}: {quantity.source}"}


def _entry(value: float, source: str) -> dict[str, Any]:
    return {"value": value, "source": source}


def _quantity(quantity: Quantity) -> dict[str, Any]:
    found: dict[str, Any] = {"value": quantity.value, "source": quantity.source}
    return found | {key: end for key, end in (("low", quantity.low), ("high", quantity.high)) if end is not None}


def toml_of(table: dict[str, Any]) -> str:
    """The table as the text of a TOML file.

    >>> print(toml_of({"name": "x", "power": {"value": 400.0, "source": "a sheet"}}))
    name = "x"
    <BLANKLINE>
    [power]
    value = 400.0
    source = "a sheet"
    <BLANKLINE>
    """
    lines = [f"{key} = {_text(value)}" for key, value in table.items() if not isinstance(value, dict)]
    for key, value in table.items():
        if isinstance(value, dict):
            entries = {key: value} if "value" in value else {f"{key}.{part}": entry for part, entry in value.items()}
            for path, entry in entries.items():
                lines += ["", f"[{path}]", *(f"{name} = {_text(x)}" for name, x in entry.items())]
    return "\n".join(lines) + "\n"


def _text(value: Any) -> str:
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return '"' + "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in escaped) + '"'
    return repr(float(value)) if isinstance(value, float) else str(value)
