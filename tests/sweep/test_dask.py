"""A study on a Dask cluster gives the same file, also when a worker dies in the middle."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import threading
import time
from typing import TYPE_CHECKING, Any

import distributed
import pytest

from symperf.common.errors import InputError
from symperf.models.model import Model
from symperf.sweep.axes import linear
from symperf.sweep.cells import Base
from symperf.sweep.stream import write
from symperf.sweep.sweep import Sweep
from symperf.systems.system import System

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


pytestmark = pytest.mark.filterwarnings("ignore")
POINTS = 500


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Two worker processes."""
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
    ) as found:
        yield found


def _sweep() -> Sweep:
    base = Base(Model.load("gpt3-175b"), System.load("a100-80gb-sxm"), {}, {"batch": 64, "sequence": 2048}, {})
    axes = {
        "tp": [1, 2, 4, 8],
        "pp": [1, 2, 4, 8],
        "recompute": ["none", "full"],
        "memory_bandwidth": linear(1e12, 8e12, 1000),
    }
    return Sweep(base, axes, where=["fits"])


def test_a_killed_worker_changes_nothing(cluster: Any, tmp_path: Path) -> None:
    """Its chunks are computed by another worker; the file is the one made without a cluster, byte for byte."""
    from symperf.sweep.cluster import on_cluster

    alone, spread = tmp_path / "alone.csv", tmp_path / "spread.csv"
    write(_sweep(), alone, chunk_points=POINTS)
    victim = next(iter(cluster.workers.values())).process.process.pid
    seen = []

    def progress(done: int, _: int) -> None:
        seen.append(done)
        if len(seen) == 10:
            os.kill(victim, signal.SIGKILL)

    with on_cluster(cluster.scheduler_address) as compute:
        outcome = write(_sweep(), spread, chunk_points=POINTS, compute=compute, progress=progress)
    assert outcome.whole
    assert outcome.computed == outcome.chunks == 64
    assert spread.read_bytes() == alone.read_bytes()
    assert not spread.with_name("spread.csv.partial").exists()


@pytest.mark.parametrize(("when", "changed"), [("at first", "symperf"), ("later", "symperf"), ("at first", "NumPy")])
def test_workers_with_another_symperf_are_refused(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str, changed: str
) -> None:
    """Their numbers could differ: one line, whether they are met before the first chunk or join later."""
    from symperf.common import cluster as module
    from symperf.sweep.cluster import on_cluster

    software = module.software()
    monkeypatch.setattr(module, "software", lambda: {**software, changed: "edited"})
    if when == "later":
        monkeypatch.setattr(module, "_check_workers", lambda _: None)
    with (
        on_cluster(cluster.scheduler_address) as compute,
        pytest.raises(InputError, match=rf"--dask: .* has another {changed}, expected the same everywhere"),
    ):
        write(_sweep(), tmp_path / "out.csv", compute=compute)


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "nowhere://x", ""])
def test_no_scheduler_is_one_line(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An address where nothing answers is told with an example of one."""
    from symperf.common import cluster as module

    monkeypatch.setattr(module, "TIMEOUT_S", 0.5)
    with pytest.raises(InputError, match=r"--dask: .*expected an address such as tcp://"):
        module.Cluster(address)


@pytest.mark.parametrize("failure", [TypeError, AssertionError, ImportError, RuntimeError, OSError])
def test_a_client_that_failed_is_closed_at_once(failure: type[Exception], monkeypatch: pytest.MonkeyPatch) -> None:
    """Garbage collection would close it in the middle of the start of the next one, which waits for the same lock."""
    from symperf.common import cluster as module

    kept = []

    async def start(self: Any, **_: Any) -> None:
        kept.append(self)
        self.status = "connecting"
        raise failure("no")

    monkeypatch.setattr(distributed.Client, "_start", start)
    monkeypatch.setattr(module, "PATIENCE", 1000)
    with pytest.raises(InputError, match=f"no scheduler at 'x://y'.*{failure.__name__}"):
        module.Cluster("x://y")
    (client,) = kept
    assert client.status == "closed"
    assert not client._loop_runner.is_started()


def test_no_garbage_closes_a_client(monkeypatch: pytest.MonkeyPatch) -> None:
    """Collected at the worst moment, while the start of another one holds Dask's lock."""
    from symperf.common import cluster as module

    true_start = distributed.utils.LoopRunner._start_unlocked

    def start(self: Any) -> None:
        gc.collect()
        true_start(self)

    monkeypatch.setattr(distributed.utils.LoopRunner, "_start_unlocked", start)
    monkeypatch.setattr(module, "PATIENCE", 1000)  # whoever waits for a lock waits for ever, at whatever pace
    for address in ("nowhere://x", "tls://127.0.0.1:1", "tcp://127.0.0.1:1", "nowhere://y"):
        monkeypatch.setattr(module, "TIMEOUT_S", 0.5 if address.startswith("tcp") else 600)
        with pytest.raises(InputError, match=f"no scheduler at '{address}'") as error:
            module.Cluster(address)
        assert "TimeoutError" not in str(error.value) or address.startswith("tcp"), error.value


def test_a_client_that_comes_too_late_is_closed(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that does not answer in time is told; when it does at last, nobody needs it."""
    from symperf.common import cluster as module

    released, kept = threading.Event(), []
    true_start = distributed.Client._start

    async def start(self: Any, **given: Any) -> Any:
        kept.append(self)
        while not released.is_set():
            await asyncio.sleep(0.01)
        return await true_start(self, **given)

    monkeypatch.setattr(distributed.Client, "_start", start)
    monkeypatch.setattr(module, "PATIENCE", 0.02)
    with pytest.raises(InputError, match=r"no scheduler at 'tcp://.*TimeoutError"):
        module.Cluster(cluster.scheduler_address)
    released.set()
    while not kept:
        time.sleep(0.01)
    (client,) = kept
    while client.status != "closed":  # the limit of every test ends this one too
        time.sleep(0.01)
