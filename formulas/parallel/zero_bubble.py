"""Zero-bubble schedules: the backward pass of a stage apart in gradients of inputs (T_i) and of weights (T_g).

Only the gradients of inputs are waited for by another stage; those of weights fill what would be idle. A step is from
a device's first pass to its last one where optimizer steps are validated afterwards, so that the stages of the next
step follow at once; `zero_bubble_flush_time` has the barrier. All need at least as many micro-batches as may be in
flight (`zero_bubble_holds`): with fewer the schedules have no steady state.
"""

from __future__ import annotations

from typing import Any

import sympy

from ..language.atoms import Max, Min, bubble, ceil_div, complement, less_one
from ..language.dimension import ONE, SECOND
from ..language.formula import formula
from ..sources import QI


def zero_bubble_holds(micro_batches: int, in_flight: int) -> bool:
    """Whether the closed forms of times hold: m >= M, where M is `in_flight`: p for ZB-H1 and 1p, 2p - 1 for ZB-H2.

    >>> zero_bubble_holds(8, 8), zero_bubble_holds(8, 15)
    (True, False)
    """
    return micro_batches >= in_flight


def excess(count: Any, limit: Any) -> Any:
    """What a positive count has beyond a limit, max(count - limit, 0), so written that its directions are proved."""
    return count * complement(Min(1, limit / count))


@formula(
    glyph="T_{zb}",
    dimension=SECOND,
    source=QI,
    increasing="forward_time input_gradient_time micro_batches stages weight_gradient_time",
    decreasing="in_flight",
)
def zero_bubble_time(
    forward_time: Any,
    input_gradient_time: Any,
    weight_gradient_time: Any,
    micro_batches: Any,
    stages: Any,
    in_flight: Any,
) -> Any:
    """Time of the best zero-bubble schedule that holds no more than M micro-batches on a device, without a barrier.

    With x = max(m_b - M, 0): the longest of the device's own work m_b (T_f + T_i + T_g), of the way to its first
    backward pass, (p + x) T_f + (m_b + p - 1) T_i + m_b T_g, and of the way through the last stage,
    (m_b + p - 1)(T_f + T_i) + (1 + x) T_g.

    Assumes: equal stages; transfers are part of T_f and T_i; m_b >= M >= p (`zero_bubble_holds`). No schedule is
    faster; ZB-H1 reaches it at M = p and ZB-H2 at M = 2p - 1, whatever the three times.

    Source: derivation, after Qi et al. 2024 section 2. The first stage gets its first backward pass p T_f + (p - 1)
    T_i after its start and has until then at most M forward passes to run. The last stage starts (p - 1) T_f later,
    has all but M weight gradients behind it when its last backward pass ends, and that one still has p - 1 stages
    before it and a weight gradient after it. At M = p and T_i <= T_f the idle time is (p - 1)(T_f + T_i - T_g) and
    at M = 2p - 1 it is (p - 1)(T_f + T_i - 2 T_g), as in their table 2, or 0.

    >>> from sympy import symbols
    >>> zero_bubble_time(*symbols("f i g"), 8, 4, 4)
    Max(8*f + 8*g + 8*i, 8*f + 8*g + 11*i, 11*f + 5*g + 11*i)
    """
    f, i, g, m = forward_time, input_gradient_time, weight_gradient_time, micro_batches
    late, more = excess(m, in_flight), m + bubble(stages, sympy.S.One)
    return Max(
        m * (f + i + g),
        (stages + late) * f + more * i + m * g,
        more * (f + i) + (1 + late) * g,
    )


@formula(
    glyph="T_{zb}^{flush}",
    dimension=SECOND,
    source=QI,
    increasing="forward_time input_gradient_time micro_batches stages weight_gradient_time",
    decreasing="in_flight",
)
def zero_bubble_flush_time(
    forward_time: Any,
    input_gradient_time: Any,
    weight_gradient_time: Any,
    micro_batches: Any,
    stages: Any,
    in_flight: Any,
) -> Any:
    """Time of a zero-bubble schedule whose devices wait for each other at the end: also the last stage's own time.

    The equation: max(T_zb, m_b (T_f + T_i + T_g) + (p - 1) T_f).

    Assumes: as `zero_bubble_time`; a barrier, as of a global gradient norm, ends the step.

    Source: Qi et al. 2024 section 4: the optimizer's synchronisation makes a trapezoid of their parallelogram; the
    last stage starts p - 1 forward passes late.

    >>> from sympy import symbols
    >>> zero_bubble_flush_time(1, 1, 1, symbols("m"), 1, 1) == zero_bubble_time(1, 1, 1, symbols("m"), 1, 1)
    True
    >>> zero_bubble_flush_time(1, 1, 1, 8, 4, 7), zero_bubble_time(1, 1, 1, 8, 4, 7)
    (27, 24)
    """
    f, i, g, m = forward_time, input_gradient_time, weight_gradient_time, micro_batches
    free = zero_bubble_time(f, i, g, m, stages, in_flight)
    return Max(free, m * (f + i + g) + bubble(stages, sympy.S.One) * f)


@formula(
    glyph="T_{zb,h1}",
    dimension=SECOND,
    source=QI,
    increasing="forward_time input_gradient_time micro_batches weight_gradient_time",
)
def zero_bubble_h1_time(
    forward_time: Any, input_gradient_time: Any, weight_gradient_time: Any, micro_batches: Any, stages: Any
) -> Any:
    """Time of ZB-H1 with its barrier: 1F1B's memory, m_b (T_f + T_i + T_g) + (p - 1) max(T_f, T_i, T_f + T_i - T_g).

    Assumes: equal stages; m_b >= p; on stage i the weight gradients run i micro-batches late.

    Source: Qi et al. 2024 section 2.1; `zero_bubble_flush_time` at M = p.

    >>> from sympy import symbols
    >>> zero_bubble_h1_time(1, 1, 1, 8, 4), zero_bubble_h1_time(2, 2, 1, 8, 4)
    (27, 49)
    """
    return zero_bubble_flush_time(
        forward_time, input_gradient_time, weight_gradient_time, micro_batches, stages, stages
    )


@formula(
    glyph="T_{zb,h2}",
    dimension=SECOND,
    source=QI,
    increasing="forward_time input_gradient_time micro_batches weight_gradient_time",
)
def zero_bubble_h2_time(
    forward_time: Any, input_gradient_time: Any, weight_gradient_time: Any, micro_batches: Any, stages: Any
) -> Any:
    """Time of ZB-H2 without a barrier: m_b (T_f + T_i + T_g) + (p - 1) max(0, T_i - T_f, T_f + T_i - 2 T_g).

    Assumes: equal stages; m_b >= 2p - 1; the optimizer's step is validated afterwards, so that a device's next step
    follows at once.

    Source: Qi et al. 2024 section 2.2; `zero_bubble_time` at M = 2p - 1.

    >>> from sympy import symbols
    >>> zero_bubble_h2_time(1, 1, 1, 8, 4), zero_bubble_h2_time(2, 2, 1, 8, 4)
    (24, 46)
    """
    return zero_bubble_time(
        forward_time, input_gradient_time, weight_gradient_time, micro_batches, stages, stages + less_one(stages)
    )


@formula(
    glyph="T_{zb,1p}",
    dimension=SECOND,
    source=QI,
    increasing="forward_time input_gradient_time micro_batches weight_gradient_time",
)
def zero_bubble_1p_time(
    forward_time: Any, input_gradient_time: Any, weight_gradient_time: Any, micro_batches: Any, stages: Any
) -> Any:
    """Time of ZB-1p, the schedule found under 1F1B's memory, without a barrier: `zero_bubble_time` at M = p.

    Assumes: as `zero_bubble_time`; the search finds the best schedule, which ZB-H1's order already is.

    Source: Qi et al. 2024 sections 3 and 5.1.

    Reference only: of a schedule without a barrier; schedules of a plan are ZB-H1, ZB-H2 and ZB-2p.

    >>> from sympy import symbols
    >>> zero_bubble_1p_time(1, 1, 1, 8, 4), zero_bubble_1p_time(2, 1, 1, 8, 4)
    (27, 38)
    """
    return zero_bubble_time(forward_time, input_gradient_time, weight_gradient_time, micro_batches, stages, stages)


@formula(
    glyph="T_{zb,2p}",
    dimension=SECOND,
    source=QI,
    increasing="forward_time input_gradient_time micro_batches weight_gradient_time",
)
def zero_bubble_2p_time(
    forward_time: Any, input_gradient_time: Any, weight_gradient_time: Any, micro_batches: Any, stages: Any
) -> Any:
    """Time of ZB-2p, the schedule found under twice 1F1B's memory, without a barrier: `zero_bubble_time` at M = 2p.

    Assumes: as `zero_bubble_time`; the search finds a schedule that reaches the bound. ZB-H2, which needs one
    micro-batch less, is at most max(T_f, T_g) slower.

    Source: Qi et al. 2024 sections 3 and 5.1.

    >>> from sympy import symbols
    >>> zero_bubble_2p_time(1, 1, 1, 8, 4), zero_bubble_2p_time(1, 2, 1, 8, 4)
    (24, 34)
    """
    return zero_bubble_time(forward_time, input_gradient_time, weight_gradient_time, micro_batches, stages, 2 * stages)


@formula(
    glyph="T_{idle,h1}",
    dimension=SECOND,
    source=QI,
    increasing="forward_time input_gradient_time stages",
    decreasing="weight_gradient_time",
)
def zero_bubble_h1_idle_time(
    forward_time: Any, input_gradient_time: Any, weight_gradient_time: Any, stages: Any
) -> Any:
    """Idle time of ZB-H1 with its barrier, (p - 1) max(T_f, T_i, T_f + T_i - T_g), on the device that has most.

    Assumes: as `zero_bubble_h1_time`.

    Source: Qi et al. 2024 table 2, (p - 1)(T_f + T_i - T_g), where T_g is the least of the three. Written
    (p - 1) max(T_i, T_f + T_i (1 - min(1, T_g / T_i))), of which the directions are proved.

    Reference only: the paper's table; a prediction has the whole time, `zero_bubble_h1_time`.

    >>> zero_bubble_h1_idle_time(3, 2, 1, 4), zero_bubble_h1_idle_time(1, 1, 1, 4)
    (12, 3)
    """
    reach = forward_time + excess(input_gradient_time, weight_gradient_time)
    return bubble(stages, sympy.S.One) * Max(input_gradient_time, reach)


@formula(
    glyph="T_{idle,h2}",
    dimension=SECOND,
    source=QI,
    increasing="input_gradient_time stages",
    decreasing="weight_gradient_time",
)
def zero_bubble_h2_idle_time(
    forward_time: Any, input_gradient_time: Any, weight_gradient_time: Any, stages: Any
) -> Any:
    """Idle time of ZB-H2, (p - 1) max(0, T_i - T_f, T_f + T_i - 2 T_g), on the first stage: none of equal times.

    Assumes: as `zero_bubble_h2_time`.

    Source: Qi et al. 2024 table 2, (p - 1)(T_f + T_i - 2 T_g); where T_i > T_f the first stage has run its forward
    passes before its first backward pass comes.

    Reference only: the paper's table; a prediction has the whole time, `zero_bubble_h2_time`.

    >>> zero_bubble_h2_idle_time(1, 1, 1, 4), zero_bubble_h2_idle_time(3, 2, 1, 4), zero_bubble_h2_idle_time(1, 2, 2, 4)
    (0, 9, 3)
    """
    before = excess(input_gradient_time, forward_time)
    after = excess(forward_time + input_gradient_time, 2 * weight_gradient_time)
    return bubble(stages, sympy.S.One) * Max(before, after)


@formula(
    glyph="m_{f,h2}",
    dimension=ONE,
    source=QI,
    increasing="micro_batches stages",
)
def zero_bubble_h2_in_flight(micro_batches: Any, stages: Any) -> Any:
    """Micro-batches whose activations every device holds under ZB-H2: 2p - 1, or m_b if fewer.

    Assumes: activations are held until the weight gradients are done. ZB-H1 and ZB-1p hold what 1F1B holds
    (`one_f_one_b_in_flight`), but on every device.

    Source: Qi et al. 2024 table 2.

    >>> from sympy import symbols
    >>> zero_bubble_h2_in_flight(*symbols("m p"))
    Min(m, p + less_one(p))
    """
    return Min(micro_batches, stages + less_one(stages))


@formula(
    glyph="m_{f,2p}",
    dimension=ONE,
    source=QI,
    increasing="micro_batches stages",
    curvature="concave",
)
def zero_bubble_2p_in_flight(micro_batches: Any, stages: Any) -> Any:
    """Micro-batches whose activations a device may hold under ZB-2p: 2p, or m_b if fewer.

    Assumes: the search uses all of its limit.

    Source: Qi et al. 2024 section 5.1: the limit is 2 p M_B.

    >>> from sympy import symbols
    >>> zero_bubble_2p_in_flight(*symbols("m p"))
    Min(m, 2*p)
    """
    return Min(micro_batches, 2 * stages)


@formula(
    glyph="m_{f,0}",
    dimension=ONE,
    source=QI,
    increasing="input_gradient_time stages",
    decreasing="weight_gradient_time",
)
def no_bubble_in_flight(forward_time: Any, input_gradient_time: Any, weight_gradient_time: Any, stages: Any) -> Any:
    """Micro-batches that a device must be able to hold for no idle time at all, without a barrier.

    The equation: max(p + ceil((p - 1) T_i / T_f), 1 + ceil((p - 1)(T_f + T_i) / T_g)).

    Assumes: as `zero_bubble_time`; necessary, and sufficient where a schedule reaches that bound, as ZB-H2 does.

    Source: derivation: from here on the second and the third way of `zero_bubble_time` are no longer than the device's
    own work; 2p - 1 at equal times, as Qi et al. 2024 section 2.2.

    Reference only: the memory that would leave no idle time; schedules of a plan hold p or 2p - 1 micro-batches.

    >>> no_bubble_in_flight(1, 1, 1, 4), no_bubble_in_flight(1, 2, 1, 4)
    (7, 10)
    """
    ahead = bubble(stages, sympy.S.One)
    return Max(
        stages + ceil_div(ahead * input_gradient_time, forward_time),
        1 + ceil_div(ahead * (forward_time + input_gradient_time), weight_gradient_time),
    )
