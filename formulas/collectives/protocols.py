"""Two ways of moving a collective's bytes, which libraries choose between by size: whole buffers, or flagged words.

The plain ("Simple") protocol of NCCL fills buffers and synchronises once for each: full bandwidth after a start-up.
The low-latency one ("LL") sends a flag of 4 bytes with every 4 bytes of data, so that no one waits for a fence: twice
the bytes, no start-up but the hops (Jeaugey 2020; Hu et al. 2025). Every collective here takes the better of both.
"""

from __future__ import annotations

from typing import Any

from ..language.atoms import Max, Min


def simple_time(started: Any, moved: Any, hops: Any) -> Any:
    """Time of the plain protocol: the greater of the transfer with its start-up and the transfer with its hops.

    Args:
        started: time to move the bytes and `half_bytes` more, which stand for filling the buffers.
        moved: time to move the bytes alone.
        hops: time for one word to reach the last rank, which passes while buffers fill.

    """
    return Max(started, moved + hops)


def low_latency_time(moved: Any, hops: Any) -> Any:
    """Time of the low-latency protocol: twice the bytes, half of them flags, and the hops."""
    return 2 * moved + hops


def better_protocol_time(started: Any, moved: Any, hops: Any) -> Any:
    """Time of the better protocol; arguments as of `simple_time`."""
    return Min(simple_time(started, moved, hops), low_latency_time(moved, hops))
