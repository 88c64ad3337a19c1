"""Bandwidth of device memory and of L2: copies, reads and triads of many sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .jobs import Job, scatter, turns

if TYPE_CHECKING:
    from collections.abc import Callable

    from .bench import Bench

SIZES = tuple(2**power for power in range(16, 33))
"""Bytes of each buffer, 64 KiB to 4 GiB."""
CACHED = tuple(2**power for power in range(19, 26))
BUFFERS = {"copy": 2, "read": 1, "triad": 3, "l2_copy": 2, "l2_read": 1}


def jobs() -> list[Job]:
    """Every size of each kernel; those whose name begins with l2 use the same buffers again and again."""
    found = [(name, size) for size in SIZES for name in ("copy", "read", "triad")]
    found += [(name, size) for size in CACHED for name in ("l2_copy", "l2_read")]
    return [_job(*pair) for pair in scatter(found)]


def _job(name: str, size: int) -> Job:
    row = {"kind": "copy", "name": name, "dtype": "fp32", "elements": size // 4, "bytes": size * BUFFERS[name]}
    if name.startswith("l2"):
        row["note"] = "the same buffers in every call: L2 may hold them"
    return Job(row, lambda bench: stream(bench, name, size))


def stream(bench: Bench, name: str, size: int) -> Callable[[int], Any]:
    """A copy, read or triad of buffers of `size` bytes; of l2 the same ones in every call."""
    torch = bench.torch
    count = BUFFERS[name]
    rotation = 1 if name.startswith("l2") else bench.rotation(count * size)
    bench.check_fits(count * size * rotation)
    numbers = torch.rand(count * rotation * (size // 4), dtype=torch.float32, device="cuda")
    parts = [numbers[at * (size // 4) : (at + 1) * (size // 4)] for at in range(count * rotation)]
    groups = [parts[at * count : (at + 1) * count] for at in range(rotation)]
    if name.endswith("copy"):
        return turns(lambda group: group[0].copy_(group[1]), groups)
    if name == "triad":
        return turns(lambda group: torch.add(group[1], group[2], alpha=0.5, out=group[0]), groups)
    total = torch.empty((), dtype=torch.float32, device="cuda")
    return turns(lambda group: torch.sum(group[0], dim=0, out=total), groups)
