"""Pipeline schedules: the time of m micro-batches through p stages of v virtual stages each, and what they keep.

T_f and T_b are the forward and backward times of one micro-batch on one device, over all its virtual stages. Schedules
that take the backward pass apart are in `zero_bubble` and `dual_pipe`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sympy

from ..language.atoms import Max, Min, above_one, bubble, ceil_div, complement, less_one
from ..language.dimension import ONE, SECOND
from ..language.formula import formula
from ..sources import GPIPE, KORTHIKANTI, NARAYANAN

if TYPE_CHECKING:
    from collections.abc import Sequence


@formula(
    glyph="m_b",
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


def interleaved_holds(micro_batches: int, stages: int) -> bool:
    """Whether `interleaved_time` and `interleaved_in_flight` hold: p divides m.

    >>> interleaved_holds(16, 8), interleaved_holds(12, 8)
    (True, False)
    """
    return micro_batches % stages == 0


def uneven_stages_exact(times: Sequence[float]) -> bool:
    """Whether `uneven_stages_time` is exact for 1F1B, not only an upper bound: no stage is slower than the last.

    >>> uneven_stages_exact([3, 4, 4]), uneven_stages_exact([4, 4, 3])
    (True, False)
    """
    return times[-1] == max(times)


@formula(
    glyph="T_{gpipe}",
    dimension=SECOND,
    source=GPIPE,
    increasing="backward_time forward_time micro_batches stages",
)
def gpipe_time(forward_time: Any, backward_time: Any, micro_batches: Any, stages: Any) -> Any:
    """Time of GPipe, all forward passes and then all backward passes: (m_b + p - 1)(T_f + T_b).

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
    """Time of 1F1B (PipeDream-flush), one forward and one backward in turn: (m_b + p - 1)(T_f + T_b).

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
    """Time of interleaved 1F1B with v virtual stages per device: (m_b + (p - 1) / v)(T_f + T_b).

    Assumes: equal virtual stages; p divides m_b (`interleaved_holds`); transfers are part of T_f and T_b.

    Source: Narayanan et al. 2021 section 2.2.2.

    >>> from sympy import symbols
    >>> interleaved_time(*symbols("f b m p v"))
    (b + f)*(m + bubble(p, v))
    """
    return (forward_time + backward_time) * (micro_batches + bubble(stages, vpp))


@formula(
    glyph=r"\epsilon_p",
    dimension=ONE,
    source=NARAYANAN,
    increasing="stages",
    decreasing="micro_batches vpp",
    curvature="concave",
)
def bubble_fraction(micro_batches: Any, stages: Any, vpp: Any) -> Any:
    """Idle time of a pipeline over its ideal time: (p - 1) / (v m_b).

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

    (m_b - 1) max(T_1, T_p, [p = 1](T_1 + T_p)) + T_1 + T_p: the slower end sets the pace of every later micro-batch,
    and the first one passes both. On one stage both ends run for every micro-batch.

    Assumes: the stages are equal but for these two times, which come on top.

    Source: critical path of a pipeline with stage times t_i: sum of t_i + (m_b - 1) max t_i; what exceeds equal stages.

    >>> from sympy import symbols
    >>> end_stages_time(*symbols("e h m"), 1), end_stages_time(*symbols("e h m"), 2)
    (e + h + less_one(m)*Max(e, h, e + h), e + h + less_one(m)*Max(0, e, h))
    """
    alone = complement(above_one(stages)) * (first_time + last_time)
    return less_one(micro_batches) * Max(first_time, last_time, alone) + first_time + last_time


@formula(
    glyph="T_{uneven}",
    dimension=SECOND,
    source=NARAYANAN,
    increasing="bottleneck_time fill_time micro_batches",
)
def uneven_stages_time(fill_time: Any, bottleneck_time: Any, micro_batches: Any) -> Any:
    """Time of unequal stages: one micro-batch through all of them, each other one at the pace of the slowest.

    The equation: T_fill + (m_b - 1) T_max.

    Assumes: transfers are part of the stages' times. Exact for GPipe if one stage is slowest both ways, and for 1F1B
    if the last stage is as slow as any (`uneven_stages_exact`); otherwise 1F1B is at most as slow, as stages before the
    slowest one run their first passes, and those after it their last ones, while it works.

    Source: critical path: the slowest stage works on m_b micro-batches, the first of which passes the others before,
    the last after it. Equal stages give `gpipe_time` and `one_f_one_b_time`.

    >>> from sympy import symbols
    >>> uneven_stages_time(*symbols("S t m"))
    S + t*less_one(m)
    """
    return fill_time + less_one(micro_batches) * bottleneck_time


@formula(
    glyph="L_{max}",
    dimension=ONE,
    source=NARAYANAN,
    increasing="num_layers",
    decreasing="stages",
)
def fullest_stage_layers(num_layers: Any, stages: Any) -> Any:
    """Layers of the fullest stage when L layers are dealt as evenly as they can be: ceil(L / p).

    Assumes: stages differ by at most one layer.

    Source: pigeonhole: p stages of fewer layers would hold fewer than L.

    >>> fullest_stage_layers(80, 16), fullest_stage_layers(126, 16)
    (5, 8)
    """
    return ceil_div(num_layers, stages)


@formula(
    glyph="T_{ceil}",
    dimension=SECOND,
    source=NARAYANAN,
    increasing="first_time last_time layer_time micro_batches num_layers",
    decreasing="stages",
)
def uneven_layers_time(
    layer_time: Any, first_time: Any, last_time: Any, num_layers: Any, micro_batches: Any, stages: Any
) -> Any:
    """Time of L equal layers on p stages that need not divide them, with the end stages' extra times.

    L T_l + T_1 + T_p + (m_b - 1)(T_l ceil(L / p) + max(T_1, T_p, [p = 1](T_1 + T_p))).

    Assumes: as `uneven_stages_time`; the fullest stages are at the ends or their extra times are 0, otherwise an
    upper bound.

    Source: `uneven_stages_time` with `fullest_stage_layers`; the extra times as in `end_stages_time`.

    >>> uneven_layers_time(1, 0, 0, 126, 10, 16), uneven_layers_time(1, 0, 0, 128, 10, 16)
    (198, 200)
    """
    rest = end_stages_time(first_time, last_time, micro_batches, stages)
    layers = fullest_stage_layers(num_layers, stages)
    return uneven_stages_time(num_layers * layer_time, layers * layer_time, micro_batches) + rest


@formula(
    glyph="m_{f,gpipe}",
    dimension=ONE,
    source=GPIPE,
    increasing="micro_batches",
    curvature="affine",
)
def gpipe_in_flight(micro_batches: Any) -> Any:
    """Micro-batches whose activations a stage holds under GPipe: all m_b.

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
    """Micro-batches whose activations the first stage holds under 1F1B: p, or m_b if fewer.

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
    """Micro-batches whose activations the first stage holds when interleaved: p (1 + (p - 1) / (p v)), or m_b if fewer.

    Assumes: the first stage, which holds the most; in units of one micro-batch over all the device's layers.

    Source: Korthikanti et al. 2022 section 4.2.3: memory grows by 1 + (p - 1) / (p v).

    >>> from sympy import symbols
    >>> interleaved_in_flight(*symbols("m p v"))
    Min(m, p + bubble(p, v))
    """
    return Min(micro_batches, stages + bubble(stages, vpp))
