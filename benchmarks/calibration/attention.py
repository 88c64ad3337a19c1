"""The share of the matrix peak that fused attention kernels reach, from attention.csv and the rows of h200.csv.

Run it from anywhere: python benchmarks/calibration/attention.py

Typical, not best: the middle of a published range, or the median over the sequence lengths of a series. Hopper has
two for each direction: FlashAttention-3 as published, whose backward has no mask, and the causal kernel of cuDNN
measured on an H200; its constant is the median over both together. Where only the best case is published (A100
backward, B200), it is scaled by the ratio of typical to best that the other direction or the published series of the
H100 has.
"""

from __future__ import annotations

import numpy as np
from rows import column, family, measured, number, read

PEAK = {"A100": 312.0, "H100": 989.4, "B200": 2250.0}
WORK = {"forward": 2.0, "backward": 5.0}
"""FLOPs of a causal call, over batch x sequence^2 x heads x width of a head: half of the scores are seen."""


def published(direction: str) -> np.ndarray:
    """The shares of FlashAttention-3 on an H100, by sequence length."""
    rows = [r for r in read("attention.csv") if r["sequence"] and r["direction"] == direction]
    found: np.ndarray = column(rows, "tflops") / PEAK["H100"]
    return found


def causal(direction: str) -> np.ndarray:
    """The shares of cuDNN on an H200, by sequence length: as many key heads as query heads, width 128."""
    rows = [r for r in measured("attention") if r["name"] == f"{direction}_cudnn" and r["kv_heads"] == r["heads"]]
    rows.sort(key=lambda row: int(row["sequence"]))
    batch, sequence, heads, width, seconds = (
        column(rows, name) for name in ("batch", "sequence", "heads", "head_dim", "seconds")
    )
    flops = WORK[direction] * batch * sequence**2 * heads * width
    found: np.ndarray = flops / seconds / (PEAK["H100"] * 1e12)
    return found


def best(direction: str) -> float:
    """The best published share of FlashAttention-3 on an H100, which need not be of the series."""
    rows = [r for r in read("attention.csv") if r["kernel"] == "FlashAttention-3" and r["direction"] == direction]
    return float(column(rows, "tflops").max() / PEAK["H100"])


def hopper(direction: str) -> tuple[float, float, float]:
    """The constant of Hopper, the least share of both series, and the best published one."""
    found = np.concatenate([published(direction), causal(direction)])
    return float(np.median(found)), float(found.min()), best(direction)


def main() -> None:
    rows = {r["id"]: r for r in read("attention.csv")}
    low, high = (float(rows[i]["share_of_peak"]) for i in ("FA2-1", "FA2-2"))
    forward = (low + high) / 2
    backward = float(rows["FA2-3"]["share_of_peak"])
    print(f"A100 forward {forward:.3f} ({low} to {high}), backward {backward * forward / high:.3f} (to {backward})")
    for direction in WORK:
        middle, least, most = hopper(direction)
        print(f"H100, H200 {direction} {middle:.3f} ({least:.3f} to {most:.3f})")
        for name, found in (("FlashAttention-3", published(direction)), ("cuDNN, causal", causal(direction))):
            print(f"    {name:16s} {np.median(found):.3f} ({found.min():.3f} to {found.max():.3f})")
    typical, back = published("forward"), published("backward")
    ratios = (np.median(typical) / best("forward"), np.median(back) / back.max())
    for r in read("gemm.csv"):
        if family(r) == "FLASHMLA" and number(r) in (3, 4):
            share, ratio = float(r["tflops"]) / PEAK["B200"], ratios[number(r) - 3]
            print(
                f"B200 {r['kernel']}: best {share:.3f} x typical / best of the H100 {ratio:.3f} = {share * ratio:.3f}"
            )


if __name__ == "__main__":
    main()
