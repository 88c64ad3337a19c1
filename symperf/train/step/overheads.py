"""What software and chance add to a training step, where a run states it: launches, a fixed time, stragglers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sympy

from ...formulas.language.symbols import cp, dp, overhead_latency, pp, tp
from ...formulas.parallel.overheads import host_launch_time, straggler_share
from ...operations.schedule import Idle, Op, Overlap, Repeat, executions, sequence, terms

if TYPE_CHECKING:
    from ...operations.schedule import Node
    from ...plans.structure import Structure


def beside_launches(structure: Structure, phase: str, work: Node, launch: Op | None = None) -> Node:
    """One pass of one micro-batch through a stage, which takes as long as its launches do if these take longer.

    Stages of other layers share an operation of one `launch`.

    Collectives do not count: groups of one have none, and their latencies are fitted to whole calls, launch included.
    """
    if not structure.overheads:
        return work
    counts = executions(work)
    kernels: Any = sympy.Add(
        *(counts[path] for path, leaf in terms(work).items() if isinstance(leaf, Op) and leaf.demand.message_bytes == 0)
    )
    if launch is not None:
        return Overlap(work, Repeat(launch, kernels), sympy.S.One)
    return Overlap(work, Op(f"host/launches/{phase}", host_launch_time(kernels)), sympy.S.One)


def with_overheads(structure: Structure, step: Node) -> Node:
    """A step with its fixed time, and with the wait for the slowest of all devices."""
    if not structure.overheads:
        return step
    whole = sequence(step, Op("host/overhead", overhead_latency))
    return sequence(whole, Idle("waits/stragglers", whole, straggler_share(tp * pp * dp * cp)))
