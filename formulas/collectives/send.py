"""One rank sends to another: the transfers between pipeline stages."""

from __future__ import annotations

from typing import Any

from ..language.atoms import Max, above_one
from ..language.dimension import SECOND
from ..language.formula import formula
from ..sources import HOCKNEY, NARAYANAN
from .tiers import SCALE_OUT, SCALE_UP, outer_ranks_of


@formula(
    glyph="T_{send}",
    dimension=SECOND,
    source=HOCKNEY,
    increasing="half_bytes link_latency message_bytes",
    decreasing="link_bandwidth",
    curvature="convex",
)
def send_time(message_bytes: Any, link_bandwidth: Any, link_latency: Any, half_bytes: Any) -> Any:
    """Time to send n bytes over one link: (n + half) / BW + alpha.

    Assumes: an idle link; the message is sent whole.

    Source: Hockney 1994, t = (n + n_half) / r_inf, with the latency that no bandwidth shortens kept apart.

    >>> from sympy import symbols
    >>> send_time(*symbols("n BW alpha half"))
    alpha + (half + n)/BW
    """
    return (message_bytes + half_bytes) / link_bandwidth + link_latency


@formula(
    glyph="T_{send}^{u}",
    dimension=SECOND,
    source=HOCKNEY,
    increasing="message_bytes scale_up_latency",
    decreasing="scale_up_bandwidth scale_up_efficiency",
    curvature="convex",
)
def scale_up_send_time(message_bytes: Any) -> Any:
    """Time to send n bytes to another device of the same scale-up domain: n / BW + alpha.

    Assumes: as `send_time`; the start-up of collectives, `scale_up_half_bytes`, is not a send's.

    Source: Hockney 1994, with the bandwidth and latency of the scale-up tier; measured sends start within a hop's
    latency (benchmarks/calibration).

    >>> from sympy import symbols
    >>> scale_up_send_time(symbols("n"))
    n/(scale_up_bandwidth*scale_up_efficiency) + scale_up_latency
    """
    return send_time(message_bytes, *SCALE_UP[:2], 0)


@formula(
    glyph="T_{send}^{uo}",
    dimension=SECOND,
    source=NARAYANAN,
    increasing="message_bytes ranks scale_out_latency scale_up_latency stride",
    decreasing="scale_out_bandwidth scale_out_efficiency scale_up_bandwidth scale_up_efficiency scale_up_size",
)
def group_send_time(message_bytes: Any, ranks: Any, stride: Any) -> Any:
    """Time of the slowest transfer between neighbours of a group: scale-out if the group spans domains.

    max([q > 1] T_up, [q_o > 1] T_out), each n / BW + alpha.

    Assumes: all neighbours send at once, each device over its own links; scale-out is not faster than scale-up.

    Source: Narayanan et al. 2021: stages exchange point to point; the slowest pair paces the pipeline.

    >>> from sympy import symbols
    >>> group_send_time(*symbols("n q r"))  # doctest: +NORMALIZE_WHITESPACE
    Max((n/(scale_out_bandwidth*scale_out_efficiency) + scale_out_latency)*above_one(ceil_div(q, ceil_div(scale_up_size,
    r))), (n/(scale_up_bandwidth*scale_up_efficiency) + scale_up_latency)*above_one(q))
    """
    return Max(
        above_one(ranks) * send_time(message_bytes, *SCALE_UP[:2], 0),
        above_one(outer_ranks_of(ranks, stride)) * send_time(message_bytes, *SCALE_OUT[:2], 0),
    )
