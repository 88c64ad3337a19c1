"""Pipeline schedules: the time of m micro-batches through p stages of v virtual stages each, and what they keep.

T_f and T_b are the forward and backward times of one micro-batch on one device, over all its virtual stages.
"""

from __future__ import annotations

from typing import Any

import sympy

from .atoms import Max, Min, bubble, complement, less_one, present
from .dimension import ONE, SECOND
from .formula import formula
from .sources import GPIPE, KORTHIKANTI, NARAYANAN


@formula(
    glyph="m",
    dimension=ONE,
    source=NARAYANAN,
    increasing="batch",
    decreasing="dp micro_batch",
    curvature="affine",
)
def micro_batch_count(batch: Any, micro_batch: Any, dp: Any) -> Any:
    """Micro-batches of a step in each replica: B / (b d).

    Assumes: b d divides B.

    Source: Narayanan et al. 2021 section 3.1.

    >>> from sympy import symbols
    >>> micro_batch_count(*symbols("B b d"))
    B/(b*d)
    """
    return batch / (micro_batch * dp)


@formula(
    glyph="T_{gpipe}",
    dimension=SECOND,
    source=GPIPE,
    increasing="backward_time forward_time micro_batches stages",
)
def gpipe_time(forward_time: Any, backward_time: Any, micro_batches: Any, stages: Any) -> Any:
    """Time of GPipe, all forward passes and then all backward passes: (m + p - 1)(T_f + T_b).

    Assumes: equal stages; transfers are part of T_f and T_b.

    Source: Huang et al. 2019 section 2; Narayanan et al. 2021 section 2.2.1.

    >>> from sympy import symbols
    >>> gpipe_time(*symbols("f b m p"))
    (b + f)*(m + bubble(p, 1))
    """
    return (forward_time + backward_time) * (micro_batches + bubble(stages, sympy.S.One))


@formula(
    glyph="T_{1f1b}",
    dimension=SECOND,
    source=NARAYANAN,
    increasing="backward_time forward_time micro_batches stages",
)
def one_f_one_b_time(forward_time: Any, backward_time: Any, micro_batches: Any, stages: Any) -> Any:
    """Time of 1F1B (PipeDream-flush), one forward and one backward in turn: (m + p - 1)(T_f + T_b).

    Assumes: equal stages; transfers are part of T_f and T_b. It keeps fewer activations than GPipe, in equal time.

    Source: Narayanan et al. 2021 section 2.2.1.

    >>> from sympy import symbols
    >>> one_f_one_b_time(*symbols("f b m p"))
    (b + f)*(m + bubble(p, 1))
    """
    return (forward_time + backward_time) * (micro_batches + bubble(stages, sympy.S.One))


@formula(
    glyph="T_{il}",
    dimension=SECOND,
    source=NARAYANAN,
    increasing="backward_time forward_time micro_batches stages",
    decreasing="vpp",
)
def interleaved_time(forward_time: Any, backward_time: Any, micro_batches: Any, stages: Any, vpp: Any) -> Any:
    """Time of interleaved 1F1B with v virtual stages per device: (m + (p - 1) / v)(T_f + T_b).

    Assumes: equal virtual stages; p divides m; transfers are part of T_f and T_b.

    Source: Narayanan et al. 2021 section 2.2.2.

    >>> from sympy import symbols
    >>> interleaved_time(*symbols("f b m p v"))
    (b + f)*(m + bubble(p, v))
    """
    return (forward_time + backward_time) * (micro_batches + bubble(stages, vpp))


@formula(
    glyph=r"\epsilon",
    dimension=ONE,
    source=NARAYANAN,
    increasing="stages",
    decreasing="micro_batches vpp",
    curvature="concave",
)
def bubble_fraction(micro_batches: Any, stages: Any, vpp: Any) -> Any:
    """Idle time of a pipeline over its ideal time: (p - 1) / (v m).

    Assumes: as `interleaved_time`; v = 1 for GPipe and 1F1B.

    Source: Narayanan et al. 2021 section 2.2.2.

    >>> from sympy import symbols
    >>> bubble_fraction(*symbols("m p v"))
    bubble(p, v)/m
    """
    return bubble(stages, vpp) / micro_batches


@formula(
    glyph="T_{end}",
    dimension=SECOND,
    source=NARAYANAN,
    increasing="first_time last_time micro_batches",
    decreasing="stages",
)
def end_stages_time(first_time: Any, last_time: Any, micro_batches: Any, stages: Any) -> Any:
    """Time that the extra work of the end stages (embedding, head) adds to a step.

    (m - 1) max(T_1, T_p, [p = 1](T_1 + T_p)) + T_1 + T_p: the slower end sets the pace of every later micro-batch, and
    the first one passes both. On one stage both ends run for every micro-batch.

    Assumes: the stages are equal but for these two times, which come on top.

    Source: critical path of a pipeline with stage times t_i: sum of t_i + (m - 1) max t_i; what exceeds equal stages.

    >>> from sympy import symbols
    >>> end_stages_time(*symbols("e h m"), 1), end_stages_time(*symbols("e h m"), 2)
    (e + h + less_one(m)*Max(e, h, e + h), e + h + less_one(m)*Max(0, e, h))
    """
    alone = complement(present(stages)) * (first_time + last_time)
    return less_one(micro_batches) * Max(first_time, last_time, alone) + first_time + last_time


@formula(
    glyph="m_{f,gpipe}",
    dimension=ONE,
    source=GPIPE,
    increasing="micro_batches",
    curvature="affine",
)
def gpipe_in_flight(micro_batches: Any) -> Any:
    """Micro-batches whose activations a stage holds under GPipe: all m.

    Assumes: no recomputation across micro-batches; all forward passes come first.

    Source: Huang et al. 2019 section 2.

    >>> from sympy import symbols
    >>> gpipe_in_flight(symbols("m"))
    m
    """
    return micro_batches


@formula(
    glyph="m_{f,1f1b}",
    dimension=ONE,
    source=NARAYANAN,
    increasing="micro_batches stages",
    curvature="concave",
)
def one_f_one_b_in_flight(micro_batches: Any, stages: Any) -> Any:
    """Micro-batches whose activations the first stage holds under 1F1B: p, or m if fewer.

    Assumes: the first stage, which holds the most.

    Source: Narayanan et al. 2021 section 2.2.1.

    >>> from sympy import symbols
    >>> one_f_one_b_in_flight(*symbols("m p"))
    Min(m, p)
    """
    return Min(micro_batches, stages)


@formula(
    glyph="m_{f,il}",
    dimension=ONE,
    source=KORTHIKANTI,
    increasing="micro_batches stages",
    decreasing="vpp",
)
def interleaved_in_flight(micro_batches: Any, stages: Any, vpp: Any) -> Any:
    """Micro-batches whose activations the first stage holds when interleaved: p (1 + (p - 1) / (p v)), or m if fewer.

    Assumes: the first stage, which holds the most; in units of one micro-batch over all the device's layers.

    Source: Korthikanti et al. 2022 section 4.2.3: memory grows by 1 + (p - 1) / (p v).

    >>> from sympy import symbols
    >>> interleaved_in_flight(*symbols("m p v"))
    Min(m, p + bubble(p, v))
    """
    return Min(micro_batches, stages + bubble(stages, vpp))
