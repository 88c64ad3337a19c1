"""`symperf validate --data FILE.csv`: a table of one's own whose columns have their own names."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ..validation.case import Scored
from ..validation.own_file import read_own
from ..validation.own_score import columns_json, guide, scored_of
from ..validation.score import Report
from .output import console, write_json

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from ..validation.case import LeftOut
    from ..validation.own_file import OwnFile


def show_guide(options: argparse.Namespace) -> int:
    """Print what a file was taken for, and score nothing; 1 where it lacks what rows need."""
    own = read_own(Path(options.data), options.map, options.fill, options.table, whole=False)
    if options.json:
        write_json(columns_json(own))
    else:
        _print(guide(own))
    return 1 if own.missing else 0


def score_file(options: argparse.Namespace, progress: Callable[[int, int], None]) -> tuple[Report, OwnFile]:
    """Predict the rows of a file; on a terminal or in a pipe each is printed as soon as it is known.

    Raises:
        InputError: the file cannot be read, or is no such table.
    """
    own = read_own(Path(options.data), options.map, options.fill, options.table)
    done: list[Scored | LeftOut] = []
    for item in scored_of(own, options.source):
        done.append(item)
        if options.json:
            progress(len(done), len(own.rows))
        else:
            _print([told(item)])
    if not options.json:
        _print(["", *(line for line in guide(own) if line.startswith("ignored")), ""])
    scored = [item for item in done if isinstance(item, Scored)]
    return Report(scored, [item for item in done if not isinstance(item, Scored)]), own


def told(item: Scored | LeftOut) -> str:
    """A row that is done, in a line."""
    if not isinstance(item, Scored):
        return f"left out  {item.case}: {item.reason}"
    numbers = f"{item.error:+8.1%}  measured {item.measured:.4g}  predicted {item.predicted:.4g}"
    return f"{numbers}  {item.quantity}  {item.case}"


def _print(lines: list[str]) -> None:
    from rich.text import Text

    with console() as out:
        for line in lines:
            out.print(Text(line), soft_wrap=True)
