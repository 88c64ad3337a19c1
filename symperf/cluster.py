"""The chunks of a sweep computed by an existing Dask cluster; this process writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import uuid4

from .errors import InputError, shown
from .extras import needed
from .stream import chunk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from .sweep import Sweep

AHEAD = 4
"""Chunks for each worker thread that are asked for before the first comes back: memory holds no more."""
TIMEOUT_S = 10
_known: dict[str, Sweep] = {}


def on_cluster(address: str) -> Callable[[Sweep, tuple[int, ...], Iterable[int]], Iterator[tuple[int, bytes]]]:
    """Computes chunks on the cluster of a scheduler, such as `tcp://10.0.0.1:8786`.

    A chunk whose worker dies is computed by another.

    Raises:
        InputError: Dask is not installed, or no scheduler answers.
    """
    distributed = needed("distributed", "dask", "--dask")
    try:
        client = distributed.Client(address, timeout=TIMEOUT_S, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise InputError(
            f"--dask: no scheduler at {shown(address)}, expected an address such as tcp://10.0.0.1:8786 "
            f"({type(error).__name__})"
        ) from None

    def compute(sweep: Sweep, shape: tuple[int, ...], indices: Iterable[int]) -> Iterator[tuple[int, bytes]]:
        lost = (OSError, distributed.CancelledError, distributed.scheduler.KilledWorker)
        with client:
            try:
                yield from _ordered(distributed, client, sweep, shape, iter(indices))
            except lost as error:
                raise InputError(f"--dask: the cluster was lost ({type(error).__name__}); --resume goes on") from None

    return compute


def _ordered(
    distributed: Any, client: Any, sweep: Sweep, shape: tuple[int, ...], indices: Iterator[int]
) -> Iterator[tuple[int, bytes]]:
    token = uuid4().hex
    waiting = distributed.as_completed(loop=client.loop)

    def ask() -> None:
        index = next(indices, None)
        if index is not None:
            waiting.add(client.submit(_remote, token, sweep, shape, index, key=f"chunk-{token}-{index}", retries=3))

    for _ in range(AHEAD * max(1, sum(client.nthreads().values()))):
        ask()
    for future in waiting:
        index, data = future.result()
        yield index, data
        future.release()
        ask()


def _remote(token: str, sweep: Sweep, shape: tuple[int, ...], index: int) -> tuple[int, bytes]:
    """Runs on a worker, which keeps the cells of a sweep from chunk to chunk."""
    if token not in _known:
        _known.clear()
        _known[token] = sweep
    return index, chunk(_known[token], shape, index)
