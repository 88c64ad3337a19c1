"""Work that an existing Dask cluster computes piece by piece."""

from __future__ import annotations

from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from importlib.metadata import version
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from .errors import InputError, quote
from .extras import import_extra
from .fingerprint import PACKAGES, sources

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


AHEAD = 4
"""Pieces for each worker thread that are asked for before the first comes back: memory holds no more."""
TIMEOUT_S = 10
"""What Dask may take to reach a scheduler."""
PATIENCE = 3
"""How many times that is waited for an answer, since not all of its ways to fail look at the time."""
_known: dict[str, Any] = {}
_loading = Lock()


class Cluster:
    """A Dask cluster; a context that closes the connection to it.

    A piece whose worker dies is computed by another. Workers must have the same symperf, SymPy, NumPy and Numba: when
    pieces are computed, one that has not raises an `InputError`.

    Args:
        address: of the scheduler, such as `tcp://10.0.0.1:8786`.

    Raises:
        InputError: Dask is not installed, or no scheduler answers.
    """

    def __init__(self, address: str) -> None:
        if not isinstance(address, str):
            raise InputError(f"--dask: found {quote(address)}, expected an address such as tcp://10.0.0.1:8786")
        self._distributed = import_extra("distributed", "dask", "--dask")
        found = _connect(self._distributed, address)
        if isinstance(found, str):
            raise InputError(
                f"--dask: no scheduler at {quote(address)}, expected an address such as tcp://10.0.0.1:8786 ({found})"
            )
        self._client = found

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def each(
        self, function: Callable[[Any, Any], Any], shared: Any, items: Iterable[Any], *, again: str = ""
    ) -> Iterator[Any]:
        """What a function makes of every item, in the order in which they come back.

        Args:
            function: of `shared` and an item; workers import it.
            shared: sent to the workers, which keep it as long as they are asked nothing else.
            items: sent one by one.
            again: what the line says that tells of a lost cluster.

        Raises:
            InputError: a worker has another symperf; the cluster was lost.
        """
        lost = (OSError, self._distributed.CancelledError, self._distributed.scheduler.KilledWorker)
        try:
            yield from self._each(function, shared, iter(items))
        except lost as error:
            raise InputError(f"--dask: the cluster was lost ({type(error).__name__}){again}") from None

    def _each(self, function: Callable[[Any, Any], Any], shared: Any, items: Iterator[Any]) -> Iterator[Any]:
        client = self._client
        _check_workers(client)
        token, mine = uuid4().hex, software()
        # As bytes, since a worker on which an argument cannot be read never answers.
        data = import_extra("distributed.protocol.pickle", "dask", "--dask").dumps(shared)
        waiting = self._distributed.as_completed(loop=client.loop)
        pending = set()

        def ask() -> None:
            for item in items:
                key = f"piece-{token}-{uuid4().hex}"
                future = client.submit(_remote, token, mine, data, function, item, key=key, retries=3)
                pending.add(future)
                waiting.add(future)
                return

        for _ in range(AHEAD * max(1, sum(client.nthreads().values()))):
            ask()
        try:
            for future in waiting:
                pending.discard(future)
                yield future.result()
                future.release()
                ask()
        finally:
            client.cancel(list(pending))


def _connect(distributed: Any, address: str) -> Any:
    """A client of a scheduler, or the name of what went wrong: protocols that need keys or packages raise all kinds.

    A thread waits for the answer, so that an interrupt need not. A client that failed, or that nobody waits for any
    more, is closed here: left to garbage collection it would close itself in the middle of anything, and where that is
    the start of the next client, both wait for one lock for ever.
    """
    answer: Future[Any] = Future()

    def connect() -> None:
        client = distributed.Client.__new__(distributed.Client)  # at hand also when its construction fails
        try:
            client.__init__(address, timeout=TIMEOUT_S, set_as_default=False)
            answer.set_result(client)
        except Exception as error:
            with suppress(Exception):
                client.close()
            with suppress(InvalidStateError):
                answer.set_result(type(error).__name__)

    Thread(target=connect, daemon=True).start()
    try:
        return answer.result(PATIENCE * TIMEOUT_S)
    except TimeoutError as error:
        return type(error).__name__
    finally:
        answer.cancel()


def _check_workers(client: Any) -> None:
    """Refuse workers without this very symperf: their numbers could differ."""

    def found() -> dict[str, str]:  # sent by value: a worker need not have this module
        try:
            from .cluster import software
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


def _remote(token: str, expected: dict[str, str], data: bytes, function: Callable[[Any, Any], Any], item: Any) -> Any:
    """Runs on a worker, which keeps what is shared from piece to piece."""
    with _loading:
        shared = _known.get(token)
        if shared is None:
            _refuse_another(software(), expected, "a worker")
            _known.clear()
            shared = _known[token] = import_extra("distributed.protocol.pickle", "dask", "--dask").loads(data)
    return function(shared, item)
