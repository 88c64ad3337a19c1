"""A study on a Dask cluster gives the same file, also when a worker dies in the middle."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, Any

import distributed
import pytest

from symperf.axes import linear
from symperf.cells import Base
from symperf.errors import InputError
from symperf.model import Model
from symperf.stream import write
from symperf.sweep import Sweep
from symperf.system import System

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
    from symperf.cluster import on_cluster

    alone, spread = tmp_path / "alone.csv", tmp_path / "spread.csv"
    write(_sweep(), alone, chunk_points=POINTS)
    victim = next(iter(cluster.workers.values())).process.process.pid
    seen = []

    def progress(done: int, _: int) -> None:
        seen.append(done)
        if len(seen) == 10:
            os.kill(victim, signal.SIGKILL)

    compute = on_cluster(cluster.scheduler_address)
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
    from symperf import cluster as module

    software = module.software()
    monkeypatch.setattr(module, "software", lambda: {**software, changed: "edited"})
    if when == "later":
        monkeypatch.setattr(module, "_check_workers", lambda _: None)
    with pytest.raises(InputError, match=rf"--dask: .* has another {changed}, expected the same everywhere"):
        write(_sweep(), tmp_path / "out.csv", compute=module.on_cluster(cluster.scheduler_address))


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "nowhere://x", ""])
def test_no_scheduler_is_one_line(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An address where nothing answers is told with an example of one."""
    from symperf import cluster as module

    monkeypatch.setattr(module, "TIMEOUT_S", 0.5)
    with pytest.raises(InputError, match=r"--dask: .*expected an address such as tcp://"):
        module.on_cluster(address)
