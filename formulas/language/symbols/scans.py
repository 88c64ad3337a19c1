"""Symbols of measured scans of recurrent layers."""

from __future__ import annotations

from ..dimension import SECOND
from .entry import POSITIVE, ZERO_UP, add

scan_latency = add(
    "efficiency",
    "scan_latency",
    r"\lambda_{sc}",
    "Time that the kernels of a software's chunked scan take together beside what they move.",
    SECOND,
    ZERO_UP,
    "launch",
)
chunk_latency = add(
    "efficiency",
    "chunk_latency",
    r"\lambda_{ck}",
    "Time that a software's chunked scan takes at least for each chunk of a sequence, whose states follow each other.",
    SECOND,
    ZERO_UP,
    "launch",
)
scan_passes = add(
    "efficiency",
    "scan_passes",
    r"\rho_{sc}",
    "Bytes that a software's chunked scan takes the time of, over those of the kernels of its closed form.",
    domain=POSITIVE,
)
