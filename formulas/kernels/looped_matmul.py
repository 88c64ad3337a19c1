"""Matrix products as loops over the contracted side, for devices on which products of all sizes were measured.

Persistent kernels and splits along k leave no partly filled wave, so that the work of whole tiles is shared by all
units. What `tiles.py` has beside it, several tiles to choose from and panels that pass L2, explains nothing more of the
measured products (docs/kernels.md): one small tile, the ends of its loop, and the least time of a step of it do.
"""

from __future__ import annotations

from typing import Any

from ..language.atoms import Max, Min, ceil_div
from ..language.dimension import SECOND
from ..language.formula import formula
from ..language.symbols import (
    activation_bytes,
    cast_ends,
    cast_latency,
    cast_passes,
    flop,
    inner_ends,
    inner_latency,
    launch_latency,
    matrix_efficiency,
    matrix_rate,
    memory_bandwidth,
    memory_efficiency,
    narrow_ends,
    split_latency,
    tile_narrow,
)
from ..sources import CUTLASS, NVIDIA_GEMM, WILLIAMS
from .roofline import ridge_time
from .thin_matmul import gap_time, kernel_start_time


@formula(
    glyph="T_{loop}",
    dimension=SECOND,
    source=CUTLASS,
    increasing="columns flop groups inner rows",
    decreasing="matrix_efficiency matrix_rate",
)
def looped_compute_time(rows: Any, columns: Any, inner: Any, groups: Any) -> Any:
    """Compute time of g products in whole tiles: 2 g ceil(m / T_n) ceil(n / T_n) T_n^2 k / (F eta).

    Assumes: units share the tiles without a last wave: kernels are persistent, or the sum along k is split over units
    that would idle (stream-K). The loop of a tile has k elements, its ends among them: it fills its pipeline and writes
    its result in the time of some elements more than a product has (`inner_ends`).

    Source: CUTLASS, threadblock tiling, persistent kernels and stream-K: whole tiles of T_n x T_n, each a loop over k
    with a prologue and an epilogue. Measured products of Ampere to Blackwell fit it with 0 to 150 of them in 16 bits.

    >>> from sympy import symbols
    >>> from ..language.symbols import tile_narrow
    >>> looped_compute_time(64, 65, symbols("k"), 1).subs(tile_narrow, 64)
    16384*flop*k/(matrix_efficiency*matrix_rate)
    """
    tiles = groups * ceil_div(rows, tile_narrow) * ceil_div(columns, tile_narrow)
    return 2 * tile_narrow**2 * flop * tiles * inner / (matrix_rate * matrix_efficiency)


@formula(
    glyph="T_{lr}",
    dimension=SECOND,
    source=WILLIAMS,
    increasing="columns flop groups inner rows traffic_bytes",
    decreasing="matrix_efficiency matrix_rate memory_bandwidth memory_efficiency ridge_efficiency",
)
def looped_work_time(rows: Any, columns: Any, inner: Any, groups: Any, traffic_bytes: Any) -> Any:
    """Time of a product's tiles and of its bytes, which hide each other but near the ridge, in seconds.

    Assumes: as `looped_compute_time` and `ridge_time`; `traffic_bytes` are the compulsory bytes, each moved once.

    Source: `ridge_time` of `looped_compute_time` and Q / (beta eta).

    >>> from sympy import symbols
    >>> time = looped_work_time(1, 1, symbols("k"), 1, symbols("Q"))
    >>> time.subs(tile_narrow, 1)  # doctest: +NORMALIZE_WHITESPACE
    Max((Q/(memory_bandwidth*memory_efficiency) + 2*flop*k/(matrix_efficiency*matrix_rate))/(2*ridge_efficiency),
    Q/(memory_bandwidth*memory_efficiency), 2*flop*k/(matrix_efficiency*matrix_rate))
    """
    compute = looped_compute_time(rows, columns, inner, groups)
    return ridge_time(compute, traffic_bytes / (memory_bandwidth * memory_efficiency))


@formula(
    glyph="T_{mm}^{l}",
    dimension=SECOND,
    source=CUTLASS,
    increasing="columns flop groups inner inner_ends launch_latency rows traffic_bytes",
    decreasing="matrix_efficiency matrix_rate memory_bandwidth memory_efficiency ridge_efficiency",
)
def looped_matmul_time(rows: Any, columns: Any, inner: Any, groups: Any, traffic_bytes: Any) -> Any:
    """Time of a large product, of many rows: its tiles or its bytes, plus a launch.

    Assumes: as `looped_work_time`; rows are many, so that no loop over k is longer than the work of all tiles.

    Source: `looped_work_time`, and the launch of Kundu et al. 2024 section 3.

    >>> from sympy import symbols
    >>> looped_matmul_time(1, 1, 0, 1, symbols("Q")).subs({inner_ends: 0})  # doctest: +NORMALIZE_WHITESPACE
    launch_latency + Max(0, Q/(memory_bandwidth*memory_efficiency),
    Q/(2*memory_bandwidth*memory_efficiency*ridge_efficiency))
    """
    return looped_work_time(rows, columns, inner + inner_ends, groups, traffic_bytes) + launch_latency


@formula(
    glyph="T_{mv}^{l}",
    dimension=SECOND,
    source=CUTLASS,
    increasing="columns flop gap_latency groups inner inner_ends inner_latency launch_latency rows split_latency "
    "traffic_bytes",
    decreasing="graph_removal matrix_efficiency matrix_rate memory_bandwidth memory_efficiency ridge_efficiency",
)
def looped_thin_matmul_time(rows: Any, columns: Any, inner: Any, groups: Any, traffic_bytes: Any) -> Any:
    """Time of a product of any number of rows: T_0 + max(T_R, min(k tau, T_R + lambda_k + (1 - gamma) lambda_g)).

    T_R is `looped_work_time` and T_0 the start. A tile goes through all of k, which takes k tau however small it is,
    unless the library splits the sum along k over units that would idle, for a second kernel that adds the parts.

    Assumes: the library splits where that is faster, over as many units as it takes for k tau to vanish.

    Source: derivation: one tile's loop over k is a chain of dependent steps of tau an element, so that
    T >= k tau without a split; with s parts T >= k tau / s and a second kernel (CUTLASS, split-K), least for s large.
    Measured products of few tiles and 3 to 20 us ask for tau of 1 to 5 ns.

    >>> from sympy import symbols
    >>> from ..language.symbols import gap_latency
    >>> looped_thin_matmul_time(1, 1, symbols("k"), 1, 0).subs({flop: 0, gap_latency: 0})
    launch_latency + Max(0, Min(split_latency, inner_latency*k))
    """
    work = looped_work_time(rows, columns, inner + inner_ends, groups, traffic_bytes)
    split = work + split_latency + gap_time()
    return Max(work, Min(inner * inner_latency, split)) + kernel_start_time()


@formula(
    glyph="T_{nar}^{l}",
    dimension=SECOND,
    source=CUTLASS,
    increasing="columns flop gap_latency groups inner inner_latency launch_latency narrow_ends rows traffic_bytes",
    decreasing="graph_removal matrix_efficiency matrix_rate memory_bandwidth memory_efficiency ridge_efficiency",
)
def narrow_matmul_time(rows: Any, columns: Any, inner: Any, groups: Any, traffic_bytes: Any) -> Any:
    """Time of a product in a narrow format, without the cast of its left factor: T_0 + max(T_R, k tau / 2).

    Assumes: as `looped_work_time`, with ends of `narrow_ends`, which scale the results too. An instruction takes
    twice as many elements of k as in 16 bits, so that a step of the loop serves two; kernels of 8 and 4 bits do not
    split sums along k.

    Source: NVIDIA, Matrix Multiplication Background: an instruction covers as many bytes of k in each format; measured
    products in fp8 and fp4 fit half of the latency of 16 bits, and a split in cuBLAS's alone.

    >>> from sympy import symbols
    >>> from ..language.symbols import gap_latency
    >>> narrow_matmul_time(1, 1, symbols("k"), 1, 0).subs({flop: 0, gap_latency: 0})
    launch_latency + Max(0, inner_latency*k/2)
    """
    work = looped_work_time(rows, columns, inner + narrow_ends, groups, traffic_bytes)
    return Max(work, inner * inner_latency / 2) + kernel_start_time()


@formula(
    glyph="T_{cast}",
    dimension=SECOND,
    source=NVIDIA_GEMM,
    increasing="activation_bytes cast_ends cast_latency cast_passes gap_latency inner operand_bytes rows",
    decreasing="graph_removal memory_bandwidth memory_efficiency",
)
def cast_time(rows: Any, inner: Any, operand_bytes: Any) -> Any:
    """Time of casting a left factor: lambda_q + (1 - gamma) lambda_g + m (n w_x (k + k_cast) + w_q k) / (beta eta).

    Assumes: one kernel, or a few, that read the factor n times (its largest magnitude first, then its values) and
    write it once in w_q bytes an element. A row, which one block of threads casts, costs the time of k_cast
    elements more.

    Source: derivation: the bytes of reading m k elements of w_x bytes n times and writing them in w_q; one more start.
    Measured products in fp8 and fp4 whose times include the cast fit n of 1 to 4, and k_cast of 0 to 600 in
    TensorRT-LLM and SGLang and 2,500 to 4,200 in vLLM.

    >>> from sympy import symbols
    >>> from ..language.symbols import gap_latency
    >>> cast_time(*symbols("m k w_q")).subs({gap_latency: 0, cast_ends: 0})
    cast_latency + m*(activation_bytes*cast_passes*k + k*w_q)/(memory_bandwidth*memory_efficiency)
    """
    moved = rows * (cast_passes * activation_bytes * (inner + cast_ends) + inner * operand_bytes)
    return cast_latency + gap_time() + moved / (memory_bandwidth * memory_efficiency)
