"""`symperf technology`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..common.errors import InputError, nearest
from ..common.outputs import write_file
from ..common.table import show_lines
from ..technology import Technology
from ..technology.cost import NODE, PACKAGE, WAFER
from ..technology.quantities import BASE, BUDGET
from ..technology.systems import table_of, toml_of
from .output import console, write_json
from .settings import parse_values

if TYPE_CHECKING:
    import argparse

    from rich.console import Console

    from ..technology import Chip
    from ..technology.cost import ChipCost

PRICES = NODE | WAFER | PACKAGE
COLUMNS = (
    ("cores", 1.0, ""),
    ("compute_units", 1.0, ""),
    ("voltage", 1.0, "V"),
    ("frequency", 1e9, "GHz"),
    ("matrix_rate", 1e12, "TFLOP/s"),
    ("vector_rate", 1e12, "TFLOP/s"),
    ("l2_capacity", 2.0**20, "MiB"),
    ("l2_bandwidth", 1e12, "TB/s"),
    ("l1_capacity", 2.0**20, "MiB"),
    ("l1_bandwidth", 1e12, "TB/s"),
    ("registers_capacity", 2.0**20, "MiB"),
    ("registers_bandwidth", 1e12, "TB/s"),
    ("stacks", 1.0, ""),
    ("memory_capacity", 1e9, "GB"),
    ("memory_bandwidth", 1e12, "TB/s"),
    ("scale_up_bandwidth", 1e9, "GB/s"),
    ("scale_out_bandwidth", 1e9, "GB/s"),
    ("matrix_energy", 1e-12, "pJ/FLOP"),
    ("static_power", 1.0, "W"),
)
"""Figures as they are printed: name, size of the unit, unit."""


def load(options: argparse.Namespace, values: dict[str, Any] | None = None) -> Technology:
    """The technology of the flags."""
    return Technology.load(
        options.technology,
        options.node,
        memory=options.memory,
        scale_up=options.scale_up,
        scale_out=options.scale_out,
        values=values,
    )


def run(options: argparse.Namespace) -> int:
    """Print a generated chip, or write its system."""
    values, budget, prices = sort_settings(parse_values(options.set))
    if prices and not options.cost:
        raise InputError(f"technology: --set {next(iter(prices))} is a price: give --cost too")
    chip = load(options, values).chip(**budget)
    table = table_of(chip, options.name)
    chip.system(options.name)  # refuses what no system file may say, before anything is written
    cost = chip.cost(**prices) if options.cost else None
    if options.output is not None:
        write_file(options.output, toml_of(table), "technology: {}: cannot be written")
    if options.json:
        write_json(as_json(chip, table, cost))
        return 0
    with console() as out:
        show(chip, cost, out)
        if options.output:
            out.print(f"written: {options.output}")
    return 0


def sort_settings(values: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Settings by what they belong to: the node, the budget, the process.

    Raises:
        InputError: an unknown name, with the nearest.
    """
    found: tuple[dict[str, Any], dict[str, Any], dict[str, Any]] = ({}, {}, {})
    kinds = (BASE, BUDGET, PRICES)
    for name, value in values.items():
        place = next((place for place, known in enumerate(kinds) if name in known), None)
        if place is None:
            known = [each for kind in kinds for each in kind]
            hint = nearest(name, known) or f", expected one of {', '.join(BUDGET)} or a quantity of the node"
            raise InputError(f"technology: --set: unknown name {name!r}{hint}")
        found[place][name] = value
    return found


def as_json(chip: Chip, table: dict[str, Any], cost: ChipCost | None) -> dict[str, Any]:
    """The chip with its technology, its budget, every quantity's source, and its system."""
    technology = chip.technology

    def told(quantities: Any) -> dict[str, Any]:
        return {name: {"value": quantity.value, "source": quantity.source} for name, quantity in quantities.items()}

    return {
        "technology": technology.name,
        "node": technology.node,
        "memory": technology.memory.name,
        "scale_up": None if technology.scale_up is None else technology.scale_up.name,
        "scale_out": None if technology.scale_out is None else technology.scale_out.name,
        "figures": dict(chip.figures),
        "budget": told(chip.budget),
        "quantities": told(technology.quantities),
        "cost": None
        if cost is None
        else {
            "dollars": dict(cost.dollars),
            "total": cost.total,
            "yields": dict(cost.yields),
            "dies_per_wafer": cost.dies_per_wafer,
            "sources": dict(cost.sources),
        },
        "system": table,
    }


def show(chip: Chip, cost: ChipCost | None, out: Console) -> None:
    """The figures of a chip, a line each."""
    technology = chip.technology
    networks = [network.title for network in (technology.scale_up, technology.scale_out) if network is not None]
    title = f"{technology.title}: {technology.node}, {technology.memory.title}, {', '.join(networks) or 'no network'}"
    figures = [(name, chip.figures[name] / unit, text) for name, unit, text in COLUMNS if name in chip.figures]
    show_lines(out, [title, *(f"  {name:22}{value:12.5g} {text}".rstrip() for name, value, text in figures)])
    if cost is not None:
        show_lines(out, str(cost).splitlines())
