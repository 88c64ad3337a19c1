"""A technology: a logic node of a set, with a memory and networks; the base of every generated chip."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ..common.errors import InputError, nearest, quote
from ..common.files import read_toml
from ..common.frozen import Frozen
from ..systems.quantities import text_of
from .components import CATALOGUE, Component, check_law, memory_of, network_of
from .quantities import BASE, BUDGET, FACTOR_LIMITS, LEVELS, OPTIONAL, STEPS, read, times

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..systems.system_symbols import Quantity
    from .chip import Chip

SETS: Final = CATALOGUE / "sets"
PARTS: Final = CATALOGUE / "parts"
DEFAULT: Final = "deepflow"
SCALED: Final[dict[str, tuple[str, ...]]] = {
    "voltage": ("core_voltage",),
    "core_area": ("core_area",),
    "core_power": ("core_power",),
    "sram_area": tuple(f"{level}_cell_area" for level in LEVELS),
    "sram_energy": tuple(f"{level}_energy" for level in LEVELS),
    "port_area": tuple(f"{level}_port_area" for level in LEVELS),
    "controller_area": ("controller_area",),
}
"""The quantities that each factor of a step scales."""
_TEXTS: Final = ("name", "title", "memory", "scale_up", "scale_out")
_TABLES: Final = ("step", "base", "budget", "memories", "networks")


@dataclass(frozen=True)
class Technology:
    """A logic node with a memory and networks.

    Attributes:
        name: of the set.
        title: of the set.
        node: such as "5nm".
        nodes: of the set, from the base on.
        quantities: of the node (`BASE`), scaled from the base by the steps to it; each with its source.
        memory: the generation of device memory.
        scale_up: the generation of the network inside a domain, or None.
        scale_out: the generation of the network between domains, or None.
        budget: the default chip, by name (`BUDGET`).
        precisions: rate of a precision over that of 16 bits.
        like: a system of the catalogue that efficiencies and latencies are taken from, or "".
    """

    name: str
    title: str
    node: str
    nodes: tuple[str, ...]
    quantities: Mapping[str, Quantity]
    memory: Component
    scale_up: Component | None
    scale_out: Component | None
    budget: Mapping[str, Quantity]
    precisions: Mapping[str, float]
    like: str = ""

    @classmethod
    def load(
        cls,
        name: str | os.PathLike[str] = DEFAULT,
        node: str | None = None,
        *,
        memory: str | None = None,
        scale_up: str | None = None,
        scale_out: str | None = None,
        values: Mapping[str, Any] | None = None,
    ) -> Technology:
        """A node of a set of the catalogue, of a TOML file, or of a part (`part_names`).

        Args:
            name: of the set or part, or the path of a .toml file of a set.
            node: such as "5nm" or "5"; by default the part's, or the first of the set.
            memory: a memory generation (`symperf.systems.memories.names()`, or the set's own); by default the set's.
            scale_up: a network inside a domain, or "none"; by default the set's.
            scale_out: a network between domains, or "none"; by default the set's.
            values: other values of quantities of the node, by name, such as `{"core_flops": 1024}`.

        Raises:
            InputError: a node outside the set, an unknown name, a value out of range.

        >>> tech = Technology.load("deepflow", "5nm")
        >>> tech.node, round(tech.quantities["core_area"].value * 1e6, 4)
        ('5nm', 0.1143)
        """
        found, part = _table(name)
        chosen = dict(part)
        where = f"technology {found['name']}"
        at = _node(chosen.get("node") if node is None else node, found["nodes"], where)
        own = {key: found.get(key, {}) for key in ("memories", "networks")}
        quantities = _scale(found, at, where)
        if "core_scale" in chosen:
            _widen(quantities, read({"core_scale": chosen["core_scale"]}, {"core_scale": FACTOR_LIMITS}, where))
        quantities |= read(chosen.get("values", {}), BASE, f"{where}: values")
        quantities |= read(dict(values or {}), BASE, f"{where}: values")
        check_law(quantities, "core_", where)
        asked = {"memory": memory, "scale_up": scale_up, "scale_out": scale_out}
        names = {
            key: chosen.get(key) or found.get(key, "none") if given is None else given for key, given in asked.items()
        }
        budget = read(found.get("budget", {}), BUDGET, f"{where}: budget")
        return cls(
            name=chosen.get("name", found["name"]),
            title=chosen.get("title", found["title"]),
            node=at,
            nodes=tuple(found["nodes"]),
            quantities=Frozen(quantities),
            memory=memory_of(names["memory"], own["memories"], where),
            scale_up=_network(names["scale_up"], "scale_up", own["networks"], where),
            scale_out=_network(names["scale_out"], "scale_out", own["networks"], where),
            budget=Frozen(budget | read(chosen.get("budget", {}), BUDGET, f"{where}: budget")),
            precisions=Frozen({str(p): float(x) for p, x in chosen.get("precisions", {}).items()}),
            like=chosen.get("like", ""),
        )

    def chip(self, **budget: Any) -> Chip:
        """The chip of a budget, on top of the default one.

        Args:
            budget: `die_area`, `package_area`, `power`; shares `area_*`, `power_*`, `edge_*`; counts `cores`, `stacks`.
                A bare number is in SI units (m2, W); a text has a unit, such as "815 mm2".

        Raises:
            InputError: an unknown name, a share above 1 or shares that sum to more, an area that holds no core, a
                memory that the package, the controllers or the edge do not hold.

        >>> Technology.load("deepflow", "14nm").chip().cores
        643
        """
        from .chip import make_chip

        return make_chip(self, budget)

    def with_values(self, **values: Any) -> Technology:
        """The same technology with other values of quantities of the node.

        Raises:
            InputError: an unknown name, or a value out of range.
        """
        changed = dict(self.quantities) | read(values, BASE, f"technology {self.name}: values")
        check_law(changed, "core_", f"technology {self.name}: values")
        return replace(self, quantities=Frozen(changed))


def set_names() -> list[str]:
    """The sets of the catalogue.

    >>> set_names()
    ['ampere', 'deepflow', 'tsmc']
    """
    return sorted(path.stem for path in SETS.glob("*.toml"))


def part_names() -> list[str]:
    """The parts of the catalogue: chips by their public die figures.

    >>> part_names()
    ['a100', 'h100']
    """
    return sorted(path.stem for path in PARTS.glob("*.toml"))


def _network(name: str, kind: str, own: Mapping[str, Any], where: str) -> Component | None:
    return None if name == "none" else network_of(name, kind, own, where)


def _table(name: object) -> tuple[dict[str, Any], dict[str, Any]]:
    """The table of a set, and that of the part that is made in it (empty for a set)."""
    if isinstance(name, str) and name in part_names():
        part = read_toml(PARTS / f"{name}.toml", f"{name}.toml")
        return _table(part["set"])[0], part
    known = [*set_names(), *part_names()]
    if isinstance(name, str) and name in known:
        return _check_table(read_toml(SETS / f"{name}.toml", f"{name}.toml"), f"{name}.toml"), {}
    text = os.fspath(name) if isinstance(name, str | os.PathLike) else ""
    if not isinstance(text, str) or not text.endswith(".toml"):
        raise InputError(
            f"technology: found {quote(name)}, expected {' or '.join(known)}, or the path of a .toml file"
            f"{nearest(str(name), known)}"
        )
    return _check_table(read_toml(Path(text), text), text), {}


def _check_table(table: dict[str, Any], label: str) -> dict[str, Any]:
    known = (*_TEXTS, "nodes", *_TABLES)
    for key in table:
        if key not in known:
            raise InputError(f"{label}: unknown key {quote(key)}{nearest(key, known)}")
    for key in ("name", "title"):
        if not text_of(table, key, label):
            raise InputError(f'{label}: no {key}, expected {key} = "..."')
    nodes = table.get("nodes")
    if not isinstance(nodes, list) or not nodes or not all(isinstance(node, str) and node for node in nodes):
        raise InputError(f'{label}: nodes: found {quote(nodes)}, expected a list of names such as ["7nm", "5nm"]')
    return table


def _node(node: object, nodes: list[str], where: str) -> str:
    """A node of a set; a bare number is in nanometres."""
    if node is None:
        return nodes[0]
    text = str(node).strip().lower()
    found = f"{text}nm" if text.replace(".", "", 1).isdigit() else text
    if found == "12nm" and "14nm" in nodes:  # the same generation under another name
        found = "14nm"
    if found not in nodes:
        raise InputError(f"{where}: node: found {quote(node)}, expected {' or '.join(nodes)}{nearest(found, nodes)}")
    return found


def _scale(table: dict[str, Any], node: str, where: str) -> dict[str, Quantity]:
    """The quantities of a node: those of the base, times the factors of every step up to it."""
    needed = [name for name in BASE if name not in OPTIONAL]
    quantities = read(table.get("base", {}), BASE, f"{where}: base", needed)
    steps = table.get("step", {})
    nodes: list[str] = table["nodes"]
    for at in nodes[1 : nodes.index(node) + 1]:
        factors = factors_of(steps, at, f"{where}: step")
        for factor, names in SCALED.items():
            by = factors[factor]
            for name in names:
                if name in quantities:
                    quantities[name] = times(quantities[name], by.value, f"x {by.value:g} to {at}")
    return quantities


def _widen(quantities: dict[str, Quantity], scale: Mapping[str, Quantity]) -> None:
    """Cores that do more in a cycle: area and power grow with the work, so the energy of a FLOP stays."""
    by = scale["core_scale"]
    for name in ("core_flops", "core_power", "core_area"):
        quantities[name] = times(quantities[name], by.value, f"x {by.value:g}: {by.source}")


def factors_of(steps: Any, node: str, where: str) -> dict[str, Quantity]:
    """What each quantity is multiplied by in the step that ends at a node.

    Raises:
        InputError: no factor for a quantity, an unknown one, or a value out of range.
    """
    if not isinstance(steps, dict):
        raise InputError(f"{where}: found {quote(steps)}, expected a table of {', '.join(STEPS)}")
    general = {name: entry for name, entry in steps.items() if name in STEPS}
    others = {name: entry for name, entry in steps.items() if name not in STEPS}
    special = others.get(node, {})
    limits = dict.fromkeys(STEPS, FACTOR_LIMITS)
    for name, entry in others.items():
        if not isinstance(entry, dict) or "value" in entry:
            raise InputError(f"{where}: unknown name {quote(name)}{nearest(name, STEPS)}")
    merged = read(general, limits, where) | read(special, limits, f"{where}: {node}")
    missing = [name for name in STEPS if name not in merged]
    if missing:
        raise InputError(f"{where}: {node}: missing {', '.join(missing)}")
    return merged
