"""The chunks of a sweep computed by an existing Dask cluster; this process writes them."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from .errors import InputError, shown
from .extras import needed
from .identity import PACKAGES, sources
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

    A chunk whose worker dies is computed by another. Workers must have the same symperf, SymPy, NumPy and Numba: when
    chunks are computed, one that has not raises an `InputError`.

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
    _check_workers(client)
    token, mine = uuid4().hex, software()
    # As bytes, since a worker on which an argument cannot be read never answers.
    data = needed("distributed.protocol.pickle", "dask", "--dask").dumps(sweep)
    waiting = distributed.as_completed(loop=client.loop)

    def ask() -> None:
        index = next(indices, None)
        if index is not None:
            key = f"chunk-{token}-{index}"
            waiting.add(client.submit(_remote, token, mine, data, shape, index, key=key, retries=3))

    for _ in range(AHEAD * max(1, sum(client.nthreads().values()))):
        ask()
    for future in waiting:
        index, computed = future.result()
        yield index, computed
        future.release()
        ask()


def _check_workers(client: Any) -> None:
    """Refuse workers without this very symperf: their numbers could differ."""

    def found() -> dict[str, str]:  # sent by value: a worker need not have this module
        try:
            from symperf.cluster import software
        except ImportError:
            return {}
        return software()

    for worker, theirs in client.run(found).items():
        _refuse_another(theirs, software(), str(worker))


def software() -> dict[str, str]:
    """What numbers depend on, and which it is here."""
    return {"symperf": sources(), **{label: version(name) for label, name in PACKAGES.items()}}


def _refuse_another(theirs: dict[str, str], mine: dict[str, str], worker: str) -> None:
    for label, expected in mine.items():
        if theirs.get(label) != expected:
            which = "another" if label in theirs else "no"
            raise InputError(f"--dask: {worker} has {which} {label}, expected the same everywhere")


def _remote(token: str, expected: dict[str, str], data: bytes, shape: tuple[int, ...], index: int) -> tuple[int, bytes]:
    """Runs on a worker, which keeps the cells of a sweep from chunk to chunk."""
    if token not in _known:
        _refuse_another(software(), expected, "a worker")
        _known.clear()
        _known[token] = needed("distributed.protocol.pickle", "dask", "--dask").loads(data)
    return index, chunk(_known[token], shape, index)
