"""Points of technology: the logic of a node, a memory generation and two networks, as values for a run.

The logic of a node is that of a generated chip at its default budget (`symperf.Technology`): matrix and vector rates,
the L2 and the number of units. Memories and networks are those of the catalogue. Everything else (capacity, latencies,
attainable fractions, size of a scale-up domain) stays what the run's system has.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from symperf import Technology
from symperf.systems.memories import Memory
from symperf.technology.components import network_of

if TYPE_CHECKING:
    from study import Row

SET = "deepflow"
"""The set of nodes from 14 nm to 1 nm."""
LOGIC = ("matrix_rate", "vector_rate", "l2_bandwidth", "l2_capacity", "compute_units")
"""Figures of a chip that its node decides."""
NODES = ("14nm", "10nm", "7nm", "5nm", "3nm", "2nm", "1nm")
MEMORIES = ("hbm2e", "hbm3", "hbm3e", "hbm4", "hbm4e", "hbm6")
NETWORKS = (("nvlink3", "hdr"), ("nvlink4", "ndr"), ("nvlink5", "xdr"))
"""Pairs of a scale-up and a scale-out generation."""


@dataclass(frozen=True)
class Point:
    """One combination.

    Attributes:
        node: of logic, such as "5nm".
        memory: generation of device memory, such as "hbm3".
        networks: generations of the scale-up and the scale-out network.
        logic: the set of nodes.
    """

    node: str
    memory: str = MEMORIES[0]
    networks: tuple[str, str] = NETWORKS[0]
    logic: str = SET

    def values(self) -> dict[str, float]:
        """The values of a run's symbols, in SI units."""
        figures = Technology.load(self.logic, self.node).chip().figures
        found = {name: figures[name] for name in LOGIC}
        found["memory_bandwidth"] = Memory.load(self.memory).device_bandwidth
        for tier, name in zip(("scale_up", "scale_out"), self.networks, strict=True):
            network = network_of(name, tier, {}, "study")
            found[f"{tier}_bandwidth"] = network.value("lanes") * network.value("rate")
        return found

    def row(self) -> Row:
        """Names and rates, in SI units."""
        values = self.values()
        names: Row = {"node": self.node, "memory": self.memory, "network": "+".join(self.networks)}
        rates = ("matrix_rate", "memory_bandwidth", "scale_up_bandwidth", "scale_out_bandwidth")
        return names | {name: values[name] for name in rates}


def ladder() -> list[Point]:
    """Nodes first, then memories at the last node, then networks at the last memory: one thing at a time."""
    node, memory = NODES[-1], MEMORIES[-1]
    found = [Point(each) for each in NODES]
    found += [Point(node, each) for each in MEMORIES[1:]]
    return found + [Point(node, memory, each) for each in NETWORKS[1:]]
