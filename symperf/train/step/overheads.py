"""What software and chance add to a training step, where a run states it: launches, a fixed time, stragglers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sympy

from ...formulas.language.symbols import cp, dp, overhead_latency, pp, tp
from ...formulas.parallel.overheads import straggler_share
from ...operations.schedule import Idle, Op, Overlap, Repeat, executions, sequence, terms

if TYPE_CHECKING:
    from ...operations.schedule import Node
    from ...plans.structure import Structure


def beside_launches(structure: Structure, work: Node, launch: Op) -> Node:
    """One pass of one micro-batch through a stage, which takes as long as its launches do if these take longer.

    All passes of a direction share an operation of one `launch`.

    Collectives do not count: groups of one have none, and their latencies are fitted to whole calls, launch included.
    """
    if not structure.overheads:
        return work
    counts = executions(work)
    kernels: Any = sympy.Add(
        *(counts[path] for path, leaf in terms(work).items() if isinstance(leaf, Op) and leaf.demand.message_bytes == 0)
    )
    return Overlap(work, Repeat(launch, kernels), sympy.S.One)


def with_overheads(structure: Structure, step: Node) -> Node:
    """A step with its fixed time, and with the wait for the slowest of all devices."""
    if not structure.overheads:
        return step
    whole = sequence(step, Op("host/overhead", overhead_latency))
    return sequence(whole, Idle("waits/stragglers", whole, straggler_share(tp * pp * dp * cp)))
