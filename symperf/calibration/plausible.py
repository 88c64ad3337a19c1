"""Rows that cannot be: faster than the device, far slower than its kernels, or at odds with one another."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..common.errors import InputError
from ..systems.units import BANDWIDTH, RATE, spell

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..systems.system import System
    from .forms import RowFamily
    from .table import MeasuredRow

ABOVE_PEAK = 1.3
"""A row may exceed a peak by so much: clocks and bandwidths of single devices differ from the data sheet's."""
SLOW = 30.0
"""Times the predicted time: such rows are left out."""
APART = 3.0
NEAR = 6.0
SOME, MOST = 0.1, 0.5
"""Parts of a sort of rows that may be slow: if another unit explains the sort, and in any case."""
TIMES = {"step": "step_time_s", "latency": "value"}
"""The column of the time in tables of whole runs."""
SCALES = {
    "seconds": ((1e3, "milliseconds"), (1e6, "microseconds"), (1e9, "nanoseconds")),
    "bytes": ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")),
}


def check_repeated(rows: Sequence[MeasuredRow], label: str) -> None:
    """Refuse two rows of the same measurement whose times are far apart.

    Raises:
        InputError: it names both lines.
    """
    first: dict[tuple[object, ...], tuple[MeasuredRow, MeasuredRow]] = {}
    for row in rows:
        low, high = first.get(row.identity(), (row, row))
        low, high = min(low, row, key=_seconds), max(high, row, key=_seconds)
        if high.seconds > APART * low.seconds:
            one, other = sorted((low, high), key=lambda found: found.line)
            raise InputError(
                f"{label}: lines {one.line} and {other.line}: the same {row.kind} took {one.seconds:.4g} s and "
                f"{other.seconds:.4g} s, expected times within a factor of {APART:g}"
            )
        first[row.identity()] = (low, high)


def _seconds(row: MeasuredRow) -> float:
    return row.seconds


def check_peaks(families: Sequence[RowFamily], system: System, label: str) -> None:
    """Refuse rows that are faster than the device can be.

    Raises:
        InputError: it names the first line and what the peak is.
    """
    for family in families:
        for row in family.rows:
            for amount, peak, dimension, what in _demands(row, family, system):
                rate = amount / row.seconds
                if rate > ABOVE_PEAK * peak:
                    raise InputError(
                        f"{label}: line {row.line}: {row.kind} in {row.seconds:.4g} s is {spell(rate, dimension)}, "
                        f"but the {what} of {system.name} is {spell(peak, dimension)}: "
                        f"is it of this system, and are seconds in seconds and of one call?"
                    )


def _demands(row: MeasuredRow, family: RowFamily, system: System) -> list[tuple[float, float, Any, str]]:
    counts = row.counts
    rate = family.fixed.get("matrix_rate", math.inf)
    if row.kind in ("gemm", "power"):
        return [(2.0 * counts["m"] * counts["n"] * counts["k"], rate, RATE, f"{family.form.dtype} peak")]
    if row.kind == "attention":
        tokens = counts["sequence"] * counts.get("context", counts["sequence"])
        half = 1.0 if row.name == "decode" else 0.5
        work = 4.0 * counts["batch"] * counts["heads"] * counts["head_dim"] * tokens * half
        return [(work * (2.5 if row.name == "backward" else 1.0), rate, RATE, f"{family.form.dtype} peak")]
    if row.kind == "collective":
        ranks = counts["ranks"]
        inside = ranks <= system.value("scale_up_size")
        if counts["bytes"] < 1e6 or not inside:
            return []
        return [(counts["bytes"] * (ranks - 1) / ranks, system.value("scale_up_bandwidth"), BANDWIDTH, "scale-up link")]
    if row.kind in ("copy", "elementwise"):
        peak = system.value("memory_bandwidth")
        l2 = system.quantities.get("l2_bandwidth")
        cached = system.quantities.get("l2_capacity")
        if l2 and (cached is None or counts["bytes"] <= 4 * cached.value):
            return [(float(counts["bytes"]), max(peak, l2.value), BANDWIDTH, "L2 bandwidth")]
        return [(float(counts["bytes"]), peak, BANDWIDTH, "memory bandwidth")]
    return []


def slow_rows(families: Sequence[RowFamily], values: dict[str, float], label: str) -> list[MeasuredRow]:
    """Rows that took far longer than predicted, to be left out.

    Raises:
        InputError: most rows of one sort are such, or another unit of a column explains all of that sort.
    """
    found = []
    for family in families:
        ratio = family.seconds / family.predict(values)
        slow = ratio > SLOW
        unit = _explain(family, values) if slow.mean() > SOME else ""
        if unit or slow.mean() > MOST:
            at = int(np.flatnonzero(slow)[0])
            row = family.rows[at]
            raise InputError(
                f"{label}: line {row.line}: {row.kind} took {row.seconds:.4g} s, about {ratio[at]:.3g} times the "
                f"{row.seconds / ratio[at]:.3g} s expected"
                f"{unit or ', and so did most rows of its sort: is it of this system?'}"
            )
        found += [row for row, at in zip(family.rows, slow, strict=True) if at]
    return found


def _explain(family: RowFamily, values: dict[str, float]) -> str:
    """The end of the line: the unit under which the rows of a family would be as expected, if there is one."""
    best, text = math.log(NEAR), ""
    expected = family.predict(values)
    for column, scales in SCALES.items():
        for factor, unit in scales:
            if column == "seconds":
                ratio = family.seconds / factor / expected
            elif f"row/{column}" in family.program.inputs:
                sizes = {**family.sizes, "row/bytes": family.sizes["row/bytes"] * factor}
                ratio = family.seconds / replace(family, sizes=sizes).predict(values)
            else:
                continue
            off = abs(float(np.median(np.log(ratio))))
            if off < best:
                si = "seconds" if column == "seconds" else "bytes"
                told = TIMES.get(family.form.kind, column)
                best, text = off, f": is column {told} in {unit} rather than {si}?"
    return text
