"""What software and chance add to a training step, where a run states it: launches, a fixed time, stragglers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sympy

from ...formulas.language.atoms import above_one, complement
from ...formulas.language.symbols import cp, dp, host_wait, overhead_latency, pp, tp
from ...formulas.parallel.overheads import host_call_time, host_launch_time, straggler_share
from ...operations.schedule import Idle, Op, Overlap, Repeat, executions, sequence, terms
from .low_precision import Lowered

if TYPE_CHECKING:
    from ...operations.schedule import Node
    from ...plans.structure import Structure


def beside_launches(structure: Structure, phase: str, work: Node, launches: tuple[Op, Op] | None = None) -> Node:
    """One pass of one micro-batch through a stage, which takes as long as the host needs for it if that is longer.

    It takes both, one after the other, of what the host does not do ahead. The host launches the casts of products in
    low precision too, which the pass has only later. Stages of other layers share the operations of one launch of a
    kernel and of one call of a collective.
    """
    if not structure.overheads:
        return work
    kernels, calls = host_work(work if structure.products == "half" else Lowered(structure)(work))
    if launches is not None:
        host = sequence(Repeat(launches[0], kernels), Repeat(launches[1], calls))
    else:
        called = Op(f"host/collectives/{phase}", host_call_time(calls)) if calls != 0 else None
        host = sequence(Op(f"host/launches/{phase}", host_launch_time(kernels)), called)
    return Overlap(work, host, complement(host_wait) if structure.waits_for_launches else sympy.S.One)


def launches_of(phase: str) -> tuple[Op, Op]:
    """One launch of a kernel and one call of a collective in a pass, which stages of other layers have in common."""
    one = sympy.S.One
    return Op(f"host/launches/{phase}", host_launch_time(one)), Op(f"host/collectives/{phase}", host_call_time(one))


def host_work(node: Node) -> tuple[Any, Any]:
    """The kernels that the host launches for a tree, and the collectives that it calls; groups of one have none."""
    counts = executions(node)
    kernels, calls = [], []
    for path, leaf in terms(node).items():
        if isinstance(leaf, Op) and leaf.demand.message_bytes == 0:
            kernels.append(counts[path] * leaf.launches)
        elif isinstance(leaf, Op):
            calls.append(counts[path] * above_one(leaf.ranks))
    return sympy.Add(*kernels), sympy.Add(*calls)


def with_overheads(structure: Structure, step: Node) -> Node:
    """A step with its fixed time, and with the wait for the slowest of all devices."""
    if not structure.overheads:
        return step
    whole = sequence(step, Op("host/overhead", overhead_latency))
    return sequence(whole, Idle("waits/stragglers", whole, straggler_share(tp * pp * dp * cp)))
