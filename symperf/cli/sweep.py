"""`symperf sweep`."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..common.cluster import Scheduler
from ..sweep.stream import Outcome, unheard, write
from ..sweep.study import load
from .output import console, write_error, write_json
from .plots import check_plot, write_plot

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from ..pictures.figure import Sheet
    from ..sweep.sweep import Sweep


def run(options: argparse.Namespace) -> int:
    """Compute a study into a file."""
    study = load(options.study)
    out = Path(options.output)
    check_plot(options)
    if options.plot is not None:
        from ..report.picture_sweep import check_size

        check_size(study.sweep)
    with _computing(Scheduler.parse(options.dask, options.dask_tls)) as compute, _bar(options.json) as progress:
        started = time.monotonic()
        outcome = write(
            study.sweep,
            out,
            overwrite=options.overwrite,
            resume=options.resume,
            compute=compute,
            progress=progress,
        )
        seconds = time.monotonic() - started
    if outcome.whole:
        write_plot(options, lambda: _picture(study.sweep))
    if options.json:
        write_json(_as_json(out, outcome, seconds))
    elif outcome.whole:
        with console() as printed:
            _show(printed, out, outcome, seconds)
    if not outcome.whole:
        there = f"{sum(outcome.counts.values()):,} of {outcome.points:,} points"
        what = f"{out} holds {there}" if outcome.made else f"{there} are computed, and {out} is not made of them yet"
        write_error(f"interrupted: {what}; --resume goes on")
        return 130
    return 0


def _picture(sweep: Sweep) -> Sheet:
    from ..report.picture_sweep import sheet

    return sheet(sweep)


def _computing(address: str | Scheduler | None) -> AbstractContextManager[Any]:
    """What computes chunks: a cluster, or None, this process."""
    if address is None:
        return nullcontext()
    from ..sweep.cluster import on_cluster

    return on_cluster(address)


def _as_json(out: Path, outcome: Outcome, seconds: float) -> dict[str, Any]:
    rejected = {name: n for name, n in outcome.counts.items() if name}
    return {
        "output": str(out),
        "points": outcome.points,
        "feasible": outcome.counts.get("", 0),
        "rejected": rejected,
        "chunks": outcome.chunks,
        "computed_chunks": outcome.computed,
        "whole": outcome.whole,
        "finished_before": outcome.before,
        "seconds": seconds,
    }


def _show(printed: Any, out: Path, outcome: Outcome, seconds: float) -> None:
    feasible = outcome.counts.get("", 0)
    if outcome.before:
        text = f"{out}: is finished, all {outcome.points:,} points are there: nothing was computed"
        printed.print(text, soft_wrap=True)
        return
    text = f"{out}: {outcome.points:,} points, {feasible:,} feasible"
    printed.print(f"{text}, in {seconds:.1f} s ({outcome.computed} of {outcome.chunks} chunks computed now)")
    for name, n in sorted(outcome.counts.items(), key=lambda item: -item[1]):
        if name:
            printed.print(f"  {n:,} rejected: {name.replace('_', ' ')}")


@contextmanager
def _bar(quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """A progress bar with rate and time left on standard error, where that is a terminal."""
    if quiet or not sys.stderr.isatty():
        yield unheard
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (BarColumn(), TaskProgressColumn(), TextColumn("{task.fields[rate]}"), TimeRemainingColumn())
    with Progress(*columns, console=Console(file=sys.stderr), transient=True) as shown:
        task = shown.add_task("sweep", total=None, rate="")

        def tell(done: int, total: int) -> None:
            speed = shown.tasks[task].speed or 0.0
            shown.update(task, completed=done, total=total, rate=f"{speed / 1e6:.1f} M points/s")

        yield tell
