"""Fit matrix_efficiency and launch_latency to measured products of model layers.

Run it from anywhere: python benchmarks/calibration/gemm.py

The form is the one of the cost formulas: for an M x N x K product with w = 2 bytes an element, the least over the tile
shapes of max(waves of tiles on the compute units, L2 traffic, compulsory device-memory traffic), plus launch_latency.

matrix_efficiency means sustained: it is fitted to the products with M >= 2048 and 2 M N K >= 4e11 FLOP, long enough for
the clock to settle. Shorter ones run at higher clocks; a fit over all M >= 2048 is the high end. launch_latency is the
median of time - bytes / (bandwidth x memory_efficiency) over M <= 8 (never below zero).
"""

from __future__ import annotations

import numpy as np
from memory import attainable
from rows import family, read

TILES = ((256, 128), (128, 256), (128, 128), (64, 128))
LONG = 4e11
# compute units, dense FP16 rate, measured L2 read (membw.csv), device bandwidth, rows of membw.csv
PARTS = {
    "A100-80GB-SXM4": (108, 312e12, 3094.17e9, 2039e9, ("A100-80GB-SXM4", "A100-80GB-PCIe")),
    "H100-80GB-SXM5": (132, 989.4e12, 8827.54e9, 3350e9, ("H100-80GB-SXM5", "H800-SXM5")),
    "A40": (84, 149.7e12, np.inf, 696e9, ("A40",)),
}


def products(part: str) -> tuple[np.ndarray, ...]:
    """M, N, K and seconds of the VIDUR rows of a part."""
    rows = [r for r in read("gemm.csv") if family(r) == "VIDUR" and r["hw_key"] == part]
    m, n, k, t = np.array([[float(r[c]) for c in ("M", "N", "K", "time_us")] for r in rows]).T
    return m, n, k, t * 1e-6


def kernel(part: str, m: np.ndarray, n: np.ndarray, k: np.ndarray, efficiency: float, share: float) -> np.ndarray:
    """Seconds of a product without its launch; `share` is memory_efficiency."""
    units, rate, l2, bandwidth, _ = PARTS[part]
    memory = 2 * (m * k + k * n + m * n) / (bandwidth * share)
    shapes = []
    for a, b in TILES:
        waves = np.ceil(np.ceil(m / a) * np.ceil(n / b) / units)
        matrix = waves * 2 * a * b * k / (rate * efficiency / units)
        cache = 2 * m * n * k * (1 / a + 1 / b) / l2
        shapes.append(np.maximum(np.maximum(matrix, cache), memory))
    return np.min(shapes, axis=0)


def fit(part: str, chosen: np.ndarray, share: float, launch: float) -> tuple[float, float]:
    """The efficiency of the least mean absolute log error, and that error."""
    m, n, k, t = (x[chosen] for x in products(part))

    def loss(e: float) -> float:
        return float(np.abs(np.log((kernel(part, m, n, k, e, share) + launch) / t)).mean())

    best = min(np.arange(0.40, 1.0001, 0.005), key=loss)
    return float(best), loss(best)


def main() -> None:
    best_shape = {r["hw_key"]: r for r in read("gemm.csv") if family(r) == "MAMF" and r["dtype_in"] == "bf16"}
    ratios = []
    for part in PARTS:
        m, n, k, t = products(part)
        share = attainable(PARTS[part][4])[0]
        thin = m <= 8
        bytes_ = 2 * (m * k + k * n + m * n)[thin]
        excess = np.maximum(t[thin] - bytes_ / (PARTS[part][3] * share), 0)
        launch = float(np.median(excess))
        low, high = np.percentile(excess, [10, 90]) * 1e6
        print(
            f"{part}: memory_efficiency {share:.3f}; "
            f"launch_latency {launch * 1e6:.2f} us (10/90 %: {low:.1f} {high:.1f})"
        )
        flop = 2 * m * n * k
        long = (m >= 2048) & (flop >= LONG)
        e, loss = fit(part, long, share, launch)
        e_all, loss_all = fit(part, m >= 2048, share, launch)
        print(
            f"    matrix_efficiency {e:.3f} (error {loss:.1%}, {long.sum()} rows); "
            f"all M >= 2048: {e_all:.3f} ({loss_all:.1%})"
        )
        achieved = np.percentile((flop / t)[long] / PARTS[part][1], [10, 50, 90])
        print(f"    achieved share of peak in those rows, 10/50/90 %: {achieved.round(3)}")
        error = np.log((kernel(part, m, n, k, e, share) + launch) / t)
        for label, rows in (
            ("M <= 8", thin),
            ("M 32..1024", (m > 8) & (m < 2048)),
            ("M >= 2048", m >= 2048),
            ("all M", m > 0),
        ):
            x = error[rows]
            print(
                f"    {label:10s} rows {rows.sum():3d}: "
                f"mean |log error| {np.abs(x).mean():.1%}, median {np.median(x):+.1%}"
            )
        if part not in best_shape:
            continue
        mamf = float(best_shape[part]["pct_of_peak"]) / 100
        ratios.append(e / mamf)
        print(f"    best shape of a search {mamf:.3f}; sustained / best {e / mamf:.3f}")
    ratio = float(np.median(ratios))
    print(f"Parts with a best-shape row only: matrix_efficiency = best shape x {ratio:.3f}")
    for part, row in best_shape.items():
        if part not in PARTS:
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
