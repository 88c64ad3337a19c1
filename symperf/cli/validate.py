"""`symperf validate`."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..common.errors import InputError, quote
from ..common.outputs import check_file, write_file
from ..validation import report, tables
from ..validation.groups import check_grouping
from ..validation.score import tables_of, unheard, validate
from .output import console, write_json
from .plots import check_plot, write_plot

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator

    from ..pictures.figure import Sheet
    from ..validation.score import Report

TOLD = {flag: f"{flag}: {{}} cannot be written" for flag in ("plot", "markdown", "csv")}
"""What an error line says of each file that can be asked for."""


def run(options: argparse.Namespace) -> int:
    """Predict what was measured; 1 where nothing can be scored."""
    if options.worst < 0:
        raise InputError(f"worst: found {options.worst}, expected 0 or more")
    for name in options.by:
        check_grouping(name)
    check_plot(options)
    if options.explain is not None:
        return _explain(options)
    if options.output is not None:
        raise InputError(
            "output: goes with --explain ROW, whose files it holds; expected --csv or --markdown for errors"
        )
    if options.kernels is not None:
        return _kernels(options)
    if _is_file(options):
        return _file(options)
    folder = None if options.data is None else Path(options.data)
    if folder is not None:
        tables_of(folder)  # a folder that cannot be looked into is refused first
    _check_outputs(options, [] if folder is None else [folder / name for name in tables.OWN])
    with _bar(options.json) as progress:
        found = validate(options.source, folder, progress)
    return _deliver(options, found)


def _explain(options: argparse.Namespace) -> int:
    """Explain one row."""
    from .validate_explain import run as explain

    for flag in ("kernels", "source", "by", "guide", *TOLD):
        if getattr(options, flag):
            raise InputError(f"{flag}: cannot be given with --explain, which tells of one row")
    return explain(options, own=_is_file(options))


def _is_file(options: argparse.Namespace) -> bool:
    """Whether `--data` names a file or a pipe, not a folder of tables.

    Raises:
        InputError: what goes with a file only was asked for without one.
    """
    path = None if options.data is None else Path(options.data)
    try:
        found = path is not None and ((path.exists() and not path.is_dir()) or path.suffix.lower() == ".csv")
    except (OSError, ValueError):
        found = False  # told as of a folder
    for flag in ("map", "fill", "table", "guide"):
        if getattr(options, flag) and not found:
            raise InputError(f"{flag}: goes with --data FILE.csv, a file of your own; found {_quoted(options.data)}")
    return found


def _quoted(data: str | None) -> str:
    return "no --data" if data is None else quote(data)


def _file(options: argparse.Namespace) -> int:
    """Predict the rows of a file; 1 where none can be scored."""
    from ..validation.own_score import columns_json
    from .validate_file import score_file, show_guide

    _check_outputs(options, [Path(options.data)])
    if options.guide:
        return show_guide(options)
    with _bar(not options.json) as progress:
        found, own = score_file(options, progress)
    return _deliver(options, found, {"columns": columns_json(own)})


def _deliver(options: argparse.Namespace, found: Report, more: dict[str, Any] | None = None) -> int:
    """Write what is asked for; 1 where nothing could be scored."""
    by = [check_grouping(name) for name in options.by]
    write_plot(options, lambda: _picture(found))
    if options.markdown is not None:
        write_file(options.markdown, report.markdown(found, options.worst, by), TOLD["markdown"])
    if options.csv is not None:
        write_file(options.csv, report.as_csv(found.scored), TOLD["csv"])
    if options.json:
        write_json(report.as_json(found, by) | (more or {}))
    else:
        with console() as printed:
            report.show(printed, found, options.worst, by)
    return 0 if found.scored else 1


def _kernels(options: argparse.Namespace) -> int:
    """Predict measured kernels; 1 where none can be scored."""
    from ..validation.kernels import plot, report, rows, score

    for flag in ("data", "source", "by"):
        if getattr(options, flag):
            raise InputError(f"{flag}: cannot be given with --kernels, whose tables are of single kernels")
    if not options.kernels:
        raise InputError("kernels: found '', expected a folder of tables")
    folder = Path(options.kernels)
    _check_outputs(options, rows.tables_in(folder))
    with _bar(options.json) as progress:
        found = score.score(folder, shapes=options.csv is not None, progress=progress)
    scored = any(len(rows.measured) for rows in found.values())
    if scored:
        write_plot(options, lambda: plot.sheet(found))
    if options.markdown is not None:
        write_file(options.markdown, report.markdown(found), TOLD["markdown"])
    if options.csv is not None:
        write_file(options.csv, report.as_csv(found), TOLD["csv"])
    if options.json:
        write_json(report.as_json(found))
    else:
        with console() as printed:
            report.show(printed, found)
    return 0 if scored else 1


def _picture(found: Report) -> Sheet:
    from ..validation.plot import sheet

    return sheet(found.scored)


def _check_outputs(options: argparse.Namespace, taken: list[Path]) -> None:
    """Refuse to write a table that is read, now or by the next run, twice to one file, or where nothing can be written.

    Raises:
        InputError: that was asked for.
    """
    for flag, told in TOLD.items():
        text = getattr(options, flag)
        if text is None:
            continue
        check_file(text, told)
        for other in taken:
            if os.path.realpath(text) == os.path.realpath(other):
                raise InputError(f"{flag}: {quote(text)} is read or written already; expected another file")
        if not text.startswith("/dev/"):
            taken.append(Path(text))


@contextmanager
def _bar(quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """A progress bar on standard error, where that is a terminal."""
    if quiet or not sys.stderr.isatty():
        yield unheard
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(file=sys.stderr), transient=True) as shown:
        task = shown.add_task("validate", total=None)
        yield lambda done, total: shown.update(task, completed=done, total=total)
