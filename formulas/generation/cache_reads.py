"""How long attention to one cached key takes to read it: once for a group of query heads, or once for each of them.

A key-value head serves g = a / a_kv query heads. A kernel that computes all of them together reads each key and value
once. One that has a block of threads for every query head (masked multi-head attention) reads them g times: the first
of the blocks brings them from device memory, the others find them in L2, whose bandwidth may then bind. Between the
two, a kernel computes parts of a group together.
"""

from __future__ import annotations

from typing import Any

from ..kernels.roofline import traffic_time
from ..language.atoms import Max, ceil_div
from ..language.dimension import ONE, SECOND
from ..language.formula import formula
from ..language.symbols import l2_bandwidth, memory_bandwidth, memory_efficiency, reread_efficiency
from ..sources import AINSLIE
from ..sources.serving import XQA


@formula(
    glyph="N_{pass}^{k}",
    dimension=ONE,
    source=XQA,
    increasing="heads",
    decreasing="heads_together key_value_heads",
)
def group_passes(heads: Any, key_value_heads: Any, heads_together: Any) -> Any:
    """Times that the query heads of a group read their keys: ceil(a' / (h a'_kv)), h of a group's heads together.

    Assumes: a device's query heads are dealt evenly to its key-value heads.

    Source: NVIDIA, XQA kernel: masked multi-head attention loads keys and values for each query head, h = 1.

    >>> group_passes(64, 8, 1), group_passes(64, 8, 4), group_passes(64, 8, 8)
    (8, 2, 1)
    """
    return ceil_div(heads, key_value_heads * heads_together)


@formula(
    glyph="T_{k1}",
    dimension=SECOND,
    source=AINSLIE,
    increasing="traffic_bytes",
    decreasing="memory_bandwidth memory_efficiency",
    curvature="affine",
)
def shared_read_time(traffic_bytes: Any) -> Any:
    """Time of the bytes of one cached key that all query heads of a group read together: Q / beta'.

    Assumes: device memory binds; L2 passes them on once.

    Source: Ainslie et al. 2023 section 2: keys and values are loaded once for a group.

    >>> from sympy import symbols
    >>> shared_read_time(symbols("Q"))
    Q/(memory_bandwidth*memory_efficiency)
    """
    return traffic_time(traffic_bytes, memory_bandwidth * memory_efficiency)


@formula(
    glyph="T_{kr}",
    dimension=SECOND,
    source=XQA,
    increasing="cache_passes context_splits traffic_bytes",
    decreasing="l2_bandwidth memory_bandwidth memory_efficiency reread_efficiency",
    curvature="convex",
)
def repeated_read_time(traffic_bytes: Any, cache_passes: Any, context_splits: Any) -> Any:
    """Time of the bytes of one cached key that r_k parts of a group read each.

    The equation: max(n_k Q / beta', max(n_k, r_k) Q / beta_2'), with beta_2' = beta_2 eta_r, which L2 delivers to such
    reads. n_k = 1 where the device is filled. Where contexts are whole and could be cut into n_k parts, one unit of n_k
    brings a key-value head from device memory, and r_k of them read it through L2, each at its unit's part.

    Assumes: device memory is read once, since the parts of a group run at the same time; L2 delivers every read.

    Source: derivation: the slower of two levels of the roofline; NVIDIA's XQA kernel saves the repeated reads.

    >>> from sympy import symbols
    >>> repeated_read_time(symbols("Q"), 8, 1)
    Max(8*Q/(l2_bandwidth*reread_efficiency), Q/(memory_bandwidth*memory_efficiency))
    """
    again = Max(context_splits, cache_passes) * traffic_bytes
    return Max(shared_read_time(context_splits * traffic_bytes), traffic_time(again, l2_bandwidth * reread_efficiency))
