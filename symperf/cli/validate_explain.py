"""`symperf validate --explain ROW`: how a row was read, what it is predicted to be, and the command that says so."""

from __future__ import annotations

import contextlib
import contextvars
import io
import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..common.errors import InputError
from ..common.table import Table
from ..report.run_parts import show_overheads
from ..report.scaled import percent, seconds
from ..validation.case import Scored
from ..validation.explain import Explanation, every_row, explain
from ..validation.readings import Reading
from .folder import check_folder, write_folder
from .output import console, write_json

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable

    from rich.console import Console

    from ..evaluation.base_run import Row
    from ..validation.commands import Command
    from ..validation.rows import TableRow

MARK = ".symperf-explained.json"
TOLD = "output: {} cannot be written"
TERMS = 12
"""Terms of the breakdown that are printed, the longest."""
LONG = 40
"""Characters of what a document says from which on it stands below the table."""


def run(options: argparse.Namespace, *, own: bool) -> int:
    """Explain the rows of a name; 1 where none of them is scored.

    Args:
        options: of the command line.
        own: whether the data are a file of one's own, no folder of tables.
    """
    if options.output is not None:
        check_folder(options.output, MARK, TOLD)
    found = explain(_rows(options, own=own), options.explain)
    files = _files(found)
    folder = None if options.output is None else Path(options.output)
    if folder is not None:
        write_folder(folder, files, MARK, TOLD)
    told = [(each, _again(each)) for each in found]
    if options.json:
        write_json({"explained": [_json(each, again, folder) for each, again in told], "files": files})
    else:
        with console() as out:
            for each, again in told:
                _show(out, each, again, folder)
    return 0 if any(isinstance(each.result, Scored) for each in found) else 1


def _rows(options: argparse.Namespace, *, own: bool) -> Iterable[TableRow]:
    if options.data is None:
        return every_row()
    path = Path(options.data)
    if not own:
        from ..validation.score import all_tables

        return [row for rows in all_tables(path) for row in rows]
    from ..validation.own_file import read_own

    return read_own(path, options.map, options.fill, options.table).rows


def _files(found: Iterable[Explanation]) -> dict[str, str]:
    """The files that commands name.

    Raises:
        InputError: two rows of the name have files of one name.
    """
    files: dict[str, str] = {}
    for each in found:
        for command in each.reading.commands if isinstance(each.reading, Reading) else ():
            for name, text in command.files.items():
                if files.setdefault(name, text) != text:
                    raise InputError(f"explain: several rows have this name, and {name} of each is another")
    return files


def answer_of(command: Command) -> dict[str, Any]:
    """What a command line prints under `--json`.

    Raises:
        InputError: it is refused.
    """
    from . import main

    out, told = io.StringIO(), io.StringIO()
    with tempfile.TemporaryDirectory() as place:
        for name, text in command.files.items():
            (Path(place) / name).write_text(text, encoding="utf-8")
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(told):
            # Another verb with a width of its own: what this answer says of its own stays.
            contextvars.copy_context().run(main, [*command.placed(Path(place))[1:], "--json"])
    if not out.getvalue():
        raise InputError(f"explain: {command.text()}: {told.getvalue().strip()}")
    answer: dict[str, Any] = json.loads(out.getvalue())
    return answer


def number_of(reading: Reading) -> float:
    """The number that is read from the answers of command lines."""
    return reading.read([answer_of(command) for command in reading.commands])


def _again(each: Explanation) -> float | None:
    """What the commands of an explanation give; None without any."""
    return number_of(each.reading) if isinstance(each.reading, Reading) else None


def _terms(each: Explanation) -> list[Row]:
    """The breakdown, the longest first; none of memory, and of a server of whose iterations the time consists."""
    if each.run is None or each.case is None or "memory" in each.case.quantity or each.row.table == "serving.csv":
        return []
    return sorted((row for row in each.run.table() if row.time_s), key=lambda row: -row.time_s)


def _json(each: Explanation, again: float | None, folder: Path | None) -> dict[str, Any]:
    found: dict[str, Any] = {
        "row": dict(each.row.cells),
        "table": each.row.table,
        "line": each.row.line,
        "source": each.result.source,
        "case": each.result.case,
        "fields": [{"name": fact.name, "value": fact.value, "where": fact.where} for fact in each.facts],
    }
    if not isinstance(each.result, Scored):
        return found | {"left_out": each.result.reason}
    result = each.result
    found |= {"quantity": result.quantity, "measured": result.measured, "predicted": result.predicted}
    found |= {"error": result.error}
    if result.low is not None:
        found |= {"low": result.low, "high": result.high}
    found["breakdown"] = [
        {"name": row.name, "time_s": row.time_s, "share": row.share, "bound": row.bound} for row in _terms(each)
    ]
    if isinstance(each.reading, Reading):
        commands = [command.text(folder) for command in each.reading.commands]
        return found | {"commands": commands, "reading": each.reading.words, "again": again}
    return found | {"no_command": each.reading}


def _show(out: Console, each: Explanation, again: float | None, folder: Path | None) -> None:
    from rich.text import Text

    result = each.result
    out.print(Text(result.case, "bold"))
    if isinstance(result, Scored):
        ends = "" if result.low is None else f", 90% interval {result.low:.4g} to {result.high:.4g}"
        out.print(Text(f"{result.quantity}: measured {result.measured:.6g}, predicted {result.predicted:.6g}{ends}"))
        out.print(Text(f"error {result.error:+.1%}"))
    else:
        out.print(Text(f"left out: {result.reason}"))
    out.print(Text("\nhow it was read", "italic"))
    table, notes = Table(("field", "value", "who says so"), left=(0, 1, 2), wraps=(1, 2)), list[str]()
    for fact in each.facts:
        who, colon, text = fact.where.partition(": ")
        if colon and len(text) > LONG:
            notes += [] if text in notes else [text]
            who = f"{who} [{notes.index(text) + 1}]"
        else:
            who = fact.where
        table.add_row(fact.name, fact.value, who)
    out.print(table)
    for number, text in enumerate(notes, 1):
        out.print(Text(f"[{number}] {text}"))
    if terms := _terms(each):
        out.print(Text(f"\nbreakdown, {min(TERMS, len(terms))} of {len(terms)} terms", "italic"))
        table = Table(("term", "time", "share", "bound"), left=("term", "bound"))
        for row in terms[:TERMS]:
            table.add_row(row.name, seconds(row.time_s), percent(row.share), row.bound or "")
        out.print(table)
    if each.run is not None and isinstance(result, Scored) and terms:
        show_overheads(each.run, out)
    if not isinstance(result, Scored):
        return
    out.print(Text("\nthe same number", "italic"))
    if not isinstance(each.reading, Reading):
        out.print(Text(f"no command line gives it: {each.reading}"))
        return
    for command in each.reading.commands:
        out.print(Text(command.text(folder)), soft_wrap=True)
    out.print(Text(f"read under --json: {each.reading.words}; it gives {again!r}"), soft_wrap=True)
    names = [name for command in each.reading.commands for name in command.files]
    if names and folder is None:
        out.print(Text(f"{' and '.join(dict.fromkeys(names))}: written by --explain {each.row.id} -o FOLDER"))
