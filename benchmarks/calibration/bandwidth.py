"""The attainable share of the device-memory and L2 bandwidth, from stream-like kernels.

Run it from anywhere: python benchmarks/calibration/bandwidth.py

memory_efficiency is the median over the rows of a chip with its memory: FluidX3D in FP32, coalesced read and write,
DRAM read, write and copy. Where FluidX3D is all there is, its share is scaled by the median, over the parts that have
both, of (median of all rows) / (FluidX3D row), since that kernel also gathers. Copies of 32 MB are left out: caches
serve them. The H200's are copies, reads and triads of at least 256 MB of our own (h200.csv). reread_efficiency of
Hopper comes from NVIDIA's note on its XQA kernel, see `repeated_reads`.
"""

from __future__ import annotations

import numpy as np
from rows import column, family, measured, read

GROUPS = {
    "A100 80 GB": ("A100-80GB-SXM4", "A100-80GB-PCIe"),
    "H100/H800 SXM": ("H100-80GB-SXM5", "H800-SXM5"),
    "GH200": ("GH200",),
    "B200": ("B200-SXM",),
    "B300": ("B300-SXM",),
    "MI210": ("MI210",),
    "MI355X": ("MI355X",),
}
SINGLE = (  # parts with a FluidX3D row only
    "A100-40GB-SXM4",
    "V100-SXM2-32GB",
    "H100-80GB-PCIe",
    "H100-94GB-NVL",
    "MI300X",
    "MI250",
    "L40S",
    "A40",
    "A10",
    "RTX 4090",
)

H200_BANDWIDTH = 4800e9


def shares(keys: tuple[str, ...]) -> dict[str, float]:
    """The measured share of the data-sheet bandwidth by row id, for the stream-like rows of these parts."""
    return {
        r["id"]: float(r["mem_GB_per_s"]) / float(r["spec_mem_bw_GB_per_s"])
        for r in read("membw.csv")
        if r["hw_key"] in keys
        and r["spec_mem_bw_GB_per_s"]
        and family(r) != "BWTEST"
        and "FP16" not in r["kernel"]
        and "L2" not in r["kernel"]
    }


def attainable(keys: tuple[str, ...]) -> tuple[float, float, float]:
    """Median, least and greatest share."""
    found = list(shares(keys).values())
    return float(np.median(found)), min(found), max(found)


def stencil_ratio() -> float:
    """The median, over the parts that have both, of the median of all rows over the FluidX3D row."""
    found = []
    for keys in GROUPS.values():
        stencil = np.median([share for row, share in shares(keys).items() if row.startswith("FLUIDX3D")])
        found.append(attainable(keys)[0] / float(stencil))
    return float(np.median(found))


def own_shares() -> np.ndarray:
    """The shares of 4800 GB/s of copies, reads and triads measured on an H200."""
    rows = [r for r in measured("copy") if r["name"] in ("copy", "read", "triad") and float(r["bytes"]) >= 256e6]
    found: np.ndarray = column(rows, "bytes") / column(rows, "seconds") / H200_BANDWIDTH
    return found


def memory_share(keys: tuple[str, ...]) -> float:
    """memory_efficiency of parts: the median share of their rows, scaled where FluidX3D is all there is."""
    only = all(row.startswith("FLUIDX3D") for row in shares(keys))
    return attainable(keys)[0] * (stencil_ratio() if only else 1.0)


XQA = {1: (1227.0, 2941.0), 8: (13232.0, 25300.0)}
"""Tokens a second of Llama 2 70B on so many H200, 128 in, 2048 out, FP8, without and with the XQA kernel: TensorRT-LLM,
docs/source/blogs/XQA-kernel.md, https://nvidia.github.io/TensorRT-LLM/blogs/XQA-kernel.html. The column says "per GPU",
but eight of them cannot each give 25,300: even with all their memory full of caches these and the weights would need
5.4 TB/s of each, and it has 4.8."""


def repeated_reads(devices: int) -> float:
    """The share of the L2 bandwidth at which masked multi-head attention reads the keys of a group again, on an H200.

    The kernel without XQA reads each key and value for 8 query heads, through L2; with XQA it reads them once, from
    device memory. All else is alike in a step of the same batch b, so that the two times of a step, b over the rates,
    differ by the difference of these times. Divided by b it is that of one sequence: bytes of the cache at the mean
    context on one device, 8 Q / (share x 8986 GB/s) - Q / (eta 4800 GB/s), where eta is its memory_efficiency.

    Assumes: the same batch on both sides, a cache in FP8, prefill of 128 tokens left out.
    """
    without, with_xqa = XQA[devices]
    context = 128 + 2048 / 2
    cache = 2 * 80 * 8 * 128 * context / devices
    once = cache / (float(np.median(own_shares())) * H200_BANDWIDTH)
    return 8 * cache / (1 / without - 1 / with_xqa + once) / 8986e9


def main() -> None:
    medians = []
    for name, keys in GROUPS.items():
        rows = shares(keys)
        middle, low, high = attainable(keys)
        stencil = float(np.median([v for i, v in rows.items() if i.startswith("FLUIDX3D")]))
        medians.append(middle)
        print(f"{name:14s} {middle:.3f} ({low:.3f} to {high:.3f})  / FluidX3D {middle / stencil:.3f}  {' '.join(rows)}")
    ratio = stencil_ratio()
    print(f"Parts with a FluidX3D row only: its share x {ratio:.3f}")
    for key in SINGLE:
        rows = shares((key,))
        stencil = next(v for i, v in rows.items() if i.startswith("FLUIDX3D"))
        medians.append(stencil * ratio)
        print(f"    {key:16s} {stencil:.3f} -> {min(stencil * ratio, 1):.3f}  {' '.join(rows)}")
    own = own_shares()
    medians.append(float(np.median(own)))
    print(f"H200, measured here {medians[-1]:.3f} ({own.min():.3f} to {own.max():.3f}), {len(own)} rows")
    low, middle, high = np.percentile(medians, [10, 50, 90])
    print(f"Default: median of {len(medians)} parts {middle:.3f}, 10th to 90th percentile {low:.3f} to {high:.3f}")
    for r in read("membw.csv"):
        if "L2" in r["kernel"]:
            print(f"L2 read {r['hardware']:16s} {r['mem_GB_per_s']} GB/s  {r['id']}")
    for devices in XQA:
        print(f"L2 reads repeated by query heads, {devices} x H200: {repeated_reads(devices):.3f} of 8986 GB/s")


if __name__ == "__main__":
    main()
