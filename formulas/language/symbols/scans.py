"""Symbols of measured scans of recurrent layers."""

from __future__ import annotations

from ..dimension import SECOND
from .entry import POSITIVE, SYMBOLS, ZERO_UP, add

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
ssd_passes = add(
    "efficiency",
    "ssd_passes",
    r"\rho_{ssd}",
    "Bytes that the kernels of Mamba-2's scan take the time of, over those that they read and write.",
    domain=POSITIVE,
)
update_latency = add(
    "efficiency",
    "update_latency",
    r"\lambda_{ud}",
    "Time of a kernel that moves states on by a few tokens, beside what it moves.",
    SECOND,
    ZERO_UP,
    "launch",
)
update_passes = add(
    "efficiency",
    "update_passes",
    r"\rho_{ud}",
    "Bytes that an update of states takes the time of, over those of its closed form.",
    domain=POSITIVE,
)
convolution_latency = add(
    "efficiency",
    "convolution_latency",
    r"\lambda_{cv}",
    "Time of a convolution over whole sequences, beside what it moves.",
    SECOND,
    ZERO_UP,
    "launch",
)
convolution_passes = add(
    "efficiency",
    "convolution_passes",
    r"\rho_{cv}",
    "Bytes that a convolution takes the time of, over those of its closed form.",
    domain=POSITIVE,
)
convolution_efficiency = add(
    "efficiency",
    "convolution_efficiency",
    r"\eta_{cv}",
    "Part of the vector units' peak that the products of a convolution reach.",
    domain=POSITIVE,
)
sequence_latency = add(
    "efficiency",
    "sequence_latency",
    r"\lambda_{sq}",
    "Time that a convolution takes at least for each sequence and channel.",
    SECOND,
    ZERO_UP,
    "launch",
)
window_latency = add(
    "efficiency",
    "window_latency",
    r"\lambda_{cw}",
    "Time of a convolution of a few tokens with a kept window, beside what it moves.",
    SECOND,
    ZERO_UP,
    "launch",
)
window_passes = add(
    "efficiency",
    "window_passes",
    r"\rho_{cw}",
    "Bytes that a convolution of a few tokens takes the time of, over its closed form.",
    domain=POSITIVE,
)
window_efficiency = add(
    "efficiency",
    "window_efficiency",
    r"\eta_{cw}",
    "Part of the vector units' peak that a convolution of a few tokens reaches.",
    domain=POSITIVE,
)
channel_scan_efficiency = add(
    "efficiency",
    "channel_scan_efficiency",
    r"\eta_{k}",
    "Part of the matrix peak that the products of Kimi Delta Attention reach in a software's chunked scan.",
    domain=POSITIVE,
)

CHANNEL = (
    *("scan_latency", "chunk_latency", "scan_passes", "update_latency", "update_passes", "convolution_latency"),
    *("convolution_passes", "convolution_efficiency", "sequence_latency", "window_latency", "window_passes"),
    "window_efficiency",
)
"""Constants of which the kernels of Kimi Delta Attention have their own, named `channel_` before."""
for _name in CHANNEL:
    _entry = SYMBOLS[_name]
    add(
        "efficiency",
        f"channel_{_name}",
        _entry.glyph.replace("_{", "_{k,"),
        f"Of Kimi Delta Attention: {_entry.sentence[0].lower()}{_entry.sentence[1:]}",
        _entry.dimension,
        _entry.domain,
        _entry.resource,
    )
