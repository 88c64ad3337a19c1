"""What the formulas of a page predict beside what was measured: errors by device, and a few kernels one by one.

`catalogue/kernels/scores.csv` and `examples.csv` hold them, printed by `benchmarks/calibration/kernel_scores.py` from
shapes that no constant was fitted to.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

CATALOGUE: Final = Path(__file__).parent.parent / "catalogue" / "kernels"
SCORES: Final = ("kernels", "device", "rows", "median", "mean", "bias")
EXAMPLES: Final = ("kernels", "device", "software", "shape", "measured", "predicted")


@dataclass(frozen=True)
class Measured:
    """The tables of one page, each row of texts under the heads `SCORES` or `EXAMPLES`."""

    scores: tuple[tuple[str, ...], ...]
    examples: tuple[tuple[str, ...], ...]


def measured(page: str) -> Measured:
    """What was measured of the kernels of a page, by its module's name; empty tables where nothing was."""
    return Measured(_rows("scores.csv", SCORES).get(page, ()), _rows("examples.csv", EXAMPLES).get(page, ()))


@cache
def _rows(name: str, heads: tuple[str, ...]) -> dict[str, tuple[tuple[str, ...], ...]]:
    found: dict[str, tuple[tuple[str, ...], ...]] = {}
    path = CATALOGUE / name
    if not path.is_file():
        return found
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            found[row["page"]] = (*found.get(row["page"], ()), tuple(row[head] for head in heads))
    return found
