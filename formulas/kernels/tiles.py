"""Tiles of matrix products: what a grid of them computes, reads through L2, and leaves to sum when k is split.

A device of u units computes u tiles at once, and the last wave takes as long as a full one. A grid of few tiles leaves
units idle; a split along k gives every unit a part of the sum (split-K), at the price of partial sums that go through
L2. A tile is T_m x T_k elements of the result.
"""

from __future__ import annotations

from typing import Any

import sympy

from ..language.atoms import Max, Min, ceil_div, less_one
from ..language.dimension import BYTE, ONE, SECOND
from ..language.formula import formula
from ..language.symbols import (
    compute_units,
    flop,
    l2_bandwidth,
    l2_capacity,
    l2_efficiency,
    matrix_efficiency,
    matrix_rate,
    statistic_bytes,
    tile_long,
    tile_narrow,
    tile_thin,
    tile_wide,
)
from ..sources import CUTLASS, KUNDU, NVIDIA_GEMM, SMITH

WHOLE = ((tile_wide, tile_long), (tile_long, tile_wide), (tile_wide, tile_wide))
"""Tiles that compute a whole sum each, as (rows, columns)."""
SPLIT = ((tile_wide, tile_long), (tile_narrow, tile_wide))
"""Tiles whose sums may be split along k."""
THIN = (tile_thin, tile_wide)
"""The tile for few rows: the smallest matrix instruction wastes little on rows that are not there."""


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
    glyph="N_{wave}",
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


def _passes_time(passes: Any, inner: Any, tile_rows: Any, tile_columns: Any) -> Any:
    """Seconds of passes in which each of u units computes a tile, 2 T_m T_k k FLOPs."""
    work = 2 * tile_rows * tile_columns * inner * compute_units * flop
    return passes * work / (matrix_rate * matrix_efficiency)


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
    waves = matmul_waves(rows, columns, groups, tile_rows, tile_columns)
    return _passes_time(waves, inner, tile_rows, tile_columns)


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

    Assumes: k is long against the number of splits; partial sums are counted apart (`split_sum_bytes`). The floor is
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
    passes = split_passes(rows, columns, groups, tile_rows, tile_columns)
    return _passes_time(passes, inner, tile_rows, tile_columns)


@formula(
    glyph=r"Q_{\Sigma}",
    dimension=BYTE,
    source=CUTLASS,
    increasing="columns compute_units rows statistic_bytes tile_columns tile_rows",
    curvature="concave",
)
def split_sum_bytes(rows: Any, columns: Any, tile_rows: Any, tile_columns: Any) -> Any:
    """Bytes through L2 of the partial sums of a product that is split along k: 2 u min(m, T_m) min(n, T_k) w_s.

    Assumes: all u units hold a part, in the 32 bits of statistics, which is written once and read once to be summed;
    rows and columns that are not there are not stored. A grid that fills the units is not split; it pays the same.

    Source: CUTLASS, parallelised reductions (split-K): partial products go to a workspace, and a second kernel sums
    them. u parts of min(m, T_m) min(n, T_k) elements, each way.

    >>> split_sum_bytes(16, 1024, 64, 128)
    4096*compute_units*statistic_bytes
    """
    part = Min(rows, tile_rows) * Min(columns, tile_columns)
    return 2 * compute_units * part * statistic_bytes


@formula(
    glyph="T_{whole}",
    dimension=SECOND,
    source=KUNDU,
    increasing="columns flop groups inner left_bytes right_bytes rows",
    decreasing="l2_bandwidth l2_efficiency matrix_efficiency matrix_rate",
)
def whole_tile_time(
    rows: Any,
    columns: Any,
    inner: Any,
    groups: Any,
    left_bytes: Any,
    right_bytes: Any,
    tile_rows: Any,
    tile_columns: Any,
) -> Any:
    """Time on the device of a product in tiles that are not split: max(compute, L2 bytes / L2 bandwidth).

    Assumes: as `tiled_compute_time` and `matmul_l2_bytes`; device memory is counted by the caller, once for all tiles.

    Source: Kundu et al. 2024 section 3 (hierarchical roofline).

    >>> from sympy import symbols
    >>> whole_tile_time(1, 1, symbols("k"), 1, *symbols("w_l w_r"), 1, 1).subs(compute_units, 1)
    Max(2*flop*k/(matrix_efficiency*matrix_rate), k*(w_l + w_r)/(l2_bandwidth*l2_efficiency))
    """
    panels = matmul_l2_bytes(rows, columns, inner, groups, left_bytes, right_bytes, tile_rows, tile_columns)
    compute = tiled_compute_time(rows, columns, inner, groups, tile_rows, tile_columns)
    return Max(compute, panels / (l2_bandwidth * l2_efficiency))


@formula(
    glyph="T_{part}",
    dimension=SECOND,
    source=KUNDU,
    increasing="columns flop groups inner left_bytes right_bytes rows statistic_bytes transfer_time",
    decreasing="l2_bandwidth l2_efficiency matrix_efficiency matrix_rate",
)
def split_tile_time(
    rows: Any,
    columns: Any,
    inner: Any,
    groups: Any,
    left_bytes: Any,
    right_bytes: Any,
    tile_rows: Any,
    tile_columns: Any,
    transfer_time: Any,
) -> Any:
    """Time of a product in tiles that may be split along k: max(compute, T_c, L2 bytes / L2 bandwidth) + partial sums.

    Assumes: as `split_compute_time` and `matmul_l2_bytes`; T_c is the time of device memory. Partial sums
    (`split_sum_bytes`) go through L2 after the product, not beside it.

    Source: Kundu et al. 2024 section 3 (hierarchical roofline).

    >>> from sympy import symbols
    >>> tiles = {compute_units: 1, statistic_bytes: 1}
    >>> last = (1, 1, symbols("T"))
    >>> split_tile_time(1, 1, symbols("k"), 1, *symbols("w_l w_r"), *last).subs(tiles)  # doctest: +NORMALIZE_WHITESPACE
    Max(T, 2*flop*k/(matrix_efficiency*matrix_rate), k*(w_l + w_r)/(l2_bandwidth*l2_efficiency)) +
    2/(l2_bandwidth*l2_efficiency)
    """
    through_l2 = l2_bandwidth * l2_efficiency
    panels = matmul_l2_bytes(rows, columns, inner, groups, left_bytes, right_bytes, tile_rows, tile_columns)
    compute = split_compute_time(rows, columns, inner, groups, tile_rows, tile_columns)
    sums = split_sum_bytes(rows, columns, tile_rows, tile_columns)
    return Max(compute, transfer_time, panels / through_l2) + sums / through_l2


def best_tile_time(
    rows: Any,
    columns: Any,
    inner: Any,
    groups: Any,
    left_bytes: Any,
    right_bytes: Any,
    device_time: Any,
    also: tuple[tuple[Any, Any], ...] = (),
) -> Any:
    """Time of the fastest tile, whole or split, in seconds; `also` are tiles to try both ways beside the usual ones.

    min over tiles of max(compute, device memory, L2 bytes / L2 bandwidth), and for split ones their partial sums after
    it.

    Source: as `tiled_matmul_time`.
    """
    product = (rows, columns, inner, groups, left_bytes, right_bytes)
    whole = [whole_tile_time(*product, *tile) for tile in (*WHOLE, *also)]
    split = [split_tile_time(*product, *tile, device_time) for tile in (*SPLIT, *also)]
    return Min(Max(device_time, Min(*whole)), *split)


def fewest_passes_time(rows: Any, columns: Any, inner: Any, groups: Any, also: tuple[tuple[Any, Any], ...] = ()) -> Any:
    """Compute time of the fastest of tiles in seconds, where L2 is not described and partial sums cost nothing.

    Source: `split_compute_time`.
    """
    return Min(*(split_compute_time(rows, columns, inner, groups, *tile) for tile in (*SPLIT, *also)))
