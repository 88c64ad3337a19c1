"""Which of the kept predictions may have changed: hashes of what each follows from, in `accuracy/hashes.txt`.

Its first line is a hash of all that any prediction follows from and of the kept tables: where that is the same, nothing
is looked at. The others, sorted, are a hash of each row: of its cells and what its document says of them (the row), of
the sources of the rooms that its table's predictions pass through (the program), of the structure, the values and
spreads of all symbols and the profile of its software (the constants), and of what was kept for it. A row whose hash is
not among them is predicted anew.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from symperf.codegen.store import digest
from symperf.common.errors import InputError
from symperf.common.fingerprint import ROOT
from symperf.validation.case import Case, LeftOut, Scored
from symperf.validation.documents import document_of
from symperf.validation.score import CONTRADICTS, all_tables, cases, contradicting
from symperf.validation.tables import TABLES, source_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from symperf.validation.rows import TableRow

FILE = Path(__file__).resolve().parent / "accuracy" / "hashes.txt"
LENGTH = 10
"""Digits of the hash of a row: among 5,000, a changed one is taken for another once in 2e8."""
APART = (
    *("book", "calibration", "checking", "cli", "explore", "export", "frameworks", "installation", "measuring"),
    *(
        "analysis/strips.py",
        "codegen/packed.py",
        "codegen/row_machine.py",
        "codegen/rows.py",
        "pictures",
        "plan_search",
    ),
    *("report", "runs/shown.py", "technology", "timeline", "train/padded_batches.py", "validation/kernels"),
    *("validation/commands.py", "validation/explain.py"),
    *("validation/own_columns.py", "validation/own_file.py", "validation/own_score.py", "validation/plot.py"),
    *("validation/readings.py", "validation/serving_command.py"),
)
"""Rooms and files that no prediction of a row passes through."""
NOT_TRAINING = ("infer", "serve", "formulas/generation")
"""Those that none of training does either."""
JUDGED = ("catalogue/intervals.toml", "catalogue/validation/chosen.toml", "catalogue/validation/judged.toml")
"""Tables that every interval and every label is read from."""
DATA = ("catalogue", "validation")
"""Folders of tables that predictions read."""


def kind_of(table: str) -> str:
    """What a table's predictions pass through."""
    return "training" if TABLES[table] in ("training", "steps", "references") else "inference"


@cache
def program(kind: str) -> str:
    """A hash of the sources that predictions of a kind pass through."""
    apart = (*APART, *(NOT_TRAINING if kind == "training" else ()))
    folders = (ROOT, ROOT / "formulas", ROOT / "codegen")
    files = {path.relative_to(ROOT).as_posix(): path for folder in folders for path in folder.rglob("*.py")}
    files |= {name: ROOT / name for name in JUDGED}
    read = (name for name in sorted(files) if not f"{name}/".startswith(tuple(f"{part}/" for part in apart)))
    return digest(*(part for name in read for part in (name, files[name].read_text(encoding="utf-8"))))


def inputs(kept: Mapping[Path, str | bytes]) -> str:
    """A hash of all that any prediction follows from, and of the kept tables."""
    data = (
        path for name in DATA for path in sorted((ROOT / name).rglob("*")) if path.suffix in (".csv", ".toml", ".json")
    )
    parts = [program("training"), program("inference")]
    parts += (part for path in data for part in (path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")))
    texts = (text if isinstance(text, str) else text.decode() for _, text in sorted(kept.items()))
    return digest(*parts, *texts)


def row_hash(row: TableRow, case: Case, kept: str) -> str:
    """The hash of a case and of what was kept for it."""
    try:
        run = case.run()
        values = sorted((name, value) for name, (value, _) in run.bound.items())
        spreads = sorted((name, each.value, each.low, each.high) for name, each in run.quantities().items())
        stack = getattr(run, "stack", None)
        constants = repr((run.structure, values, spreads, stack))
    except InputError as error:
        constants = str(error)
    said = repr((sorted(row.cells.items()), document_of(row)))
    name = (case.source, case.case, case.quantity, repr(case.measured))
    return digest(program(kind_of(row.table)), said, constants, *name, kept)[:LENGTH]


def every_item() -> Iterator[tuple[TableRow, Case | LeftOut]]:
    """Every case of the published tables, and every row that is left out before it becomes one, with its row."""
    for rows in all_tables(None):
        twice = contradicting(rows)
        for row in rows:
            out = [LeftOut(source_of(row), row.id, CONTRADICTS)]
            yield from ((row, item) for item in (out if row.line in twice else cases(row)))


def told(result: Scored | LeftOut) -> str:
    """What is kept of a result, as text."""
    if isinstance(result, LeftOut):
        return result.reason
    return " ".join(f"{end:.6g}" for end in (result.predicted, result.low, result.high) if end is not None)


def written(results: Mapping[tuple[str, str, str], str], kept: Mapping[Path, str | bytes]) -> str:
    """The file, of what is kept for each case by family, case and quantity."""
    every = ((row, item) for row, item in every_item() if isinstance(item, Case))
    hashes = sorted(row_hash(row, item, results[item.source, item.case, item.quantity]) for row, item in every)
    return "\n".join([f"inputs {inputs(kept)}", *hashes]) + "\n"


def stored() -> tuple[str, frozenset[str]]:
    """The hash of all inputs, and those of rows; nothing where the file is not there."""
    if not FILE.exists():
        return "", frozenset()
    first, *hashes = FILE.read_text(encoding="utf-8").split("\n")
    return first.removeprefix("inputs "), frozenset(hashes)
