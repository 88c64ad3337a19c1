"""Fit what products cost to measured products of model layers: matrix_efficiency, ridge_efficiency and latencies.

Run it from anywhere, with the package installed: python benchmarks/calibration/gemm.py

Times are those of `thin_matmul_time` itself (the best tile, waves, splits along k, L2 and device memory), evaluated in
NumPy, so that fit and use cannot drift apart.

matrix_efficiency means sustained: it is fitted to the products with M >= 2048 and 2 M N K >= 4e11 FLOP, long enough for
the clock to settle. Shorter ones run at higher clocks. Where what power sustains is a symbol of its own (h200.py, the
H100's chip), it is fitted to those of 512 to 4096 rows that take less than 2 ms instead. No formula has every tile: low
and high are the 5th and 95th percentile of what single products of M >= 512 rows ask for.

launch_latency and split_latency together minimise the mean absolute log error of bytes / (bandwidth x
memory_efficiency) and the starts over the products of M <= 8; of those that are split along k (`split`) both kernels
count. On the H200 the rows are of 1 and 16 rows in CUDA graphs (h200.csv), and each of both kernels follows a gap as
long as an empty one takes. The A40's L2 is not described, so that its form has no second kernel. Low and high of the
launch are the 10th and 90th percentile of what products that are not split take beside their bytes (never below zero).

ridge_efficiency, which acts only where work and traffic are nearly as long, is fitted after the others to the products
of 32 to 1024 rows, by the least mean absolute log error. Its low and high are the 5th and 95th percentile of what
single products ask for whose work and traffic are within a factor of 1.5.

The held-out models: all constants are fitted again on the layers of Llama 2 70B alone, by the same procedure, and
scored on those layers of the other models whose shapes had no part in it.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import sympy
from bandwidth import H200_BANDWIDTH, memory_share, own_shares
from rows import column, family, measured, read

from symperf.formulas.kernels import matmul
from symperf.formulas.kernels import thin_matmul as thin
from symperf.formulas.language import symbols as sym
from symperf.formulas.language.atoms import Atom

if TYPE_CHECKING:
    from collections.abc import Callable

LONG = 4e11
BRIEF = 2e-3
POWER_LIMITED = ("H100-80GB-SXM5",)
"""Parts whose `sustained_efficiency` is measured."""
FITTED = "Llama-2-70b-hf"
# compute units, dense FP16 rate, measured L2 read (membw.csv), L2 bytes, device bandwidth, rows of membw.csv
PARTS = {
    "A100-80GB-SXM4": (108, 312e12, 3094.17e9, 40 * 2**20, 2039e9, ("A100-80GB-SXM4", "A100-80GB-PCIe")),
    "H100-80GB-SXM5": (132, 989.4e12, 8827.54e9, 50 * 2**20, 3350e9, ("H100-80GB-SXM5", "H800-SXM5")),
    "A40": (84, 149.7e12, 1e15, 6 * 2**20, 696e9, ("A40",)),
    "NVIDIA H200": (132, 989e12, 8827.54e9, 50 * 2**20, 4800e9, ("H200-SXM5",)),
}
VIDUR = ("A100-80GB-SXM4", "H100-80GB-SXM5", "A40")
"""The parts of which gemm.csv has layers; h200.csv has those of the other (h200.py)."""
NO_L2 = ("A40",)
"""Parts whose L2 is not described."""
TILES = {sym.tile_long: 256, sym.tile_wide: 128, sym.tile_narrow: 64, sym.tile_thin: 16, sym.statistic_bytes: 4}
LONGEST = 2048
"""split_inner."""
NONE = {sym.gap_latency: 0, sym.graph_removal: 0, sym.launch_latency: 0}
ASSUMED = TILES | NONE | {sym.split_inner: LONGEST, sym.l2_efficiency: 1, sym.sustained_efficiency: 1, sym.flop: 1}


LAUNCHES, SECONDS = np.arange(0, 8.01, 0.05) * 1e-6, np.arange(0, 4.01, 0.05) * 1e-6
"""Tried latencies."""


class Starts(NamedTuple):
    """launch_latency and split_latency in seconds."""

    launch: float
    second: float


def products(part: str) -> tuple[np.ndarray, ...]:
    """M, N, K and seconds of the VIDUR rows of a part."""
    rows = [r for r in read("gemm.csv") if family(r) == "VIDUR" and r["hw_key"] == part]
    m, n, k, t = np.array([[float(r[c]) for c in ("M", "N", "K", "time_us")] for r in rows]).T
    return m, n, k, t * 1e-6


def models(part: str) -> np.ndarray:
    """The model of which each of these rows is a layer."""
    rows = [r for r in read("gemm.csv") if family(r) == "VIDUR" and r["hw_key"] == part]
    return np.array([r["source_locator"].split("/")[2] for r in rows])


@cache
def compiled() -> Callable[..., np.ndarray]:
    """The package's formula as a function of arrays, without its start."""
    m, n, k = sympy.symbols("m n k", positive=True)
    traffic = matmul.matmul_bytes(m, n, k, 1, 2, 2, 2)
    form = thin.thin_matmul_time(m, n, k, 1, 2, 2, traffic).xreplace(ASSUMED)
    plain = form.replace(lambda node: isinstance(node, Atom), lambda node: node.definition())
    device = (sym.compute_units, sym.matrix_rate, sym.l2_bandwidth, sym.l2_capacity, sym.memory_bandwidth)
    shares = (sym.matrix_efficiency, sym.memory_efficiency, sym.ridge_efficiency)
    arguments = (m, n, k, *device, *shares, sym.split_latency)
    function: Callable[..., np.ndarray] = sympy.lambdify(arguments, plain, "numpy", cse=True)
    return function


def kernel(
    part: str,
    m: np.ndarray,
    n: np.ndarray,
    k: np.ndarray,
    efficiency: float,
    share: float,
    starts: Starts,
    ridge: float = 1.0,
) -> np.ndarray:
    """Seconds of a product; `share` is memory_efficiency, `ridge` ridge_efficiency."""
    full = np.ones_like(m)
    values = (*PARTS[part][:5], efficiency, share, ridge, starts.second)
    return compiled()(m, n, k, *(value * full for value in values)) + starts.launch


def sustained_shares() -> np.ndarray:
    """The shares of 989 TFLOP/s at which power lets lasting products of 8192 rows run on the H100's chip (h200.csv)."""
    rows = [r for r in measured("power") if (r["name"], r["dtype"], r["m"]) == ("gemm", "bf16", "8192")]
    found: np.ndarray = column(rows, "flops") / column(rows, "seconds") / PARTS["NVIDIA H200"][1]
    return found


def deciding(part: str) -> np.ndarray:
    """The rows that matrix_efficiency is fitted to."""
    m, n, k, t = products(part)
    if part in POWER_LIMITED:
        chosen: np.ndarray = (m >= 512) & (m <= 4096) & (t < BRIEF)
    else:
        chosen = (m >= 2048) & (2 * m * n * k >= LONG)
    return chosen


def split(part: str, n: np.ndarray, k: np.ndarray) -> np.ndarray:
    """Which products of few rows are split along k: tiles of 64 columns for half of the units, k above split_inner."""
    found: np.ndarray = (np.ceil(n / 64) <= PARTS[part][0] / 2) & (k > LONGEST) & (part not in NO_L2)
    return found


class Thin(NamedTuple):
    """Products of few rows: seconds of their bytes, measured seconds, which are split, and the gap before a kernel."""

    bytes_: np.ndarray
    seconds: np.ndarray
    second: np.ndarray
    gap: float

    def excess(self) -> np.ndarray:
        """What those that are not split take beside their bytes and the gap, in seconds."""
        found: np.ndarray = np.maximum(self.seconds - self.bytes_ - self.gap, 0)[~self.second]
        return found

    def error(self, starts: Starts) -> np.ndarray:
        """The log errors."""
        found = self.bytes_ + starts.launch + self.gap + self.second * (starts.second + self.gap)
        return np.log(found / self.seconds)


def thinnest(part: str, chosen: np.ndarray, share: float) -> Thin:
    """The chosen VIDUR rows of M <= 8, or those of the H200 in CUDA graphs."""
    if part not in VIDUR:
        rows = [row for row in measured("gemm") if row["mode"] == "graph" and int(row["m"]) <= 16]
        empty = [row for row in measured("launch") if row["name"] == "kernel" and row["mode"] == "graph"]
        read = column(rows, "bytes") / (H200_BANDWIDTH * float(np.median(own_shares())))
        second = split(part, column(rows, "n"), column(rows, "k"))
        return Thin(read, column(rows, "seconds"), second, float(column(empty, "seconds")[0]))
    m, n, k, t = (x[chosen & (products(part)[0] <= 8)] for x in products(part))
    return Thin(2 * (m * k + k * n + m * n) / (PARTS[part][4] * share), t, split(part, n, k), 0.0)


def start(part: str, chosen: np.ndarray, share: float) -> Starts:
    """What kernels of a part cost beside their work, by the chosen VIDUR rows or those of the H200."""
    thin_ones = thinnest(part, chosen, share)
    seconds = SECONDS if thin_ones.second.any() else np.zeros(1)
    tried = (Starts(float(launch), float(second)) for launch in LAUNCHES for second in seconds)
    return min(tried, key=lambda starts: float(np.abs(thin_ones.error(starts)).mean()))


def second_kernels() -> dict[str, float]:
    """split_latency in seconds of the parts that tell it."""
    found = {}
    for part in (part for part in PARTS if part not in NO_L2):
        everything = products(part)[0] > 0 if part in VIDUR else np.array([])
        found[part] = start(part, everything, memory_share(PARTS[part][5])).second
    return found


def fit(part: str, chosen: np.ndarray, share: float, starts: Starts) -> tuple[float, float]:
    """The efficiency of the least mean absolute log error among the chosen VIDUR rows, and that error."""
    return least(part, tuple(x[chosen] for x in products(part)), share, starts)


def least(part: str, rows: tuple[np.ndarray, ...], share: float, starts: Starts) -> tuple[float, float]:
    """The same of any rows: m, n, k and seconds."""
    m, n, k, t = rows

    def loss(e: float) -> float:
        return float(np.abs(np.log(kernel(part, m, n, k, e, share, starts) / t)).mean())

    best = min(np.arange(0.40, 1.0001, 0.005), key=loss)
    return float(best), loss(best)


def fit_ridge(
    part: str, chosen: np.ndarray, efficiency: float, share: float, starts: Starts
) -> tuple[float, float, float]:
    """The ridge efficiency of the least mean absolute log error among 32 to 1024 rows, that error, and that of 1."""
    m, n, k, t = (x[chosen & (products(part)[0] >= 32) & (products(part)[0] <= 1024)] for x in products(part))

    def loss(ridge: float) -> float:
        return float(np.abs(np.log(kernel(part, m, n, k, efficiency, share, starts, ridge) / t)).mean())

    best = min(np.arange(0.5, 1.0001, 0.01), key=loss)
    return float(best), loss(best), loss(1.0)


def asked_ridge(part: str, efficiency: float, share: float, starts: Starts) -> np.ndarray:
    """The ridge efficiencies of single products with work and traffic within a factor of 1.5, kept in 1/2 to 1."""
    m, n, k, t = products(part)
    both, corner = (kernel(part, m, n, k, efficiency, share, Starts(0.0, starts.second), ridge) for ridge in (0.5, 1.0))
    near = both >= (1 + 1 / 1.5) * corner
    found: np.ndarray = np.clip(both[near] / (2 * np.maximum(t[near] - starts.launch, 1e-7)), 0.5, 1.0)
    return found


def asked(part: str, share: float, starts: Starts, ridge: float) -> np.ndarray:
    """The efficiency that makes the formula right for each product of M >= 512 rows, where one does: by bisection."""
    m, n, k, t = (x[products(part)[0] >= 512] for x in products(part))
    found = []
    for row in zip(m, n, k, t, strict=True):
        at = [np.array([x]) for x in row[:3]]
        low, high = 0.05, 3.0
        for _ in range(40):
            middle = float(np.sqrt(low * high))
            slow = kernel(part, at[0], at[1], at[2], middle, share, starts, ridge)[0] > row[3]
            low, high = (middle, high) if slow else (low, middle)
        found.append(low)
    efficiencies = np.array(found)
    return efficiencies[efficiencies < 2.5]


def held_out(part: str, share: float) -> float:
    """Print and return the median error on models that the constants were not fitted to."""
    m, n, k, t = products(part)
    fitted = models(part) == FITTED
    starts = start(part, fitted, share)
    e, _ = fit(part, fitted & deciding(part), share, starts)
    ridge, _, _ = fit_ridge(part, fitted, e, share, starts)
    error = np.abs(kernel(part, m, n, k, e, share, starts, ridge) / t - 1)
    seen = set(zip(m[fitted], n[fitted], k[fitted], strict=True))  # other models have some layers of the same shape
    fresh = np.array([shape not in seen for shape in zip(m, n, k, strict=True)])
    median = float(np.median(error[fresh]))
    print(
        f"    fitted on {FITTED} ({fitted.sum()} rows: efficiency {e:.3f}, ridge {ridge:.2f}, "
        f"launch {starts.launch * 1e6:.2f} us, second kernel {starts.second * 1e6:.2f} us): error on "
        f"{fresh.sum()} others of other shapes: median {median:.1%}, mean {error[fresh].mean():.1%}"
    )
    return median


def main() -> None:
    best_shape = {r["hw_key"]: r for r in read("gemm.csv") if family(r) == "MAMF" and r["dtype_in"] == "bf16"}
    ratios = []
    for part in VIDUR:
        m, n, k, t = products(part)
        share = memory_share(PARTS[part][5])
        few = m <= 8
        few_rows = thinnest(part, m > 0, share)
        starts = start(part, m > 0, share)
        low, high = np.percentile(few_rows.excess(), [10, 90]) * 1e6
        print(
            f"{part}: memory_efficiency {share:.3f}; "
            f"launch_latency {starts.launch * 1e6:.2f} us (10/90 %: {low:.1f} {high:.1f}); "
            f"split_latency {starts.second * 1e6:.2f} us ({few_rows.second.sum()} of {len(few_rows.second)} rows)"
        )
        flop = 2 * m * n * k
        long = (m >= 2048) & (flop >= LONG)
        e, loss = fit(part, long, share, starts)
        sustained = e
        e_all, loss_all = fit(part, m >= 2048, share, starts)
        print(
            f"    matrix_efficiency {e:.3f} (error {loss:.1%}, {long.sum()} rows); "
            f"all M >= 2048: {e_all:.3f} ({loss_all:.1%})"
        )
        if part in POWER_LIMITED:
            brief = deciding(part)
            e, loss = fit(part, brief, share, starts)
            sustained = float(np.median(sustained_shares()))
            print(
                f"    matrix_efficiency of 512 to 4096 rows under 2 ms {e:.3f} (error {loss:.1%}, {brief.sum()} rows)"
            )
        achieved = np.percentile((flop / t)[long] / PARTS[part][1], [10, 50, 90])
        print(f"    achieved share of peak in those rows, 10/50/90 %: {achieved.round(3)}")
        ridge, loss, before = fit_ridge(part, m > 0, e, share, starts)
        ends = np.percentile(asked_ridge(part, e, share, starts), [5, 50, 95])
        print(
            f"    ridge_efficiency {ridge:.2f} (M 32..1024: error {loss:.1%}, {before:.1%} with 1; "
            f"single products near the ridge ask for {ends.round(2)})"
        )
        error = np.log(kernel(part, m, n, k, e, share, starts, ridge) / t)
        for label, rows in (
            ("M <= 8", few),
            ("M 32..1024", (m > 8) & (m < 2048)),
            ("M >= 2048", m >= 2048),
            ("all M", m > 0),
        ):
            x = error[rows]
            print(
                f"    {label:10s} rows {rows.sum():3d}: "
                f"mean |log error| {np.abs(x).mean():.1%}, median {np.median(x):+.1%}, "
                f"of its size {np.median(np.abs(x)):.1%}"
            )
        spread = np.percentile(asked(part, share, starts, ridge), [5, 50, 95])
        print(f"    asked for by single products of M >= 512, 5/50/95 %: {spread.round(3)}")
        held_out(part, share)
        if part not in best_shape:
            continue
        mamf = float(best_shape[part]["pct_of_peak"]) / 100
        ratios.append(sustained / mamf)
        print(f"    best shape of a search {mamf:.3f}; sustained {sustained:.3f}, / best {sustained / mamf:.3f}")
    seconds = [second * 1e6 for second in second_kernels().values()]
    shown = ", ".join(f"{part} {second * 1e6:.2f}" for part, second in second_kernels().items())
    print(
        f"split_latency of any part: {np.median(seconds):.2f} us ({min(seconds):.2f} to {max(seconds):.2f}), "
        f"the median of {shown}"
    )
    ratio = float(np.median(ratios))
    print(f"Parts with a best-shape row only: matrix_efficiency = best shape x {ratio:.3f}")
    for part, row in best_shape.items():
        if part not in VIDUR:
            print(
                f"    {part:16s} {float(row['pct_of_peak']) / 100:.3f} -> "
                f"{float(row['pct_of_peak']) / 100 * ratio:.3f}  {row['id']}"
            )
    print(f"FP8 products: fp8_efficiency = best FP8 shape x {ratio:.3f}")
    for row in read("gemm.csv"):
        if family(row) == "MAMF" and row["dtype_in"] == "fp8":
            share = float(row["pct_of_peak"]) / 100
            print(f"    {row['hw_key'] or row['hardware']:16s} {share:.3f} -> {share * ratio:.3f}  {row['id']}")


if __name__ == "__main__":
    main()
