"""`symperf validate`."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import InputError
from ..validation import report
from ..validation.score import unheard, validate
from .output import console, write_file, write_json

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator


def run(options: argparse.Namespace) -> int:
    """Predict what was measured; 1 where nothing can be scored."""
    if options.worst < 0:
        raise InputError(f"worst: found {options.worst}, expected 0 or more")
    if options.plot is not None:
        from ..validation.plot import checked_format

        checked_format(options.plot)
    folder = None if options.data is None else Path(options.data)
    with _bar(options.json) as progress:
        found = validate(options.source, folder, progress)
    if options.plot is not None:
        from ..validation.plot import draw

        write_file(options.plot, draw(found.scored, options.plot), "plot: {} cannot be written")
    if options.markdown is not None:
        write_file(options.markdown, report.markdown(found, options.worst), "markdown: {} cannot be written")
    if options.csv is not None:
        write_file(options.csv, report.as_csv(found.scored), "csv: {} cannot be written")
    if options.json:
        write_json(report.as_json(found))
    else:
        with console() as printed:
            report.show(printed, found, options.worst)
    return 0 if found.scored else 1


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
