"""Study: the best of all plans over a full factorial of logic nodes, chips, memories and networks.

Run: python docs/studies/run.py factorial
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from factorial_page import blocks, draw_bounds, draw_times
from study import Row, Study, Tables, as_read
from technology_points import l2_rows

from symperf import Model, System, Technology
from symperf.codegen.interpret import arrays
from symperf.codegen.interpret import run as evaluate
from symperf.plan_search.technologies.best_over import BestOver, best_over
from symperf.systems.memories import Memory
from symperf.technology.chip import bindings, chip_program, structure_of
from symperf.technology.components import network_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["TITLE", "blocks", "study"]

TITLE = "nodes, memories and networks: the best of all plans at a million points"
SET = "deepflow"
NODES = ("14nm", "10nm", "7nm", "5nm", "3nm", "2nm", "1nm")
MEMORIES = ("hbm2", "hbm2e", "hbm3", "hbm3e", "hbm4", "hbm4e", "hbm6", "hbm7")
SCALE_UP = ("nvlink2", "nvlink3", "nvlink4", "nvlink5")
SCALE_OUT = ("hdr", "ndr", "xdr")
BUDGETS: dict[str, tuple[float, ...]] = {
    "die_area": (400e-6, 500e-6, 600e-6, 700e-6, 815e-6),
    "power": (300.0, 400.0, 500.0, 700.0, 1000.0),
    "area_core": (0.2, 0.3, 0.4, 0.5, 0.6),
    "power_core": (0.25, 0.3745, 0.5, 0.65),
    "power_l2": (0.000217, 0.002, 0.0188),
}
"""Budgets of the chips of a node, m2, W and shares; the last of the shares of L2 is that of the A100's set."""
DEFAULT = {"die_area": 815e-6, "power": 300.0, "area_core": 0.3, "power_core": 0.3745, "power_l2": 0.000217}
"""The set's own chip."""
LOGIC = ("matrix_rate", "vector_rate", "compute_units", "l2_bandwidth", "l2_capacity")
RESOURCES = ("compute", "memory", "l2", "scale_up", "scale_out", "launch")
FIELDS = ("tp", "pp", "cp", "dp", "vpp", "micro_batch", "schedule", "recompute", "zero", "sequence_parallel")
"""Fields of a plan that the table tells."""
COARSE = (("14nm", "1nm"), ("hbm3",), ("nvlink4",), ("hdr",))


@dataclass(frozen=True)
class Asked:
    """What is trained, and where efficiencies and latencies are from.

    Attributes:
        model: name in the catalogue.
        system: likewise.
        devices: of a plan.
        batch: sequences.
        sequence: tokens of one.
        require: values that fields of plans are held at.
    """

    model: str = "gpt3-175b"
    system: str = "h100-sxm"
    devices: int = 1024
    batch: int = 1024
    sequence: int = 2048
    require: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Factorial:
    """A full factorial.

    Attributes:
        nodes: of logic.
        memories: generations, as many stacks as the catalogue's devices have.
        scale_up: generations of the network inside a domain, which also give the domain's size.
        scale_out: generations of the network between domains.
        budgets: values of each budget of a chip.
    """

    nodes: Sequence[str] = NODES
    memories: Sequence[str] = MEMORIES
    scale_up: Sequence[str] = SCALE_UP
    scale_out: Sequence[str] = SCALE_OUT
    budgets: Mapping[str, Sequence[float]] = field(default_factory=lambda: BUDGETS)

    def chips(self) -> dict[str, Any]:
        """The budgets of every chip of a node, a column each."""
        grids = np.meshgrid(*self.budgets.values(), indexing="ij")
        return {name: grid.ravel() for name, grid in zip(self.budgets, grids, strict=True)}

    def cells(self) -> list[tuple[str, str, str, str]]:
        """Every combination of node, memory and networks, in the order of the columns."""
        return list(itertools.product(self.nodes, self.memories, self.scale_up, self.scale_out))

    def columns(self) -> dict[str, Any]:
        """The quantities of every point: cell after cell, in each cell chip after chip."""
        chips = self.chips()
        count = len(next(iter(chips.values())))
        logic = {node: logic_of(node, chips) for node in self.nodes}
        parts: dict[str, list[Any]] = {}
        for node, memory, up, out in self.cells():
            values = logic[node] | {n: np.full(count, x) for n, x in around(memory, up, out).items()}
            for name, value in values.items():
                parts.setdefault(name, []).append(value)
        return {name: np.concatenate(values) for name, values in parts.items()}


def logic_of(node: str, budgets: Mapping[str, Any]) -> dict[str, Any]:
    """Rates and caches of chips of a node, an array each: the closed forms of `Technology.chip`, for all at once."""
    technology = Technology.load(SET, node, scale_up="none", scale_out="none")
    program = chip_program(structure_of(technology, technology.budget))
    inputs = bindings(technology, technology.budget) | dict(budgets)
    with np.errstate(all="ignore"):  # of memory and links that are not read
        values = evaluate(program, inputs, arrays())
    shape = next(iter(budgets.values())).shape
    return {name: np.broadcast_to(values[program.outputs[name]], shape).astype(float) for name in LOGIC}


@lru_cache
def around(memory: str, scale_up: str, scale_out: str) -> dict[str, float]:
    """What memory and networks give, whatever the chip: the bandwidths of the standards."""
    stacks = Memory.load(memory)
    up, out = network_of(scale_up, "scale_up", {}, SET), network_of(scale_out, "scale_out", {}, SET)
    assert stacks.capacity is not None
    return {
        "memory_bandwidth": stacks.device_bandwidth,
        "memory_capacity": stacks.capacity.value * stacks.count.value,
        "scale_up_bandwidth": up.value("lanes") * up.value("rate"),
        "scale_up_size": up.value("size"),
        "scale_out_bandwidth": out.value("lanes") * out.value("rate"),
    }


def found_at(points: Factorial, asked: Asked, **how: Any) -> BestOver:
    """The best plan at every point."""
    return best_over(
        Model.load(asked.model),
        System.load(asked.system),
        points.columns(),
        devices=asked.devices,
        batch=asked.batch,
        sequence=asked.sequence,
        require=asked.require,
        **how,
    )


def rows_of(points: Factorial, found: BestOver) -> list[Row]:
    """A row for each cell: the set's own chip with its best plan and what binds, and the range over all chips.

    `kept_s` is the own chip's time with the plan that is the best at the first node, all else equal.
    """
    chips = points.chips()
    count = len(next(iter(chips.values())))
    own = int(np.flatnonzero(np.all([np.isclose(chips[n], x, rtol=1e-9) for n, x in DEFAULT.items()], axis=0))[0])
    around_one = len(points.cells()) // len(points.nodes)
    rows: list[Row] = []
    for k, (node, memory, up, out) in enumerate(points.cells()):
        part = slice(k * count, (k + 1) * count)
        at = k * count + own
        run, plan = found.run(at), found.plans[found.plan[at]]
        fastest = int(found.time[part].argmin())
        row: Row = {"node": node, "memory": memory, "scale_up": up, "scale_out": out}
        row |= {"matrix_rate": float(found.columns["matrix_rate"][at]), "time_s": float(found.time[at])}
        kept = found.plans[found.plan[(k % around_one) * count + own]]
        row |= {"kept_s": found.run_of(at, kept).value("time")}
        row |= {"mfu": run.value("mfu"), "memory_bytes": float(found.memory[at]), "feasible": int(found.feasible[at])}
        shares = run.shares()
        row |= {f"share_{name}": shares.get(name, 0.0) for name in RESOURCES}
        row |= {name: plan[name] for name in FIELDS}
        row |= {"chips": count, "chips_plans": len(np.unique(found.plan[part]))}
        row |= {"fastest_s": float(found.time[part][fastest]), "slowest_s": float(found.time[part].max())}
        row |= {f"fastest_{name}": float(column[fastest]) for name, column in chips.items()}
        rows.append(row)
    return rows


def tables(coarse: bool, asked: Asked | None = None) -> Tables:
    """All rows of the study; of the coarse one those of two cells."""
    points = Factorial(*COARSE) if coarse else Factorial()
    return {"factorial": rows_of(points, found_at(points, asked or Asked())), "cache": l2_rows()}


def study(coarse: bool) -> Study:
    """The study; with `coarse` two cells of the 672."""
    found = tables(coarse)
    figures = {"times": lambda figure: draw_times(figure, found["factorial"])}
    figures["bounds"] = lambda figure: draw_bounds(figure, found["factorial"])
    return Study(found, {} if coarse else blocks(as_read(found)), {} if coarse else figures)
