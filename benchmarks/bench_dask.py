"""A sweep on Dask by one worker, by two, and by two of which one is killed: what each takes, and that all are the same.

Run `python benchmarks/bench_dask.py [--points 4000000] [--repeat 3]` on a machine with two processors that nothing
else uses: the process that writes the file is a third. Seconds are the least of several runs, after workers have
computed once. `--smoke` compares the files of a small sweep and measures nothing. It needs the extras dask and sweep.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import os
import signal
import tempfile
import time
from pathlib import Path
from typing import Any

import distributed
import numpy as np

from symperf.models.model import Model
from symperf.sweep.cells import Base
from symperf.sweep.cluster import on_cluster
from symperf.sweep.stream import write
from symperf.sweep.sweep import Sweep
from symperf.systems.system import System

CHUNKS = 40
"""Of a sweep, so that what one worker loses is little."""
KILLED = CHUNKS // 4
"""Chunks after which a worker is killed."""


class Starts(distributed.SchedulerPlugin):
    """Counts the pieces that workers are given, also those that they are given again."""

    def __init__(self) -> None:
        self.count = 0

    def transition(self, key: Any, start: str, finish: str, *args: Any, **more: Any) -> None:
        """Told by the scheduler of each piece."""
        del key, start, args, more
        self.count += finish == "processing"


def sweep(points: int) -> Sweep:
    """A training step of GPT-3 at about so many points, by NumPy."""
    base = Base(Model.load("gpt3-175b"), System.load("a100-80gb-sxm"), {}, {"batch": 64, "sequence": 2048}, {})
    bandwidths = np.linspace(1e12, 8e12, max(1, points // 16))
    return Sweep(base, {"tp": [1, 2, 4, 8], "pp": [1, 2, 4, 8], "memory_bandwidth": bandwidths}, where=["fits"])


def contents(out: Path) -> str:
    """A hash of a result."""
    found = hashlib.sha256()
    for file in sorted(path for path in out.rglob("*") if path.is_file()):
        found.update(str(file.relative_to(out)).encode() + file.read_bytes())
    return found.hexdigest()


def measure(asked: Sweep, folder: Path, workers: int, repeat: int, *, kill: bool = False) -> dict[str, Any]:
    """Least seconds, the pieces given to workers in the last run, and the hash of the file."""
    least, starts, made = float("inf"), 0, ""
    for number in range(repeat):
        with distributed.LocalCluster(
            n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
        ) as cluster:
            for warm in range(2):
                counter = Starts()
                cluster.scheduler.add_plugin(counter, name=f"starts {warm}")
                victim = next(iter(cluster.workers.values())).process.process.pid
                told = []

                def progress(_: int, __: int, last: bool = bool(warm), pid: int = victim, told: Any = told) -> None:
                    told.append(None)
                    if kill and last and len(told) == KILLED:
                        os.kill(pid, signal.SIGKILL)

                out = folder / f"{workers}-{kill}-{number}-{warm}.zarr"
                with on_cluster(cluster.scheduler_address) as compute:
                    begin = time.perf_counter()
                    write(asked, out, chunk_points=-(-asked.points // CHUNKS), compute=compute, progress=progress)
                    seconds = time.perf_counter() - begin
            least, starts, made = min(least, seconds), counter.count, contents(out)
    return {"seconds": least, "starts": starts, "file": made}


def main() -> None:
    """Measure, or with `--smoke` compare.

    Raises:
        AssertionError: files differ.
    """
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=4_000_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--smoke", action="store_true", help="small; compare results alone")
    given = parser.parse_args()
    points, repeat = (20_000, 1) if given.smoke else (given.points, given.repeat)
    asked = sweep(points)
    with tempfile.TemporaryDirectory() as name, contextlib.suppress(KeyboardInterrupt):
        folder = Path(name)
        cases = {"one worker": (1, False), "two workers": (2, False), "two, one of them killed": (2, True)}
        if given.smoke:
            del cases["two workers"]
        found = {what: measure(asked, folder, n, repeat, kill=kill) for what, (n, kill) in cases.items()}
        if len({row["file"] for row in found.values()}) > 1:
            raise AssertionError("the files of one worker and of several differ")
        if given.smoke:
            print("a sweep on Dask: the file of one worker is that of two of which one is killed")
            return
        one = found["one worker"]["seconds"]
        for what, row in found.items():
            rate = one / row["seconds"]
            print(f"{what:>24}: {row['seconds']:6.2f} s, {rate:.2f} times one worker, {row['starts']} pieces begun")


if __name__ == "__main__":
    main()
