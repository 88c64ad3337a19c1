"""Matrix products: g independent products of an m x k by a k x n matrix in one kernel.

The compute time is quantised by tiles and waves: a device of u units computes u tiles at once, and the last wave
takes as long as a full one. Every tile reads its k-long panels through L2; panels that outgrow L2 come again from
device memory. The kernel takes the best of a few tile shapes, as the vendor's library does.
"""

from __future__ import annotations

from typing import Any

import sympy

from .atoms import Max, Min, ceil_div
from .dimension import BYTE, FLOP, ONE, SECOND
from .formula import formula
from .roofline import corner, ridge_time
from .sources import CUTLASS, KUNDU, NARAYANAN, NVIDIA_GEMM, SMITH
from .symbols import (
    compute_units,
    flop,
    l2_bandwidth,
    l2_capacity,
    l2_efficiency,
    launch_latency,
    matrix_efficiency,
    matrix_rate,
    memory_bandwidth,
    memory_efficiency,
    tile_long,
    tile_narrow,
    tile_wide,
)

TILE_SHAPES = (
    (tile_long, tile_wide),
    (tile_wide, tile_long),
    (tile_wide, tile_wide),
    (tile_narrow, tile_wide),
)
"""Tiles that the library may choose from, as (rows, columns)."""


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
    glyph="Q_{io}",
    dimension=BYTE,
    source=SMITH,
    increasing="columns element_bytes groups inner rows",
    decreasing="l2_capacity",
    curvature="affine",
)
def matmul_reread_bytes(rows: Any, columns: Any, inner: Any, groups: Any, element_bytes: Any) -> Any:
    """Device-memory bytes of products too large for L2: 2 m n k w / sqrt(C_2 / w) for each of g.

    Assumes: the library blocks for L2 as well as any schedule can; elements of w bytes in a cache of C_2 bytes.

    Source: Smith et al. 2019, the lower bound 2 m n k / sqrt(S) on words through a cache of S words, to leading order;
    square blocks of S words reach it.

    >>> from sympy import symbols
    >>> matmul_reread_bytes(*symbols("m n k g w", positive=True))
    2*g*k*m*n*w**(3/2)/sqrt(l2_capacity)
    """
    return 2 * groups * rows * columns * inner * element_bytes * sympy.sqrt(element_bytes / l2_capacity)


@formula(
    glyph="Q_2",
    dimension=BYTE,
    source=CUTLASS,
    increasing="columns groups inner left_bytes right_bytes rows",
    decreasing="tile_columns tile_rows",
)
def matmul_l2_bytes(
    rows: Any,
    columns: Any,
    inner: Any,
    groups: Any,
    left_bytes: Any,
    right_bytes: Any,
    tile_rows: Any,
    tile_columns: Any,
) -> Any:
    """Bytes through L2: every tile reads its two panels, k (w_r n ceil(m / T_m) + w_l m ceil(n / T_k)), of g products.

    Assumes: a tile's accumulator stays in registers; panels are shared by no two units. A tile that is not full reads
    the rows and columns that there are: m rows below T_m read the right factor once, not m / T_m times.

    Source: CUTLASS, threadblock tiling: each of ceil(m / T_m) rows of tiles reads the right factor, and each of
    ceil(n / T_k) columns of tiles the left one.

    >>> from sympy import symbols
    >>> matmul_l2_bytes(*symbols("m n k g w_l w_r T_m T_k"))
    g*k*(m*w_l*ceil_div(n, T_k) + n*w_r*ceil_div(m, T_m))
    """
    right = right_bytes * columns * ceil_div(rows, tile_rows)
    left = left_bytes * rows * ceil_div(columns, tile_columns)
    return groups * inner * (right + left)


@formula(
    glyph="N_w",
    dimension=ONE,
    source=NVIDIA_GEMM,
    increasing="columns groups rows",
    decreasing="compute_units tile_columns tile_rows",
)
def matmul_waves(rows: Any, columns: Any, groups: Any, tile_rows: Any, tile_columns: Any) -> Any:
    """Waves of tiles: ceil(g ceil(m / T_m) ceil(n / T_k) / u), with u units at one tile each.

    Assumes: a partly filled wave takes as long as a full one; no split along k.

    Source: NVIDIA, Matrix Multiplication Background: tile and wave quantisation.

    >>> from sympy import symbols
    >>> matmul_waves(*symbols("m n g T_m T_k"))
    ceil_div(g*ceil_div(m, T_m)*ceil_div(n, T_k), compute_units)
    """
    return ceil_div(groups * ceil_div(rows, tile_rows) * ceil_div(columns, tile_columns), compute_units)


@formula(
    glyph="T_{tile}",
    dimension=SECOND,
    source=NVIDIA_GEMM,
    increasing="columns flop groups inner rows",
    decreasing="matrix_efficiency matrix_rate",
)
def tiled_compute_time(rows: Any, columns: Any, inner: Any, groups: Any, tile_rows: Any, tile_columns: Any) -> Any:
    """Compute time under tile and wave quantisation: waves of u tiles of 2 T_m T_k k FLOPs at the sustained rate.

    Assumes: units share the matrix rate equally.

    Source: NVIDIA, Matrix Multiplication Background; it tends to 2 m n k g / (F eta) for many full waves.

    >>> from sympy import symbols
    >>> tiled_compute_time(1024, 128, symbols("k"), 1, 256, 128).subs(compute_units, 4)
    262144*flop*k/(matrix_efficiency*matrix_rate)
    """
    work = matmul_flops(tile_rows, tile_columns, inner, compute_units)
    return matmul_waves(rows, columns, groups, tile_rows, tile_columns) * work / (matrix_rate * matrix_efficiency)


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
    increasing="columns element_bytes flop groups inner launch_latency rows traffic_bytes",
    decreasing="l2_bandwidth l2_capacity l2_efficiency matrix_efficiency matrix_rate memory_bandwidth "
    "memory_efficiency ridge_efficiency",
)
def tiled_matmul_time(rows: Any, columns: Any, inner: Any, groups: Any, element_bytes: Any, traffic_bytes: Any) -> Any:
    """Time of a product on a device with tiles and an L2 cache: the slowest level, for the best tile, plus a launch.

    min over tiles of max(`ridge_time` of compute and compulsory or re-read bytes / memory, L2 bytes / L2 bandwidth)
    + launch.

    Assumes: `traffic_bytes` are the compulsory bytes, `element_bytes` the size of either factor's element.

    Source: Kundu et al. 2024 section 3 (hierarchical roofline); tiles after NVIDIA and CUTLASS.

    >>> from sympy import symbols
    >>> str(tiled_matmul_time(*symbols("m n k g w Q", positive=True)))[:15]
    'launch_latency '
    """
    moved = Max(traffic_bytes, matmul_reread_bytes(rows, columns, inner, groups, element_bytes))
    device = moved / (memory_bandwidth * memory_efficiency)
    best = Min(
        *(
            Max(
                tiled_compute_time(rows, columns, inner, groups, high, wide),
                corner(tiled_compute_time(rows, columns, inner, groups, high, wide), device),
                matmul_l2_bytes(rows, columns, inner, groups, element_bytes, element_bytes, high, wide)
                / (l2_bandwidth * l2_efficiency),
            )
            for high, wide in TILE_SHAPES
        )
    )
    return Max(device, best) + launch_latency


@formula(
    glyph="T_{mm}'",
    dimension=SECOND,
    source=KUNDU,
    increasing="columns flop groups inner launch_latency rows traffic_bytes",
    decreasing="matrix_efficiency matrix_rate memory_bandwidth memory_efficiency ridge_efficiency",
)
def quantised_matmul_time(rows: Any, columns: Any, inner: Any, groups: Any, traffic_bytes: Any) -> Any:
    """Time of a product on a device with tiles whose L2 cache is not described: memory or compute, plus a launch.

    Assumes: `traffic_bytes` are the compulsory bytes; L2 never binds.

    Source: as `tiled_matmul_time`, without the L2 level.

    >>> from sympy import symbols
    >>> str(quantised_matmul_time(*symbols("m n k g Q", positive=True)))[:15]
    'launch_latency '
    """
    best = Min(*(tiled_compute_time(rows, columns, inner, groups, high, wide) for high, wide in TILE_SHAPES))
    return ridge_time(best, traffic_bytes / (memory_bandwidth * memory_efficiency)) + launch_latency


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
    >>> smooth_matmul_time(*symbols("m n k g Q", positive=True)).has(launch_latency)
    True
    """
    compute = smooth_compute_time(rows, columns, inner, groups)
    return ridge_time(compute, traffic_bytes / (memory_bandwidth * memory_efficiency)) + launch_latency


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
