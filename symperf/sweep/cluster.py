"""The chunks of a sweep computed by a Dask cluster; this process writes them."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..common.cluster import Cluster, Scheduler
from .stream import chunk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from .sweep import Sweep

    Compute = Callable[[Sweep, tuple[int, ...], Iterable[int]], Iterator[tuple[int, bytes]]]


@contextmanager
def on_cluster(address: str | Scheduler) -> Iterator[Compute]:
    """Computes chunks on the cluster of a scheduler, until the context ends.

    Raises:
        InputError: Dask is not installed, or no scheduler answers.
    """
    with Cluster(address) as cluster:

        def compute(sweep: Sweep, shape: tuple[int, ...], indices: Iterable[int]) -> Iterator[tuple[int, bytes]]:
            items = ((shape, index) for index in indices)
            return cluster.each(_chunk, sweep, items, again="; --resume goes on")

        yield compute


def _chunk(sweep: Sweep, item: tuple[tuple[int, ...], int]) -> tuple[int, bytes]:
    shape, index = item
    return index, chunk(sweep, shape, index)
