"""Rows of measurements made from known constants, with and without noise."""

from __future__ import annotations

import csv
import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

import symperf as sf
from symperf.calibration.forms import families
from symperf.calibration.table import read

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

Row = dict[str, Any]
TRUE = {
    "matrix_efficiency": 0.66,
    "fp8_efficiency": 0.58,
    "memory_efficiency": 0.88,
    "launch_latency": 3.5e-6,
    "attention_efficiency": 0.5,
    "attention_backward_efficiency": 0.4,
    "domain_efficiency": 0.9,
    "domain_latency": 6e-6,
    "domain_hop_latency": 1.5e-6,
    "domain_piece_latency": 15e-6,
}
"""Other than the values of h200-sxm by up to a factor of two."""


def write(path: Path, rows: Sequence[Row]) -> Path:
    """A CSV file of these rows."""
    columns = list(dict.fromkeys(itertools.chain.from_iterable(rows)))
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, restval="")
        writer.writeheader()
        writer.writerows(rows)
    return path


def shapes() -> list[Row]:
    """Products, copies, attention and collectives, without their times."""
    rows: list[Row] = [
        {"kind": "gemm", "dtype": dtype, "m": m, "n": n, "k": k}
        for dtype, rows_of in (("bf16", range(15)), ("fp8", range(13, 18)))
        for m in (2**power for power in rows_of)
        for n, k in ((4096, 4096), (6144, 4096), (8192, 8192), (28672, 8192))
    ]
    rows += [{"kind": "copy", "name": "copy", "bytes": 2**power} for power in range(17, 33)]
    rows += [
        {"kind": "attention", "name": way, "batch": 4, "sequence": s, "heads": heads, "kv_heads": 8, "head_dim": 128}
        for way in ("forward", "backward")
        for s in (512, 1024, 2048, 4096, 8192)
        for heads in (16, 32, 64, 128)
    ]
    rows += [
        {"kind": "collective", "name": name, "ranks": ranks, "bytes": round(2 ** (power / 2))}
        for name in ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")
        for ranks in (2, 4, 8)
        for power in range(24, 61)
    ]
    return rows


def timed(
    folder: Path,
    rows: Sequence[Row],
    true: Mapping[str, float],
    *,
    noise: float = 0.0,
    system: str | sf.System = "h200-sxm",
) -> list[Row]:
    """The rows with the times that a system of these constants has, each off by a normal part of its logarithm."""
    random = np.random.default_rng(7)
    loaded = system if isinstance(system, sf.System) else sf.System.load(system)
    table = read(write(folder / "untimed.csv", [row | {"seconds": 1.0} for row in rows]))
    values = {name: quantity.value for name, quantity in loaded.quantities.items()} | dict(true)
    seconds = {
        row.line: time
        for family in families(table.rows, loaded)[0]
        for row, time in zip(family.rows, family.predict(values), strict=True)
    }
    scatter = random.lognormal(0.0, noise, len(rows)) if noise else np.ones(len(rows))
    return [row | {"seconds": float(seconds[line] * scatter[line - 2])} for line, row in enumerate(rows, 2)]
