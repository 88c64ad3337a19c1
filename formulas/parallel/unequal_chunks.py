"""Pipelines of virtual stages that take different times, and transfers between stages that run beside passes.

As `unequal_stages`, of chunks that are dealt to devices in turn: each way through the passes of one device is a lower
bound of a step. P is what stages before the device's first chunk take, both ways, with the transfers; Y what those
behind its last chunk do. A transfer that runs beside passes takes no time of a device, and is part of the ways alone.
"""

from __future__ import annotations

from typing import Any

from ..language.atoms import Max, Min, complement, less_one
from ..language.dimension import ONE, SECOND
from ..language.formula import formula
from ..sources import GPIPE, NARAYANAN


@formula(
    glyph="T_{way,i}",
    dimension=SECOND,
    source=GPIPE,
    increasing="before_time behind_time micro_batches stage_time",
    curvature="convex",
)
def one_way_time(stage_time: Any, before_time: Any, behind_time: Any, micro_batches: Any) -> Any:
    """Time of all passes of one direction as stage i sees it: P + m_b T + Y.

    Assumes: all passes of the direction follow one another; of interleaved stages T is that of all chunks, and P and Y
    are of the stages before the first and behind the last of them.

    Source: derivation: the first micro-batch passes the stages before, the last one those behind. The largest of all
    stages is exact, so GPipe takes the largest forward and then the largest backward (Huang et al. 2019 section 2).

    >>> one_way_time(2, 3 * 2, 0, 8), one_way_time(2, 0, 3 * 2, 8)
    (22, 22)
    """
    return before_time + micro_batches * stage_time + behind_time


@formula(
    glyph="T_{round}",
    dimension=SECOND,
    source=NARAYANAN,
    increasing="round_time",
)
def round_wait_time(chunk_time: Any, round_time: Any, stages: Any) -> Any:
    """Time that a device waits for a micro-batch to come round to its next chunk: max(R - p T_chk, 0).

    Assumes: p micro-batches pass a chunk before the next one, as in Megatron-LM's order; R is the way through p chunks
    from this one on, with its transfers.

    Source: derivation from the order of Narayanan et al. 2021 section 2.2.2: p passes of a chunk take p T_chk, after
    which the first of them must have passed all other devices. Written max(R, p T_chk) - p T_chk. Equal chunks whose
    transfers take none of a device's time wait for p transfers.

    >>> round_wait_time(1, 4, 4), round_wait_time(1, 5, 4), round_wait_time(2, 4, 4)
    (0, 1, 0)
    """
    own = stages * chunk_time
    return Max(round_time, own) - own


@formula(
    glyph="T_{il,i}",
    dimension=SECOND,
    source=NARAYANAN,
    increasing="before_time behind_time micro_batches stage_time wait_time",
)
def interleaved_device_time(
    stage_time: Any,
    first_forward_time: Any,
    first_backward_time: Any,
    last_forward_time: Any,
    last_backward_time: Any,
    before_time: Any,
    behind_time: Any,
    wait_time: Any,
    micro_batches: Any,
    stages: Any,
    stage_number: Any,
) -> Any:
    """Time of interleaved 1F1B as device i sees it: P + m_b T + T_wait + max(Y - A_f, 0) + max(Y - A_b, 0).

    A = k T_last + l T_first of either direction, where k = min(2 (p - i), p - 1) and l = max(p - 2i + 1, 0): what the
    device runs between the first micro-batch's pass of its last chunk and its gradient. T_wait is `round_wait_time` of
    all rounds, both ways.

    Assumes: p divides m_b and m_b > p; with m_b = p Megatron-LM runs all forward passes first (`one_way_time`).

    Source: derivation from Megatron-LM's order, in which device i runs 2 (p - i) + (v - 1) p passes before the first
    pair (Narayanan et al. 2021 section 2.2.2): its own work, and what it waits for until the first gradient comes back
    and, likewise, until the last one does. Equal stages give `interleaved_time`, also where transfers run beside
    passes. A lower bound where chunks of one device differ: held against event-by-event runs.

    >>> [interleaved_device_time(6, 1, 2, 1, 2, (i - 1) * 3, (4 - i) * 3, 0, 8, 4, i) for i in (1, 4)]
    [51, 57]
    """
    p, i = stages, stage_number
    twice, least = 2 * Max(0, p - i), less_one(p)
    most = Max(twice, least)
    of_last, of_first = Min(twice, least), most - least
    ahead_forward = of_last * last_forward_time + of_first * first_forward_time
    ahead_backward = of_last * last_backward_time + of_first * first_backward_time
    waits = Max(behind_time, ahead_forward) - ahead_forward + Max(behind_time, ahead_backward) - ahead_backward
    return before_time + micro_batches * stage_time + wait_time + waits


@formula(
    glyph="x_{1f1b}",
    dimension=ONE,
    source=NARAYANAN,
    increasing="stages",
    decreasing="overlap",
    curvature="concave",
)
def one_f_one_b_shown_share(overlap: Any, stages: Any) -> Any:
    """Part of the transfers of later micro-batches that 1F1B shows though a part x of them may run beside passes.

    The equation: 1 - x / p.

    Assumes: equal stages; without a limit on what is in flight all of x would hide.

    Source: derivation: with p micro-batches in flight one goes through all stages and back in p times its pace, T_f +
    T_b and 2 (p - 1) transfers, so that (p - 1) / p of a transfer each way are waited for. At most 2.5 % above
    event-by-event runs, in which micro-batches wait in groups of p. Interleaved stages have passes enough between them.

    >>> one_f_one_b_shown_share(1, 4), one_f_one_b_shown_share(0, 4)
    (3/4, 1)
    """
    return complement(overlap / stages)
