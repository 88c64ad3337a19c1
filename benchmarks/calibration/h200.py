"""Constants of the H200 from the rows that `symperf measure` wrote on one: h200.csv.

Run it from anywhere, with the package installed: python benchmarks/calibration/h200.py

Each is a median, with the least and greatest row as low and high, unless said otherwise.

sustained_efficiency is the share of the matrix peak at which 700 W let lasting bf16 products of 8192 rows run,
whatever their shape: of random numbers, since zeros take half of the power. Its low is that of fp16, its high the best
of loads of 0.2 s (mode `stream`). fp8_efficiency is the same for fp8; its high is the best row of that mode.

static_power is what the device draws at rest, or with one multiprocessor counting cycles. memory_energy is what reads
and copies of 2 GiB buffers draw above it, over their bytes a second; matrix_energy is what those products draw above
both, over their FLOP/s. The share of L2 cannot be told apart: it is inside matrix_energy, so there is no l2_energy.

memory_efficiency: copies, reads and triads of at least 256 MB. launch_latency and split_latency: fitted by gemm.py to
products of 1 and 16 rows in CUDA graphs; the value in use of the second is the H200's own here. l2_efficiency: only its
low end, the bytes by which copies in L2 of 16.8 and 33.6 MB differ over the difference of their times.
attention_efficiency and attention_backward_efficiency: see attention.py.

matrix_efficiency is fitted as gemm.py does it to products of 512 to 4096 rows, of the H200 and of the H100 (VIDUR), for
three bounds of their time. The rows of the H200 do not determine it: calls of 150 us and more are timed back to back
for 0.2 s, where power bounds them, and the fit to shorter ones ends at the edge of its grid, since some ask for more
than one and others for what power leaves. Those of the H100 give nearly the same value for all bounds.
"""

from __future__ import annotations

from typing import NamedTuple

import attention
import gemm
import numpy as np
from bandwidth import memory_share, own_shares
from rows import column, measured

from symperf.measuring.clock import LONG

PART, OTHER = "NVIDIA H200", "H100-80GB-SXM5"
FP8_PEAK, L2_BANDWIDTH = 1979e12, 8986e9
BOUNDS = {"under 2 ms": (0.0, 2e-3), "under 150 us": (0.0, 150e-6), "150 us to 2 ms": (150e-6, 2e-3)}
FEWEST, MOST = 512, 4096


class Constant(NamedTuple):
    """A constant in SI units with its ends, and of how many rows it is."""

    value: float
    low: float
    high: float
    rows: int


def middle(found: np.ndarray) -> Constant:
    """The median, with the least and greatest of these."""
    return Constant(float(np.median(found)), float(found.min()), float(found.max()), len(found))


def rate(rows: list[dict[str, str]], name: str) -> np.ndarray:
    """`bytes` or `flops` of each row a second; a row of kind gemm leaves its FLOPs to m, n and k."""
    products = name == "flops" and rows[0]["kind"] == "gemm"
    sizes = 2 * column(rows, "m") * column(rows, "n") * column(rows, "k") if products else column(rows, name)
    found: np.ndarray = sizes / column(rows, "seconds")
    return found


def lasting(*names: str, dtype: str = "") -> list[dict[str, str]]:
    """The rows of kind power of these names; of products those of 8192 rows in one format, of random numbers."""
    rows = [row for row in measured("power") if row["name"] in names]
    return [row for row in rows if row["m"] == "8192" and row["dtype"] == dtype] if dtype else rows


def sustained() -> Constant:
    """sustained_efficiency."""
    half = rate(lasting("gemm", dtype="fp16"), "flops") / gemm.PARTS[PART][1]
    m, n, k, seconds = products()
    loads = (2 * m * n * k / seconds / gemm.PARTS[PART][1])[seconds >= LONG]
    return middle(gemm.sustained_shares())._replace(low=float(half.min()), high=float(loads.max()))


def fp8() -> Constant:
    """fp8_efficiency, whose high end shorter loads give."""
    found = middle(rate(lasting("gemm", dtype="fp8"), "flops") / FP8_PEAK)
    short = [row for row in measured("gemm") if row["dtype"] == "fp8" and row["mode"] == "stream"]
    return found._replace(high=float((rate(short, "flops") / FP8_PEAK).max()))


def static_power() -> Constant:
    """Watts of a device that does nothing, or next to nothing."""
    return middle(column(lasting("idle", "wait"), "power_w"))


def memory_energy() -> Constant:
    """Joules of a byte."""
    rows = lasting("read", "copy")
    return middle((column(rows, "power_w") - static_power().value) / rate(rows, "bytes"))


def matrix_energy(dtype: str = "bf16") -> Constant:
    """Joules of a FLOP, with what operands and L2 take."""
    rows = lasting("gemm", dtype=dtype)
    moved = memory_energy().value * rate(rows, "bytes")
    return middle((column(rows, "power_w") - static_power().value - moved) / rate(rows, "flops"))


def memory() -> Constant:
    """memory_efficiency."""
    return middle(own_shares())


def launch() -> Constant:
    """launch_latency in seconds."""
    rows = few_rows().excess()
    low, high = np.percentile(rows, [10, 90])
    return Constant(starts().launch, float(low), float(high), len(rows))


def few_rows() -> gemm.Thin:
    """The products of 1 and 16 rows in CUDA graphs."""
    return gemm.thinnest(PART, np.array([]), 0.0)


def starts() -> gemm.Starts:
    """launch_latency and split_latency in seconds."""
    return gemm.start(PART, np.array([]), 0.0)


def thin_errors() -> np.ndarray:
    """Relative errors of the products in CUDA graphs, with the H100's matrix_efficiency and corner, in row order."""
    rows = [row for row in measured("gemm") if row["mode"] == "graph" and int(row["m"]) <= 16]
    gap, (efficiency, ridge) = few_rows().gap, of_the_h100()
    m, n, k, seconds = (column(rows, name) for name in ("m", "n", "k", "seconds"))
    each = gemm.Starts(starts().launch + gap, starts().second + gap)
    found: np.ndarray = gemm.kernel(PART, m, n, k, efficiency, memory().value, each, ridge) / seconds - 1
    return found


def l2_low() -> float:
    """The low end of l2_efficiency."""
    sizes = {int(row["bytes"]): float(row["seconds"]) for row in measured("copy") if row["name"] == "l2_copy"}
    small, large = 2**24, 2**25
    return (large - small) / (sizes[large] - sizes[small]) / L2_BANDWIDTH


def attended(direction: str) -> Constant:
    """attention_efficiency or attention_backward_efficiency."""
    rows = len(attention.published(direction)) + len(attention.causal(direction))
    return Constant(*attention.hopper(direction), rows)


def constants() -> dict[str, Constant]:
    """What the catalogue takes from here, but for the low end of l2_efficiency."""
    return {
        "sustained_efficiency": sustained(),
        "fp8_efficiency": fp8(),
        "attention_efficiency": attended("forward"),
        "attention_backward_efficiency": attended("backward"),
        "memory_efficiency": memory(),
        "launch_latency": launch(),
        "static_power": static_power(),
        "matrix_energy": matrix_energy(),
        "memory_energy": memory_energy(),
    }


def products() -> tuple[np.ndarray, ...]:
    """M, N, K and seconds of the bf16 products of mode `stream`."""
    rows = [row for row in measured("gemm") if row["dtype"] == "bf16" and row["mode"] == "stream"]
    return tuple(column(rows, name) for name in ("m", "n", "k", "seconds"))


def fitted(part: str, between: tuple[float, float]) -> tuple[float, float, int]:
    """matrix_efficiency by the rows of 512 to 4096 rows whose time is between these, its error, and their number."""
    if part == PART:
        rows, share, start = products(), memory().value, starts()
    else:
        rows, share = gemm.products(part), memory_share(gemm.PARTS[part][5])
        start = gemm.start(part, rows[0] > 0, share)
    chosen = (rows[0] >= FEWEST) & (rows[0] <= MOST) & (rows[3] >= between[0]) & (rows[3] < between[1])
    return *gemm.least(part, tuple(x[chosen] for x in rows), share, start), int(chosen.sum())


def of_the_h100() -> tuple[float, float]:
    """matrix_efficiency and ridge_efficiency of the H100."""
    share = memory_share(gemm.PARTS[OTHER][5])
    everything = gemm.products(OTHER)[0] > 0
    start = gemm.start(OTHER, everything, share)
    efficiency, _ = gemm.fit(OTHER, gemm.deciding(OTHER), share, start)
    return efficiency, gemm.fit_ridge(OTHER, everything, efficiency, share, start)[0]


def grid() -> tuple[int, float, float]:
    """Products of mode `stream`: how many, the median and the mean error with constants that they had no part in.

    matrix_efficiency and ridge_efficiency are the H100's; memory_efficiency, sustained_efficiency and what kernels
    cost beside their bytes are of other rows here. Every kernel follows a gap as long as an empty one takes.
    """
    efficiency, ridge = of_the_h100()
    m, n, k, seconds = products()
    empty = [row for row in measured("launch") if row["name"] == "kernel" and row["mode"] == "stream"]
    gap = float(column(empty, "seconds")[0])
    each = gemm.Starts(starts().launch + gap, starts().second + gap)
    time = gemm.kernel(PART, m, n, k, efficiency, memory().value, each, ridge)
    power = 2 * m * n * k / (gemm.PARTS[PART][1] * sustained().value)
    error = np.abs(np.maximum(time, power + each.launch) / seconds - 1)
    return len(error), float(np.median(error)), float(error.mean())


def main() -> None:
    for name, found in constants().items():
        scale, unit = {"launch_latency": (1e6, " us"), "static_power": (1, " W")}.get(name, (1, ""))
        if name.endswith("_energy"):
            scale, unit = 1e12, " pJ/B" if name == "memory_energy" else " pJ/FLOP"
        value, low, high = (f"{x * scale:.4g}" for x in found[:3])
        print(f"{name:30s} {value}{unit} ({low} to {high}), {found.rows} rows")
    print(f"{'split_latency':30s} {starts().second * 1e6:.4g} us beside the graph's gap")
    print(f"{'l2_efficiency':30s} low end {l2_low():.3f}")
    other = matrix_energy("fp8")
    print(f"For comparison: a FLOP in fp8 takes {other.value * 1e12:.3f} pJ ({other.rows} rows)")
    for part in (PART, OTHER):
        for label, between in BOUNDS.items():
            efficiency, error, rows = fitted(part, between)
            print(f"matrix_efficiency, {part:14s} {label:14s} {efficiency:.3f} (error {error:.1%}, {rows} rows)")
    thin = np.abs(thin_errors())
    print(f"{len(thin)} products in graphs, by the kernels' cost of them: median error {np.median(thin):.1%}")
    rows, median, mean = grid()
    print(f"{rows} products in a stream, by constants of other rows: median error {median:.1%}, mean {mean:.1%}")


if __name__ == "__main__":
    main()
