"""Predictions beside measured times: errors by device, software, operation and format."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ...common.errors import InputError, nearest, quote
from . import faults
from .formats import software_of
from .forms import predict
from .operations import OPERATIONS, UNMODELLED
from .rows import HEAD, Group, Part, Table, tables_in
from .table import Columns, read

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from .table import Batch

SIZES: Final = ((20e-6, "< 20 us"), (150e-6, "20-150 us"), (np.inf, "above"))
"""Classes of measured times: seconds below which a row is in it, and its name."""
UNKNOWN_TABLE = "no operation of this name"


@dataclass
class Rows:
    """The rows of a group: what is left out and why, and arrays of what is scored.

    Attributes:
        left_out: rows by reason.
        measured: seconds.
        predicted: seconds.
        intensity: FLOPs for each byte of device memory; 0 where a kernel has none.
        test: whether a row's shape is kept back.
        shapes: texts of the rows' columns; empty unless they are asked for.
    """

    left_out: Counter[str] = field(default_factory=Counter)
    measured: Any = field(default_factory=lambda: np.zeros(0))
    predicted: Any = field(default_factory=lambda: np.zeros(0))
    intensity: Any = field(default_factory=lambda: np.zeros(0))
    test: Any = field(default_factory=lambda: np.zeros(0, dtype=bool))
    shapes: list[str] = field(default_factory=list)

    @property
    def errors(self) -> Any:
        """Predicted over measured, less 1."""
        return self.predicted / self.measured - 1


Scores = dict[Group, Rows]


def score(folder: Path, *, shapes: bool = False, progress: Callable[[int, int], None] | None = None) -> Scores:
    """Predict every row of every table of a folder.

    Args:
        folder: with the tables.
        shapes: keep a text of each row's columns.
        progress: is told how many tables are done, and of how many.

    Raises:
        InputError: a table that cannot be read.
    """
    scores: Scores = {}
    found = tables_in(folder)
    for number, path in enumerate(found):
        name = path.stem.removesuffix("_perf")
        if name in OPERATIONS:
            _Scorer(Table(path, name, OPERATIONS[name]), shapes).score(scores)
        else:
            _leave_out(path, name, scores)
        if progress is not None:
            progress(number + 1, len(found))
    return dict(sorted(scores.items()))


def _leave_out(path: Path, name: str, scores: Scores) -> None:
    """Count the rows of a table that no formula predicts.

    Raises:
        InputError: its name is nearly that of another.
    """
    if name in UNMODELLED:
        for batch in read(path, Columns(HEAD[:2], ())):
            for texts, rows in batch.groups(HEAD[:2]):
                group = Group(texts["system"], software_of(texts["framework"]), name, "")
                scores.setdefault(group, Rows()).left_out[UNMODELLED[name]] += len(rows)
        return
    if near := nearest(name, [*OPERATIONS, *UNMODELLED]):
        raise InputError(f"kernels: {path.name}: no operation {quote(name)}{near}")
    for batch in read(path, Columns((), ())):
        scores.setdefault(Group("", "", name, ""), Rows()).left_out[UNKNOWN_TABLE] += batch.size


ARRAYS: Final = ("measured", "predicted", "intensity", "test")
"""The arrays of `Rows`."""


@dataclass
class _Found:
    """The predictions of some rows of one group, the keys by which equal kernels are found, and texts of the rows."""

    group: Group
    keys: Any
    arrays: tuple[Any, ...]
    shapes: list[str]


class _Scorer:
    """One table on its way to scores."""

    def __init__(self, table: Table, shapes: bool) -> None:
        self.table, self.shapes = table, shapes
        self.found: list[_Found] = []
        self.seen: Counter[tuple[str, ...]] = Counter()
        self.impossible: Counter[tuple[str, ...]] = Counter()

    def score(self, scores: Scores) -> None:
        """Read, predict, and add to the scores."""
        for part in self.table.parts():
            self._part(part, scores.setdefault(part.group, Rows()))
        for columns, count in self.impossible.items():
            faults.check_unit(self.table.path.name, columns, self.seen[columns], count)
        for group, reasons in self.table.left_out.items():
            scores.setdefault(group, Rows()).left_out += reasons
        self._add(scores)

    def _part(self, part: Part, into: Rows) -> None:
        found = predict(part.sort.form, part.sort.setting, part.sizes, part.rows.size)
        impossible = faults.too_fast(part.seconds, found, part.sort.setting.system, part.sort.format)
        columns = part.measure.columns
        self.seen[columns] += part.rows.size
        self.impossible[columns] += int(impossible.sum())
        into.left_out += Counter({faults.IMPOSSIBLE: int(impossible.sum())})
        kept = np.flatnonzero(~impossible)
        keys = faults.fingerprints(part.rows, self.table.identity)
        with np.errstate(divide="ignore", invalid="ignore"):
            intensity = np.where(found["bytes"] > 0, found["flops"] / found["bytes"], 0.0)
        numbers = (*self.table.operation.numbers, *self.table.operation.optional)
        texts = _texts(part.rows.rows(kept), numbers) if self.shapes else []
        arrays = tuple(each[kept] for each in (part.seconds, found["time"], intensity, part.test))
        self.found.append(_Found(part.group, keys[kept], arrays, texts))

    def _add(self, scores: Scores) -> None:
        """Leave out rows of one kernel that disagree, wherever in the table they are, and add the others."""
        by_group: dict[Group, list[_Found]] = {}
        for each in self.found:
            by_group.setdefault(each.group, []).append(each)
        for group, parts in by_group.items():
            into = scores[group]
            measured, *others = (np.concatenate(each) for each in zip(*(part.arrays for part in parts), strict=True))
            apart = faults.disagreeing(np.concatenate([part.keys for part in parts]), measured)
            into.left_out += Counter({faults.DISAGREE: int(apart.sum())})
            for name, column in zip(ARRAYS, (measured, *others), strict=True):
                setattr(into, name, np.concatenate([getattr(into, name), column[~apart]]))
            texts = [text for part in parts for text in part.shapes]
            into.shapes += [text for text, left in zip(texts, apart, strict=False) if not left]


def _texts(rows: Batch, names: tuple[str, ...]) -> list[str]:
    """The kernel and the numbers of each row; those that it does not have are left out."""
    columns = [rows.numbers[name] for name in names]
    kernel = rows.texts["kernel_source"]
    found = []
    for code, *values in zip(kernel.codes, *columns, strict=True):
        numbers = (f"{name}={value:.17g}" for name, value in zip(names, values, strict=True) if value == value)
        found.append(" ".join([kernel.known[code], *numbers]))
    return found
