"""Matrix products: g independent products of an m x k by a k x n matrix in one kernel.

The compute time is quantised by tiles and waves (`tiles.py`). Every tile reads its k-long panels through L2; those that
outgrow L2 come again from device memory. The kernel takes the best of a few tile shapes, and splits the sum along k
where tiles are few, as the vendor's library does.
"""

from __future__ import annotations

from typing import Any

import sympy

from ..language.atoms import Max
from ..language.dimension import BYTE, FLOP, ONE, SECOND
from ..language.formula import formula
from ..language.symbols import (
    flop,
    launch_latency,
    matrix_efficiency,
    matrix_rate,
    memory_bandwidth,
    memory_efficiency,
    sustained_efficiency,
)
from ..sources import ENERGY_ROOFLINE, KUNDU, NARAYANAN
from .roofline import ridge_corner_time, ridge_time
from .tiles import best_tile_time, fewest_passes_time, matmul_reread_bytes


@formula(
    glyph="W_{mm}",
    dimension=FLOP,
    source=NARAYANAN,
    increasing="columns flop groups inner rows",
    curvature="affine",
)
def matmul_flops(rows: Any, columns: Any, inner: Any, groups: Any) -> Any:
    """FLOPs of g products of m x k by k x n: 2 m n k g, a multiplication and an addition per term.

    Assumes: dense factors.

    Source: Narayanan et al. 2021, appendix: an m x k by k x n product takes 2 m k n.

    >>> from sympy import symbols
    >>> matmul_flops(*symbols("m n k g"))
    2*flop*g*k*m*n
    """
    return 2 * rows * columns * inner * groups * flop


@formula(
    glyph="Q_{mm}",
    dimension=BYTE,
    source=KUNDU,
    increasing="columns groups inner left_bytes result_bytes right_bytes rows",
    curvature="convex",
)
def matmul_bytes(
    rows: Any, columns: Any, inner: Any, groups: Any, left_bytes: Any, right_bytes: Any, result_bytes: Any
) -> Any:
    """Compulsory bytes of g products: both factors in and the result out, once each.

    Assumes: m k elements of `left_bytes`, k n of `right_bytes`, m n of `result_bytes`, for each of g products.

    Source: Kundu et al. 2024 section 3; compulsory traffic of three matrices.

    >>> from sympy import symbols
    >>> matmul_bytes(*symbols("m n k g w_l w_r w_y"))
    g*(k*m*w_l + k*n*w_r + m*n*w_y)
    """
    return groups * (rows * inner * left_bytes + inner * columns * right_bytes + rows * columns * result_bytes)


@formula(
    glyph="T_{smooth}",
    dimension=SECOND,
    source=KUNDU,
    increasing="columns flop groups inner rows",
    decreasing="matrix_efficiency matrix_rate",
    curvature="affine",
)
def smooth_compute_time(rows: Any, columns: Any, inner: Any, groups: Any) -> Any:
    """Compute time without quantisation, 2 m n k g / (F eta).

    Assumes: shapes large against the hardware's tiles.

    Source: Kundu et al. 2024 section 3.

    >>> from sympy import symbols
    >>> smooth_compute_time(*symbols("m n k g"))
    2*flop*g*k*m*n/(matrix_efficiency*matrix_rate)
    """
    return matmul_flops(rows, columns, inner, groups) / (matrix_rate * matrix_efficiency)


@formula(
    glyph="T_{mm}",
    dimension=SECOND,
    source=KUNDU,
    increasing="columns element_bytes flop groups inner launch_latency rows statistic_bytes traffic_bytes",
    decreasing="l2_bandwidth l2_capacity l2_efficiency matrix_efficiency matrix_rate memory_bandwidth "
    "memory_efficiency ridge_efficiency",
)
def tiled_matmul_time(rows: Any, columns: Any, inner: Any, groups: Any, element_bytes: Any, traffic_bytes: Any) -> Any:
    """Time of a product on a device with tiles and an L2 cache: the slowest level, for the best tile, plus a launch.

    min over tiles of max(compute, compulsory or re-read bytes / memory, L2 bytes / L2 bandwidth) + launch, but no less
    than `ridge_time` of the work over the rate and the same bytes. Few tiles are split along k, and their partial sums
    then go through L2 (`split_sum_bytes`).

    Assumes: `traffic_bytes` are the compulsory bytes, `element_bytes` the size of either factor's element. Partial sums
    are added after the product, not beside it.

    Source: Kundu et al. 2024 section 3 (hierarchical roofline); tiles and splits after NVIDIA and CUTLASS.

    >>> from sympy import symbols
    >>> from ..language.symbols import compute_units, tile_long, tile_narrow, tile_wide
    >>> one = dict.fromkeys((compute_units, tile_long, tile_narrow, tile_wide), 1)
    >>> tiled_matmul_time(1, 1, 1, 1, *symbols("w Q", positive=True)).subs(one)  # doctest: +NORMALIZE_WHITESPACE
    launch_latency + Max((2*flop/(matrix_efficiency*matrix_rate) + Max(Q,
    2*w**(3/2)/sqrt(l2_capacity))/(memory_bandwidth*memory_efficiency))/(2*ridge_efficiency),
    Min(Max(2*flop/(matrix_efficiency*matrix_rate), 2*w/(l2_bandwidth*l2_efficiency), Max(Q,
    2*w**(3/2)/sqrt(l2_capacity))/(memory_bandwidth*memory_efficiency)) +
    2*statistic_bytes/(l2_bandwidth*l2_efficiency), Max(2*flop/(matrix_efficiency*matrix_rate),
    2*w/(l2_bandwidth*l2_efficiency), Max(Q, 2*w**(3/2)/sqrt(l2_capacity))/(memory_bandwidth*memory_efficiency))))
    """
    moved = Max(traffic_bytes, matmul_reread_bytes(rows, columns, inner, groups, element_bytes))
    device = moved / (memory_bandwidth * memory_efficiency)
    best = best_tile_time(rows, columns, inner, groups, element_bytes, element_bytes, device)
    work = smooth_compute_time(rows, columns, inner, groups)
    return Max(ridge_corner_time(work, device), best) + launch_latency


@formula(
    glyph="T_{mm}'",
    dimension=SECOND,
    source=KUNDU,
    increasing="columns flop groups inner launch_latency rows traffic_bytes",
    decreasing="matrix_efficiency matrix_rate memory_bandwidth memory_efficiency ridge_efficiency",
)
def quantised_matmul_time(rows: Any, columns: Any, inner: Any, groups: Any, traffic_bytes: Any) -> Any:
    """Time of a product on a device with tiles whose L2 cache is not described: memory or compute, plus a launch.

    Assumes: `traffic_bytes` are the compulsory bytes; L2 never binds, and partial sums cost nothing.

    Source: as `tiled_matmul_time`, without the L2 level.

    >>> from sympy import symbols
    >>> from ..language.symbols import compute_units, tile_long, tile_narrow, tile_wide
    >>> one = dict.fromkeys((compute_units, tile_long, tile_narrow, tile_wide), 1)
    >>> quantised_matmul_time(1, 2, 3, 1, symbols("Q")).subs(one)  # doctest: +NORMALIZE_WHITESPACE
    launch_latency + Max((Q/(memory_bandwidth*memory_efficiency) +
    12*flop/(matrix_efficiency*matrix_rate))/(2*ridge_efficiency), Q/(memory_bandwidth*memory_efficiency),
    12*flop/(matrix_efficiency*matrix_rate))
    """
    best = fewest_passes_time(rows, columns, inner, groups)
    device = traffic_bytes / (memory_bandwidth * memory_efficiency)
    return Max(best, ridge_time(smooth_compute_time(rows, columns, inner, groups), device)) + launch_latency


@formula(
    glyph="T_{mm}''",
    dimension=SECOND,
    source=KUNDU,
    increasing="columns flop groups inner launch_latency rows traffic_bytes",
    decreasing="matrix_efficiency matrix_rate memory_bandwidth memory_efficiency ridge_efficiency",
    curvature="convex",
)
def smooth_matmul_time(rows: Any, columns: Any, inner: Any, groups: Any, traffic_bytes: Any) -> Any:
    """Time of a product on a device without stated units (a TPU, a sketch): memory or compute, plus a launch.

    Assumes: no quantisation; `traffic_bytes` are the compulsory bytes.

    Source: Kundu et al. 2024 section 3.

    >>> from sympy import symbols
    >>> smooth_matmul_time(*symbols("m n k g Q", positive=True))  # doctest: +NORMALIZE_WHITESPACE
    launch_latency + Max((Q/(memory_bandwidth*memory_efficiency) +
    2*flop*g*k*m*n/(matrix_efficiency*matrix_rate))/(2*ridge_efficiency), Q/(memory_bandwidth*memory_efficiency),
    2*flop*g*k*m*n/(matrix_efficiency*matrix_rate))
    """
    compute = smooth_compute_time(rows, columns, inner, groups)
    return ridge_time(compute, traffic_bytes / (memory_bandwidth * memory_efficiency)) + launch_latency


@formula(
    glyph=r"T_{mm}^{P}",
    dimension=SECOND,
    source=ENERGY_ROOFLINE,
    increasing="columns flop groups inner product_time rows start_time",
    decreasing="matrix_rate sustained_efficiency",
    curvature="convex",
)
def power_limited_time(product_time: Any, start_time: Any, rows: Any, columns: Any, inner: Any, groups: Any) -> Any:
    """Time of a product under a power limit, max(T_clk, T_0 + 2 m n k g / (F eta_P)): power is one more resource.

    Assumes: the load lasts, so that the clock has settled; all of the power that is not static goes to the FLOPs, whose
    energy does not depend on the shape; the start of the kernel, T_0, is part of T_clk and needs little. A product
    whose tiles leave units idle is no slower for the limit until the others reach it. Short bursts after a pause run at
    a higher clock.

    Source: Choi et al. 2013, the power cap of the roofline: W e_F / (P - P_s), here as a share of the peak. Measured on
    an H200: eight products of 8192 rows run at 0.67 to 0.70 of the peak at 700 W (`benchmarks/calibration/h200.py`).

    >>> from sympy import symbols
    >>> power_limited_time(*symbols("T T_0 m n k g"))
    Max(T, T_0 + 2*flop*g*k*m*n/(matrix_rate*sustained_efficiency))
    """
    work = matmul_flops(rows, columns, inner, groups)
    return Max(product_time, start_time + work / (matrix_rate * sustained_efficiency))


@formula(
    glyph="m^*",
    dimension=ONE,
    source=KUNDU,
    increasing="element_bytes matrix_efficiency matrix_rate",
    decreasing="flop memory_bandwidth memory_efficiency",
    curvature="affine",
)
def compute_bound_rows(in_features: Any, out_features: Any, element_bytes: Any) -> Any:
    """Rows at which a product with wide weights turns compute-bound: w F' / (2 beta'), in tokens.

    Assumes: n and k large against m, so that the k n weights are nearly all the traffic; F' and beta' are sustained.

    Source: equate 2 m n k / F' (`smooth_compute_time`) and the weight bytes w k n over beta'.

    >>> from sympy import symbols
    >>> compute_bound_rows(*symbols("k n w"))
    matrix_efficiency*matrix_rate*w/(2*flop*memory_bandwidth*memory_efficiency)
    """
    weight_time = in_features * out_features * element_bytes / (memory_bandwidth * memory_efficiency)
    return weight_time / smooth_compute_time(sympy.S.One, out_features, in_features, sympy.S.One)
