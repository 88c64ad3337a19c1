"""What bytes that lie in the L2 cache take of the time that they take from memory, from repeated steps of delta rules.

    python benchmarks/calibration/caches.py           # prints
    python benchmarks/calibration/caches.py --write   # and writes symperf/catalogue/kernels/caches.toml

For each device and kernel the time of a step is a start and its bytes at a rate, and of all whose states fit three
quarters of the cache the same part of it. Rows that are kept back are not read.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import least_squares

from symperf.validation.kernels.caches import CACHES, FULL, load
from symperf.validation.kernels.forms import predict, values_on
from symperf.validation.kernels.operations import OPERATIONS
from symperf.validation.kernels.rows import Table

if TYPE_CHECKING:
    from symperf.validation.kernels.rows import Part

KERNELS = Path(__file__).parent / "kernels"
TABLES = ("gdn", "kda")
CAPACITIES = {
    "a100_sxm": (40, "A100 data sheet: 40 MB"),
    "h100_sxm": (50, "H100 white paper: 50 MB"),
    "h200_sxm": (50, "as H100"),
    "b200_sxm": (126, "126 MB: cudaDeviceProp.l2CacheSize of B200"),
    "b300_sxm": (126, "as B200"),
    "gb200": (126, "as B200"),
    "gb300": (126, "as B200"),
    "l40s": (96, "L40S data sheet (AD102): 96 MB"),
    "rtx_pro_6000_server": (128, "RTX PRO 6000 Blackwell white paper (GB202): 128 MB"),
}
"""MiB of the cache of each device."""


def steps() -> dict[str, list[Part]]:
    """The parts of the tables that are steps, by device."""
    found: dict[str, list[Part]] = {}
    for name in TABLES:
        for part in Table(KERNELS / f"{name}.parquet", name, OPERATIONS[name]).parts():
            if part.sort.form.paths == ("state_update",):
                found.setdefault(part.group.device, []).append(part)
    return found


def share(device: str, parts: list[Part]) -> float:
    """The part of the time from memory that bytes in the cache take."""
    kernels = sorted({(part.group.software, part.group.operation) for part in parts})
    rows: list[tuple[int, Any, Any, Any]] = []
    for part in parts:
        sizes = {name: each for name, each in part.sizes.items() if name != "memory_bandwidth"}
        moved = predict(part.sort.form, part.sort.setting, sizes, part.rows.size)["bytes"]
        values = values_on(part.sort.setting.equipped, part.sort.form, part.sort.setting)
        columns = part.rows.numbers
        states = columns["batch_size"] * columns["num_v_heads"] * columns["head_k_dim"] * columns["head_v_dim"] * 4
        states = states * columns["seq_len"]
        near = states <= FULL * CAPACITIES[device][0] * 2**20
        place = kernels.index((part.group.software, part.group.operation))
        kept = ~part.test
        rate = values["memory_bandwidth"] * values["memory_efficiency"]
        rows.append((place, part.seconds[kept], moved[kept] / rate, near[kept]))

    def away(x: Any) -> Any:
        return np.concatenate(
            [
                np.log((np.exp(x[2 * k]) + np.exp(x[2 * k + 1]) * moved * np.where(near, np.exp(x[-1]), 1)) / seconds)
                for k, seconds, moved, near in rows
            ]
        )

    start = [np.log(3e-6), 0.0] * len(kernels) + [-0.5]
    return float(np.exp(least_squares(away, start, loss="soft_l1", f_scale=0.1).x[-1]))


def main() -> None:
    """Fit, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write the catalogue")
    options = parser.parse_args()
    head = [line for line in CACHES.read_text(encoding="utf-8").splitlines() if line.startswith("#")]
    lines = ["\n".join(head)]
    for device, parts in steps().items():
        found = share(device, parts)
        mib, source = CAPACITIES[device]
        count = sum(int((~part.test).sum()) for part in parts)
        lines.append(
            f'[{device}]\ncapacity = "{mib} MiB"\nshare = {found:.3g}\n'
            f'source = "{source}; share fitted to {count:,} calibration rows of {" and ".join(TABLES)}"'
        )
        print(device, f"{found:.3g}")
    if options.write:
        CACHES.write_text("\n\n".join(lines) + "\n", encoding="utf-8")
        load.cache_clear()


if __name__ == "__main__":
    main()
