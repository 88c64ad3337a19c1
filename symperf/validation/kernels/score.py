"""Rows into predictions, and predictions into errors by device, software, operation and format.

Whole shapes are kept apart: a row is `test` where the CRC-32 of its shape's columns, as `name=value` with a comma
between, leaves 0 when divided by 4, and `calibration` else. The shape is that of `Operation.shape`: widths and inner
lengths of products, heads of attention, sizes of experts; the size of a message. All devices and software share it.
"""

from __future__ import annotations

import zlib
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ...common.errors import InputError, nearest, quote
from . import faults
from .formats import LeftOutError, software_of, system_of
from .forms import predict
from .operations import OPERATIONS, UNMODELLED
from .table import ENDINGS, Columns, read

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from .operation import Measure, Operation, Sort
    from .table import Batch

PARTS: Final = 4
"""One shape of so many is kept back to score."""
SIZES: Final = ((20e-6, "< 20 us"), (150e-6, "20-150 us"), (np.inf, "above"))
"""Classes of measured times: seconds below which a row is in it, and its name."""
HEAD: Final = ("system", "framework", "kernel_source")
"""Columns of texts that every table has, with the version of the software."""
UNKNOWN_TABLE = "no operation of this name"


@dataclass(frozen=True, order=True)
class Group:
    """What rows are scored together."""

    device: str
    software: str
    operation: str
    format: str


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


def tables_in(folder: Path) -> list[Path]:
    """The tables of a folder, sorted.

    Raises:
        InputError: there is no such folder, or it holds none.
    """
    try:
        found = sorted(path for path in folder.iterdir() if path.suffix in ENDINGS and path.is_file())
    except OSError as error:
        raise InputError(f"kernels: {quote(str(folder))}: cannot be read: {error.strerror}") from None
    if not found:
        raise InputError(
            f"kernels: {quote(str(folder))}: holds no table, expected files such as gemm.parquet or gemm.csv"
        )
    return found


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
            _Table(path, name, OPERATIONS[name], shapes).score(scores)
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


def is_test(shape: dict[str, float]) -> bool:
    """Whether a whole shape is kept back.

    >>> [is_test({"n": 4096.0, "k": k}) for k in (2048.0, 4096.0, 8192.0)]
    [False, True, False]
    """
    text = ",".join(f"{name}={value:.17g}" for name, value in shape.items())
    return zlib.crc32(text.encode()) % PARTS == 0


def tests_of(columns: dict[str, Any], count: int) -> Any:
    """Which of `count` rows have a shape that is kept back; each distinct shape is hashed once."""
    if not columns:
        return np.zeros(count, dtype=bool)
    whole = np.column_stack([np.nan_to_num(column) for column in columns.values()])
    distinct, inverse = np.unique(whole, axis=0, return_inverse=True)
    kept = [is_test(dict(zip(columns, shape, strict=True))) for shape in distinct]
    return np.array(kept, dtype=bool)[inverse.reshape(-1)]


ARRAYS: Final = ("measured", "predicted", "intensity", "test")
"""The arrays of `Rows`."""


@dataclass
class _Found:
    """The predictions of some rows of one group, the keys by which equal kernels are found, and texts of the rows."""

    group: Group
    keys: Any
    arrays: tuple[Any, ...]
    shapes: list[str]


class _Table:
    """One table on its way to scores."""

    def __init__(self, path: Path, name: str, operation: Operation, shapes: bool) -> None:
        self.path, self.name, self.operation, self.shapes = path, name, operation, shapes
        times = {column for measure in operation.measures for column in measure.columns}
        self.texts = (*HEAD, "version", *(text for text in operation.texts if text not in HEAD))
        self.columns = Columns(self.texts, (*operation.numbers, *sorted(times)), operation.optional)
        self.found: list[_Found] = []
        self.seen: Counter[tuple[str, ...]] = Counter()
        self.impossible: Counter[tuple[str, ...]] = Counter()

    def score(self, scores: Scores) -> None:
        """Read, predict, and add to the scores."""
        for batch in read(self.path, self.columns):
            sorting = tuple(name for name in self.texts if name != "version")
            for texts, places in batch.groups(sorting):
                self._group(texts, batch.rows(places), scores)
        for columns, count in self.impossible.items():
            faults.check_unit(self.path.name, columns, self.seen[columns], count)
        self._add(scores)

    def _group(self, texts: dict[str, str], rows: Batch, scores: Scores) -> None:
        device, software = texts["system"], software_of(texts["framework"])
        if texts["kernel_source"] == "NCCL":
            software = "NCCL"
        try:
            sort = self.operation.sort(texts, software, system_of(device))
        except LeftOutError as error:
            for measure in self.operation.measures:
                group = Group(device, software, _label(self.name, measure.label), "")
                scores.setdefault(group, Rows()).left_out[str(error)] += rows.size
            return
        for measure in self.operation.measures:
            group = Group(device, software, _label(self.name, measure.label, sort.label), sort.format)
            self._measure(group, sort, measure, rows, scores.setdefault(group, Rows()))

    def _measure(self, group: Group, sort: Sort, measure: Measure, rows: Batch, into: Rows) -> None:
        seconds = sum(rows.numbers[column] for column in measure.columns) * measure.unit
        no_time = faults.bad_times(seconds)
        no_size = ~no_time & _no_sizes(rows, self.operation.numbers)
        into.left_out += Counter({faults.NO_TIME: int(no_time.sum()), faults.NO_SIZE: int(no_size.sum())})
        good = np.flatnonzero(~(no_time | no_size))
        if not len(good):
            return
        rows, seconds = rows.rows(good), seconds[good]
        sizes = self.operation.sizes({**rows.numbers, **sort.values, **measure.values})
        found = predict(sort.form, sort.setting, sizes, rows.size)
        impossible = faults.too_fast(seconds, found, sort.setting.system, sort.format)
        self.seen[measure.columns] += rows.size
        self.impossible[measure.columns] += int(impossible.sum())
        into.left_out += Counter({faults.IMPOSSIBLE: int(impossible.sum())})
        kept = np.flatnonzero(~impossible)
        keys = faults.fingerprints(rows, (*self.texts, *self.operation.numbers, *self.operation.optional))
        with np.errstate(divide="ignore", invalid="ignore"):
            intensity = np.where(found["bytes"] > 0, found["flops"] / found["bytes"], 0.0)
        test = tests_of({name: rows.numbers[name] for name in self.operation.shape}, rows.size)
        texts = _texts(rows.rows(kept), (*self.operation.numbers, *self.operation.optional)) if self.shapes else []
        arrays = tuple(each[kept] for each in (seconds, found["time"], intensity, test))
        self.found.append(_Found(group, keys[kept], arrays, texts))

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


def _label(*parts: str) -> str:
    return "/".join(part for part in parts if part)


def _no_sizes(rows: Batch, names: tuple[str, ...]) -> Any:
    """Which rows have a size that is none; a context before the new tokens may be empty."""
    found = np.zeros(rows.size, dtype=bool)
    for name in names:
        column = rows.numbers[name]
        found |= ~np.isfinite(column) | (column < 0 if name == "step" else column <= 0)
    return found


def _texts(rows: Batch, names: tuple[str, ...]) -> list[str]:
    """The kernel and the numbers of each row; those that it does not have are left out."""
    columns = [rows.numbers[name] for name in names]
    kernel = rows.texts["kernel_source"]
    found = []
    for code, *values in zip(kernel.codes, *columns, strict=True):
        numbers = (f"{name}={value:.17g}" for name, value in zip(names, values, strict=True) if value == value)
        found.append(" ".join([kernel.known[code], *numbers]))
    return found
