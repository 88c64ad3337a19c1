"""Fit what a software's own all-reduce wants to know of links: peer_latency and peer_efficiency.

Run it from anywhere, with the package installed: python benchmarks/calibration/peer.py

Times are those of `symperf.formulas.collectives.peer_all_reduce_time` itself. The rows were measured through vLLM's
choice of an all-reduce, which leaves large messages to other kernels (`LIMITS`): such rows are left out. Both constants
minimise the mean absolute log error of all others of a part: 2, 4 and 8 ranks, 256 B to 4 MiB. Low and high of the
latency are the 5th and 95th percentile of the times of messages of at most 32 KiB, those of the efficiency what single
messages of 1 MiB and more ask for. The split: both constants are fitted again to 2 and 8 ranks and scored on 4.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import sympy
from rows import read

from symperf.formulas.collectives import peer_all_reduce_time
from symperf.formulas.language import symbols as sym
from symperf.formulas.language.atoms import Atom

if TYPE_CHECKING:
    from collections.abc import Callable

LINKS = {"A100-80GB-SXM4": 300e9, "H100-80GB-SXM5": 450e9, "H200-SXM5": 450e9, "B200-SXM": 900e9, "B300-SXM": 900e9}
"""Bandwidth of a device's scale-up links, one way."""


LIMITS = {
    "H100-80GB-SXM5": {8: 2**18},
    "H200-SXM5": {8: 2**18},
    "B200-SXM": {2: 2**21, 4: 2**21, 8: 2**20},
    "B300-SXM": {2: 2**22, 4: 2**22, 8: 2**22},
}
"""Bytes from which vLLM uses symmetric memory, by part and ranks: vllm/distributed/device_communicators,
all_reduce_utils.py (SYMM_MEM_ALL_REDUCE_MAX_SIZES, CUSTOM_ALL_REDUCE_MAX_SIZES)."""
OWN_LIMIT = 2**23
"""Bytes from which vLLM's own kernel is not used at all: custom_all_reduce.py, max_size."""


@cache
def compiled() -> Callable[..., np.ndarray]:
    """The package's formula as a function of arrays."""
    n, q = sympy.symbols("n q", positive=True)
    form = peer_all_reduce_time(n, q)
    plain = form.replace(lambda node: isinstance(node, Atom), lambda node: node.definition())
    arguments = (n, q, sym.scale_up_bandwidth, sym.peer_latency, sym.peer_efficiency)
    function: Callable[..., np.ndarray] = sympy.lambdify(arguments, plain, "numpy", cse=True)
    return function


def times(part: str) -> np.ndarray:
    """Bytes, ranks and seconds of the rows of a part that are of the kernel itself."""
    found = [
        (float(r["message_bytes"]), float(r["num_devices"]), float(r["time_us"]) * 1e-6)
        for r in read("peer.csv")
        if r["hw_key"] == part
        if float(r["message_bytes"]) < LIMITS.get(part, {}).get(int(r["num_devices"]), OWN_LIMIT)
    ]
    return np.array(found).T


def predicted(part: str, rows: np.ndarray, latency: float, efficiency: float) -> np.ndarray:
    """Seconds of the rows."""
    full = np.ones(rows.shape[1])
    return compiled()(rows[0], rows[1], LINKS[part] * full, latency * full, efficiency * full)


def error(part: str, rows: np.ndarray, latency: float, efficiency: float) -> float:
    """Mean absolute log error."""
    return float(np.abs(np.log(predicted(part, rows, latency, efficiency) / rows[2])).mean())


def fit(part: str, rows: np.ndarray) -> tuple[float, float]:
    """Latency and efficiency of the least error: a coarse grid, then a fine one around its best."""
    latencies, efficiencies = np.geomspace(1e-6, 20e-6, 40), np.geomspace(0.1, 1, 40)
    for width in (1.1, 1.01):
        grid = ((x, y) for x in latencies for y in efficiencies)
        latency, efficiency = min(grid, key=lambda at: error(part, rows, *at))
        near = np.geomspace(1 / width, width, 25)
        latencies, efficiencies = latency * near, np.minimum(efficiency * near, 1)
    grid = ((x, y) for x in latencies for y in efficiencies)
    latency, efficiency = min(grid, key=lambda at: error(part, rows, *at))
    return float(latency), float(efficiency)


def asked(part: str, rows: np.ndarray, latency: float) -> np.ndarray:
    """The efficiency that makes the formula right for each message of 1 MiB and more: by bisection."""
    found = []
    for row in rows[:, rows[0] >= 2**20].T:
        low, high = 0.01, 1.0
        for _ in range(40):
            middle = float(np.sqrt(low * high))
            slow = predicted(part, row[:, None], latency, middle)[0] > row[2]
            low, high = (middle, high) if slow else (low, middle)
        found.append(low)
    return np.array(found)


def held_out(part: str) -> float:
    """Mean absolute log error on 4 ranks of constants fitted to 2 and 8."""
    rows = times(part)
    four = rows[1] == 4
    return error(part, rows[:, four], *fit(part, rows[:, ~four]))


def main() -> None:
    for part in LINKS:
        rows = times(part)
        latency, efficiency = fit(part, rows)
        small = np.percentile(rows[2, rows[0] <= 2**15], [5, 95]) * 1e6
        large = np.percentile(asked(part, rows, latency), [5, 95])
        print(
            f"{part}: peer_latency {latency * 1e6:.2f} us ({small[0]:.2f} to {small[1]:.2f}), peer_efficiency "
            f"{efficiency:.3f} ({large[0]:.3f} to {large[1]:.3f}); error {error(part, rows, latency, efficiency):.1%} "
            f"({rows.shape[1]} rows); fitted to 2 and 8 ranks, on 4: {held_out(part):.1%}"
        )


if __name__ == "__main__":
    main()
