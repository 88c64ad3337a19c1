"""Rows that no device can have measured, and rows of one kernel that disagree."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ...common.errors import InputError
from ...infer.formats import FORMATS, sixteen_bits
from .formats import PRECISIONS

if TYPE_CHECKING:
    from ...systems.system import System
    from .table import Batch

TOO_FAST: Final = 100.0
"""Times faster than every peak of the device from which on a time's unit is wrong."""
SHORTEST: Final = 1e-7
"""Seconds: no kernel starts and ends in less; a launch takes ten times that."""
BAND: Final = 1.2
"""Times apart from which on rows of the same kernel disagree."""
NO_TIME = "the time is zero, negative or no number"
NO_SIZE = "a size is zero, negative or no number"
IMPOSSIBLE = f"over {TOO_FAST:.0f} times faster than the device's peak, or shorter than 0.1 us"
DISAGREE = f"rows of the same kernel disagree by more than {BAND - 1:.0%}"


def bad_times(seconds: Any) -> Any:
    """Which times are none."""
    return ~(np.isfinite(seconds) & (seconds > 0))


def too_fast(seconds: Any, found: dict[str, Any], system: System, format_name: str) -> Any:
    """Which times are impossible: `found` are the FLOPs, bytes and messages of each row.

    The peak is that of the format, or the highest that the device has.
    """
    rates = system.matrix_rates
    precision = FORMATS.get(PRECISIONS.get(format_name, ""))
    name = "" if precision is None else precision.rate or sixteen_bits(system)
    rate = rates[name].value if name in rates else max(each.value for each in rates.values())
    least = np.maximum(found["flops"] / rate, found["bytes"] / system.value("memory_bandwidth"))
    if system.tiers:
        least = np.maximum(least, found["message"] / system.value("scale_up_bandwidth"))
    return (seconds < least / TOO_FAST) | (seconds < SHORTEST)


def check_unit(label: str, columns: tuple[str, ...], count: int, impossible: int) -> None:
    """Refuse a table of which most times are impossible: they are in another unit.

    Raises:
        InputError: that is so.
    """
    if 2 * impossible > count:
        unit = "microseconds" if columns[0].endswith("_us") else "milliseconds"
        raise InputError(
            f"{label}: {' + '.join(columns)}: found {impossible} of {count} times that are {IMPOSSIBLE}, "
            f"expected {unit} (are they in seconds?)"
        )


def fingerprints(batch: Batch, columns: tuple[str, ...]) -> Any:
    """A number of 64 bits for each row, equal where all columns are: of texts and numbers."""
    found = np.zeros(batch.size, dtype=np.uint64)
    with np.errstate(over="ignore"):
        for name in columns:
            if name in batch.texts:
                texts = batch.texts[name]
                known = np.array([zlib.crc32(text.encode()) for text in texts.known] or [0], dtype=np.uint64)
                column = known[texts.codes]
            else:
                column = np.nan_to_num(batch.numbers[name], nan=-1.0).view(np.uint64)
            found = (found ^ column) * np.uint64(0x9E3779B97F4A7C15)
            found ^= found >> np.uint64(29)
    return found


def disagreeing(keys: Any, seconds: Any) -> Any:
    """Which rows have the key of another row whose time is more than `BAND` apart."""
    if not len(keys):
        return np.zeros(0, dtype=bool)
    order = np.argsort(keys, kind="stable")
    starts = np.flatnonzero(np.r_[True, keys[order][1:] != keys[order][:-1]])
    lowest = np.minimum.reduceat(seconds[order], starts)
    highest = np.maximum.reduceat(seconds[order], starts)
    found = np.empty(len(keys), dtype=bool)
    found[order] = np.repeat(highest > BAND * lowest, np.diff(np.r_[starts, len(keys)]))
    return found
