"""A sweep of any size into a file: chunk by chunk, never all of it in memory, resumed after any kind of stop."""

from __future__ import annotations

import itertools
import shutil
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ..codegen.compiling import stop_compiling
from ..codegen.workers import default_threads
from ..common.errors import InputError, quote_path
from ..common.outputs import check_result
from ..common.system_errors import cause, one_line
from ..systems.units import BYTES as BYTES_UNIT
from ..systems.units import spell
from .chunks import block_shape, count, nth, size
from .dataset import bytes_of
from .identity import identity
from .journal import NAME, Journal, digest
from .record import SweepRecord
from .sinks import Sink, kind_of, pack
from .sweep import REASON, Sweep
from .work_folder import WorkFolder, remove_remains

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

ENDING = ".partial"
POINTS = 1 << 20
"""Points of a chunk at most."""
BYTES = 10_000_000
"""Of a chunk, about, at most: memory holds some chunks for each thread."""
THREADS = 8
"""At most: one process writes what they compute."""
TEXT_BYTES = 20
"""Of a number in a table of text."""


@dataclass
class Outcome:
    """What a job came to.

    Attributes:
        points: of the grid.
        chunks: of the grid.
        computed: chunks that this call computed.
        whole: whether all chunks are there.
        counts: points by reason, of the chunks that are there.
        before: whether the whole was there before this call.
        made: whether the file is in its place; an interruption while it is made leaves it as it was.
    """

    points: int
    chunks: int
    computed: int = 0
    whole: bool = False
    counts: dict[str, int] = field(default_factory=dict)
    before: bool = False
    made: bool = True


def write(
    sweep: Sweep,
    out: Path,
    *,
    overwrite: bool = False,
    resume: bool = False,
    compute: Any = None,
    progress: Callable[[int, int], None] | None = None,
    chunk_points: int | None = None,
) -> Outcome:
    """Compute a sweep into a file; what is unfinished lies beside it in a folder that ends in `.partial`.

    Args:
        sweep: what to compute.
        out: the file; its name's end says the format.
        overwrite: replace what is there, finished or not.
        resume: go on where a job was stopped; one that is finished, of the same sweep, is left as it is.
        compute: yields (index, bytes) of the chunks asked for, in any order; by default here, one after another.
        progress: is told the points done and all points.
        chunk_points: points of a chunk; by default as many as `POINTS` and `BYTES` allow.

    Returns:
        What was computed. After an interruption (KeyboardInterrupt) the file is made of what is there, and the outcome
        says that it is not whole.

    Raises:
        InputError: a path that exists, a disk too small, another sweep's work, a package that is missing.
    """
    kind = kind_of(out)
    folder = out.with_name(out.name + ENDING)
    with one_line(f"-o: {quote_path(out)}"):
        _check_paths(out, folder, overwrite=overwrite, resume=resume)
    shape = block_shape(sweep.shape, chunk_points or max(1, min(POINTS, BYTES // (8 * len(sweep.outputs) + 1))))
    same = identity(sweep)
    outcome = Outcome(sweep.points, count(sweep.shape, shape))
    if resume and out.exists() and not folder.exists():
        remove_remains(folder)
        return _finished(outcome, kind, out, same)
    if overwrite or not folder.exists():
        _check_disk(sweep, kind, out)
    header = {**same, "chunks": list(shape), "format": out.suffix}
    try:
        sink = kind(sweep, shape, folder, out)
        with WorkFolder(folder) as work:
            if overwrite:
                work.clear()
            elif not (folder / NAME).exists() and out.exists():  # made before, or by another process meanwhile
                work.discard()
                _check_paths(out, folder, overwrite=overwrite, resume=resume)
                return _finished(outcome, kind, out, same)
            with Journal(work, header) as journal:
                sink.start()
                _run(sink, journal, outcome, compute or here, progress or unheard, same)
            if outcome.whole:
                work.discard()
    except OSError as error:
        end = "; --resume goes on" if (folder / NAME).exists() else ""
        raise InputError(f"{quote_path(out)}: cannot be written: {cause(error)}{end}") from None
    return outcome


def _finished(outcome: Outcome, kind: type[Sink], out: Path, same: dict[str, str]) -> Outcome:
    """The outcome of a result that is whole."""
    outcome.counts, outcome.whole, outcome.before = _check_finished(kind, out, same), True, True
    return outcome


def _check_finished(kind: type[Sink], out: Path, same: dict[str, str]) -> dict[str, int]:
    """Points by reason of a result that is whole, if it is of the same sweep."""
    record = kind.recorded(out)
    if record is None:
        raise InputError(f"-o: {out}: there is nothing to resume; --overwrite replaces it")
    if record.identity != same:
        labels = sorted({*same, *record.identity})
        changed = [label for label in labels if record.identity.get(label) != same.get(label)]
        raise InputError(f"-o: {out}: is finished, with another {' and '.join(changed)}; --overwrite replaces it")
    return record.counts


def _run(
    sink: Sink,
    journal: Journal,
    outcome: Outcome,
    compute: Any,
    progress: Callable[[int, int], None],
    same: dict[str, str],
) -> None:
    sweep = sink.sweep
    counts = np.zeros(256, dtype=np.int64)
    done = 0

    def count_points(index: int, data: bytes) -> Any:
        return np.bincount(sink.unpack(index, data)[REASON].ravel(), minlength=256)

    def note(index: int, found: Any) -> None:
        nonlocal done
        counts[:] += found
        done += size(sink.block(index))
        progress(done, sweep.points)

    try:
        for index, mark in list(journal.done.items()):
            data = sink.get(index)
            if data is not None and digest(data) == mark:
                note(index, count_points(index, data))
            else:
                del journal.done[index]
        left = (index for index in range(outcome.chunks) if index not in journal.done)
        with ThreadPoolExecutor(1) as writer:
            for index, data in compute(sweep, sink.shape, left):
                writing = writer.submit(sink.put, index, data)
                mark, found = digest(data), count_points(index, data)
                writing.result()
                journal.add(index, mark)
                outcome.computed += 1
                note(index, found)
    except KeyboardInterrupt:
        pass
    outcome.whole = len(journal.done) == outcome.chunks
    names = ["", *sweep.reasons]
    outcome.counts = {names[code]: int(n) for code, n in enumerate(counts[: len(names)]) if n}
    try:
        sink.finish(sorted(journal.done), SweepRecord(same, outcome.counts) if outcome.whole else None)
    except KeyboardInterrupt:
        outcome.whole = outcome.made = False


def unheard(done: int, total: int) -> None:
    """Progress that no one watches."""


def here(sweep: Sweep, shape: tuple[int, ...], indices: Iterable[int]) -> Iterator[tuple[int, bytes]]:
    """Compute chunks in this process, in threads, and yield them in order."""
    left = iter(indices)
    waiting: deque[tuple[int, Future[bytes]]] = deque()
    threads = min(default_threads(), THREADS)
    with ThreadPoolExecutor(threads) as pool:
        try:
            while True:
                for index in itertools.islice(left, threads + 1 - len(waiting)):
                    waiting.append((index, pool.submit(chunk, sweep, shape, index)))
                if not waiting:
                    return
                index, future = waiting.popleft()
                yield index, future.result()
        except BaseException:
            stop_compiling(pool)
            raise
        finally:
            pool.shutdown(cancel_futures=True)


def chunk(sweep: Sweep, shape: tuple[int, ...], index: int) -> bytes:
    """One chunk as bytes."""
    return pack(sweep.compute(nth(sweep.shape, shape, index)), sweep.outputs)


def _check_paths(out: Path, folder: Path, *, overwrite: bool, resume: bool) -> None:
    if overwrite and resume:
        raise InputError("sweep: found --overwrite and --resume, expected one of them")
    check_result(out, ENDING + "." + "x" * 13)  # names of folders beside it
    if out.is_dir() and out.exists() and not (out.suffix == ".zarr" and (out / "zarr.json").is_file()):
        raise InputError(f"-o: {out} is a folder, and no earlier result")
    if folder.exists() and not folder.is_dir():
        raise InputError(f"-o: {folder} is in the way, expected a folder or nothing")
    if overwrite:
        return
    if folder.exists() and not resume:
        raise InputError(f"-o: {folder} holds an unfinished sweep; --resume goes on with it, --overwrite starts again")
    if out.exists() and not folder.exists() and not resume:
        raise InputError(f"-o: {out}: it exists; --overwrite replaces it")


def _check_disk(sweep: Sweep, kind: type[Sink], out: Path) -> None:
    wanted = bytes_of(sweep) * kind.copies
    if out.suffix == ".csv":
        columns = len(sweep.outputs) + sum(len(axis.members) for axis in sweep.axes)
        wanted = bytes_of(sweep) + sweep.points * columns * TEXT_BYTES
    free = shutil.disk_usage(out.parent).free
    if wanted > free:
        raise InputError(
            f"-o: {quote_path(out)}: {sweep.points:,} points of {len(sweep.outputs)} outputs need about "
            f"{spell(wanted, BYTES_UNIT)}, and the disk has {spell(free, BYTES_UNIT)} free"
        )
