"""The share of the matrix peak that fused attention kernels reach, from the published figures in attention.csv.

Run it from anywhere: python benchmarks/calibration/attention.py

Typical, not best: the middle of a published range, or the median over the sequence lengths of a published series. Where
only the best case is published (A100 backward, B200), it is scaled by the ratio of typical to best that the other
direction or the H100 has.
"""

from __future__ import annotations

import numpy as np
from rows import family, number, read

PEAK = {"A100": 312.0, "H100": 989.4, "B200": 2250.0}


def main() -> None:
    rows = {r["id"]: r for r in read("attention.csv")}
    low, high = (float(rows[i]["share_of_peak"]) for i in ("FA2-1", "FA2-2"))
    forward = (low + high) / 2
    backward = float(rows["FA2-3"]["share_of_peak"])
    print(f"A100 forward {forward:.3f} ({low} to {high}), backward {backward * forward / high:.3f} (to {backward})")
    series = {
        d: np.array([float(r["tflops"]) for r in rows.values() if r["sequence"] and r["direction"] == d]) / PEAK["H100"]
        for d in ("forward", "backward")
    }
    for direction, share in series.items():
        print(f"H100 {direction} {np.median(share):.3f} ({share.min():.3f} to {share.max():.3f})")
    best = float(rows["FA3-1"]["tflops"]) / PEAK["H100"]
    ratios = (np.median(series["forward"]) / best, np.median(series["backward"]) / series["backward"].max())
    for r in read("gemm.csv"):
        if family(r) == "FLASHMLA" and number(r) in (3, 4):
            share, ratio = float(r["tflops"]) / PEAK["B200"], ratios[number(r) - 3]
            print(
                f"B200 {r['kernel']}: best {share:.3f} x typical / best of the H100 {ratio:.3f} = {share * ratio:.3f}"
            )


if __name__ == "__main__":
    main()
