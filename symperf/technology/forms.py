"""The closed forms of a generated chip over its budget and its technology; needs SymPy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sympy

from ..formulas.language.atoms import Min
from ..formulas.language.symbols import strip_units
from ..formulas.technology import chip, links, voltage
from .quantities import LEVELS

if TYPE_CHECKING:
    from .structure import ChipStructure

BEAT = sympy.Rational(1, 8)
"""Bytes that a link carries in a cycle."""


def symbol_of(name: str) -> Any:
    """The symbol of a quantity of the technology or of the budget."""
    return sympy.Symbol(name, positive=True)


def chip_forms(structure: ChipStructure) -> dict[str, Any]:
    """The closed form of every figure of a chip, by name, in SI units.

    Cores, clock and rates; bytes and bandwidth of each memory; bandwidth of each network; energy of a FLOP; power that
    no share of the budget names.
    """
    found: dict[str, Any] = {}
    _core(found, structure)
    for level in LEVELS:
        _on_chip(found, level)
    _memory(found, structure)
    for tier, how in (("scale_up", structure.scale_up), ("scale_out", structure.scale_out)):
        if how != "none":
            found[f"{tier}_bandwidth"] = _network(tier, how)
    return {name: strip_units(form) for name, form in found.items()}


def _area(name: str) -> Any:
    return symbol_of("die_area") * symbol_of(f"area_{name}")


def _power(name: str) -> Any:
    return symbol_of("power") * symbol_of(f"power_{name}")


def _core(found: dict[str, Any], structure: ChipStructure) -> None:
    cores = symbol_of("cores") if structure.counted else chip.units_of_area(_area("core"), symbol_of("core_area"))
    law = (_power("core"), cores * symbol_of("core_power"))
    shape = (symbol_of("core_overdrive"), symbol_of("core_threshold"), symbol_of("core_margin"))
    clock = voltage.operating_frequency(*law, symbol_of("core_frequency"), *shape)
    frequency = voltage.capped_frequency(clock, symbol_of("core_limit_frequency"))
    volts = voltage.operating_voltage(*law, *shape)
    groups = chip.floor_div(cores, symbol_of("core_group"))
    nominal = symbol_of("core_threshold") + symbol_of("core_overdrive")
    flop = chip.nominal_flop_energy(symbol_of("core_power"), symbol_of("core_flops"), symbol_of("core_frequency"))
    found |= {
        "cores": cores,
        "compute_units": groups,
        "voltage": volts,
        "frequency": frequency,
        "matrix_rate": chip.clocked_rate(cores, symbol_of("core_flops"), frequency),
        "vector_rate": chip.clocked_rate(groups, symbol_of("vector_flops"), frequency),
        "core_flop_energy": flop * (volts / nominal) ** 2,
        "matrix_energy": flop * (volts / nominal) ** 2 + symbol_of("operand_bytes") * symbol_of("registers_energy"),
    }


def _on_chip(found: dict[str, Any], level: str) -> None:
    banks = chip.sram_banks(
        _area(level),
        symbol_of(f"{level}_cell_share"),
        symbol_of(f"{level}_bank"),
        symbol_of(f"{level}_cell_area"),
        found["compute_units"],
        symbol_of(f"{level}_port_area"),
    )
    size = chip.banked_bytes(banks, symbol_of(f"{level}_bank"))
    moving = chip.moving_power(_power(level), symbol_of(f"{level}_static"), size)
    found[f"{level}_capacity"] = size
    found[f"{level}_bandwidth"] = chip.sram_bandwidth(
        moving, symbol_of(f"{level}_energy"), symbol_of(f"{level}_cycle_bytes"), found["frequency"]
    )


def _memory(found: dict[str, Any], structure: ChipStructure) -> None:
    space = symbol_of("package_space")
    stacks = (
        symbol_of("stacks")
        if structure.stacked
        else links.memory_stacks(space, symbol_of("memory_area"), _area("memory"), symbol_of("controller_area"))
    )
    edge = (chip.die_edges(symbol_of("die_area")), symbol_of("edge_memory"), symbol_of("memory_link_density"))
    count = links.memory_links(*edge, stacks, symbol_of("memory_pins"))
    size = stacks * symbol_of("memory_capacity_each")
    power = chip.moving_power(_power("memory"), symbol_of("memory_static"), size)
    if structure.memory_law:
        found["memory_bandwidth"] = _by_law("memory", count, power, symbol_of("memory_limit_frequency"))
    else:
        found["memory_bandwidth"] = links.linked_bandwidth(
            count, BEAT, symbol_of("memory_frequency"), power, symbol_of("memory_energy")
        )
    found |= {"stacks": stacks, "memory_links": count, "memory_capacity": size}


def _network(tier: str, how: str) -> Any:
    lanes, clock, energy = symbol_of(f"{tier}_lanes"), symbol_of(f"{tier}_frequency"), symbol_of(f"{tier}_energy")
    if how == "adapter":
        return links.clocked_bandwidth(lanes, BEAT, clock)
    edge = (chip.die_edges(symbol_of("die_area")), symbol_of("edge_network"), symbol_of(f"{tier}_density"))
    count = links.network_links(*edge, _area("network"), symbol_of(f"{tier}_area"))
    if how == "law":
        return _by_law(tier, count, _power("network"), sympy.oo)
    return links.linked_bandwidth(Min(lanes, count), BEAT, clock, _power("network"), energy)


def _by_law(name: str, count: Any, power: Any, limit: Any) -> Any:
    """Bandwidth of links whose voltage and clock follow from their power."""
    nominal = links.clocked_bandwidth(count, BEAT, symbol_of(f"{name}_frequency")) * symbol_of(f"{name}_energy")
    clock = voltage.operating_frequency(
        power,
        nominal,
        symbol_of(f"{name}_frequency"),
        symbol_of(f"{name}_overdrive"),
        symbol_of(f"{name}_threshold"),
        symbol_of(f"{name}_margin"),
    )
    if limit is not sympy.oo:
        clock = voltage.capped_frequency(clock, limit)
    return links.clocked_bandwidth(count, BEAT, clock)
