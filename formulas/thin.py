"""Thin products: few rows against wide weights, as in decoding.

A tile grid of few tiles leaves units idle; a split along k gives every unit a part of the sum (split-K), and small
matrix instructions waste little on rows that are not there. Both bring the compute time of a thin product near its
work over the rate, so that its weights bind it.
"""

from __future__ import annotations

from typing import Any

from .atoms import Max, Min, ceil_div, complement, less_one
from .dimension import BYTE, ONE, SECOND
from .formula import formula
from .matmul import TILE_SHAPES, matmul_flops, matmul_l2_bytes, matmul_reread_bytes, matmul_waves
from .roofline import corner, ridge_time
from .sources import CUTLASS, KUNDU, NVIDIA_GEMM, SPECTOR
from .symbols import (
    compute_units,
    gap_latency,
    graph_removal,
    l2_bandwidth,
    l2_efficiency,
    launch_latency,
    matrix_efficiency,
    matrix_rate,
    memory_bandwidth,
    memory_efficiency,
    tile_narrow,
    tile_thin,
    tile_wide,
)

SHAPES = (*TILE_SHAPES, (tile_thin, tile_wide), (tile_thin, tile_narrow))
"""Tiles that the library may choose from, as (rows, columns), with those for few rows."""


@formula(
    glyph="N_{pass}",
    dimension=ONE,
    source=CUTLASS,
    increasing="columns groups rows",
    decreasing="compute_units tile_columns tile_rows",
)
def split_passes(rows: Any, columns: Any, groups: Any, tile_rows: Any, tile_columns: Any) -> Any:
    """Passes of the device over a tile grid that may be split along k: waves / max(1, floor(u / tiles)).

    Fewer than half as many tiles as units are split so often that all parts still run at once; more are whole waves.

    Assumes: k is long against the number of splits; partial sums are small against the factors. The floor is
    ceil((u + 1) / tiles) - 1, for a whole number of units.

    Source: CUTLASS, parallelised reductions (split-K), which gives several units a part of k each.

    >>> from sympy import symbols
    >>> split_passes(1, 512, 1, 16, 128).subs(compute_units, 8)
    1/2
    >>> [split_passes(1, columns, 1, 16, 128).subs(compute_units, 8) for columns in (768, 1152)]
    [1, 2]
    """
    tiles = groups * ceil_div(rows, tile_rows) * ceil_div(columns, tile_columns)
    splits = Max(1, less_one(ceil_div(compute_units + 1, tiles)))
    return matmul_waves(rows, columns, groups, tile_rows, tile_columns) / splits


@formula(
    glyph="T_{split}",
    dimension=SECOND,
    source=NVIDIA_GEMM,
    increasing="columns flop groups inner rows",
    decreasing="matrix_efficiency matrix_rate",
)
def split_compute_time(rows: Any, columns: Any, inner: Any, groups: Any, tile_rows: Any, tile_columns: Any) -> Any:
    """Compute time of a product whose tiles may be split along k: passes of u tiles of 2 T_m T_k k FLOPs.

    Assumes: units share the matrix rate equally.

    Source: NVIDIA, Matrix Multiplication Background, for tiles and waves; `split_passes` for the split.

    >>> from sympy import symbols
    >>> split_compute_time(1, 512, symbols("k"), 1, 16, 128).subs(compute_units, 8)
    16384*flop*k/(matrix_efficiency*matrix_rate)
    """
    work = matmul_flops(tile_rows, tile_columns, inner, compute_units)
    return split_passes(rows, columns, groups, tile_rows, tile_columns) * work / (matrix_rate * matrix_efficiency)


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
    glyph="T_{mv}",
    dimension=SECOND,
    source=KUNDU,
    increasing="columns flop gap_latency groups inner launch_latency left_bytes right_bytes rows traffic_bytes",
    decreasing="graph_removal l2_bandwidth l2_capacity l2_efficiency matrix_efficiency matrix_rate "
    "memory_bandwidth memory_efficiency ridge_efficiency",
)
def thin_matmul_time(
    rows: Any, columns: Any, inner: Any, groups: Any, left_bytes: Any, right_bytes: Any, traffic_bytes: Any
) -> Any:
    """Time of a product of any number of rows with tiles, L2 and splits along k: the slowest level, plus its start.

    min over tiles of max(compute, L2 bytes / L2 bandwidth), and with it device bytes / bandwidth as in `ridge_time`.

    Its attainable bandwidth has the form beta / (1 + half / size): the start of a kernel is a size at half speed.

    Assumes: `traffic_bytes` are the compulsory bytes; the library picks the best tile. Weights, the right factor, may
    be narrower than the left one: they pass L2 as they are stored. What a small L2 makes a product read again is
    counted at the left factor's width.

    Source: Kundu et al. 2024 section 3 (hierarchical roofline, thin products bound by memory).

    >>> from sympy import symbols
    >>> str(thin_matmul_time(*symbols("m n k g w_l w_r Q", positive=True)))[:11]
    'gap_latency'
    """
    moved = cached_traffic_bytes(rows, columns, inner, groups, left_bytes, traffic_bytes)
    device = moved / (memory_bandwidth * memory_efficiency)
    best = Min(
        *(
            Max(
                split_compute_time(rows, columns, inner, groups, high, wide),
                corner(split_compute_time(rows, columns, inner, groups, high, wide), device),
                matmul_l2_bytes(rows, columns, inner, groups, left_bytes, right_bytes, high, wide)
                / (l2_bandwidth * l2_efficiency),
            )
            for high, wide in SHAPES
        )
    )
    return Max(device, best) + kernel_start_time()


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
    >>> str(quantised_thin_matmul_time(*symbols("m n k g Q", positive=True)))[:11]
    'gap_latency'
    """
    best = Min(*(split_compute_time(rows, columns, inner, groups, high, wide) for high, wide in SHAPES))
    return ridge_time(best, traffic_bytes / (memory_bandwidth * memory_efficiency)) + kernel_start_time()


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
    >>> smooth_thin_matmul_time(*symbols("m n k g Q", positive=True)).has(gap_latency)
    True
    """
    compute = matmul_flops(rows, columns, inner, groups) / (matrix_rate * matrix_efficiency)
    return ridge_time(compute, traffic_bytes / (memory_bandwidth * memory_efficiency)) + kernel_start_time()
