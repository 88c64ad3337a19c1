"""DualPipe: micro-batches from both ends of the pipeline, forward and backward passes beside each other.

Every device has the stage i and the stage p - 1 - i; m counts the micro-batches of both ways. T_fb is the time of a
forward and a whole backward pass that overlap; T_i and T_g are the parts of a backward pass as in `zero_bubble`.
"""

from __future__ import annotations

from typing import Any

from ..language.atoms import Max, less_one
from ..language.dimension import ONE, SECOND
from ..language.formula import formula
from ..sources import DEEPSEEK3
from .zero_bubble import excess


def dual_pipe_holds(micro_batches: int, stages: int) -> bool:
    """Whether the closed forms hold: p and m even, m >= 2p.

    >>> dual_pipe_holds(20, 8), dual_pipe_holds(14, 8), dual_pipe_holds(20, 5)
    (True, False, False)
    """
    return stages % 2 == 0 and micro_batches % 2 == 0 and micro_batches >= 2 * stages


@formula(
    glyph="T_{dual}",
    dimension=SECOND,
    source=DEEPSEEK3,
    increasing="forward_time input_gradient_time micro_batches paired_time weight_gradient_time",
)
def dual_pipe_time(
    forward_time: Any,
    input_gradient_time: Any,
    weight_gradient_time: Any,
    paired_time: Any,
    micro_batches: Any,
    stages: Any,
) -> Any:
    """Time of DualPipe for m_b micro-batches, half from either end, as its middle devices see it.

    (m_b - p/2 - 2) T_fb + max((p/2 + 2)(T_i + T_g), (p + 1) T_i + 3 T_g) + max(3p/2 T_f, p T_f + (p/2 - 1) T_i).

    Assumes: p and m_b even, m_b >= 2p (`dual_pipe_holds`); equal stages; transfers are part of the passes; max(T_f,
    T_i + T_g) <= T_fb <= T_f + T_i + T_g.

    Source: derivation from the eight steps of the DeepSeek-V3 report, section 3.2.1 and figure 5. A middle device runs
    m_b - p - 1 pairs, p + 1 passes of each kind alone, and is idle for (p/2 - 1)(T_fb + T_f - T_g - min(T_i, T_g)),
    which at T_f = T_i is the (p/2 - 1)(F&B + B - 3W) of their table 2.

    >>> dual_pipe_time(1, 1, 1, 3, 8, 4), dual_pipe_time(1, 1, 1, 2, 16, 8)
    (26, 44)
    """
    f, i, g = forward_time, input_gradient_time, weight_gradient_time
    half = stages / 2
    backward = Max((half + 2) * (i + g), (stages + 1) * i + 3 * g)
    forward = Max(3 * half * f, stages * f + less_one(Max(half, 1)) * i)
    return excess(micro_batches, half + 2) * paired_time + backward + forward


@formula(
    glyph="T_{idle,dual}",
    dimension=SECOND,
    source=DEEPSEEK3,
    increasing="forward_time paired_time stages",
    decreasing="input_gradient_time weight_gradient_time",
)
def dual_pipe_idle_time(
    forward_time: Any, input_gradient_time: Any, weight_gradient_time: Any, paired_time: Any, stages: Any
) -> Any:
    """Idle time of DualPipe's middle devices, (p/2 - 1)(F&B + B - 3W), in which B is T_i + T_g and W is T_g.

    Written (p/2 - 1)(T_fb + T_f - T_g - min(T_i, T_g)), as max(T_fb + max(T_f - T_g, 0) - min(T_i, T_g), 0).

    Assumes: as `dual_pipe_time`; T_g <= T_f and T_i <= T_f; the report has T_f = T_i >= T_g.

    Source: DeepSeek-V3 report table 2.

    Reference only: the report's table; a prediction has the whole time, `dual_pipe_time`.

    >>> dual_pipe_idle_time(1, 1, 1, 3, 8), dual_pipe_idle_time(1, 1, 1, 2, 8)
    (6, 3)
    """
    rest = excess(forward_time, weight_gradient_time) + paired_time
    shared = excess(rest, input_gradient_time)
    return less_one(Max(stages / 2, 1)) * Max(shared, excess(rest, weight_gradient_time))


@formula(
    glyph="m_{f,dual}",
    dimension=ONE,
    source=DEEPSEEK3,
    increasing="stages",
    curvature="convex",
)
def dual_pipe_in_flight(stages: Any) -> Any:
    """Micro-batches of one stage whose activations a device holds under DualPipe, over its two stages: p + 1.

    Assumes: as `dual_pipe_time`; activations are held until the weight gradients are done.

    Source: DeepSeek-V3 report table 2.

    >>> from sympy import symbols
    >>> dual_pipe_in_flight(symbols("p"))
    p + 1
    """
    return stages + 1


@formula(
    glyph="N_{dual}",
    dimension=ONE,
    source=DEEPSEEK3,
    increasing="parameters",
    curvature="affine",
)
def dual_pipe_parameters(parameters: Any) -> Any:
    """Parameters on a device under DualPipe, with those of two stages: 2 N for N in a stage.

    Assumes: equal stages.

    Source: DeepSeek-V3 report table 2: parameters 2x.

    >>> from sympy import symbols
    >>> dual_pipe_parameters(symbols("N"))
    2*N
    """
    return 2 * parameters
