"""Scale-up domains without a switch, in which every pair of devices has a link of its own.

A device's bandwidth is that of all its links together. A group of ranks has only the links among its own members, so
all that crosses the domain goes through a part of the bandwidth, and a send through one link.
"""

from __future__ import annotations

from typing import Any

from ..language.atoms import Max, less_one
from ..language.dimension import ONE
from ..language.formula import formula
from ..language.symbols import scale_up_bandwidth, scale_up_half_bytes, scale_up_size
from ..sources import XGMI


@formula(
    glyph=r"\phi_u",
    dimension=ONE,
    source=XGMI,
    increasing="ranks",
    decreasing="scale_up_size",
)
def mesh_share(ranks: Any) -> Any:
    """The part of its bandwidth that a device of a full mesh has in a group of q: max(1, q - 1) / max(1, n_u - 1).

    Assumes: n_u - 1 equal links at each device, one to each other device of its domain; nothing is handed on through
    devices outside the group. A device of no group, q = 1, sends nothing.

    Source: Kolla et al. 2025: each MI300X has seven links of 64 GB/s, one to each peer; two of eight were measured
    (benchmarks/calibration/collectives.csv). Derivation: each device of a group has q - 1 links inside it, each with
    bandwidth b = BW / (n_u - 1), of which half is reached at h = half / (n_u - 1) bytes. So q - 1 rings run at once,
    one over each link, on n / (q - 1) bytes: (q - 1)/q (n / (q - 1) + h) / b is one ring at (q - 1) b and (q - 1) h.
    Parts that are sent straight to every peer put the same bytes on each link.

    >>> mesh_share(8).subs(scale_up_size, 8), mesh_share(2).subs(scale_up_size, 8), mesh_share(1).subs(scale_up_size, 1)
    (1, 1/7, 1)
    """
    return Max(1, less_one(ranks)) / Max(1, less_one(scale_up_size))


def mesh_time(time: Any, ranks: Any) -> Any:
    """A time among q ranks of a domain with a switch, as it is in a full mesh.

    Bandwidth and half-bandwidth size are those of the group's links: `mesh_share` of a device's.

    >>> from sympy import symbols
    >>> from .send import scale_up_send_time
    >>> mesh_time(scale_up_send_time(symbols("n")), 2).subs(scale_up_size, 8)
    7*n/(scale_up_bandwidth*scale_up_efficiency) + scale_up_latency
    """
    share = mesh_share(ranks)
    return time.xreplace({each: share * each for each in (scale_up_bandwidth, scale_up_half_bytes)})
