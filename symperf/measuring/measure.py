"""Measure the device that is there: rows as they come, until all are there or the time is over."""

from __future__ import annotations

import gc
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from . import attention, collectives, elementwise, gemm, launch, steps, streams, sustained
from .bench import NotMeasuredError, open_bench
from .clock import SETTLED, Clock
from .columns import KINDS
from .sampler import identity, sampling

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .bench import Bench
    from .jobs import Job
    from .sampler import Sampler

SHARES = {
    "launch": 0.02,
    "copy": 0.08,
    "elementwise": 0.10,
    "power": 0.12,
    "attention": 0.18,
    "step": 0.10,
    "collective": 0.10,
    "gemm": 0.40,
}
"""Parts of the time; what a kind leaves of its part goes to those after it."""
JOBS: dict[str, Callable[[], list[Job]]] = {
    "launch": launch.jobs,
    "copy": streams.jobs,
    "elementwise": elementwise.jobs,
    "power": sustained.jobs,
    "attention": attention.jobs,
    "step": steps.jobs,
    "gemm": gemm.jobs,
}
PATIENCE = 8
"""So many failures in a row end a kind: the device is then in no state to go on."""
Row = dict[str, Any]


@dataclass
class Measured:
    """What was measured, and what was not and why."""

    device: str
    torch: str
    rows: list[Row] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    left: dict[str, int] = field(default_factory=dict)
    """Kind: rows for which the time was too short."""


def measure(
    seconds: float = 120.0,
    kinds: tuple[str, ...] = KINDS,
    *,
    take: Callable[[Row], None] | None = None,
    progress: Callable[[str, int, int, str], None] | None = None,
    found: Callable[[Measured], None] | None = None,
) -> Measured:
    """Run the benchmarks of these kinds for about so many seconds.

    Args:
        seconds: for all kinds together, without the start of PyTorch.
        kinds: of rows, out of `columns.KINDS`.
        take: gets each row as it comes.
        progress: gets kind, rows done, rows planned, and the row that is next.
        found: gets the result at the start, so that what is there survives an interruption.

    Raises:
        NoDeviceError: PyTorch is not installed, or sees no device.
    """
    bench = open_bench()
    result = Measured(bench.name, bench.version)
    if found is not None:
        found(result)
    tell = progress or (lambda _kind, _done, _all, _label: None)
    many = int(bench.torch.cuda.device_count())
    chosen = [kind for kind in KINDS if kind in kinds and (kind != "collective" or many > 1)]
    left = float(seconds)
    with sampling(identity(bench.torch)) as sampler:
        for at, kind in enumerate(chosen):
            began = time.monotonic()
            part = left * SHARES[kind] / sum(SHARES[later] for later in chosen[at:])
            rows = (
                _collectives(bench, many)
                if kind == "collective"
                else _jobs(bench, JOBS[kind](), began + part, sampler, result, tell)
            )
            for row in rows:
                row |= {"device": bench.name, "torch": bench.version}
                result.rows.append(row)
                if take is not None:
                    take(row)
            _clean(bench)
            left = max(0.0, left - (time.monotonic() - began))
    return result


def _clean(bench: Bench) -> None:
    gc.collect()
    bench.release()


def _collectives(bench: Bench, many: int) -> Iterator[Row]:
    bench.release()
    yield from collectives.measure_collectives(bench.torch, many)


def _jobs(
    bench: Bench,
    jobs: list[Job],
    until: float,
    sampler: Sampler,
    result: Measured,
    tell: Callable[[str, int, int, str], None],
) -> Iterator[Row]:
    clock = Clock(bench.torch)
    failed = 0
    for at, job in enumerate(jobs):
        if time.monotonic() > until or failed >= PATIENCE:
            result.left[job.row["kind"]] = len(jobs) - at
            return
        tell(job.row["kind"], at, len(jobs), job.label)
        began = time.monotonic()
        try:
            timing = getattr(clock, job.mode)(job.prepare(bench))
        except NotMeasuredError as error:
            result.skipped[f"{job.row['kind']}: {error}"] += 1
            continue
        except RuntimeError as error:  # out of memory, or a kernel that this device lacks
            failed += 1
            result.skipped[f"{job.row['kind']} {job.row['name']}: {_first_line(error)}"] += 1
            _clean(bench)
            continue
        failed = 0
        read_from = time.monotonic() - SETTLED if job.mode == "sustained" else began
        yield job.row | vars(timing) | {"mode": job.mode} | sampler.since(read_from)


def _first_line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)[:120]
