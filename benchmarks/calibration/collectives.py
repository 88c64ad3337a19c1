"""Fit the attainable share, the half size and the latency of all-reduces inside a node and between nodes.

Run it from anywhere: python benchmarks/calibration/collectives.py

The form is the one of the cost formulas. With q ranks, n bytes, link bandwidth B, share e, half size h, latency a:

    ring = 2 (q - 1) / q (n + h) / (B e) + 2 (q - 1) a
    tree = 2 (n + h) / (B e) + 2 log2(q) a
    time = min(ring, tree)

e is the measured plateau (messages of 1 GiB and more, or rings with in-switch reduction disabled); h and a minimise
the mean absolute log error over all rows of a part. Under 1 MB the VIDUR times of one size jump between two values
(10 and 55 us, say), so there each source and rank count counts once, with the lower quartile of its times, and these
together weigh as much as the larger messages.

The script prints a second form too, "protocols", which follows the measured curves better: a ring that alone pays h,
against a low-latency protocol at half of the bandwidth (NCCL's LL sends a flag with every word):

    time = min(2 (q - 1) / q (n + h) / (B e), 4 (q - 1) / q n / (B e) + 2 log2(q) a)
"""

from __future__ import annotations

import numpy as np
from rows import family, number, read

ROWS = [r for r in read("collectives.csv") if r["op"] == "all_reduce" and r["message_bytes"]]
ROWS_ANY = [r for r in read("collectives.csv") if r["op"] == "all_reduce" and r["busbw_GB_per_s"]]
MB, US = 1e6, 1e-6


def seconds(row: dict[str, str]) -> float:
    n, q = float(row["message_bytes"]), int(row["num_devices"])
    if row["time_us"]:
        return float(row["time_us"]) * US
    if row["algbw_GB_per_s"]:
        return n / (float(row["algbw_GB_per_s"]) * 1e9)
    return n * 2 * (q - 1) / q / (float(row["busbw_GB_per_s"]) * 1e9)


def pick(source: str, part: str, low: int = 0, high: int = 10**9) -> np.ndarray:
    """The one-node rows (bytes, ranks, seconds) of a source and a part, by range of ids."""
    found = [
        (float(r["message_bytes"]), float(r["num_devices"]), seconds(r))
        for r in ROWS
        if family(r) == source and r["hardware"].startswith(part) and low <= number(r) <= high and r["num_nodes"] == "1"
    ]
    return np.array(found).T


FORM = "contract"


def predicted(rows: np.ndarray, bandwidth: float, e: float, h: float, a: float) -> np.ndarray:
    n, q, _ = rows
    wire = (n + h) / (bandwidth * e)
    if FORM == "protocols":
        return 2 * (q - 1) / q * np.minimum(wire, 2 * n / (bandwidth * e) + q / (q - 1) * np.log2(q) * a)
    return np.minimum(2 * (q - 1) / q * wire + 2 * (q - 1) * a, 2 * wire + 2 * np.log2(q) * a)


def log_error(rows: np.ndarray, bandwidth: float, e: float, h: float, a: float) -> np.ndarray:
    return np.log(predicted(rows, bandwidth, e, h, a) / rows[2])


def lower_quartiles(rows: np.ndarray) -> np.ndarray:
    """Under 1 MB one datum for each rank count: the lower quartile of its times at the middle size."""
    kept = [rows[:, rows[0] >= MB]]
    for q in np.unique(rows[1]):
        small = rows[:, (rows[1] == q) & (rows[0] < MB)]
        if small.size:
            kept.append(np.array([[np.median(small[0])], [q], [np.percentile(small[2], 25)]]))
    return np.hstack(kept)


def fit(rows: np.ndarray, bandwidth: float, plateau: float | None) -> tuple[float, float, float]:
    """(e, h, a) of the least weighted mean absolute log error, by successive grids."""
    small = rows[0] < MB
    weight = np.where(small, 0.5 / max(small.sum(), 1), 0.5 / max((~small).sum(), 1))

    def loss(e: float, h: float, a: float) -> float:
        return float((weight * np.abs(log_error(rows, bandwidth, e, h, a))).sum())

    best = (plateau or 0.8, 3 * MB, 3 * US)
    for width in (8.0, 3.0, 1.6, 1.2, 1.07, 1.02):
        scale = np.geomspace(1 / width, width, 9)
        shares = [plateau] if plateau else [min(1.0, best[0] * s**0.25) for s in scale]
        best = min(
            ((e, best[1] * s, best[2] * t) for e in shares for s in scale for t in scale), key=lambda p: loss(*p)
        )
    return best


def report(name: str, rows: np.ndarray, bandwidth: float, p: tuple[float, float, float]) -> None:
    error = np.abs(log_error(rows, bandwidth, *p))
    bands = ((0, MB), (MB, 256 * MB), (256 * MB, 1e15))
    parts = [error[(rows[0] >= low) & (rows[0] < high)] for low, high in bands]
    text = " ".join(f"{b.mean():7.1%}" if len(b) else "      -" for b in parts)
    print(f"    {name:28s} rows {rows.shape[1]:3d}  <1 MB, 1-256 MB, above: {text}  all {error.mean():6.1%}")


def plateau_of(rows: np.ndarray, bandwidth: float) -> tuple[float, float, float]:
    """Median, least and greatest bus bandwidth of messages of 1 GiB and more, as a share of the link."""
    n, q, t = rows[:, rows[0] >= 2**30]
    share = n * 2 * (q - 1) / q / t / bandwidth
    return float(np.median(share)), float(share.min()), float(share.max())


def scale_up() -> None:
    a100 = {"STAS-001..020": pick("STAS", "A100", 1, 20), "VIDUR-015..084, one node": pick("VIDUR", "A100-80GB-SXM4")}
    h100 = {"VIDUR-127..168": pick("VIDUR", "H100-80GB-SXM5")}
    h200 = {"STAS-021..040 (NVLS)": pick("STAS", "H200", 21, 40)}
    b200 = {"STAS-041..079 (default)": pick("STAS", "B200", 41, 80)}
    rings = {
        part: [float(r["busbw_GB_per_s"]) for r in ROWS_ANY if r["hw_key"] == part and "Ring" in r["algo_or_protocol"]]
        for part in ("H200-SXM5", "B200-SXM", "H100-80GB-SXM5")
    }
    print("Rings, bus bandwidth in GB/s (NVLS disabled or not used):")
    for part, values in rings.items():
        print(
            f"    {part:16s} {len(values)} rows, median {np.median(values):.1f}, {min(values):.1f} to {max(values):.1f}"
        )
    print("Plateau, messages of 1 GiB and more, share of the link (median, low, high):")
    print("    A100", *(f"{x:.3f}" for x in plateau_of(a100["STAS-001..020"], 300e9)))
    plateaus = {"A100": plateau_of(a100["STAS-001..020"], 300e9)[0]}
    plateaus["H100"] = float(np.median(rings["H100-80GB-SXM5"])) / 450
    plateaus["H200"] = float(np.median(rings["H200-SXM5"])) / 450
    plateaus["B200"] = float(np.median(rings["B200-SXM"])) / 900
    for part, sets, bandwidth in (
        ("A100", a100, 300e9),
        ("H100", h100, 450e9),
        ("H200", h200, 450e9),
        ("B200", b200, 900e9),
    ):
        joint = np.hstack([lower_quartiles(rows) for rows in sets.values()])
        for name, plateau in (("e free", None), ("e = plateau", plateaus[part])):
            p = fit(joint, bandwidth, plateau)
            print(f"{part}, {name}: e {p[0]:.3f}, h {p[1] / MB:.2f} MB, a {p[2] / US:.2f} us")
            for label, rows in sets.items():
                report(label, rows, bandwidth, p)
            if len(sets) > 1:
                for label, rows in sets.items():
                    s = fit(lower_quartiles(rows), bandwidth, plateau)
                    print(f"  {label} alone: e {s[0]:.3f}, h {s[1] / MB:.2f} MB, a {s[2] / US:.2f} us")
                    report(label, rows, bandwidth, s)


# part, node link in one direction, nodes, ids: hierarchical all-reduces of 8 devices a node
NODES = (
    ("A100, EFA 4x100 Gb/s", 50e9, 2, "AWS", 1, 22),
    ("H100, EFA v2 3200 Gb/s", 400e9, 2, "AWS", 23, 47),
    ("B200, EFA v4 3200 Gb/s", 400e9, 4, "STAS", 41, 80),
)


def scale_out() -> None:
    """Each node sends 2 (N - 1) / N n through its network cards; what the largest messages reach of them, and h.

    The in-node steps run at the same time and hide only in part, so a share is a lower bound. h is for one
    device of the node's 8, the median of (time x rate - bytes) over 1 to 256 MB.
    """
    for name, bandwidth, nodes, source, low, high in NODES:
        rows = [
            (float(r["message_bytes"]), seconds(r))
            for r in ROWS
            if family(r) == source and low <= number(r) <= high and int(r["num_nodes"]) == nodes
        ]
        n, t = np.array(rows).T
        wire = 2 * (nodes - 1) / nodes * n
        share = (wire / t)[n >= 2**31] / bandwidth
        top = float(share.max())
        middle = (n >= MB) & (n <= 256 * MB)
        half = (t * bandwidth * top - wire)[middle] / 8
        print(
            f"{name}: share {top:.3f} (from 2 GiB: {share.min():.3f} to {top:.3f}); h {np.median(half) / MB:.1f} MB "
            f"({np.percentile(half, 10) / MB:.1f} to {np.percentile(half, 90) / MB:.1f}); "
            f"least time {t.min() / US:.0f} us"
        )


if __name__ == "__main__":
    for FORM in ("contract", "protocols"):
        print(f"== form: {FORM}")
        scale_up()
    scale_out()
