"""Products of inference: few rows against wide weights, as in decoding, each with the start of its kernel.

The tiles are those of any product (`tiles.py`): a split along k gives every unit a part of the sum, so that the weights
bind a thin product. What differs from training is that weights may be narrower than what they are multiplied with, that
there is a tile for a few rows, and that the software's gap between kernels counts.
"""

from __future__ import annotations

from typing import Any

from ..language.atoms import Max, Min, ceil_div, complement, less_one
from ..language.dimension import BYTE, SECOND
from ..language.formula import formula
from ..language.symbols import (
    compute_units,
    gap_latency,
    graph_removal,
    launch_latency,
    memory_bandwidth,
    memory_efficiency,
    split_inner,
    split_latency,
    tile_narrow,
)
from ..sources import CUTLASS, KUNDU, SPECTOR
from .matmul import smooth_compute_time
from .roofline import ridge_corner_time, ridge_time
from .tiles import THIN, best_tile_time, fewest_passes_time, matmul_reread_bytes


@formula(
    glyph="T_{gap}",
    dimension=SECOND,
    source=SPECTOR,
    increasing="gap_latency",
    decreasing="graph_removal",
    curvature="concave",
)
def gap_time() -> Any:
    """Time between two kernels that is left of the software's gap when graphs are recorded: (1 - gamma) lambda_g.

    Assumes: kernels follow one another on one stream.

    Source: Spector et al. 2025: a kernel costs 2.1 us on a stream and 1.3 us in a graph on an H100.

    >>> gap_time()
    gap_latency*complement(graph_removal)
    """
    return complement(graph_removal) * gap_latency


@formula(
    glyph="T_{start}",
    dimension=SECOND,
    source=SPECTOR,
    increasing="gap_latency launch_latency",
    decreasing="graph_removal",
)
def kernel_start_time() -> Any:
    """Time that a kernel costs beside its work, its ramp and the gap before it: lambda + (1 - gamma) lambda_g.

    Assumes: as `gap_time`.

    Source: `gap_time`, beside the ramp of each kernel (Spector et al. 2025).

    >>> kernel_start_time()
    gap_latency*complement(graph_removal) + launch_latency
    """
    return launch_latency + gap_time()


@formula(
    glyph="Q_{dev}",
    dimension=BYTE,
    source=KUNDU,
    increasing="columns element_bytes groups inner rows traffic_bytes",
    decreasing="l2_capacity",
    curvature="convex",
)
def cached_traffic_bytes(
    rows: Any, columns: Any, inner: Any, groups: Any, element_bytes: Any, traffic_bytes: Any
) -> Any:
    """Device-memory bytes of a product: its compulsory bytes, or what a small L2 makes it read again if that is more.

    Assumes: as `matmul_reread_bytes`.

    Source: Kundu et al. 2024 section 3; `matmul_reread_bytes`.

    >>> from sympy import symbols
    >>> cached_traffic_bytes(*symbols("m n k g w Q", positive=True))
    Max(Q, 2*g*k*m*n*w**(3/2)/sqrt(l2_capacity))
    """
    return Max(traffic_bytes, matmul_reread_bytes(rows, columns, inner, groups, element_bytes))


@formula(
    glyph="T_{k+}",
    dimension=SECOND,
    source=CUTLASS,
    increasing="columns compute_units gap_latency groups inner right_bytes split_latency tile_narrow",
    decreasing="graph_removal memory_bandwidth memory_efficiency split_inner",
)
def split_product_time(columns: Any, inner: Any, groups: Any, right_bytes: Any) -> Any:
    """Least time of a product that the library splits along k, in seconds without the start of its first kernel.

    w_r k min(g n, T_n u / 2) / (beta eta) + [k > k_s] (lambda_k + (1 - gamma) lambda_g): its right factor is read, and
    then a second kernel, behind the software's gap, adds the parts.

    The library splits products whose tiles of T_n columns fill at most half of the u units, if k is above k_s. A
    product that is slightly wider is not split, and a bracket on columns would have it take less time. So the bracket
    is on k alone, and from T_n u / 2 columns on this is a floor, which does not grow: a wider product takes no less
    than the widest that is split.

    Assumes: few rows; parts are added in a kernel of their own. Which products are split is the library's choice, read
    off measured times on H200 (PyTorch 2.11, cuBLAS 13); rows of A100 and H100 (VIDUR) agree.

    Source: CUTLASS, parallelised reductions (split-K), where a second kernel sums partial products; the limits are
    those of the rows in benchmarks/calibration/README.md.

    >>> from sympy import symbols
    >>> split_product_time(*symbols("n k g w_r", positive=True)).subs({split_latency: 0, gap_latency: 0})
    k*w_r*Min(compute_units*tile_narrow/2, g*n)/(memory_bandwidth*memory_efficiency)
    >>> [split_product_time(64, k, 1, 0).subs({gap_latency: 0, split_inner: 2048}) for k in (2048, 2049, 8192)]
    [0, split_latency, split_latency]
    """
    read = right_bytes * inner * Min(groups * columns, tile_narrow * compute_units / 2)
    split = Min(1, less_one(ceil_div(inner, split_inner)))
    return read / (memory_bandwidth * memory_efficiency) + split * (split_latency + gap_time())


@formula(
    glyph="T_{mv}",
    dimension=SECOND,
    source=KUNDU,
    increasing="columns flop gap_latency groups inner launch_latency left_bytes right_bytes rows "
    "split_latency statistic_bytes traffic_bytes",
    decreasing="graph_removal l2_bandwidth l2_capacity l2_efficiency matrix_efficiency matrix_rate "
    "memory_bandwidth memory_efficiency ridge_efficiency split_inner",
)
def thin_matmul_time(
    rows: Any, columns: Any, inner: Any, groups: Any, left_bytes: Any, right_bytes: Any, traffic_bytes: Any
) -> Any:
    """Time of a product of any number of rows with tiles, L2 and splits along k: the slowest level, plus its start.

    The equation is that of `tiled_matmul_time`, and no less than `split_product_time`.

    Its attainable bandwidth has the form beta / (1 + half / size): the start of a kernel is a size at half speed.

    Assumes: `traffic_bytes` are the compulsory bytes; the library picks the best tile. Weights, the right factor, may
    be narrower than the left one: they pass L2 as they are stored. What a small L2 makes a product read again is
    counted at the left factor's width.

    Source: Kundu et al. 2024 section 3 (hierarchical roofline, thin products bound by memory).

    >>> from sympy import symbols
    >>> from ..language.symbols import compute_units, tile_long, tile_narrow, tile_thin, tile_wide
    >>> one = dict.fromkeys((compute_units, tile_long, tile_narrow, tile_thin, tile_wide), 1)
    >>> thin_matmul_time(1, 1, 1, 1, *symbols("w_l w_r Q", positive=True)).subs(one)  # doctest: +NORMALIZE_WHITESPACE
    gap_latency*complement(graph_removal) + launch_latency + Max((2*flop/(matrix_efficiency*matrix_rate) + Max(Q,
    2*w_l**(3/2)/sqrt(l2_capacity))/(memory_bandwidth*memory_efficiency))/(2*ridge_efficiency),
    (gap_latency*complement(graph_removal) + split_latency)*Min(1, less_one(ceil_div(1, split_inner))) +
    w_r/(2*memory_bandwidth*memory_efficiency), Min(Max(2*flop/(matrix_efficiency*matrix_rate), (w_l +
    w_r)/(l2_bandwidth*l2_efficiency), Max(Q, 2*w_l**(3/2)/sqrt(l2_capacity))/(memory_bandwidth*memory_efficiency)) +
    2*statistic_bytes/(l2_bandwidth*l2_efficiency), Max(2*flop/(matrix_efficiency*matrix_rate), (w_l +
    w_r)/(l2_bandwidth*l2_efficiency), Max(Q, 2*w_l**(3/2)/sqrt(l2_capacity))/(memory_bandwidth*memory_efficiency))))
    """
    moved = cached_traffic_bytes(rows, columns, inner, groups, left_bytes, traffic_bytes)
    device = moved / (memory_bandwidth * memory_efficiency)
    best = best_tile_time(rows, columns, inner, groups, left_bytes, right_bytes, device, (THIN,))
    work = smooth_compute_time(rows, columns, inner, groups)
    second = split_product_time(columns, inner, groups, right_bytes)
    return Max(ridge_corner_time(work, device), best, second) + kernel_start_time()


@formula(
    glyph="T_{mv}'",
    dimension=SECOND,
    source=KUNDU,
    increasing="columns flop gap_latency groups inner launch_latency rows traffic_bytes",
    decreasing="graph_removal matrix_efficiency matrix_rate memory_bandwidth memory_efficiency ridge_efficiency",
)
def quantised_thin_matmul_time(rows: Any, columns: Any, inner: Any, groups: Any, traffic_bytes: Any) -> Any:
    """As `thin_matmul_time`, on a device whose L2 cache is not described.

    Assumes: `traffic_bytes` are the compulsory bytes; L2 never binds.

    Source: Kundu et al. 2024 section 3.

    >>> from sympy import symbols
    >>> from ..language.symbols import compute_units, tile_long, tile_narrow, tile_thin, tile_wide
    >>> one = dict.fromkeys((compute_units, tile_long, tile_narrow, tile_thin, tile_wide), 1)
    >>> quantised_thin_matmul_time(1, 2, 3, 1, symbols("Q")).subs(one)  # doctest: +NORMALIZE_WHITESPACE
    gap_latency*complement(graph_removal) + launch_latency + Max((Q/(memory_bandwidth*memory_efficiency) +
    12*flop/(matrix_efficiency*matrix_rate))/(2*ridge_efficiency), Q/(memory_bandwidth*memory_efficiency),
    12*flop/(matrix_efficiency*matrix_rate))
    """
    best = fewest_passes_time(rows, columns, inner, groups, (THIN,))
    device = traffic_bytes / (memory_bandwidth * memory_efficiency)
    return Max(best, ridge_time(smooth_compute_time(rows, columns, inner, groups), device)) + kernel_start_time()


@formula(
    glyph="T_{mv}''",
    dimension=SECOND,
    source=KUNDU,
    increasing="columns flop gap_latency groups inner launch_latency rows traffic_bytes",
    decreasing="graph_removal matrix_efficiency matrix_rate memory_bandwidth memory_efficiency ridge_efficiency",
)
def smooth_thin_matmul_time(rows: Any, columns: Any, inner: Any, groups: Any, traffic_bytes: Any) -> Any:
    """As `thin_matmul_time`, on a device without stated units: memory or work over rate, plus the start.

    Assumes: no quantisation; `traffic_bytes` are the compulsory bytes.

    Source: Kundu et al. 2024 section 3.

    >>> from sympy import symbols
    >>> smooth_thin_matmul_time(*symbols("m n k g Q", positive=True))  # doctest: +NORMALIZE_WHITESPACE
    gap_latency*complement(graph_removal) + launch_latency + Max((Q/(memory_bandwidth*memory_efficiency) +
    2*flop*g*k*m*n/(matrix_efficiency*matrix_rate))/(2*ridge_efficiency), Q/(memory_bandwidth*memory_efficiency),
    2*flop*g*k*m*n/(matrix_efficiency*matrix_rate))
    """
    compute = smooth_compute_time(rows, columns, inner, groups)
    return ridge_time(compute, traffic_bytes / (memory_bandwidth * memory_efficiency)) + kernel_start_time()
