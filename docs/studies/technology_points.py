"""Points of technology: the logic of a node, a memory generation and two networks, as values for a run.

The logic of a node is that of a generated chip at its default budget (`symperf.Technology`): matrix and vector rates,
the L2 and the number of units. Memories and networks are those of the catalogue. Everything else (capacity, latencies,
attainable fractions, size of a scale-up domain) stays what the run's system has.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING

from study import markdown

from symperf import System, Technology
from symperf.systems.memories import Memory
from symperf.technology.components import network_of
from symperf.train.binding import DEFAULTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from study import Row

SET = "deepflow"
"""The set of nodes from 14 nm to 1 nm."""
LOGIC = ("matrix_rate", "vector_rate", "l2_bandwidth", "l2_capacity", "compute_units")
"""Figures of a chip that its node decides."""
NODES = ("14nm", "10nm", "7nm", "5nm", "3nm", "2nm", "1nm")
MEMORIES = ("hbm2e", "hbm3", "hbm3e", "hbm4", "hbm4e", "hbm6")
NETWORKS = (("nvlink3", "hdr"), ("nvlink4", "ndr"), ("nvlink5", "xdr"))
"""Pairs of a scale-up and a scale-out generation."""


FRACTIONS = ("a100-80gb-sxm", "h100-sxm")
"""Systems whose attained fractions the studies take: the walk those of the first, the factorial those of the second."""


def l2_rows(node: str = NODES[0]) -> list[Row]:
    """What binds a product at a node, compute or L2, with the attained fractions of two systems, and on an A100.

    A product in tiles of a x b reads 1/a + 1/b bytes of L2 for each FLOP in 16 bits. It is bound by L2 where the chip
    attains more FLOPs for each byte of L2 than the tile has.
    """
    chip, real = Technology.load(SET, node).chip().figures, System.load(FRACTIONS[0])
    tile = 1 / (1 / DEFAULTS["tile_long"][0] + 1 / DEFAULTS["tile_wide"][0])
    made = [(f"{SET}, {node}", name, chip["matrix_rate"], chip["l2_bandwidth"]) for name in FRACTIONS]
    own = (real.name, real.name, real.matrix_rates["bf16"].value, real.value("l2_bandwidth"))
    found = []
    for of, name, rate, bandwidth in (*made, own):
        system = System.load(name)
        row: Row = {"chip": of, "fractions": name, "l2_bandwidth": bandwidth}
        row |= {"l2_efficiency": system.value("l2_efficiency"), "matrix_rate": rate}
        row |= {"matrix_efficiency": system.value("matrix_efficiency"), "tile": tile}
        row["ridge"] = rate * row["matrix_efficiency"] / (bandwidth * row["l2_efficiency"])
        found.append(row | {"bound": "l2" if row["ridge"] > tile else "compute"})
    return found


def l2_text(rows: Sequence[Row]) -> str:
    """The rows of `l2_rows` as a table, and what they say of both studies."""
    lines = [
        [
            row["chip"],
            row["fractions"],
            f"{row['l2_bandwidth'] / 1e12:.2f}",
            f"{row['l2_efficiency']:.3f}",
            f"{row['matrix_rate'] * row['matrix_efficiency'] / 1e12:.0f}",
            f"{row['ridge']:.0f}",
            f"{row['tile']:.0f}",
            "L2" if row["bound"] == "l2" else row["bound"],
        ]
        for row in rows
    ]
    heads = ["L2, TB/s", "attained part", "products, TFLOP/s", "FLOP for a byte of L2", "of the widest tile", "bound"]
    walk, factorial, real = rows
    said = [
        f"{row['bound'].upper() if row['bound'] == 'l2' else row['bound']} with those of `{row['fractions']}`"
        for row in (walk, factorial)
    ]
    text = (
        "Whether products at the first node are bound by L2 hangs on the attained part of it, which a study takes from "
        f"its base: the chip has {walk['l2_bandwidth'] / real['l2_bandwidth']:.2f} times the A100's L2 bandwidth, and "
        f"is bound by {' and by '.join(said)}. The walk has the first, the factorial the second."
    )
    table = markdown(["chip", "fractions of", *heads], lines, left=2)
    return "\n".join(textwrap.wrap(text, 119)) + "\n\n" + table


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
