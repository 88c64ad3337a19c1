"""Work that an existing Dask cluster computes piece by piece."""

from __future__ import annotations

from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from .errors import InputError, quote
from .extras import import_extra
from .fingerprint import PACKAGES, sources
from .system_errors import one_line

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


@dataclass(frozen=True)
class Scheduler:
    """Where a scheduler is, and the files by which both sides know each other.

    Attributes:
        address: such as `tls://10.0.0.1:8786`.
        tls: of a certificate authority, of a certificate that it signed, and of its key.
    """

    address: str
    tls: tuple[str, str, str]

    @classmethod
    def parse(cls, address: str | None, files: str | None) -> Scheduler | str | None:
        """What `--dask ADDRESS` and `--dask-tls CA,CERT,KEY` say.

        Raises:
            InputError: not three files that are there, no address, or one without encryption.
        """
        if files is None:
            return address
        found = [part.strip() for part in files.split(",")]
        if len(found) != len(("CA", "CERT", "KEY")):
            raise InputError(f"--dask-tls: found {quote(files)}, expected three files: CA,CERT,KEY")
        if address is None or not address.startswith("tls://"):
            raise InputError(
                f"--dask-tls: found --dask {quote(address)}, expected an address such as tls://10.0.0.1:8786"
            )
        for file in found:
            with one_line(f"--dask-tls: {quote(file)}"):
                if not Path(file).is_file():
                    raise InputError(f"--dask-tls: {quote(file)}: no such file")
        return cls(address, (found[0], found[1], found[2]))


class Cluster:
    """A Dask cluster; a context that closes the connection to it.

    A piece whose worker dies is computed by another. Workers must have the same symperf, SymPy, NumPy and Numba: when
    pieces are computed, one that has not raises an `InputError`.

    Both sides run what the other sends: an address is trusted as code is, and without `Scheduler.tls` whoever answers
    there, or listens between, is too.

    Args:
        address: of the scheduler, such as `tcp://10.0.0.1:8786`, with or without the files of TLS.

    Raises:
        InputError: Dask is not installed, or no scheduler answers.
    """

    def __init__(self, address: str | Scheduler) -> None:
        address, tls = (address.address, address.tls) if isinstance(address, Scheduler) else (address, None)
        if not isinstance(address, str):
            raise InputError(f"--dask: found {quote(address)}, expected an address such as tcp://10.0.0.1:8786")
        self._distributed = import_extra("distributed", "dask", "--dask")
        found = _connect(self._distributed, address, tls)
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


def _connect(distributed: Any, address: str, tls: tuple[str, str, str] | None) -> Any:
    """A client of a scheduler, or the name of what went wrong: protocols that need keys or packages raise all kinds.

    A thread waits for the answer, so that an interrupt need not. A client that failed, or that nobody waits for any
    more, is closed here: left to garbage collection it would close itself in the middle of anything, and where that is
    the start of the next client, both wait for one lock for ever.
    """
    answer: Future[Any] = Future()

    def connect() -> None:
        client = distributed.Client.__new__(distributed.Client)  # at hand also when its construction fails
        try:
            client.__init__(address, timeout=TIMEOUT_S, set_as_default=False, **_security(distributed, tls))
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


def _security(distributed: Any, tls: tuple[str, str, str] | None) -> dict[str, Any]:
    """Arguments of a client that speaks to those alone whom the authority has signed."""
    if tls is None:
        return {}
    names = ("tls_ca_file", "tls_client_cert", "tls_client_key")
    return {"security": distributed.Security(require_encryption=True, **dict(zip(names, tls, strict=True)))}


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
