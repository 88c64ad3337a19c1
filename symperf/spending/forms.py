"""Closed forms of the work and the energy of a run over all devices, folded from its schedule tree; needs SymPy.

FLOPs and bytes of memory come from the operations' demands. Bytes on links and through L2, and those of memory where a
product too large for L2 reads its factors again, come from the operations' times: with every other resource infinitely
fast, no latency and no half-size, a time is bytes over one bandwidth. So no second count of bytes can disagree with the
time. Every device is counted like the one that sets the time; operations of the pipeline's ends are counted on the
devices of their stage.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import sympy

from ..formulas.language.atoms import Min
from ..formulas.language.symbols import (
    SYMBOLS,
    attention_energy,
    attention_rate,
    busy_time,
    device_energy,
    devices,
    domain_piece_latency,
    dp,
    electricity_price,
    facility_overhead,
    grid_intensity,
    index_rate,
    l2_bandwidth,
    l2_capacity,
    l2_energy,
    lifetime,
    matrix_energy,
    matrix_rate,
    memory_bandwidth,
    memory_energy,
    pair_crowding,
    power,
    power_cap,
    pp,
    price,
    price_per_hour,
    scale_out_bandwidth,
    scale_out_energy,
    scale_up_bandwidth,
    scale_up_energy,
    score_rate,
    static_power,
    strip_units,
    tp,
    vector_energy,
    vector_rate,
)
from ..formulas.technology import carbon, cost, energy
from ..infer.build import tree as inference_tree
from ..infer.passes import worked
from ..infer.structure import InferenceStructure
from ..operations.executed import rate_of
from ..operations.groups import replicas
from ..operations.schedule import Node, Op, count_operations
from ..plans.structure import Structure
from ..train.build import step_tree

FAST = sympy.Integer(10) ** 40
"""A rate so high that its time vanishes, where it cannot be set to none."""
LINKS = {"l2": l2_bandwidth, "scale_up": scale_up_bandwidth, "scale_out": scale_out_bandwidth}
PRODUCTS = {
    matrix_rate: "matrix",
    attention_rate: "attention",
    score_rate: "attention",
    index_rate: "attention",
    vector_rate: "vector",
}
"""What a FLOP at each rate counts as; attention and indexers in 8 bits are charged as in 16."""
ENERGIES = {
    "matrix": matrix_energy,
    "attention": attention_energy,
    "vector": vector_energy,
    "memory": memory_energy,
    "l2": l2_energy,
    "scale_up": scale_up_energy,
    "scale_out": scale_out_energy,
}
"""The energy of a unit of each resource's work."""


@lru_cache(maxsize=16)
def spending_forms(structure: Structure | InferenceStructure) -> dict[str, Any]:
    """Work and energy of a run, as closed forms by name.

    `busy_time` stands for the run's time, `power_cap` for the power that may be drawn beyond the static power.
    """
    count = devices_of(structure)
    work = work_forms(structure)
    found = {f"work/{name}": form for name, form in work.items()}
    dynamic = {
        name: energy.work_energy(form, ENERGIES[name])
        if name in PRODUCTS.values()
        else energy.traffic_energy(form, ENERGIES[name])
        for name, form in work.items()
    }
    total = sympy.Add(*dynamic.values())
    found |= {f"energy/{name}": form for name, form in dynamic.items()}
    static = energy.static_energy(static_power, count, busy_time)
    found |= {
        "devices": count,
        "energy/static": static,
        "energy": total + static,
        "capped_time": energy.capped_time(busy_time, total, count, power_cap),
    }
    return {name: strip_units(form) for name, form in found.items()}


def bill_forms() -> dict[str, Any]:
    """Power, cost and carbon from a run's energy and time, as closed forms by name.

    `power` stands for the mean power of a device, `device_energy` for the energy of all.
    """
    owned = cost.owned_second_cost(price, lifetime, power, facility_overhead, electricity_price)
    return {
        "mean_power": energy.mean_power(device_energy, devices, busy_time),
        "facility_energy": energy.facility_energy(device_energy, facility_overhead),
        "carbon": carbon.operational_carbon(device_energy, facility_overhead, grid_intensity),
        "rented_cost": cost.use_cost(devices, busy_time, price_per_hour),
        "owned_cost": cost.use_cost(devices, busy_time, owned),
    }


def devices_of(structure: Structure | InferenceStructure) -> Any:
    """The devices of a run; outside of training a replica has no context-parallel devices."""
    return tp * pp * (replicas(structure) if isinstance(structure, Structure) else dp)


def work_forms(structure: Structure | InferenceStructure) -> dict[str, Any]:
    """FLOPs and bytes of a run by resource, all devices together.

    Collectives are those of the literature behind a switch: idle links of a mesh, pieces of a message and a crowded
    root complex make a transfer longer, and move no bytes.
    """
    families = tuple(family for family in structure.families if family not in ("domain", "crowding"))
    structure = replace(structure, links="switch", families=families)
    if isinstance(structure, InferenceStructure):
        node: Node = inference_tree(structure)
    else:
        node = step_tree(structure)
    counts = count_operations(node, devices_of(structure), worked, share=1 / pp)
    found: dict[str, list[Any]] = {name: [] for name in ENERGIES}
    for op, times in counts.items():
        demand, symbols = op.demand, op.time.free_symbols
        rate = rate_of(op)
        if rate is not None:
            found[PRODUCTS[rate]].append(times * demand.flops)
        found["memory"].append(times * memory_bytes(op))
        for name, bandwidth in LINKS.items():
            if bandwidth in symbols and not op.summed:
                found[name].append(times * bytes_through(op.time, bandwidth) * bandwidth)
    return {name: strip_units(sympy.Add(*terms)) for name, terms in found.items()}


def memory_bytes(op: Op) -> Any:
    """Bytes of device memory of an operation: compulsory ones, or more of a product whose panels outgrow L2."""
    if op.shape is None or l2_capacity not in op.time.free_symbols:
        return op.demand.memory_bytes
    return bytes_through(op.time, memory_bandwidth) * memory_bandwidth


def bytes_through(time: Any, bandwidth: Any) -> Any:
    """The time of an operation at one resource's whole bandwidth, all others infinitely fast; times it, bytes.

    What is not attained delays bytes, and adds none: shares of a rate, pairs that crowd one link, and the pieces of a
    message for which the last rank waits.
    """
    cuts = {
        cut: sympy.S.Zero for cut in time.atoms(Min) if all(domain_piece_latency in a.free_symbols for a in cut.args)
    }
    time = time.xreplace(cuts)
    none: dict[Any, Any] = {}
    fast: dict[Any, Any] = {}
    for symbol in time.free_symbols:
        label = str(symbol)
        entry = SYMBOLS.find(label)
        if "_latency" in label or label.endswith("_half_bytes") or symbol == pair_crowding:
            none[symbol] = sympy.S.Zero
        elif "_efficiency" in label:
            none[symbol] = sympy.S.One
        elif symbol != bandwidth and entry is not None and entry.resource is not None:
            none[1 / symbol] = sympy.S.Zero
            fast[symbol] = FAST
    return time.xreplace(none).xreplace(fast)
