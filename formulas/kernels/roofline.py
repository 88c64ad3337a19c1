"""The time of one kernel from what it must do: the slowest of computing and moving bytes, and the bounds around it."""

from __future__ import annotations

from typing import Any

from ..language.atoms import Max, complement
from ..language.dimension import BYTE, FLOP, SECOND
from ..language.formula import formula
from ..language.symbols import (
    launch_latency,
    memory_bandwidth,
    memory_efficiency,
    ridge_efficiency,
    vector_efficiency,
    vector_rate,
)
from ..sources import DEEPFLOW, KUNDU, WILLIAMS


@formula(
    glyph="T_{work}",
    dimension=SECOND,
    source=WILLIAMS,
    increasing="work_flops",
    decreasing="rate",
    curvature="affine",
)
def work_time(work_flops: Any, rate: Any) -> Any:
    """Time to execute `work_flops` at an attainable rate, W / R.

    Assumes: the rate does not depend on the amount of work.

    Source: Williams et al. 2009, the horizontal roof.

    >>> from sympy import symbols
    >>> work_time(*symbols("W R"))
    W/R
    """
    return work_flops / rate


@formula(
    glyph="T_{traffic}",
    dimension=SECOND,
    source=WILLIAMS,
    increasing="traffic_bytes",
    decreasing="bandwidth",
    curvature="affine",
)
def traffic_time(traffic_bytes: Any, bandwidth: Any) -> Any:
    """Time to move `traffic_bytes` at an attainable bandwidth, Q / R_b.

    Assumes: the bandwidth does not depend on the amount moved.

    Source: Williams et al. 2009, the slanted roof.

    >>> from sympy import symbols
    >>> traffic_time(*symbols("Q R"))
    Q/R
    """
    return traffic_bytes / bandwidth


@formula(
    glyph="T_{roof}",
    dimension=SECOND,
    source=WILLIAMS,
    increasing="traffic_bytes work_flops",
    decreasing="bandwidth rate",
    curvature="convex",
)
def roofline_time(work_flops: Any, traffic_bytes: Any, rate: Any, bandwidth: Any) -> Any:
    """Lower bound of a kernel's time, work and traffic fully overlapped: max(W / R, Q / R_b).

    Assumes: the hardware computes while it moves.

    Source: Williams et al. 2009; Kundu et al. 2024 section 3 takes the maximum over every memory level.

    >>> from sympy import symbols
    >>> roofline_time(*symbols("W Q R R_b"))
    Max(Q/R_b, W/R)
    """
    return Max(work_time(work_flops, rate), traffic_time(traffic_bytes, bandwidth))


@formula(
    glyph="T_{serial}",
    dimension=SECOND,
    source=WILLIAMS,
    increasing="traffic_bytes work_flops",
    decreasing="bandwidth rate",
    curvature="convex",
)
def serial_time(work_flops: Any, traffic_bytes: Any, rate: Any, bandwidth: Any) -> Any:
    """Upper bound of a kernel's time, nothing overlapped: W / R + Q / R_b.

    Assumes: no other cost. It is at most twice `roofline_time`.

    Source: a sum of two non-negative terms is at most twice the larger.

    Reference only: the other extreme of overlap; a kernel's time is `roofline_time` or, near the ridge, `ridge_time`.

    >>> from sympy import symbols
    >>> serial_time(*symbols("W Q R R_b"))
    Q/R_b + W/R
    """
    return work_time(work_flops, rate) + traffic_time(traffic_bytes, bandwidth)


@formula(
    glyph="I_{ridge}",
    dimension=FLOP / BYTE,
    source=WILLIAMS,
    increasing="rate",
    decreasing="bandwidth",
    curvature="affine",
)
def ridge_intensity(rate: Any, bandwidth: Any) -> Any:
    """FLOPs per byte at which a kernel turns from traffic-bound to work-bound, R / R_b.

    Assumes: both roofs are attainable.

    Source: Williams et al. 2009, the ridge point.

    Reference only: the textbook's figure; a prediction compares times, `roofline_time`.

    >>> from sympy import symbols
    >>> ridge_intensity(*symbols("R R_b"))
    R/R_b
    """
    return rate / bandwidth


@formula(
    glyph="T_{corner}",
    dimension=SECOND,
    source=WILLIAMS,
    increasing="transfer_time work_time",
    decreasing="ridge_efficiency",
    curvature="convex",
)
def ridge_corner_time(work_time: Any, transfer_time: Any) -> Any:
    """Time of work and traffic near the ridge, where they hide each other in part: (T_w + T_c) / (2 eta).

    For maxima that have the two times already; with them it is `ridge_time`.

    Assumes: as `ridge_time`.

    Source: the third operand of `ridge_time`.

    >>> from sympy import symbols
    >>> ridge_corner_time(*symbols("T_w T_c"))
    (T_c + T_w)/(2*ridge_efficiency)
    """
    return (work_time + transfer_time) / (2 * ridge_efficiency)


@formula(
    glyph="T_{ridge}",
    dimension=SECOND,
    source=WILLIAMS,
    increasing="transfer_time work_time",
    decreasing="ridge_efficiency",
    curvature="convex",
)
def ridge_time(work_time: Any, transfer_time: Any) -> Any:
    """Time of work and traffic that hide each other but near the ridge: max(T_comp, T_c, (T_comp + T_c) / (2 eta)).

    At the ridge, T_comp = T_c, the kernel takes 1/eta of either: eta = 1 hides all of the shorter, eta = 1/2 none.
    Where one is longer than the other by more than 1 / (2 eta - 1), it hides the other wholly.

    Assumes: the ridge efficiency is that of a kernel with many tiles; 1/2 <= eta <= 1.

    Source: derivation: Williams et al. 2009 call the roofline an upper bound, which needs perfect overlap; where both
    roofs are equally low, imperfect overlap shows most. The third operand is the least sum of both times that gives
    1/eta at the ridge and meets the roofs beside it. Evidence: benchmarks/calibration/README.md, where products at the
    ridge take 21 to 27 % longer (in logarithms) than either roof on three devices.

    >>> from sympy import symbols
    >>> ridge_time(*symbols("T_w T_c"))
    Max(T_c, T_w, (T_c + T_w)/(2*ridge_efficiency))
    """
    return Max(work_time, transfer_time, ridge_corner_time(work_time, transfer_time))


@formula(
    glyph="T_{stream}",
    dimension=SECOND,
    source=KUNDU,
    increasing="launch_latency traffic_bytes work_flops",
    decreasing="memory_bandwidth memory_efficiency vector_efficiency vector_rate",
    curvature="convex",
)
def stream_time(traffic_bytes: Any, work_flops: Any) -> Any:
    """Time of an element-wise or reducing kernel: the slower of device memory and vector units, plus one launch.

    Assumes: bytes are those that must cross device memory, each once; FLOPs run on the vector units.

    Source: Kundu et al. 2024 section 3 (hierarchical roofline plus kernel launch overhead).

    >>> from sympy import symbols
    >>> stream_time(*symbols("Q W"))
    launch_latency + Max(Q/(memory_bandwidth*memory_efficiency), W/(vector_efficiency*vector_rate))
    """
    return (
        roofline_time(work_flops, traffic_bytes, vector_rate * vector_efficiency, memory_bandwidth * memory_efficiency)
        + launch_latency
    )


@formula(
    glyph="T_{overlap}",
    dimension=SECOND,
    source=DEEPFLOW,
    increasing="transfer_time work_time",
    decreasing="overlap",
)
def overlapped_time(work_time: Any, transfer_time: Any, overlap: Any) -> Any:
    """Time of work with a transfer beside it, of which a part may hide: max(T_c, T_comp + (1 - phi) T_c).

    Assumes: a transfer that runs beside the work does not slow it.

    Source: the critical path of two concurrent activities, (1 - phi) T_c + max(phi T_c, T_comp), with the first term
    taken into the maximum: its two ways are phi T_c + (1 - phi) T_c = T_c and T_comp + (1 - phi) T_c. So written it
    provably falls with phi; as a subtraction of hidden time it would not even be monotone in bandwidth. Overlap after
    Ardalani et al. 2022 section 4.

    >>> from sympy import symbols
    >>> overlapped_time(*symbols("T_w T_c phi"))
    Max(T_c, T_c*complement(phi) + T_w)
    >>> overlapped_time(*symbols("T_w T_c"), 1)
    Max(T_c, T_w)
    """
    return Max(transfer_time, work_time + complement(overlap) * transfer_time)
