"""Fit what the cost formulas of collectives want to know of links: share, start-up (`half_bytes`), latency of a hop.

Run it from anywhere, with the package installed: python benchmarks/calibration/collectives.py

Times are those of `symperf.formulas.collectives` itself, evaluated in NumPy, so that fit and use cannot drift apart;
each collective starts as any kernel does (`launch_latency`, in the rows of nccl-tests and of graphs also the gap before
it). The procedure, fixed before any fit:

* the share of the link is the measured plateau: messages of 1 GiB and more, or rings with in-switch reduction off;
* the share that the switch sustains (`switch_efficiency`) is the plateau of rows with in-switch reduction, over the
  bytes that `multimem_all_reduce_time` counts; those rows are fitted with the faster of end points and switch;
* the latency of a hop is the median of what single sources and rank counts ask for, low and high are its ends: by the
  least mean absolute log error of messages of 4 to 16 KiB in nccl.csv, or by the fastest VIDUR time of at most 32 KiB,
  since those jump between two values (10 and 55 us, say). Other rows have no part in it: where one process drives eight
  devices, or PyTorch calls the library one by one (STAS), small messages wait for their launches;
* half minimises the mean absolute log error of the messages of 1 MB and more of those sources, given the latency and
  what a call takes at least (`collective_latency`, below), every source and rank count weighing the same; low and high
  bound what comes within a tenth of the least error.

The H200 has the latency of the H100, the same chip and links. The B200 has no such rows: latency and half are fitted
together to its messages of 1 MB and more.

Between nodes both are fitted to `group_all_reduce_time`, with the figures of the tier inside as fitted before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
import sympy
from rows import family, number, read

from symperf.formulas import collectives as c
from symperf.formulas.language.atoms import Atom, Min
from symperf.formulas.language.symbols import SYMBOLS
from symperf.systems.system import System

MB, US, KIB = 1e6, 1e-6, 2**10
ALL = read("collectives.csv")
ROWS = [r for r in ALL if r["op"] == "all_reduce" and r["message_bytes"]]
RINGS = [r for r in ALL if r["op"] == "all_reduce" and r["busbw_GB_per_s"] and "Ring" in r["algo_or_protocol"]]
GAPS = {"stream": 2.1 * US, "graph": 1.3 * US}
"""Seconds before a kernel on an H100: Spector et al. 2025, as in the profiles of serving software."""
SYSTEMS = {"A100": "a100-80gb-sxm", "H100": "h100-sxm", "H200": "h200-sxm", "B200": "b200-sxm"}
"""Where `launch_latency` comes from (gemm.py, h200.py)."""

# --- the package's formulas as functions of arrays

ONE_TIER = [SYMBOLS[x].symbol for x in ("message_bytes", "ranks", "link_bandwidth", "link_latency", "half_bytes")]
TIERS = [f"{tier}_{what}" for tier in ("scale_up", "scale_out") for what in ("bandwidth", "latency", "half_bytes")]
TWO_TIERS = [SYMBOLS[x].symbol for x in ("message_bytes", "inner_ranks", "outer_ranks", *TIERS)]
n, q, b, a, h = ONE_TIER
eta = SYMBOLS["switch_efficiency"].symbol
FORM = c.all_reduce_time(n, q, b, a, h)


@cache
def compiled(expr: sympy.Expr, arguments: tuple[sympy.Symbol, ...]) -> Callable[..., np.ndarray]:
    plain = expr.replace(lambda node: isinstance(node, Atom), lambda node: node.definition())
    function: Callable[..., np.ndarray] = sympy.lambdify(arguments, plain, "numpy", cse=True)
    return function


def launch(part: str) -> float:
    """Seconds that a kernel of a part takes to start."""
    return System.load(SYSTEMS[part]).value("launch_latency")


def one_tier(
    part: str, expr: sympy.Expr, bandwidth: float, rows: np.ndarray, half: float, latency: float
) -> np.ndarray:
    """Seconds of a form's collectives, their start included."""
    full = np.ones(rows.shape[1])
    times = compiled(expr, tuple(ONE_TIER))(rows[0], rows[1], bandwidth * full, latency * full, half * full)
    return times + launch(part)


def called(part: str, expr: sympy.Expr, bandwidth: float, rows: np.ndarray, half: float, latency: float) -> np.ndarray:
    """The same of calls one by one, which take at least `collective_latency` (`called_collective_time`)."""
    least = System.load(SYSTEMS[part]).value("collective_latency")
    return np.maximum(one_tier(part, expr, bandwidth, rows, half, latency), least)


# --- the rows


def seconds(row: dict[str, str]) -> float:
    size, ranks = float(row["message_bytes"]), int(row["num_devices"])
    if row["time_us"]:
        return float(row["time_us"]) * US
    if row["algbw_GB_per_s"]:
        return size / (float(row["algbw_GB_per_s"]) * 1e9)
    return size * 2 * (ranks - 1) / ranks / (float(row["busbw_GB_per_s"]) * 1e9)


def pick(source: str, part: str, low: int = 0, high: int = 10**9, nodes: int = 1, op: str = "all_reduce") -> np.ndarray:
    """The rows (bytes, ranks, seconds) of a source, a part and a number of nodes, by range of ids."""
    found = [
        (float(r["message_bytes"]), float(r["num_devices"]), seconds(r))
        for r in ALL
        if family(r) == source and r["hardware"].startswith(part) and r["op"] == op and r["message_bytes"]
        if low <= number(r) <= high and r["num_nodes"] == str(nodes)
    ]
    return np.array(found).T


def listings(key: str) -> dict[str, np.ndarray]:
    """The rows (bytes, ranks, seconds less the gap) of a part in nccl.csv, by source and ranks."""
    found: dict[str, list[tuple[float, float, float]]] = {}
    for r in read("nccl.csv"):
        if r["hw_key"] == key:
            row = float(r["message_bytes"]), float(r["num_devices"]), float(r["time_us"]) * US - GAPS[r["mode"]]
            found.setdefault(f"{family(r)}, {r['num_devices']} ranks", []).append(row)
    return {name: np.array(rows).T for name, rows in found.items()}


def cells(rows: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """The rows of each rank count with weights that sum to one, half of it for those under 1 MB."""
    result = []
    for ranks in np.unique(rows[1]):
        own = rows[:, rows[1] == ranks]
        small, large = own[:, own[0] < MB], own[:, own[0] >= MB]
        weights = [np.full(part.shape[1], 0.5 / max(part.shape[1], 1)) for part in (small, large)]
        result.append((np.hstack([small, large]), np.hstack(weights)))
    return result


# --- the fit

Predict = Callable[[np.ndarray, float, float], np.ndarray]


@dataclass(frozen=True)
class Fit:
    """Half and latency of the least loss, and the ranges of each that come within a tenth of it."""

    half: float
    latency: float
    loss: float
    halves: tuple[float, float]
    latencies: tuple[float, float]

    def __str__(self) -> str:
        (h0, h1), (a0, a1) = self.halves, self.latencies
        return (
            f"half {self.half / MB:6.2f} MB ({h0 / MB:.2g} to {h1 / MB:.2g}), "
            f"latency {self.latency / US:5.2f} us ({a0 / US:.2g} to {a1 / US:.2g}), loss {self.loss:.1%}"
        )


def log_error(times: np.ndarray, rows: np.ndarray) -> np.ndarray:
    found: np.ndarray = np.abs(np.log(times / rows[2]))
    return found


def fit(predict: Predict, parts: list[tuple[np.ndarray, np.ndarray]]) -> Fit:
    """Half and latency together."""
    rows = np.hstack([part for part, _ in parts])
    weights = np.hstack([weight for _, weight in parts])
    weights = weights / weights.sum()

    def loss(half: float, latency: float) -> float:
        return float(weights @ log_error(predict(rows, half, latency), rows))

    halves, latencies = np.geomspace(0.1 * MB, 200 * MB, 61), np.geomspace(0.05 * US, 200 * US, 61)
    for _ in range(2):  # once coarse, once with a fine grid around the best
        grid = np.array([[loss(x, y) for y in latencies] for x in halves])
        i, j = np.unravel_index(grid.argmin(), grid.shape)
        best, half, latency = float(grid[i, j]), float(halves[i]), float(latencies[j])
        by_half, by_latency = halves[grid.min(axis=1) <= 1.1 * best], latencies[grid.min(axis=0) <= 1.1 * best]
        near = np.geomspace(1 / 1.15, 1.15, 29)
        halves, latencies = np.union1d(halves, half * near), np.union1d(latencies, latency * near)
    return Fit(half, latency, best, _ends(by_half), _ends(by_latency))


def _ends(values: np.ndarray) -> tuple[float, float]:
    return float(values.min()), float(values.max())


LATENCIES = np.arange(0.5, 12, 0.05) * US
HALVES = np.geomspace(0.1 * MB, 200 * MB, 401)
HIGH = 20 * MB
"""A half at which small messages take the low-latency protocol."""


def asked_latencies(part: str, key: str, bandwidth: float) -> dict[str, float]:
    """The latency of a hop that single sources and rank counts ask for."""
    asked = {}
    for name, rows in listings(key).items():
        asked[name] = rows[:, (rows[0] >= 4 * KIB) & (rows[0] <= 16 * KIB)]
    vidur = next(rows for name, rows in PARTS[part][0].items() if name.startswith("VIDUR"))
    for ranks in np.unique(vidur[1]):
        own = vidur[:, (vidur[1] == ranks) & (vidur[0] <= 32 * KIB)]
        asked[f"VIDUR's fastest, {ranks:.0f} ranks"] = own[:, [own[2].argmin()]]
    found = {}
    for name, rows in asked.items():
        losses = [log_error(one_tier(part, FORM, bandwidth, rows, HIGH, x), rows).mean() for x in LATENCIES]
        found[name] = float(LATENCIES[np.argmin(losses)])
    return found


def fit_half(predict: Predict, sets: list[np.ndarray], latency: float) -> tuple[float, float, float]:
    """Half by messages of 1 MB and more, every source and rank count weighing the same, and what is nearly as good."""
    parts = [rows[:, (rows[1] == ranks) & (rows[0] >= MB)] for rows in sets for ranks in np.unique(rows[1])]
    losses = np.mean([[log_error(predict(x, half, latency), x).mean() for half in HALVES] for x in parts], axis=0)
    good = HALVES[losses <= 1.1 * losses.min()]
    return float(HALVES[np.argmin(losses)]), float(good.min()), float(good.max())


BANDS = ((0.0, MB), (MB, 16 * MB), (16 * MB, 256 * MB), (256 * MB, 1e15))


def report(label: str, rows: np.ndarray, times: np.ndarray) -> None:
    error = np.abs(np.log(times / rows[2]))
    parts = [error[(rows[0] >= low) & (rows[0] < high)] for low, high in BANDS]
    text = " ".join(f"{band.mean():6.1%}" if len(band) else "     -" for band in parts)
    print(f"      {label:26s} {rows.shape[1]:3d} rows, <1, 1-16, 16-256 MB, above: {text}, all {error.mean():6.1%}")


# --- inside a node


def plateau(rows: np.ndarray, bandwidth: float) -> tuple[float, float, float]:
    """Median, least and greatest bus bandwidth of messages of 1 GiB and more, as a share of the link."""
    size, ranks, time = rows[:, rows[0] >= 2**30]
    share = size * 2 * (ranks - 1) / ranks / time / bandwidth
    return float(np.median(share)), float(share.min()), float(share.max())


def rings(part: str, bandwidth: float) -> tuple[float, float, float]:
    share = np.array([float(r["busbw_GB_per_s"]) * 1e9 for r in RINGS if r["hw_key"] == part]) / bandwidth
    return float(np.median(share)), float(share.min()), float(share.max())


A100 = {"STAS-001..020": pick("STAS", "A100", 1, 20), "VIDUR A100, one node": pick("VIDUR", "A100-80GB-SXM4")}
LISTED = {"A100": "A100-40GB-SXM4", "H100": "H100-80GB-SXM5"}
"""Parts that nccl.csv has."""
IN_SWITCH = ("H200", "B200")
"""Parts whose rows were measured with in-switch reduction: above 1 GiB they are faster than any ring."""
PARTS: dict[str, tuple[dict[str, np.ndarray], float, tuple[float, float, float]]] = {
    "A100": (A100, 300e9, plateau(A100["STAS-001..020"], 300e9)),
    "H100": ({"VIDUR H100, one node": pick("VIDUR", "H100-80GB-SXM5")}, 450e9, rings("H100-80GB-SXM5", 450e9)),
    "H200": ({"STAS-021..040 (NVLS)": pick("STAS", "H200", 21, 40)}, 450e9, rings("H200-SXM5", 450e9)),
    "B200": ({"STAS-041..079 (default)": pick("STAS", "B200", 41, 80)}, 900e9, rings("B200-SXM", 900e9)),
}


def switch_share(rows: np.ndarray, attainable: float) -> tuple[float, float, float]:
    """Median, least and greatest part of the attainable rate at which the switch adds: messages of 1 GiB and more."""
    size, ranks, time = rows[:, rows[0] >= 2**30]
    share = size * (1 + 1 / ranks) / time / attainable
    return float(np.median(share)), float(share.min()), float(share.max())


def switched(share: float) -> sympy.Expr:
    """The faster of `all_reduce_time` and a switch that adds at a share of the attainable rate."""
    return Min(FORM, c.multimem_all_reduce_time(n, q, b, a, h, share))


def maintainers_peak(attainable: float) -> float:
    """The share by the peak that NCCL's maintainers tell for eight H100 with in-switch reduction (NCCLISSUE-004)."""
    row = next(r for r in ALL if r["id"] == "NCCLISSUE-004")
    return float(row["busbw_GB_per_s"]) * 1e9 * (8 + 1) / (2 * (8 - 1)) / attainable


def latency_of(part: str) -> tuple[float, float, float]:
    """The latency of a hop with its ends, of a part that nccl.csv has."""
    asked = asked_latencies(part, LISTED[part], PARTS[part][1] * PARTS[part][2][0])
    print("   asked:", ", ".join(f"{name} {x / US:.2f}" for name, x in asked.items()))
    return float(np.median(list(asked.values()))), min(asked.values()), max(asked.values())


def scale_up() -> dict[str, tuple[float, float, float]]:
    """Attainable bandwidth, half and latency of each part."""
    result = {}
    for part, (sets, link, share) in PARTS.items():
        print(f"{part}: share of the link {share[0]:.3f} ({share[1]:.3f} to {share[2]:.3f})")
        attainable, form = link * share[0], FORM
        if part in IN_SWITCH:
            middle, low, high = switch_share(np.hstack(list(sets.values())), attainable)
            print(f"   switch_efficiency {middle:.3f} ({low:.3f} to {high:.3f})")
            form = switched(middle)
        elif part == "H100":
            print(f"   switch_efficiency by the maintainers' peak {maintainers_peak(attainable):.3f}")
        predict = partial(called, part, form, attainable)
        if part == "B200":
            found = fit(predict, cells(np.hstack([rows[:, rows[0] >= MB] for rows in sets.values()])))
            latency, half = (found.latency, *found.latencies), (found.half, *found.halves)
        else:
            latency = latency_of("H100" if part == "H200" else part)
            half = fit_half(predict, list(sets.values()), latency[0])
        print(f"   latency {latency[0] / US:.2f} us ({latency[1] / US:.2f} to {latency[2] / US:.2f})", end=", ")
        print(f"half {half[0] / MB:.3g} MB ({half[1] / MB:.2g} to {half[2] / MB:.2g})")
        for name, rows in sets.items():
            report(name, rows, predict(rows, half[0], latency[0]))
        for name, rows in listings(LISTED.get(part, "")).items():
            listed = switched(maintainers_peak(attainable)) if part == "H100" else form
            report(name, rows, one_tier(part, listed, attainable, rows, half[0], latency[0]))
        result[part] = attainable, half[0], latency[0]
    return result


def calls() -> None:
    """Median times of small all-reduces in one node: what a call of NCCL takes, whatever the message and the group.

    These times jump between two values (see `cells`); latencies are fitted to the lower one, which a call attains
    at best. This is what it takes as a rule, `collective_latency` of software that calls NCCL.
    """
    print("All-reduces of at most 1 MiB inside a node (VIDUR):")
    for part in ("A100-80GB-SXM4", "H100-80GB-SXM5"):
        rows = pick("VIDUR", part)
        small = rows[:, rows[0] <= 2**20]
        groups = [f"{q:.0f}: {np.median(small[2, small[1] == q]) / US:.0f}" for q in np.unique(small[1])]
        median, low, high = (np.percentile(small[2], p) / US for p in (50, 25, 75))
        print(f"   {part}: median {median:.0f} us ({low:.0f} to {high:.0f}), by ranks {', '.join(groups)}")


def sends(fitted: dict[str, tuple[float, float, float]]) -> None:
    """Transfers from one device to another: with the start-up of collectives, and without, as the formulas have it."""
    size = ONE_TIER[0]
    print("Sends inside a node, by the bandwidth and latency fitted to all-reduces:")
    for part, name in (("A100", "A100-80GB-SXM4"), ("H100", "H100-80GB-SXM5")):
        rows = pick("VIDUR", name, op="send_recv")
        bandwidth, half, latency = fitted[part]
        for label, start in (("with half_bytes", half), ("without", 0.0)):
            time = compiled(c.send_time(size, bandwidth, latency, start), (size,))
            report(f"{part} {label}", rows, time(rows[0]) + launch(part))


# --- between nodes

# link, part, share of a device in the node's network, nodes, rows
NODES = (
    ("A100, EFA 4x100 Gb/s", "A100", 50e9 / 8, 2, ("AWS", "A100", 1, 22)),
    ("H100, EFA v2 3200 Gb/s", "H100", 400e9 / 8, 2, ("AWS", "H100", 23, 47)),
    ("B200, EFA v4 3200 Gb/s", "B200", 400e9 / 8, 4, ("STAS", "B200", 52, 80)),
)
GROUP = c.group_all_reduce_time(*TWO_TIERS[:3]).xreplace(
    {SYMBOLS[f"{tier}_efficiency"].symbol: sympy.S.One for tier in ("scale_up", "scale_out")}
)


def two_tiers(
    rows: np.ndarray, nodes: int, inside: tuple[float, float, float], outside: tuple[float, ...]
) -> np.ndarray:
    """Times of `group_all_reduce_time` on nodes of 8, by the bandwidth, half and latency of either tier."""
    (up, up_half, up_latency), (out, out_half, out_latency) = inside, outside
    values = (8.0, float(nodes), up, up_latency, up_half, out, out_latency, out_half)
    return compiled(GROUP, tuple(TWO_TIERS))(rows[0], *(value * np.ones(rows.shape[1]) for value in values))


def scale_out(fitted: dict[str, tuple[float, float, float]]) -> None:
    """Fit half and latency of the network, given its share: what the largest messages need of the adapters.

    That is a lower bound, as the steps inside a node hide only in part. Rows of B200 start at 1 MB: below, times of up
    to 6 ms that fall as messages grow are no latency.
    """
    print("Between nodes, 8 devices a node, group_all_reduce_time:")
    for name, part, link, nodes, (source, start, low, high) in NODES:
        rows = pick(source, start, low, high, nodes)
        share = rows[0] * 2 * (nodes - 1) / nodes / 8 / rows[2] / link
        large = share[rows[0] >= 2**31]
        predict = partial(_times, part, nodes, fitted[part], link * large.max())
        found = fit(predict, cells(rows))
        print(f"   {name}: share {large.max():.3f} (from 2 GiB: {large.min():.3f} to {large.max():.3f}), {found}")
        report("", rows, predict(rows, found.half, found.latency))


def _times(
    part: str,
    nodes: int,
    inside: tuple[float, float, float],
    bandwidth: float,
    rows: np.ndarray,
    half: float,
    latency: float,
) -> np.ndarray:
    return two_tiers(rows, nodes, inside, (bandwidth, half, latency)) + launch(part)


if __name__ == "__main__":
    results = scale_up()
    calls()
    sends(results)
    scale_out(results)
