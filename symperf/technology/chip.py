"""A generated chip: the figures that a technology and a budget give, and the system that they make."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ..codegen.interpret import floats, run
from ..common.artefacts import load_or_make_program
from ..common.errors import InputError, nearest, quote
from ..common.frozen import Frozen
from .quantities import AREAS, BUDGET, COUNTS, EDGES, LEVELS, OPTIONAL, read
from .structure import ChipStructure

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..codegen.program import Program
    from ..systems.system import System
    from ..systems.system_symbols import Quantity
    from .cost import ChipCost
    from .technology import Technology

COUNTED = ("compute_units", "stacks", "memory_links")
"""Figures that are none of a chip where they are 0."""


@dataclass(frozen=True)
class Chip:
    """A chip.

    Attributes:
        technology: its node, memory and networks.
        budget: its totals, shares and counts, each with its source.
        figures: its cores, voltage (V), frequency (Hz), rates (FLOP/s), capacities (bytes), bandwidths (bytes/s),
            energy of a FLOP (J), `static_power` (W): what no share of the power budget names.
    """

    technology: Technology
    budget: Mapping[str, Quantity]
    figures: Mapping[str, float]

    def value(self, name: str) -> float:
        """One figure in SI units.

        Raises:
            InputError: an unknown name, with the nearest.
        """
        if name not in self.figures:
            raise InputError(f"chip: unknown figure {quote(name)}{nearest(str(name), self.figures)}")
        return self.figures[name]

    @property
    def cores(self) -> int:
        """Cores, in the sense of the technology: a tensor core with its share of the chip."""
        return int(self.figures["cores"])

    def closed_forms(self) -> dict[str, Any]:
        """The closed form of every figure over the quantities of technology and budget, as SymPy expressions."""
        from .forms import chip_forms

        return chip_forms(structure_of(self.technology, self.budget))

    def system(self, name: str = "generated") -> System:
        """The system of devices with this chip.

        Efficiencies and latencies are those of the system that the technology is `like`, or the default rules'.

        Raises:
            InputError: the name is empty.
        """
        from .systems import system_of

        return system_of(self, name)

    def cost(self, **values: Any) -> ChipCost:
        """What a device with this chip costs to make; the arguments are those of `symperf.technology.cost.chip_cost`.

        Raises:
            InputError: a node without a wafer price, an unknown name, a value out of range.
        """
        from .cost import chip_cost

        return chip_cost(self, **values)

    def __repr__(self) -> str:
        figures = self.figures
        return (
            f"Chip({self.technology.node}: {self.cores} cores at {figures['frequency'] / 1e9:.2f} GHz and "
            f"{figures['voltage']:.2f} V, {figures['matrix_rate'] / 1e12:.1f} TFLOP/s, "
            f"{figures['memory_bandwidth'] / 1e12:.2f} TB/s)"
        )


def make_chip(technology: Technology, changes: Mapping[str, Any]) -> Chip:
    """The chip of a budget.

    Raises:
        InputError: as `Technology.chip`.
    """
    where = f"chip at {technology.node}"
    budget = dict(technology.budget) | read(dict(changes), BUDGET, where)
    check(technology, budget, where)
    structure = structure_of(technology, budget)
    inputs = bindings(technology, budget)
    refuse_empty(technology, budget, _outputs(chip_program(structure, COUNTED), inputs), where)
    figures = _outputs(chip_program(structure), inputs)
    figures["static_power"] = budget["power"].value * max(0.0, 1 - _sum(budget, "power", AREAS))
    for name in ("frequency", "memory_bandwidth", *(f"{level}_bandwidth" for level in LEVELS)):
        if not figures[name] > 0:
            raise InputError(f"{where}: {name} is 0: its share of the power holds no more than what leaks")
    return Chip(technology, Frozen(budget), Frozen(figures))


def structure_of(technology: Technology, budget: Mapping[str, Quantity]) -> ChipStructure:
    """What gives the closed forms of a chip their shape."""
    up, out = technology.scale_up, technology.scale_out
    return ChipStructure(
        counted="cores" in budget,
        stacked="stacks" in budget,
        memory_law=technology.memory.has_law,
        scale_up="none" if up is None else "law" if up.has_law else "lanes",
        scale_out="none" if out is None else "law" if out.has_law else "adapter",
    )


def _outputs(program: Program, inputs: Mapping[str, float]) -> dict[str, float]:
    values = run(program, inputs, floats())
    return {name: float(values[at]) for name, at in program.outputs.items()}


@lru_cache(maxsize=16)
def chip_program(structure: ChipStructure, only: tuple[str, ...] = ()) -> Program:
    """The compiled closed forms of a chip: of all its figures, or of some."""

    def make() -> Program:
        from ..codegen.lower import lower
        from .forms import chip_forms

        forms = chip_forms(structure)
        return lower([], {name: forms[name] for name in only or forms})

    return load_or_make_program("chip", "/".join((structure.key(), *only)), make)


def bindings(technology: Technology, budget: Mapping[str, Quantity]) -> dict[str, float]:
    """The value of every symbol of a chip's closed forms; what is not limited is infinite."""
    found = dict.fromkeys(OPTIONAL, math.inf) | {n: q.value for n, q in technology.quantities.items()}
    found["core_overdrive"] = found["core_voltage"] - found["core_threshold"]
    found |= {name: quantity.value for name, quantity in budget.items()}
    found["package_space"] = max(0.0, found["package_area"] - found["die_area"])
    found |= _component("memory", technology.memory, {"static": 0.0, "area": math.inf})
    found["memory_capacity_each"] = found["memory_capacity"]
    if technology.memory.has_law:
        found["memory_limit_frequency"] = _highest_clock(technology)
    free = {"area": found["network_link_area"], "density": found["network_link_density"], "lanes": math.inf}
    free = {name: (0.0 if name == "area" and value == math.inf else value) for name, value in free.items()}
    for tier, network in (("scale_up", technology.scale_up), ("scale_out", technology.scale_out)):
        if network is not None:
            found |= _component(tier, network, free)
            if "rate" in network.quantities:
                found[f"{tier}_frequency"] = 8 * network.value("rate")
    return found


def _component(prefix: str, component: Any, defaults: dict[str, float]) -> dict[str, float]:
    found = {f"{prefix}_{name}": value for name, value in defaults.items()}
    found |= {f"{prefix}_{name}": quantity.value for name, quantity in component.quantities.items()}
    if component.has_law:
        found[f"{prefix}_overdrive"] = found[f"{prefix}_voltage"] - found[f"{prefix}_threshold"]
    return found


def _highest_clock(technology: Technology) -> float:
    """The clock of memory links at the highest voltage that they may have."""
    memory = technology.memory
    nominal, threshold = memory.value("voltage"), memory.value("threshold")
    limit = memory.value("voltage_limit", math.inf)
    if limit == math.inf:
        return math.inf
    speed = (limit - threshold) ** 2 / limit / ((nominal - threshold) ** 2 / nominal)
    return memory.value("frequency") * speed


def check(technology: Technology, budget: Mapping[str, Quantity], where: str) -> None:
    """Refuse a budget that does not add up.

    Raises:
        InputError: something missing, shares that sum to more than 1, a package smaller than the die.
    """
    missing = [name for name in BUDGET if name not in budget and name not in COUNTS]
    if missing:
        raise InputError(f"{where}: missing {', '.join(missing)}")
    for kind, names in (("area", AREAS), ("power", AREAS), ("edge", EDGES)):
        skipped = ("core",) if kind == "area" and "cores" in budget else ()
        total = _sum(budget, kind, tuple(name for name in names if name not in skipped))
        if total > 1 + 1e-9:
            raise InputError(f"{where}: shares {kind}_*: found a sum of {total:.4g}, expected at most 1")
    if budget["package_area"].value <= budget["die_area"].value and "stacks" not in budget:
        die, package = (budget[name].value * 1e6 for name in ("die_area", "package_area"))
        raise InputError(
            f"{where}: package_area: found {package:.4g} mm2 for a die of {die:.4g} mm2, expected room for memory"
        )
    link = technology.scale_up
    if link is not None and not link.has_law:
        unknown = [name for name in ("network_link_area", "network_link_density") if name not in technology.quantities]
        if unknown:
            raise InputError(
                f"{where}: {technology.name} does not give {' or '.join(unknown)}, expected it for {link.name}: set it "
                "as a value of the technology, or take no scale-up network"
            )
    memory = technology.memory
    if "area" not in memory.quantities and "stacks" not in budget:
        raise InputError(f"{where}: {memory.name} has no area on a package: give the number of chips, stacks")


def refuse_empty(
    technology: Technology, budget: Mapping[str, Quantity], figures: Mapping[str, float], where: str
) -> None:
    """Refuse a chip without a core, a group of them, memory or bandwidth.

    Raises:
        InputError: what is missing, what it needs, and what there is.
    """
    area = {name: budget[f"area_{name}"].value * budget["die_area"].value for name in AREAS}
    group = technology.quantities["core_group"].value
    if figures["compute_units"] < 1:
        need = group * technology.quantities["core_area"].value
        raise InputError(
            f"{where}: area_core: found {area['core'] * 1e6:.4g} mm2, expected at least {need * 1e6:.4g} mm2 for "
            f"a group of {group:.0f} cores"
        )
    if figures["stacks"] < 1:
        memory, space = technology.memory, budget["package_area"].value - budget["die_area"].value
        controller = technology.quantities["controller_area"].value
        raise InputError(
            f"{where}: {memory.name} does not fit: a stack needs {memory.value('area') * 1e6:.4g} mm2 of the package "
            f"and {controller * 1e6:.4g} mm2 of controller, found {space * 1e6:.4g} and {area['memory'] * 1e6:.4g} mm2"
        )
    pins = technology.memory.value("pins")
    if figures["memory_links"] < pins:
        edge = 4e3 * math.sqrt(budget["die_area"].value) * budget["edge_memory"].value
        density = technology.quantities["memory_link_density"].value / 1e3
        raise InputError(
            f"{where}: {technology.memory.name} does not fit the perimeter: a stack needs {pins:.0f} links, "
            f"{pins / density:.4g} mm of edge, found edge_memory = {edge:.4g} mm"
        )


def _sum(budget: Mapping[str, Quantity], kind: str, names: tuple[str, ...]) -> float:
    return math.fsum(budget[f"{kind}_{name}"].value for name in names)
