"""Pipelines whose stages take different times: how long the way through one of them is; the longest decides.

A step ends no earlier than any way through its passes. Those that a stage i decides pass the stages before it, then
work on i, and leave it at most twice: for the stages behind it, until the first gradient comes back, and again behind
the last forward pass. P_f and P_i are forward passes and gradients of inputs of one micro-batch before i, Y is both
ways behind it. Equal stages give the forms of `pipeline`, `zero_bubble` and `dual_pipe`. Ways that change between
slow stages in the middle of a step are left out; held against an event-by-event run of each schedule.
"""

from __future__ import annotations

from typing import Any

from ..language.atoms import Max, Min, above_one, ceil_div, complement, less_one
from ..language.dimension import SECOND
from ..language.formula import formula
from ..sources import DEEPSEEK3, NARAYANAN, QI
from .zero_bubble import excess


@formula(
    glyph="T_{1f1b,i}",
    dimension=SECOND,
    source=NARAYANAN,
    increasing="backward_time behind_time forward_time",
)
def one_f_one_b_later_time(
    forward_time: Any, backward_time: Any, behind_time: Any, micro_batches: Any, stages: Any, stage_number: Any
) -> Any:
    """Time that all micro-batches but one add under 1F1B, as stage i sees it, to that of one through all stages.

    (m_b - n - 1)(T_f + T_b) + max(n T_f, n T_b, Y), where n = min(p - i, m_b - 1) passes are ahead of the first
    gradient.

    Assumes: m_b > p - i + 1; with fewer it is too much, and `uneven_stages_time` is the bound. Transfers are part of
    the passes.

    Source: derivation from the order of Narayanan et al. 2021 section 2.2.1. Stage i runs n + 1 forward passes, or
    waits Y for its first gradient if that is longer; then m_b - n - 1 pairs; then n + 1 gradients, or waits Y for the
    last. With the stages before it, that is P + T_f + max(n T_f, Y) + (m_b - n - 1)(T_f + T_b) + max(n T_b, Y) + T_b,
    less P + T_f + Y + T_b. Left out is n (T_f + T_b) - Y, of stages twice as slow as those behind them. Equal
    stages, Y = n (T_f + T_b), give the (m_b - 1)(T_f + T_b) of `one_f_one_b_time`.

    >>> one_f_one_b_later_time(1, 2, 3 * 3, 8, 4, 1), one_f_one_b_later_time(1, 2, 0, 8, 4, 4)
    (21, 21)
    >>> one_f_one_b_later_time(1, 2, 3, 8, 4, 1)
    18
    """
    ahead = Min(less_one(micro_batches), excess(stages, stage_number))
    pairs = excess(micro_batches, 1 + ahead) * (forward_time + backward_time)
    return pairs + Max(ahead * forward_time, ahead * backward_time, behind_time)


def _on_stage(f: Any, i: Any, g: Any, behind: Any, m: Any, ahead: Any, late: Any) -> Any:
    """From the first forward pass on a stage to its last gradient of inputs."""
    pairs = excess(m, 1 + ahead) * (f + i) + excess(m, 1 + ahead + late) * g
    return f + Max(ahead * f, behind) + pairs + Max(ahead * (i + g), behind) + i


def _ahead_and_late(in_flight: Any, stages: Any, number: Any) -> tuple[Any, Any]:
    """Forward passes before the first gradient but one, and micro-batches that weight gradients wait for."""
    each = less_one(in_flight) / Max(1, less_one(stages))
    return each * excess(stages, number), each * less_one(number)


@formula(
    glyph="T_{zb,i}",
    dimension=SECOND,
    source=QI,
    increasing="before_forward_time before_gradient_time behind_time first_weight_gradient_time forward_time "
    "input_gradient_time micro_batches weight_gradient_time",
)
def zero_bubble_stage_time(
    forward_time: Any,
    input_gradient_time: Any,
    weight_gradient_time: Any,
    before_forward_time: Any,
    before_gradient_time: Any,
    behind_time: Any,
    first_weight_gradient_time: Any,
    micro_batches: Any,
    stages: Any,
    in_flight: Any,
    stage_number: Any,
) -> Any:
    """Time of a zero-bubble schedule without a barrier, as stage i sees it, with M micro-batches in flight.

    S + max((l + 1) T_g, P_f + P_i + T_{g,1}), where S = T_f + max(n T_f, Y) + (m_b - n - 1)(T_f + T_i)
    + (m_b - n - l - 1) T_g + max(n (T_i + T_g), Y) + T_i, n = (M - 1)(p - i)/(p - 1), l = (M - 1)(i - 1)/(p - 1).

    Assumes: m_b >= M (`zero_bubble_holds`); transfers are part of T_f and T_i.

    Source: derivation, after Qi et al. 2024 section 2: stage i runs n forward passes more than one before its first
    gradient, its weight gradients l micro-batches late; M = p is ZB-H1, M = 2p - 1 ZB-H2. It waits Y for the first
    gradient and for the last one, if that is longer. Its step ends with l + 1 weight gradients; that of the first
    stage P_f before it has begun and P_i + T_{g,1} after its last gradient of inputs. The longest of all stages is
    `zero_bubble_time` where they are equal.

    >>> from .zero_bubble import zero_bubble_time
    >>> zero_bubble_stage_time(2, 2, 1, 3 * 2, 3 * 2, 0, 1, 9, 4, 7, 4), zero_bubble_time(2, 2, 1, 9, 4, 7)
    (51, 51)
    """
    f, i, g, m = forward_time, input_gradient_time, weight_gradient_time, micro_batches
    ahead, late = _ahead_and_late(in_flight, stages, stage_number)
    outside = before_forward_time + before_gradient_time + first_weight_gradient_time
    return _on_stage(f, i, g, behind_time, m, ahead, late) + Max((1 + late) * g, outside)


@formula(
    glyph="T_{zb,i}^{flush}",
    dimension=SECOND,
    source=QI,
    increasing="before_forward_time before_gradient_time behind_time first_weight_gradient_time forward_time "
    "input_gradient_time micro_batches weight_gradient_time",
)
def zero_bubble_stage_flush_time(
    forward_time: Any,
    input_gradient_time: Any,
    weight_gradient_time: Any,
    before_forward_time: Any,
    before_gradient_time: Any,
    behind_time: Any,
    first_weight_gradient_time: Any,
    micro_batches: Any,
    stages: Any,
    in_flight: Any,
    stage_number: Any,
) -> Any:
    """Time of a zero-bubble schedule with a barrier at its end, as stage i sees it.

    The equation: P_f + S + max((l + 1) T_g, P_i + T_{g,1}), with S and l of `zero_bubble_stage_time`.

    Assumes: as `zero_bubble_stage_time`; all devices wait for the last one.

    Source: as there; from the first pass of the first stage, P_f before that of stage i.

    >>> from .zero_bubble import zero_bubble_h1_time
    >>> zero_bubble_stage_flush_time(2, 2, 1, 3 * 2, 3 * 2, 0, 1, 9, 4, 4, 4), zero_bubble_h1_time(2, 2, 1, 9, 4)
    (54, 54)
    """
    f, i, g, m = forward_time, input_gradient_time, weight_gradient_time, micro_batches
    ahead, late = _ahead_and_late(in_flight, stages, stage_number)
    ended = Max((1 + late) * g, before_gradient_time + first_weight_gradient_time)
    return before_forward_time + _on_stage(f, i, g, behind_time, m, ahead, late) + ended


def _from_the_middle(half: Any, number: Any) -> tuple[Any, Any]:
    """One for the devices in the middle, and how many stages a device is away from them."""
    return complement(above_one(half / number)), excess(half, number)


@formula(
    glyph="T_{dual,0}",
    dimension=SECOND,
    source=DEEPSEEK3,
    increasing="before_forward_time behind_gradient_time far_forward_time fill_forward_time forward_time",
)
def dual_pipe_begin_time(
    forward_time: Any,
    far_forward_time: Any,
    before_forward_time: Any,
    fill_forward_time: Any,
    behind_gradient_time: Any,
    stages: Any,
    stage_number: Any,
) -> Any:
    """Time until a device may begin its first gradient under DualPipe: its forward passes, or the wait for it.

    The equation: max(P_f + (2q - i + e) T_f + i T_f', T_fill + Y_i), with q = p/2 and e = [i = q].

    Assumes: as `dual_pipe_device_time`.

    Source: derivation from steps 1 and 2 of the DeepSeek-V3 report, section 3.2.1 and figure 5, and from the first
    forward pass of the middle devices' step 4, which runs alone. The first micro-batch of the other way passes all
    stages, and comes back to this device.

    >>> dual_pipe_begin_time(1, 1, 3, 8, 3, 8, 4)
    12
    """
    half = stages / 2
    inner, outer = _from_the_middle(half, stage_number)
    alone = (half + outer + inner) * forward_time + stage_number * far_forward_time
    return Max(before_forward_time + alone, fill_forward_time + behind_gradient_time)


@formula(
    glyph="T_{dual,i}",
    dimension=SECOND,
    source=DEEPSEEK3,
    increasing="backward_time before_paired_time begin_time end_time far_backward_time far_forward_time "
    "far_paired_time micro_batches middle_backward_time middle_begin_time middle_end_time middle_paired_time "
    "paired_time",
)
def dual_pipe_device_time(
    backward_time: Any,
    far_forward_time: Any,
    far_backward_time: Any,
    paired_time: Any,
    far_paired_time: Any,
    before_paired_time: Any,
    begin_time: Any,
    end_time: Any,
    middle_begin_time: Any,
    middle_paired_time: Any,
    middle_backward_time: Any,
    middle_end_time: Any,
    micro_batches: Any,
    stages: Any,
    stage_number: Any,
) -> Any:
    """Time of DualPipe as the device of stage i of the one way and p + 1 - i of the other sees it, i <= p/2.

    With q = p/2, e = [i = q], o = q - i, a prime for the far stage and m for the middle device: max(T_0 + o (T_f' +
    T_b') + (1 - e) T_fb, T_0m + o T_fbm) + (m_b/2 - q - o - 1) T_fb + (m_b/2 - q - o) T_fb' + max(o (T_fb' + T_b') +
    max(i T_b' + q T_b, P_fb + T_e), (1 - e) T_b' + max(o - 1, 0) T_bm + T_em).

    Assumes: as `dual_pipe_time`. T_fb is the far stage's backward pass beside this one's forward pass, T_fb' the other
    pair; P_fb is of pairs on the devices outside; T_0 is `dual_pipe_begin_time`, T_0m that of the middle device with
    its first gradient, T_e `dual_pipe_end_time`, T_em `dual_pipe_middle_end_time`. Devices between this one and the
    middle are as the middle.

    Source: derivation from the eight steps of the DeepSeek-V3 report, section 3.2.1 and figure 5, counted for this
    device. It comes to its pairs by its own forward passes and o gradients alone, or by the first pair of the middle,
    which passes outwards. It leaves them by o more gradients alone, each with a pair, and q + i after that; or for the
    last forward pass, which passes the devices outside in pairs and comes back; or its next gradient passes inwards,
    to the middle. Equal stages give `dual_pipe_time` in the middle.

    >>> from .dual_pipe import dual_pipe_time
    >>> dual_pipe_device_time(2, 1, 2, 2, 2, 3 * 2, 12, 10, 12 + 2, 2, 2, 13 + 3, 16, 8, 4)
    44
    >>> dual_pipe_time(1, 1, 1, 2, 16, 8)
    44
    """
    half, each = stages / 2, micro_batches / 2
    inner, outer = _from_the_middle(half, stage_number)
    alone = outer * (far_forward_time + far_backward_time) + complement(inner) * paired_time
    begun = Max(begin_time + alone, middle_begin_time + outer * middle_paired_time)
    pairs = excess(each, half + outer + 1) * paired_time + excess(each, half + outer) * far_paired_time
    own = Max(stage_number * far_backward_time + half * backward_time, before_paired_time + end_time)
    inwards = complement(inner) * far_backward_time + less_one(Max(outer, 1)) * middle_backward_time
    return begun + pairs + Max(outer * (far_paired_time + far_backward_time) + own, inwards + middle_end_time)


@formula(
    glyph="T_{dual,m}",
    dimension=SECOND,
    source=DEEPSEEK3,
    increasing="backward_time before_gradient_time far_backward_time far_input_gradient_time "
    "first_weight_gradient_time input_gradient_time",
)
def dual_pipe_middle_end_time(
    backward_time: Any,
    far_backward_time: Any,
    input_gradient_time: Any,
    far_input_gradient_time: Any,
    before_gradient_time: Any,
    first_weight_gradient_time: Any,
    stages: Any,
) -> Any:
    """Time of DualPipe's middle devices from their last pair to the end of the step.

    With q = p/2 and k = ceil(q/2): max(q (T_b + T_b'), k T_b' + (q - k)(T_b + T_i') + k T_i + P_i + T_{g,1}).

    Assumes: as `dual_pipe_device_time`, for i = p/2.

    Source: derivation from steps 6 to 8: p gradients of both ways in turn, the second half without those of weights,
    which wait; the last gradient of inputs goes out to the first stage, and leaves weight gradients there.

    >>> dual_pipe_middle_end_time(2, 2, 1, 1, 3, 1, 8)
    16
    """
    half, odd = stages / 2, ceil_div(stages, 4)
    rest = half * complement(Min(1, odd / half))
    mixed = odd * (far_backward_time + input_gradient_time) + rest * (backward_time + far_input_gradient_time)
    return Max(half * (backward_time + far_backward_time), mixed + before_gradient_time + first_weight_gradient_time)


@formula(
    glyph="T_{dual,e}",
    dimension=SECOND,
    source=DEEPSEEK3,
    increasing="backward_time far_backward_time far_weight_gradient_time fill_gradient_time stages "
    "weight_gradient_time",
    curvature="convex",
)
def dual_pipe_end_time(
    backward_time: Any,
    far_backward_time: Any,
    weight_gradient_time: Any,
    far_weight_gradient_time: Any,
    fill_gradient_time: Any,
    stages: Any,
) -> Any:
    """Time from the last pair of DualPipe's outermost device to the end: max(T_b' + p/2 T_b, T_g' + Y + T_g).

    Assumes: as `dual_pipe_device_time`, for the first and the last stage; Y is all stages' gradients of inputs.

    Source: derivation from the same steps: the device has one gradient of the last stage left and p/2 of the first;
    the last micro-batch passes all stages, and leaves weight gradients at both ends.

    >>> dual_pipe_end_time(2, 2, 1, 1, 8, 8)
    10
    """
    own = far_backward_time + stages / 2 * backward_time
    return Max(own, far_weight_gradient_time + fill_gradient_time + weight_gradient_time)
