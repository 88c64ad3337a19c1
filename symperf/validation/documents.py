"""What a document says once for all its rows, or for some of them: the table `documents.toml`, read and laid on a row.

A table of the file is a family of rows. Its keys, each with the place in the document that says it (`source`):

* `columns`: what the row's empty cells hold, a micro-batch unless the row's other cells say another;
* `instead`: cells that are read otherwise than they are written;
* `plan`, `values`: fields of the plan (a `node_limit` of 0: a plain all-to-all), and values of other symbols;
* `network`: figures of the system around the part;
* `stack`: the profile of the kernels, by the document's date, where the framework's name says no version;
* `flops`: what a TFLOP/s or a utilisation counts where `tflops_definition` does not say (`flop_counts.CONVENTIONS`);
* `batch_tokens`: in a global batch, where no column says;
* `left_out`: why the rows are no case.

`[[FAMILY.rows]]` says the same of rows whose cells match every pattern of `where` (`*` stands for any text); what
stands later is laid over what stands before. A row that is read so matches as it did before. No number is
fitted to a measurement; some places were looked up because a prediction was far from one.
"""

from __future__ import annotations

import math
import tomllib
from dataclasses import dataclass, field, fields, replace
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .rows import TableRow

TABLE = Path(__file__).parent / "documents.toml"
TABLES = ("columns", "instead", "plan", "values", "network")
MICRO = "micro_batch_seqs"
GLOBAL_BATCH, DEVICES = ("global_batch_seqs", "batch"), ("num_devices", "devices")
NOTHING: Mapping[str, Any] = {}


@dataclass(frozen=True)
class Document:
    """What a document says of a row; the attributes are the keys of the table, above."""

    source: str = ""
    columns: Mapping[str, str] = field(default_factory=lambda: NOTHING)
    instead: Mapping[str, str] = field(default_factory=lambda: NOTHING)
    plan: Mapping[str, Any] = field(default_factory=lambda: NOTHING)
    values: Mapping[str, Any] = field(default_factory=lambda: NOTHING)
    network: Mapping[str, Any] = field(default_factory=lambda: NOTHING)
    stack: str = ""
    flops: str = ""
    batch_tokens: int = 0
    left_out: str = ""

    def over(self, other: Document) -> Document:
        """This laid over another: sources and tables are joined, and what is said here replaces what is said there."""
        new: dict[str, Any] = {}
        for item in fields(self):
            mine, theirs = getattr(self, item.name), getattr(other, item.name)
            new[item.name] = {**theirs, **mine} if item.name in TABLES else mine or theirs
        new["source"] = "; ".join(filter(None, (other.source, self.source)))
        return Document(**new)


@dataclass(frozen=True)
class Part:
    """What a document says of the rows that match."""

    where: Mapping[str, str]
    said: Document

    def matches(self, row: TableRow) -> bool:
        """Whether every cell that `where` names is like its pattern."""
        return all(fnmatchcase(row.text(column), pattern) for column, pattern in self.where.items())


@lru_cache(maxsize=1)
def documents() -> Mapping[str, tuple[Document, tuple[Part, ...]]]:
    """By family: what its document says of all rows, and of some."""
    tables = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    found: dict[str, tuple[Document, tuple[Part, ...]]] = {}
    for name, table in tables.items():
        parts = tuple(Part(part.pop("where"), Document(**part)) for part in table.pop("rows", ()))
        found[name] = (Document(**table), parts)
    return found


def document_of(row: TableRow) -> Document:
    """What its document says of a row; nothing of a user's own."""
    if row.family not in documents():
        return Document()
    said, parts = documents()[row.family]
    for part in parts:
        if part.matches(row):
            said = part.said.over(said)
    if MICRO in said.columns and not row.text(MICRO) and not _may_run(int(said.columns[MICRO]), _laid(said, row)):
        said = replace(said, columns={name: text for name, text in said.columns.items() if name != MICRO})
    return said


def _may_run(micro: int, row: TableRow) -> bool:
    """Whether a document's micro-batch fits the batch and the number of micro-batches that a row has, if it has them.

    A row of one's own may have another layout than the document's script; what it says itself goes first.
    """
    batch, devices = (row.whole(name) or row.whole(short) for name, short in (GLOBAL_BATCH, DEVICES))
    replica = math.prod(row.whole(name) or 1 for name in ("tp", "pp", "cp"))
    replicas = row.whole("dp") or (devices or replica) // replica
    if batch is None or replicas == 0 or batch % replicas:
        return True
    steps = row.whole("grad_accum")
    return batch // replicas % micro == 0 if steps is None else batch == micro * steps * replicas


def filled(row: TableRow) -> TableRow:
    """A row with what its document says of its cells."""
    return _laid(document_of(row), row)


def _laid(said: Document, row: TableRow) -> TableRow:
    if not (said.columns or said.instead):
        return row
    empty = {column: text for column, text in said.columns.items() if not row.text(column)}
    return replace(row, cells={**row.cells, **empty, **said.instead})
